//! How pooled prompts and pools end: stopped, out of time, killed, closed, dropped.

use std::time::Duration;

use alhena_agent::{Approval, Pool, PoolOptions, Run};
use alhena_model::{EventKind, FailureKind, Status};
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_testbed::Deadline;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{VERSION, agents, answer, asked, nothing_is_left, pool, run, start, well_before_the_next_hour};
use crate::lab::{Build, Lab};

/// `hangs`: some text and no end. `silent`: nothing at all. `works`: a command that does not end. Everything else is answered.
fn moody(request: &RecordedRequest) -> Turn {
    match request.prompt().unwrap_or_default() {
        "hangs" => Turn::new().text("part").hang(),
        "silent" => Turn::new().hang_before_headers(),
        "works" => Turn::new().call("run_shell_command", json!({"command": "touch begun; sleep 300"})),
        other => Turn::say(format!("heard {other}")),
    }
}

fn lab(name: &str) -> Lab {
    Lab::real(name, VERSION, Scenario::dynamic(moody))
}

fn until_text(run: &mut Run) {
    while let Some(event) = run.next_blocking() {
        if matches!(event.kind, EventKind::Text { .. }) {
            return;
        }
    }
    panic!("it says nothing");
}

fn until(what: impl Fn() -> bool) {
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(what));
}

fn was_asked(lab: &Lab, word: &str) -> usize {
    asked(lab).iter().filter(|request| request.prompt() == Some(word)).count()
}

fn kill(pid: u32) {
    let _gone = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
}

#[test]
fn real_cli_a_stopped_prompt_ends_its_session_and_not_its_process() {
    well_before_the_next_hour();
    let lab = lab("stopped");
    let pool = pool(1);
    let before = run(&lab, &pool, lab.request("alder")).session_id.clone();
    let process = agents(&lab);
    let mut hanging = start(&lab, &pool, lab.request("hangs"));
    until_text(&mut hanging);
    hanging.stop();
    let outcome = hanging.outcome_blocking();
    assert_eq!((outcome.status, outcome.text.all()), (Status::Cancelled, "part"));
    assert_eq!(outcome.session_id, before);
    let after = run(&lab, &pool, lab.request("birch"));
    assert_eq!((after.status, after.text.all()), (Status::Success, "heard birch"), "{:?}", after.failure);
    assert_ne!(after.session_id, before);
    assert!(!asked(&lab).last().unwrap().raw_body.contains("hangs"));
    assert_eq!(agents(&lab), process);
}

#[test]
fn real_cli_who_waits_can_be_stopped_and_its_time_runs() {
    let lab = lab("waits");
    let pool = pool(1);
    let mut first = start(&lab, &pool, lab.request("hangs"));
    until_text(&mut first);
    let stopped = start(&lab, &pool, lab.request("alder"));
    let late = start(&lab, &pool, lab.request("birch").timeout(Duration::from_millis(300)));
    let patient = start(&lab, &pool, lab.request("cedar"));
    stopped.stop();
    assert_eq!(stopped.outcome_blocking().status, Status::Cancelled);
    assert_eq!(late.outcome_blocking().status, Status::Timeout);
    first.stop();
    assert_eq!(first.outcome_blocking().status, Status::Cancelled);
    assert_eq!(patient.outcome_blocking().text.all(), "heard cedar");
    assert_eq!((was_asked(&lab, "alder"), was_asked(&lab, "birch")), (0, 0));
}

#[test]
fn real_cli_a_killed_process_fails_only_its_own_prompt_and_one_that_said_nothing_begins_again() {
    let lab = lab("killed");
    let pool = pool(2);
    let mut first = start(&lab, &pool, lab.request("hangs"));
    until_text(&mut first);
    let first_process = agents(&lab);
    let mut second = start(&lab, &pool, lab.request("hangs"));
    until_text(&mut second);
    for process in first_process {
        kill(process);
    }
    let outcome = first.outcome_blocking();
    assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), Some(FailureKind::Crashed));
    second.stop();
    let outcome = second.outcome_blocking();
    assert_eq!((outcome.status, outcome.text.all()), (Status::Cancelled, "part"));
    // One that nothing has come of yet is begun again, once.
    let silent = start(&lab, &pool, lab.request("silent"));
    for time in 1..=2 {
        until(|| was_asked(&lab, "silent") == time);
        agents(&lab).into_iter().for_each(kill);
    }
    let outcome = silent.outcome_blocking();
    assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), Some(FailureKind::Crashed));
    assert_eq!(was_asked(&lab, "silent"), 2);
    assert_eq!(answer(&lab, &pool, lab.request("alder")), "heard alder");
    pool.close_blocking();
    nothing_is_left(&lab);
}

#[test]
fn real_cli_a_prompt_whose_tool_ran_is_not_begun_again() {
    let lab = lab("tool ran");
    let pool = pool(1);
    let working = start(&lab, &pool, lab.request("works").approval(Approval::Yolo));
    until(|| lab.workspace().join("begun").exists());
    agents(&lab).into_iter().for_each(kill);
    let outcome = working.outcome_blocking();
    assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), Some(FailureKind::Crashed));
    assert_eq!(was_asked(&lab, "works"), 1);
}

#[test]
fn real_cli_nothing_is_left_of_a_pool_that_is_closed_or_dropped_while_it_works() {
    for closes in [true, false] {
        let lab = lab("left of a pool");
        let pool = pool(1);
        let working = start(&lab, &pool, lab.request("works").approval(Approval::Yolo));
        let waiting = start(&lab, &pool, lab.request("alder").approval(Approval::Yolo));
        until(|| lab.workspace().join("begun").exists());
        if closes {
            pool.close_blocking();
            assert_eq!(agents(&lab), Vec::<u32>::new());
        } else {
            drop(pool);
        }
        assert_eq!(working.outcome_blocking().status, Status::Cancelled);
        assert_eq!(waiting.outcome_blocking().status, Status::Cancelled);
        nothing_is_left(&lab);
    }
}

#[test]
fn real_cli_a_process_without_work_ends_and_one_that_had_its_sessions_is_replaced() {
    let lab = Lab::real("idle", VERSION, Scenario::dynamic(held));
    let options = PoolOptions::default().processes(1).sessions(2).reuse(false);
    let pool = Pool::new(options.idle(Duration::from_millis(100))).unwrap();
    assert_eq!(process_of(&lab, &pool, "alder").len(), 1);
    until(|| agents(&lab).is_empty());
    drop(pool);
    nothing_is_left(&lab);
    let options = PoolOptions::default().processes(1).sessions(2).reuse(false);
    let pool = Pool::new(options).unwrap();
    let mut processes: Vec<u32> =
        ["birch", "cedar", "dogwood"].iter().flat_map(|word| process_of(&lab, &pool, word)).collect();
    processes.dedup();
    assert_eq!(processes.len(), 2, "{processes:?}");
}

/// Answers a word when the gate of that name is opened: until then its process can be looked at.
fn held(request: &RecordedRequest) -> Turn {
    let word = request.prompt().unwrap_or_default();
    Turn::new().gate(word).text(format!("heard {word}"))
}

/// The process that serves a word which is [`held`], and was never asked before.
fn process_of(lab: &Lab, pool: &Pool, word: &str) -> Vec<u32> {
    let running = start(lab, pool, lab.request(word));
    until(|| was_asked(lab, word) == 1);
    // While it is asked its process is there, and no other.
    let process = agents(lab);
    lab.server.release("lab", word);
    let outcome = running.outcome_blocking();
    let expected = format!("heard {word}");
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, &*expected), "{:?}", outcome.failure);
    process
}

/// The processes that served so many prompts, one after the other.
fn processes_of(lab: &Lab, options: PoolOptions, prompts: usize) -> Vec<u32> {
    let pool = Pool::new(options.processes(1)).unwrap();
    let mut processes = Vec::new();
    for number in 0..prompts {
        let word = format!("{}-of-{prompts}-{:?}", number, std::time::Instant::now());
        processes.extend(process_of(lab, &pool, &word));
    }
    pool.close_blocking();
    nothing_is_left(lab);
    processes.dedup();
    processes
}

#[test]
fn real_cli_a_process_is_replaced_when_it_holds_too_much_memory_or_is_too_old() {
    let lab = Lab::real("replaced", VERSION, Scenario::dynamic(held));
    let options = PoolOptions::default;
    assert_eq!(processes_of(&lab, options(), 3).len(), 1);
    // No Node has so little.
    assert_eq!(processes_of(&lab, options().memory(1 << 20), 2).len(), 2);
    assert_eq!(processes_of(&lab, options().age(Duration::from_millis(1)), 2).len(), 2);
    assert_eq!(processes_of(&lab, options().prompts(1), 2).len(), 2);
}

#[test]
fn real_cli_a_process_that_gets_too_old_without_a_prompt_is_ended() {
    let lab = lab("old");
    // It is younger than that when it has served its prompt, unless the machine is very slow; it ends in either case.
    let options = PoolOptions::default().processes(1).idle(Duration::from_secs(3600));
    let pool = Pool::new(options.age(Duration::from_secs(20))).unwrap();
    assert_eq!(answer(&lab, &pool, lab.request("alder")), "heard alder");
    until(|| agents(&lab).is_empty());
    nothing_is_left(&lab);
}
