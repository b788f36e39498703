//! A task in the store: its directory, its data, and its events.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use parking_lot::{Condvar, Mutex, MutexGuard};

use alhena_agent::Talk;
use alhena_model::{Event, EventKind, Source, Timestamp};
use alhena_sys::files;
use serde::{Deserialize, Serialize};

use super::store::Key;
use super::{Control, Task, TaskKind, TaskView};
use crate::log::{Log, json_line};

const EVENTS: &str = "events.jsonl";

/// A task that is kept.
pub struct TaskEntry {
    pub kind: TaskKind,
    pub id: String,
    pub dir: PathBuf,
    pub(super) key: Option<Key>,
    task: Mutex<Task>,
    events: Mutex<Events>,
    /// The conversation, once it is open; locked only while something is said to it.
    talk: Mutex<Option<Talk>>,
    control: Mutex<Control>,
    pub(super) changed: Condvar,
}

/// The log of a task's events.
enum Events {
    /// Held as long as it grows.
    Growing(Arc<Log>),
    /// Open as long as somebody reads it.
    Ended(Weak<Log>),
}

/// The content of `run.json` or `conversation.json`.
#[derive(Serialize, Deserialize)]
struct Saved<T> {
    #[serde(flatten)]
    task: T,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
}

/// A line of the log of events.
#[derive(Serialize)]
struct Logged<'a> {
    #[serde(flatten)]
    event: &'a Event,
    /// The turn of a conversation, from 1; 0 before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u64>,
}

impl TaskEntry {
    fn new(kind: TaskKind, dir: PathBuf, task: Task, key: Option<Key>, events: Events) -> Self {
        Self {
            kind,
            id: task.id.clone(),
            dir,
            key,
            task: Mutex::new(task),
            events: Mutex::new(events),
            talk: Mutex::default(),
            control: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(super) fn create(kind: TaskKind, dir: PathBuf, task: Task, key: Option<Key>) -> io::Result<Self> {
        files::create_private_dir(&dir)?;
        let log = Log::create(&dir.join(EVENTS))?;
        let entry = Self::new(kind, dir, task, key, Events::Growing(Arc::new(log)));
        entry.write(&entry.locked())?;
        Ok(entry)
    }

    pub(super) fn read(kind: TaskKind, dir: PathBuf) -> io::Result<Self> {
        let file = dir.join(format!("{}.json", kind.name()));
        let Saved { task, key } = serde_json::from_slice(&std::fs::read(file)?)?;
        let entry = Self::new(kind, dir, task, key, Events::Ended(Weak::new()));
        entry.recover()?;
        Ok(entry)
    }

    /// Returns the task as it is now.
    pub fn task(&self) -> Task {
        self.locked().clone()
    }

    /// Returns the task as clients see it.
    pub fn view(&self) -> TaskView {
        TaskView::of(self.kind, self.task())
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, Task> {
        self.task.lock()
    }

    pub(super) fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock()
    }

    pub(super) fn talk(&self) -> MutexGuard<'_, Option<Talk>> {
        self.talk.lock()
    }

    pub fn is_over(&self) -> bool {
        self.locked().over_at().is_some()
    }

    /// Writes the task to disk.
    pub(super) fn write(&self, task: &Task) -> io::Result<()> {
        let saved = Saved { task: TaskView::of(self.kind, task.clone()), key: self.key.clone() };
        let file = self.dir.join(format!("{}.json", self.kind.name()));
        files::replace_own(&file, &serde_json::to_vec(&saved)?)
    }

    /// Writes the task to disk, and logs an error.
    pub(super) fn save(&self, task: &Task) {
        self.write(task).unwrap_or_else(|error| self.not_kept("the task", &error));
    }

    pub(super) fn not_kept(&self, what: &str, error: &io::Error) {
        tracing::error!("{what} of the {} {} could not be written: {error}", self.kind.name(), self.id);
    }

    /// Returns the path of its events.
    pub fn events(&self) -> PathBuf {
        self.dir.join(EVENTS)
    }

    /// Opens its events for reading.
    pub(super) fn log(&self) -> io::Result<Arc<Log>> {
        let mut events = self.events.lock();
        let known = match &*events {
            Events::Growing(log) => Some(log.clone()),
            Events::Ended(log) => log.upgrade(),
        };
        if let Some(log) = known {
            return Ok(log);
        }
        let opened = Arc::new(Log::of_old(&self.events())?);
        *events = Events::Ended(Arc::downgrade(&opened));
        Ok(opened)
    }

    /// Adds an event, which gets its number here; none is added behind the end.
    pub(super) fn append(&self, turn: Option<u64>, mut event: Event) -> io::Result<()> {
        let growing = match &*self.events.lock() {
            Events::Growing(log) => log.clone(),
            Events::Ended(_) => return Ok(()),
        };
        growing.append(|seq| {
            event.seq = seq;
            json_line(&Logged { event: &event, turn })
        })
    }

    /// Adds an event of the server's own, and logs an error.
    pub(super) fn emit(&self, turn: Option<u64>, kind: EventKind) {
        let appended = self.append(turn, derived(0, kind));
        appended.unwrap_or_else(|error| self.not_kept("an event", &error));
    }

    pub(super) fn end_events(&self) {
        let mut events = self.events.lock();
        if let Events::Growing(log) = &*events {
            log.end();
            let ended = Arc::downgrade(log);
            *events = Events::Ended(ended);
        }
    }

    /// Adds the last events of a task that was under way when the server was killed.
    pub(super) fn append_last(&self, turn: Option<u64>, last: Vec<EventKind>) -> io::Result<()> {
        Log::end_old(&self.events(), |first| {
            let events = (first..).zip(last).map(|(seq, kind)| derived(seq, kind));
            events.map(|event| json_line(&Logged { event: &event, turn })).collect()
        })
    }
}

fn derived(seq: u64, kind: EventKind) -> Event {
    Event { seq, at: Timestamp::now(), source: Source::Derived, kind }
}
