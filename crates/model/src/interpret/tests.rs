use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::outcome::Text;
use crate::{Change, Class, CommandRun, Exit, FailureKind, FileChange, ToolEnd, ToolError, Usage};

/// What comes of these lines when the process ends like this.
fn interpret(lines: &[Value], exit: Exit) -> (Vec<Event>, Arc<Outcome>) {
    conclude(Interpreter::new(), lines, exit)
}

fn conclude(mut interpreter: Interpreter, lines: &[Value], exit: Exit) -> (Vec<Event>, Arc<Outcome>) {
    let mut out = feed(&mut interpreter, lines);
    let outcome = interpreter.conclude(&end(exit), &mut out);
    (out, outcome)
}

fn feed(interpreter: &mut Interpreter, lines: &[Value]) -> Vec<Event> {
    let mut out = Vec::new();
    lines.iter().for_each(|line| interpreter.line(line.to_string().as_bytes(), &mut out));
    out
}

fn end(exit: Exit) -> End {
    End { exit, stderr: String::new(), duration_ms: None }
}

/// Source and kind of each event, without the last one.
fn said(events: &[Event]) -> Vec<(Source, EventKind)> {
    let (last, rest) = events.split_last().unwrap();
    assert!(matches!(last.kind, EventKind::Finished { .. }));
    rest.iter().map(|event| (event.source, event.kind.clone())).collect()
}

fn init() -> Value {
    json!({"type": "init", "timestamp": "2026-11-15T17:49:10.599Z", "session_id": "s-1", "model": "auto"})
}

fn prompt() -> Value {
    json!({"type": "message", "timestamp": "2026-11-15T17:49:10.700Z", "role": "user", "content": "Do it"})
}

fn delta(text: &str) -> Value {
    json!({"type": "message", "timestamp": "2026-11-15T17:49:11.000Z", "role": "assistant", "content": text, "delta": true})
}

fn call(name: &str, id: &str, parameters: Value) -> Value {
    json!({"type": "tool_use", "timestamp": "2026-11-15T17:49:12.000Z", "tool_name": name, "tool_id": id, "parameters": parameters})
}

fn success(id: &str) -> Value {
    json!({"type": "tool_result", "timestamp": "2026-11-15T17:49:13.000Z", "tool_id": id, "status": "success"})
}

fn output(id: &str, output: &str) -> Value {
    let mut line = success(id);
    line["output"] = json!(output);
    line
}

fn failed(id: &str, kind: &str, message: &str) -> Value {
    json!({"type": "tool_result", "timestamp": "2026-11-15T17:49:13.000Z", "tool_id": id, "status": "error",
        "output": message, "error": {"type": kind, "message": message}})
}

fn problem(severity: &str, message: &str) -> Value {
    json!({"type": "error", "timestamp": "2026-11-15T17:49:13.500Z", "severity": severity, "message": message})
}

fn result() -> Value {
    json!({"type": "result", "timestamp": "2026-11-15T17:49:14.000Z", "status": "success", "stats": {
        "total_tokens": 124, "input_tokens": 100, "output_tokens": 4, "cached": 30, "input": 70, "duration_ms": 164,
        "tool_calls": 0, "models": {"gemini-2.5-flash": {"total_tokens": 124, "input_tokens": 100,
        "output_tokens": 4, "cached": 30, "input": 70}}}})
}

fn text(piece: &str) -> (Source, EventKind) {
    (Source::Stream, EventKind::Text { delta: piece.to_owned() })
}

fn warning(source: Source, message: &str) -> (Source, EventKind) {
    (source, EventKind::Warning { message: message.to_owned() })
}

fn file(path: &str, change: Change, tool: Option<&str>, verified: bool) -> FileRecord {
    let (path, claimed) = (path.to_owned(), tool.is_some());
    FileRecord { path, change, tool: tool.map(str::to_owned), claimed, verified, diff: None }
}

fn answered(id: &str, name: &str, output: &str) -> EventKind {
    EventKind::ToolResult {
        id: id.to_owned(),
        name: name.to_owned(),
        ok: true,
        output: Some(output.to_owned()),
        error: None,
        exit_code: None,
        cancelled: None,
    }
}

fn with_disk() -> Interpreter {
    Interpreter::with(Witnesses { disk: true, session: false })
}

fn disk_says(state: DiskFact) -> Input<'static> {
    Input::Disk { path: "a".into(), state }
}

#[test]
fn a_plain_run_gives_its_events_in_order_and_an_outcome() {
    // C-33 to C-35, C-39, C-43, C-45
    let lines = [init(), prompt(), delta("Hel"), delta("lo."), result()];
    let (events, outcome) = interpret(&lines, Exit::Code(0));
    let tokens = crate::Tokens { prompt: 100, cached: 30, output: 4, thoughts: 20, tool: 0, total: 124 };
    let usage = Usage::of_models([("gemini-2.5-flash", tokens)]);
    let at = |text: &str| Timestamp::parse(text).unwrap();
    let expected = Outcome {
        status: crate::Status::Success,
        text: Text::whole("Hello."),
        session_id: Some("s-1".into()),
        models: vec!["gemini-2.5-flash".into()],
        usage: usage.clone(),
        model_calls: 1,
        duration_ms: 164,
        exit_code: Some(0),
        reported: Some(crate::Reported::Success),
        ..Outcome::default()
    };
    assert_eq!(*outcome, expected);
    let event = |seq, at, source, kind| Event { seq, at, source, kind };
    let stream = Source::Stream;
    assert_eq!(
        events,
        [
            event(
                0,
                at("2026-11-15T17:49:10.599Z"),
                stream,
                EventKind::Started { session_id: "s-1".into(), model: "auto".into() }
            ),
            event(1, at("2026-11-15T17:49:10.700Z"), stream, EventKind::Prompt { text: "Do it".into() }),
            event(2, at("2026-11-15T17:49:11.000Z"), stream, EventKind::Text { delta: "Hel".into() }),
            event(3, at("2026-11-15T17:49:11.000Z"), stream, EventKind::Text { delta: "lo.".into() }),
            event(
                4,
                at("2026-11-15T17:49:14.000Z"),
                Source::Derived,
                EventKind::Usage(crate::CallUsage { call: None, usage })
            ),
            event(5, at("2026-11-15T17:49:14.000Z"), Source::Derived, EventKind::Finished { outcome }),
        ]
    );
}

#[test]
fn a_shell_call_is_a_request_and_its_result_a_command_with_output() {
    // C-28, C-29, C-32, C-36, C-37
    let lines = [
        init(),
        call("run_shell_command", "c1", json!({"command": "ls -l", "description": "Lists"})),
        output("c1", "a.txt\n"),
        delta("One file."),
        result(),
    ];
    let (events, outcome) = interpret(&lines, Exit::Code(0));
    assert_eq!(
        said(&events)[1..4],
        [
            (
                Source::Stream,
                EventKind::ToolCall {
                    id: "c1".into(),
                    name: "run_shell_command".into(),
                    class: Class::Command,
                    claude_name: "Bash".into(),
                    input: Box::new(json!({"command": "ls -l", "description": "Lists"})),
                }
            ),
            (Source::Stream, answered("c1", "run_shell_command", "a.txt\n")),
            (
                Source::Derived,
                EventKind::Command {
                    call_id: "c1".into(),
                    command: "ls -l".into(),
                    output: Some("a.txt\n".into()),
                    exit_code: None,
                }
            ),
        ]
    );
    let run = CommandRun {
        call_id: "c1".into(),
        command: "ls -l".into(),
        exit_code: None,
        output: Some("a.txt\n".into()),
    };
    assert_eq!((&outcome.commands, outcome.tool_calls), (&vec![run], 1));
    assert_eq!((outcome.text.all(), outcome.text.last()), ("One file.", "One file."));
}

/// `ok`, exit code, `cancelled`, and whether a command ran, of a shell call with this output.
fn shell(displayed: &str) -> (bool, Option<i32>, Option<bool>, bool) {
    let lines = [call("run_shell_command", "c", json!({"command": "x"})), output("c", displayed)];
    let (events, outcome) = interpret(&lines, Exit::Code(0));
    let found = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolResult { ok, exit_code, cancelled, .. } => Some((*ok, *exit_code, *cancelled)),
        _ => None,
    });
    let (ok, exit_code, cancelled) = found.unwrap();
    (ok, exit_code, cancelled, !outcome.commands.is_empty())
}

#[test]
fn a_command_that_failed_says_success_and_is_not_taken_for_one() {
    // The texts are those of the shell tool of 0.61.0. C-44
    let cancelled = (false, None, Some(true), true);
    let cases = [
        ("", (true, None, None, true)),
        ("fine\n", (true, None, None, true)),
        ("Command exited with code: 3", (false, Some(3), None, true)),
        ("Command exited with code: 0", (true, Some(0), None, true)),
        ("Command exited with code: many", (true, None, None, true)),
        ("log: Command exited with code: 3", (true, None, None, true)),
        ("Command terminated by signal: 9", (false, None, None, true)),
        ("Command terminated by signal: 9\nand more of a log", (true, None, None, true)),
        ("Command cancelled by user.", cancelled),
        ("Command cancelled by user.\n\nOutput before cancellation:\nhalf", cancelled),
        ("Command cancelled by user. Or so the log says", (true, None, None, true)),
        (
            "Command was automatically cancelled because it exceeded the timeout of 5.0 minutes without output.",
            cancelled,
        ),
        ("Blocked: command substitution detected in shell command.", (false, None, None, false)),
    ];
    for (displayed, expected) in cases {
        assert_eq!(shell(displayed), expected, "{displayed}");
    }
}

#[test]
fn a_blocked_command_is_a_warning() {
    let blocked = "Blocked: command substitution detected in shell command.";
    let lines = [
        call("run_shell_command", "c", json!({"command": "echo $(date)"})),
        output("c", blocked),
        delta("ok"),
        result(),
    ];
    let (_, outcome) = interpret(&lines, Exit::Code(0));
    assert_eq!(
        outcome.warnings,
        ["Gemini CLI blocked a shell command because of a command substitution in it; it did not run"]
    );
}

#[test]
fn results_of_writing_tools_are_file_changes_marked_as_derived() {
    // C-30, A-24, A-25
    let lines = [
        call("write_file", "w", json!({"file_path": "new.txt", "content": "x"})),
        call("replace", "r", json!({"file_path": "old.txt", "old_string": "a", "new_string": "b"})),
        call("replace", "e", json!({"file_path": "empty.txt", "old_string": "", "new_string": "b"})),
        call("write_file", "f", json!({"file_path": "failed.txt", "content": "x"})),
        success("w"),
        success("r"),
        success("e"),
        failed("f", "file_write_failure", "no"),
        call("replace", "again", json!({"file_path": "new.txt", "old_string": "x", "new_string": "y"})),
        success("again"),
        delta("Written."),
        result(),
    ];
    let (events, outcome) = interpret(&lines, Exit::Code(0));
    let changes: Vec<_> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::FileChange(change) => Some((event.source, change.clone())),
            _ => None,
        })
        .collect();
    let change = |path: &str, change, tool: &str, id: &str| {
        let (tool, call_id) = (Some(tool.to_owned()), Some(id.to_owned()));
        let change = FileChange { path: path.to_owned(), change, tool, call_id, diff: None, verified: false };
        (Source::Derived, change)
    };
    assert_eq!(
        changes,
        [
            change("new.txt", Change::Created, "write_file", "w"),
            change("old.txt", Change::Modified, "replace", "r"),
            change("empty.txt", Change::Created, "replace", "e"),
            change("new.txt", Change::Modified, "replace", "again"),
        ]
    );
    assert_eq!(
        outcome.files,
        [
            file("new.txt", Change::Created, Some("replace"), false),
            file("old.txt", Change::Modified, Some("replace"), false),
            file("empty.txt", Change::Created, Some("replace"), false),
        ]
    );
}

#[test]
fn the_disk_decides_whether_a_claim_is_true() {
    let lines =
        [call("write_file", "w", json!({"file_path": "a"})), success("w"), delta("Written."), result()];
    for (fact, change, verified) in [
        (DiskFact::Created, Change::Created, true),
        (DiskFact::Modified, Change::Modified, true),
        (DiskFact::Untouched, Change::Modified, false), // a cancelled write says success, C-44
        (DiskFact::Unknown, Change::Created, false),
    ] {
        let (mut interpreter, mut out) = (with_disk(), Vec::new());
        out.extend(feed(&mut interpreter, &lines[..2]));
        assert_eq!((interpreter.wanted_file(), out.len()), (Some("a"), 1));
        interpreter.feed(disk_says(fact), &mut out);
        assert_eq!((interpreter.wanted_file(), out.len()), (None, 3));
        let (_, outcome) = conclude(interpreter, &lines[2..], Exit::Code(0));
        assert_eq!(outcome.files, [file("a", change, Some("write_file"), verified)], "{fact:?}");
    }
}

#[test]
fn the_disk_at_the_end_counts_and_adds_what_nobody_claimed() {
    let (mut interpreter, mut out) = (with_disk(), Vec::new());
    out.extend(feed(&mut interpreter, &[call("write_file", "w", json!({"file_path": "a"})), success("w")]));
    let seen = |interpreter: &Interpreter| {
        interpreter.claimed_files().iter().map(|file| (file.change, file.verified)).collect::<Vec<_>>()
    };
    interpreter.feed(disk_says(DiskFact::Modified), &mut out);
    assert_eq!(seen(&interpreter), [(Change::Modified, true)]);
    let mut after = Vec::new();
    for state in [DiskFact::Created, DiskFact::Unknown, DiskFact::Untouched, DiskFact::Modified] {
        interpreter.feed(disk_says(state), &mut out);
        after.extend(seen(&interpreter));
    }
    assert_eq!(
        after,
        [(Change::Created, true), (Change::Created, true), (Change::Created, false), (Change::Created, true)]
    );
    interpreter.found_on_disk("b".into(), Change::Deleted, &mut out);
    interpreter.found_on_disk("b".into(), Change::Created, &mut out);
    assert_eq!(interpreter.claimed_files()[1..], [file("b", Change::Created, None, true)]);
    let change = FileChange {
        path: "b".into(),
        change: Change::Deleted,
        tool: None,
        call_id: None,
        diff: None,
        verified: true,
    };
    assert_eq!(
        out[out.len() - 2],
        Event { seq: 3, at: out[2].at, source: Source::Derived, kind: EventKind::FileChange(change) }
    );
}

#[test]
fn an_output_that_is_a_unified_diff_becomes_the_diff() {
    // C-31; the experimental agent loop of the CLI prints those.
    let diff = "Index: a\n--- a\told\n+++ a\tnew\n@@ -1 +1 @@\n-x\n+y\n";
    for (printed, expected) in [
        (diff, Some(diff)),
        ("--- a\n+++ b\n", None),
        ("--- a\n@@ -1 +1 @@\n", None),
        ("Wrote the file", None),
        ("", None),
    ] {
        let lines = [call("replace", "r", json!({"file_path": "a"})), output("r", printed)];
        let (_, outcome) = interpret(&lines, Exit::Code(0));
        assert_eq!(outcome.files[0].diff.as_deref(), expected, "{printed}");
    }
}

#[test]
fn other_tools_are_cards_of_their_own_and_no_commands() {
    // C-48
    let lines = [
        call("web_fetch", "f", json!({"prompt": "http://x/"})),
        call("google_web_search", "s", json!({"query": "q"})),
        call("read_file", "r", json!({"file_path": "a"})),
        call("mcp_files_read", "m", json!({})),
        call("invented", "u", json!({})),
        success("f"),
        success("s"),
        success("r"),
        success("m"),
        success("u"),
        delta("Read."),
        result(),
    ];
    let (events, outcome) = interpret(&lines, Exit::Code(0));
    let classes: Vec<Class> = events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::ToolCall { class, .. } => Some(class),
            _ => None,
        })
        .collect();
    assert_eq!(
        classes,
        [Class::SearchFetch, Class::SearchFetch, Class::FileRead, Class::Mcp, Class::Unknown]
    );
    assert!(events.iter().all(|event| event.source == Source::Stream
        || matches!(event.kind, EventKind::Usage(_) | EventKind::Finished { .. })));
    assert_eq!((outcome.tool_calls, outcome.commands.len(), outcome.files.len()), (5, 0, 0));
}

#[test]
fn a_result_without_its_call_is_kept_without_a_name() {
    let (events, outcome) = interpret(&[output("nobody", "x"), delta("ok"), result()], Exit::Code(0));
    assert_eq!(said(&events)[0], (Source::Stream, answered("nobody", "", "x")));
    assert!(outcome.is_success());
}

#[test]
fn the_final_text_begins_after_the_last_tool_result() {
    let lines = [
        delta("Reading. "),
        call("read_file", "r", json!({})),
        success("r"),
        delta("Final "),
        delta("answer."),
        result(),
    ];
    let (_, outcome) = interpret(&lines, Exit::Code(0));
    assert_eq!((outcome.text.all(), outcome.text.last()), ("Reading. Final answer.", "Final answer."));
}

#[test]
fn warnings_before_a_success_leave_it_a_success() {
    // C-38, C-46
    let lines = [
        delta("again and again"),
        problem("warning", "Loop detected, stopping execution"),
        problem("warning", "Loop detected, stopping execution"),
        result(),
    ];
    let (events, outcome) = interpret(&lines, Exit::Code(0));
    let looped = "Loop detected, stopping execution";
    assert_eq!(
        said(&events)[..3],
        [text("again and again"), warning(Source::Stream, looped), warning(Source::Stream, looped)]
    );
    assert_eq!((outcome.is_success(), &outcome.warnings), (true, &vec![looped.to_owned()]));
}

#[test]
fn a_prompt_file_that_the_model_could_not_read_is_a_warning() {
    let asks = |path: &str| {
        [
            json!({"type": "message", "role": "user", "content": "Process the prompt in /far/p.md"}),
            call("read_file", "1", json!({"file_path": path})),
            failed("1", "path_not_in_workspace", "Path not in workspace"),
            delta("Sorry."),
            result(),
        ]
    };
    let warning = "The model could not read the prompt in /far/p.md: Path not in workspace";
    assert_eq!(interpret(&asks("/far/p.md"), Exit::Code(0)).1.warnings, [warning]);
    // Another file is the model's own business.
    assert_eq!(interpret(&asks("/far/other.md"), Exit::Code(0)).1.warnings, [""; 0]);
}

#[test]
fn call_of_a_tool_that_the_caller_denied_is_a_warning_that_says_so() {
    let error = ToolError { kind: "tool_not_registered".to_owned(), message: String::new() };
    let denied = ["run_shell_command".to_owned(), "search_file_content".to_owned()];
    let end = ToolEnd::shown(Class::Unknown, false, None, Some(error));
    let said = |name: &str| derive::refusal(name, &end, &denied);
    for name in ["run_shell_command", "grep_search"] {
        let text =
            format!("The model asked for {name}, which was not offered to it: `deny_tool` {name} denies it");
        assert_eq!(said(name), Some(text));
    }
    assert!(said("write_file").unwrap().contains("`approval` auto-edit or yolo"));
}

#[test]
fn refused_calls_are_warnings_that_say_what_to_type() {
    let asked = "requires user confirmation, which is not supported in non-interactive mode.";
    let cases = [
        (
            "write_file",
            "tool_not_registered",
            "Tool \"write_file\" not found.",
            "The model asked for write_file, which was not offered to it; `approval` auto-edit or yolo offers it, unless it is denied",
        ),
        (
            "run_shell_command",
            "tool_not_registered",
            "",
            "The model asked for run_shell_command, which was not offered to it; `approval` yolo offers it, unless it is denied",
        ),
        (
            "save_memory",
            "tool_not_registered",
            "",
            "The model asked for save_memory, which was not offered to it",
        ),
        (
            "run_shell_command",
            "policy_violation",
            "Tool execution denied by policy.",
            "A call of run_shell_command was denied by policy",
        ),
        (
            "web_fetch",
            "unhandled_exception",
            asked,
            "A call of web_fetch needed approval, and nobody can be asked; `allow_tool` web_fetch would allow it",
        ),
        ("read_file", "stop_execution", "enough for today", "A hook stopped the agent: enough for today"),
    ];
    for (name, kind, message, expected) in cases {
        let twice = [
            call(name, "1", json!({"command": "x", "file_path": "a"})),
            call(name, "2", json!({"command": "x", "file_path": "a"})),
            failed("1", kind, message),
            failed("2", kind, message),
            delta("Sorry."),
            result(),
        ];
        let (events, outcome) = interpret(&twice, Exit::Code(0));
        let derived: Vec<_> =
            said(&events).into_iter().filter(|(source, _)| *source == Source::Derived).collect();
        assert_eq!(derived[0], warning(Source::Derived, expected), "{name} {kind}");
        assert!(matches!(derived[1..], [(_, EventKind::Usage(_))]), "{name} {kind}");
        assert_eq!(
            (outcome.is_success(), &outcome.warnings, outcome.commands.len(), outcome.files.len()),
            (true, &vec![expected.to_owned()], 0, 0),
            "{name} {kind}"
        );
    }
}

#[test]
fn an_ordinary_tool_error_is_no_warning_and_no_failure() {
    let lines = [
        call("read_file", "r", json!({"file_path": "gone"})),
        failed("r", "file_not_found", "File not found: gone"),
        call("run_shell_command", "c", json!({"command": "x"})),
        failed("c", "shell_execute_error", "spawn failed"),
        delta("It is gone."),
        result(),
    ];
    let (_, outcome) = interpret(&lines, Exit::Code(0));
    assert_eq!((outcome.is_success(), outcome.warnings.len(), outcome.commands.len()), (true, 0, 1));
}

#[test]
fn a_second_result_is_a_warning_and_one_of_error_takes_a_success_back() {
    let error = json!({"type": "result", "status": "error", "error": {"type": "Error", "message": "late"}});
    let (_, outcome) = interpret(&[delta("Hi."), result(), error.clone()], Exit::Code(0));
    assert_eq!(
        (failure(&outcome), &outcome.warnings, outcome.usage.all.total),
        (
            Some((FailureKind::InvalidResponse, "late")),
            &vec!["Gemini CLI wrote a second result (error); the run is no success".to_owned()],
            124
        )
    );
    let (_, outcome) = interpret(&[delta("Hi."), error, result()], Exit::Code(0));
    assert_eq!(
        (failure(&outcome), &outcome.warnings),
        (
            Some((FailureKind::InvalidResponse, "late")),
            &vec!["Gemini CLI wrote a second result (success); the first one counts".to_owned()]
        )
    );
    let (_, outcome) = interpret(&[delta("Hi."), result(), result()], Exit::Code(0));
    assert_eq!((failure(&outcome), outcome.warnings.len()), (None, 1));
}

#[test]
fn a_second_result_that_answers_a_stop_does_not_take_the_first_one_back() {
    let mut out = Vec::new();
    let mut interpreter = Interpreter::new();
    let error = json!({"type": "result", "status": "error", "error": {"type": "FatalCancellationError", "message": "^C"}});
    out.extend(feed(&mut interpreter, &[delta("Hi."), result()]));
    interpreter.feed(Input::Stop(Stop::NoExit), &mut out);
    interpreter.line(error.to_string().as_bytes(), &mut out);
    assert!(interpreter.conclude(&end(Exit::Code(130)), &mut out).is_success());
}

#[test]
fn an_error_or_a_result_in_a_shape_that_nobody_knows_is_no_success() {
    let no_severity = json!({"type": "error", "message": "broken"});
    let odd_severity = json!({"type": "error", "severity": "catastrophe", "message": "broken"});
    let number = json!({"type": "error", "severity": 3, "message": "broken"});
    for error in [no_severity, odd_severity, number] {
        let (events, outcome) = interpret(&[error.clone(), delta("Hi."), result()], Exit::Code(0));
        assert_eq!(failure(&outcome), Some((FailureKind::InvalidResponse, "broken")), "{error}");
        let told = EventKind::Error { message: "broken".into() };
        assert!(events.iter().any(|event| event.kind == told), "{error}");
    }
    let (_, outcome) = interpret(&[delta("Hi."), json!({"type": "error"}), result()], Exit::Code(0));
    assert!(!outcome.is_success());
    for broken in [json!({"type": "result"}), json!({"type": "result", "status": 1})] {
        for lines in [[broken.clone(), result()], [result(), broken.clone()]] {
            let lines: Vec<_> = std::iter::once(delta("Hi.")).chain(lines).collect();
            let (_, outcome) = interpret(&lines, Exit::Code(0));
            assert!(!outcome.is_success(), "{lines:?}");
            assert!(outcome.warnings[0].contains("a result that cannot be read"), "{:?}", outcome.warnings);
        }
    }
    let (_, outcome) = interpret(&[json!({"type": "message"}), delta("Hi."), result()], Exit::Code(0));
    assert!(outcome.is_success());
}

#[test]
fn a_line_that_was_too_long_is_a_warning_and_no_success_where_it_may_have_been_the_result() {
    let judged = |before: &[Value], sample: &str, after: &[Value]| {
        let (mut out, mut interpreter) = (Vec::new(), Interpreter::new());
        out.extend(feed(&mut interpreter, before));
        interpreter.too_long(sample.into(), 99, &mut out);
        out.extend(feed(&mut interpreter, after));
        let outcome = interpreter.conclude(&end(Exit::Code(0)), &mut out);
        assert_eq!((outcome.malformed.lines, outcome.malformed.bytes), (1, 99));
        (outcome.is_success(), outcome.warnings.join("\n"))
    };
    let (before, after) = ([delta("Hi.")], [result()]);
    let whole = [delta("Hi."), result()];
    let missing = |what: &str| format!("A line of 99 bytes was too long to be read: {what}");
    let message = r#"{"type":"message","timestamp":"2026"#;
    assert_eq!(judged(&before, message, &after), (true, missing("a part of the text is missing")));
    assert_eq!(judged(&whole, message, &[]), (true, missing("a part of the text is missing")));
    let tool = r#"{"type":"tool_result","#;
    assert_eq!(judged(&before, tool, &after), (true, missing("the result of a tool call is missing")));
    assert_eq!(judged(&before, "xxxx", &after), (true, missing("what it said is missing")));
    assert!(!judged(&whole, "xxxx", &[]).0);
    assert!(!judged(&before, "xxxx", &[]).0);
    for odd in [r#"{"type":"result","status":"success""#, r#"{"type":"error","severity":"warning""#] {
        assert!(!judged(&before, odd, &after).0, "{odd}");
        assert!(!judged(&whole, odd, &[]).0, "{odd}");
    }
}

fn failure(outcome: &Outcome) -> Option<(FailureKind, &str)> {
    outcome.failure.as_ref().map(|failure| (failure.kind, failure.message.as_str()))
}

#[test]
fn output_after_the_result_is_kept_as_events() {
    let lines = [delta("Hi."), result(), delta(" More."), json!("text"), json!({"type": "farewell"})];
    let (events, outcome) = interpret(&lines, Exit::Code(0));
    assert_eq!(
        said(&events)[1..4],
        [
            text(" More."),
            (Source::Stream, EventKind::Malformed { sample: "\"text\"".into(), bytes: 6 }),
            (Source::Stream, EventKind::Unknown { raw: json!({"type": "farewell"}) }),
        ]
    );
    assert_eq!((outcome.is_success(), outcome.text.all()), (true, "Hi. More."));
}

#[test]
fn an_answer_that_was_cut_off_is_a_failure_with_its_reason_and_the_text_so_far() {
    let judged = |reason: Option<&str>, lines: &[Value]| {
        let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
        out.extend(feed(&mut interpreter, lines));
        interpreter.feed(Input::FinishReason(reason.map(str::to_owned)), &mut out);
        interpreter.conclude(&end(Exit::Code(0)), &mut out)
    };
    let lines = [delta("Once upon a ti"), result()];
    for (reason, message) in [
        (Some("MAX_TOKENS"), "The answer was cut off at the limit of output tokens (MAX_TOKENS)"),
        (Some("SAFETY"), "The answer was cut off by a content filter (SAFETY)"),
        (Some("OTHER"), "The answer ended early (OTHER)"),
        (None, "The answer ended without a finish reason"),
    ] {
        let outcome = judged(reason, &lines);
        assert_eq!(failure(&outcome), Some((FailureKind::InvalidResponse, message)));
        assert_eq!((outcome.finish_reason.as_deref(), outcome.text.all()), (reason, "Once upon a ti"));
        let json = serde_json::to_value(&*outcome).unwrap();
        assert_eq!(json["finish_reason"], json!(reason));
        assert_eq!(serde_json::from_value::<Outcome>(json).unwrap().finish_reason, outcome.finish_reason);
    }
    let whole = judged(Some("STOP"), &lines);
    assert_eq!((whole.is_success(), whole.finish_reason.as_deref()), (true, Some("STOP")));
    // What the CLI calls an error keeps its own words, and gets the reason.
    let blocked = judged(Some("SAFETY"), &[delta("x"), problem("error", "blocked"), result()]);
    assert_eq!(failure(&blocked), Some((FailureKind::InvalidResponse, "blocked")));
    assert_eq!(blocked.finish_reason.as_deref(), Some("SAFETY"));
}

#[test]
fn a_success_without_a_source_of_the_finish_reason_has_a_warning() {
    let judged = |inputs: &[Input<'static>], lines: &[Value]| {
        let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
        inputs.iter().for_each(|input| interpreter.feed(input.clone(), &mut out));
        out.extend(feed(&mut interpreter, lines));
        let outcome = interpreter.conclude(&end(Exit::Code(0)), &mut out);
        let told = out.iter().filter(|event| matches!(event.kind, EventKind::Warning { .. })).count();
        assert_eq!(told, outcome.warnings.len());
        outcome
    };
    let lines = [delta("Once upon a ti"), result()];
    let unavailable = Input::FinishReasonUnavailable;
    let outcome = judged(std::slice::from_ref(&unavailable), &lines);
    assert!(outcome.is_success() && outcome.finish_reason.is_none());
    assert_eq!(outcome.warnings, [crate::judge::finish::UNAVAILABLE]);
    // A reason that came all the same counts, and a failure needs no such warning.
    let told = Input::FinishReason(Some("STOP".to_owned()));
    assert!(judged(&[unavailable.clone(), told], &lines).warnings.is_empty());
    assert!(judged(&[unavailable], &[delta("x"), problem("error", "broken"), result()]).warnings.is_empty());
    assert!(judged(&[], &lines).warnings.is_empty());
}

#[test]
fn an_error_after_the_result_undoes_the_success() {
    let (_, outcome) = interpret(&[delta("Hi."), result(), problem("error", "broken")], Exit::Code(0));
    assert_eq!(
        outcome.failure.as_ref().map(|failure| (failure.kind, failure.message.as_str())),
        Some((FailureKind::InvalidResponse, "broken"))
    );
}

#[test]
fn lines_that_are_no_events_are_counted_and_shown_safely() {
    // A-27, A-28
    let mut out = Vec::new();
    let mut interpreter = Interpreter::new();
    for line in [&b"[STARTUP] Phase"[..], b"{\"type\":\"init\"", b"\xff\xfe", b"\x1b[31mred", b"[]", b"{}"] {
        interpreter.line(line, &mut out);
    }
    interpreter.malformed("xxx".into(), u64::MAX, &mut out);
    let outcome = interpreter.conclude(&end(Exit::Unknown), &mut out);
    let malformed =
        |sample: &str, bytes| (Source::Stream, EventKind::Malformed { sample: sample.to_owned(), bytes });
    assert_eq!(
        said(&out),
        [
            malformed("[STARTUP] Phase", 15),
            malformed("{\"type\":\"init\"", 14),
            malformed("\u{fffd}\u{fffd}", 2),
            malformed("\\u{1b}[31mred", 8),
            malformed("[]", 2),
            (Source::Stream, EventKind::Unknown { raw: json!({}) }),
            malformed("xxx", u64::MAX),
        ]
    );
    assert_eq!(outcome.malformed, crate::Malformed { lines: 6, bytes: u64::MAX });
}

#[test]
fn silence_is_borne_only_while_a_tool_of_this_turn_is_open() {
    let mut interpreter = Interpreter::new();
    let mut feed = |line: Value| {
        interpreter.line(line.to_string().as_bytes(), &mut Vec::new());
        interpreter.tool_open()
    };
    let opened = [
        feed(delta("Let me see.")),
        feed(call("read_file", "lost", json!({}))), // the CLI asked again and this call never comes back
        feed(call("read_file", "a", json!({}))),
        feed(call("read_file", "b", json!({}))),
        feed(success("b")),
        feed(success("a")),
        feed(delta("Now the next.")),
        feed(call("read_file", "c", json!({}))),
        feed(success("lost")),
        feed(success("c")),
        feed(success("c")),
        feed(call("read_file", "d", json!({}))),
        feed(call("read_file", "d", json!({}))),
        feed(success("d")),
    ];
    assert_eq!(
        opened,
        [false, true, true, true, true, true, false, true, true, false, false, true, true, false]
    );
}

#[test]
fn only_tools_that_ran_or_may_still_run_can_have_changed_files() {
    let changed = |lines: &[Value]| {
        let mut interpreter = Interpreter::new();
        for line in lines {
            interpreter.line(line.to_string().as_bytes(), &mut Vec::new());
        }
        interpreter.may_have_changed_files()
    };
    let shell = call("run_shell_command", "c", json!({"command": "x"}));
    assert!(!changed(&[call("read_file", "r", json!({})), success("r")]));
    assert!(changed(std::slice::from_ref(&shell)));
    assert!(changed(&[shell.clone(), success("c")]));
    assert!(!changed(&[shell.clone(), failed("c", "tool_not_registered", "")]));
    assert!(!changed(&[shell.clone(), failed("c", "policy_violation", "")]));
    assert!(changed(&[shell, failed("c", "shell_execute_error", "")]));
    assert!(changed(&[call("invented", "i", json!({})), success("i")]));
}

#[test]
fn the_verdict_waits_for_the_result_and_time_comes_from_the_best_source() {
    let duration = |lines: &[Value], measured| {
        let mut out = Vec::new();
        let mut interpreter = Interpreter::new();
        lines.iter().for_each(|line| interpreter.line(line.to_string().as_bytes(), &mut out));
        let end = End { exit: Exit::Code(0), stderr: String::new(), duration_ms: measured };
        (interpreter.has_result(), interpreter.conclude(&end, &mut out).duration_ms)
    };
    assert_eq!(duration(&[init(), delta("x"), result()], Some(5000)), (true, 5000));
    assert_eq!(duration(&[init(), delta("x"), result()], None), (true, 164));
    assert_eq!(duration(&[init(), delta("x")], None), (false, 401));
    assert_eq!(duration(&[delta("x"), init()], None), (false, 0));
    assert_eq!(duration(&[], None), (false, 0));
}

#[test]
fn a_result_waits_longer_for_a_session_file_that_speaks() {
    let spoken =
        Fact::Thought { message: "m".into(), at: None, subject: "Yes".into(), text: "I am here".into() };
    let exit_code_at = |spoken: Option<&Fact>, late: i64| {
        let mut out = Vec::new();
        let mut interpreter = Interpreter::with(Witnesses { session: true, disk: false });
        interpreter.feed(Input::Time(Timestamp::from_millis(0)), &mut out);
        let shell = call("run_shell_command", "c", json!({"command": "false"}));
        spoken.into_iter().for_each(|fact| interpreter.feed(Input::Fact(fact.clone()), &mut out));
        [init(), shell, success("c")]
            .iter()
            .for_each(|line| interpreter.line(line.to_string().as_bytes(), &mut out));
        interpreter.feed(Input::Time(Timestamp::from_millis(late)), &mut out);
        let fact = Box::new(crate::ToolFact { exit_code: Some(7), ..crate::ToolFact::default() });
        let fact = Fact::Tool { message: "m".into(), id: "c".into(), fact, call: None };
        interpreter.feed(Input::Fact(fact), &mut out);
        interpreter.line(result().to_string().as_bytes(), &mut out);
        interpreter.conclude(&end(Exit::Code(0)), &mut out).commands[0].exit_code
    };
    assert_eq!(exit_code_at(None, 900), Some(7));
    assert_eq!(exit_code_at(None, 1_100), None);
    assert_eq!(exit_code_at(Some(&spoken), 3_900), Some(7));
    assert_eq!(exit_code_at(Some(&spoken), 4_100), None);
}

#[test]
fn events_without_a_time_get_the_readers() {
    let mut out = Vec::new();
    let mut interpreter = Interpreter::default();
    interpreter.feed(Input::Time(Timestamp::from_millis(7)), &mut out);
    interpreter.line(b"garbage", &mut out);
    interpreter.warn("careful", &mut out);
    interpreter.warn("careful", &mut out);
    assert_eq!(
        out.iter().map(|event| (event.seq, event.at.as_millis())).collect::<Vec<_>>(),
        [(0, 7), (1, 7)]
    );
}

#[test]
fn without_statistics_the_model_that_was_asked_for_is_named() {
    let bare = json!({"type": "result", "status": "success"});
    let (_, outcome) = interpret(&[init(), delta("x"), bare], Exit::Code(0));
    assert_eq!((outcome.is_success(), &outcome.models), (true, &vec!["auto".to_owned()]));
}

#[test]
fn text_beyond_the_limit_is_cut_and_said() {
    let big = "x".repeat(Text::LIMIT);
    let (_, outcome) = interpret(&[delta(&big), delta("y"), result()], Exit::Code(0));
    assert!(outcome.is_success() && outcome.text.truncated());
    assert_eq!(outcome.text.all().len(), Text::LIMIT);
    assert_eq!(outcome.warnings, ["The text is longer than 8388608 bytes and was cut"]);
}

#[test]
fn a_success_without_a_last_word_is_a_warning_unless_something_explains_it() {
    let tool = [call("read_file", "r", json!({})), success("r")];
    let silent = "The model said nothing after its last tool result";
    let (_, outcome) = interpret(&[&tool[..], &[result()]].concat(), Exit::Code(0));
    assert_eq!((outcome.is_success(), &outcome.warnings), (true, &vec![silent.to_owned()]));
    let looped = problem("warning", "Loop detected, stopping execution");
    let (_, outcome) = interpret(&[&tool[..], &[looped, result()]].concat(), Exit::Code(0));
    assert_eq!(outcome.warnings, ["Loop detected, stopping execution"]);
    let (_, outcome) = interpret(&[&tool[..], &[result()]].concat(), Exit::Code(1));
    assert_eq!((outcome.is_success(), outcome.warnings.len()), (false, 0));
}

#[test]
fn what_is_kept_has_limits() {
    let mut out = Vec::new();
    let mut interpreter = Interpreter::new();
    let mut feed = |line: Value| {
        interpreter.line(line.to_string().as_bytes(), &mut out);
        out.clear();
    };
    let long = "o".repeat(65 << 10);
    for number in 0..70 {
        feed(call("run_shell_command", "c", json!({"command": format!("echo {number}")})));
        feed(output("c", &long));
        feed(problem("warning", &format!("w{number} {long}")));
    }
    for number in 0..20_001 {
        feed(call("write_file", "w", json!({"file_path": format!("f{number}")})));
        feed(success("w"));
    }
    for number in 0..10_000 {
        feed(call("run_shell_command", "c", json!({"command": format!("echo {number}")})));
        feed(output("c", "short"));
    }
    for number in 0..2_000 {
        feed(problem("warning", &format!("w{number}")));
        feed(call("run_shell_command", &format!("open{number}"), json!({"command": "x"})));
    }
    feed(call("run_shell_command", "huge", json!({"command": "y".repeat(5 << 20)})));
    feed(output("huge", "done"));
    feed(delta("Done."));
    feed(result());
    let outcome = interpreter.conclude(&end(Exit::Code(0)), &mut out);
    let outputs: Vec<_> = outcome.commands.iter().filter_map(|run| run.output.as_ref()).collect();
    assert_eq!(outputs.first().map(|output| output.len()), Some(64 << 10));
    assert!(outputs.iter().map(|output| output.len()).sum::<usize>() <= 4 << 20);
    assert_eq!(
        (outcome.commands.len(), outcome.files.len(), outcome.warnings.len(), outcome.tool_calls),
        (10_000, 20_000, 1_001, 32_072)
    );
    assert!(outcome.warnings.iter().all(|warning| warning.len() <= 4 << 10));
    for said in [
        "Not all changed files are listed: there are too many",
        "Not all commands are listed: there are too many",
        "Further warnings are left out: there are more than 1000",
    ] {
        assert!(outcome.warnings.iter().any(|warning| warning == said), "{said}");
    }
}

#[test]
fn a_report_gives_the_same_form_as_the_stream() {
    // C-42
    let report = json!({
        "session_id": "s-1", "response": "Final answer.", "warnings": ["Loop detected, stopping execution"],
        "stats": {"models": {"gemini-2.5-flash": {"api": {"totalRequests": 3}, "tokens": {
            "input": 70, "prompt": 100, "candidates": 4, "total": 127, "cached": 30, "thoughts": 20, "tool": 3}}},
            "tools": {"totalCalls": 2}},
    })
    .to_string();
    let mut out = Vec::new();
    let mut interpreter = Interpreter::new();
    interpreter.report(alhena_wire::report::find_report(report.as_bytes()).unwrap().report, &mut out);
    let outcome = interpreter.conclude(&end(Exit::Code(0)), &mut out);
    let tokens = crate::Tokens { prompt: 100, cached: 30, output: 4, thoughts: 20, tool: 3, total: 127 };
    let usage = Usage::of_models([("gemini-2.5-flash", tokens)]);
    assert_eq!(
        said(&out),
        [
            (Source::Stream, EventKind::Started { session_id: "s-1".into(), model: String::new() }),
            text("Final answer."),
            warning(Source::Stream, "Loop detected, stopping execution"),
            (Source::Derived, EventKind::Usage(crate::CallUsage { call: None, usage: usage.clone() })),
        ]
    );
    let expected = Outcome {
        status: crate::Status::Success,
        text: Text::whole("Final answer."),
        session_id: Some("s-1".into()),
        models: vec!["gemini-2.5-flash".into()],
        usage,
        model_calls: 3,
        tool_calls: 2,
        warnings: vec!["Loop detected, stopping execution".into()],
        exit_code: Some(0),
        reported: Some(crate::Reported::Success),
        ..Outcome::default()
    };
    assert_eq!(*outcome, expected);
}

#[test]
fn a_report_hides_the_turn_limit_among_its_warnings() {
    let report = br#"{"response":"half","warnings":["Maximum session turns exceeded"]}"#;
    let mut out = Vec::new();
    let mut interpreter = Interpreter::new();
    interpreter.report(alhena_wire::report::find_report(report).unwrap().report, &mut out);
    let outcome = interpreter.conclude(&end(Exit::Code(0)), &mut out);
    assert_eq!(
        (outcome.failure.as_ref().map(|failure| failure.kind), outcome.warnings.len()),
        (Some(FailureKind::TurnLimit), 0)
    );
}

/// What a run costs by the table, of which the session file tells these calls.
fn costing(prices: Option<&str>, calls: &[Fact]) -> std::sync::Arc<Outcome> {
    costing_within(prices, None, calls)
}

/// The same within limits.
fn costing_within(
    prices: Option<&str>,
    limits: Option<crate::SpendingLimits>,
    calls: &[Fact],
) -> std::sync::Arc<Outcome> {
    let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
    if let Some(limits) = limits {
        interpreter.feed(Input::SpendingLimits(limits), &mut out);
    }
    if let Some(prices) = prices {
        interpreter.feed(Input::Prices(Box::new(Prices::read(prices).unwrap())), &mut out);
    }
    out.extend(feed(&mut interpreter, &[init(), prompt(), delta("Hello.")]));
    calls.iter().for_each(|call| interpreter.feed(Input::Fact(call.clone()), &mut out));
    interpreter.line(result().to_string().as_bytes(), &mut out);
    interpreter.conclude(&end(Exit::Code(0)), &mut out)
}

const TIERED: &str = r#"{"date": "d", "currency": "USD", "per_tokens": 1, "models": {"gemini-2.5-flash":
    {"input": 1.0, "output": 10.0, "above": {"prompt": 60, "input": 2.0, "output": 20.0}}}}"#;

fn taken(prompt: u64, output: u64) -> crate::Tokens {
    crate::Tokens { prompt, output, total: prompt + output, ..crate::Tokens::default() }
}

#[test]
fn a_run_costs_what_its_calls_cost_one_by_one() {
    let model = || "gemini-2.5-flash".to_owned();
    let own = Fact::Usage {
        message: "m".into(),
        model: model(),
        tokens: crate::Tokens { cached: 30, ..taken(70, 1) },
    };
    let of_agent = Fact::UsageAside { model: model(), tokens: taken(20, 2) };
    let outcome = costing(Some(TIERED), &[own, of_agent]);
    // 70 * 2 + 1 * 20, 20 * 1 + 2 * 10, and what nobody told one by one: 10 * 1 + (1 + 20) * 10
    assert_eq!((outcome.cost_usd, outcome.cost_is_lower_bound), (Some(160.0 + 40.0 + 220.0), false));
    assert_eq!((outcome.usage.cost_usd, outcome.model_calls), (outcome.cost_usd, 2));
}

#[test]
fn a_cost_that_is_not_known_is_absent_and_one_that_may_be_more_says_so() {
    assert_eq!(costing(None, &[]).cost_usd, None);
    for prices in [TIERED.replace("gemini-2.5-flash", "another"), TIERED.replace("USD", "EUR")] {
        let outcome = costing(Some(&prices), &[]);
        assert_eq!(outcome.cost_usd, None, "{prices}");
        assert!(!serde_json::to_string(&*outcome).unwrap().contains("cost_usd"));
    }
    let outcome = costing(Some(TIERED), &[]);
    assert_eq!((outcome.cost_usd, outcome.cost_is_lower_bound), (Some(100.0 + 240.0), true));
}

#[test]
fn an_outcome_that_exceeds_a_limit_is_a_failure_and_one_that_meets_it_is_not() {
    let calls = [Fact::Usage { message: "m".into(), model: "gemini-2.5-flash".into(), tokens: taken(70, 1) }];
    let all = costing(None, &calls);
    let (tokens, made) = (all.usage.all.total, all.model_calls);
    let limits =
        |tokens, calls| crate::SpendingLimits { tokens: Some(tokens), dollars: None, calls: Some(calls) };
    for (limits, why) in [
        (limits(tokens, made), None),
        (
            limits(tokens - 1, made),
            Some(format!("The budget was exceeded: {tokens} of {} tokens", tokens - 1)),
        ),
        (limits(tokens, 0), Some(format!("The budget was exceeded: {made} of 0 model calls"))),
    ] {
        let outcome = costing_within(None, Some(limits), &calls);
        assert_eq!(outcome.failure.as_ref().map(|failure| failure.message.clone()), why);
        assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), why.map(|_| FailureKind::Budget));
    }
    let dear = crate::SpendingLimits { dollars: Some(1.0), ..Default::default() };
    assert!(costing_within(Some(TIERED), Some(dear), &calls).failure.is_some());
    let cheap = crate::SpendingLimits { dollars: Some(1e6), ..Default::default() };
    assert_eq!(costing_within(Some(TIERED), Some(cheap), &calls).failure, None);
}

#[test]
fn prices_that_are_asked_for_count_more_than_those_of_the_recording() {
    let dear = Prices::read(&TIERED.replace("1.0", "3.0")).unwrap();
    let cost = |mut interpreter: Interpreter| {
        let mut out = Vec::new();
        interpreter.feed(Input::Prices(Box::new(Prices::read(TIERED).unwrap())), &mut out);
        interpreter.line(result().to_string().as_bytes(), &mut out);
        interpreter.conclude(&end(Exit::Code(0)), &mut out).cost_usd
    };
    assert_eq!(cost(Interpreter::new().with_prices(dear.clone())), Some(340.0));
    assert_eq!(cost(Interpreter::new().only_by_prices(dear)), Some(540.0));
}

#[test]
fn an_attempt_that_is_followed_by_another_is_told_once_and_what_both_took_is_summed() {
    let stats = |total: u64| {
        json!({"total_tokens": total, "input_tokens": total, "output_tokens": 0, "cached": 0, "duration_ms": 1, "tool_calls": 0,
            "models": {"m": {"total_tokens": total, "input_tokens": total, "output_tokens": 0, "cached": 0}}})
    };
    let limited = json!({"type": "result", "status": "error", "stats": stats(7),
        "error": {"type": "unknown", "message": "[API Error: Too many\nSuggested retry after 2s.]"}});
    let init = |model: &str| json!({"type": "init", "session_id": "s", "model": model});
    let say = |text: &str| json!({"type": "message", "role": "assistant", "content": text, "delta": true});
    let done = json!({"type": "result", "status": "success", "stats": stats(5)});
    let end = |code| End { exit: Exit::Code(code), stderr: String::new(), duration_ms: Some(1) };
    let mut interpreter = Interpreter::new();
    let mut out = Vec::new();
    interpreter.feed(Input::MayGoOn, &mut out);
    out.extend(feed(&mut interpreter, &[init("a"), say("one "), limited]));
    let failure = interpreter.would_fail_of(&end(173), &mut out).unwrap();
    assert_eq!((failure.kind, failure.retry_after_ms), (FailureKind::RateLimited, Some(2000)));
    assert!(interpreter.was_answered());
    interpreter.feed(Input::GoesOn, &mut out);
    assert!(!interpreter.was_answered() && !interpreter.has_result());
    out.extend(feed(&mut interpreter, &[init("b"), say("two"), done]));
    let outcome = interpreter.conclude(&end(0), &mut out);
    assert_eq!((outcome.status, outcome.failure.as_ref()), (crate::Status::Success, None));
    assert_eq!((outcome.usage.all.total, outcome.usage.models["m"].total), (12, 12));
    assert_eq!(outcome.text.all(), "one two");
    let kinds: Vec<bool> = out.iter().map(|event| matches!(event.kind, EventKind::Error { .. })).collect();
    assert!(!kinds.contains(&true), "{out:?}");
    let started = out.iter().filter(|event| matches!(event.kind, EventKind::Started { .. })).count();
    assert_eq!(started, 1);
    assert!(out.iter().enumerate().all(|(index, event)| event.seq == index as u64));
}

#[test]
fn an_attempt_that_stays_the_last_says_what_it_failed_of() {
    let mut interpreter = Interpreter::new();
    let mut out = Vec::new();
    interpreter.feed(Input::MayGoOn, &mut out);
    let limited = json!({"type": "result", "status": "error", "error": {"type": "unknown", "message": "[API Error: no]"}});
    interpreter.line(limited.to_string().as_bytes(), &mut out);
    assert!(out.iter().all(|event| !matches!(event.kind, EventKind::Error { .. })));
    assert_eq!(interpreter.conclude(&end(Exit::Code(173)), &mut out).exit_status(), 6);
    assert!(out.iter().any(|event| matches!(event.kind, EventKind::Error { .. })));
}
