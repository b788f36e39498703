use agent_client_protocol_schema::v1::{
    ContentBlock, InitializeResponse, ListSessionsResponse, LoadSessionResponse, NewSessionResponse,
    PromptResponse, RequestPermissionRequest, SessionNotification, SessionUpdate, StopReason,
    ToolCallContent, ToolCallStatus,
};
use alhena_model::{Change, EventKind, FileChange, Outcome, Status, Tokens, Usage};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::ask::{Ask, Client};
use super::permission::{self, Verdict};
use super::say::{self, Choices, Listed};
use super::updates::{Updates, When, notification};
use crate::samples::{call, event, result};

/// As the protocol's own types read it.
fn read<T: DeserializeOwned>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_else(|error| panic!("{error}: {value}"))
}

fn updates(of: &mut Updates, kind: EventKind, when: When) -> Vec<SessionUpdate> {
    let told = of.event(&event(kind), when);
    told.iter().map(|update| read::<SessionNotification>(&notification("s", update)).update).collect()
}

#[test]
fn a_request_is_read_and_what_is_wrong_with_it_is_said() {
    let servers = json!([
        {"name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "N", "value": "v"}]},
        {"type": "http", "name": "b", "url": "http://b", "headers": [{"name": "H", "value": "v"}]},
        {"type": "sse", "name": "c", "url": "http://c", "headers": []},
    ]);
    let asked = Ask::read("session/new", json!({"cwd": "/p", "mcpServers": servers})).unwrap();
    let Ask::New(place) = asked else { panic!("{asked:?}") };
    assert_eq!(
        Value::Object(place.servers),
        json!({
            "a": {"command": "/bin/a", "args": ["-x"], "env": {"N": "v"}},
            "b": {"url": "http://b", "type": "http", "headers": {"H": "v"}},
            "c": {"url": "http://c", "type": "sse", "headers": {}},
        })
    );
    let twice = json!([{"name": "a", "command": "x", "args": [], "env": []}, {"name": "a", "command": "y", "args": [], "env": []}]);
    for (method, params, code) in [
        ("session/new", json!({"cwd": "p", "mcpServers": []}), -32602),
        ("session/new", json!({"mcpServers": []}), -32602),
        ("session/new", json!({"cwd": "/p", "mcpServers": [{"name": "a"}]}), -32602),
        ("session/new", json!({"cwd": "/p", "mcpServers": twice}), -32602),
        ("session/new", json!([]), -32602),
        ("session/prompt", json!({"sessionId": "s", "prompt": []}), -32602),
        (
            "session/prompt",
            json!({"sessionId": "s", "prompt": [{"type": "image", "data": "", "mimeType": "image/png"}]}),
            -32602,
        ),
        ("session/list", json!({"cwd": "p"}), -32602),
        ("session/set_mode", Value::Null, -32602),
        ("initialize", json!({"protocolVersion": "1"}), -32602),
        ("fs/read_text_file", json!({}), -32601),
        ("", Value::Null, -32601),
    ] {
        let refused = Ask::read(method, params.clone()).expect_err(method);
        assert_eq!(refused.code, code, "{method} {params}: {refused:?}");
    }
    assert_eq!(Ask::cancelled("session/cancel", json!({"sessionId": "s"})), Some("s".to_owned()));
    assert_eq!(Ask::cancelled("session/cancel", json!([])), None);
}

#[test]
fn a_prompt_is_one_text_with_its_context_behind_it() {
    let prompt = json!([
        {"type": "text", "text": "Look at "},
        {"type": "resource_link", "name": "a.rs", "uri": "file:///p/a.rs"},
        {"type": "text", "text": " and"},
        {"type": "text", "text": "at"},
        {"type": "resource", "resource": {"uri": "file:///p/b.rs", "text": "fn b() {}"}},
    ]);
    let asked = Ask::read("session/prompt", json!({"sessionId": "s", "prompt": prompt})).unwrap();
    let text = "Look at [@a.rs](file:///p/a.rs) and\nat[@b.rs](file:///p/b.rs)\n<context uri=\"file:///p/b.rs\">\nfn b() {}\n</context>";
    assert_eq!(asked, Ask::Prompt { session: "s".into(), text: text.into() });
}

#[test]
fn answers_are_what_the_protocol_says() {
    let first: InitializeResponse = read(&say::initialized("1"));
    let can = first.agent_capabilities;
    assert!(can.load_session && can.session_capabilities.list.is_some() && !can.prompt_capabilities.image);
    let models = vec![("m".to_owned(), "M".to_owned(), Some("about".to_owned()))];
    let choices = Choices { mode: "autoEdit", model: "other".into(), models };
    let new: NewSessionResponse = read(&choices.opened(Some("s")));
    assert_eq!(new.modes.unwrap().current_mode_id.to_string(), "autoEdit");
    assert_eq!(new.config_options.unwrap().len(), 2);
    assert!(choices.has_model("m") && choices.has_model("other") && !choices.has_model("x"));
    assert_eq!(read::<LoadSessionResponse>(&choices.opened(None)).config_options.unwrap().len(), 2);
    let sessions: Vec<Listed> =
        (0..150).map(|n| Listed { id: n.to_string(), dir: "/p".into(), ..Listed::default() }).collect();
    let page: ListSessionsResponse = read(&say::listed(&sessions, None).unwrap());
    assert_eq!((page.sessions.len(), page.next_cursor.as_deref()), (100, Some("100")));
    let page: ListSessionsResponse = read(&say::listed(&sessions, Some("100")).unwrap());
    assert_eq!((page.sessions.len(), page.next_cursor), (50, None));
    assert_eq!(say::listed(&sessions, Some("x")), None);
}

#[test]
fn what_is_said_and_thought_comes_in_chunks_and_a_prompt_only_afterwards() {
    let mut of = Updates::new(Client::default(), "/p");
    let prompt = || EventKind::Prompt { text: "hi".into() };
    assert_eq!(updates(&mut of, prompt(), When::Now), []);
    assert!(matches!(&updates(&mut of, prompt(), When::Before)[..], [SessionUpdate::UserMessageChunk(_)]));
    let thought = EventKind::Thinking { subject: "Plan".into(), text: "do it".into() };
    let [SessionUpdate::AgentThoughtChunk(chunk)] = &updates(&mut of, thought, When::Now)[..] else {
        panic!()
    };
    assert!(matches!(&chunk.content, ContentBlock::Text(text) if text.text == "**Plan**\ndo it"));
    let warning = || EventKind::Warning { message: "careful".into() };
    assert_eq!(updates(&mut of, warning(), When::Now), []);
    let mut of = Updates::new(Client { notices: true }, "/p");
    assert!(matches!(&updates(&mut of, warning(), When::Now)[..], [SessionUpdate::Notice(_)]));
}

#[test]
fn a_call_is_announced_once_and_its_end_has_what_came_of_it() {
    let mut of = Updates::new(Client::default(), "/p");
    let command = call("c", "run_shell_command", json!({"command": "make"}));
    let [SessionUpdate::ToolCall(told)] = &updates(&mut of, command, When::Now)[..] else { panic!() };
    assert_eq!((told.title.as_str(), told.status), ("make", ToolCallStatus::InProgress));
    let mut ended = result("c", "run_shell_command", false, Some("a ``` b\n"), None);
    if let EventKind::ToolResult { exit_code, .. } = &mut ended {
        *exit_code = Some(3);
    }
    let [SessionUpdate::ToolCallUpdate(told)] = &updates(&mut of, ended, When::Now)[..] else { panic!() };
    assert_eq!(told.fields.status, Some(ToolCallStatus::Failed));
    let [ToolCallContent::Content(content)] = &told.fields.content.as_ref().unwrap()[..] else { panic!() };
    assert!(matches!(&content.content, ContentBlock::Text(text) if text.text == "````\na ``` b\n````"));
    assert_eq!(told.fields.raw_output, Some(json!({"exitCode": 3})));
    // One that nobody announced.
    let ended = updates(&mut of, result("d", "read_file", true, Some("text"), None), When::Now);
    assert!(matches!(&ended[..], [SessionUpdate::ToolCall(_), SessionUpdate::ToolCallUpdate(_)]));
}

#[test]
fn an_edit_shows_what_the_agent_showed_of_it_or_what_the_session_file_has() {
    let mut of = Updates::new(Client::default(), "/p");
    let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
        "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Writing to a", "kind": "edit",
        "content": [{"type": "diff", "path": "/p/a", "oldText": "1\n", "newText": "2\n"}], "locations": [{"path": "/p/a"}],
    }}});
    of.line(line.to_string().as_bytes());
    of.line(b"garbage");
    updates(&mut of, call("c", "write_file", json!({"file_path": "a"})), When::Now);
    let asked: RequestPermissionRequest =
        read(&permission::request("s", &of.question("c", "", &json!({}), None)));
    assert_eq!(asked.tool_call.fields.title.as_deref(), Some("Writing to a"));
    let there = of.question("c", "", &json!({}), Some("[in sub]"));
    assert_eq!(there.pointer("/title"), Some(&json!("Writing to a [in sub]")));
    let [ToolCallContent::Diff(diff)] = &asked.tool_call.fields.content.unwrap()[..] else { panic!() };
    assert_eq!((diff.old_text.as_deref(), diff.new_text.as_str()), (Some("1\n"), "2\n"));
    let ended = updates(&mut of, result("c", "write_file", true, Some("done"), None), When::Now);
    let [SessionUpdate::ToolCallUpdate(told)] = &ended[..] else { panic!("{ended:?}") };
    assert!(matches!(told.fields.content.as_deref(), Some([ToolCallContent::Diff(_)])));
    let changed = |id: &str| {
        let diff = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n\\ No newline at end of file\n";
        EventKind::FileChange(FileChange {
            path: "a".into(),
            change: Change::Modified,
            tool: None,
            call_id: Some(id.into()),
            diff: Some(diff.into()),
            verified: true,
        })
    };
    assert_eq!(updates(&mut of, changed("c"), When::Now), []);
    updates(&mut of, call("d", "replace", json!({"file_path": "a"})), When::Before);
    let [SessionUpdate::ToolCallUpdate(told)] = &updates(&mut of, changed("d"), When::Before)[..] else {
        panic!()
    };
    let [ToolCallContent::Diff(diff)] = &told.fields.content.as_ref().unwrap()[..] else { panic!() };
    assert_eq!(diff.path.to_str(), Some("/p/a"));
    assert_eq!((diff.old_text.as_deref(), diff.new_text.as_str()), (Some("same\nold\n"), "same\nnew\n"));
}

#[test]
fn todos_are_a_plan_and_tokens_are_usage_with_their_cost() {
    let mut of = Updates::new(Client::default(), "/p");
    let todos = json!({"todos": [
        {"description": "one", "status": "completed"}, {"description": "two", "status": "cancelled"},
        {"description": "three", "status": "in_progress"}, {"status": 1}, null,
    ]});
    updates(&mut of, call("t", "write_todos", todos), When::Before);
    let said =
        "The current list is now:\n1. [completed] one\n2. [cancelled] two\n3. [in_progress] thr. [ee] x";
    let plan = |of: &mut Updates, id: &str| {
        let told = updates(of, result(id, "write_todos", true, Some(said), None), When::Now);
        let Some(SessionUpdate::Plan(plan)) = told.last().cloned() else { panic!("{told:?}") };
        plan.entries.into_iter().map(|entry| entry.content).collect::<Vec<_>>()
    };
    assert_eq!(plan(&mut of, "t"), ["one", "three"]);
    assert_eq!(plan(&mut of, "u"), ["one", "thr. [ee] x"]);
    let refused = updates(&mut of, result("v", "write_todos", false, Some(said), None), When::Now);
    assert!(!refused.iter().any(|update| matches!(update, SessionUpdate::Plan(_))));
    let tokens = Tokens { prompt: 1000, output: 100, total: 1100, ..Tokens::default() };
    let usage = Usage::of_models([("gemini-2.5-flash", tokens)]);
    let kind = EventKind::Usage(alhena_model::CallUsage { call: Some(1), usage });
    let [SessionUpdate::UsageUpdate(told)] = &updates(&mut of, kind, When::Now)[..] else { panic!() };
    assert_eq!((told.used, told.size), (1100, 1 << 20));
    assert!(told.cost.as_ref().unwrap().amount > 0.0);
}

#[test]
fn only_a_success_is_the_end_of_a_turn() {
    let mut of = Updates::new(Client::default(), "/p");
    let mut reason = |outcome: &Outcome| {
        of.end(outcome)
            .map(|answer| read::<PromptResponse>(&answer).stop_reason)
            .map_err(|refused| refused.data)
    };
    let mut outcome = Outcome::default();
    assert!(reason(&outcome).is_err());
    outcome.status = Status::Success;
    assert_eq!(reason(&outcome), Ok(StopReason::EndTurn));
    outcome.status = Status::Cancelled;
    assert_eq!(reason(&outcome), Ok(StopReason::Cancelled));
    for (kind, expected) in [
        (alhena_model::FailureKind::TurnLimit, Ok(StopReason::MaxTurnRequests)),
        (alhena_model::FailureKind::RateLimited, Err(json!("rate_limited"))),
        (alhena_model::FailureKind::InvalidResponse, Err(json!("invalid_response"))),
    ] {
        outcome.status = Status::Failed;
        outcome.failure = Some(alhena_model::Failure::new(kind, "no"));
        assert_eq!(reason(&outcome).map_err(|data| data["kind"].clone()), expected);
    }
    outcome.finish_reason = Some("SAFETY".to_owned());
    assert!(reason(&outcome).is_err());
    outcome.finish_reason = Some("MAX_TOKENS".to_owned());
    assert_eq!(reason(&outcome), Ok(StopReason::MaxTokens));
}

#[test]
fn what_is_not_a_clear_yes_is_a_no() {
    let chose = |option: &str| Ok(json!({"outcome": {"outcome": "selected", "optionId": option}}));
    assert_eq!(Verdict::read(&chose("allow_once")), Verdict::AllowOnce);
    assert_eq!(Verdict::read(&chose("allow_for_session")), Verdict::AllowForSession);
    for answer in [
        chose("reject"),
        chose("proceed_always"),
        chose(""),
        Ok(json!({"outcome": {"outcome": "cancelled"}})),
        Ok(json!({"outcome": "allow_once"})),
        Ok(Value::Null),
        Err(json!({"code": -32603, "message": "no"})),
    ] {
        assert!(matches!(Verdict::read(&answer), Verdict::Reject(_)), "{answer:?}");
    }
}
