//! Stand-ins that write more than anybody can read: clocks, stops and limits hold all the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod lab;

use std::time::{Duration, Instant};

use alhena::{Outcome, Status};
use alhena_testbed::script::Ending;
use alhena_testbed::{Script, Step};
use lab::HostileLab;

/// More than a debug build reads in a minute.
const FLOOD: u64 = 400 << 20;
/// Far more than a stop takes on a busy machine, far less than reading the flood takes.
const SOON: Duration = Duration::from_secs(25);

fn says_what_was_not_read(outcome: &Outcome) -> bool {
    outcome.warnings.iter().any(|warning| warning.contains("were not read"))
}

#[test]
fn a_fast_stream_does_not_hold_up_the_time_limit() {
    let hostile =
        HostileLab::new("flood timeout", Script::new([Step::Init, Step::Deltas(FLOOD), Step::Hang]));
    let began = Instant::now();
    let dir = hostile.lab.home.path().join("recording");
    let request = hostile.lab.request("hello").timeout(Duration::from_secs(2)).record(&dir);
    let outcome = hostile.lab.run(request);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(outcome.status, Status::Timeout);
    assert!(says_what_was_not_read(&outcome), "{:?}", outcome.warnings);
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
    // What was not read then is not read when it is played back.
    assert_eq!(*alhena::recording::play(&dir, |_| ()).unwrap(), *outcome);
}

#[test]
fn a_stop_is_heard_while_the_output_of_an_agent_that_is_gone_is_still_read() {
    let hostile = HostileLab::new("flood rest", Script::new([Step::Init, Step::Deltas(FLOOD), Step::Result]));
    let mut run = hostile.lab.start(hostile.lab.request("hello"));
    run.next_blocking().unwrap();
    let gone = alhena_testbed::Deadline::after(Duration::from_secs(60));
    while !hostile.hostile.survivors().unwrap().is_empty() {
        assert!(gone.wait_until(|| run.next_blocking().is_some()));
    }
    let began = Instant::now();
    run.stop();
    let outcome = run.outcome_blocking();
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_eq!(outcome.status, Status::Cancelled);
    assert!(says_what_was_not_read(&outcome), "{:?}", outcome.warnings);
}

#[test]
fn a_second_request_to_stop_ends_at_once_what_ignores_the_first() {
    let deaf = Step::IgnoreSignals(vec![15, 2, 1]);
    let hostile = HostileLab::new("at once", Script::new([deaf, Step::Init, Step::Hang]));
    let mut run = hostile.lab.start(hostile.lab.request("hello"));
    run.next_blocking().unwrap();
    let stopper = run.stopper();
    stopper.stop();
    let began = Instant::now();
    stopper.stop_at_once();
    let outcome = run.outcome_blocking();
    // Patience with ^C and with SIGTERM is four seconds.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(outcome.status, Status::Cancelled);
    assert!(stopper.is_over());
    assert_eq!(hostile.hostile.survivors().unwrap(), [0u32; 0]);
}

#[test]
fn a_result_that_was_written_before_the_stop_counts_even_if_the_reader_is_behind() {
    let steps = [Step::Init, Step::Deltas(3 << 20), Step::Result, Step::Hang];
    let hostile = HostileLab::new("behind", Script::new(steps));
    let mut run = hostile.lab.start(hostile.lab.request("hello"));
    run.next_blocking().unwrap();
    // Nobody takes an event until all is written: the queue is full, and the result is not read.
    std::thread::sleep(Duration::from_secs(3));
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
    let gone = alhena_testbed::Deadline::after(Duration::from_secs(60));
    assert!(gone.wait_until(|| hostile.hostile.survivors().unwrap().is_empty()));
    std::thread::sleep(Duration::from_secs(1));
    run.stop();
    let outcome = run.outcome_blocking();
    assert_eq!((outcome.status, outcome.exit_code), (Status::Failed, Some(42)), "{:?}", outcome.warnings);
}
