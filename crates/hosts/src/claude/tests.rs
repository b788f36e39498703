//! Against recordings of the unmodified SDKs, and against lines that no SDK writes.

use std::collections::BTreeSet;
use std::sync::Arc;

use alhena_model::Prices;
use alhena_model::outcome::Text;
use alhena_model::tool::Class;
use alhena_model::{EventKind, Failure, FailureKind, Outcome, Status, Tokens, Usage};
use serde_json::{Value, json};

use super::control::{Ask, Incoming};
use super::hooks::{Decision, HookAnswer, HookEvent, Hooks};
use super::lines::{Head, Interruption, Lines};
use super::options::{Fate, Invocation, Options, TABLE};
use super::permission::{Question, Update, Verdict};
use super::*;
use crate::samples::{call, event, result};

/// What went over the wire between an SDK and an executable.
struct Recording {
    arguments: Vec<String>,
    lines: Vec<(String, Value)>,
}

impl Recording {
    fn read(text: &str) -> Self {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut lines: Vec<(String, Value)> =
            lines.map(|line| (line["dir"].as_str().unwrap().to_owned(), line["msg"].clone())).collect();
        let arguments = serde_json::from_value(lines.remove(0).1).unwrap();
        Self { arguments, lines }
    }

    fn said(&self) -> impl Iterator<Item = Incoming> {
        let said = self.lines.iter().filter(|(from, _)| from == "stdin");
        said.map(|(_, message)| Incoming::read(message.to_string().as_bytes()).unwrap())
    }

    fn heard(&self, kind: &str) -> Vec<&Value> {
        let heard = self.lines.iter().filter(|(from, message)| from == "stdout" && message["type"] == kind);
        heard.map(|(_, message)| message).collect()
    }
}

macro_rules! recordings {
    ($($name:ident = $file:literal),+) => {
        $(fn $name() -> Recording {
            Recording::read(include_str!(concat!("../../tests/data/claude/", $file, ".ndjson")))
        })+
        fn all() -> Vec<Recording> {
            vec![$($name()),+]
        }
    };
}

recordings! {
    py_query = "py-query", py_full = "py-query-full", py_client = "py-client",
    js_query = "js-query", js_full = "js-query-full", js_client = "js-client"
}

fn options(arguments: &[String]) -> Options {
    match Invocation::read(arguments) {
        Ok(Invocation::Serve(options)) => *options,
        other => panic!("{other:?}"),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn refused(arguments: &[&str]) -> String {
    Invocation::read(&words(arguments)).unwrap_err().message
}

#[test]
fn both_sdks_say_the_same_in_their_own_dialect() {
    for query in [py_query(), js_query()] {
        let options = options(&query.arguments);
        assert_eq!((options.mode, options.asks, options.partial), (Mode::Default, false, false));
    }
    for client in [py_client(), js_client()] {
        let read =
            options(&client.arguments.iter().filter(|a| !a.contains("mcp")).cloned().collect::<Vec<_>>());
        assert!(read.asks);
    }
    for full in [py_full(), js_full()] {
        let options = options(&full.arguments);
        let schema: Value = serde_json::from_str(options.json_schema.as_deref().unwrap()).unwrap();
        assert_eq!(schema["type"], "object");
        assert_eq!(options.model.as_deref(), Some("gemini-2.5-flash"));
        assert_eq!(options.mode, Mode::AcceptEdits);
        assert_eq!((options.max_turns, options.max_budget_usd), (Some(3), Some(0.5)));
        assert_eq!((options.allowed, options.disallowed), (words(&["Read"]), words(&["Bash"])));
        assert_eq!((options.add_dirs, options.partial), (words(&["/tmp"]), true));
        assert!(options.mcp_configs[0].contains("mcpServers"));
    }
}

#[test]
fn every_line_that_an_sdk_writes_is_understood() {
    for recording in all() {
        for said in recording.said() {
            match said {
                Incoming::Request { ask, .. } => assert!(!matches!(ask, Ask::Unknown(_)), "{ask:?}"),
                Incoming::Answer { answer, .. } => assert!(answer.is_ok()),
                Incoming::User(user) => {
                    assert!(!user.text.is_empty() && user.unsaid.is_empty(), "{user:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let initialize = js_full().said().next().unwrap();
    let Incoming::Request { ask: Ask::Initialize(initialize), .. } = initialize else { panic!() };
    assert_eq!(initialize.system_prompt.as_ref().unwrap().text(), "SYS");
    assert_eq!(initialize.json_schema.as_ref().unwrap()["type"], "object");
    assert_eq!(initialize.impossible(), None);
}

#[test]
fn hooks_are_read_as_both_sdks_register_them() {
    for client in [py_client(), js_client()] {
        let Some(Incoming::Request { ask: Ask::Initialize(initialize), .. }) = client.said().next() else {
            panic!()
        };
        let hooks = Hooks::read(&initialize.hooks).unwrap();
        assert_eq!(hooks.of(HookEvent::PreToolUse, Some("Write")), ["hook_0"]);
        assert!(!hooks.any(HookEvent::Stop));
    }
    let hooks =
        |matcher: &str| Hooks::read(&json!({"PreToolUse": [{"matcher": matcher, "hookCallbackIds": ["a"]}]}));
    let called =
        |matcher: &str, tool: &str| !hooks(matcher).unwrap().of(HookEvent::PreToolUse, Some(tool)).is_empty();
    assert!(called("Write|Edit", "Edit") && !called("Write|Edit", "MultiEdit"));
    assert!(called("mcp__.*", "mcp__db__query") && called("", "Bash") && called("*", "Bash"));
    assert!(hooks("(").unwrap_err().contains("no pattern"));
    let unknown = Hooks::read(&json!({"PreCompact": [{"hookCallbackIds": ["a"]}]})).unwrap_err();
    assert!(unknown.contains("PreCompact would never be called"), "{unknown}");
    assert!(Hooks::read(&json!("x")).is_err());
}

#[test]
fn a_hook_that_fails_before_a_tool_denies_it() {
    let said = |event, answer: Result<Value, &str>| HookAnswer::read(event, &answer.map_err(str::to_owned));
    let allow = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}});
    assert_eq!(said(HookEvent::PreToolUse, Ok(allow)).decision, Some(Decision::Allow));
    assert_eq!(said(HookEvent::PreToolUse, Ok(json!({"continue": true}))), HookAnswer::default());
    assert_eq!(said(HookEvent::PostToolUse, Ok(json!({}))), HookAnswer::default());
    let failed = said(HookEvent::PreToolUse, Err("boom"));
    assert_eq!(failed.decision, Some(Decision::Deny("the hook for PreToolUse failed: boom".to_owned())));
    let denied =
        json!({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}});
    assert_eq!(said(HookEvent::PreToolUse, Ok(denied)).decision, Some(Decision::Deny("no".to_owned())));
    let changed = json!({"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"a": 1}}});
    assert!(said(HookEvent::PreToolUse, Ok(changed)).impossible.is_some());
    let stopped = said(HookEvent::Stop, Ok(json!({"decision": "block", "reason": "go on"})));
    assert_eq!(stopped.block.as_deref(), Some("go on"));
}

#[test]
fn changed_arguments_are_no_permission() {
    let asked = json!({"file_path": "/x/n.txt", "content": "hi"});
    let verdict = |answer: Value| Verdict::read(&Ok(answer), &asked);
    assert_eq!(verdict(json!({"behavior": "allow", "updatedInput": asked})), Verdict::Allow(vec![]));
    assert_eq!(verdict(json!({"behavior": "allow"})), Verdict::Allow(vec![]));
    let changed = verdict(json!({"behavior": "allow", "updatedInput": {"file_path": "/etc/passwd"}}));
    assert!(matches!(changed, Verdict::Impossible(_)), "{changed:?}");
    let deny = Verdict::Deny { message: "not now".to_owned(), interrupt: true };
    assert_eq!(verdict(json!({"behavior": "deny", "message": "not now", "interrupt": true})), deny);
    for odd in [json!({}), json!(null), json!([]), json!({"behavior": "perhaps"}), json!({"behavior": 1})] {
        assert!(matches!(verdict(odd.clone()), Verdict::Deny { interrupt: false, .. }), "{odd}");
    }
    assert!(matches!(Verdict::read(&Err("gone".to_owned()), &asked), Verdict::Deny { .. }));
    let updated = json!({"behavior": "allow", "updatedPermissions": [
        {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
        {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash", "ruleContent": "git status"}]},
        {"type": "removeDirectories", "directories": []},
    ]});
    let Verdict::Allow(updates) = verdict(updated) else { panic!() };
    assert_eq!(updates[..2], [Update::Mode(Mode::AcceptEdits), Update::Allow("Bash(git status)".to_owned())]);
    assert!(matches!(updates[2], Update::Impossible(_)));
}

#[test]
fn a_question_has_the_fields_that_the_sdks_took() {
    let arguments = json!({"file_path": "/x/n.txt", "content": "hi"});
    let ours = Question::new("toolu_1", "write_file", "Write n.txt", &arguments).request();
    let theirs = js_client()
        .heard("control_request")
        .iter()
        .map(|line| line["request"].clone())
        .find(|r| r["subtype"] == "can_use_tool")
        .unwrap();
    for (key, value) in theirs.as_object().unwrap() {
        assert_eq!(ours[key], *value, "{key}");
    }
    let shell = Question::new("1", "run_shell_command", "ls", &json!({"command": "ls"})).request();
    assert_eq!(
        shell["permission_suggestions"][0]["rules"][0],
        json!({"toolName": "Bash", "ruleContent": "ls"})
    );
}

#[test]
fn a_tool_without_a_certain_name_may_be_any_tool() {
    let of = |tool: &str| Question::new("1", tool, "x", &json!({"command": "x"}));
    assert_eq!(of("read_file").of_tool(true, None).certain_name(), Some("Read"));
    let guessed = of("read_file").of_tool(false, None);
    assert_eq!((guessed.certain_name(), guessed.class), (None, Class::Unknown));
    // The server's name could end anywhere.
    assert_eq!(of("mcp_my_srv_drop").of_tool(true, None).certain_name(), None);
    let known = of("mcp_srv_drop").of_tool(true, Some(("srv", "drop")));
    assert_eq!((known.certain_name(), known.class), (Some("mcp__srv__drop"), Class::Mcp));
    for (name, server) in [("mcp_my_srv_drop", "my_srv"), ("mcp_my_srv_drop", "my srv")] {
        let known = of(name).of_tool(true, Some((server, "drop")));
        assert_eq!(known.tool_name, format!("mcp__{server}__drop"));
        assert_eq!(known.certain_name(), None);
    }
    let hooks = Hooks::read(&json!({"PreToolUse": [{"matcher": "mcp__srv__x", "hookCallbackIds": ["h"]}]}));
    let hooks = hooks.unwrap();
    let asked = |question: Question| hooks.of(HookEvent::PreToolUse, question.certain_name());
    assert_eq!(asked(of("mcp_srv_x__1").of_tool(false, None)), ["h"]);
    assert_eq!(asked(of("mcp_srv_y").of_tool(true, Some(("srv", "y")))), [""; 0]);
}

#[test]
fn lines_that_no_sdk_writes_are_faults_or_left_alone() {
    for bad in ["", "{", "\u{0}", "nonsense", "[]", "1", "{}", r#"{"type":1}"#] {
        assert_eq!(Incoming::read(bad.as_bytes()).unwrap_err().id, None, "{bad}");
    }
    assert!(Incoming::read(b"\xff\xfe").is_err());
    let fault = Incoming::read(br#"{"type":"control_request","request_id":"7","request":{}}"#).unwrap_err();
    assert_eq!(fault.id.as_deref(), Some("7"));
    let fault = Incoming::read(br#"{"type":"control_request","request_id":"7","request":{"subtype":"initialize","sdkMcpServers":3}}"#);
    assert_eq!(fault.unwrap_err().id.as_deref(), Some("7"));
    assert!(Incoming::read(br#"{"type":"control_request","request":{"subtype":"interrupt"}}"#).is_err());
    assert!(Incoming::read(br#"{"type":"control_response","response":null}"#).is_err());
    assert!(Incoming::read(br#"{"type":"user","message":{"content":7}}"#).is_err());
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Incoming::read(deep.as_bytes()).is_err());
    let unknown = br#"{"type":"control_request","request_id":"7","request":{"subtype":"fly"}}"#;
    let ask = Ask::Unknown("fly".to_owned());
    assert_eq!(Incoming::read(unknown), Ok(Incoming::Request { id: "7".to_owned(), ask }));
    assert_eq!(Incoming::read(br#"{"type":"keep_alive","x":1}"#), Ok(Incoming::Other));
    let long =
        json!({"type": "user", "message": {"role": "user", "content": "x".repeat(1 << 20)}}).to_string();
    let Ok(Incoming::User(user)) = Incoming::read(long.as_bytes()) else { panic!() };
    assert_eq!(user.text.len(), 1 << 20);
    let image = br#"{"type":"user","message":{"content":[{"type":"image"},{"type":"text","text":"a"},{}]}}"#;
    let Ok(Incoming::User(user)) = Incoming::read(image) else { panic!() };
    assert_eq!((user.text.as_str(), user.unsaid.len()), ("a", 2));
}

#[test]
fn options_that_would_be_lost_are_refused_and_others_are_not() {
    for arguments in [&["--version"][..], &["-v"], &["--output-format", "stream-json", "-v"]] {
        assert_eq!(Invocation::read(&words(arguments)), Ok(Invocation::Version));
    }
    assert_eq!(Invocation::read(&words(&["--help"])), Ok(Invocation::Help));
    assert!(refused(&["--fly"]).contains("no option --fly"));
    assert!(refused(&["say hi"]).contains("prompts come over stdin"));
    assert!(refused(&["--model"]).contains("needs a value"));
    assert!(refused(&["--max-turns=many"]).contains("not a number"));
    assert!(refused(&["--max-budget-usd=-1"]).contains("no budget"));
    assert!(refused(&["--permission-mode", "auto"]).contains("classifier"));
    assert!(refused(&["--permission-prompt-tool", "mcp__ask__me"]).contains("only stdio"));
    assert!(refused(&["--output-format=json"]).contains("only stream-json"));
    assert!(refused(&["--tools", "Read,Fly"]).contains("Fly"));
    for row in TABLE {
        let arguments = match row.value {
            true => vec![format!("--{}=x", row.names[0])],
            false => vec![format!("--{}", row.names[0])],
        };
        match row.fate {
            Fate::Refused(why) => assert!(Invocation::read(&arguments).unwrap_err().message.ends_with(why)),
            Fate::Nothing(_) => assert_eq!(options(&arguments), Options::default()),
            Fate::Means(_) | Fate::Checked(_) => {}
        }
    }
    let rules = options(&words(&["--allowedTools", "Bash(git log, now),Read Edit(src/**)"])).allowed;
    assert_eq!(rules, ["Bash(git log, now)", "Read", "Edit(src/**)"]);
    let some = options(&words(&["--tools=Read,Bash", "--disallowedTools=Bash"])).denied_tools();
    assert!(
        some.contains(&"run_shell_command") && some.contains(&"write_file") && !some.contains(&"read_file")
    );
    assert!(options(&[]).denied_tools().is_empty());
}

#[test]
fn modes_and_models_are_geminis() {
    for mode in Mode::ALL {
        assert_eq!(Mode::named(mode.name()), Ok(mode));
    }
    assert_eq!(Mode::BypassPermissions.approval(), Approval::Yolo);
    assert!(Mode::named("yolo").unwrap_err().contains("acceptEdits"));
    assert_eq!(model("gemini-2.5-pro"), Some("gemini-2.5-pro"));
    for claudes in ["claude-sonnet-4-5", "sonnet", "default", ""] {
        assert_eq!(model(claudes), None, "{claudes}");
    }
}

fn head() -> Head {
    Head {
        session_id: "s".to_owned(),
        model: "gemini-2.5-flash".to_owned(),
        cwd: "/srv/p".to_owned(),
        ..Head::default()
    }
}

fn tokens() -> Tokens {
    Tokens { prompt: 100, cached: 30, output: 7, thoughts: 20, tool: 0, total: 127 }
}

/// A turn with a thought, a text in two pieces and a tool that fails.
fn turn(lines: &mut Lines) -> Vec<Value> {
    let mut out = vec![lines.begin()];
    let called = call("1", "write_file", json!({"file_path": "/x/n.txt", "content": "hi"}));
    let ended = result("1", "write_file", false, None, Some("disk full"));
    for kind in [
        EventKind::Thinking { subject: "Hm".to_owned(), text: "well".to_owned() },
        EventKind::Text { delta: "Hello ".to_owned() },
        EventKind::Text { delta: "there.".to_owned() },
        called,
        ended,
        EventKind::Text { delta: "Sorry.".to_owned() },
    ] {
        out.extend(lines.event(&event(kind)));
    }
    let mut text = Text::whole("Hello there.");
    text.start_over();
    text.push("Sorry.");
    let mut outcome = Outcome::default();
    outcome.status = Status::Success;
    outcome.text = text;
    outcome.usage = Usage::of_models([("gemini-2.5-flash", tokens())]);
    out.extend(lines.end(&outcome, None));
    out
}

#[test]
fn a_turn_becomes_the_lines_that_the_sdks_took_from_an_executable() {
    let out = turn(&mut Lines::new(head(), false, 1, Prices::shipped().ok()));
    let kinds: Vec<&str> = out.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "assistant", "assistant", "user", "assistant", "result"]);
    let block = |at: usize| &out[at]["message"]["content"][0];
    assert_eq!(*block(1), json!({"type": "thinking", "thinking": "Hm: well", "signature": ""}));
    assert_eq!(*block(2), json!({"type": "text", "text": "Hello there."}));
    assert_eq!(
        *block(3),
        json!({"type": "tool_use", "id": "1", "name": "Write", "input": {"file_path": "/x/n.txt", "content": "hi"}})
    );
    assert_eq!(
        *block(4),
        json!({"type": "tool_result", "tool_use_id": "1", "content": "disk full", "is_error": true})
    );
    assert_eq!(out[2]["message"]["id"], out[3]["message"]["id"]);
    assert_ne!(out[3]["message"]["id"], out[5]["message"]["id"]);
    let result = &out[6];
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("Sorry."), &json!(2)));
    assert_eq!(result["usage"]["input_tokens"], 70);
    assert_eq!(result["usage"]["cache_read_input_tokens"], 30);
    assert_eq!(result["usage"]["output_tokens"], 27);
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0);
    let uuids: BTreeSet<&str> = out.iter().map(|line| line["uuid"].as_str().unwrap()).collect();
    assert_eq!(uuids.len(), out.len());
    // Every field of what the SDKs took is there.
    let recorded = py_client();
    for (kind, ours) in [("system", &out[0]), ("assistant", &out[2]), ("user", &out[4]), ("result", &out[6])]
    {
        for theirs in
            recorded.heard(kind).into_iter().filter(|line| line["subtype"] != "error_during_execution")
        {
            same_fields(theirs, ours, kind);
        }
    }
}

/// What one has, the other has too, all the way down; lists and the names of models are the turn's own.
fn same_fields(theirs: &Value, ours: &Value, at: &str) {
    let Some(fields) = theirs.as_object() else { return };
    for (key, value) in fields {
        assert!(ours.get(key).is_some(), "{at}/{key} is missing in {ours}");
        same_fields(value, &ours[key], &format!("{at}/{key}"));
    }
}

#[test]
fn pieces_of_answers_come_only_on_request_and_make_whole_messages() {
    let out = turn(&mut Lines::new(head(), true, 1, Prices::shipped().ok()));
    let events: Vec<&str> = out
        .iter()
        .filter(|line| line["type"] == "stream_event")
        .map(|line| line["event"]["type"].as_str().unwrap())
        .collect();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let text = ["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"];
    let first = [&["message_start"][..], &block, &text, &block, &["message_delta", "message_stop"]].concat();
    let second = [&["message_start"][..], &block, &["message_delta", "message_stop"]].concat();
    assert_eq!(events, [first, second].concat());
    let indices: Vec<u64> = out.iter().filter_map(|line| line["event"]["index"].as_u64()).collect();
    assert_eq!(indices, [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 0, 0, 0]);
}

#[test]
fn an_answer_that_was_cut_off_has_claudes_stop_reason() {
    for (reason, word) in
        [("MAX_TOKENS", json!("max_tokens")), ("SAFETY", json!("refusal")), ("OTHER", Value::Null)]
    {
        let mut lines = Lines::new(head(), false, 1, Prices::shipped().ok());
        lines.begin();
        let mut outcome = Outcome::not_begun(Failure::new(FailureKind::InvalidResponse, "cut off"));
        outcome.finish_reason = Some(reason.to_owned());
        let result = lines.end(&outcome, None).pop().unwrap();
        assert_eq!((&result["is_error"], &result["stop_reason"]), (&json!(true), &word));
    }
}

#[test]
fn a_turn_that_did_not_work_says_why() {
    let mut lines = Lines::new(head(), false, 1, Prices::shipped().ok());
    let mut end = |kind: FailureKind, ended: Option<&Interruption>| {
        lines.begin();
        let outcome = Outcome::not_begun(Failure::new(kind, "no luck"));
        let result = lines.end(&outcome, ended).pop().unwrap();
        assert_eq!(result["is_error"], true);
        assert!(result.get("result").is_none());
        (result["subtype"].as_str().unwrap().to_owned(), result["errors"][0].as_str().unwrap().to_owned())
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(end(FailureKind::Auth, None), pair("error_during_execution", "no luck"));
    assert_eq!(end(FailureKind::TurnLimit, None), pair("error_max_turns", "no luck"));
    assert_eq!(
        end(FailureKind::Cancelled, Some(&Interruption::ByProgram)),
        pair("error_during_execution", "interrupted")
    );
    assert_eq!(end(FailureKind::Budget, None), pair("error_max_budget_usd", "no luck"));
}

#[test]
fn an_answer_that_is_too_long_for_a_line_comes_in_several() {
    let mut lines = Lines::new(head(), false, 1, Prices::shipped().ok());
    lines.begin();
    let long = "x".repeat(2 << 20);
    assert!(lines.event(&event(EventKind::Text { delta: long.clone() })).is_empty());
    let mut outcome = Outcome::default();
    outcome.status = Status::Success;
    outcome.text = Text::whole(long.clone());
    let out = lines.end(&Arc::new(outcome), None);
    assert!(out.iter().all(|line| line.to_string().len() < 1 << 20));
    let said: String = out.iter().filter_map(|line| line["message"]["content"][0]["text"].as_str()).collect();
    assert_eq!(said, long);
}

#[test]
fn cost_is_of_all_turns_and_usage_of_one() {
    let mut lines = Lines::new(head(), false, 1, Prices::shipped().ok());
    let first = turn(&mut lines).pop().unwrap();
    let second = turn(&mut lines).pop().unwrap();
    assert_eq!(first["usage"], second["usage"]);
    let cost = |result: &Value| result["total_cost_usd"].as_f64().unwrap();
    assert!((cost(&second) - 2.0 * cost(&first)).abs() < 1e-12);
    assert_eq!(second["modelUsage"]["gemini-2.5-flash"]["inputTokens"], 140);
    assert_eq!(second["result_index"], 1);
}
