//! Many prompts from many sides at once, with stops, kills and slow answers: each has one outcome, and its own.
//!
//! `ALHENA_SOAK_PROMPTS` makes them more, `ALHENA_SOAK_SECONDS` goes on for so long; `cargo xtask soak warm` sets them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use alhena_agent::{Pool, PoolOptions};
use alhena_model::{EventKind, FailureKind, Status};
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_testbed::processes::memory;

use super::{VERSION, agents, home_of, nothing_is_left, start};
use crate::lab::Lab;

/// So many in the test suite.
const PROMPTS: usize = 60;
const ASKERS: usize = 4;
const PROCESSES: usize = 2;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Chance that repeats (SplitMix64).
fn chance(seed: usize) -> u64 {
    let mut mixed = (seed as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)) % 100
}

/// What the API has seen: how many requests, and how many with another prompt's marker in them.
#[derive(Default)]
struct ApiCounts {
    requests: AtomicUsize,
    foreign: AtomicUsize,
}

fn scenario(seen: &Arc<ApiCounts>) -> Scenario {
    let seen = seen.clone();
    Scenario::dynamic(move |request: &RecordedRequest| echo(request, &seen))
}

/// Says the prompt back, now and then slowly.
fn echo(request: &RecordedRequest, seen: &ApiCounts) -> Turn {
    seen.requests.fetch_add(1, Ordering::Relaxed);
    let own = request.prompt().unwrap_or_default();
    // Its own marker is all that is there of markers.
    let others = request.raw_body.replace(own, "");
    if own.is_empty() || others.contains("marker") {
        seen.foreign.fetch_add(1, Ordering::Relaxed);
    }
    let prompt = request.prompt().unwrap_or_default().to_owned();
    let turn = match prompt.split_once("slow") {
        Some(_) => {
            Turn::new().sleep(Duration::from_millis(400)).text("heard ").sleep(Duration::from_millis(300))
        }
        None => Turn::new().text("heard "),
    };
    turn.text(prompt)
}

#[derive(Default)]
struct Tally {
    answered: AtomicUsize,
    stopped: AtomicUsize,
    crashed: AtomicUsize,
    kills: AtomicUsize,
}

/// Asks one, stops it perhaps, and looks at what came of it.
fn ask(lab: &Lab, pool: &Pool, index: usize, tally: &Tally) {
    let dice = chance(index);
    let (slow, stops) = (dice < 12, dice % 11 == 3);
    let marker = format!("marker{index}{}end", if slow { "slow" } else { "" });
    let mut run = start(lab, pool, lab.request(&marker));
    if stops {
        let stopper = run.stopper();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(dice * 3));
            stopper.stop();
        });
    }
    let mut outcomes = Vec::new();
    while let Some(event) = run.next_blocking() {
        if let EventKind::Finished { outcome } = event.kind {
            outcomes.push(outcome);
        }
    }
    assert_eq!(outcomes.len(), 1, "{marker}");
    let (outcome, expected) = (&outcomes[0], format!("heard {marker}"));
    let said = outcome.text.all();
    assert!(expected.starts_with(said), "{marker}: {said}");
    match (outcome.status, outcome.failure.as_ref().map(|failure| failure.kind)) {
        (Status::Success, _) => {
            assert_eq!(said, expected);
            tally.answered.fetch_add(1, Ordering::Relaxed);
        }
        (Status::Cancelled, _) if stops => drop(tally.stopped.fetch_add(1, Ordering::Relaxed)),
        (_, Some(FailureKind::Crashed)) => drop(tally.crashed.fetch_add(1, Ordering::Relaxed)),
        other => panic!("{marker}: {other:?} {:?}", outcome.failure),
    }
}

/// Kills a process now and then, until told to stop.
fn kill_now_and_then(lab: &Lab, over: &AtomicBool, asked: &AtomicUsize, every: usize, tally: &Tally) {
    let mut next = every;
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        if asked.load(Ordering::Relaxed) < next {
            continue;
        }
        next += every;
        if let Some(pid) = agents(lab).first() {
            tally.kills.fetch_add(1, Ordering::Relaxed);
            let _gone = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

/// What is counted from time to time.
fn sample(lab: &Lab, since: Instant, done: usize) -> (usize, u64, usize) {
    let all = agents(lab);
    let bytes: u64 = all.iter().map(|pid| memory(*pid)).sum();
    let own = memory(std::process::id());
    let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let files = count(&lab.home.path().join("alhena"));
    let processes = alhena_testbed::processes_with_env(&home_of(lab)).len();
    println!(
        "{:>7.0} s {done:>7} prompts {:>3} agents {:>6} MB, own {:>4} MB, {processes:>3} processes, {descriptors:>4} descriptors, {files:>5} files",
        since.elapsed().as_secs_f64(),
        all.len(),
        bytes >> 20,
        own >> 20,
    );
    (descriptors, own, files)
}

fn count(dir: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| {
            1 + if entry.file_type().is_ok_and(|kind| kind.is_dir()) { count(&entry.path()) } else { 0 }
        })
        .sum()
}

#[test]
fn real_cli_each_of_many_prompts_has_one_outcome_and_none_hears_of_another() {
    let seconds = number("ALHENA_SOAK_SECONDS");
    let prompts = number("ALHENA_SOAK_PROMPTS").map_or(PROMPTS, |count| count as usize);
    let prompts = if seconds.is_some() { usize::MAX } else { prompts };
    let limit = Duration::from_secs(seconds.unwrap_or(0) + 300 + prompts.min(100_000) as u64);
    let seen = Arc::new(ApiCounts::default());
    let lab = Lab::real_for("many prompts", VERSION, scenario(&seen), limit);
    let pool = Pool::new(PoolOptions::default().processes(PROCESSES)).unwrap();
    let (next, over, tally) = (AtomicUsize::new(0), AtomicBool::new(false), Tally::default());
    let began = Instant::now();
    let is_over =
        |index: usize| index >= prompts || seconds.is_some_and(|limit| began.elapsed().as_secs() >= limit);
    let mut samples: Vec<(usize, u64, usize)> = Vec::new();
    std::thread::scope(|scope| {
        let askers: Vec<_> = (0..ASKERS)
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if is_over(index) {
                            return;
                        }
                        ask(&lab, &pool, index, &tally);
                    }
                })
            })
            .collect();
        let killer = scope.spawn(|| kill_now_and_then(&lab, &over, &next, PROMPTS / 3, &tally));
        let (mut last, mut forgotten) = (Instant::now(), Instant::now());
        while !askers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            std::thread::sleep(Duration::from_millis(50));
            if forgotten.elapsed() > Duration::from_secs(2) {
                forgotten = Instant::now();
                // The API is in this process: what it remembers of requests would be taken for growth of ours.
                lab.server.add("lab", scenario(&seen));
            }
            if last.elapsed() > Duration::from_secs(if seconds.is_some() { 60 } else { 20 }) {
                last = Instant::now();
                samples.push(sample(&lab, began, next.load(Ordering::Relaxed)));
            }
        }
        over.store(true, Ordering::Relaxed);
        for asker in askers {
            asker.join().unwrap();
        }
        killer.join().unwrap();
    });
    pool.close_blocking();
    nothing_is_left(&lab);
    let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let (answered, stopped, crashed) = (of(&tally.answered), of(&tally.stopped), of(&tally.crashed));
    println!(
        "{} prompts in {:.0} s: {answered} answered, {stopped} stopped, {crashed} crashed by {} kills; {} requests, {} with another's words",
        answered + stopped + crashed,
        began.elapsed().as_secs_f64(),
        of(&tally.kills),
        of(&seen.requests),
        of(&seen.foreign),
    );
    assert_eq!(of(&seen.foreign), 0);
    if seconds.is_none() {
        assert_eq!(answered + stopped + crashed, prompts);
    }
    // One kill fails one prompt, and one that is begun again can be hit twice.
    assert!(crashed <= of(&tally.kills) && answered > 0, "{crashed} crashed");
    // Processes grow and are replaced on the way: what the second half reaches at most the first has reached too.
    let (early, late) = samples.split_at(samples.len() / 2);
    if early.len() > 1 {
        let most = |samples: &[(usize, u64, usize)]| {
            let of = |figure: fn(&(usize, u64, usize)) -> u64| samples.iter().map(figure).max().unwrap_or(0);
            (of(|sample| sample.0 as u64), of(|sample| sample.1 >> 20), of(|sample| sample.2 as u64))
        };
        let (before, after) = (most(early), most(late));
        println!("at most (descriptors, MB, files): {before:?} in the first half, {after:?} in the second");
        assert!(after.0 <= before.0 + 8, "descriptors");
        assert!(after.1 <= before.1 + 16, "memory");
        assert!(after.2 <= before.2 + 40, "files");
    }
}
