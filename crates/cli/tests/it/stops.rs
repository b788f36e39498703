//! Hundreds of runs of stand-ins, stopped at random moments in many ways: nothing is left, and no outcome is wrong.

use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use crate::lab::{Build, HostileLab};
use alhena_model::{Outcome, Status};
use alhena_testbed::processes::{command_line, parent, signal};
use alhena_testbed::{Child, Deadline, Script, Step, alive};
use rustix::process::{Pid, Signal, kill_process};

/// Different in each run of a test, and the same in each run of the tests.
fn delays(seed: u64) -> impl FnMut() -> Duration {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Duration::from_millis(state % 1200)
    }
}

fn busy() -> Script {
    Script::new([
        Step::Init,
        Step::User,
        Step::Text("one ".into()),
        Step::Spawn(Child::default().new_session()),
        Step::Sleep(150),
        Step::Spawn(Child::default().daemon().new_session().closed_files().ignores_signals()),
        Step::Text("two ".into()),
        Step::Spawn(Child::default().daemon().cleared_environment()),
        Step::Sleep(300),
        Step::Text("three".into()),
        Step::Hang,
    ])
}

fn nothing_left(hostile: &HostileLab) {
    let deadline = Deadline::after(Duration::from_secs(30));
    let clean = deadline.wait_until(|| hostile.hostile.survivors().unwrap().is_empty());
    assert!(clean, "left: {:?}", hostile.hostile.survivors().unwrap());
    // And no directory of the run either, at the latest after the next run.
    let runs = hostile.lab.home.path().join("alhena/state/runs");
    let left = || std::fs::read_dir(&runs).map_or(0, Iterator::count);
    if !Deadline::after(Duration::from_secs(2)).wait_until(|| left() == 0) {
        hostile.lab.run(hostile.lab.request("next").timeout(Duration::from_millis(1)));
        let clean = Deadline::after(Duration::from_secs(30)).wait_until(|| left() == 0);
        assert!(clean, "left in {}", runs.display());
    }
}

fn in_threads(name: &'static str, test: impl Fn(&HostileLab, Duration) + Send + Sync + 'static) {
    in_threads_of(name, 15, test);
}

fn in_threads_of(
    name: &'static str,
    runs: usize,
    test: impl Fn(&HostileLab, Duration) + Send + Sync + 'static,
) {
    let runs = std::env::var("ALHENA_TEST_STOPS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(runs);
    let test = std::sync::Arc::new(test);
    let threads: Vec<_> = (0..3)
        .map(|seed| {
            let test = test.clone();
            std::thread::spawn(move || {
                let mut delay = delays(seed + name.len() as u64);
                for _ in 0..runs {
                    let hostile = HostileLab::new(name, busy());
                    test(&hostile, delay());
                    nothing_left(&hostile);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn runs_stopped_by_timeout_leave_nothing_and_say_timeout() {
    in_threads("timeout", |hostile, delay| {
        let request = hostile.lab.request("go").timeout(delay.max(Duration::from_millis(1)));
        assert_eq!(hostile.lab.run(request).status, Status::Timeout);
    });
}

#[test]
fn runs_that_are_cancelled_leave_nothing_and_say_cancelled() {
    in_threads("cancelled", |hostile, delay| {
        let run = hostile.lab.start(hostile.lab.request("go"));
        let stopper = run.stopper();
        std::thread::spawn(move || {
            std::thread::sleep(delay);
            stopper.stop();
        });
        assert_eq!(run.outcome_blocking().status, Status::Cancelled);
    });
}

#[test]
fn sigterm_to_alhena_leaves_nothing_and_says_cancelled() {
    in_threads("sigterm", |hostile, delay| {
        let mut command = hostile.lab.command(&["--as", "outcome", "go"]);
        let mut alhena = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // Before it has begun there is nothing to stop, and it dies as any program would.
        std::thread::sleep(delay + Duration::from_millis(50));
        kill_process(Pid::from_child(&alhena), Signal::TERM).unwrap();
        let mut text = String::new();
        alhena.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let status = alhena.wait().unwrap();
        if !text.is_empty() {
            let outcome: Outcome = serde_json::from_str(&text).unwrap();
            assert_eq!((outcome.status, status.code()), (Status::Cancelled, Some(130)));
        } else {
            assert!(!status.success());
        }
    });
}

#[test]
fn sigkill_to_alhena_leaves_nothing() {
    in_threads("sigkill", |hostile, delay| {
        let mut command = hostile.lab.command(&["--as", "outcome", "go"]);
        let mut alhena = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(delay + Duration::from_millis(50));
        alhena.kill().unwrap();
        assert!(!alhena.wait().unwrap().success());
    });
}

/// The processes between `alhena` and the stand-in, and the stand-in itself.
#[derive(Clone, Copy, Debug)]
struct Chain {
    alhena: u32,
    guard: u32,
    keeper: u32,
    cli: u32,
}

impl Chain {
    /// Waits until the stand-in has begun; its first process is the keeper's child.
    fn of(alhena: u32, hostile: &HostileLab) -> Self {
        let mut chain = None;
        let begun = Deadline::after(Duration::from_secs(60)).wait_until(|| {
            let starts = hostile.hostile.starts().unwrap_or_default();
            let cli = starts.iter().rev().find(|start| !start.argv.contains(&"--version".to_owned()));
            chain = cli.and_then(|cli| {
                let keeper = parent(cli.pid)?;
                let guard = parent(keeper)?;
                Some(Self { alhena, guard, keeper, cli: cli.pid })
            });
            chain.is_some()
        });
        assert!(begun, "the stand-in never began");
        let chain = chain.unwrap();
        assert_eq!(parent(chain.guard), Some(alhena), "{chain:?}");
        chain
    }
}

/// Runs of the binary, each of which is struck by SIGKILL in this way.
fn struck(name: &'static str, victims: impl Fn(Chain) -> Vec<u32> + Send + Sync + 'static) {
    in_threads_of(name, 4, move |hostile, delay| {
        let mut command = hostile.lab.command(&["--as", "outcome", "go"]);
        let mut alhena = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let chain = Chain::of(alhena.id(), hostile);
        std::thread::sleep(delay / 2);
        for victim in victims(chain) {
            signal(victim, Signal::KILL);
        }
        let mut text = String::new();
        alhena.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        let status = alhena.wait().unwrap();
        assert!(!status.success(), "{status}");
        if let Some(code) = status.code() {
            let outcome: Outcome = serde_json::from_str(&text).unwrap();
            assert_eq!((outcome.status, code == 0), (Status::Failed, false), "{text}");
        }
        for pid in [chain.guard, chain.keeper, chain.cli] {
            let gone = Deadline::after(Duration::from_secs(30)).wait_until(|| !alive(pid));
            assert!(gone, "{} of {chain:?} lives on", command_line(pid));
        }
    });
}

#[test]
fn alhena_and_its_keeper_killed_at_once_leave_nothing() {
    struck("alhena+keeper", |chain| vec![chain.alhena, chain.keeper]);
}

#[test]
fn a_killed_keeper_leaves_nothing() {
    struck("keeper", |chain| vec![chain.keeper]);
}

#[test]
fn a_keeper_and_its_cli_killed_at_once_leave_nothing() {
    struck("keeper+cli", |chain| vec![chain.keeper, chain.cli]);
}

#[test]
fn alhena_and_the_guard_killed_at_once_leave_nothing() {
    struck("alhena+guard", |chain| vec![chain.alhena, chain.guard]);
}

#[test]
fn a_guard_and_its_keeper_killed_at_once_leave_nothing() {
    struck("guard+keeper", |chain| vec![chain.guard, chain.keeper]);
    struck("keeper+guard", |chain| vec![chain.keeper, chain.guard]);
}

#[test]
fn a_killed_guard_costs_nothing() {
    in_threads_of("guard", 2, |hostile, delay| {
        let mut command = hostile.lab.command(&["--as", "outcome", "go"]);
        let alhena = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let chain = Chain::of(alhena.id(), hostile);
        std::thread::sleep(delay / 2);
        signal(chain.guard, Signal::KILL);
        // The run goes on, however long, until somebody stops it: no limit of its own that a busy machine could reach first.
        std::thread::sleep(Duration::from_secs(1));
        assert!([chain.alhena, chain.keeper, chain.cli].into_iter().all(alive), "{chain:?}");
        signal(chain.alhena, Signal::TERM);
        let output = alhena.wait_with_output().unwrap();
        let outcome: Outcome = serde_json::from_slice(&output.stdout).unwrap();
        let of_keepers = outcome.warnings.iter().filter(|warning| warning.contains("keeper")).count();
        assert_eq!((outcome.status, of_keepers), (Status::Cancelled, 0), "{:?}", outcome.warnings);
    });
}

/// A keeper that is stopped once is resumed and obeys. One that is stopped again and again is given up, and its guard too.
#[test]
fn a_stopped_keeper_does_not_hold_alhena() {
    for (both, again) in [(false, false), (true, false), (true, true)] {
        let hostile = HostileLab::new("stopped keeper", busy());
        let mut command = hostile.lab.command(&["--as", "outcome", "--timeout", "20s", "go"]);
        let alhena = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let chain = Chain::of(alhena.id(), &hostile);
        signal(chain.keeper, Signal::STOP);
        if both {
            signal(chain.guard, Signal::STOP);
        }
        let over = std::sync::atomic::AtomicBool::new(false);
        let outcome: Outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                while again && !over.load(std::sync::atomic::Ordering::Acquire) {
                    [chain.keeper, chain.guard]
                        .into_iter()
                        .filter(|pid| alive(*pid))
                        .for_each(|pid| signal(pid, Signal::STOP));
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            // The watchdog of the lab ends a test that waits for ever.
            let output = alhena.wait_with_output().unwrap();
            over.store(true, std::sync::atomic::Ordering::Release);
            serde_json::from_slice(&output.stdout).unwrap()
        });
        assert_eq!(outcome.status, Status::Timeout, "{:?}", outcome.warnings);
        // Resumed, the keeper has stopped the CLI itself.
        let told = outcome.warnings.iter().any(|warning| warning.contains("keeper"));
        assert!(again || !told, "{:?}", outcome.warnings);
        nothing_left(&hostile);
        assert!(![chain.guard, chain.keeper].into_iter().any(alive), "{chain:?}");
    }
}
