//! How far each run of a scenario is: which turn comes next, what was asked, what is being sent.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Condvar, Mutex};

use crate::scenario::{After, Scenario};
use crate::{RecordedRequest, Turn, answer};

/// How many requests, and bytes of them, a scenario remembers; the oldest go first.
const MAX_REQUESTS: usize = 10_000;
const MAX_REQUEST_BYTES: usize = 256 * 1024 * 1024;

pub(crate) struct Served {
    pub(crate) name: String,
    pub(crate) scenario: Scenario,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    state: ScenarioState,
    requests: VecDeque<Arc<RecordedRequest>>,
    request_bytes: usize,
    runs: BTreeMap<String, Counters>,
    open_gates: BTreeSet<String>,
}

#[derive(Default)]
struct Counters {
    actions: BTreeMap<String, usize>,
    turns: BTreeMap<usize, u32>,
    generate: BTreeMap<usize, u32>,
}

pub(crate) struct Playing {
    served: Arc<Served>,
    run: String,
    /// Its place in the run's turns; none for a side question.
    index: Option<usize>,
    ended: Cell<bool>,
}

impl Served {
    pub(crate) fn new(name: &str, scenario: Scenario) -> Self {
        Served { name: name.to_owned(), scenario, progress: Mutex::default(), changed: Condvar::new() }
    }

    /// Takes a request in: gives it its number, remembers it, and marks its run as busy.
    pub(crate) fn begin(self: &Arc<Self>, mut request: RecordedRequest) -> (Arc<RecordedRequest>, Playing) {
        let mut progress = self.progress.lock();
        let progress_now = &mut *progress;
        let counters = progress_now.runs.entry(request.run.clone()).or_default();
        let number = counters.actions.entry(request.action.clone()).or_default();
        *number += 1;
        request.number = *number;
        let request = Arc::new(request);

        progress_now.request_bytes += request.raw_body.len();
        progress_now.requests.push_back(Arc::clone(&request));
        while progress_now.requests.len() > MAX_REQUESTS || progress_now.request_bytes > MAX_REQUEST_BYTES {
            let Some(oldest) = progress_now.requests.pop_front() else { break };
            progress_now.request_bytes -= oldest.raw_body.len();
        }

        progress_now.state.requests += 1;
        let run = progress_now.state.runs.entry(request.run.clone()).or_default();
        run.requests += 1;
        run.in_flight += 1;
        let index = (request.action == "streamGenerateContent").then(|| {
            let model = request.model.clone();
            run.turns.push(TurnState { model, started: request.at, steps: Vec::new(), ended: None });
            run.turns.len() - 1
        });
        drop(progress);
        self.changed.notify_all();
        let playing =
            Playing { served: Arc::clone(self), run: request.run.clone(), index, ended: Cell::new(false) };
        (request, playing)
    }

    /// The answer to a `streamGenerateContent`.
    pub(crate) fn turn_for(&self, request: &RecordedRequest) -> Turn {
        if let Some(responder) = &self.scenario.responder {
            return responder.0.respond(request);
        }
        let mut progress = self.progress.lock();
        let counters = progress.runs.entry(request.run.clone()).or_default();
        if let Some(turn) = next(&self.scenario.turns, &mut counters.turns, Some(1), request) {
            return turn.clone();
        }
        match self.scenario.after {
            After::Stop => Turn::say("done."),
            After::Repeat => {
                last(&self.scenario.turns, request).cloned().unwrap_or_else(|| Turn::say("done."))
            }
            After::Error => unexpected(&self.name, request),
        }
    }

    /// The answer to a `generateContent`.
    pub(crate) fn generate_for(&self, request: &RecordedRequest) -> Turn {
        let mut progress = self.progress.lock();
        let counters = progress.runs.entry(request.run.clone()).or_default();
        next(&self.scenario.generate, &mut counters.generate, None, request)
            .cloned()
            .unwrap_or_else(|| answer::utility(request))
    }

    pub(crate) fn requests(&self) -> Vec<Arc<RecordedRequest>> {
        self.progress.lock().requests.iter().cloned().collect()
    }

    pub(crate) fn state(&self) -> ScenarioState {
        self.progress.lock().state.clone()
    }

    pub(crate) fn wait_until(
        &self,
        limit: Duration,
        mut reached: impl FnMut(&ScenarioState) -> bool,
    ) -> bool {
        let deadline = Instant::now().checked_add(limit);
        let mut progress = self.progress.lock();
        loop {
            if reached(&progress.state) {
                return true;
            }
            let left = deadline.map_or(limit, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            self.changed.wait_for(&mut progress, left);
        }
    }

    pub(crate) fn release(&self, label: &str) {
        self.progress.lock().open_gates.insert(label.to_owned());
        self.changed.notify_all();
    }

    pub(crate) fn is_open(&self, label: &str) -> bool {
        self.progress.lock().open_gates.contains(label)
    }
}

impl Playing {
    pub(crate) fn step(&self, kind: &'static str) {
        self.update(|turn, at| turn.steps.push(StepState { kind, at }));
    }

    /// Notes how the answer ended. This comes before the last bytes are sent, so that a client which has seen the end
    /// finds its run idle; when sending them fails, a second note corrects the first.
    pub(crate) fn end(&self, ending: Ending) {
        self.update(|turn, at| turn.ended = Some((at, ending)));
        if !self.ended.replace(true) {
            if let Some(run) = self.served.progress.lock().state.runs.get_mut(&self.run) {
                run.in_flight -= 1;
            }
            self.served.changed.notify_all();
        }
    }

    fn update(&self, change: impl FnOnce(&mut TurnState, SystemTime)) {
        let mut progress = self.served.progress.lock();
        let run = progress.state.runs.get_mut(&self.run);
        if let Some(turn) = run.and_then(|run| run.turns.get_mut(self.index?)) {
            change(turn, SystemTime::now());
        }
        drop(progress);
        self.served.changed.notify_all();
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        // A responder that panicked never got to an end.
        if !self.ended.get() {
            self.end(Ending::Cut);
        }
    }
}

/// The first turn that matches and is not used up; it is counted as used. Without `default_times`, a turn that says
/// nothing about it is never used up.
fn next<'a>(
    turns: &'a [Turn],
    used: &mut BTreeMap<usize, u32>,
    default_times: Option<u32>,
    request: &RecordedRequest,
) -> Option<&'a Turn> {
    turns.iter().enumerate().find_map(|(index, turn)| {
        let times = if turn.always { None } else { turn.times.or(default_times) };
        let count = used.get(&index).copied().unwrap_or(0);
        let left = times.is_none_or(|times| count < times);
        if !left || !matches(turn, request) {
            return None;
        }
        used.insert(index, count.saturating_add(1));
        Some(turn)
    })
}

/// The last turn that matches; one that names its request goes before one that does not.
fn last<'a>(turns: &'a [Turn], request: &RecordedRequest) -> Option<&'a Turn> {
    let fitting = || turns.iter().rev().filter(|turn| matches(turn, request));
    fitting().find(|turn| turn.when.is_some()).or_else(|| fitting().next())
}

fn matches(turn: &Turn, request: &RecordedRequest) -> bool {
    turn.when.as_ref().is_none_or(|when| when.matches(request))
}

fn unexpected(name: &str, request: &RecordedRequest) -> Turn {
    let message = format!("The scenario `{name}` has no turn for request {}.", request.number);
    let body = crate::answer::error(400, &message);
    Turn::error(400, body.get("error").cloned().unwrap_or_default())
}

/// What the API knows about a scenario. Everything is noted just before it is sent, so a client that has seen something finds it here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioState {
    /// The requests of any kind so far.
    pub requests: usize,
    /// Its runs, by name; the run of a base URL without one is `""`.
    pub runs: BTreeMap<String, RunState>,
}

/// What the API knows about one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunState {
    /// The requests of any kind so far.
    pub requests: usize,
    /// The requests of any kind that are being answered.
    pub in_flight: usize,
    /// Every `streamGenerateContent` so far, in order.
    pub turns: Vec<TurnState>,
}

/// One `streamGenerateContent` and how far its answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnState {
    /// The model that was asked for.
    pub model: String,
    /// When the request had been read.
    pub started: SystemTime,
    /// The steps so far; a text in chunks is one step for each chunk.
    pub steps: Vec<StepState>,
    /// When and how it ended; none while it goes on.
    pub ended: Option<(SystemTime, Ending)>,
}

/// A step that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepState {
    /// The kind of step, as in a scenario file: `text`, `call`, `sleep`, `hang` and so on.
    pub kind: &'static str,
    /// Just before it was sent; for a wait, when it began.
    pub at: SystemTime,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was sent.
    Complete,
    /// The scenario cut the connection.
    Cut,
    /// The client went away first.
    ClientGone,
    /// The server was dropped.
    ServerGone,
}

impl ScenarioState {
    /// All runs: how many `streamGenerateContent` requests are being answered.
    pub fn turns_in_flight(&self) -> usize {
        self.runs.values().flat_map(|run| &run.turns).filter(|turn| turn.ended.is_none()).count()
    }

    /// All runs: how many turns were sent completely.
    pub fn turns_served(&self) -> usize {
        self.runs.values().map(RunState::turns_served).sum()
    }
}

impl RunState {
    /// Whether an answer is being sent (or withheld) now.
    pub fn in_turn(&self) -> bool {
        self.turns.iter().any(|turn| turn.ended.is_none())
    }

    /// How many turns were sent completely.
    pub fn turns_served(&self) -> usize {
        self.turns.iter().filter(|turn| matches!(turn.ended, Some((_, Ending::Complete)))).count()
    }
}
