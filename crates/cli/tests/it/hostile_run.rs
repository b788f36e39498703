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

/// How a run ends that no limit of time would end.
#[test]
fn whatever_a_stand_in_does_instead_of_ending_well_the_run_has_failed_and_nothing_is_left() {
    use FailureKind::{Crashed, Protocol, Stalled};
    let soon = Some(Duration::from_millis(700));
    let ends = |ending| vec![Step::Init, Step::End(ending)];
    let mut cases = vec![
        (vec![], Status::Failed, Crashed),
        (vec![Step::Init, Step::User, Step::Text("half an answ".into())], Status::Failed, Crashed),
        (ends(Ending::Exit(1)), Status::Failed, Crashed),
        (ends(Ending::Signal(9)), Status::Failed, Crashed),
        (ends(Ending::Signal(15)), Status::Failed, Crashed),
        (vec![Step::Hang], Status::Stalled, Stalled),
        (vec![Step::Init, Step::CloseStdout, Step::Hang], Status::Stalled, Stalled),
        (vec![Step::Init, Step::Deltas(200 << 20), Step::Hang], Status::Failed, Protocol),
    ];
    for bytes in [0, 1, 60, 133, 134, 135, 200, 300, 400] {
        let die = Step::DieAtByte { bytes, ending: Ending::Exit(0) };
        cases.push((vec![die, Step::Normal], Status::Failed, Crashed));
    }
    for (steps, status, failure) in cases {
        let hostile = HostileLab::new("ends badly", script(steps.clone()));
        let mut request = hostile.lab.request("hello");
        (request.first_event_timeout, request.stall_timeout, request.max_output) = (None, None, 4 << 20);
        match steps.as_slice() {
            [Step::Hang] => request.first_event_timeout = soon,
            [.., Step::CloseStdout, Step::Hang] => request.stall_timeout = soon,
            _ => {}
        }
        let outcome = hostile.lab.run(request);
        assert_eq!((outcome.status, kind(&outcome)), (status, Some(failure)), "{steps:?}");
        assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0], "{steps:?}");
    }
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
    let storm = Step::ForkStorm { processes: 50, for_ms: 3000, every_ms: 40 };
    let steps = children.into_iter().map(Step::Spawn).chain([storm, Step::Normal]);
    let hostile = HostileLab::new("children", Script::new(steps));
    let outcome = hostile.run();
    assert_eq!(outcome.status, Status::Success);
    assert!(hostile.hostile.pids().unwrap().len() > 59);
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
fn every_exit_code_after_a_success_is_a_failure_but_0() {
    for code in [0, 1, 42, 130, 255] {
        let hostile = HostileLab::new("late codes", script([Step::Normal, Step::End(Ending::Exit(code))]));
        let outcome = hostile.run();
        assert_eq!((outcome.status == Status::Success, outcome.exit_code), (code == 0, Some(code)));
    }
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
