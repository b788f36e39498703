//! The JSON of tasks, in the API and on disk.

use alhena_model::{Failure, Outcome, PermissionRequest, Status, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Task, TaskKind, TaskState};

/// The state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It is being prepared.
    Queued,
    /// Its agent works.
    Running,
    /// It has ended.
    Finished,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Run))]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: RunState,
    /// Its prompt, or the beginning of it; the event `prompt` has all of it.
    pub prompt: String,
    /// The folder in which it works.
    pub dir: String,
    /// The model that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it may do without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// When it was asked for.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When its agent was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String, format = DateTime))]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// What it does, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// Tokens so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost so far, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String))]
    pub status: Option<Status>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, schema_with = crate::openapi::failure))]
    pub failure: Option<Failure>,
    /// The session that it made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl From<Task> for RunView {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            state: match task.state {
                TaskState::Starting => RunState::Queued,
                TaskState::Idle | TaskState::Working | TaskState::Waiting => RunState::Running,
                TaskState::Over => RunState::Finished,
            },
            prompt: task.title.unwrap_or_default(),
            dir: task.dir,
            model: task.model,
            approval: task.approval,
            created_at: task.created_at,
            started_at: task.started_at,
            finished_at: task.ended_at,
            doing: task.doing,
            tokens: task.tokens,
            cost_usd: task.cost_usd,
            status: task.status,
            failure: task.failure,
            session_id: task.session_id,
        }
    }
}

/// A conversation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Conversation))]
pub struct ConversationView {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: TaskState,
    /// The folder in which it works.
    pub dir: String,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What may be done without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// When it was opened.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it was closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String, format = DateTime))]
    pub closed_at: Option<Timestamp>,
    /// Number of prompts.
    pub turns: u64,
    /// The first prompt, or the beginning of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What its agent does, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// Tokens so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Cost so far, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Why it is closed, unless somebody closed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, schema_with = crate::openapi::failure))]
    pub failure: Option<Failure>,
    /// Questions that wait for an answer.
    #[cfg_attr(feature = "openapi", schema(required = false, schema_with = crate::openapi::permissions))]
    pub permissions: Vec<PermissionRequest>,
}

impl From<Task> for ConversationView {
    fn from(task: Task) -> Self {
        Self {
            id: task.id,
            state: task.state,
            dir: task.dir,
            model: task.model,
            mode: task.approval,
            created_at: task.created_at,
            closed_at: task.ended_at,
            turns: task.turns,
            title: task.title,
            doing: task.doing,
            tokens: task.tokens,
            cost_usd: task.cost_usd,
            session_id: task.session_id,
            failure: task.failure,
            permissions: task.permissions,
        }
    }
}

/// A task as the view of its kind.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum TaskView {
    Run(Box<RunView>),
    Conversation(Box<ConversationView>),
}

impl TaskView {
    pub fn of(kind: TaskKind, task: Task) -> Self {
        match kind {
            TaskKind::Run => Self::Run(Box::new(task.into())),
            TaskKind::Conversation => Self::Conversation(Box::new(task.into())),
        }
    }
}

/// Runs, the newest first.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunList {
    /// The runs.
    pub runs: Vec<RunView>,
}

/// A run, with its outcome once it has ended.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = RunWithOutcome))]
pub struct TaskWithOutcome {
    #[serde(flatten)]
    #[cfg_attr(feature = "openapi", schema(value_type = RunView))]
    pub task: TaskView,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, schema_with = crate::openapi::outcome))]
    pub outcome: Option<Outcome>,
}

/// Conversations, the newest first.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConversationList {
    /// The conversations.
    pub conversations: Vec<ConversationView>,
}

/// Questions that wait for an answer.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PermissionList {
    /// The questions.
    #[cfg_attr(feature = "openapi", schema(schema_with = crate::openapi::permissions))]
    pub permissions: Vec<PermissionRequest>,
}
