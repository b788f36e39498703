//! Runs: started, followed on disk, stopped, and kept until there are too many or they are too old.
//!
//! | File of a run | |
//! |---|---|
//! | `run.json` | what is told of it, with the key by which it was started |
//! | `events.jsonl` | its events |
//! | `outcome.json` | how it ended; there before the last event is |
//! | `recording/` | everything that the CLI wrote |

mod disk;
mod perform;
pub mod routes;

use alhena_agent::Stopper;
use alhena_model::{Failure, Outcome, Status, Timestamp};
use serde::{Deserialize, Serialize};

use crate::shelf::{Kept, Shelf};

pub use self::perform::boxed;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It is being prepared.
    Queued,
    /// Its agent works.
    Running,
    /// It is over.
    Finished,
}

/// A run, as it is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Run))]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub state: RunState,
    /// What it was asked, or the beginning of that; the event `prompt` has all of it.
    pub prompt: String,
    /// Where it works.
    pub dir: String,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it may do without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// When it was asked for.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When its agent was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String, format = DateTime))]
    pub started_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// What it does, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// Tokens so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What it cost so far, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String))]
    pub status: Option<Status>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, schema_with = crate::openapi::failure))]
    pub failure: Option<Failure>,
    /// The session that it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl RunView {
    fn ended(&mut self, outcome: &Outcome) {
        self.state = RunState::Finished;
        self.finished_at = Some(Timestamp::now());
        self.doing = None;
        self.status = Some(outcome.status);
        self.failure.clone_from(&outcome.failure);
        self.session_id = outcome.session_id.clone().or(self.session_id.take());
        self.tokens = Some(outcome.usage.all.total).filter(|tokens| *tokens > 0).or(self.tokens);
        self.cost_usd = outcome.cost_usd.or(self.cost_usd);
    }
}

/// A run that is kept.
pub type Run = Kept<RunView>;

/// All runs.
pub type Runs = Shelf<RunView>;

/// What can stop it.
#[derive(Default)]
pub struct Live {
    stopper: Option<Stopper>,
    /// How often it was asked to stop.
    asked: u32,
}

impl Live {
    fn stop(&self) {
        match (&self.stopper, self.asked) {
            (Some(stopper), 1) => stopper.stop(),
            (Some(stopper), 2..) => stopper.stop_at_once(),
            _ => {}
        }
    }
}

impl Run {
    /// Stops it: gently, and if asked again at once.
    pub fn stop(&self) {
        let mut live = self.live.lock();
        live.asked += 1;
        live.stop();
    }

    fn stops_by(&self, stopper: Stopper) {
        let mut live = self.live.lock();
        live.stopper = Some(stopper);
        live.stop();
    }

    /// Closes the way to stop it, which holds a descriptor: runs are kept long after they end.
    fn release(&self) {
        self.live.lock().stopper = None;
    }

    fn was_asked_to_stop(&self) -> bool {
        self.live.lock().asked > 0
    }

    fn keep(&self) {
        if let Err(error) = self.write(&self.locked()) {
            tracing::error!("the run {} could not be kept: {error}", self.id);
        }
    }
}

impl Runs {
    /// It is over: first on disk, then for whoever asks, so that nobody is told of an end that is not there yet.
    fn finish(&self, run: &Run, outcome: &Outcome) {
        let unkept = |error| tracing::error!("the end of the run {} could not be kept: {error}", run.id);
        disk::write_outcome(run, outcome).unwrap_or_else(unkept);
        {
            // Whoever sees the last event and asks for the run waits here until that says so too.
            let mut view = run.locked();
            run.append(|seq| disk::finished(seq, outcome.clone())).unwrap_or_else(unkept);
            view.ended(outcome);
            run.write(&view).unwrap_or_else(unkept);
        }
        run.end_events();
        run.release();
        self.prune(Timestamp::now());
        self.news.tell();
    }
}

#[cfg(test)]
mod tests;
