//! Many independent prompts on few processes.
//!
//! | Module | Its one job |
//! |---|---|
//! | `key` | which prompts may share a process: all that a process has only once |
//! | `folder` | the state of a folder: all that a session reads only once |
//! | `unfit` | why one cannot be pooled at all |
//! | `machine` | how many processes there can be |
//! | `desk` | the one thread: who waits, which process serves whom, which has to go |

mod desk;
mod folder;
mod key;
mod machine;
mod unfit;

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alhena_model::{FailureKind, RunOptions};
use alhena_sys::sockets::Stream;

use self::desk::{Desk, News, Waiting};
use self::unfit::NoKey;
pub use self::unfit::Unfit;
use crate::acp::{Job, Terms};
use crate::env::Environment;
use crate::find::Gemini;
use crate::prepare::{RunError, prompt};
use crate::prices;
use crate::request::{Prompt, ResolvedRequest, RunExtras, Transport};
use crate::run::{About, Over, Queue, Run, Sessions, Stopper};

/// Limits of a [`Pool`]. Every one has a method that sets it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolOptions {
    /// How many processes there may be; each serves one prompt at a time. By default two for each core, as far as half of the free
    /// memory goes.
    pub processes: usize,
    /// How much memory a process may hold before it is replaced, in bytes.
    pub memory: u64,
    /// The limit of a process's heap, in MB. Node gets it as an argument, so that tools do not see it.
    pub heap_mb: u64,
    /// How many sessions a process may have had before it is replaced: none of them is ever freed.
    pub sessions: u32,
    /// How many prompts a process may have served before it is replaced.
    pub prompts: u32,
    /// How old a process may get.
    pub age: Duration,
    /// How long a process may be without a prompt before it is ended.
    pub idle: Duration,
    /// Whether prompts use a session again whose history has been cleared. Without, each gets a new one.
    pub reuse: bool,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            processes: machine::processes(),
            memory: 600 << 20,
            heap_mb: 512,
            sessions: 50,
            prompts: 2000,
            age: Duration::from_secs(60 * 60),
            idle: Duration::from_secs(60),
            reuse: true,
        }
    }
}

impl PoolOptions {
    /// How many processes there may be; at least one.
    pub fn processes(mut self, count: usize) -> Self {
        self.processes = count.max(1);
        self
    }

    /// How much memory a process may hold, in bytes.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// The limit of a process's heap, in MB.
    pub fn heap_mb(mut self, limit: u64) -> Self {
        self.heap_mb = limit;
        self
    }

    /// How many sessions a process may have had.
    pub fn sessions(mut self, count: u32) -> Self {
        self.sessions = count;
        self
    }

    /// How many prompts a process may have served.
    pub fn prompts(mut self, count: u32) -> Self {
        self.prompts = count;
        self
    }

    /// How old a process may get.
    pub fn age(mut self, limit: Duration) -> Self {
        self.age = limit;
        self
    }

    /// How long a process may be without a prompt.
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }

    /// Whether sessions are used again.
    pub fn reuse(mut self, reuse: bool) -> Self {
        self.reuse = reuse;
        self
    }
}

/// Runs many independent prompts on few processes of Gemini CLI, which stay warm between them. Dropping it ends everything.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use alhena_agent::{Finder, Pool, PoolOptions};
/// use alhena_model::RunOptions;
/// let gemini = Finder::new().find()?;
/// let pool = Pool::new(PoolOptions::default())?;
/// let options = RunOptions::default().dir("./app");
/// for name in ["a.rs", "b.rs"] {
///     let run = pool.run(&gemini, format!("What does {name} do?"), &options)?;
///     println!("{}", run.outcome_blocking().text.all());
/// }
/// pool.close_blocking();
/// # Ok(()) }
/// ```
pub struct Pool {
    desk: Desk,
    reuse: bool,
}

impl Pool {
    /// A pool without a process: each is started when a prompt needs it.
    pub fn new(options: PoolOptions) -> Result<Self, RunError> {
        let reuse = options.reuse;
        let desk = Desk::open(options).map_err(|error| {
            RunError::failed(FailureKind::Crashed, format!("the pool could not be opened: {error}"))
        })?;
        Ok(Self { desk, reuse })
    }

    /// Whether a pool takes prompts with these options; if not, why. What is refused here runs in a process of its own, with
    /// [`Gemini::run`].
    pub fn fits(gemini: &Gemini, options: &RunOptions, extras: RunExtras) -> Result<(), Unfit> {
        let environment = extras.environment.clone();
        match ResolvedRequest::for_program(None, options, extras) {
            Ok(request) => Self::fits_in(gemini, &request, &environment),
            // What no process can do is told when it is run.
            Err(_) => Ok(()),
        }
    }

    /// The same for options that are resolved, for programs of this workspace.
    #[doc(hidden)]
    pub fn fits_in(
        gemini: &Gemini,
        request: &ResolvedRequest,
        environment: &Environment,
    ) -> Result<(), Unfit> {
        match key::shareable(gemini, request, environment) {
            Err(NoKey::Unfit(unfit)) => Err(unfit),
            // What no process can do is told when it is run.
            Err(NoKey::Wrong(_)) | Ok(_) => Ok(()),
        }
    }

    /// Runs a prompt: the same events and outcome as [`Gemini::run`].
    ///
    /// It goes by ACP, whatever `transport` says. It waits for its turn if all processes are busy; its `timeout` begins now. What a
    /// process cannot do for several is refused, for the reason that [`fits`](Self::fits) gives. Nobody is waited for, so hundreds can
    /// be asked at once; each that waits takes two file descriptors.
    pub fn run(
        &self,
        gemini: &Gemini,
        prompt: impl Into<Prompt>,
        options: &RunOptions,
    ) -> Result<Run, RunError> {
        self.run_with(gemini, prompt, options, RunExtras::default())
    }

    /// Runs a prompt with what is not an option, such as another environment.
    pub fn run_with(
        &self,
        gemini: &Gemini,
        prompt: impl Into<Prompt>,
        options: &RunOptions,
        extras: RunExtras,
    ) -> Result<Run, RunError> {
        let environment = extras.environment.clone();
        self.start(gemini, ResolvedRequest::for_program(Some(prompt.into()), options, extras)?, &environment)
    }

    /// Runs a prompt whose options are resolved, for programs of this workspace.
    #[doc(hidden)]
    pub fn start(
        &self,
        gemini: &Gemini,
        request: ResolvedRequest,
        environment: &Environment,
    ) -> Result<Run, RunError> {
        request.check()?;
        let text = prompt::text(&request)?;
        let mut request = prices::settle(request, environment)?;
        let (key, mut place) = key::of(gemini, &request, environment)?;
        if !self.reuse {
            place.state = format!("{:?}", Instant::now());
        }
        request.began.get_or_insert_with(Instant::now);
        request.dir = Some(place.dir.clone());
        let pair = Stream::pair().and_then(|(ours, theirs)| {
            ours.set_nonblocking(true)?;
            theirs.set_nonblocking(true)?;
            Ok((ours, theirs))
        });
        let (ours, theirs) = pair.map_err(|error| {
            RunError::failed(FailureKind::Crashed, format!("the run could not be started: {error}"))
        })?;
        let over = Over::default();
        let (outlet, items, queued) = Queue::new();
        let terms = Terms { request, place, bell: Some(theirs), over: over.clone(), deaths: 0 };
        let job = Box::new(Job { text, outlet, terms: Box::new(terms) });
        let waiting = Waiting::new(key, job, gemini.clone(), environment.clone());
        if !self.desk.tell(News::Asked(Box::new(waiting))) {
            return Err(RunError::failed(FailureKind::Crashed, "the pool is closed"));
        }
        let about = About::new(String::new(), PathBuf::new(), Transport::Acp);
        Ok(Run::new(items, queued, Stopper::new(ours, over), about, Sessions::default()))
    }

    /// Ends it, and waits until nothing of it is left. Prompts that wait or are being served are cancelled.
    pub async fn close(self) {
        let closed = self.desk.close();
        let _gone = closed.recv().await;
    }

    /// The same, waiting in this thread.
    pub fn close_blocking(self) {
        let closed = self.desk.close();
        let _gone = closed.recv_blocking();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _nobody_waits = self.desk.close();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}
