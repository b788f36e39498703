//! Tasks: runs and conversations, which are started over HTTP and kept until there are too many or they are too old.
//!
//! A run has one prompt; a conversation has turns and asks for permissions. Both have a directory:
//!
//! | File | |
//! |---|---|
//! | `run.json`, `conversation.json` | the task, with the key of the request that started it |
//! | `events.jsonl` | its events |
//! | `outcome.json` | how a run ended; written before the last event |
//! | `recording/` | everything that the CLI of a run wrote |

mod conversation;
mod entry;
mod questions;
pub mod routes;
mod run;
mod store;
mod view;

use std::collections::BTreeMap;
use std::path::Path;

use alhena_agent::{Canceller, Permission, RunError, Stopper};
use alhena_batch::launcher::{After, Launch};
use alhena_model::{Failure, Outcome, PermissionRequest, Prompt, RunOptions, Status, Timestamp};
use serde::{Deserialize, Serialize};

pub use self::conversation::close;
pub use self::entry::TaskEntry;
pub use self::store::{Keeping, TaskStore};
#[cfg(feature = "openapi")]
pub use self::view::ConversationView;
pub use self::view::{
    ConversationList, PermissionList, RunList, RunState, RunView, TaskView, TaskWithOutcome,
};
use crate::policy;
use crate::state::App;

const OUTCOME: &str = "outcome.json";
const RECORDING: &str = "recording";
/// Longest prompt of a run that is kept as its title, in characters.
const LONGEST_PROMPT: usize = 4000;
/// Longest prompt of a conversation that is kept as its title, in characters.
const LONGEST_TITLE: usize = 200;

/// A kind of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskKind {
    Run,
    Conversation,
}

impl TaskKind {
    pub const ALL: [Self; 2] = [Self::Run, Self::Conversation];

    /// Returns the name of the kind: of its file, and with an s of its directory and its routes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Conversation => "conversation",
        }
    }
}

/// The state of a conversation, and of a run, which is never idle or waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ConversationState))]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Its agent is being started.
    #[serde(alias = "queued")]
    Starting,
    /// It waits for a prompt.
    Idle,
    /// Its agent works.
    #[serde(alias = "running")]
    Working,
    /// It waits for a permission.
    Waiting,
    /// It has ended.
    #[serde(rename = "closed", alias = "finished")]
    Over,
}

impl TaskState {
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Waiting => "waiting",
            Self::Over => "closed",
        }
    }
}

/// A run or a conversation. It is read from the JSON of both views, and written as the view of its kind.
#[derive(Clone, Debug, Deserialize)]
pub struct Task {
    pub id: String,
    pub state: TaskState,
    /// The prompt of a run, or the first one of a conversation.
    #[serde(alias = "prompt")]
    pub title: Option<String>,
    pub dir: String,
    pub model: Option<String>,
    #[serde(alias = "mode")]
    pub approval: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    #[serde(alias = "finished_at", alias = "closed_at")]
    pub ended_at: Option<Timestamp>,
    /// Number of prompts of a conversation.
    #[serde(default)]
    pub turns: u64,
    pub doing: Option<String>,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
    pub status: Option<Status>,
    pub failure: Option<Failure>,
    pub session_id: Option<String>,
    #[serde(default)]
    pub permissions: Vec<PermissionRequest>,
}

impl Task {
    /// Returns the task that a request with this prompt and these options starts.
    pub fn new(id: &str, prompt: Option<&Prompt>, options: &RunOptions) -> Self {
        let title = prompt.map(|prompt| match prompt {
            Prompt::Text(text) => beginning(text, LONGEST_PROMPT),
            Prompt::File(file) => beginning(&file.to_string_lossy(), LONGEST_PROMPT),
        });
        Self {
            id: id.to_owned(),
            state: TaskState::Starting,
            title,
            dir: options.dir.as_deref().unwrap_or(Path::new("")).display().to_string(),
            model: options.model.clone(),
            approval: options.approval.map(|approval| approval.to_string()),
            created_at: Timestamp::now(),
            started_at: None,
            ended_at: None,
            turns: 0,
            doing: None,
            tokens: None,
            cost_usd: None,
            status: None,
            failure: None,
            session_id: None,
            permissions: Vec::new(),
        }
    }

    /// Returns when the task ended, if it has.
    pub fn over_at(&self) -> Option<Timestamp> {
        (self.state == TaskState::Over).then(|| self.ended_at.unwrap_or(self.created_at))
    }

    /// Sets the state between two turns.
    fn settle(&mut self) {
        if self.state != TaskState::Over {
            self.state = TaskState::Idle;
            self.doing = None;
        }
    }

    fn end(&mut self, failure: Option<Failure>) {
        self.state = TaskState::Over;
        self.ended_at = Some(Timestamp::now());
        self.doing = None;
        self.failure = failure;
        self.permissions.clear();
    }

    fn end_run(&mut self, outcome: &Outcome) {
        self.end(outcome.failure.clone());
        self.status = Some(outcome.status);
        self.session_id = outcome.session_id.clone().or(self.session_id.take());
        self.tokens = Some(outcome.usage.all.total).filter(|tokens| *tokens > 0).or(self.tokens);
        self.cost_usd = outcome.cost_usd.or(self.cost_usd);
    }
}

/// Where a task that has not ended is, and how to stop it.
#[derive(Default)]
struct Control {
    /// Stops a run.
    stopper: Option<Stopper>,
    /// How often a run was asked to stop.
    stops: u32,
    /// A thread follows a turn.
    in_turn: bool,
    /// The turn was cancelled, perhaps before its agent had it.
    is_cancelled: bool,
    /// The agent has started, or will not any more.
    is_open: bool,
    is_closing: bool,
    /// Cancels the turn.
    canceller: Option<Canceller>,
    /// Number of questions so far.
    asked: u64,
    waiting: BTreeMap<u64, Permission>,
    after: Option<After>,
}

impl Control {
    fn stop(&self) {
        match (&self.stopper, self.stops) {
            (Some(stopper), 1) => stopper.stop(),
            (Some(stopper), 2..) => stopper.stop_at_once(),
            _ => {}
        }
    }
}

/// Prepares what the options ask for, within the policy.
fn launch(app: &App, prompt: Option<&Prompt>, options: &RunOptions) -> Result<Launch, Box<Failure>> {
    let mut launch = app.launcher.launch(prompt, options, None).map_err(boxed)?;
    policy::limit(&app.policy, options, &mut launch.request)?;
    Ok(launch)
}

fn boxed(error: RunError) -> Box<Failure> {
    Box::new(error.into_failure())
}

/// Returns the beginning of a text.
fn beginning(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
