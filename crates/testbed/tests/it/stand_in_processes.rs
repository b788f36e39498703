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

fn end(mut process: Process) {
    process.kill().unwrap();
    process.wait().unwrap();
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

/// From /proc, because it is 0 in a container whose session was begun outside of it.
fn group_and_session(pid: u32) -> (i32, i32) {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let mut fields = stat.rsplit(") ").next().unwrap().split(' ').skip(2).map(|field| field.parse().unwrap());
    (fields.next().unwrap(), fields.next().unwrap())
}

#[test]
fn children_hide_in_the_ways_that_they_are_told_to() {
    let kinds = [
        Child::default(),
        Child::default().new_session().closed_files(),
        Child::default().new_session().daemon(),
        Child::default().cleared_environment().ignores_signals(),
    ];
    for kind in kinds {
        let hostile = hostile([Step::Spawn(kind.clone()), ready(), Step::Hang]);
        let process = start(&hostile);
        let pids = hostile.pids().unwrap();
        let [_, child] = pids[..] else { panic!("{pids:?}") };
        assert_eq!(parent(child) != Some(process.id()), kind.daemon, "{kind:?}");
        assert_eq!(descendants(process.id()).is_empty(), kind.daemon, "{kind:?}");
        let (mine, parents) = (group_and_session(child), group_and_session(process.id()));
        assert_eq!([mine.0 != parents.0, mine.1 != parents.1], [kind.new_session; 2], "{kind:?}");
        for descriptor in 0..3 {
            let open = Path::new(&format!("/proc/{child}/fd/{descriptor}")).exists();
            assert_eq!(open, !kind.closed_files, "{kind:?}");
        }
        let (name, value) = hostile.env().into_iter().find(|(name, _)| name == "HOSTILE_PIDS").unwrap();
        let marked = processes_with_env(&format!("{name}={value}"));
        assert_eq!(marked.contains(&child), !kind.cleared_environment, "{kind:?}");
        end(process);
        assert_eq!(hostile.survivors().unwrap(), [child], "{kind:?}");
        send(child, Signal::TERM);
        match kind.ignores_signals {
            false => assert!(Deadline::after(LIMIT).wait_until(|| !alive(child)), "{kind:?}"),
            true => assert!(alive(child)),
        }
    }
    let hostile = hostile([Step::Spawn(Child::default().writes_every_ms(10)), Step::End(Ending::Exit(7))]);
    let mut process = hostile.command().stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(7));
    let mut line = [0; 42];
    std::io::Read::read_exact(process.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(&line, b"a child still writes\na child still writes\n");
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
