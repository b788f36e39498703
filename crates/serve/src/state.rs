//! What all routes share.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alhena_agent::Approval;
use alhena_agent::env::Environment;
use alhena_batch::launcher::Launcher;
use alhena_model::Policy;
use alhena_terminal::Terminals;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use crate::now::Now;
use crate::problem::Problem;
use crate::tasks::{TaskEntry, TaskStore};
use crate::token::Tokens;

/// What becomes of runs when the server is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExit {
    /// They are waited for.
    Wait,
    /// They are stopped.
    Stop,
}

/// A certificate and its key, in PEM files.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate, with those that it was signed by.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// How the server is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub listen: std::net::SocketAddr,
    /// How to speak TLS.
    pub tls: Option<Tls>,
    /// Where tokens, runs and conversations are kept.
    pub state: PathBuf,
    /// Names that the server has beside its address: what may stand in `Host`.
    pub hosts: Vec<String>,
    /// Pages from elsewhere that may use the API, such as `http://localhost:3000`.
    pub allow_origins: Vec<String>,
    /// Folders and files that requests name are below it.
    pub root: Option<PathBuf>,
    /// The highest approval mode.
    pub max_approval: Approval,
    /// Variables that a request may set.
    pub allow_env: Vec<String>,
    /// Whether requests may name programs.
    pub allow_programs: bool,
    /// So many runs at once.
    pub max_runs: usize,
    /// So many conversations at once.
    pub max_conversations: usize,
    /// So many bytes in a request.
    pub max_request: usize,
    /// So many runs, and as many conversations, are kept that are over.
    pub keep: usize,
    /// For so long.
    pub keep_for: Duration,
    /// What becomes of runs when the server is told to end.
    pub on_exit: OnExit,
    /// The tmux server with the terminals.
    pub tmux_server: String,
    /// The tmux to use.
    pub tmux: Option<PathBuf>,
}

/// What only the program knows that serves.
pub trait Knows: Send + Sync {
    /// As its `capabilities --json`.
    fn capabilities(&self) -> Result<Value, Problem>;
    /// As its `doctor --json`.
    fn doctor(&self) -> Result<Value, Problem>;
}

/// What all routes share.
pub struct App {
    pub settings: Settings,
    pub policy: Policy,
    pub tokens: Tokens,
    pub tasks: TaskStore,
    pub now: Now,
    pub news: Arc<News>,
    pub launcher: Arc<dyn Launcher>,
    pub knows: Arc<dyn Knows>,
    pub environment: Environment,
    /// Once somebody asked for them.
    pub terminals: Mutex<Option<Terminals>>,
    /// Room for those who read a recording: each has a thread as long as it takes.
    pub recordings: Arc<Semaphore>,
    /// Whoever has it starts programs to answer: one at a time, however many ask.
    pub looking: Arc<tokio::sync::Mutex<()>>,
    /// How often it was told to end.
    pub ending: watch::Sender<u32>,
}

/// The same for everybody.
pub type Shared = Arc<App>;

impl App {
    /// Whether nothing is begun any more.
    pub fn is_ending(&self) -> bool {
        *self.ending.borrow() > 0
    }

    /// Starts a thread that works for a task.
    pub fn spawn(
        self: &Arc<Self>,
        name: &str,
        entry: &Arc<TaskEntry>,
        work: impl FnOnce(&Shared, &Arc<TaskEntry>) + Send + 'static,
    ) -> io::Result<()> {
        let (worker, app, entry) = (self.tasks.worker(), self.clone(), entry.clone());
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            work(&app, &entry);
            drop(worker);
        });
        spawned.map(drop)
    }
}

/// Tells whoever waits for it.
#[derive(Debug)]
pub struct News(watch::Sender<u64>);

impl Default for News {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl News {
    /// Something changed.
    pub fn tell(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Word of each change from now on; several at once are one.
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
