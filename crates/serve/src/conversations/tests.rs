#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use super::*;
use crate::shelf::{Keeping, Started};

fn conversations(dir: &Path) -> Conversations {
    let keeping = Keeping { most: 10, longest: Duration::from_secs(3600) };
    Conversations::open(dir.join("conversations"), 10, keeping, Arc::default()).unwrap()
}

#[test]
fn a_conversation_that_was_killed_says_so_and_asks_nothing_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let held = {
        let all = conversations(dir.path());
        let begun = all.begin(None, |id| ConversationView::asked(id, &Options::new())).unwrap();
        let Started::New(held) = begun else { panic!("there was none before") };
        for id in ["1", "2"] {
            held.tell(1, json!({ "type": "permission", "permission": { "id": id } }));
        }
        held.tell(1, json!({ "type": "permission_resolved", "id": "1", "decision": "allow" }));
        held
    };
    let again = conversations(dir.path()).get(&held.id).unwrap();
    let view = again.view();
    assert_eq!(view.state, ConversationState::Closed);
    assert_eq!(view.failure.unwrap().kind, FailureKind::Crashed);
    let text = std::fs::read_to_string(again.events()).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().enumerate().all(|(at, event)| event["seq"] == json!(at)));
    let tail: Vec<&str> = events[3..].iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(tail, ["permission_resolved", "closed"]);
    assert_eq!((events[3]["id"].as_str(), events[3]["decision"].as_str()), (Some("2"), Some("withdrawn")));
    assert_eq!(events[4]["failure"]["kind"], "crashed");
    // It stays so, and nothing is added twice.
    let third = conversations(dir.path()).get(&held.id).unwrap();
    assert!(third.view().failure.is_some());
    assert_eq!(std::fs::read_to_string(again.events()).unwrap(), text);
}
