//! A task in the store: its directory, its data, and its events.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use alhena_agent::Talk;
use alhena_batch::perform::Seen;
use alhena_model::{Event, EventKind, Failure, FailureKind, Outcome, Resolution, Source, Timestamp};
use alhena_sys::files;
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::store::Key;
use super::{Control, OUTCOME, Task, TaskKind, TaskView};
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

impl TaskEntry {
    /// Ends the task, if it has not ended.
    pub(super) fn recover(&self) -> io::Result<()> {
        match self.kind {
            TaskKind::Run => self.recover_run(),
            TaskKind::Conversation => self.recover_conversation(),
        }
    }

    fn recover_run(&self) -> io::Result<()> {
        let events = self.events();
        // One that has ended can be without its last event, if the server was killed just then.
        let has_end = ends_finished(&events)?;
        if self.is_over() && has_end {
            return Ok(());
        }
        let mut outcome = match files::read_if_there(&self.dir.join(OUTCOME))? {
            Some(bytes) => serde_json::from_slice(&bytes)?,
            None => killed(&events)?,
        };
        let mut task = self.locked();
        outcome.session_id = outcome.session_id.take().or(task.session_id.take());
        task.end_run(&outcome);
        if !has_end {
            self.append_last(None, vec![EventKind::Finished { outcome: Arc::new(outcome.clone()) }])?;
        }
        self.write_outcome(&outcome)?;
        self.write(&task)
    }

    fn recover_conversation(&self) -> io::Result<()> {
        if self.is_over() {
            return Ok(());
        }
        let failure =
            Failure::new(FailureKind::Crashed, "the server was killed while the conversation was open")
                .with_hint("Open another; with resume it goes on where the session stopped.".to_owned());
        let reason = Some("the server was killed".to_owned());
        let mut last: Vec<EventKind> = unanswered(&self.events())?
            .into_iter()
            .map(|id| EventKind::PermissionResolved {
                id,
                decision: Resolution::Withdrawn,
                reason: reason.clone(),
            })
            .collect();
        last.push(EventKind::Closed { warnings: Vec::new(), failure: Some(Box::new(failure.clone())) });
        let mut task = self.locked();
        self.append_last(Some(task.turns), last)?;
        task.end(Some(failure));
        self.write(&task)
    }

    pub(super) fn write_outcome(&self, outcome: &Outcome) -> io::Result<()> {
        files::replace_own(&self.dir.join(OUTCOME), &serde_json::to_vec(outcome)?)
    }
}

/// Reads the events of a log. A line that was cut off is ignored.
fn each_event<T: DeserializeOwned>(path: &Path, mut each: impl FnMut(T)) -> io::Result<()> {
    let Ok(file) = files::open(path) else { return Ok(()) };
    for line in io::BufReader::new(file).split(b'\n') {
        if let Ok(event) = serde_json::from_slice(&line?) {
            each(event);
        }
    }
    Ok(())
}

/// Returns the questions without an answer.
fn unanswered(events: &Path) -> io::Result<Vec<String>> {
    let mut open: Vec<String> = Vec::new();
    each_event(events, |kind: EventKind| match kind {
        EventKind::Permission { permission } => open.push(permission.id),
        EventKind::PermissionResolved { id, .. } => open.retain(|open| *open != id),
        _ => {}
    })?;
    Ok(open)
}

/// Returns the outcome of a run that was killed, with its usage as far as its events have it.
fn killed(events: &Path) -> io::Result<Outcome> {
    let failure = Failure::new(FailureKind::Crashed, "the server was killed while the run was under way")
        .with_hint("Start it again; with resume it goes on where its session stopped.".to_owned());
    let mut outcome = Outcome::not_begun(failure);
    let mut seen = Seen::default();
    each_event(events, |event: Event| {
        if let EventKind::Usage(call) = &event.kind {
            call.usage.models.iter().for_each(|(model, tokens)| outcome.usage.add(model, tokens));
        }
        seen.saw(&event);
    })?;
    outcome.cost_usd = seen.spent().1;
    Ok(outcome)
}

/// How much of the end of the events is read at first.
const TAIL: u64 = 64 << 10;

/// Returns true if the last whole line of the events is their end.
fn ends_finished(path: &Path) -> io::Result<bool> {
    let Ok(file) = files::open(path) else { return Ok(false) };
    let (length, mut want) = (file.metadata()?.len(), TAIL);
    loop {
        let start = length.saturating_sub(want);
        let mut tail = vec![0; usize::try_from(length - start).map_err(io::Error::other)?];
        files::read_exact_at(&file, &mut tail, start)?;
        // Bytes behind the last line end were cut off.
        let whole = memchr::memrchr(b'\n', &tail).and_then(|end| tail.get(..end)).unwrap_or_default();
        match memchr::memrchr(b'\n', whole) {
            None if start > 0 => want = want.saturating_mul(4),
            before => {
                let last = whole.get(before.map_or(0, |before| before + 1)..).unwrap_or_default();
                let event: Result<Value, _> = serde_json::from_slice(last);
                return Ok(event.is_ok_and(|event| event.get("type").is_some_and(|kind| kind == "finished")));
            }
        }
    }
}
