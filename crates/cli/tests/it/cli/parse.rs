//! `alhena parse`

use insta::assert_snapshot;
use serde_json::json;

use crate::common::{Desk, Transcript};

/// A recording, seen through a view.
fn parse(name: &str, view: &str) -> Transcript {
    let desk = Desk::new();
    let exit = desk.recording(name);
    desk.alhena(&["parse", "stdout", "--as", view, "--exit-code", &exit, "--stderr", "stderr"])
}

#[test]
fn pretty_shows_text_tools_files_and_a_summary() {
    assert_snapshot!(parse("06_new_with_id", "pretty"), @r#"
    Reading. 
    ✓ read a.txt
    ✓ write n.txt
      + n.txt
    ✓ $ echo hi; exit 2 → hi
    First answer.

    done 466 ms · 432 tokens (400 in, 20 out, 12 thoughts) · $0.0002 · 3 tool calls · gemini-2.5-flash
      + n.txt
      session [ID]
    [exit 0]
    "#);
}

#[test]
fn pretty_shows_tools_that_failed_and_warnings() {
    assert_snapshot!(parse("03_allowed_tools_git_streamjson", "pretty"), @r#"
    ✓ $ git --version → git version 2.47.3
    ✗ $ echo hi → Tool execution denied by policy.
    ✗ write z.txt → Tool "write_file" not found. Did you mean one of: "read_file", "update_topic", "grep_search"?
    done.

    done 1.1 s · 416 tokens (400 in, 16 out) · $0.0002 · 3 tool calls · gemini-2.5-flash
      ! A call of run_shell_command was denied by policy
      ! The model asked for write_file, which was not offered to it; --approval auto-edit or yolo offers it, unless it is denied
      session [ID]
    [exit 0]
    "#);
}

#[test]
fn pretty_shows_what_went_wrong_and_what_to_do() {
    assert_snapshot!(parse("20_rpm_streamjson", "pretty"), @r#"

    failed 6.2 s · gemini-2.5-flash
    error: Quota exceeded for quota metric 'Generate Content API requests per minute'.
    Suggested retry after 2s.
    hint: Wait 2 s and run again, or use another model or key; --on-rate-limit can do both.
      session [ID]
    [exit 6]
    "#);
}

#[test]
fn text_is_the_models_text() {
    assert_snapshot!(parse("06_new_with_id", "text"), @r#"
    Reading. 
    First answer.
    [exit 0]
    "#);
}

#[test]
fn text_says_on_stderr_why_a_run_failed() {
    assert_snapshot!(parse("20_api401_streamjson", "text"), @r#"
    ---- stderr ----
    error: Request had invalid authentication credentials.
    hint: The API does not accept the sign-in: set GEMINI_API_KEY to a valid key, or start Gemini CLI in a terminal and sign in again.
    [exit 4]
    "#);
}

#[test]
fn events_are_one_object_per_line() {
    assert_snapshot!(parse("01_streamjson_plain", "events"), @r#"
    {"seq":0,"at":"[TIME]","source":"stream","type":"started","session_id":"[ID]","model":"gemini-2.5-flash"}
    {"seq":1,"at":"[TIME]","source":"stream","type":"prompt","text":"Say hi"}
    {"seq":2,"at":"[TIME]","source":"stream","type":"text","delta":"Hello from fake Gemini."}
    {"seq":3,"at":"[TIME]","source":"derived","type":"usage","prompt":100,"cached":0,"output":5,"thoughts":0,"tool":0,"total":105,"models":{"gemini-2.5-flash":{"prompt":100,"cached":0,"output":5,"thoughts":0,"tool":0,"total":105}},"cost_usd":0.0000425}
    {"seq":4,"at":"[TIME]","source":"derived","type":"finished","outcome":{"status":"success","text":"Hello from fake Gemini.","final_text":"Hello from fake Gemini.","session_id":"[ID]","models":["gemini-2.5-flash"],"files":[],"commands":[],"usage":{"prompt":100,"cached":0,"output":5,"thoughts":0,"tool":0,"total":105,"models":{"gemini-2.5-flash":{"prompt":100,"cached":0,"output":5,"thoughts":0,"tool":0,"total":105}},"cost_usd":0.0000425},"cost_usd":0.0000425,"model_calls":1,"tool_calls":0,"duration_ms":164,"warnings":[],"malformed":{"lines":0,"bytes":0},"exit_code":0,"finish_reason":null}}
    [exit 0]
    "#);
}

#[test]
fn outcome_is_the_one_of_the_last_event_for_people_to_read() {
    let outcome = parse("20_shell_streamjson", "outcome");
    let event = parse("20_shell_streamjson", "events").json_lines().pop().unwrap();
    assert_eq!((outcome.json(), outcome.code()), (event["outcome"].clone(), Some(0)));
    assert_eq!(outcome.stdout, format!("{:#}\n", outcome.json()));
}

#[test]
fn stream_json_of_a_success_is_the_clis_own_output_byte_for_byte() {
    for name in ["01_streamjson_plain", "06_new_with_id", "02_alltools_plan", "20_api403_streamjson"] {
        let desk = Desk::new();
        let exit = desk.recording(name);
        let seen = desk.alhena(&["parse", "stdout", "--as", "stream-json", "--exit-code", &exit]);
        assert_eq!(seen.stdout, std::fs::read_to_string(desk.work().join("stdout")).unwrap(), "{name}");
    }
}

#[test]
fn json_is_the_report_that_the_cli_would_have_written() {
    let report = parse("01_streamjson_plain", "json").json();
    let tokens = &report["stats"]["models"]["gemini-2.5-flash"]["tokens"];
    assert_eq!((&report["response"], &tokens["total"]), (&json!("Hello from fake Gemini."), &json!(105)));
}

#[test]
fn a_json_report_is_read_and_text_beside_it_counted() {
    let desk = Desk::new();
    desk.recording("01_json_plain");
    let report = std::fs::read_to_string(desk.work().join("stdout")).unwrap();
    desk.write("noisy", format!("Data collection is disabled.\n{report}\nbye\n"));
    let seen = desk.alhena(&["parse", "--from", "json", "noisy", "--exit-code", "0"]).json();
    assert_eq!(
        [&seen["status"], &seen["text"], &seen["malformed"]],
        [&json!("success"), &json!("Hello from fake Gemini."), &json!({"lines": 1, "bytes": 28})]
    );
}

#[test]
fn the_report_of_a_fatal_error_is_found_on_stderr_also_twice() {
    let desk = Desk::new();
    let exit = desk.recording("14_pty_ctrlc_stream_json");
    let args = ["parse", "--from", "json", "stdout", "--stderr", "stderr", "--as", "pretty"];
    assert_snapshot!(desk.alhena(&args), @r#"

    cancelled 0 ms
    error: Operation cancelled.
    hint: It was stopped on purpose. To go on with this session: --resume=[ID]
      session [ID]
    [exit 130]
    "#);
    let told = [&args[..], &["--exit-code", &exit]].concat();
    assert_eq!(desk.alhena(&told).to_string(), desk.alhena(&args).to_string());
}

#[test]
fn plain_text_needs_the_exit_code() {
    let desk = Desk::new();
    desk.recording("01_text_plain");
    assert_snapshot!(desk.alhena(&["parse", "--from", "text", "stdout", "--as", "text"]), @r#"
    Hello from fake Gemini.
    ---- stderr ----
    error: Plain text does not say how the run ended
    hint: Give the exit code of the process, too.
    [exit 1]
    "#);
    assert_snapshot!(desk.alhena(&["parse", "--from", "text", "stdout", "--as", "text", "--exit-code", "0"]), @r#"
    Hello from fake Gemini.
    [exit 0]
    "#);
}

#[test]
fn a_death_by_signal_can_be_told_as_a_negative_code() {
    let desk = Desk::new();
    desk.recording("04_stream_SIGTERM_group");
    assert_snapshot!(desk.alhena(&["parse", "stdout", "--as", "text", "--exit-code", "-15"]), @r#"
    one two 
    ---- stderr ----
    error: Gemini CLI died by signal 15 before its result
    hint: Run again with --record to keep everything it wrote; `alhena doctor` may help.
    [exit 1]
    "#);
}

#[test]
fn garbage_is_a_failure_that_says_so() {
    let desk = Desk::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    desk.write("garbage", bytes);
    desk.transcript(
        r"
        $ parse garbage --as text
        $ parse garbage --as text --from json
        error: None of the output is an event of Gemini CLI
        hint: Give what `gemini --output-format stream-json` wrote, or say that it is a JSON report or text.
        [exit 1]
        ",
    );
    let seen = desk.alhena(&["parse", "garbage"]).json();
    assert_eq!(seen["malformed"], json!({"lines": 392, "bytes": 99_609}));
    for view in ["pretty", "events", "stream-json", "json"] {
        let seen = desk.alhena(&["parse", "garbage", "--as", view]);
        assert_eq!(seen.code(), Some(1), "{view}");
        // Foreign bytes never reach a terminal, except in the view that is the CLI's own output.
        assert_eq!(seen.stdout.contains('\u{1b}'), view == "stream-json", "{view}");
    }
}

#[test]
fn json_that_breaks_off_is_a_failure() {
    let desk = Desk::new();
    desk.write(
        "cut",
        r#"{"type":"init","session_id":"s","model":"m"}
{"type":"message","role":"assistant","content":"Half an ans"#,
    );
    assert_snapshot!(desk.alhena(&["parse", "cut", "--as", "pretty"]), @r#"

    failed 0 ms · m
    error: The output ends without a result
    hint: Run again with --record to keep everything it wrote; `alhena doctor` may help.
      session s
    [exit 1]
    "#);
    desk.write("report", "{\n  \"session_id\": \"s\",\n  \"response\": \"Half an ans");
    assert_snapshot!(desk.alhena(&["parse", "report", "--from", "json", "--as", "pretty"]), @r#"

    failed 0 ms
    error: None of the output is an event of Gemini CLI
    hint: Give what `gemini --output-format stream-json` wrote, or say that it is a JSON report or text.
    [exit 1]
    "#);
}

#[test]
fn escape_sequences_of_the_model_do_not_reach_a_person() {
    let desk = Desk::new();
    let line = json!({"type": "message", "role": "assistant", "content": "\u{1b}]0;owned\u{7}\u{1b}[2Jquiet\u{202e}", "delta": true});
    let call = json!({"type": "tool_use", "tool_id": "1", "tool_name": "run_shell_command", "parameters": {"command": "printf '\u{1b}[31m'"}});
    let result =
        json!({"type": "tool_result", "tool_id": "1", "status": "success", "output": "\u{1b}[31mred"});
    desk.write(
        "hostile",
        format!("{line}\n{call}\n{result}\n{{\"type\":\"result\",\"status\":\"success\"}}\n"),
    );
    assert_snapshot!(desk.alhena(&["parse", "hostile", "--as", "pretty"]), @r#"
    quiet
    ✓ $ printf '' → red

    done 0 ms · 1 tool call
      ! The model said nothing after its last tool result
    [exit 0]
    "#);
    // A file gets the text as it is.
    assert_eq!(
        desk.alhena(&["parse", "hostile", "--as", "text"]).stdout,
        "\u{1b}]0;owned\u{7}\u{1b}[2Jquiet\u{202e}\n"
    );
}

#[test]
fn for_aiwf_a_line_that_is_no_event_is_skipped_and_a_sample_of_it_logged() {
    // A-27
    let desk = Desk::new();
    desk.recording("01_streamjson_plain");
    let recorded = std::fs::read_to_string(desk.work().join("stdout")).unwrap();
    desk.write("stdout", recorded.replacen('\n', "\nnot json \u{1b}[2J\n", 1));
    let seen = desk.alhena(&["parse", "stdout", "--as", "aiwf", "--exit-code", "0"]);
    assert_eq!((seen.code(), &seen.json()["error"]), (Some(0), &json!(null)));
    assert_eq!(seen.stderr, "warning: skipped a line that is no event, 13 bytes: not json \\u{1b}[2J\n");
}

#[test]
fn for_agent_cli_sdk_a_failed_command_is_no_error_and_other_tools_keep_their_names() {
    // B-12, B-29
    let desk = Desk::new();
    desk.recording("01_streamjson_plain");
    let recorded = std::fs::read_to_string(desk.work().join("stdout")).unwrap();
    let tools = r#"
{"type":"tool_use","timestamp":"2026-11-15T20:00:00.000Z","tool_name":"run_shell_command","tool_id":"a","parameters":{"command":"false"}}
{"type":"tool_result","timestamp":"2026-11-15T20:00:00.000Z","tool_id":"a","status":"success","output":"Command exited with code: 2"}
{"type":"tool_use","timestamp":"2026-11-15T20:00:00.000Z","tool_name":"glob","tool_id":"b","parameters":{"pattern":"*","dir_path":"src"}}
{"type":"tool_result","timestamp":"2026-11-15T20:00:00.000Z","tool_id":"b","status":"success","output":"no files"}
"#;
    desk.write("stdout", recorded.replacen('\n', tools, 1));
    for (view, is_error) in [("messages", true), ("agent-cli-sdk", false), ("agent-cli-sdk-lines", false)] {
        let seen = desk.alhena(&["parse", "stdout", "--as", view, "--exit-code", "0"]);
        let printed = match view {
            "agent-cli-sdk-lines" => serde_json::from_str(seen.stdout.lines().last().unwrap()).unwrap(),
            _ => seen.json(),
        };
        let messages = ["/messages", "/result/messages", ""].iter().find_map(|at| printed.pointer(at));
        let messages = messages.and_then(|messages| messages.as_array()).unwrap();
        let blocks: Vec<_> =
            messages.iter().filter_map(|message| message["content"].as_array()).flatten().collect();
        let failed = blocks.iter().find(|block| block["tool_use_id"] == "a").unwrap();
        assert_eq!((&failed["is_error"], &failed["exit_code"]), (&json!(is_error), &json!(2)), "{view}");
        let other = blocks.iter().find(|block| block["id"] == "b").unwrap();
        assert_eq!(other["name"], if view == "messages" { "Glob" } else { "glob" }, "{view}");
    }
}

#[test]
fn what_is_given_needs_no_name() {
    let desk = Desk::new();
    for (recording, from) in [("01_json_plain", "json"), ("01_streamjson_plain", "stream-json")] {
        desk.recording(recording);
        let named = desk.alhena(&["parse", "--from", from, "stdout"]).to_string();
        assert_eq!(desk.alhena(&["parse", "stdout"]).to_string(), named, "{recording}");
        let piped = std::fs::read(desk.work().join("stdout")).unwrap();
        for args in [&["parse"][..], &["parse", "-"]] {
            assert_eq!(desk.alhena_reading(&piped, args).to_string(), named, "{recording}");
        }
        assert!(named.contains("\"status\": \"success\"") || from == "json", "{named}");
    }
}
