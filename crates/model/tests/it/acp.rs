//! A turn over ACP: tool calls with their complete arguments, and sessions as the CLI records them.

use alhena_model::message::{Include, in_claude_order};
use alhena_model::{
    Called, Conversation, Decided, End, Event, EventKind, Exit, Fact, Input, Interpreter, Prompted, ToolFact,
    Witnesses,
};
use alhena_wire::frame::Frame;
use alhena_wire::session::Session;
use serde_json::{Value, json};

const EDIT: &str = "replace__1";

fn edit() -> Value {
    json!({"file_path": "a.txt", "old_string": "one", "new_string": "two", "instruction": "i"})
}

fn called(input: Option<Value>) -> Box<Called> {
    Box::new(Called { name: "replace".to_owned(), input })
}

fn prompted() -> Input<'static> {
    Input::Prompted(Box::new(Prompted {
        request: 1,
        session: "s".to_owned(),
        model: "m".to_owned(),
        dir: "/p".to_owned(),
        text: "go".to_owned(),
        is_gemini: true,
        max_turns: None,
    }))
}

fn said(message: &Value) -> Input<'static> {
    Input::acp(Frame::Line(message.to_string().as_bytes()))
}

/// An update of the edit, as Gemini CLI 0.61.0 sends it: without arguments.
fn update(kind: &str, status: &str) -> Value {
    let call = json!({"sessionUpdate": kind, "toolCallId": EDIT, "status": status, "title": "a.txt: one => two",
        "kind": "edit", "content": [], "locations": []});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": call}})
}

/// The question whether the edit may be done.
fn question() -> Value {
    let diff = json!({"type": "diff", "path": "/p/a.txt", "oldText": "one\n", "newText": "two\n"});
    let call =
        json!({"toolCallId": EDIT, "status": "pending", "title": "a.txt", "kind": "edit", "content": [diff]});
    let params = json!({"sessionId": "s", "toolCall": call, "options": []});
    json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params})
}

fn interpreter(session: bool) -> Interpreter {
    Interpreter::with(Witnesses { session, disk: false })
}

/// The events of these inputs.
fn events(interpreter: &mut Interpreter, inputs: Vec<Input<'static>>) -> Vec<Event> {
    let mut out = Vec::new();
    inputs.into_iter().for_each(|input| interpreter.feed(input, &mut out));
    out
}

/// What was told of calls: their arguments and results, in order.
fn calls(events: &[Event]) -> Vec<Value> {
    let told = events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolCall { input, .. } => Some((**input).clone()),
        EventKind::ToolResult { ok, .. } => Some(json!(ok)),
        _ => None,
    });
    told.collect()
}

#[test]
fn a_recorded_answer_gives_a_call_its_arguments_before_it_begins() {
    let recorded = Input::Fact(Fact::Call { id: EDIT.to_owned(), call: called(Some(edit())) });
    let begins = said(&update("tool_call", "in_progress"));
    let told = events(&mut interpreter(true), vec![prompted(), recorded.clone(), begins]);
    assert_eq!(calls(&told), [edit()]);
    let told = events(&mut interpreter(true), vec![prompted(), recorded, said(&question())]);
    assert_eq!(calls(&told), [edit()]);
}

#[test]
fn a_call_without_recorded_arguments_is_told_with_those_of_the_session_when_it_has_ended() {
    let mut interpreter = interpreter(true);
    let begins = said(&update("tool_call", "in_progress"));
    assert_eq!(calls(&events(&mut interpreter, vec![prompted(), begins])), [] as [Value; 0]);
    assert!(interpreter.tool_open());
    let fact = Box::new(ToolFact { output: Some("done".into()), ..ToolFact::default() });
    let fact = Fact::Tool { message: "r".into(), id: EDIT.into(), fact, call: Some(called(Some(edit()))) };
    let ends = vec![said(&update("tool_call_update", "completed")), Input::Fact(fact)];
    assert_eq!(calls(&events(&mut interpreter, ends)), [edit(), json!(true)]);
}

#[test]
fn a_call_that_is_rejected_without_recorded_arguments_is_told_with_the_change_that_was_asked_about() {
    let rejected = Decided { call: EDIT.to_owned(), rejected: Some("no".to_owned()) };
    let inputs = vec![prompted(), said(&question()), Input::Decided(Box::new(rejected))];
    let shown = json!({"file_path": "a.txt", "old_string": "one\n", "new_string": "two\n"});
    assert_eq!(calls(&events(&mut interpreter(true), inputs)), [shown, json!(false)]);
}

/// Gemini CLI shows the arguments of an MCP tool as JSON in a text, in which half a character is an escape (0.61.0).
#[test]
fn half_a_character_in_the_arguments_of_an_mcp_tool_does_not_hide_the_others() {
    let id = "mcp_srv_do_it__1";
    let text =
        json!({"type": "content", "content": {"type": "text", "text": r#"{"word":"half \ud83d","n":1}"#}});
    let call = json!({"toolCallId": id, "status": "pending", "title": "do_it (srv MCP Server)", "kind": "other",
        "content": [text]});
    let params = json!({"sessionId": "s", "toolCall": call, "options": []});
    let question =
        json!({"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params});
    let rejected = Decided { call: id.to_owned(), rejected: Some("no".to_owned()) };
    let inputs = vec![prompted(), said(&question), Input::Decided(Box::new(rejected))];
    let shown = json!({"word": "half \u{fffd}", "n": 1});
    assert_eq!(calls(&events(&mut interpreter(true), inputs)), [shown, json!(false)]);
}

#[test]
fn a_call_that_never_ends_is_told_at_the_end_of_the_run() {
    let mut interpreter = interpreter(true);
    let mut told = events(&mut interpreter, vec![prompted(), said(&question())]);
    assert_eq!(calls(&told), [] as [Value; 0]);
    let end = End { exit: Exit::Signal(9), stderr: String::new(), duration_ms: None };
    interpreter.conclude(&end, &mut told);
    let shown = json!({"file_path": "a.txt", "old_string": "one\n", "new_string": "two\n"});
    assert_eq!(calls(&told), [shown]);
    assert!(matches!(told.last().unwrap().kind, EventKind::Finished { .. }));
}

#[test]
fn an_agent_without_a_session_file_is_told_at_once_with_all_that_it_shows() {
    let told = events(&mut interpreter(false), vec![prompted(), said(&question())]);
    let shown = json!({"file_path": "a.txt", "old_string": "one\n", "new_string": "two\n"});
    assert_eq!(calls(&told), [shown]);
}

fn response(id: &str, name: &str, output: &str) -> Value {
    json!({"functionResponse": {"id": id, "name": name, "response": {"output": output}}})
}

fn call(id: &str, name: &str) -> Value {
    json!({"id": id, "name": name, "args": {"file_path": id}, "status": "success",
        "result": [response(id, name, &format!("result of {id}"))]})
}

fn answer(id: &str, text: &str, calls: &[Value]) -> Value {
    json!({"id": id, "timestamp": "2026-11-18T04:19:48.000Z", "type": "gemini", "content": text, "model": "m",
        "thoughts": [], "tokens": {"input": 1, "output": 1, "total": 2}, "toolCalls": calls})
}

fn user(id: &str, content: Value) -> Value {
    json!({"id": id, "timestamp": "2026-11-18T04:19:47.000Z", "type": "user", "content": content})
}

/// Role and blocks of each message in Claude's order.
fn messages(records: &[Value]) -> Vec<(Value, Vec<String>)> {
    let mut text = json!({"sessionId": "s", "projectHash": "h"}).to_string();
    records.iter().for_each(|record| text.push_str(&format!("\n{record}")));
    let session = Session::read(text.as_bytes());
    let messages = in_claude_order(Conversation::of_log(&session.log, Include::Said).into_messages());
    let block = |block: &Value| {
        let of = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str().unwrap() {
            "tool_use" => format!("call {}", of("id")),
            "tool_result" => of("content"),
            kind => of(kind),
        }
    };
    let plain = |message| {
        let message = serde_json::to_value(message).unwrap();
        (message["role"].clone(), message["content"].as_array().unwrap().iter().map(block).collect())
    };
    messages.into_iter().map(plain).collect()
}

fn of(role: &str, blocks: &[&str]) -> (Value, Vec<String>) {
    (json!(role), blocks.iter().map(|block| (*block).to_owned()).collect())
}

#[test]
fn messages_of_a_session_over_acp_are_those_of_a_headless_one() {
    let [a, b, c] = [call("a", "read_file"), call("b", "glob"), call("c", "replace")];
    let headless = [
        user("u", json!("go")),
        answer("1", "I look.", &[a.clone(), b.clone()]),
        answer("2", "", std::slice::from_ref(&c)),
        answer("3", "Done.", &[]),
    ];
    // As 0.61.0 writes it: all calls in one record, and what the model was told.
    let mut bunch = answer("x", "", &[a, b, c]);
    bunch.as_object_mut().unwrap().remove("tokens");
    let acp = [
        user("u", json!("go")),
        answer("1", "I look.", &[]),
        bunch,
        user("r1", json!([response("a", "read_file", "result of a"), response("b", "glob", "result of b")])),
        answer("2", "", &[]),
        user("r2", json!([response("c", "replace", "result of c")])),
        answer("3", "Done.", &[]),
    ];
    let expected = [
        of("user", &["go"]),
        of("assistant", &["I look.", "call a", "call b"]),
        of("user", &["result of a", "result of b"]),
        of("assistant", &["call c"]),
        of("user", &["result of c"]),
        of("assistant", &["Done."]),
    ];
    assert_eq!(messages(&headless), expected);
    assert_eq!(messages(&acp), expected);
    // Killed before the model was told of the last call.
    assert_eq!(messages(&acp[..5]), expected[..5]);
}

#[test]
fn a_call_without_a_record_is_known_by_what_the_model_was_told() {
    let records = [
        user("u", json!("go")),
        answer("1", "I try.", &[]),
        user("r", json!([response("a", "run_shell_command", "rejected")])),
        answer("2", "", &[]),
    ];
    let expected = [of("user", &["go"]), of("assistant", &["I try.", "call a"]), of("user", &["rejected"])];
    assert_eq!(messages(&records), expected);
}
