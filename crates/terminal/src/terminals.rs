//! All terminals of one tmux server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use parking_lot::Mutex;
use serde::Serialize;

use crate::borrowed::BorrowedFiles;
use crate::control::Control;
use crate::error::{TerminalError, TerminalErrorKind};
use crate::screen::{Reading, Status};
use crate::store::{self, Record, Store, TerminalEnd};
use crate::terminal::Terminal;
use crate::tmux::Tmux;
use crate::watcher;

/// The name of Alhena's own tmux server.
pub const SERVER: &str = "alhena";

/// Where the terminals are.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the tmux server (`tmux -L`).
    pub server: String,
    /// The tmux to use; the one on `PATH` by default.
    pub tmux: Option<PathBuf>,
    /// Where records are kept; Alhena's own state directory by default.
    pub state: Option<PathBuf>,
    /// The environment of whoever asks.
    pub environment: Environment,
}

impl Default for Options {
    fn default() -> Self {
        Self { server: SERVER.to_owned(), tmux: None, state: None, environment: Environment::of_process() }
    }
}

/// The terminals of one tmux server. Cheap to copy; copies share one connection to tmux.
#[derive(Clone, Debug)]
pub struct Terminals {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) tmux: Tmux,
    pub(crate) store: Store,
    pub(crate) environment: Environment,
    pub(crate) borrowed: BorrowedFiles,
    control: Mutex<Option<Arc<Control>>>,
}

impl Terminals {
    /// Opens Alhena's terminals. tmux need not run yet.
    pub fn open(options: Options) -> Result<Self, TerminalError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if options.server.is_empty() || !options.server.chars().all(plain) {
            return Err(TerminalError::usage(
                format!("{:?} is no name for a tmux server", options.server),
                "Use letters, digits, - and _.",
            ));
        }
        let state = match options.state.clone() {
            Some(state) => state,
            None => {
                let dirs = Dirs::of(&options.environment).ok_or_else(|| {
                    TerminalError::usage(
                        "there is no home directory to work with",
                        "Set HOME, or ALHENA_HOME to a directory of its own.",
                    )
                })?;
                dirs.state
            }
        };
        let tmux = Tmux::find(options.tmux.as_deref(), &options.server, &options.environment)?;
        let store = Store::open(&state, &options.server)?;
        let borrowed = BorrowedFiles::new(&state);
        for warning in borrowed.recover(&|terminal| store::is_alive(&state, terminal)) {
            tracing::warn!("{warning}");
        }
        let inner =
            Inner { tmux, store, environment: options.environment, borrowed, control: Mutex::new(None) };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The terminals whose records are in a directory, as their watcher sees them.
    pub(crate) fn watched(
        tmux: Tmux,
        dir: &Path,
        environment: Environment,
        control: Arc<Control>,
    ) -> Result<Self, TerminalError> {
        let state = dir.ancestors().nth(2).unwrap_or(dir);
        let store = Store::open(state, tmux.server())?;
        let control = Mutex::new(Some(control));
        Ok(Self {
            inner: Arc::new(Inner { tmux, store, environment, borrowed: BorrowedFiles::new(state), control }),
        })
    }

    /// All terminals, the oldest first, those that have ended by themselves included.
    pub fn list(&self) -> Result<Vec<Terminal>, TerminalError> {
        let records = self.inner.store.all()?;
        Ok(records.iter().map(|record| self.terminal(record)).collect())
    }

    /// A terminal by its name or id.
    pub fn find(&self, name: &str) -> Result<Terminal, TerminalError> {
        let records = self.inner.store.all()?;
        let found = records.iter().find(|record| record.id == name || record.name == name);
        found.map(|record| self.terminal(record)).ok_or_else(|| {
            TerminalError::new(TerminalErrorKind::NotFound, format!("there is no terminal {name:?}"))
                .with_hint(format!(
                    "`{}` shows them; `{}` starts one.",
                    self.command_line(&["list"]),
                    self.command_line(&["launch"])
                ))
        })
    }

    /// Ends everything that is left of terminals whose pane is gone, and forgets them: what a crash may leave.
    pub fn clean_up(&self) -> Result<usize, TerminalError> {
        let mut gone = 0;
        for terminal in self.list()? {
            if terminal.pane().is_none() {
                terminal.kill()?;
                gone += 1;
            }
        }
        Ok(gone)
    }

    pub(crate) fn terminal(&self, record: &Record) -> Terminal {
        Terminal::new(self.clone(), record.id.clone(), record.name.clone())
    }
}

impl Inner {
    pub(crate) fn control(&self) -> Result<Arc<Control>, TerminalError> {
        let mut slot = self.control.lock();
        if let Some(control) = slot.as_ref().filter(|control| !control.is_gone()) {
            return Ok(Arc::clone(control));
        }
        if let Some(Control::Own(_)) = slot.as_deref() {
            return Err(TerminalError::tmux("the server has ended"));
        }
        let ground = watcher::Ground {
            tmux: self.tmux.clone(),
            store: self.store.clone(),
            environment: self.environment.clone(),
        };
        let control = Arc::new(watcher::connect(&ground)?);
        *slot = Some(Arc::clone(&control));
        Ok(control)
    }
}

/// A terminal's record and what its agent does.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// What is kept about it.
    #[serde(flatten)]
    pub record: Record,
    /// What its agent does.
    #[serde(flatten)]
    pub reading: Reading,
}

/// The same for one that may have gone.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    /// The terminal.
    #[serde(flatten)]
    pub described: Described,
    /// Why it has gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The session to go on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl Terminals {
    /// All terminals, with what is told of them.
    pub fn listed(&self) -> Result<Vec<(Terminal, Listed)>, TerminalError> {
        let mut rows = Vec::new();
        for terminal in self.list()? {
            // Somebody may end one meanwhile.
            if let (Ok(reading), Ok(record)) = (terminal.status_now(), terminal.record()) {
                let gone = reading.status == Status::Exited;
                let why = gone.then(|| record.why_gone());
                let session_id = if gone { terminal.session_id() } else { None };
                rows.push((terminal, Listed { described: Described { record, reading }, why, session_id }));
            }
        }
        Ok(rows)
    }
}

impl Record {
    /// Why its agent has gone.
    #[must_use]
    pub fn why_gone(&self) -> String {
        let nobody = || "its terminal has gone, and nobody was left to say why".to_owned();
        self.ended.as_ref().map_or_else(nobody, TerminalEnd::why)
    }
}
