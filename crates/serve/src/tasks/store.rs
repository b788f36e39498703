//! The store of all tasks: by id and by the key of their request, bounded in number and age.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use std::time::Duration;

use alhena_model::{EventKind, Timestamp};
use alhena_sys::files;
use serde::{Deserialize, Serialize};

use super::{Task, TaskEntry, TaskKind};
use crate::policy::too_many;
use crate::problem::Problem;
use crate::state::News;
use crate::token::{is_id, new_id};

/// How many tasks there may be, and how long they are kept.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// Maximum number of runs that have not ended.
    pub max_runs: usize,
    /// Maximum number of conversations that have not ended.
    pub max_conversations: usize,
    /// Maximum number of each kind that have ended.
    pub most: usize,
    /// How long a task is kept after its end.
    pub longest: Duration,
}

impl Keeping {
    fn max(&self, kind: TaskKind) -> usize {
        match kind {
            TaskKind::Run => self.max_runs,
            TaskKind::Conversation => self.max_conversations,
        }
    }
}

/// The `Idempotency-Key` of a request: the same request with the same key gives the same task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub name: String,
    /// Digest of all options of the request.
    pub asked: String,
}

/// All tasks.
pub struct TaskStore {
    dir: PathBuf,
    tasks: Mutex<Tasks>,
    keeping: Keeping,
    pub news: Arc<News>,
    /// Held by each thread that works for a task.
    workers: Arc<()>,
}

#[derive(Default)]
struct Tasks {
    entries: BTreeMap<String, Arc<TaskEntry>>,
    keys: HashMap<(TaskKind, String), String>,
    /// No task is started any more.
    is_closed: bool,
}

impl Tasks {
    fn add(&mut self, entry: Arc<TaskEntry>) {
        if let Some(key) = &entry.key {
            self.keys.insert((entry.kind, key.name.clone()), entry.id.clone());
        }
        self.entries.insert(entry.id.clone(), entry);
    }

    fn remove(&mut self, entry: &TaskEntry) {
        self.entries.remove(&entry.id);
        if let Some(key) = &entry.key {
            self.keys.remove(&(entry.kind, key.name.clone()));
        }
    }

    /// Returns the tasks of a kind, the newest first.
    fn of(&self, kind: TaskKind) -> impl Iterator<Item = &Arc<TaskEntry>> {
        self.entries.values().rev().filter(move |entry| entry.kind == kind)
    }

    /// Returns the task that a request with this key started.
    fn with_key(&self, kind: TaskKind, key: &Key) -> Result<Option<Arc<TaskEntry>>, Problem> {
        match self.keys.get(&(kind, key.name.clone())).and_then(|id| self.entries.get(id)) {
            Some(entry) if entry.key.as_ref() == Some(key) => Ok(Some(entry.clone())),
            Some(_) => Err(Problem::conflict("this Idempotency-Key was given with another request")
                .hint("Give each request a key of its own.")),
            None => Ok(None),
        }
    }
}

/// The answer to a request for a task.
pub enum Started {
    New(Arc<TaskEntry>),
    /// The task that the same request started before.
    Before(Arc<TaskEntry>),
}

impl TaskStore {
    /// Opens the tasks in a directory.
    pub fn open(dir: PathBuf, keeping: Keeping, news: Arc<News>) -> io::Result<Self> {
        let mut tasks = Tasks::default();
        for kind in TaskKind::ALL {
            let dir = dir.join(format!("{}s", kind.name()));
            files::create_private_dir(&dir)?;
            for name in files::names_in(&dir)?.into_iter().filter(|name| is_id(name)) {
                let dir = dir.join(name);
                match TaskEntry::read(kind, dir.clone()) {
                    Ok(entry) => tasks.add(Arc::new(entry)),
                    // The server was killed before it told anybody of this one.
                    Err(error) => {
                        tracing::warn!("{}: {error}; it is removed", dir.display());
                        let _gone = std::fs::remove_dir_all(&dir);
                    }
                }
            }
        }
        let store = Self { dir, tasks: Mutex::new(tasks), keeping, news, workers: Arc::default() };
        store.prune(Timestamp::now());
        Ok(store)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock()
    }

    pub fn get(&self, kind: TaskKind, id: &str) -> Result<Arc<TaskEntry>, Problem> {
        let found = self.tasks().entries.get(id).filter(|entry| entry.kind == kind).cloned();
        found.ok_or_else(|| Problem::not_found(format!("there is no {} {id:?}", kind.name())))
    }

    /// Returns the tasks of a kind, the newest first.
    pub fn list(&self, kind: TaskKind) -> Vec<Arc<TaskEntry>> {
        self.tasks().of(kind).cloned().collect()
    }

    /// Returns the tasks that have not ended.
    pub fn active(&self) -> Vec<Arc<TaskEntry>> {
        self.tasks().entries.values().filter(|entry| !entry.is_over()).cloned().collect()
    }

    /// Starts no task any more, and returns those that have not ended.
    pub fn close(&self) -> Vec<Arc<TaskEntry>> {
        self.tasks().is_closed = true;
        self.active()
    }

    /// Returns what a thread holds while it works for a task.
    pub fn worker(&self) -> Arc<()> {
        self.workers.clone()
    }

    /// Returns true if every task has ended and no thread has anything left to do.
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.workers) == 1 && self.active().is_empty()
    }

    /// Returns the task that the same request started before.
    pub fn before(&self, kind: TaskKind, key: Option<&Key>) -> Result<Option<Arc<TaskEntry>>, Problem> {
        key.map_or(Ok(None), |key| self.tasks().with_key(kind, key))
    }

    /// Adds a task, unless there are too many, or the same request has started one before.
    pub fn start(
        &self,
        kind: TaskKind,
        key: Option<Key>,
        task: impl FnOnce(&str) -> Task,
    ) -> Result<Started, Problem> {
        let mut tasks = self.tasks();
        if let Some(before) = key.as_ref().map(|key| tasks.with_key(kind, key)).transpose()?.flatten() {
            return Ok(Started::Before(before));
        }
        if tasks.is_closed {
            return Err(Problem::ending());
        }
        let max = self.keeping.max(kind);
        if tasks.of(kind).filter(|entry| !entry.is_over()).count() >= max {
            return Err(too_many(&format!("{}s", kind.name()), max));
        }
        let id = new_id(kind.name()).map_err(Problem::broken)?;
        let dir = self.dir.join(format!("{}s", kind.name())).join(&id);
        let entry = TaskEntry::create(kind, dir, task(&id), key).map_err(Problem::broken)?;
        let entry = Arc::new(entry);
        tasks.add(entry.clone());
        drop(tasks);
        self.news.tell();
        Ok(Started::New(entry))
    }

    /// Changes a task.
    pub fn change(&self, entry: &TaskEntry, change: impl FnOnce(&mut Task)) {
        change(&mut entry.locked());
        self.news.tell();
    }

    /// Ends a task with its last event.
    pub fn end(&self, entry: &TaskEntry, last: EventKind, end: impl FnOnce(&mut Task)) {
        {
            // A reader of the last event that asks for the task waits here until the task has ended, too.
            let mut task = entry.locked();
            let turn = (entry.kind == TaskKind::Conversation).then_some(task.turns);
            entry.emit(turn, last);
            end(&mut task);
            entry.save(&task);
        }
        entry.end_events();
        // It holds a descriptor, and tasks are kept long after their end.
        entry.control().stopper = None;
        self.news.tell();
        entry.changed.notify_all();
        self.prune(Timestamp::now());
    }

    /// Removes the tasks that are too old by now, or too many.
    pub fn prune(&self, now: Timestamp) {
        let longest = i64::try_from(self.keeping.longest.as_millis()).unwrap_or(i64::MAX);
        let oldest = now.as_millis().saturating_sub(longest);
        let gone: Vec<Arc<TaskEntry>> = {
            let mut tasks = self.tasks();
            let gone: Vec<_> = TaskKind::ALL
                .into_iter()
                .flat_map(|kind| {
                    let over = tasks.of(kind).filter_map(|entry| Some((entry.locked().over_at()?, entry)));
                    over.enumerate()
                })
                .filter(|(at, (over, _))| *at >= self.keeping.most || over.as_millis() < oldest)
                .map(|(_, (_, entry))| entry.clone())
                .collect();
            gone.iter().for_each(|entry| tasks.remove(entry));
            gone
        };
        // Not under the lock: a slow disk must not hold up requests for other tasks.
        for entry in gone {
            let _gone_already = std::fs::remove_dir_all(&entry.dir);
        }
    }
}
