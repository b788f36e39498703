//! The real CLI, stopped at random moments in four ways: nothing is left, no outcome is wrong, no session is lost.

use std::process::Stdio;
use std::time::Duration;

use crate::lab::{Build, Lab};
use alhena_agent::Approval;
use alhena_model::{EventKind, FailureKind, Outcome, Status};
use alhena_scripted::{After, Scenario, Turn};
use alhena_testbed::{Deadline, processes_with_env, versions};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// Streams, runs a shell command that would take a minute, and streams on.
fn long() -> Scenario {
    Scenario::new()
        .turn(
            Turn::new().text("Working ").sleep(Duration::from_millis(300)).text("on it. ").call(
                "run_shell_command",
                json!({"command": "echo begun > begun.txt; sleep 61.7; echo over"}),
            ),
        )
        .turn(Turn::new().text("Done").sleep(Duration::from_secs(60)).text("."))
        .after(After::Repeat)
}

/// Every process of the CLI and of its shell commands, by the private home in its environment.
fn nothing_left(lab: &Lab) {
    let mark = format!("HOME={}", lab.home.path().display());
    let deadline = Deadline::after(Duration::from_secs(30));
    let clean = deadline.wait_until(|| processes_with_env(&mark).is_empty());
    let left: Vec<String> =
        processes_with_env(&mark).into_iter().map(alhena_testbed::processes::command_line).collect();
    assert!(clean, "{left:#?}");
}

#[test]
fn real_cli_stopped_during_text_says_so_and_ends_in_order() {
    for version in versions() {
        let scenario =
            Scenario::new().turn(Turn::new().text("one ").sleep(Duration::from_secs(60)).text("two"));
        let lab = Lab::real("text", &version, scenario);
        let mut run = lab.start(lab.request("go"));
        while let Some(event) = run.next_blocking() {
            if matches!(event.kind, EventKind::Text { .. }) {
                run.stop();
                break;
            }
        }
        let outcome = run.outcome_blocking();
        assert_eq!(outcome.status, Status::Cancelled, "{version}");
        assert_eq!(outcome.text.all(), "one ");
        nothing_left(&lab);
    }
}

#[test]
fn real_cli_stopped_during_a_shell_command_leaves_no_command_running() {
    for version in versions() {
        let lab = Lab::real("shell", &version, long());
        let mut run = lab.start(lab.request("go").approval(Approval::Yolo));
        let begun = lab.workspace().join("begun.txt");
        while let Some(event) = run.next_blocking() {
            if matches!(event.kind, EventKind::ToolCall { .. }) {
                Deadline::after(Duration::from_secs(60)).wait_until(|| begun.exists());
                run.stop();
                break;
            }
        }
        let outcome = run.outcome_blocking();
        assert_eq!(outcome.status, Status::Cancelled, "{version}");
        assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), Some(FailureKind::Cancelled));
        nothing_left(&lab);
    }
}

#[test]
fn real_cli_stopped_at_20_random_moments_leaves_nothing_and_lies_never() {
    let mut moments = (0..20u64).map(|number| Duration::from_millis(150 + number * 7919 % 6000));
    for (number, way) in [0, 1, 2, 3].into_iter().cycle().take(20).enumerate() {
        let moment = moments.next().unwrap();
        let lab = Lab::real("random", "0.61.0", long());
        let request = lab.request("go").approval(Approval::Yolo);
        let context = format!("run {number} after {moment:?}");
        match way {
            0 => assert_eq!(lab.run(request.timeout(moment)).status, Status::Timeout, "{context}"),
            1 => {
                let run = lab.start(request);
                std::thread::sleep(moment);
                run.stop();
                assert_eq!(run.outcome_blocking().status, Status::Cancelled, "{context}");
            }
            _ => {
                let mut command = lab.command(&[
                    "--model",
                    "gemini-2.5-flash",
                    "--approval",
                    "yolo",
                    "--as",
                    "outcome",
                    "go",
                ]);
                let mut alhena = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
                std::thread::sleep(moment);
                let signal = if way == 2 { Signal::TERM } else { Signal::KILL };
                kill_process(Pid::from_child(&alhena), signal).unwrap();
                let output = alhena.stdout.take().map(std::io::read_to_string).unwrap().unwrap();
                let status = alhena.wait().unwrap();
                assert!(!status.success(), "{context}");
                if way == 2 && !output.is_empty() {
                    let outcome: Outcome = serde_json::from_str(&output).unwrap();
                    assert_eq!((outcome.status, status.code()), (Status::Cancelled, Some(130)), "{context}");
                }
            }
        }
        nothing_left(&lab);
    }
}
