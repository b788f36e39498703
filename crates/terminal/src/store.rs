//! What is kept about a terminal outside of tmux: one small file each, so that any later command picks it up.
//!
//! Written by rename, changed only under a lock, and readable by the user alone. A record can be wrong about what runs (the
//! machine may have been switched off), so processes are named by number and start time, and tmux has the last word on panes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alhena_agent::Gemini;
use alhena_model::Timestamp;
use alhena_sys::{Process, files, locks};
use serde::{Deserialize, Serialize};

use crate::error::TerminalError;
use crate::launch::Launch;
use crate::mcp::start::McpStart;

/// Everything that is kept about a terminal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Eight hexadecimal digits.
    pub id: String,
    /// What people call it; no two terminals of a server have the same.
    pub name: String,
    /// Where the agent works.
    pub dir: PathBuf,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The approval mode.
    pub approval: String,
    /// The profile, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The terminal, by its id, that it works for: when that ends, it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supervisor: Option<String>,
    /// What to do when it waits for somebody: `bell`, or a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<String>,
    /// The Gemini CLI that runs there.
    pub gemini: PathBuf,
    /// Its version.
    pub gemini_version: String,
    /// When it was launched.
    pub created: Timestamp,
    /// How far it is.
    pub phase: Phase,
    /// Rows that the terminal wrapped are to be put together: only the layout for screen readers leaves that to it.
    #[serde(default)]
    pub(crate) joined: bool,
    /// The process in the pane that holds the CLI.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<Process>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cli: Option<Process>,
    /// When that was started, for the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it was seen to be ready, for the last time that it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<Timestamp>,
    /// Stands in the environment of every process of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mark: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) chats: Option<PathBuf>,
    /// What tells whether its MCP servers have started, until they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<McpStart>,
    /// What people should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<TerminalEnd>,
}

/// How far a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The CLI has not been started.
    Launching,
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

/// How the CLI in a terminal ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalEnd {
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Who or what ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why it was not even started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<alhena_model::Failure>,
    /// How many other processes of it had to be ended.
    #[serde(default)]
    pub swept: usize,
    /// Its sessions, in the user's store.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<PathBuf>,
}

/// Who or what can end an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It left by itself: `/quit`, or ^D.
    Quit,
    /// The CLI crashed, or somebody killed it.
    Crashed,
    /// Its pane was closed.
    PaneClosed,
    /// tmux's server ended.
    ServerGone,
    /// It was told to end: by `exit` or `kill`, or because its supervisor ended.
    Told,
    /// The process that held it was killed.
    Killed,
}

impl TerminalEnd {
    /// Why it ended, for people.
    #[must_use]
    pub fn why(&self) -> String {
        let how = match (&self.failure, self.code, self.signal) {
            (Some(failure), _, _) => failure.message.clone(),
            (None, _, Some(signal)) => format!("ended by signal {signal}"),
            (None, Some(code), None) => format!("ended with exit code {code}"),
            (None, None, None) => "ended".to_owned(),
        };
        match self.cause {
            Some(Cause::Quit) => format!("left by itself, {how}"),
            Some(Cause::Crashed) => format!("crashed, {how}"),
            Some(Cause::PaneClosed) => "its pane was closed".to_owned(),
            Some(Cause::ServerGone) => "tmux's server ended, and its panes with it".to_owned(),
            Some(Cause::Told) => "somebody ended it".to_owned(),
            Some(Cause::Killed) => "the process that held it was killed".to_owned(),
            None => how,
        }
    }

    /// The session to go on with, by its id.
    #[must_use]
    pub fn session_id(&self) -> Option<String> {
        crate::answer::session_id(self.sessions.last()?)
    }
}

impl Record {
    pub(crate) fn of(launch: &Launch, id: &str, name: &str, dir: &Path, gemini: &Gemini) -> Self {
        let options = &launch.options;
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            dir: dir.to_owned(),
            model: options.model.clone(),
            approval: options.approval.unwrap_or_default().flag().to_owned(),
            profile: launch.profile.as_ref().map(|profile| profile.name.clone()),
            supervisor: None,
            notify: None,
            gemini: gemini.path.clone(),
            gemini_version: gemini.version.to_string(),
            created: Timestamp::now(),
            phase: Phase::Launching,
            joined: false,
            agent: None,
            cli: None,
            started: None,
            ready: None,
            mark: None,
            chats: None,
            mcp: None,
            warnings: Vec::new(),
            ended: None,
        }
    }

    /// Whether the CLI that runs has been ready once: it does not start any more, whatever its screen looks like.
    pub(crate) fn has_been_ready(&self) -> bool {
        self.ready.is_some_and(|ready| self.started.is_some_and(|started| ready >= started))
    }

    /// Whether its agent is there, or may still come.
    pub(crate) fn is_alive(&self) -> bool {
        match self.phase {
            Phase::Launching => true,
            Phase::Running => self.agent.is_some_and(Process::alive),
            Phase::Ended => false,
        }
    }
}

/// Whether a terminal of any server is alive. One whose record cannot be read counts as alive.
pub(crate) fn is_alive(state: &Path, id: &str) -> bool {
    let servers = fs::read_dir(state.join("terminals")).into_iter().flatten().flatten();
    let mut records = servers.map(|server| read(&server.path().join(format!("{id}.json"))));
    records.any(|record| record.map_or(true, |record| record.is_some_and(|record| record.is_alive())))
}

#[derive(Clone, Debug)]
pub(crate) struct Store {
    dir: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Store {
    pub(crate) fn open(state: &Path, server: &str) -> Result<Self, TerminalError> {
        let dir = state.join("terminals").join(server);
        files::create_private_dir(&dir).map_err(|error| TerminalError::io(dir.display(), &error))?;
        let dir = std::path::absolute(&dir).unwrap_or(dir);
        Ok(Self { dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn path(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Where a launch leaves what the agent needs, secrets included, for as long as it takes to be read.
    pub(crate) fn orders(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.launch"))
    }

    /// The lock for starting terminals: names are unique, and there is one session.
    pub(crate) fn lock_all(&self) -> Result<Lock, TerminalError> {
        lock(&self.dir.join("lock"), Duration::from_secs(30))
    }

    /// The lock for starting a watcher: one is enough.
    pub(crate) fn lock_watcher_start(&self, limit: Duration) -> Result<Lock, TerminalError> {
        lock(&self.dir.join("watcher.starting"), limit)
    }

    /// The lock for typing: two senders at once would mix their words.
    pub(crate) fn lock_typing(&self, id: &str, limit: Duration) -> Result<Lock, TerminalError> {
        lock(&self.dir.join(format!("{id}.typing")), limit)
    }

    /// The lock for delivering messages: each is delivered once.
    pub(crate) fn lock_post(&self, id: &str, limit: Duration) -> Result<Lock, TerminalError> {
        lock(&self.dir.join(format!("{id}.delivering")), limit)
    }

    pub(crate) fn all(&self) -> Result<Vec<Record>, TerminalError> {
        let mut records = Vec::new();
        let entries =
            fs::read_dir(&self.dir).map_err(|error| TerminalError::io(self.dir.display(), &error))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "json")
                && let Some(record) = read(&path)?
            {
                records.push(record);
            }
        }
        records.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        Ok(records)
    }

    pub(crate) fn get(&self, id: &str) -> Result<Option<Record>, TerminalError> {
        read(&self.path(id))
    }

    pub(crate) fn put(&self, record: &Record) -> Result<(), TerminalError> {
        write(&self.path(&record.id), record)
    }

    pub(crate) fn remove(&self, id: &str) {
        for extension in ["launch", "typing", "delivering", "turns", "mode", "lock", "json"] {
            let _gone = fs::remove_file(self.dir.join(format!("{id}.{extension}")));
        }
        let _gone = fs::remove_dir_all(self.dir.join(format!("{id}.post")));
    }
}

/// Changes a record, wherever this is called from: the pane, a command, a clean-up.
pub(crate) fn update(path: &Path, change: impl FnOnce(&mut Record)) -> Result<Option<Record>, TerminalError> {
    let _lock = lock(&path.with_extension("lock"), Duration::from_secs(10))?;
    let Some(mut record) = read(path)? else {
        let _gone = fs::remove_file(path.with_extension("lock"));
        return Ok(None);
    };
    change(&mut record);
    write(path, &record)?;
    Ok(Some(record))
}

/// The files of the records in a directory.
pub(crate) fn files_in(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"))
}

pub(crate) fn read(path: &Path) -> Result<Option<Record>, TerminalError> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| TerminalError::io(path.display(), &error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TerminalError::io(path.display(), &error)),
    }
}

pub(crate) fn write(path: &Path, record: &Record) -> Result<(), TerminalError> {
    let bytes = serde_json::to_vec_pretty(record).unwrap_or_default();
    files::replace_own(path, &bytes).map_err(|error| TerminalError::io(path.display(), &error))
}

fn lock(path: &Path, limit: Duration) -> Result<Lock, TerminalError> {
    let failed = |error: io::Error| TerminalError::io(path.display(), &error);
    let file = locks::open(path).map_err(failed)?;
    match locks::lock_within(&file, limit).map_err(failed)? {
        locks::Lock::Ours => Ok(Lock { _file: file }),
        locks::Lock::Others => Err(TerminalError::new(
            crate::error::TerminalErrorKind::NotReady,
            "somebody else is typing into this terminal",
        )
        .with_hint("Try again when they have finished.")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(id: &str) -> Record {
        let record = json!({
            "id": id, "name": "worker", "dir": "/w", "approval": "default", "gemini": "/g",
            "gemini_version": "0.61.0", "created": "1970-01-01T00:00:00.000Z", "phase": "launching",
        });
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn records_survive_a_round_trip_and_concurrent_changes() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path(), "test").unwrap();
        store.put(&record("aa")).unwrap();
        let path = store.path("aa");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..10 {
                        update(path, |record| record.warnings.push(number.to_string())).unwrap().unwrap();
                    }
                });
            }
        });
        let kept = store.get("aa").unwrap().unwrap();
        assert_eq!(kept.warnings.len(), 80);
        assert_eq!(store.all().unwrap(), [kept]);
        store.remove("aa");
        assert_eq!(store.all().unwrap(), []);
        assert_eq!(update(&path, |_| panic!("nothing to change")).unwrap(), None);
    }
}
