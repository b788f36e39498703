//! Questions of an agent: asked, answered, withdrawn.

use alhena_agent::{Action, Permission};
use alhena_model::Timestamp;
use serde_json::json;

use super::{ConversationState as State, Decision, Held, PermissionView};
use crate::problem::Problem;
use crate::state::App;

/// The agent asks something.
pub fn asked(app: &App, held: &Held, number: u64, permission: Permission) {
    // Held until it is told: what is withdrawn meanwhile was told before.
    let mut turning = held.turning();
    if turning.is_closing {
        // Dropped, it is rejected.
        return;
    }
    turning.asked += 1;
    let id = turning.asked;
    let view = PermissionView::of(id.to_string(), permission.question());
    turning.waiting.insert(id, permission);
    {
        // Whoever sees the event and asks for the conversation waits here until that says so too.
        let mut told = held.locked();
        held.tell(number, json!({ "type": "permission", "at": view.asked_at, "permission": &view }));
        told.permissions.push(view);
        told.state = State::Waiting;
    }
    app.conversations.news.tell();
}

/// It does not wait for the answer any longer.
pub fn withdrawn(app: &App, held: &Held, number: u64, call_id: &str, reason: &str) {
    let gone: Vec<u64> = {
        let mut turning = held.turning();
        let gone: Vec<u64> =
            turning.waiting.iter().filter(|(_, one)| one.call_id == call_id).map(|(id, _)| *id).collect();
        gone.iter().for_each(|id| drop(turning.waiting.remove(id)));
        gone
    };
    gone.into_iter().for_each(|id| resolved(app, held, number, id, "withdrawn", Some(reason)));
}

/// A question has its answer, or needs none any more.
pub fn resolved(app: &App, held: &Held, turn: u64, id: u64, decision: &str, reason: Option<&str>) {
    let mut event = json!({
        "type": "permission_resolved", "at": Timestamp::now(), "id": id.to_string(), "decision": decision,
    });
    if let (Some(reason), Some(fields)) = (reason, event.as_object_mut()) {
        fields.insert("reason".to_owned(), reason.into());
    }
    {
        // As in `asked`.
        let mut view = held.locked();
        held.tell(turn, event);
        view.permissions.retain(|permission| permission.id != id.to_string());
        if view.permissions.is_empty() && view.state == State::Waiting {
            view.state = State::Working;
        }
    }
    app.conversations.news.tell();
}

/// Answers a question.
pub fn answer(
    app: &App,
    held: &Held,
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
        let mut turning = held.turning();
        if decision == Decision::Always {
            let question = turning.waiting.get(&number).ok_or_else(gone)?.question();
            app.policy.may_allow_always(matches!(question.action, Action::Diff { .. }))?;
        }
        turning.waiting.remove(&number).ok_or_else(gone)?
    };
    let turn = held.locked().turns;
    if let Some(why) = permission.withdrawn() {
        // Nobody else finds it any more to say so.
        resolved(app, held, turn, number, "withdrawn", Some(why));
        return Err(Problem::conflict(format!("the question does not wait any more: {why}")));
    }
    let name = match decision {
        Decision::Allow => "allow",
        Decision::Always => "always",
        Decision::Reject => "reject",
    };
    // Said before it is done, so that what follows from it comes behind it.
    resolved(app, held, turn, number, name, reason.as_deref());
    match decision {
        Decision::Allow => permission.allow_once(),
        Decision::Always => permission.allow_for_conversation(),
        Decision::Reject => permission.reject(reason.unwrap_or_else(|| "It was rejected".to_owned())),
    }
    Ok(())
}
