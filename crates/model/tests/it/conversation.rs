//! One conversation: the stream with the session's facts, and the session alone, say the same of the same things.

use alhena_model::conversation::{Conversation, entry};
use alhena_model::{End, Event, EventKind, Exit, Include, Input, Interpreter, SessionFacts, Witnesses};
use alhena_wire::Raw;
use alhena_wire::session::MessageRecord;
use serde_json::{Value, json};

fn answer(fields: &Value) -> Value {
    let mut record =
        json!({"id": "g", "timestamp": "2026-11-15T20:28:29.224Z", "type": "gemini", "content": ""});
    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    record
}

fn call(id: &str, name: &str, args: &Value, response: &Value) -> Value {
    json!({"id": id, "name": name, "args": args, "status": "success",
           "result": [{"functionResponse": {"id": id, "name": name, "response": response}}]})
}

fn by_session(record: &Value) -> Vec<EventKind> {
    let text = record.to_string();
    let mut conversation = Conversation::new(Include::Said);
    conversation.add(entry(MessageRecord::from_text(&text).unwrap(), Raw::from_text(&text).unwrap()));
    kinds(conversation.events())
}

/// The lines of a stream for the calls of a record, with what the session says of them beside it.
fn by_stream(record: &Value, shown: &[Option<&str>]) -> Vec<EventKind> {
    let mut interpreter = Interpreter::with(Witnesses { session: true, disk: false });
    let (mut facts, mut out) = (Vec::new(), Vec::new());
    SessionFacts::default().line(record.to_string().as_bytes(), &mut facts);
    for fact in facts {
        interpreter.feed(Input::Fact(fact), &mut out);
    }
    let calls = record["toolCalls"].as_array().cloned().unwrap_or_default();
    for (call, shown) in calls.iter().zip(shown) {
        let asked = json!({"type": "tool_use", "tool_name": call["name"], "tool_id": call["id"],
                           "parameters": call["args"]});
        let mut came = json!({"type": "tool_result", "tool_id": call["id"], "status": "success"});
        if let Some(shown) = shown {
            came["output"] = json!(shown);
        }
        interpreter.line(asked.to_string().as_bytes(), &mut out);
        interpreter.line(came.to_string().as_bytes(), &mut out);
    }
    interpreter.conclude(&End { exit: Exit::Code(0), stderr: String::new(), duration_ms: None }, &mut out);
    out.retain(|event| {
        !matches!(
            event.kind,
            EventKind::Finished { .. } | EventKind::Warning { .. } | EventKind::Error { .. }
        )
    });
    kinds(out)
}

fn kinds(events: Vec<Event>) -> Vec<EventKind> {
    events.into_iter().map(|event| event.kind).collect()
}

#[test]
fn a_thoughts_subject_may_hold_a_colon() {
    let record =
        answer(&json!({"thoughts": [{"subject": "Plan: first step", "description": "Look: then act."}]}));
    let thought = EventKind::Thinking { subject: "Plan: first step".into(), text: "Look: then act.".into() };
    assert_eq!(by_session(&record), by_stream(&record, &[]));
    assert_eq!(by_session(&record), [thought]);
}

#[test]
fn a_command_that_a_signal_ended_failed_whichever_way_it_was_learned() {
    let told = "<untrusted_context>\nOutput: begun\nSignal: 9\nProcess Group PGID: 7\n</untrusted_context>";
    let command = json!({"command": "echo begun; kill -9 $$"});
    let record =
        answer(&json!({"toolCalls": [call("c", "run_shell_command", &command, &json!({"output": told}))]}));
    let events = by_session(&record);
    assert_eq!(events, by_stream(&record, &[Some("begun")]));
    let EventKind::ToolResult { ok, exit_code, output, .. } = &events[1] else { panic!("{events:?}") };
    assert_eq!((*ok, *exit_code, output.as_deref()), (false, None, Some("begun")));
}

#[test]
fn a_created_file_is_created_whichever_way_it_was_learned() {
    // The diff of an empty file has nothing that would tell.
    let display = json!({"fileDiff": "Index: e\n", "fileName": "e", "originalContent": "", "newContent": "",
                         "isNewFile": true});
    let mut write =
        call("c", "write_file", &json!({"file_path": "e", "content": ""}), &json!({"output": "ok"}));
    write["resultDisplay"] = display;
    let events = by_session(&answer(&json!({"toolCalls": [write.clone()]})));
    assert_eq!(events, by_stream(&answer(&json!({"toolCalls": [write.clone()]})), &[None]));
    let change = |events: &[EventKind]| match &events[2] {
        EventKind::FileChange(change) => serde_json::to_value(change.change).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(change(&events), "created");
    write["resultDisplay"]["isNewFile"] = json!(false);
    assert_eq!(change(&by_session(&answer(&json!({"toolCalls": [write]})))), "modified");
}

#[test]
fn errors_refusals_and_silence_are_the_same_whichever_way_they_were_learned() {
    let mut missing =
        call("a", "read_file", &json!({"file_path": "m"}), &json!({"error": "File not found: /m"}));
    missing["status"] = json!("error");
    let quiet = "Output: (empty)\nProcess Group PGID: 7";
    let quiet = call("b", "run_shell_command", &json!({"command": "true"}), &json!({"output": quiet}));
    let failed = "Output: (empty)\nExit Code: 3\nProcess Group PGID: 7";
    let failed = call("c", "run_shell_command", &json!({"command": "exit 3"}), &json!({"output": failed}));
    let record = answer(&json!({"toolCalls": [missing, quiet, failed]}));
    let shown = [Some("File not found."), Some(""), Some("Command exited with code: 3")];
    assert_eq!(by_session(&record), by_stream(&record, &shown));
}

// gemini-cli-observed: after a resume the CLI (0.44 to 0.61) gives every call the results of all.
#[test]
fn each_call_of_a_resumed_session_has_its_own_result() {
    let response = |id: &str, text: &str| json!({"functionResponse": {"id": id, "name": "t", "response": {"output": text}}});
    let all = json!([response("a", "first"), response("b", "second")]);
    let call = |id: &str| json!({"id": id, "name": "t", "args": {}, "status": "success", "result": all});
    let record = answer(&json!({"toolCalls": [call("a"), call("b")]})).to_string();
    let message = alhena_model::message::message(
        MessageRecord::from_text(&record).unwrap(),
        Raw::from_text(&record).unwrap(),
    );
    let message = serde_json::to_value(message).unwrap();
    let said = |at: usize| message["content"][at]["content"].clone();
    assert_eq!((said(1), said(3)), (json!("first"), json!("second")));
}
