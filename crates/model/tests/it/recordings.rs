//! Every recording of the real CLI gets the outcome that its scenario and its exit code imply.

use crate::common::Recording;
use alhena_model::{Change, CommandRun, EventKind, Exit, FileRecord, Outcome, Status};

/// Name, verdict (a failure's kind and HTTP status), exit code of `alhena`, and whatever is not zero.
const TABLE: &str = "
01_json_plain success 0 text=23 tokens=105
01_json_unicode success 0 text=96 tokens=117
01_streamjson_defaultmodel success 0 text=46 tokens=221
01_streamjson_multi success 0 text=46 tokens=111
01_streamjson_plain success 0 text=23 tokens=105
01_text_multi success 0 text=46
01_text_plain success 0 text=23
02_alltools_plan success 0 text=28 calls=29 warnings=9 tokens=3066
02_tools_offered_plan_gemini-2.5-flash success 0 text=2 tokens=101
03_429_plain_att2_streamjson rate_limited/429 6
03_499_att2_streamjson api/499 1
03_500_att2_json api/500 1
03_500_att2_text api/500 1
03_500_default_streamjson api/500 1
03_500_then_ok_streamjson success 0 text=9 tokens=102
03_allowed_tools_git_streamjson success 0 text=5 calls=3 commands=1 warnings=2 tokens=416
03_api400_text input/400 1
03_api403_json auth/403 4
03_api403_streamjson auth/403 4
03_api404_model_streamjson api/404 1
03_badformat_noformat input 1
03_badkey_text auth/400 4
03_conn_refused_streamjson crashed 1
03_contentloop_streamjson success 0 text=675 warnings=1
03_drop_midstream_json api 1
03_empty_text invalid_response 1
03_hang_headers_streamjson crashed 1
03_hang_midstream_streamjson crashed 1 text=8
03_maxtokens_streamjson success 0 text=13 tokens=103
03_maxturns_text turn_limit 7
03_noauth_nokey_baseurl_streamjson auth 4
03_noauth_nokey_baseurl_text auth 4
03_noauth_nokey_json auth 4
03_noauth_nokey_text auth 4
03_nobody_streamjson invalid_response 1
03_nosettings_key_streamjson auth 4
03_quota_daily_streamjson rate_limited/429 6
03_resume_unknown_uuid_text input 1
03_safety_streamjson invalid_response 1 tokens=404
03_selected_apikey_but_no_key_json auth 4
03_thoughts_only_json invalid_response 1 tokens=420
03_thoughts_only_text invalid_response 1
03_toolloop_json success 0 calls=4 warnings=1 tokens=420
03_toolloop_streamjson success 0 calls=4 warnings=1 tokens=420
03_untrusted_default_json untrusted 5
03_untrusted_env_streamjson success 0 text=2 tokens=101
03_untrusted_yolo_skiptrust_streamjson success 0 text=2 tokens=101
04_norelaunch_stream_SIGINT_pid crashed 1 text=8
04_norelaunch_stream_SIGTERM_json crashed 1
04_norelaunch_tool_SIGINT_pid crashed 1 text=9 calls=1
04_stream_SIGINT_child crashed 1 text=8
04_stream_SIGINT_pid crashed 1 text=8
04_stream_SIGTERM_group crashed 1 text=8
04_tool_SIGINT_group crashed 1 text=9 calls=1
05_at_file success 0 text=4 tokens=102
05_newlines success 0 text=4 tokens=102
05_positional success 0 text=4 tokens=102
05_positional_multi success 0 text=4 tokens=102
05_process_prompt_in_file success 0 text=4 tokens=102
05_stdin_and_positional success 0 text=4 tokens=102
06_custom_nonuuid_id success 0 text=9 tokens=102
06_list_two success 0 text=168
06_list_two_streamjson crashed 1 malformed=3
06_new_with_id success 0 text=22 calls=3 commands=1 files=1 tokens=432
06_resume_json input 1
06_resume_latest success 0 text=13 tokens=103
06b_3_resume_U success 0 text=2 tokens=101
06b_4_resume_U success 0 text=2 tokens=101
06b_6_new success 0 text=1 tokens=101
06b_7_list success 0 text=250
06c_loss_2_resume success 0 text=2 tokens=101
06c_loss_3_resume_again success 0 text=2 tokens=101
06c_loss_4_unrelated success 0 text=1 tokens=101
06c_noretain_1_new success 0 text=2 tokens=101
06d_new2 success 0 text=1 tokens=101
06d_session_file success 0 text=17 tokens=104
11_fake_responses success 0 text=16 tokens=7
11_race_4 success 0 text=11 tokens=102
11_race_list success 0 text=444
13_par_0 success 0 text=2 tokens=101
13_par_1 success 0 text=2 tokens=101
13_par_2 success 0 text=2 tokens=101
13_par_4 success 0 text=2 tokens=101
13_par_6 success 0 text=2 tokens=101
14_json_tools success 0 text=13 calls=3 tokens=422
14_pty_ctrlc_stream cancelled 130 text=8
14_pty_ctrlc_stream_json cancelled 130
14_subagent success 0 text=5 calls=1 tokens=516
16_auto_model_quota_fallback rate_limited/429 6 tokens=110
16_env_default_auth_type auth 4
16_key_only_no_settings_no_baseurl crashed 1
17_other success 0 text=1
20_api400_json input/400 1
20_api400_streamjson input/400 1
20_api400_text input/400 1
20_api401_json auth/401 4
20_api401_streamjson auth/401 4
20_api401_text auth/401 4
20_api403_json auth/403 4
20_api403_streamjson auth/403 4
20_api403_text auth/403 4
20_api404_json api/404 1
20_api404_streamjson api/404 1
20_api404_text api/404 1
20_api499_json api/499 1
20_api499_streamjson api/499 1
20_api499_text api/499 1
20_api500_json api/500 1
20_api500_streamjson api/500 1
20_api500_text api/500 1
20_api503_json api/503 1
20_api503_streamjson api/503 1
20_api503_text api/503 1
20_badcall_json invalid_response 1 tokens=202
20_badcall_streamjson invalid_response 1 tokens=202
20_badcall_text invalid_response 1
20_badflag_json input 1
20_badflag_streamjson input 1
20_badflag_text input 1
20_badkey_json auth/400 4
20_badkey_streamjson auth/400 4
20_badkey_text auth/400 4
20_badsse_json invalid_response 1
20_badsse_streamjson invalid_response 1 text=7
20_badsse_text invalid_response 1 text=7
20_ctrlc_shell_streamjson cancelled 130 calls=1 commands=1 tokens=105
20_daily_json rate_limited/429 6
20_daily_streamjson rate_limited/429 6
20_daily_text rate_limited/429 6
20_drop_json api 1
20_drop_streamjson api 1 text=12
20_drop_text api 1 text=12
20_empty_json invalid_response 1 tokens=202
20_empty_streamjson invalid_response 1 tokens=202
20_empty_text invalid_response 1
20_longwait_streamjson crashed 1
20_maxtok_empty_json invalid_response 1 tokens=202
20_maxtok_empty_streamjson invalid_response 1 tokens=202
20_maxtok_empty_text invalid_response 1
20_maxturns_json turn_limit 7
20_maxturns_streamjson turn_limit 7 calls=1 tokens=105
20_maxturns_text turn_limit 7
20_nofinish_json invalid_response 1 text=54
20_nofinish_streamjson invalid_response 1 text=54
20_nofinish_text invalid_response 1 text=54
20_noprompt_json input 1
20_noprompt_streamjson input 1
20_noprompt_text input 1
20_overflow_json input 1
20_overflow_streamjson input 1
20_overflow_text invalid_response 1
20_refused_json api 1
20_refused_streamjson api 1
20_refused_text api 1
20_rpm_json rate_limited/429 6
20_rpm_streamjson rate_limited/429 6
20_rpm_text rate_limited/429 6
20_safety_json invalid_response 1 tokens=202
20_safety_streamjson invalid_response 1 tokens=202
20_safety_text invalid_response 1
20_safety_text_json success 0 text=5 tokens=101
20_safety_text_streamjson success 0 text=5 tokens=101
20_safety_text_text success 0 text=5
20_shell_json success 0 text=5 calls=4 tokens=521
20_shell_streamjson success 0 text=5 calls=4 commands=3 warnings=1 tokens=521
20_shell_text success 0 text=5
20_untrusted_json untrusted 5
20_untrusted_streamjson untrusted 5
20_untrusted_text untrusted 5
";

fn word(value: impl serde::Serialize) -> String {
    serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
}

fn row(name: &str, outcome: &Outcome) -> String {
    let mut words = vec![name.to_owned()];
    words.push(match &outcome.failure {
        None => word(outcome.status),
        Some(failure) => match failure.http_status {
            Some(status) => format!("{}/{status}", word(failure.kind)),
            None => word(failure.kind),
        },
    });
    words.push(outcome.exit_status().to_string());
    let counts = [
        ("text", outcome.text.all().len() as u64),
        ("calls", outcome.tool_calls),
        ("commands", outcome.commands.len() as u64),
        ("files", outcome.files.len() as u64),
        ("warnings", outcome.warnings.len() as u64),
        ("malformed", outcome.malformed.lines),
        ("tokens", outcome.usage.all.total),
    ];
    words
        .extend(counts.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{what}={count}")));
    words.join(" ")
}

#[test]
fn every_recording_has_the_outcome_that_it_implies() {
    let expected: Vec<&str> = TABLE.lines().filter(|line| !line.is_empty()).collect();
    let found: Vec<String> = Recording::all().iter().map(|each| row(&each.name, &each.play().1)).collect();
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn the_outcome_of_every_recording_holds_together() {
    for recording in Recording::all() {
        let (events, outcome) = recording.play();
        let name = &recording.name;
        assert_eq!(outcome.failure.is_none(), outcome.status == Status::Success, "{name}");
        let code = match recording.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::Unknown => None,
        };
        assert_eq!(outcome.exit_code, code, "{name}");
        if outcome.is_success() {
            assert_eq!(code, Some(0), "{name}");
        }
        if let Some(failure) = &outcome.failure {
            assert_eq!(failure.exit_code, code, "{name}");
            assert!(!failure.message.is_empty() && !failure.hint.is_empty(), "{name}");
            assert!(!failure.message.contains("[API Error") && !failure.message.contains('\u{1b}'), "{name}");
            assert_eq!(failure.stderr.is_none(), recording.stderr.is_empty(), "{name}");
        }
        assert!(events.iter().enumerate().all(|(index, event)| event.seq == index as u64), "{name}");
        let json = serde_json::to_string(&*outcome).unwrap();
        let mut read: Outcome = serde_json::from_str(&json).unwrap();
        read.reported = outcome.reported;
        if let (Some(read), Some(failure)) = (&mut read.failure, &outcome.failure) {
            // Only for hosts in the same process.
            read.reported.clone_from(&failure.reported);
            read.quote.clone_from(&failure.quote);
        }
        assert_eq!(read, *outcome, "{name}");
    }
}

// `alhena parse` without --exit-code: the recording alone decides.
#[test]
fn without_the_exit_code_the_words_of_the_cli_give_the_same_kind() {
    let with_result = |recording: &Recording| {
        let stdout = String::from_utf8_lossy(&recording.stdout);
        stdout.contains("\"type\":\"result\"")
            || (recording.name.contains("_json") && recording.stderr.contains("\"error\""))
    };
    let mut compared = 0;
    for recording in Recording::all() {
        let (_, known) = recording.play();
        let (_, unknown) = recording.play_ended(Exit::Unknown);
        let facts = |outcome: &Outcome| {
            let failure = outcome.failure.as_ref();
            (
                outcome.status,
                failure.map(|failure| (failure.kind, failure.http_status, failure.message.clone())),
            )
        };
        if with_result(&recording) {
            assert_eq!(facts(&known), facts(&unknown), "{}", recording.name);
            compared += 1;
        } else if !recording.name.contains("_json") {
            assert_ne!(unknown.status, Status::Success, "{}", recording.name);
        }
    }
    assert!(compared > 90, "only {compared}");
}

/// Message and hint of each failure, one recording of each row of the table of failures.
#[test]
fn every_failure_is_explained_with_what_to_do() {
    let quota = "The daily quota is used up: wait until tomorrow, or use another model (`on_rate_limit` model=NAME) or key.";
    let key = "The API does not know this key: set GEMINI_API_KEY to a valid one; `alhena doctor` shows which sign-in is used.";
    let busy = "The API itself failed: run again in a while, or with more patience by `max_attempts` 10.";
    let network = "Check the network and the proxy (HTTPS_PROXY), then run again.";
    let again = "Run again, or say the prompt in another way.";
    let cases = [
        (
            "20_api400",
            "Request contains an invalid argument.",
            "The API refused the request: check the prompt, the model (`model`) and the tools of MCP servers.",
        ),
        ("20_badkey", "API key not valid. Please pass a valid API key.", key),
        (
            "20_api401",
            "Request had invalid authentication credentials.",
            "The API does not accept the sign-in: set GEMINI_API_KEY to a valid key, or start Gemini CLI in a terminal and sign in again.",
        ),
        (
            "20_api403",
            "The caller does not have permission",
            "This key or account may not do that: try another `model`, or another key in GEMINI_API_KEY.",
        ),
        (
            "20_api404",
            "models/nope is not found for API version v1beta",
            "Check the model's name (`model`): the API does not have it for this key.",
        ),
        (
            "20_rpm",
            "Quota exceeded for quota metric 'Generate Content API requests per minute'.\nSuggested retry after 2s.",
            "Wait 2 s and run again, or use another model or key; `on_rate_limit` can do both.",
        ),
        ("20_daily", "You have exhausted your daily quota on this model.", quota),
        (
            "20_api499",
            "Client closed",
            "Run again; if it stays, check the network, the proxy and the model's name.",
        ),
        ("20_api500", "Internal error encountered.", busy),
        ("20_api503", "The model is overloaded. Please try again later.", busy),
        ("20_badsse", "Unexpected token 'o', \"{\"candidates\": [oops\" is not valid JSON", again),
        ("20_drop", "The connection to the API failed: terminated", network),
        (
            "20_refused",
            "The connection to the API failed: exception TypeError: fetch failed sending request",
            network,
        ),
        (
            "20_empty",
            "The model returned an empty response with no text or thoughts. This may be a transient API issue; please try again.",
            again,
        ),
        (
            "20_safety",
            "The model response was blocked due to safety settings.",
            "Say the prompt in another way: the same one will be blocked again.",
        ),
        (
            "20_maxtok_empty",
            "Model response was truncated because it exceeded the token limit. Try using /compress to free up context space.",
            "Ask for less in one answer, or give it less to read.",
        ),
        ("20_nofinish", "Model stream ended without a finish reason.", again),
        ("20_badcall", "Model stream ended with malformed function call.", again),
        (
            "20_maxturns",
            "Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json.",
            "Give it more turns with `max_turns`.",
        ),
        (
            "03_noauth_nokey_baseurl",
            "Invalid auth method selected.",
            "Put {\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}} into ~/.gemini/settings.json: with GOOGLE_GEMINI_BASE_URL set, Gemini CLI picks a sign-in that it then refuses.",
        ),
        (
            "03_selected_apikey_but_no_key",
            "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.\nUpdate your environment and try again (no reload needed if using .env)!",
            "Set GEMINI_API_KEY, or put GEMINI_API_KEY=... into ~/.gemini/.env.",
        ),
        (
            "20_noprompt",
            "No input provided via stdin. Input can be provided by piping data into gemini or using the --prompt option.",
            "Give a prompt or a `prompt_file`.",
        ),
        (
            "03_resume_unknown_uuid",
            "Error resuming session: No previous sessions found for this project.",
            "`gemini --list-sessions` lists this folder's sessions: give `resume` the id of one of them, or leave it out.",
        ),
        (
            "20_untrusted",
            "Gemini CLI is not running in a trusted directory.",
            "Run with `trust` to run here without the folder's own settings, or `trust`=settings to load them too.",
        ),
        (
            "20_badflag",
            "Unknown argument: nonsense",
            "Gemini CLI did not accept its arguments; `gemini --help` lists those of this version.",
        ),
        (
            "20_overflow_streamjson",
            "Gemini CLI reported success without asking the model",
            "The prompt is larger than the model's context window, or a hook stopped it: make the prompt shorter, put the material into files and name them in it.",
        ),
        (
            "20_overflow_text",
            "The model gave no answer",
            "Run again; if the prompt is very large, make it shorter.",
        ),
        (
            "04_stream_SIGTERM_group",
            "Gemini CLI exited with code 0 and without a result",
            "It ends like this when something outside stops it; run again with `record` to keep everything it wrote.",
        ),
    ];
    let all = Recording::all();
    for (prefix, message, hint) in cases {
        let formats = ["", "_streamjson", "_json", "_text"].map(|format| format!("{prefix}{format}"));
        let same: Vec<&Recording> = all.iter().filter(|each| formats.contains(&each.name)).collect();
        assert!(!same.is_empty(), "{prefix}");
        for recording in same {
            let (_, outcome) = recording.play();
            let failure = outcome.failure.as_ref().unwrap();
            // Where the session is known the hint ends with how to go on.
            let told = failure.hint.split(" To go on with this session").next().unwrap();
            assert_eq!((failure.message.as_str(), told), (message, hint), "{}", recording.name);
        }
    }
}

#[test]
fn a_run_that_hung_and_was_stopped_says_what_it_was_waiting_for() {
    use alhena_model::{End, Input, Interpreter, Stop};
    let cases = [
        ("03_conn_refused_streamjson", "Gemini CLI was silent for 300 s (Attempt 5 failed)"),
        ("03_hang_midstream_streamjson", "Gemini CLI was silent for 300 s"),
        (
            "20_longwait_streamjson",
            "Gemini CLI was silent for 300 s (Attempt 1 failed: You have exhausted your capacity on this model. Your quota will reset after 8h44m7s.)",
        ),
    ];
    for (name, message) in cases {
        let recording = Recording::get(name);
        let (mut interpreter, mut out) = (Interpreter::new(), Vec::new());
        crate::common::feed(&mut interpreter, &recording.stdout, &mut out);
        interpreter.feed(Input::Stop(Stop::Silence(std::time::Duration::from_secs(300))), &mut out);
        let end = End { exit: Exit::Signal(9), stderr: recording.stderr, duration_ms: None };
        let outcome = interpreter.conclude(&end, &mut out);
        assert_eq!(outcome.status, Status::Stalled, "{name}");
        assert_eq!(outcome.failure.as_ref().map(|failure| failure.message.as_str()), Some(message));
    }
}

#[test]
fn commands_of_a_real_run_have_the_truth_that_the_stream_lets_on() {
    // C-29, C-44
    let (events, outcome) = Recording::get("20_shell_streamjson").play();
    let run = |command: &str, exit_code, output: &str| CommandRun {
        call_id: String::new(),
        command: command.to_owned(),
        exit_code,
        output: Some(output.to_owned()),
    };
    let found: Vec<CommandRun> =
        outcome.commands.iter().map(|run| CommandRun { call_id: String::new(), ..run.clone() }).collect();
    assert_eq!(
        found,
        [
            run("exit 3", Some(3), "Command exited with code: 3"),
            run("echo bad; exit 3", None, "bad"),
            run("kill -9 $$", None, "Command terminated by signal: 9"),
        ]
    );
    let ok: Vec<bool> = events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::ToolResult { ok, .. } => Some(ok),
            _ => None,
        })
        .collect();
    assert_eq!(ok, [false, false, true, false]);
    let (events, outcome) = Recording::get("20_ctrlc_shell_streamjson").play();
    let cancelled = events.iter().find_map(|event| match event.kind {
        EventKind::ToolResult { ok, cancelled, .. } => Some((ok, cancelled)),
        _ => None,
    });
    assert_eq!(cancelled, Some((false, Some(true))));
    assert_eq!(outcome.status, Status::Cancelled);
}

#[test]
fn a_real_run_with_tools_has_this_outcome() {
    let (_, outcome) = Recording::get("06_new_with_id").play();
    let file = FileRecord {
        path: "n.txt".into(),
        change: Change::Created,
        tool: Some("write_file".into()),
        claimed: true,
        verified: false,
        diff: None,
    };
    assert_eq!(outcome.files, [file]);
    insta::assert_json_snapshot!(&*outcome);
}

#[test]
fn a_real_failure_has_this_outcome() {
    let (_, outcome) = Recording::get("20_rpm_streamjson").play();
    let mut outcome = serde_json::to_value(&*outcome).unwrap();
    let stderr = outcome["failure"]["stderr"].take();
    assert!(stderr.as_str().unwrap().ends_with("  retryDelayMs: 2000,\n  status: 429\n}"));
    insta::assert_json_snapshot!(outcome);
}

#[test]
fn a_real_run_with_tools_has_these_events() {
    let (events, _) = Recording::get("03_allowed_tools_git_streamjson").play();
    let (_, but_the_last) = events.split_last().unwrap();
    insta::assert_json_snapshot!(but_the_last);
}
