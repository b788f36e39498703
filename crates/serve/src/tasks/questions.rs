//! The permissions that an agent asks for: asked, answered, or withdrawn.

use alhena_agent::{Action, Permission, Question};
use alhena_model::{EventKind, PermissionRequest, Resolution, Timestamp};
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use super::{TaskEntry, TaskState};
use crate::policy;
use crate::problem::Problem;
use crate::state::App;

/// An answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may, this once.
    Allow,
    /// It may, and the same again in this conversation.
    Always,
    /// It may not.
    Reject,
}

impl From<Decision> for Resolution {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow,
            Decision::Always => Self::Always,
            Decision::Reject => Self::Reject,
        }
    }
}

/// Returns a question as clients see it.
fn request(id: u64, question: &Question) -> PermissionRequest {
    let mut request = PermissionRequest {
        id: id.to_string(),
        tool: question.tool.clone(),
        title: question.title.clone(),
        command: None,
        background: false,
        elsewhere: question.elsewhere.clone(),
        diff: None,
        path: question.paths.first().map(|path| path.display().to_string()),
        input: Some(question.input.clone()),
        asked_at: Timestamp::now(),
    };
    match &question.action {
        Action::Diff { path, before, after } => {
            let path = path.display().to_string();
            request.diff = Some(unified(&path, before, after));
            request.path = Some(path);
        }
        Action::Command { command, background } => {
            request.command = Some(command.clone());
            request.background = *background;
        }
        _ => {}
    }
    request
}

fn unified(path: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::configure().timeout(std::time::Duration::from_millis(500)).diff_lines(before, after);
    let old = if before.is_empty() { "/dev/null" } else { path };
    diff.unified_diff().context_radius(3).header(old, path).to_string()
}

/// Adds a question of the agent.
pub fn asked(app: &App, entry: &TaskEntry, turn: u64, permission: Permission) {
    // Locked until the event is there: a question is asked before it is withdrawn.
    let mut control = entry.control();
    if control.is_closing {
        // The dropped permission is rejected.
        return;
    }
    control.asked += 1;
    let id = control.asked;
    let request = request(id, permission.question());
    control.waiting.insert(id, permission);
    {
        // A reader of the event that asks for the conversation waits here until the question is in it, too.
        let mut task = entry.locked();
        entry.emit(Some(turn), EventKind::Permission { permission: Box::new(request.clone()) });
        task.permissions.push(request);
        task.state = TaskState::Waiting;
    }
    app.tasks.news.tell();
}

/// Removes the questions about a call for which the agent does not wait any longer.
pub fn withdrawn(app: &App, entry: &TaskEntry, turn: u64, call_id: &str, reason: &str) {
    let gone: Vec<u64> = {
        let mut control = entry.control();
        control.waiting.extract_if(.., |_, one| one.call_id == call_id).map(|(id, _)| id).collect()
    };
    gone.into_iter().for_each(|id| withdraw(app, entry, turn, id, reason));
}

/// Tells that a question needs no answer any more.
pub fn withdraw(app: &App, entry: &TaskEntry, turn: u64, id: u64, reason: &str) {
    resolved(app, entry, turn, id, Resolution::Withdrawn, Some(reason.to_owned()));
}

fn resolved(app: &App, entry: &TaskEntry, turn: u64, id: u64, decision: Resolution, reason: Option<String>) {
    let id = id.to_string();
    {
        // As in `asked`.
        let mut task = entry.locked();
        entry.emit(Some(turn), EventKind::PermissionResolved { id: id.clone(), decision, reason });
        task.permissions.retain(|permission| permission.id != id);
        if task.permissions.is_empty() && task.state == TaskState::Waiting {
            task.state = TaskState::Working;
        }
    }
    app.tasks.news.tell();
}

/// Answers a question.
pub fn answer(
    app: &App,
    entry: &TaskEntry,
    id: &str,
    decision: Decision,
    reason: Option<String>,
) -> Result<(), Problem> {
    let gone = || {
        Problem::not_found(format!("no question {id:?} waits for an answer"))
            .hint("It was answered, or withdrawn because its time or its turn was over.")
    };
    let number: u64 = id.parse().map_err(|_| gone())?;
    let permission = {
        let mut control = entry.control();
        if decision == Decision::Always {
            let question = control.waiting.get(&number).ok_or_else(gone)?.question();
            policy::may_allow_always(&app.policy, matches!(question.action, Action::Diff { .. }))?;
        }
        control.waiting.remove(&number).ok_or_else(gone)?
    };
    let turn = entry.locked().turns;
    if let Some(why) = permission.withdrawn() {
        // Removed from the waiting ones, it is not found by `withdrawn` any more.
        withdraw(app, entry, turn, number, why);
        return Err(Problem::conflict(format!("the question does not wait any more: {why}")));
    }
    // Before the answer is given, so that what follows from it comes behind it.
    resolved(app, entry, turn, number, decision.into(), reason.clone());
    match decision {
        Decision::Allow => permission.allow_once(),
        Decision::Always => permission.allow_for_conversation(),
        Decision::Reject => permission.reject(reason.unwrap_or_else(|| "It was rejected".to_owned())),
    }
    Ok(())
}
