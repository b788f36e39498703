//! What agents say over ACP, and what is nothing of the kind.

use alhena_wire::acp::{AgentMessage, Status, ToolKind, Update};
use alhena_wire::rpc::Message;
use proptest::prelude::*;
use serde_json::{Value, json};

fn said(value: &Value) -> AgentMessage {
    AgentMessage::of(&Message::read(value.to_string().as_bytes()).unwrap())
}

fn update(update: Value) -> Update {
    let params = json!({"sessionId": "s", "update": update});
    match said(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params})) {
        AgentMessage::Update { session, update, .. } if session == "s" => update,
        other => panic!("{other:?}"),
    }
}

#[test]
fn updates_are_known_by_their_kind_and_what_nobody_knows_is_kept_whole() {
    let text = |kind: &str| json!({"sessionUpdate": kind, "content": {"type": "text", "text": "hi"}});
    assert_eq!(update(text("agent_message_chunk")), Update::Text("hi".into()));
    assert_eq!(update(text("agent_thought_chunk")), Update::Thought("hi".into()));
    assert_eq!(update(text("user_message_chunk")), Update::Aside);
    assert_eq!(
        update(json!({"sessionUpdate": "available_commands_update", "availableCommands": []})),
        Update::Aside
    );
    for strange in [json!({"sessionUpdate": "later", "x": [1]}), json!({"x": 1}), json!(7), json!(null)] {
        assert_eq!(update(strange.clone()), Update::Unknown(strange));
    }
}

#[test]
fn a_call_has_its_diff_and_a_question_its_options() {
    let diff = json!({"type": "diff", "path": "/p/n.txt", "oldText": null, "newText": "x\n"});
    let call = json!({"toolCallId": "c", "status": "completed", "title": "Writing", "content": [diff, {"type": "later"}],
        "locations": [{"path": "/p/n.txt"}], "kind": "edit"});
    let mut announced = call.clone();
    announced["sessionUpdate"] = json!("tool_call_update");
    let Update::Call(told) = update(announced) else { panic!() };
    assert_eq!((told.status, told.kind, told.diffs.len()), (Status::Completed, Some(ToolKind::Edit), 1));
    let options = json!([{"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"}]);
    let params = json!({"sessionId": "s", "options": options, "toolCall": call});
    let asked =
        said(&json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": params}));
    let AgentMessage::Asks { options, call, .. } = asked else { panic!("{asked:?}") };
    assert_eq!((options.len(), call.id.as_str(), &*call.diffs[0].after), (1, "c", "x\n"));
    // One that cannot be read is refused like anything else that is not offered.
    let strange =
        said(&json!({"jsonrpc": "2.0", "id": 0, "method": "session/request_permission", "params": {}}));
    assert!(matches!(strange, AgentMessage::Wants { .. }), "{strange:?}");
}

proptest! {
    #[test]
    fn whatever_an_agent_says_is_something(kind in "[a-z_]{0,24}", rest in "\\PC{0,200}", number in any::<i64>()) {
        let strange = [json!(rest), json!(number), json!([rest, number]), json!({"text": rest, "type": kind})];
        for value in strange {
            let told = json!({"sessionUpdate": kind, "content": value, "toolCallId": value, "status": value});
            for method in ["session/update", "session/request_permission", kind.as_str()] {
                let params = json!({"sessionId": value, "update": told, "toolCall": told, "options": value});
                let _read = said(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
                let _read = said(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
            }
            let _read = said(&json!({"jsonrpc": "2.0", "id": 1, "error": value}));
            let _read = said(&json!({"jsonrpc": "2.0", "id": 1, "result": value}));
        }
    }
}
