//! Many prompts on few processes of the real CLI, against the scripted API.

mod apart;
mod ends;
mod served;
mod shared;
mod soak;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::lab::Lab;
use alhena_agent::{Pool, PoolOptions, ResolvedRequest, Run};
use alhena_model::Outcome;
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_testbed::{Deadline, processes_with_env};

const VERSION: &str = "0.61.0";

/// Says what it was asked: the prompts of these tests are one word each.
fn echo(request: &RecordedRequest) -> Turn {
    Turn::say(format!("heard {}", request.prompt().unwrap_or_default()))
}

fn lab(name: &str) -> Lab {
    Lab::real(name, VERSION, Scenario::dynamic(echo))
}

fn pool(processes: usize) -> Pool {
    Pool::new(PoolOptions::default().processes(processes)).unwrap()
}

fn start(lab: &Lab, pool: &Pool, request: ResolvedRequest) -> Run {
    pool.start(&lab.gemini, request, &lab.env).unwrap()
}

fn run(lab: &Lab, pool: &Pool, request: ResolvedRequest) -> Arc<Outcome> {
    start(lab, pool, request).outcome_blocking()
}

/// The answer to a prompt that has to be answered.
fn answer(lab: &Lab, pool: &Pool, request: ResolvedRequest) -> String {
    let outcome = run(lab, pool, request);
    assert!(outcome.is_success(), "{:?} {:?}", outcome.failure, outcome.warnings);
    outcome.text.all().to_owned()
}

/// The CLIs of the lab, each one process. What one of them is about to start looks like it for a moment, and is none.
fn agents(lab: &Lab) -> Vec<u32> {
    let all = processes_with_env(&home_of(lab)).into_iter();
    let agents: Vec<u32> = all
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word == b"--acp")
        })
        .collect();
    // One without a parent is gone.
    let is_none = |pid: &u32| parent(*pid).is_none_or(|parent| agents.contains(&parent));
    agents.iter().copied().filter(|pid| !is_none(pid)).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

fn home_of(lab: &Lab) -> String {
    format!("ALHENA_HOME={}", lab.home.path().join("alhena").display())
}

/// Neither a process nor a directory.
fn nothing_is_left(lab: &Lab) {
    let deadline = Deadline::after(Duration::from_secs(30));
    assert!(
        deadline.wait_until(|| processes_with_env(&home_of(lab)).is_empty()),
        "{:?}",
        processes_with_env(&home_of(lab))
    );
    let left = || -> Vec<PathBuf> {
        ["alhena/state/runs", "alhena/state/homes"]
            .iter()
            .flat_map(|place| std::fs::read_dir(lab.home.path().join(place)))
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(|name| name != "bin"))
            .collect()
    };
    // A pool that was dropped cleans up behind its last process.
    assert!(Deadline::after(Duration::from_secs(30)).wait_until(|| left().is_empty()), "{:?}", left());
}

/// A session is not used again in another hour: whoever wants it to be begins when enough of one is left.
fn well_before_the_next_hour() {
    const HOUR: u64 = 60 * 60;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let left = HOUR - now % HOUR;
    if left < 120 {
        std::thread::sleep(Duration::from_secs(left));
    }
}

/// What the API was asked for answers.
fn asked(lab: &Lab) -> Vec<Arc<RecordedRequest>> {
    lab.server.requests("lab").into_iter().filter(|request| request.action.starts_with("stream")).collect()
}
