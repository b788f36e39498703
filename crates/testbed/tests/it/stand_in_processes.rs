//! Each way in which the stand-in lives, dies and leaves processes behind is what its name says.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child as Process, Stdio};
use std::time::Duration;

use alhena_testbed::processes::{descendants, parent};
use alhena_testbed::script::{Child, Ending, Script, Step};
use alhena_testbed::{Deadline, Hostile, alive, processes_with_env, run_bounded};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(60);

/// Starts the script with stdout in a pipe, and waits for its line `ready`.
fn start(hostile: &Hostile) -> Process {
    let mut process = hostile.command().stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 6];
    std::io::Read::read_exact(process.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(&line, b"ready\n");
    process
}

fn hostile(steps: impl IntoIterator<Item = Step>) -> Hostile {
    Hostile::new(Script::new(steps)).unwrap()
}

fn ready() -> Step {
    Step::Line("ready".into())
}

fn pid(number: u32) -> Pid {
    Pid::from_raw(i32::try_from(number).unwrap()).unwrap()
}

fn send(process: u32, signal: Signal) {
    kill_process(pid(process), signal).unwrap();
}

fn dies(process: u32) -> bool {
    Deadline::after(LIMIT).wait_until(|| !alive(process))
}

fn end(mut process: Process) {
    process.kill().unwrap();
    process.wait().unwrap();
}

/// The one process that the stand-in started, living.
fn only_child(hostile: &Hostile) -> u32 {
    let pids = hostile.pids().unwrap();
    assert_eq!(pids.len(), 2, "{pids:?}");
    assert!(alive(pids[1]));
    pids[1]
}

#[test]
fn every_exit_code_is_reached() {
    for code in 0..=255 {
        let done = run_bounded(&mut hostile([Step::End(Ending::Exit(code))]).command(), LIMIT).unwrap();
        assert_eq!(done.status.code(), Some(code));
    }
}

// SIGCHLD, SIGURG, SIGWINCH and SIGCONT do nothing by default, SIGSTOP, SIGTSTP, SIGTTIN and SIGTTOU stop.
#[test]
fn every_deadly_signal_is_died_of() {
    let harmless = [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH, libc::SIGCONT];
    let stopping = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    for signal in 1..=31 {
        if stopping.contains(&signal) {
            continue;
        }
        let steps = [Step::End(Ending::Signal(signal)), Step::End(Ending::Exit(5))];
        let done = run_bounded(&mut hostile(steps).command(), LIMIT).unwrap();
        let expected = if harmless.contains(&signal) { (None, Some(5)) } else { (Some(signal), None) };
        assert_eq!((done.status.signal(), done.status.code()), expected, "signal {signal}");
    }
}

#[test]
fn a_stopped_process_stays_until_it_is_killed() {
    let hostile = hostile([ready(), Step::End(Ending::Signal(libc::SIGSTOP)), Step::Line("again".into())]);
    let process = start(&hostile);
    let stopped = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
        status.lines().any(|line| line.starts_with("State:\tT"))
    };
    assert!(Deadline::after(LIMIT).wait_until(stopped));
    end(process);
}

#[test]
fn it_hangs_without_a_word_until_killed() {
    let hostile = hostile([Step::Hang]);
    let done = run_bounded(&mut hostile.command(), Duration::from_millis(300)).unwrap();
    assert!(done.timed_out);
    assert_eq!((done.stdout.len(), done.status.signal()), (0, Some(libc::SIGKILL)));
}

#[test]
fn signals_are_ignored_but_not_sigkill() {
    let deaf = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];
    let hostile = hostile([
        Step::IgnoreSignals(deaf.to_vec()),
        ready(),
        Step::Sleep(300),
        Step::Line("still".into()),
        Step::Hang,
    ]);
    let mut process = start(&hostile);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        send(process.id(), signal);
    }
    let mut line = [0; 6];
    std::io::Read::read_exact(process.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(&line, b"still\n");
    process.kill().unwrap();
    assert_eq!(process.wait().unwrap().signal(), Some(libc::SIGKILL));
}

#[test]
fn a_signal_can_end_it_with_an_exit_code() {
    let hostile =
        hostile([Step::ExitOnSignals { signals: vec![libc::SIGTERM], code: 0 }, ready(), Step::Hang]);
    let mut process = start(&hostile);
    send(process.id(), Signal::TERM);
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn stdout_is_closed_while_it_lives() {
    let hostile = hostile([ready(), Step::CloseStdout, Step::Text("lost".into()), Step::Hang]);
    let mut process = start(&hostile);
    let mut rest = Vec::new();
    std::io::Read::read_to_end(process.stdout.as_mut().unwrap(), &mut rest).unwrap();
    assert_eq!(rest, b"");
    assert!(alive(process.id()));
    end(process);
}

#[test]
fn a_reader_that_is_gone_ends_it_with_0_like_the_cli() {
    let hostile = hostile([ready(), Step::Deltas(1 << 30), Step::End(Ending::Exit(7))]);
    let mut process = start(&hostile);
    drop(process.stdout.take());
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

#[test]
fn it_spins_on_a_core_until_killed() {
    let hostile = hostile([ready(), Step::Spin]);
    let process = start(&hostile);
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
        stat.rsplit(") ").next().unwrap().split(' ').nth(11).unwrap().parse::<u64>().unwrap()
    };
    assert!(Deadline::after(LIMIT).wait_until(|| ticks() > 10));
    end(process);
}

/// From /proc, because it is 0 in a container whose session was begun outside of it.
fn group_and_session(pid: u32) -> (i32, i32) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let mut fields = stat.rsplit(") ").next().unwrap().split(' ').skip(2).map(|field| field.parse().unwrap());
    (fields.next().unwrap(), fields.next().unwrap())
}

#[test]
fn a_child_stays_in_its_parents_session_or_leaves_it() {
    for (child, own_session) in [(Child::default(), false), (Child::default().new_session(), true)] {
        let hostile = hostile([Step::Spawn(child), ready(), Step::Hang]);
        let process = start(&hostile);
        let child = only_child(&hostile);
        assert_eq!(parent(child), Some(process.id()));
        assert_eq!(descendants(process.id()), [child]);
        let (mine, parents) = (group_and_session(child), group_and_session(process.id()));
        assert_eq!([mine.0 != parents.0, mine.1 != parents.1], [own_session, own_session]);
        end(process);
        assert!(alive(child));
        send(child, Signal::TERM);
        assert!(dies(child));
    }
}

#[test]
fn a_child_keeps_stdout_open_or_closes_it() {
    for (child, open) in [(Child::default(), true), (Child::default().closed_files(), false)] {
        let hostile = hostile([Step::Spawn(child), ready(), Step::Hang]);
        let process = start(&hostile);
        let child = only_child(&hostile);
        for descriptor in 0..3 {
            assert_eq!(Path::new(&format!("/proc/{child}/fd/{descriptor}")).exists(), open);
        }
        end(process);
    }
}

#[test]
fn a_child_writes_after_its_parent_is_gone() {
    let hostile = hostile([Step::Spawn(Child::default().writes_every_ms(10)), Step::End(Ending::Exit(0))]);
    let mut process = hostile.command().stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
    let mut line = [0; 42];
    std::io::Read::read_exact(process.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(&line, b"a child still writes\na child still writes\n");
    assert_eq!(hostile.survivors().unwrap(), [only_child(&hostile)]);
}

#[test]
fn a_daemon_has_lost_its_parent_but_not_its_mark() {
    let hostile =
        hostile([Step::Spawn(Child::default().new_session().daemon().closed_files()), ready(), Step::Hang]);
    let process = start(&hostile);
    let daemon = only_child(&hostile);
    assert_ne!(parent(daemon), Some(process.id()));
    assert_eq!(descendants(process.id()), Vec::<u32>::new());
    let (name, value) = hostile.env().into_iter().find(|(name, _)| name == "HOSTILE_PIDS").unwrap();
    let mut marked = processes_with_env(&format!("{name}={value}"));
    marked.sort_unstable();
    let mut expected = [process.id(), daemon];
    expected.sort_unstable();
    assert_eq!(marked, expected);
    end(process);
}

#[test]
fn a_child_can_clear_its_environment() {
    let hostile =
        hostile([Step::Spawn(Child::default().cleared_environment().ignores_signals()), ready(), Step::Hang]);
    let process = start(&hostile);
    let child = only_child(&hostile);
    assert_eq!(std::fs::read(format!("/proc/{child}/environ")).unwrap(), b"");
    assert_eq!(processes_with_env("HOSTILE_PIDS=").iter().filter(|found| **found == child).count(), 0);
    send(child, Signal::TERM);
    send(child, Signal::HUP);
    end(process);
    assert_eq!(hostile.survivors().unwrap(), [child]);
}

#[test]
fn a_storm_changes_its_processes_all_the_time() {
    let hostile =
        hostile([Step::ForkStorm { processes: 20, for_ms: 3000, every_ms: 10 }, ready(), Step::Hang]);
    let process = start(&hostile);
    let first = hostile.survivors().unwrap();
    let calm = || {
        let before = hostile.pids().unwrap().len();
        std::thread::sleep(Duration::from_secs(1));
        before == hostile.pids().unwrap().len()
    };
    assert!(Deadline::after(LIMIT).wait_until(calm));
    let last = hostile.survivors().unwrap();
    assert_eq!(last.len(), 21);
    assert!(hostile.pids().unwrap().len() > 40, "only {} processes", hostile.pids().unwrap().len());
    let kept: Vec<&u32> = first.iter().filter(|pid| last.contains(pid)).collect();
    assert_eq!(kept, [&process.id()]);
    end(process);
}

#[test]
fn all_processes_end_with_the_stand_in_of_the_test() {
    let hostile = hostile([
        Step::Spawn(Child::default().new_session().daemon().ignores_signals()),
        Step::ForkStorm { processes: 5, for_ms: 60_000, every_ms: 20 },
        ready(),
        Step::Hang,
    ]);
    let mut process = start(&hostile);
    let pids = hostile.pids().unwrap();
    assert!(pids.len() >= 7);
    let (name, value) = hostile.env().into_iter().find(|(name, _)| name == "HOSTILE_PIDS").unwrap();
    drop(hostile);
    process.wait().unwrap();
    assert_eq!(processes_with_env(&format!("{name}={value}")), Vec::<u32>::new());
}

#[test]
fn every_process_dies_at_the_end_of_its_lifetime() {
    let deaf = Step::IgnoreSignals(vec![libc::SIGTERM]);
    let children =
        [Child::default().new_session().daemon().ignores_signals(), Child::default().cleared_environment()];
    let steps = [deaf].into_iter().chain(children.map(Step::Spawn)).chain([Step::Hang]);
    let hostile = hostile(steps).lifetime(Duration::from_secs(5));
    let done = run_bounded(&mut hostile.command(), LIMIT).unwrap();
    assert_eq!(done.status.signal(), Some(libc::SIGALRM));
    assert_eq!(hostile.pids().unwrap().len(), 3);
    assert!(Deadline::after(LIMIT).wait_until(|| hostile.survivors().unwrap().is_empty()));
}
