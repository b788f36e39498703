//! One attempt of a job, by whoever does it, and what is seen of it meanwhile.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use alhena_agent::Stopper;
use alhena_model::{Event, EventKind, Failure, FailureKind, Outcome};
use parking_lot::Mutex;

use crate::doing;
use crate::job::Job;
use crate::outputs::OutputFile;
use crate::result::Spent;
use crate::schedule::Happening;
pub use crate::schedule::Where;

/// Does jobs, one attempt at a call.
pub trait Perform: Send + Sync + 'static {
    /// Does a job and comes back when nothing of it is left. It tells `watch` what it does, and stops when that says so.
    fn perform(&self, job: &Job, watch: &Watch) -> Done;

    /// Begins a job and comes back at once; `over` is told how it ended. On a thread of its own, unless others do the work.
    fn begin(self: Arc<Self>, job: Job, _attempt: u32, watch: Arc<Watch>, over: Over) {
        let (spare, shared) = (over.clone(), over);
        let work = move || {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.perform(&job, &watch)));
            // Whoever is told may end all of it, and has to be the last one with it.
            drop(self);
            shared.done(done.unwrap_or_else(|_panicked| {
                let failure = Failure::new(FailureKind::Crashed, "the job's own thread broke down");
                Done::not_begun(failure, Where::Shared)
            }));
        };
        if let Err(error) = std::thread::Builder::new().name("alhena-job".to_owned()).spawn(work) {
            let failure = Failure::new(FailureKind::Crashed, format!("no thread for the job: {error}"));
            spare.done(Done::not_begun(failure, Where::Shared));
        }
    }

    /// How many were begun on which nobody works yet.
    fn waiting(&self) -> usize {
        0
    }

    /// No more jobs begin: those on which nobody works yet are given up, as cancelled.
    fn drain(&self) {}
}

/// To whom it is told how an attempt ended. The first word counts.
#[derive(Clone)]
pub struct Over {
    number: usize,
    tell: Sender<Happening>,
}

impl Over {
    pub(crate) fn new(number: usize, tell: Sender<Happening>) -> Self {
        Self { number, tell }
    }

    /// It ended so.
    pub fn done(&self, done: Done) {
        let _nobody_waits = self.tell.send(Happening::Over(self.number, Box::new(done)));
    }
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// How it ended.
    pub outcome: Arc<Outcome>,
    /// What it changed, if it had a place of its own.
    pub patch: Option<String>,
    /// The files that it was to give back.
    pub outputs: Vec<OutputFile>,
    /// The commit that it worked on, if any.
    pub commit: Option<String>,
    /// The worker that did it, if that was not this program.
    pub worker: Option<String>,
    /// Where it worked.
    pub place: Where,
}

impl Done {
    /// One with nothing but its outcome.
    pub fn of(outcome: Arc<Outcome>, place: Where) -> Self {
        Self { outcome, patch: None, outputs: Vec::new(), commit: None, worker: None, place }
    }

    /// An attempt that never began.
    pub fn not_begun(failure: Failure, place: Where) -> Self {
        Self::of(Arc::new(Outcome::not_begun(failure)), place)
    }
}

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// With time to say goodbye.
    Gently,
    /// Now.
    AtOnce,
}

/// Through which an attempt is seen, and stopped.
pub struct Watch {
    number: usize,
    tell: Sender<Happening>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stopper: Option<Stopper>,
    asked: Option<Stop>,
    doing: String,
    spent: Spent,
}

impl Watch {
    pub(crate) fn new(number: usize, tell: Sender<Happening>) -> Self {
        Self { number, tell, state: Mutex::default() }
    }

    /// One that nobody looks through.
    pub fn unheard() -> Self {
        Self::new(0, std::sync::mpsc::channel().0)
    }

    /// Stops it: now, or as soon as there is something to stop.
    pub fn stop(&self, how: Stop) {
        let mut state = self.state.lock();
        state.asked = state.asked.max(Some(how));
        state.stop();
    }

    /// Whether it was asked to stop.
    pub fn asked(&self) -> Option<Stop> {
        self.state.lock().asked
    }

    /// From now on there is something to stop.
    pub fn holds(&self, stopper: Stopper) {
        let mut state = self.state.lock();
        state.stopper = Some(stopper);
        state.stop();
    }

    /// Nobody works on it yet.
    pub fn waits(&self) {
        let _nobody_listens = self.tell.send(Happening::Waits(self.number));
    }

    /// What it does, in a few words.
    pub fn does(&self, what: &str) {
        let mut state = self.state.lock();
        if state.doing != what {
            state.doing = what.to_owned();
            let _nobody_listens = self.tell.send(Happening::Does(self.number, what.to_owned()));
        }
    }

    /// Something happened in its run.
    pub fn saw(&self, event: &Event) {
        if let Some(what) = doing::of(event) {
            self.does(&what);
        }
        if let EventKind::Usage(call) = &event.kind {
            let mut state = self.state.lock();
            state.spent.hear(&call.usage);
            let _nobody_listens = self.tell.send(Happening::Used(self.number, state.spent));
        }
    }
}

impl State {
    fn stop(&self) {
        match (&self.stopper, self.asked) {
            (Some(stopper), Some(Stop::Gently)) => stopper.stop(),
            (Some(stopper), Some(Stop::AtOnce)) => stopper.stop_at_once(),
            _ => {}
        }
    }
}
