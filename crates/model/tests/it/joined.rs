//! What the session file adds to the stream, on a real run of 0.61.0 and on records that no run would write.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use alhena_model::{
    Change, CommandRun, DiskFact, End, Event, EventKind, Exit, Fact, FileRecord, Input, Interpreter, Outcome,
    SessionFacts, Source, Timestamp, Tokens, ToolFact, Usage, Witnesses,
};
use serde_json::{Value, json};

fn data(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/joined").join(name)).unwrap()
}

fn facts_of(lines: &[u8]) -> Vec<Fact> {
    let (mut session, mut facts) = (SessionFacts::default(), Vec::new());
    for line in lines.split(|byte| *byte == b'\n') {
        session.line(line, &mut facts);
    }
    facts
}

fn facts_of_values(records: &[Value]) -> Vec<Fact> {
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    facts_of(lines.join("\n").as_bytes())
}

/// The stream and the session's facts beside it: those of its tools come first, the others at its end. On the disk every
/// write happened.
fn join(stdout: &[u8], facts: Vec<Fact>) -> (Vec<Event>, Arc<Outcome>) {
    let mut interpreter = Interpreter::with(Witnesses { session: true, disk: true });
    let mut out = Vec::new();
    let (tools, others): (Vec<_>, Vec<_>) =
        facts.into_iter().partition(|fact| matches!(fact, Fact::Tool { .. }));
    for fact in tools {
        interpreter.feed(Input::Fact(fact), &mut out);
    }
    for line in stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        interpreter.line(line, &mut out);
        while let Some(path) = interpreter.wanted_file().map(str::to_owned) {
            interpreter.feed(Input::Disk { path, state: DiskFact::Modified }, &mut out);
        }
    }
    for fact in others {
        interpreter.feed(Input::Fact(fact), &mut out);
    }
    let end = End { exit: Exit::Code(0), stderr: String::new(), duration_ms: None };
    let outcome = interpreter.conclude(&end, &mut out);
    (out, outcome)
}

fn say(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text, "delta": true})
}

fn lines(values: &[Value]) -> Vec<u8> {
    values.iter().map(|value| format!("{value}\n")).collect::<String>().into_bytes()
}

fn answer(id: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "2026-11-15T21:26:00.000Z", "type": "gemini", "content": text})
}

#[test]
fn a_real_run_gets_back_what_its_stream_dropped() {
    let (events, outcome) = join(&data("stdout"), facts_of(&data("session.jsonl")));
    // The model began twice; the CLI streamed both beginnings.
    assert_eq!((outcome.text.all(), outcome.text.last()), ("Writing it. All is done.", "All is done."));
    let run = |command: &str, exit_code: i32, output: &str| {
        (command.to_owned(), Some(exit_code), Some(output.to_owned()))
    };
    let commands: Vec<_> = outcome
        .commands
        .iter()
        .map(|CommandRun { command, exit_code, output, .. }| (command.clone(), *exit_code, output.clone()))
        .collect();
    assert_eq!(commands, [run("echo bad; exit 3", 3, "bad"), run("true", 0, "")]);
    let diff = "Index: n.txt\n===================================================================\n--- n.txt\tCurrent\n+++ n.txt\tProposed\n@@ -0,0 +1 @@\n+newer\n";
    let file = FileRecord {
        path: "n.txt".into(),
        change: Change::Created,
        tool: Some("replace".into()),
        claimed: true,
        verified: true,
        diff: Some(diff.into()),
    };
    assert_eq!(outcome.files, [file]);
    let thoughts: Vec<(Source, &str, &str)> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Thinking { subject, text } => Some((event.source, subject.as_str(), text.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(
        thoughts,
        [(Source::Session, "Plan", "Write it first."), (Source::Session, "Finish", "Done now.")]
    );
    let results: Vec<(Source, bool, Option<i32>, bool)> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ToolResult { ok, exit_code, output, .. } => {
                Some((event.source, *ok, *exit_code, output.is_some()))
            }
            _ => None,
        })
        .collect();
    let session = Source::Session;
    assert_eq!(
        results,
        [
            (session, true, None, true),
            (session, false, Some(3), true),
            (session, true, Some(0), true),
            (session, true, None, true),
            (session, true, None, true),
        ]
    );
    let read = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolResult { name, output, .. } if name == "read_file" => output.clone(),
        _ => None,
    });
    assert_eq!(read.as_deref(), Some("newer\n"));
    // Thoughts of 7 and of 5 tokens; the 3 of a tool's prompt are nowhere in the stream.
    let all = outcome.usage.all;
    assert_eq!((all.thoughts, all.tool), (12, 3));
    assert_eq!(outcome.usage.models["gemini-2.5-flash"], all);
}

#[test]
fn every_fact_is_given_once_however_often_it_is_written() {
    let session = data("session.jsonl");
    let once = facts_of(&session);
    assert_eq!(facts_of(&[session.clone(), session].concat()), once);
    let kinds = |wanted: fn(&Fact) -> bool| once.iter().filter(|fact| wanted(fact)).count();
    assert_eq!(
        (
            kinds(|fact| matches!(fact, Fact::Thought { .. })),
            kinds(|fact| matches!(fact, Fact::Tool { .. })),
            kinds(|fact| matches!(fact, Fact::Usage { .. })),
            kinds(|fact| matches!(fact, Fact::Text { .. })),
        ),
        (2, 5, 5, 2)
    );
}

#[test]
fn a_checkpoint_holds_messages_too() {
    let set =
        json!({"$set": {"messages": [answer("a", "one"), {"id": "u", "type": "user", "content": "hi"}]}});
    let text = Fact::Text { message: "a".into(), text: "one".into() };
    assert_eq!(facts_of_values(&[set, answer("a", "one")]), [text]);
}

#[test]
fn facts_of_an_earlier_run_are_not_this_runs() {
    let mut session = SessionFacts::since(Timestamp::parse("2026-11-15T21:00:00.000Z").unwrap());
    let mut facts = Vec::new();
    let old = json!({"id": "a", "timestamp": "2026-11-15T20:59:59.999Z", "type": "gemini", "content": "old"});
    session.line(old.to_string().as_bytes(), &mut facts);
    assert_eq!(facts, []);
    session.line(answer("b", "new").to_string().as_bytes(), &mut facts);
    assert_eq!(facts, [Fact::Text { message: "b".into(), text: "new".into() }]);
}

#[test]
fn what_is_no_record_says_nothing() {
    for line in [&b""[..], b"{", b"[]", b"\xff", b"{\"$rewindTo\":\"x\"}", b"{\"type\":\"gemini\"}"] {
        assert_eq!(facts_of(line), [], "{line:?}");
    }
}

#[test]
fn a_call_counts_when_it_has_ended() {
    let call = |status: Value, name: &str, output: &str| {
        json!({"id": "a", "type": "gemini", "content": "", "toolCalls": [
            {"id": "c", "name": name, "args": {}, "status": status,
             "result": [{"functionResponse": {"id": "c", "name": name, "response": {"output": output}}}]},
            {"name": "without an id", "status": "success"}]})
    };
    let fact = |record: Value| match facts_of_values(&[record]).pop() {
        Some(Fact::Tool { fact, .. }) => Some(*fact),
        _ => None,
    };
    let fine = ToolFact { output: Some("x".into()), ..ToolFact::default() };
    assert_eq!(fact(call(json!("executing"), "glob", "x")), None);
    assert_eq!(fact(call(Value::Null, "glob", "x")), None);
    assert_eq!(fact(call(json!("success"), "glob", "x")), Some(fine.clone()));
    assert_eq!(fact(call(json!("cancelled"), "glob", "x")), Some(ToolFact { cancelled: true, ..fine }));
    let ended = |text: &str| fact(call(json!("success"), "run_shell_command", text)).unwrap().exit_code;
    assert_eq!(ended("Output: a\nProcess Group PGID: 7"), Some(0));
    assert_eq!(ended("Output: a\nExit Code: 3\nProcess Group PGID: 7"), Some(3));
    // A signal leaves no exit code.
    let killed = call(json!("success"), "run_shell_command", "Output: a\nSignal: 9\nProcess Group PGID: 7");
    let killed = fact(killed).unwrap();
    assert_eq!((killed.exit_code, killed.killed, killed.is_ok()), (None, true, false));
    assert_eq!(ended("Command was cancelled by user before it could complete."), None);
    let refused = json!({"id": "a", "type": "gemini", "content": "", "toolCalls": [{"id": "c", "name": "glob", "status": "error",
        "result": [{"functionResponse": {"id": "c", "name": "glob", "response": {"error": "no"}}}]}]});
    assert_eq!(fact(refused), Some(ToolFact { error: Some("no".into()), ..ToolFact::default() }));
}

#[test]
fn a_cancelled_write_is_no_change() {
    // C-44: the stream calls it a success.
    let stdout = lines(&[
        json!({"type": "tool_use", "tool_name": "write_file", "tool_id": "c", "parameters": {"file_path": "a"}}),
        json!({"type": "tool_result", "tool_id": "c", "status": "success"}),
    ]);
    let fact = ToolFact { cancelled: true, ..ToolFact::default() };
    let (events, outcome) = join(
        &stdout,
        vec![Fact::Tool { message: String::new(), id: "c".into(), fact: Box::new(fact), call: None }],
    );
    let result = events.iter().find_map(|event| match event.kind {
        EventKind::ToolResult { ok, cancelled, .. } => Some((ok, cancelled)),
        _ => None,
    });
    assert_eq!((result, outcome.files.len()), (Some((false, Some(true))), 0));
}

#[test]
fn the_session_knows_whether_a_file_is_new() {
    for (created, change) in [(true, Change::Created), (false, Change::Modified)] {
        let stdout = lines(&[
            json!({"type": "tool_use", "tool_name": "write_file", "tool_id": "c", "parameters": {"file_path": "a"}}),
            json!({"type": "tool_result", "tool_id": "c", "status": "success"}),
        ]);
        let fact = ToolFact { created: Some(created), diff: Some("d".into()), ..ToolFact::default() };
        let (_, outcome) = join(
            &stdout,
            vec![Fact::Tool { message: String::new(), id: "c".into(), fact: Box::new(fact), call: None }],
        );
        assert_eq!((outcome.files[0].change, outcome.files[0].diff.as_deref()), (change, Some("d")));
    }
}

fn settled(streamed: &[&str], answers: &[&str]) -> String {
    let stdout: Vec<Value> = streamed.iter().map(|text| say(text)).collect();
    let facts = answers
        .iter()
        .enumerate()
        .map(|(index, text)| Fact::Text { message: index.to_string(), text: (*text).to_owned() })
        .collect();
    join(&lines(&stdout), facts).1.text.all().to_owned()
}

#[test]
fn text_that_was_streamed_twice_counts_once() {
    assert_eq!(settled(&["one ", "two"], &["one two"]), "one two");
    assert_eq!(settled(&["one ", "one ", "two"], &["one two"]), "one two");
    assert_eq!(settled(&["one ", "one ", "one two\n"], &["one two"]), "one two\n");
    assert_eq!(settled(&["a b ", "c c d"], &["a b", "c d"]), "a b c d");
    // What the session does not know is not thrown away.
    assert_eq!(settled(&["one ", "two"], &["three"]), "one two");
    assert_eq!(settled(&["x two"], &["one", "two"]), "x two");
    assert_eq!(settled(&["one ", "two"], &[]), "one two");
    let huge = "z".repeat(3 << 20);
    assert_eq!(settled(&[&huge, "z"], &[&huge]).len(), huge.len() + 1);
}

#[test]
fn without_figures_in_the_stream_the_sessions_are_taken() {
    let tokens = Tokens { prompt: 100, cached: 1, output: 5, thoughts: 7, tool: 3, total: 115 };
    let usage = |model: &str| Fact::Usage { message: "m".into(), model: model.into(), tokens };
    let (events, outcome) = join(&lines(&[say("x")]), vec![usage("m1"), usage("m2")]);
    assert_eq!(outcome.usage, Usage::of_models([("m1", tokens), ("m2", tokens)]));
    assert_eq!(outcome.models, ["m1", "m2"]);
    let call = |number, model| (Source::Session, Some(number), Usage::of_models([(model, tokens)]));
    assert_eq!(usage_told(&events), [call(1, "m1"), call(2, "m2")]);
    let none = Fact::Usage { message: "m".into(), model: "m".into(), tokens: Tokens::default() };
    assert_eq!(join(&lines(&[say("x")]), vec![none]).1.usage, Usage::default());
}

fn usage_told(events: &[Event]) -> Vec<(Source, Option<u64>, Usage)> {
    let told = events.iter().filter_map(|event| match &event.kind {
        EventKind::Usage(told) => Some((event.source, told.call, told.usage.clone())),
        _ => None,
    });
    told.collect()
}

#[test]
fn usage_events_add_up_to_the_usage_of_the_outcome() {
    let tokens = |prompt, output| Tokens { prompt, output, total: prompt + output, ..Tokens::default() };
    let stats = |all: Tokens, models: &[(&str, Tokens)]| {
        let of = |t: &Tokens| json!({"total_tokens": t.total, "input_tokens": t.prompt, "output_tokens": t.output});
        let mut stats = of(&all);
        stats["models"] = models.iter().map(|(name, tokens)| ((*name).to_owned(), of(tokens))).collect();
        json!({"type": "result", "status": "success", "stats": stats})
    };
    let (first, second, sub_agent, router) = (tokens(100, 5), tokens(120, 7), tokens(30, 3), tokens(10, 1));
    let all = [("m", tokens(250, 15)), ("router", router)];
    let stdout = lines(&[say("x"), stats(tokens(260, 16), &all)]);
    let of_call = |tokens| Fact::Usage { message: "m".into(), model: "m".into(), tokens };
    let aside = Fact::UsageAside { model: "m".into(), tokens: sub_agent };
    let (events, outcome) = join(&stdout, vec![of_call(first), aside, of_call(second)]);
    let told = |source, call, model, tokens| (source, call, Usage::of_models([(model, tokens)]));
    assert_eq!(
        usage_told(&events),
        [
            told(Source::Session, Some(1), "m", first),
            told(Source::Derived, Some(2), "m", sub_agent),
            told(Source::Session, Some(3), "m", second),
            told(Source::Derived, None, "router", router),
        ]
    );
    let mut sum = Usage::default();
    for (_, _, usage) in usage_told(&events) {
        usage.models.iter().for_each(|(model, tokens)| sum.add(model, tokens));
    }
    assert_eq!(sum, outcome.usage);
    // Without a session file all of it is in one event, at the end.
    let (events, outcome) = join(&stdout, Vec::new());
    assert_eq!(usage_told(&events), [(Source::Derived, None, outcome.usage.clone())]);
}

#[test]
fn thoughts_and_tool_prompts_are_told_apart() {
    // The API's total holds both; the stream gives only the total. A router's thoughts are in it as well.
    let stats = json!({"total_tokens": 130, "input_tokens": 100, "output_tokens": 10, "models": {
        "m": {"total_tokens": 130, "input_tokens": 100, "output_tokens": 10}}});
    let stdout = lines(&[say("x"), json!({"type": "result", "status": "success", "stats": stats})]);
    let told = Tokens { prompt: 100, cached: 0, output: 10, thoughts: 12, tool: 3, total: 125 };
    let usage = Fact::Usage { message: "m".into(), model: "m".into(), tokens: told };
    let expected = Tokens { prompt: 100, cached: 0, output: 10, thoughts: 17, tool: 3, total: 130 };
    assert_eq!(join(&stdout, vec![usage]).1.usage, Usage::of_models([("m", expected)]));
}

#[test]
fn a_thought_has_its_own_time_and_leaves_the_clock_alone() {
    let at = |text: &str| Timestamp::parse(text).unwrap();
    let init =
        json!({"type": "init", "timestamp": "2026-11-15T21:00:00.000Z", "session_id": "s", "model": "m"});
    let mut interpreter = Interpreter::new();
    let mut out = Vec::new();
    assert_eq!(interpreter.session_id(), None);
    interpreter.line(init.to_string().as_bytes(), &mut out);
    assert_eq!(interpreter.session_id(), Some("s"));
    let thought = |at| Fact::Thought { message: String::new(), at, subject: "S".into(), text: "T".into() };
    interpreter.feed(Input::Fact(thought(Some(at("2026-11-15T20:59:00.000Z")))), &mut out);
    interpreter.feed(Input::Fact(thought(None)), &mut out);
    let times: Vec<Timestamp> = out.iter().map(|event| event.at).collect();
    let start = at("2026-11-15T21:00:00.000Z");
    assert_eq!(times, [start, at("2026-11-15T20:59:00.000Z"), start]);
}
