//! One attempt of a job, by whoever does it, and what is seen of it meanwhile.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use alhena_agent::Stopper;
use alhena_model::{Event, EventKind, Outcome};

use crate::doing;
use crate::job::Job;
use crate::result::Spent;
use crate::schedule::Happening;
pub use crate::schedule::Where;

/// Does jobs, one attempt at a call.
pub trait Perform: Send + Sync {
    /// Does a job and comes back when nothing of it is left. It tells `watch` what it does, and stops when that says so.
    fn perform(&self, job: &Job, watch: &Watch) -> Done;
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// How it ended.
    pub outcome: Arc<Outcome>,
    /// What it changed, if it had a place of its own.
    pub patch: Option<String>,
    /// The commit that it worked on, if any.
    pub commit: Option<String>,
    /// Where it worked.
    pub place: Where,
}

impl Done {
    /// An attempt that never began.
    pub fn not_begun(failure: alhena_model::Failure, place: Where) -> Self {
        Self { outcome: Arc::new(Outcome::not_begun(failure)), patch: None, commit: None, place }
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

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops it: now, or as soon as there is something to stop.
    pub fn stop(&self, how: Stop) {
        let mut state = self.state();
        state.asked = state.asked.max(Some(how));
        state.stop();
    }

    /// Whether it was asked to stop.
    pub fn asked(&self) -> Option<Stop> {
        self.state().asked
    }

    /// From now on there is something to stop.
    pub fn holds(&self, stopper: Stopper) {
        let mut state = self.state();
        state.stopper = Some(stopper);
        state.stop();
    }

    /// What it does, in a few words.
    pub fn does(&self, what: &str) {
        let mut state = self.state();
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
        if let EventKind::Usage(usage) = &event.kind {
            let mut state = self.state();
            state.spent.hear(usage, event.source);
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
