//! What the API knows about the runs that talk to it: who is being answered right now, and how far the answer is.
//!
//! Everything is noted just before it is sent, so a client that has seen something finds it here.

use std::collections::BTreeMap;
use std::time::SystemTime;

/// What the API knows about a scenario.
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
