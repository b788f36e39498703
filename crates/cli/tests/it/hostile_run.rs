//! Runs of stand-ins that do what the real CLI cannot do on demand.

use std::time::Duration;

use crate::lab::{Build, HostileLab};
use alhena_model::{EventKind, FailureKind, Outcome, Status};
use alhena_testbed::script::Ending;
use alhena_testbed::{Child, Script, Step};

fn script(steps: impl IntoIterator<Item = Step>) -> Script {
    Script::new(steps)
}

fn kind(outcome: &Outcome) -> Option<FailureKind> {
    outcome.failure.as_ref().map(|failure| failure.kind)
}

#[test]
fn a_good_agent_is_a_success_with_its_text() {
    let hostile = HostileLab::new("good", Script::normal());
    let outcome = hostile.run();
    assert_eq!((outcome.status, outcome.exit_code), (Status::Success, Some(0)));
    assert_eq!(outcome.failure, None);
    assert!(!outcome.text.all().is_empty());
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn garbage_between_lines_is_counted_and_costs_nothing_else() {
    // A-27
    let hostile = HostileLab::new(
        "garbage",
        script([
            Step::Init,
            Step::User,
            Step::Garbage,
            Step::Text("whole".into()),
            Step::InvalidUtf8,
            Step::Text(" answer".into()),
            Step::Result,
        ]),
    );
    let (events, outcome) = hostile.lab.run_with_events(hostile.lab.request("hello"));
    assert_eq!(outcome.status, Status::Success);
    assert_eq!(outcome.text.all(), "whole answer");
    let counted: u64 = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Malformed { bytes, .. } => Some(*bytes),
            _ => None,
        })
        .sum();
    assert!(outcome.malformed.lines >= 3, "{:?}", outcome.malformed);
    assert_eq!(outcome.malformed.bytes, counted);
    let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(seqs, (0..events.len() as u64).collect::<Vec<_>>());
}

#[test]
fn half_lines_crlf_and_odd_separators_are_read_as_they_were_meant() {
    let hostile = HostileLab::new(
        "pieces",
        script([
            Step::Crlf,
            Step::Pieces { bytes: 7, pause_ms: 1 },
            Step::Init,
            Step::User,
            Step::LineSeparators,
            Step::Text("end".into()),
            Step::Result,
        ]),
    );
    let outcome = hostile.run();
    assert_eq!(outcome.status, Status::Success);
    assert!(outcome.text.all().contains('\u{2028}'), "{:?}", outcome.text.all());
    assert_eq!(outcome.malformed.lines, 0);
}

#[test]
fn a_line_of_100_megabytes_is_malformed_with_its_size_and_the_rest_is_read() {
    let size = 100 << 20;
    let hostile = HostileLab::new(
        "long",
        script([Step::Init, Step::LongLine(size), Step::Text("after".into()), Step::Result]),
    );
    let outcome = hostile.run();
    assert_eq!(outcome.status, Status::Success);
    let missing =
        format!("A line of {} bytes was too long to be read: a part of the text is missing", size - 1);
    assert!(outcome.warnings.contains(&missing), "{:?}", outcome.warnings);
    assert_eq!(outcome.text.all(), "after");
    assert_eq!((outcome.malformed.lines, outcome.malformed.bytes), (1, size - 1));
}

#[test]
fn a_long_stream_is_cut_in_the_outcome_and_says_so() {
    let hostile = HostileLab::new(
        "stream",
        script([Step::Init, Step::Mixed(48 << 20), Step::Deltas(16 << 20), Step::Result]),
    );
    let outcome = hostile.run();
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
    assert_eq!(outcome.malformed.lines, 0);
    assert!(!outcome.text.last().is_empty());
}

#[test]
fn exit_0_without_a_result_is_a_crash() {
    for steps in [vec![], vec![Step::Init, Step::User, Step::Text("half an answ".into())]] {
        let hostile = HostileLab::new("no result", script(steps));
        let outcome = hostile.run();
        assert_eq!((outcome.status, kind(&outcome)), (Status::Failed, Some(FailureKind::Crashed)));
    }
}

#[test]
fn what_comes_after_the_result_is_kept_and_a_second_result_of_error_counts() {
    let hostile = HostileLab::new(
        "after",
        script([
            Step::Normal,
            Step::Text(" late".into()),
            Step::ResultError("too late".into()),
            Step::Result,
        ]),
    );
    let (events, outcome) = hostile.lab.run_with_events(hostile.lab.request("hello"));
    assert_eq!((outcome.status, kind(&outcome)), (Status::Failed, Some(FailureKind::InvalidResponse)));
    assert!(outcome.text.all().ends_with(" late"));
    assert!(
        outcome.warnings.iter().any(|warning| warning.contains("second result")),
        "{:?}",
        outcome.warnings
    );
    let late = EventKind::Text { delta: " late".into() };
    assert!(events.iter().any(|event| event.kind == late));
}

#[test]
fn a_result_stands_when_the_agent_then_hangs() {
    let hostile = HostileLab::new("result then hang", script([Step::Normal, Step::Hang]));
    let outcome = hostile.run();
    assert_eq!(outcome.status, Status::Success);
    assert!(
        outcome.warnings.iter().any(|warning| warning.contains("did not exit")),
        "{:?}",
        outcome.warnings
    );
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn an_agent_that_closes_its_output_and_lives_on_is_stalled() {
    let hostile = HostileLab::new("closed", script([Step::Init, Step::CloseStdout, Step::Hang]));
    let mut request = hostile.lab.request("hello");
    request.stall_timeout = Some(Duration::from_millis(700));
    let outcome = hostile.lab.run(request);
    assert_eq!((outcome.status, kind(&outcome)), (Status::Stalled, Some(FailureKind::Stalled)));
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn an_agent_that_never_says_a_word_is_stalled() {
    let hostile = HostileLab::new("silent", script([Step::Hang]));
    let mut request = hostile.lab.request("hello");
    request.first_event_timeout = Some(Duration::from_millis(700));
    let outcome = hostile.lab.run(request);
    assert_eq!((outcome.status, kind(&outcome)), (Status::Stalled, Some(FailureKind::Stalled)));
}

#[test]
fn the_silence_clock_stands_still_while_a_tool_runs() {
    let line = r#"{"type":"tool_use","timestamp":"2026-11-15T17:58:39.984Z","tool_name":"run_shell_command","tool_id":"t1","parameters":{"command":"sleep 2"}}"#;
    let done = r#"{"type":"tool_result","timestamp":"2026-11-15T17:58:41.984Z","tool_id":"t1","status":"success","output":""}"#;
    let hostile = HostileLab::new(
        "tool",
        script([
            Step::Init,
            Step::Line(line.into()),
            Step::Sleep(5000),
            Step::Line(done.into()),
            Step::Text("done".into()),
            Step::Result,
        ]),
    );
    let mut request = hostile.lab.request("hello");
    request.stall_timeout = Some(Duration::from_secs(3));
    assert_eq!(hostile.lab.run(request).status, Status::Success);
}

#[test]
fn a_run_that_takes_too_long_is_a_timeout_even_if_it_ignores_signals() {
    let hostile = HostileLab::new(
        "deaf",
        script([Step::IgnoreSignals(vec![15, 2, 1]), Step::Init, Step::Text("thinking".into()), Step::Hang]),
    );
    let outcome = hostile.lab.run(hostile.lab.request("hello").timeout(Duration::from_secs(10)));
    assert_eq!((outcome.status, kind(&outcome)), (Status::Timeout, Some(FailureKind::Timeout)));
    assert_eq!(outcome.text.all(), "thinking");
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn no_process_outlives_a_run_whatever_it_does_to_hide() {
    let children = [
        Child::default(),
        Child::default().new_session(),
        Child::default().new_session().closed_files(),
        Child::default().daemon(),
        Child::default().daemon().new_session().closed_files(),
        Child::default().cleared_environment(),
        Child::default().daemon().cleared_environment().closed_files(),
        Child::default().daemon().new_session().cleared_environment().ignores_signals(),
        Child::default().new_session().writes_every_ms(20),
    ];
    let steps = children.into_iter().map(Step::Spawn);
    let hostile = HostileLab::new("children", Script::new(steps.chain([Step::Normal])));
    let outcome = hostile.run();
    assert_eq!(outcome.status, Status::Success);
    assert!(hostile.hostile.pids().unwrap().len() > 9);
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn a_storm_of_forks_is_swept_away() {
    let storm = Step::ForkStorm { processes: 50, for_ms: 3000, every_ms: 40 };
    let hostile = HostileLab::new("storm", script([storm, Step::Normal]));
    assert_eq!(hostile.run().status, Status::Success);
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn dropping_a_run_stops_it() {
    let hostile =
        HostileLab::new("drop", script([Step::Init, Step::Spawn(Child::default().daemon()), Step::Hang]));
    let mut run = hostile.lab.start(hostile.lab.request("hello"));
    while let Some(event) = run.next_blocking() {
        if matches!(event.kind, EventKind::Started { .. }) {
            break;
        }
    }
    drop(run);
    let deadline = alhena_testbed::Deadline::after(Duration::from_secs(20));
    assert!(deadline.wait_until(|| hostile.hostile.survivors().unwrap().is_empty()));
}

#[test]
fn every_exit_code_without_a_result_is_a_failure_of_the_right_kind() {
    for code in
        [0, 1, 2, 41, 42, 44, 52, 53, 54, 55, 100, 126, 127, 130, 144, 145, 147, 173, 199, 244, 247, 255]
    {
        let hostile = HostileLab::new("codes", script([Step::Init, Step::End(Ending::Exit(code))]));
        let outcome = hostile.run();
        let expected = match code {
            41 | 145 | 147 => FailureKind::Auth,
            42 | 144 => FailureKind::Input,
            44 => FailureKind::Sandbox,
            52 => FailureKind::Config,
            53 => FailureKind::TurnLimit,
            54 => FailureKind::DiskFull,
            55 => FailureKind::Untrusted,
            127 => FailureKind::NotInstalled,
            130 => FailureKind::Cancelled,
            173 => FailureKind::RateLimited,
            244 | 247 => FailureKind::Api,
            _ => FailureKind::Crashed,
        };
        // 255 and 199 are no plausible HTTP status of this API; whichever they are called, they are failures.
        if code != 255 && code != 199 {
            assert_eq!(kind(&outcome), Some(expected), "exit {code}");
        }
        assert_ne!(outcome.status, Status::Success, "exit {code}");
        assert_eq!(outcome.exit_code, Some(code));
    }
}

#[test]
fn every_exit_code_after_a_success_is_a_failure_but_0() {
    for code in [0, 1, 42, 130, 255] {
        let hostile = HostileLab::new("late codes", script([Step::Normal, Step::End(Ending::Exit(code))]));
        let outcome = hostile.run();
        assert_eq!(outcome.status == Status::Success, code == 0, "exit {code}");
    }
}

#[test]
fn death_by_a_signal_is_a_crash() {
    for signal in [1, 2, 3, 6, 9, 11, 13, 15] {
        let hostile = HostileLab::new("signals", script([Step::Init, Step::End(Ending::Signal(signal))]));
        let outcome = hostile.run();
        assert_eq!(
            (outcome.status, kind(&outcome)),
            (Status::Failed, Some(FailureKind::Crashed)),
            "signal {signal}"
        );
        assert_eq!(outcome.exit_code, None);
    }
}

#[test]
fn death_at_any_byte_is_never_a_success() {
    for bytes in [0, 1, 60, 133, 134, 135, 200, 300, 400] {
        let die = Step::DieAtByte { bytes, ending: Ending::Exit(0) };
        let hostile = HostileLab::new("bytes", script([die, Step::Normal]));
        let outcome = hostile.run();
        assert_eq!(outcome.status, Status::Failed, "byte {bytes}");
    }
}

#[test]
fn more_output_than_is_borne_ends_the_run() {
    let hostile = HostileLab::new("flood", script([Step::Init, Step::Deltas(200 << 20), Step::Hang]));
    let mut request = hostile.lab.request("hello");
    request.max_output = 4 << 20;
    let outcome = hostile.lab.run(request);
    assert_eq!((outcome.status, kind(&outcome)), (Status::Failed, Some(FailureKind::Protocol)));
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn a_reader_that_starts_late_loses_nothing() {
    let hostile = HostileLab::new(
        "late",
        script([Step::Init, Step::Deltas(4 << 20), Step::Text("the end".into()), Step::Result]),
    );
    let mut run = hostile.lab.start(hostile.lab.request("hello"));
    std::thread::sleep(Duration::from_secs(3));
    let events = crate::lab::all(&mut run);
    let outcome = run.outcome_blocking();
    assert_eq!(outcome.status, Status::Success);
    assert!(outcome.text.all().ends_with("the end"));
    assert!(events.len() > 10_000);
}

#[test]
fn no_prompt_can_break_the_command_line() {
    let every: String = (1..=0x10FFFFu32).step_by(97).filter_map(char::from_u32).collect();
    let prompts = [
        "-x",
        "--yolo",
        "--",
        "a\nb\r\nc\t",
        "'\"$(touch x)`\\",
        "\u{feff}bom",
        "\0nul",
        "@file 🌍",
        every.as_str(),
    ];
    for prompt in prompts {
        let hostile = HostileLab::new("prompts", Script::normal());
        let outcome = hostile.lab.run(hostile.lab.request(prompt));
        assert_eq!(outcome.status, Status::Success, "{prompt:?}");
        let start = hostile.hostile.starts().unwrap().pop().unwrap();
        let by_flag = start.argv.iter().find_map(|arg| arg.strip_prefix("--prompt=")).map(str::to_owned);
        let by_stdin = start.stdin.map(|stdin| stdin.sha256);
        match by_flag {
            Some(text) => assert_eq!(text, *prompt),
            None => {
                assert_eq!(by_stdin, Some(alhena_testbed::stand_in::sha256(prompt.as_bytes())), "{prompt:?}")
            }
        }
    }
}

#[test]
fn a_secret_is_in_no_argument_and_in_no_recording() {
    let secret = "s3cret-value-9472";
    let said = format!("your key is {secret}, keep it");
    let hostile = HostileLab::new(
        "secret",
        script([Step::Init, Step::Text(said.clone()), Step::Stderr(format!("{secret}\n")), Step::Result]),
    );
    let dir = hostile.lab.home.path().join("recording");
    let request = hostile.lab.request("hello").env("MY_API_KEY", secret).record(&dir);
    let outcome = hostile.lab.run(request);
    assert_eq!(outcome.text.all(), said);
    let start = hostile.hostile.starts().unwrap().pop().unwrap();
    assert_eq!(start.env.get("MY_API_KEY").map(String::as_str), Some(secret));
    assert!(start.argv.iter().all(|arg| !arg.contains(secret)));
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(secret), "{}", path.display());
        }
    }
    assert!(std::fs::read_to_string(dir.join("stdout")).unwrap().contains("[MY_API_KEY]"));
}

#[test]
fn a_recording_plays_back_to_the_same_events_and_outcome() {
    let hostile = HostileLab::new(
        "record",
        script([
            Step::Init,
            Step::User,
            Step::Tool {
                name: "write_file".into(),
                parameters: serde_json::json!({"file_path": "never.txt", "content": "x"}),
                output: String::new(),
            },
            Step::Garbage,
            Step::Text("done".into()),
            Step::Result,
        ]),
    );
    let dir = hostile.lab.home.path().join("recording");
    let (events, outcome) = hostile.lab.run_with_events(hostile.lab.request("hello").record(&dir));
    let mut played = Vec::new();
    let again = alhena_agent::recording::play(&dir, |item| {
        if let alhena_agent::Item::Event(event) = item {
            played.push(event);
        }
    })
    .unwrap();
    assert_eq!(*again, *outcome);
    let kinds =
        |events: &[alhena_model::Event]| events.iter().map(|event| event.kind.clone()).collect::<Vec<_>>();
    assert_eq!(kinds(&played), kinds(&events));
    // A write that never happened is seen as such.
    assert_eq!(outcome.files.len(), 1);
    assert!(outcome.files[0].claimed && !outcome.files[0].verified);
}

#[test]
fn a_disk_without_room_leaves_no_half_file_in_the_users_home() {
    let hostile = HostileLab::new("full", Script::normal());
    let gemini = hostile.lab.home.path().join(".gemini");
    let run = hostile.lab.command(&["hello"]);
    // No file can get longer than nothing: every write fails, as on a full disk.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\""]);
    command.arg(run.get_program()).args(run.get_args()).current_dir(hostile.lab.workspace());
    command.env_clear().envs(hostile.lab.env.iter());
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let mut left = vec![gemini.clone()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            assert_ne!(std::fs::metadata(&path).unwrap().len(), 0, "{} is empty", path.display());
        }
    }
    // With room again, nothing of it is in the way.
    let outcome = hostile.run();
    assert_eq!(outcome.status, Status::Success);
    let damaged = outcome.warnings.iter().find(|warning| warning.contains("projects.json"));
    assert_eq!(damaged, None);
}

#[test]
fn processes_that_were_left_running_are_named_in_a_warning() {
    let left = Child::default().daemon().new_session().cleared_environment();
    let hostile = HostileLab::new("left", script([Step::Spawn(left), Step::Normal]));
    let outcome = hostile.run();
    assert_eq!(outcome.status, Status::Success);
    let told = outcome.warnings.iter().filter(|warning| warning.contains("left running")).count();
    assert_eq!(told, 1, "{:?}", outcome.warnings);
    assert!(hostile.hostile.survivors().unwrap().is_empty());
    let tidy = HostileLab::new("tidy", Script::normal()).run();
    assert!(!tidy.warnings.iter().any(|warning| warning.contains("left running")), "{:?}", tidy.warnings);
}

#[test]
fn a_cli_that_cannot_be_started_is_told_as_that() {
    let mut hostile = HostileLab::new("not-started", Script::normal());
    hostile.lab.gemini.path = hostile.lab.home.path().join("no-program");
    std::fs::write(&hostile.lab.gemini.path, "not for the system to run").unwrap();
    let outcome = hostile.run();
    let said = outcome.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default();
    assert!(said.contains("could not be started: Permission denied"), "{said}");
    assert_eq!((outcome.status, outcome.exit_code), (Status::Failed, Some(126)));
}
