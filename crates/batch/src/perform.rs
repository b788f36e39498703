//! One attempt of a job, by whoever does it, and what is seen of it meanwhile.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use alhena_agent::Stopper;
use alhena_model::{Event, EventKind, Failure, FailureKind, Outcome};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::job::Job;
use crate::result::{JobResult, Spent};
use crate::schedule::Happening;

pub use crate::schedule::Where;

/// Does jobs, one attempt at a call.
pub trait Perform: Send + Sync + 'static {
    /// Does a job and comes back when nothing of it is left. It tells `watch` what it does, and stops when that says so.
    fn perform(&self, job: &Job, watch: &Watch) -> Attempt;

    /// Begins a job and comes back at once; `over` is told how it ended. On a thread of its own, unless others do the work.
    fn begin(self: Arc<Self>, job: Job, _attempt: u32, watch: Arc<Watch>, over: Over) {
        let (job, spare) = (Arc::new(job), over.clone());
        let unstarted = job.clone();
        let work = move || {
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.perform(&job, &watch)));
            // Whoever is told may end all of it, and has to be the last one with it.
            drop(self);
            over.done(done.unwrap_or_else(|_panicked| {
                let failure = Failure::new(FailureKind::Crashed, "the job's own thread broke down");
                Attempt::not_begun(&job, failure, Where::Shared)
            }));
        };
        if let Err(error) = std::thread::Builder::new().name("alhena-job".to_owned()).spawn(work) {
            let failure = Failure::new(FailureKind::Crashed, format!("no thread for the job: {error}"));
            spare.done(Attempt::not_begun(&unstarted, failure, Where::Shared));
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
    pub fn done(&self, attempt: Attempt) {
        let _nobody_waits = self.tell.send(Happening::Over(self.number, Box::new(attempt)));
    }
}

/// A finished attempt of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its result, to which the batch adds the number of the attempt and the earlier ones.
    pub result: JobResult,
    /// The kind of place it worked in.
    pub place: Where,
}

impl Attempt {
    /// Returns an attempt of a job that has nothing but its outcome.
    pub fn of(job: &Job, outcome: Arc<Outcome>, place: Where) -> Self {
        Self { result: JobResult::new(job.id.clone(), job.mark.to_string(), outcome), place }
    }

    /// Returns an attempt that never began.
    pub fn not_begun(job: &Job, failure: Failure, place: Where) -> Self {
        Self::of(job, Arc::new(Outcome::not_begun(failure)), place)
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

    /// Sets the current activity, in a few words.
    pub fn does(&self, what: &str) {
        let mut state = self.state.lock();
        if state.doing != what {
            state.doing = what.to_owned();
            let _nobody_listens = self.tell.send(Happening::Does(self.number, what.to_owned()));
        }
    }

    /// Something happened in its run.
    pub fn saw(&self, event: &Event) {
        if let Some(what) = doing_of(event) {
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

/// How many characters say what an agent is doing.
const LONGEST: usize = 100;
/// The argument that says most about a call, the first of these that is there.
const TELLING: &[&str] = &[
    "command",
    "file_path",
    "absolute_path",
    "path",
    "dir_path",
    "pattern",
    "query",
    "prompt",
    "url",
    "name",
];

/// What has been seen of a run so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    doing: String,
    spent: Spent,
}

impl Seen {
    /// Something happened. Whether that changes what the run does or has used.
    pub fn saw(&mut self, event: &Event) -> bool {
        if let EventKind::Usage(call) = &event.kind {
            self.spent.hear(&call.usage);
            return true;
        }
        match doing_of(event) {
            Some(what) if what != self.doing => {
                self.doing = what;
                true
            }
            _ => false,
        }
    }

    /// Returns the current activity, if there is one.
    pub fn doing(&self) -> Option<&str> {
        Some(self.doing.as_str()).filter(|doing| !doing.is_empty())
    }

    /// Tokens, and what they cost where that is known.
    pub fn spent(&self) -> (Option<u64>, Option<f64>) {
        let Spent { tokens, cost_usd, unpriced } = self.spent;
        let used = tokens > 0;
        (used.then_some(tokens), (used && !unpriced).then_some(cost_usd))
    }
}

/// What an event says about that; none if it changes nothing.
fn doing_of(event: &Event) -> Option<String> {
    match &event.kind {
        EventKind::Started { .. } => Some("started".to_owned()),
        EventKind::Prompt { .. } | EventKind::ToolResult { .. } => Some("thinks".to_owned()),
        EventKind::Thinking { subject, .. } if !subject.trim().is_empty() => {
            Some(short(&format!("thinks: {subject}")))
        }
        EventKind::Thinking { .. } => Some("thinks".to_owned()),
        EventKind::Text { .. } => Some("answers".to_owned()),
        EventKind::ToolCall { name, input, .. } => {
            let told = TELLING.iter().find_map(|argument| input.get(argument).and_then(Value::as_str));
            Some(short(&told.map_or_else(|| name.clone(), |told| format!("{name}: {told}"))))
        }
        EventKind::Error { message } => Some(short(message)),
        _ => None,
    }
}

/// The first line of a text, cut.
fn short(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
    }
}
