use super::*;
use crate::event::Event;
use crate::interpret::{Input, Interpreter};

fn end(exit: Exit, stderr: &str) -> End {
    End { exit, stderr: stderr.to_owned(), duration_ms: None }
}

fn before_result(why: Stop) -> Stopped {
    Stopped { why, after_result: false }
}

fn succeeded() -> Facts {
    let result = Some(ResultFacts { success: true, error: None });
    Facts { result, answered: true, called: true, output: Output::Events, ..Facts::default() }
}

fn reported(kind: &str, message: &str, code: Option<i64>) -> Facts {
    let error = ReportedError { kind: kind.to_owned(), message: message.to_owned(), code };
    let result = Some(ResultFacts { success: false, error: Some(error) });
    Facts { result, output: Output::Events, ..Facts::default() }
}

fn failure(facts: &Facts, end: &End) -> Failure {
    let (status, failure) = verdict(facts, end);
    assert_ne!(status, Status::Success);
    failure.unwrap()
}

fn kind(facts: &Facts, exit: Exit) -> FailureKind {
    failure(facts, &end(exit, "")).kind
}

/// An error as the CLI logs it, with the class and message given and these properties behind the trace.
fn logged(error: &str, properties: &str) -> String {
    format!(
        "YOLO mode is enabled. All tool calls will be automatically approved.\n\
         Attempt 1 failed with status 500. Retrying with backoff... _ApiError: {{\"error\":{{\"code\":500}}}}\n    at x\n\
         Error when talking to Gemini API Full report available at: /tmp/gemini-client-error.json {error}\n    at f (file:///x.js:1:2)\n    at g {{\n{properties}\n}}\n"
    )
}

#[test]
fn success_needs_all_five_conditions() {
    assert_eq!(verdict(&succeeded(), &end(Exit::Code(0), "any noise")), (Status::Success, None));
    assert_eq!(verdict(&succeeded(), &end(Exit::Unknown, "")), (Status::Success, None));
    let without_result = Facts { result: None, ..succeeded() };
    let with_error = Facts { error: Some("The model response was blocked".into()), ..succeeded() };
    let silent = Facts { answered: false, ..succeeded() };
    let never_called = Facts { answered: false, called: false, ..succeeded() };
    let stopped = Facts { stop: Some(before_result(Stop::Cancelled)), ..succeeded() };
    let cases = [
        (&succeeded(), Exit::Code(1), FailureKind::Crashed),
        (&succeeded(), Exit::Signal(9), FailureKind::Crashed),
        (&without_result, Exit::Code(0), FailureKind::Crashed),
        (&without_result, Exit::Unknown, FailureKind::Crashed),
        (&with_error, Exit::Code(0), FailureKind::InvalidResponse),
        (&silent, Exit::Code(0), FailureKind::InvalidResponse),
        (&never_called, Exit::Code(0), FailureKind::Input),
        (&stopped, Exit::Code(0), FailureKind::Cancelled),
    ];
    for (facts, exit, expected) in cases {
        assert_eq!(kind(facts, exit), expected, "{exit:?}");
    }
}

#[test]
fn every_exit_code_has_its_kind_with_and_without_a_result() {
    use FailureKind::*;
    let success = succeeded();
    let error = reported("Error", "something", None);
    for code in 0..=255 {
        // What the code says when there is no result, or one of error.
        let expected = match code {
            41 => Auth,
            42 => Input,
            44 => Sandbox,
            52 => Config,
            53 => TurnLimit,
            54 => DiskFull,
            55 => Untrusted,
            127 => NotInstalled,
            130 => Cancelled,
            144 => Input,
            145 | 147 => Auth,
            173 => RateLimited,
            _ if exit::http_status(code).is_some() => Api,
            _ => Crashed,
        };
        let exit = Exit::Code(code);
        assert_eq!(kind(&Facts::default(), exit), expected, "{code} without a result");
        let with_error = if code == 0 { InvalidResponse } else { expected };
        assert_eq!(kind(&error, exit), with_error, "{code} with an error");
        match code {
            0 => assert_eq!(verdict(&success, &end(exit, "")), (Status::Success, None)),
            _ => assert_eq!(kind(&success, exit), Crashed, "{code} after a success"),
        }
        let found = failure(&error, &end(exit, ""));
        assert_eq!((found.exit_code, found.http_status), (Some(code), exit::http_status(code)));
    }
}

#[test]
fn a_death_by_signal_is_a_crash() {
    let died = failure(&Facts::default(), &end(Exit::Signal(15), ""));
    assert_eq!(
        (died.kind, died.message.as_str(), died.exit_code),
        (FailureKind::Crashed, "Gemini CLI died by signal 15 before its result", None)
    );
    let died = failure(&succeeded(), &end(Exit::Signal(11), ""));
    assert_eq!(died.message, "Gemini CLI reported success and then died by signal 11");
    // It had said why before.
    let auth = reported("unknown", "[API Error: {\"error\":{\"code\":401,\"message\":\"No\"}}]", None);
    assert_eq!(kind(&auth, Exit::Signal(9)), FailureKind::Auth);
    let wordless = Facts { result: Some(ResultFacts { success: false, error: None }), ..Facts::default() };
    let died = failure(&wordless, &end(Exit::Signal(9), ""));
    assert_eq!(
        (died.kind, died.message.as_str()),
        (FailureKind::InvalidResponse, "Gemini CLI reported an error without saying which")
    );
    assert_eq!(kind(&wordless, Exit::Code(53)), FailureKind::TurnLimit);
}

#[test]
fn a_stop_before_the_result_is_the_verdict_whatever_the_exit_code() {
    use FailureKind::{Cancelled, Crashed, Protocol, Stalled, Timeout};
    let seconds = Duration::from_secs;
    let cases = [
        (
            Stop::Timeout(Duration::from_millis(1500)),
            Timeout,
            "The run took longer than 1500 ms",
            "Give it more time, for example `timeout` 2s.",
        ),
        (
            Stop::Timeout(seconds(300)),
            Timeout,
            "The run took longer than 300 s",
            "Give it more time, for example `timeout` 600s.",
        ),
        (
            Stop::NoFirstEvent(seconds(60)),
            Stalled,
            "Gemini CLI wrote nothing within 60 s of its start",
            "`alhena doctor` looks for what can hold it up, a stale lock for one; `first_event_timeout` 5m waits longer.",
        ),
        (Stop::Silence(seconds(300)), Stalled, "Gemini CLI was silent for 300 s", Stalled.hint()),
        (Stop::Cancelled, Cancelled, "The run was cancelled", Cancelled.hint()),
        (
            Stop::TooMuchOutput(10),
            Protocol,
            "Gemini CLI wrote more than 10 bytes and was stopped",
            Protocol.hint(),
        ),
        (Stop::NoExit, Crashed, "Gemini CLI did not exit", Crashed.hint()),
    ];
    for (stop, kind, message, hint) in cases {
        let status = match kind {
            Timeout => Status::Timeout,
            Stalled => Status::Stalled,
            Cancelled => Status::Cancelled,
            _ => Status::Failed,
        };
        for exit in [Exit::Code(0), Exit::Code(130), Exit::Signal(9)] {
            for facts in [Facts::default(), succeeded(), reported("FatalCancellationError", "x", None)] {
                let facts = Facts { stop: Some(before_result(stop)), ..facts };
                let (found, failure) = verdict(&facts, &end(exit, ""));
                let failure = failure.unwrap();
                assert_eq!(
                    (found, failure.kind, failure.message.as_str(), failure.hint.as_str()),
                    (status, kind, message, hint)
                );
            }
        }
    }
}

#[test]
fn a_stop_after_the_result_leaves_the_result() {
    for stop in [Stop::NoExit, Stop::Cancelled, Stop::Timeout(std::time::Duration::from_secs(1))] {
        let facts = Facts { stop: Some(Stopped { why: stop, after_result: true }), ..succeeded() };
        for exit in [Exit::Code(0), Exit::Code(1), Exit::Signal(9)] {
            assert_eq!(verdict(&facts, &end(exit, "")), (Status::Success, None), "{stop:?} {exit:?}");
        }
        let stop = Some(Stopped { why: stop, after_result: true });
        let failed = Facts { stop, ..reported("FatalTurnLimitedError", "Reached max session turns", None) };
        assert_eq!(kind(&failed, Exit::Signal(9)), FailureKind::TurnLimit);
        let doubtful = Facts { stop, answered: false, ..succeeded() };
        assert_eq!(kind(&doubtful, Exit::Signal(9)), FailureKind::InvalidResponse);
    }
}

#[test]
fn a_run_that_was_stopped_while_it_kept_trying_says_so() {
    let stderr = "Attempt 1 failed with status 503. Retrying with backoff... _ApiError: {}\n    at x\n\
                  Attempt 2 failed. Retrying with backoff... Error: exception TypeError: fetch failed\n";
    let facts =
        Facts { stop: Some(before_result(Stop::Silence(Duration::from_secs(300)))), ..Facts::default() };
    let found = failure(&facts, &end(Exit::Signal(9), stderr));
    assert_eq!(found.message, "Gemini CLI was silent for 300 s (Attempt 2 failed)");
    assert!(found.hint.contains("`max_attempts` 1"), "{}", found.hint);
    let facts = Facts { stop: Some(before_result(Stop::Cancelled)), ..Facts::default() };
    assert_eq!(failure(&facts, &end(Exit::Signal(9), stderr)).message, "The run was cancelled");
    let long = format!("Attempt 3 failed: {}", "é".repeat(500));
    assert!(stderr::last_attempt(&long).unwrap().len() <= 200);
    assert_eq!(
        stderr::last_attempt("Attempt 4 failed: busy. Max attempts reached\n"),
        Some("Attempt 4 failed: busy")
    );
}

#[test]
fn the_turn_limit_of_the_core_is_an_error_event_with_a_result_of_success() {
    let facts = Facts { error: Some("Maximum session turns exceeded".into()), ..succeeded() };
    let found = failure(&facts, &end(Exit::Code(0), ""));
    assert_eq!(
        (found.kind, found.message.as_str(), found.hint.as_str()),
        (FailureKind::TurnLimit, "Maximum session turns exceeded", "Give it more turns with `max_turns`.")
    );
}

#[test]
fn a_loop_that_left_no_answer_is_why_there_is_none() {
    let looped = Facts { answered: false, called: false, looped: true, ..succeeded() };
    let failed = failure(&looped, &end(Exit::Code(0), ""));
    assert_eq!(failed.kind, FailureKind::InvalidResponse);
    assert!(failed.message.contains("repeated itself"), "{}", failed.message);
    assert_eq!(
        verdict(&Facts { looped: true, ..succeeded() }, &end(Exit::Code(0), "")),
        (Status::Success, None)
    );
}

#[test]
fn an_unusable_answer_has_a_hint_that_fits() {
    let cases = [
        ("The model response was blocked due to safety settings.", "Say the prompt in another way"),
        ("Model response was truncated because it exceeded the token limit.", "Ask for less in one answer"),
        ("Model stream ended without a finish reason.", "Run again"),
    ];
    for (message, hint) in cases {
        let wordless = ResultFacts { success: false, error: None };
        let facts = Facts { result: Some(wordless), error: Some(message.into()), ..Facts::default() };
        for exit in [Exit::Code(0), Exit::Unknown] {
            let found = failure(&facts, &end(exit, ""));
            assert_eq!((found.kind, found.message.as_str()), (FailureKind::InvalidResponse, message));
            assert!(found.hint.starts_with(hint), "{}", found.hint);
        }
    }
}

#[test]
fn errors_with_a_name_need_no_exit_code() {
    use FailureKind::*;
    let cases = [
        ("FatalTurnLimitedError", TurnLimit),
        ("FatalCancellationError", Cancelled),
        ("FatalAuthenticationError", Auth),
        ("FatalSandboxError", Sandbox),
        ("FatalConfigError", Config),
        ("FatalInputError", Input),
        ("FatalUntrustedWorkspaceError", Untrusted),
        ("FatalToolExecutionError", DiskFull),
        ("no_space_left", DiskFull),
        ("INVALID_STREAM", InvalidResponse),
        ("Error", Crashed),
    ];
    for (name, expected) in cases {
        let facts = reported(name, "[API Error: It is so]", None);
        // The wrapper is around every thrown error, also where no API is involved.
        let facts = if name == "Error" { reported(name, "It is so", None) } else { facts };
        let found = failure(&facts, &end(Exit::Unknown, ""));
        assert_eq!(found.kind, expected, "{name}");
        assert_eq!(found.reported.map(|error| error.kind).as_deref(), Some(name));
    }
}

#[test]
fn the_code_of_a_report_stands_in_for_the_exit_code() {
    let cases = [
        (403, FailureKind::Auth, Some(403)),
        (429, FailureKind::RateLimited, Some(429)),
        (503, FailureKind::Api, Some(503)),
        (41, FailureKind::Auth, None),
        (1, FailureKind::Crashed, None),
        (i64::MAX, FailureKind::Crashed, None),
        (-1, FailureKind::Crashed, None),
    ];
    for (code, kind, status) in cases {
        let found = failure(&reported("Error", "no", Some(code)), &end(Exit::Unknown, ""));
        assert_eq!((found.kind, found.http_status), (kind, status), "{code}");
    }
    // But the exit code is the better witness.
    assert_eq!(kind(&reported("Error", "no", Some(403)), Exit::Code(42)), FailureKind::Input);
}

#[test]
fn statuses_are_found_wherever_the_cli_puts_them() {
    let nested = r#"[API Error: {"error":{"message":"{\"error\":{\"code\":403,\"message\":\"Not you\"}}"}}]"#;
    let cases = [
        (r#"[API Error: {"error":{"code":400,"message":"Bad"}}]"#, "", Some(400), "Bad"),
        (r#"[API Error: {"error": {"code": 503, "message": "Busy"}}]"#, "", Some(503), "Busy"),
        (nested, "", Some(403), "Not you"),
        (
            "[API Error: models/x is not found for API version v1beta]",
            "",
            Some(404),
            "models/x is not found for API version v1beta",
        ),
        ("[API Error: gone]", &logged("ModelNotFoundError: gone", "  code: 404"), Some(404), "gone"),
        (
            "[API Error: busy]",
            &logged("RetryableQuotaError: busy", "  cause: { code: 429, message: 'busy' }"),
            Some(429),
            "busy",
        ),
        ("[API Error: busy]", &logged("TerminalQuotaError: busy", "  reason: undefined"), Some(429), "busy"),
        ("[API Error: x]", &logged("_ApiError: x", "  status: 401"), Some(401), "x"),
        // Of attempts that were tried again nothing is taken.
        ("[API Error: odd]", "Attempt 1 failed with status 500. Retrying...\n  status: 500\n", None, "odd"),
        (r#"[API Error: {"error":{"code":99999,"message":"Odd"}}]"#, "", None, "Odd"),
        (
            r#"[API Error: {"error":{"code":"403","message":7}}]"#,
            "",
            None,
            r#"{"error":{"code":"403","message":7}}"#,
        ),
        (r#"[API Error: {"error"#, "", None, r#"{"error"#),
    ];
    for (message, stderr, status, clean) in cases {
        let found = failure(&reported("unknown", message, None), &end(Exit::Code(1), stderr));
        assert_eq!((found.http_status, found.message.as_str()), (status, clean), "{message}");
    }
}

#[test]
fn a_quota_has_its_delay_or_is_daily() {
    let seconds = "[API Error: Slow down.\nSuggested retry after 2s.]\nPlease wait and try again later.";
    let busy = |delay: &str| {
        logged("RetryableQuotaError: busy", &format!("  retryDelayMs: {delay},\n  status: 429"))
    };
    let cases = [
        (seconds, String::new(), Some(2000), "2 s"),
        ("Please retry in 350ms.", String::new(), Some(350), "1 s"),
        ("Please retry in 12.5s", String::new(), Some(12_500), "13 s"),
        ("Your quota will reset after 8h44m7s.", String::new(), Some(31_447_000), "9 h"),
        (r#"{"retryDelay":"600s"}"#, String::new(), Some(600_000), "10 min"),
        ("busy", busy("60000"), Some(60_000), "60 s"),
        ("busy", busy("undefined"), None, ""),
        ("retry after a while", String::new(), None, ""),
        ("retry after 99999999999999999s", String::new(), None, ""),
        ("retry after 7", String::new(), Some(7000), "7 s"),
    ];
    for (message, stderr, delay, wait) in cases {
        let hint = match wait {
            "" => FailureKind::RateLimited.hint().to_owned(),
            _ => format!(
                "Wait {wait} and run again, or use another model or key; `on_rate_limit` can do both."
            ),
        };
        let found = failure(&reported("unknown", message, None), &end(Exit::Code(173), &stderr));
        assert_eq!(
            (found.kind, found.http_status, found.daily_quota, found.retry_after_ms, found.hint),
            (FailureKind::RateLimited, Some(429), false, delay, hint),
            "{message}"
        );
    }
    let daily = "[API Error: You have exhausted your daily quota on this model. Retry in 2s.]";
    let found = failure(&reported("unknown", daily, None), &end(Exit::Code(173), ""));
    assert_eq!(
        (found.daily_quota, found.retry_after_ms, found.hint.as_str()),
        (
            true,
            None,
            "The daily quota is used up: wait until tomorrow, or use another model (`on_rate_limit` model=NAME) or key."
        )
    );
}

#[test]
fn a_lost_connection_is_an_api_failure_and_a_bug_of_the_cli_is_not() {
    let cases = [
        ("[API Error: terminated]", "", FailureKind::Api),
        ("terminated", "", FailureKind::Api),
        ("[API Error: exception TypeError: fetch failed sending request]", "", FailureKind::Api),
        ("connect ECONNREFUSED 127.0.0.1:9", "", FailureKind::Api),
        ("[API Error: Unexpected token 'o', \"{oops\" is not valid JSON]", "", FailureKind::InvalidResponse),
        ("[API Error: strange]", "", FailureKind::Api),
        ("Cannot read properties of undefined", "", FailureKind::Crashed),
        (
            "Internal error: Cannot enable privileged approval modes in an untrusted folder.",
            "",
            FailureKind::Untrusted,
        ),
    ];
    for (message, stderr, expected) in cases {
        let found = failure(&reported("Error", message, None), &end(Exit::Code(1), stderr));
        assert_eq!((found.kind, found.http_status), (expected, None), "{message}");
    }
}

#[test]
fn each_failure_before_the_run_has_a_hint_of_its_own() {
    let cases = [
        (41, "Invalid auth method selected.", "Put {\"security\""),
        (
            41,
            "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.",
            "Set GEMINI_API_KEY, or put",
        ),
        (41, "Please set an Auth method in your settings.json", "Set GEMINI_API_KEY, or sign in once"),
        (
            42,
            "Error resuming session: No previous sessions found for this project.",
            "`gemini --list-sessions`",
        ),
        (
            42,
            "Error starting session: Session ID \"x\" already exists. Use --resume to resume it",
            "Take another `session_id`",
        ),
        (42, "No input provided via stdin. Input can be provided by piping data", "Give a prompt"),
        (42, "something else", "Check the prompt and the options"),
        (44, "docker not found", "Check that the sandbox engine"),
        (52, "Expected ',' in settings.json", "Mend the settings file"),
        (55, "Gemini CLI is not running in a trusted directory.", "Run with `trust`"),
    ];
    for (code, said, hint) in cases {
        let stderr =
            format!("Warning: True color (24-bit) support not detected.\n\u{1b}[31m{said}\u{1b}[0m\n");
        let found = failure(&Facts::default(), &end(Exit::Code(code), &stderr));
        assert_eq!(found.message, said);
        assert!(found.hint.starts_with(hint), "{}", found.hint);
        assert_eq!(found.stderr.as_deref(), Some(stderr.trim_end()));
    }
}

#[test]
fn wrong_arguments_are_told_without_the_help_text() {
    let stderr =
        "Invalid values:\n  Argument: output-format, Given: \"xml\"\nUsage: gemini [options]\n\nMany lines\n";
    let found = failure(&Facts::default(), &end(Exit::Code(1), stderr));
    assert_eq!(
        (found.kind, found.message.as_str()),
        (FailureKind::Input, "Invalid values:\n  Argument: output-format, Given: \"xml\"")
    );
    assert!(found.hint.contains("gemini --help"));
}

#[test]
fn plain_text_is_judged_by_exit_code_and_standard_error() {
    let text = Facts { output: Output::Text, ..succeeded() };
    let truncated = "[ERROR] Some server is slow\n[ERROR] Model stream ended without a finish reason.\nYOLO mode is enabled.\n";
    let found = failure(&text, &end(Exit::Code(0), truncated));
    assert_eq!(
        (found.kind, found.message.as_str()),
        (FailureKind::InvalidResponse, "Model stream ended without a finish reason.")
    );
    assert_eq!(verdict(&text, &end(Exit::Code(0), "[ERROR] Some server is slow\n")).0, Status::Success);
    // In the stream it would have been an event.
    assert_eq!(verdict(&succeeded(), &end(Exit::Code(0), truncated)).0, Status::Success);
    let open = Facts { output: Output::Text, ..Facts::default() };
    assert_eq!(failure(&open, &end(Exit::Unknown, "")).hint, "Give the exit code of the process, too.");
}

#[test]
fn output_without_an_end_says_what_it_was() {
    let cases = [
        (Output::Nothing, FailureKind::Crashed, "The output is empty"),
        (Output::Events, FailureKind::Crashed, "The output ends without a result"),
        (Output::Noise, FailureKind::Protocol, "None of the output is an event of Gemini CLI"),
    ];
    for (output, kind, message) in cases {
        let found = failure(&Facts { output, ..Facts::default() }, &end(Exit::Unknown, ""));
        assert_eq!((found.kind, found.message.as_str()), (kind, message));
    }
    let facts = Facts { error: Some("Last words".into()), ..Facts::default() };
    assert_eq!(failure(&facts, &end(Exit::Unknown, "")).message, "Last words");
}

#[test]
fn the_reason_on_standard_error_is_found_among_noise() {
    let api = logged(r#"_ApiError: {"error":{"code":403,"message":"No"}}"#, "  status: 403");
    let text_mode = format!("{api}An unexpected critical error occurred:[object Object]\n");
    let cases = [
        ("", ""),
        ("YOLO mode is enabled.\n\n(node:12) Warning: x\n", ""),
        ("one\ntwo\nthree\nfour\n", "two\nthree\nfour"),
        ("Reached max session turns.\n[ERROR] Reached max session turns.\n", "Reached max session turns."),
        ("boom\n    at f (x.js:1)\n        at g\n", "boom"),
        (text_mode.as_str(), r#"{"error":{"code":403,"message":"No"}}"#),
        (
            "noise\n{\n  \"error\": {\"type\": \"Error\", \"message\": \"Set an Auth method\", \"code\": 41}\n}\n",
            "Set an Auth method",
        ),
    ];
    for (stderr, expected) in cases {
        assert_eq!(stderr::said(stderr), expected, "{stderr}");
    }
    assert_eq!(stderr::plain("\u{1b}[31mred\u{1b}[0m\tand\r\u{7} plain\u{1b}"), "red\tand plain");
}

#[test]
fn an_error_of_the_api_is_read_from_the_log_with_all_its_properties() {
    let log = logged("RetryableQuotaError: Slow down.\nSuggested retry after 2s.", "  status: 429");
    let found = stderr::api_error(&log).unwrap();
    assert_eq!(found.message, "Slow down.\nSuggested retry after 2s.");
    assert!(found.whole.ends_with("  status: 429"));
    let cases = [
        ("", None),
        ("He said: Error when talking to Gemini API", None),
        ("Error when talking to Gemini API", Some("")),
        (
            "Error when talking to Gemini API Full report available at: /t.json not a class: x",
            Some("not a class: x"),
        ),
    ];
    for (stderr, message) in cases {
        assert_eq!(stderr::api_error(stderr).map(|error| error.message), message, "{stderr}");
    }
}

#[test]
fn evidence_is_the_end_of_standard_error() {
    let many: String = (0..100).map(|number| format!("line {number}\n")).collect();
    let last: Vec<String> = (80..100).map(|number| format!("line {number}")).collect();
    assert_eq!(stderr::last_lines(&many), last.join("\n"));
    assert_eq!(stderr::last_lines(&"é".repeat(10_000)).len(), 4096);
    assert_eq!(stderr::last_lines(" \n\n"), "");
    assert_eq!(failure(&Facts::default(), &end(Exit::Code(0), "")).stderr, None);
}

#[test]
fn a_run_that_was_cut_short_says_how_to_go_on() {
    let mut out: Vec<Event> = Vec::new();
    let mut interpreter = Interpreter::new();
    interpreter.line(br#"{"type":"init","session_id":"s-1","model":"m"}"#, &mut out);
    interpreter.feed(Input::Stop(Stop::Cancelled), &mut out);
    interpreter.feed(Input::Stop(Stop::NoExit), &mut out);
    let outcome = interpreter.conclude(&end(Exit::Code(0), ""), &mut out);
    assert_eq!(
        outcome.failure.as_ref().map(|failure| failure.hint.as_str()),
        Some("It was stopped on purpose. To go on with this session: `resume`=s-1")
    );
    let mut interpreter = Interpreter::new();
    interpreter.line(br#"{"type":"init","session_id":"$(rm -rf)","model":"m"}"#, &mut out);
    interpreter.feed(Input::Stop(Stop::Cancelled), &mut out);
    let outcome = interpreter.conclude(&end(Exit::Code(0), ""), &mut out);
    assert_eq!(
        outcome.failure.as_ref().map(|failure| failure.hint.as_str()),
        Some("It was stopped on purpose.")
    );
}

#[test]
fn a_result_without_an_exit_is_a_success_with_a_warning() {
    let mut out: Vec<Event> = Vec::new();
    let mut interpreter = Interpreter::new();
    interpreter.line(br#"{"type":"message","role":"assistant","content":"Hi","delta":true}"#, &mut out);
    interpreter.line(br#"{"type":"result","status":"success"}"#, &mut out);
    interpreter.feed(Input::Stop(Stop::NoExit), &mut out);
    let outcome = interpreter.conclude(&end(Exit::Signal(9), ""), &mut out);
    assert_eq!(
        (outcome.status, outcome.exit_code, &outcome.warnings),
        (Status::Success, None, &vec!["Gemini CLI did not exit after its result and was stopped".to_owned()])
    );
}

#[test]
fn an_error_that_the_cli_throws_by_name_has_its_kind() {
    let stderr = "Fatal error: Failed to relaunch the CLI process.\nFatalSandboxError: Sandbox image 'i:1' is missing or could not be pulled. Please check it.\n    at start_sandbox (file:///g.js:1:13)\n";
    let failure = by_exit_code(1, "anything", stderr);
    assert_eq!(failure.kind, FailureKind::Sandbox);
    assert_eq!(failure.message, "Sandbox image 'i:1' is missing or could not be pulled. Please check it.");
}

#[test]
fn settings_that_the_cli_calls_wrong_are_named_by_key() {
    let stderr = "Invalid configuration in /h/.gemini/settings.json:\n\nError in: general.maxAttempts\n    Expected number, received string\nExpected: number, but received: string\n\nError in: model.name\n    Expected string, received number\n\nPlease fix the configuration.\nError in: nothing\n";
    let wrong = "general.maxAttempts (Expected number, received string), model.name (Expected string, received number) in /h/.gemini/settings.json";
    assert_eq!(stderr::wrong_settings(stderr).as_deref(), Some(wrong));
    assert_eq!(stderr::wrong_settings("Error in: model.name\n"), None);
    let crash = "An unexpected critical error occurred:TypeError: themeName.endsWith is not a function\n    at main (file:///g.js:1:1)\n";
    let end = End { exit: Exit::Code(1), stderr: format!("{stderr}{crash}"), duration_ms: None };
    let failure = verdict(&Facts::default(), &end).1.unwrap();
    assert_eq!(failure.kind, FailureKind::Config);
    assert_eq!(failure.message, format!("Gemini CLI could not go on with settings that are wrong: {wrong}"));
}
