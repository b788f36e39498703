//! Clocks, stops and limits hold whatever a stand-in does: it writes more than anybody can read, or nothing at all.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::lab::{Build, HostileLab};
use alhena_model::{EventKind, Outcome, Status};
use alhena_testbed::script::Ending;
use alhena_testbed::{Deadline, Script, Step};
use rustix::process::{Pid, Signal, kill_process};

/// More than a debug build reads while a stop is on its way.
const FLOOD: u64 = 400 << 20;
/// More than a debug build reads in half a minute, also on a fast machine.
const LARGE_FLOOD: u64 = 1600 << 20;
/// Far more than a stop takes on a busy machine, far less than reading the flood takes.
const SOON: Duration = Duration::from_secs(25);

fn says_what_was_not_read(outcome: &Outcome) -> bool {
    outcome.warnings.iter().any(|warning| warning.contains("were not read"))
}

#[test]
fn a_fast_stream_does_not_hold_up_the_time_limit() {
    let hostile =
        HostileLab::new("flood timeout", Script::new([Step::Init, Step::Deltas(LARGE_FLOOD), Step::Hang]));
    let dir = hostile.lab.home.path().join("recording");
    let request = hostile.lab.request("hello").timeout(Duration::from_secs(10)).record(&dir);
    let outcome = hostile.lab.run(request);
    assert_eq!(outcome.status, Status::Timeout);
    assert!(says_what_was_not_read(&outcome), "{:?}", outcome.warnings);
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
    // What was not read then is not read when it is played back.
    assert_eq!(*alhena_agent::recording::play(&dir, |_| ()).unwrap(), *outcome);
}

#[test]
fn a_stop_is_heard_while_the_output_of_an_agent_that_is_gone_is_still_read() {
    let hostile = HostileLab::new("flood rest", Script::new([Step::Init, Step::Deltas(FLOOD), Step::Result]));
    let mut run = hostile.lab.start(hostile.lab.request("hello"));
    run.next_blocking().unwrap();
    let gone = Deadline::after(Duration::from_secs(60));
    while !hostile.hostile.survivors().unwrap().is_empty() {
        assert!(gone.wait_until(|| run.next_blocking().is_some()));
    }
    run.stop();
    let outcome = run.outcome_blocking();
    assert_eq!(outcome.status, Status::Cancelled);
    assert!(says_what_was_not_read(&outcome), "{:?}", outcome.warnings);
}

/// Ignores ^C, and exits on the SIGTERM that comes when patience with that is over. Whoever is ended at once gets none, and has no
/// exit code: that shows it on a busy machine, too, where a time would not.
fn ignores_the_first() -> [Step; 2] {
    [Step::IgnoreSignals(vec![2, 1]), Step::ExitOnSignals { signals: vec![15], code: 7 }]
}

#[test]
fn a_second_request_to_stop_ends_at_once_what_ignores_the_first() {
    let steps = ignores_the_first().into_iter().chain([Step::Init, Step::Hang]);
    let hostile = HostileLab::new("at once", Script::new(steps));
    let mut run = hostile.lab.start(hostile.lab.request("hello"));
    // Before that there is no ^C.
    while !matches!(run.next_blocking().unwrap().kind, EventKind::Started { .. }) {}
    let stopper = run.stopper();
    stopper.stop();
    stopper.stop_at_once();
    let outcome = run.outcome_blocking();
    assert_eq!((outcome.status, outcome.exit_code), (Status::Cancelled, None));
    assert!(stopper.is_over());
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn a_result_that_was_written_before_the_stop_counts_even_if_the_reader_is_behind() {
    let written = Step::Touch("written".into());
    let steps = [Step::Init, Step::Deltas(3 << 20), Step::Result, written, Step::Hang];
    let hostile = HostileLab::new("behind", Script::new(steps));
    let mut run = hostile.lab.start(hostile.lab.request("hello"));
    run.next_blocking().unwrap();
    // Nobody takes an event until all is written: the queue is full, and the result is not read.
    let written = hostile.lab.workspace().join("written");
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(|| written.exists()));
    run.stop();
    let outcome = run.outcome_blocking();
    assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
}

#[test]
fn an_agent_that_ended_badly_is_not_called_cancelled_by_a_stop_that_comes_later() {
    let steps = [Step::Init, Step::Deltas(8 << 20), Step::End(Ending::Exit(42))];
    let hostile = HostileLab::new("too late", Script::new(steps));
    let mut run = hostile.lab.start(hostile.lab.request("hello"));
    run.next_blocking().unwrap();
    let gone = Deadline::after(Duration::from_secs(60));
    assert!(gone.wait_until(|| hostile.hostile.survivors().unwrap().is_empty()));
    std::thread::sleep(Duration::from_secs(1));
    run.stop();
    let outcome = run.outcome_blocking();
    assert_eq!((outcome.status, outcome.exit_code), (Status::Failed, Some(42)), "{:?}", outcome.warnings);
}

fn exit_code(alhena: &mut Child) -> Option<i32> {
    let mut status = None;
    let ended = Deadline::after(SOON).wait_until(|| {
        status = alhena.try_wait().unwrap();
        status.is_some()
    });
    if !ended {
        alhena.kill().unwrap();
        alhena.wait().unwrap();
        panic!("alhena did not end");
    }
    status.unwrap().code()
}

/// A tool that runs for ever.
fn long_tool() -> Step {
    Step::Line(
        r#"{"type":"tool_use","timestamp":"2026-11-15T17:58:39.984Z","tool_name":"run_shell_command","tool_id":"t1","parameters":{"command":"sleep 9999"}}"#
            .into(),
    )
}

#[test]
fn a_reader_that_goes_away_while_a_tool_runs_ends_the_run() {
    let hostile = HostileLab::new("reader", Script::new([Step::Init, long_tool(), Step::Hang]));
    let mut command = hostile.lab.command(&["--as", "events", "go"]);
    let mut alhena = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(alhena.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("tool_call")));
    drop(lines);
    assert_eq!(exit_code(&mut alhena), Some(130));
    let said = std::io::read_to_string(alhena.stderr.take().unwrap()).unwrap();
    assert!(said.contains("nothing reads its output any more"), "{said}");
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn a_second_signal_ends_at_once_what_ignores_the_first() {
    let steps = ignores_the_first().into_iter().chain([Step::Init, long_tool(), Step::Hang]);
    let hostile = HostileLab::new("twice", Script::new(steps));
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut command = hostile.lab.command(&["--as", "events", "go"]);
        let mut alhena = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdout = BufReader::new(alhena.stdout.take().unwrap());
        let mut lines = stdout.by_ref().lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("tool_call")));
        // Two signals of one kind that nobody has seen yet are one; and who is told to end when all is over may say no last word.
        let ended = Deadline::after(SOON).wait_until(|| {
            kill_process(Pid::from_child(&alhena), signal).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            hostile.hostile.survivors().unwrap().is_empty()
        });
        assert!(ended);
        assert_eq!(exit_code(&mut alhena), Some(130));
        let last: serde_json::Value = serde_json::from_str(&lines.last().unwrap()).unwrap();
        let outcome: Outcome = serde_json::from_value(last["outcome"].clone()).unwrap();
        assert_eq!((outcome.status, outcome.exit_code), (Status::Cancelled, None), "{signal:?}");
        assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
    }
}

#[test]
fn signals_at_the_very_end_leave_the_exit_code_what_the_outcome_says() {
    let hostile = HostileLab::new("late", Script::normal());
    for _ in 0..8 {
        let mut command = hostile.lab.command(&["--as", "events", "go"]);
        let mut alhena = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut stdout = BufReader::new(alhena.stdout.take().unwrap());
        let pid = Pid::from_child(&alhena);
        let mut line = String::new();
        while stdout.read_line(&mut line).unwrap() > 0 && !line.contains("session") {
            line.clear();
        }
        let mut rest = String::new();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| stdout.read_to_string(&mut rest));
            while !reader.is_finished() {
                let _gone = kill_process(pid, Signal::INT);
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let last: serde_json::Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
        let outcome: Outcome = serde_json::from_value(last["outcome"].clone()).unwrap();
        assert_eq!(exit_code(&mut alhena), Some(outcome.exit_status().into()), "{:?}", outcome.status);
    }
}

#[test]
fn one_signal_ends_a_run_whose_output_nobody_reads() {
    for (name, last) in [("unread", Step::Hang), ("unread and over", Step::Normal)] {
        let script = Script::new([Step::Init, Step::Deltas(1 << 20), last]);
        let hostile = HostileLab::new(name, script);
        let mut command = hostile.lab.command(&["--as", "events", "go"]);
        let mut alhena = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let unread = alhena.stdout.take().unwrap();
        let full = || rustix::io::ioctl_fionread(&unread).unwrap() > 60_000;
        assert!(Deadline::after(Duration::from_secs(60)).wait_until(full), "{name}");
        kill_process(Pid::from_child(&alhena), Signal::TERM).unwrap();
        assert_eq!(exit_code(&mut alhena), Some(130), "{name}");
        assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0], "{name}");
        let runs = hostile.lab.home.path().join("alhena/state/runs");
        assert_eq!(std::fs::read_dir(runs).map_or(0, Iterator::count), 0, "{name}");
    }
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_no_death() {
    let hostile = HostileLab::new("file limit", Script::normal());
    let line =
        r#"{"type":"message","timestamp":"2026-11-15T17:58:39.984Z","role":"assistant","content":"x"}"#;
    let (input, output) = (hostile.lab.workspace().join("in"), hostile.lab.workspace().join("out"));
    std::fs::write(&input, format!("{line}\n").repeat(20_000)).unwrap();
    let script = format!(
        "ulimit -f 64; exec {} parse --from stream-json --as events {} > {}",
        crate::lab::ALHENA,
        input.display(),
        output.display()
    );
    let done = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
    assert!(done.status.code().is_some_and(|code| code != 0), "{:?}", done.status);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("too large"), "{said}");
}

#[test]
fn more_on_stderr_than_is_borne_ends_the_run() {
    let hostile =
        HostileLab::new("stderr", Script::new([Step::Init, Step::StderrFlood(300 << 20), Step::Hang]));
    let record = hostile.lab.workspace().join("recording");
    let mut request = hostile.lab.request("hello").timeout(Duration::from_secs(60)).record(&record);
    request.max_stderr = 1 << 20;
    let outcome = hostile.lab.run(request);
    let failure = outcome.failure.as_ref().unwrap();
    assert_eq!(failure.kind, alhena_model::FailureKind::Protocol);
    assert!(failure.message.contains("1048576 bytes to standard error"), "{}", failure.message);
    assert_eq!(std::fs::metadata(record.join("stderr")).unwrap().len(), 1 << 20);
    let said = outcome.warnings.iter().any(|warning| warning.contains("bytes of stderr were left out"));
    assert!(said, "{:?}", outcome.warnings);
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn a_run_needs_no_watches_of_the_system() {
    let hostile = HostileLab::new("no inotify", Script::normal());
    let command = hostile.lab.command(&["--as", "outcome", "go"]);
    // In a user namespace of its own the limit can be lowered without taking anything from others.
    let script = "echo 0 > /proc/sys/user/max_inotify_instances || exit 99; exec \"$@\"";
    let mut without = std::process::Command::new("unshare");
    without.args(["-Ur", "sh", "-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    without.env_clear().envs(hostile.lab.env.iter()).current_dir(hostile.lab.workspace());
    without.env("PATH", "/usr/bin:/bin");
    let done = without.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.code() == Some(99) || said.contains("unshare:") {
        eprintln!("this machine has no user namespaces to try it in: {said}");
        return;
    }
    assert_eq!(done.status.code(), Some(0), "{said}");
    let outcome: Outcome = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(outcome.status, Status::Success);
}
