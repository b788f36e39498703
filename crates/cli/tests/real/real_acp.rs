//! Conversations with the real CLI over ACP, against the scripted API.

mod answers;
mod ends;
mod equal;
mod evasions;
mod hooks;
mod inputs;
mod leaks;
mod others;
mod talks;
mod traps;

use std::sync::Arc;

use crate::lab::Lab;
use alhena_agent::{Conversation, Permission, ResolvedRequest, Turn, TurnItem};
use alhena_model::{Event, EventKind, Outcome};
use alhena_scripted::Scenario;

/// The CLI that these tests talk to.
const VERSION: &str = "0.61.0";

fn lab(name: &str, scenario: Scenario) -> Lab {
    Lab::real(name, VERSION, scenario)
}

fn converse(lab: &Lab, request: ResolvedRequest) -> Conversation {
    lab.gemini.start_conversation(request, &lab.env).unwrap()
}

/// All events of a turn and its outcome; each question is given to `answer`.
fn follow(turn: Turn, answer: impl FnMut(Permission)) -> (Vec<Event>, Arc<Outcome>) {
    let (mut turn, mut answer) = (turn, answer);
    let mut events = Vec::new();
    while let Some(item) = turn.next_blocking() {
        match item {
            TurnItem::Event(event) => events.push(event),
            TurnItem::Asked(permission) => answer(permission),
            _ => {}
        }
    }
    (events, turn.outcome_blocking())
}

fn nobody(permission: Permission) {
    panic!("nobody should be asked: {permission:?}");
}

fn kinds(events: &[Event]) -> Vec<&EventKind> {
    events.iter().map(|event| &event.kind).collect()
}
