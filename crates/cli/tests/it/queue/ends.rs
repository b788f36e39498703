//! ^C, cancelling, limits of money and patience, and jobs that end their workers.

use std::time::Duration;

use serde_json::Value;

use super::{fleet, jobs, queue};
use crate::fleet::{Fleet, LONG};

fn progress(fleet: &Fleet) -> Value {
    let urls = fleet.urls();
    let status = fleet.run(&["batch", "status", "--nats", &urls, "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    status[0]["progress"].clone()
}

#[test]
fn a_batch_that_is_cancelled_from_elsewhere_ends_for_its_submitter_and_its_workers() {
    let fleet = fleet("cancelled");
    fleet.write(
        "jobs.jsonl",
        "{\"id\": \"h\", \"prompt\": \"hang\"}\n{\"id\": \"i\", \"prompt\": \"hang\"}\n",
    );
    let mut worker = fleet.worker("w1", &["--jobs", "1"]);
    let mut submitted = fleet.submit(&["--name", "mine"]);
    worker.says("\"began\"");
    let urls = fleet.urls();
    let cancelled = fleet.run(&["batch", "cancel", "mine", "--nats", &urls]);
    assert_eq!(cancelled.stdout, "mine: 2 jobs, 0 results, 0 in the queue or at work, cancelled\n");
    worker.says("its batch was cancelled");
    submitted.says("batch mine was cancelled");
    assert_eq!(submitted.finish(LONG).code(), Some(130));
    assert_eq!(worker.leave().code(), Some(0));
    assert_eq!(fleet.count_results(), 0);
    // The same command opens it again.
    fleet.write("jobs.jsonl", &jobs(2));
    let worker = fleet.worker("w1", &[]);
    let again = fleet.submit(&["--name", "mine"]).finish(LONG);
    assert_eq!((again.code(), fleet.results().len()), (Some(0), 2), "{again:?}");
    worker.leave();
    fleet.nothing_is_left();
    assert_eq!(fleet.run(&["batch", "cancel", "other", "--nats", &urls]).code(), Some(1));
}

/// Its submitter does not announce it as open again, and its worker drops the job that it runs and begins no other.
#[test]
fn a_batch_that_is_cancelled_before_its_submitter_notices_the_loss_of_storage_stays_cancelled() {
    let mut fleet = fleet("cancelled-before-noticed");
    let job = |job: u32| format!("{{\"id\": \"{job}\", \"prompt\": \"hang\"}}\n");
    fleet.write("jobs.jsonl", &(0..3).map(job).collect::<String>());
    let mut worker = fleet.worker("w1", &["--jobs", "1"]);
    let mut submitted = fleet.submit(&["--name", "mine"]);
    worker.says("\"began\"");
    submitted.says("1 running · 2 in the queue");
    fleet.servers[0].lose_storage().unwrap();
    queue(&fleet).cancel(&"mine".parse().unwrap()).unwrap();
    worker.says("its batch was cancelled");
    submitted.says("batch mine was cancelled");
    assert_eq!(submitted.finish(LONG).code(), Some(130));
    let now = progress(&fleet);
    assert_eq!((&now["open"], &now["cancelled"]), (&0.into(), &true.into()), "{now}");
    let worker = worker.leave();
    assert_eq!((worker.code(), worker.stdout.matches("\"began\"").count()), (Some(0), 1), "{worker:?}");
    assert_eq!(fleet.count_results(), 0);
    fleet.nothing_is_left();
}

#[test]
fn a_worker_finishes_what_it_has_on_the_first_signal_and_gives_it_back_on_the_second() {
    let fleet = fleet("signals");
    fleet.write(
        "jobs.jsonl",
        "{\"id\": \"s\", \"prompt\": \"held one\"}\n{\"id\": \"t\", \"prompt\": \"held two\"}\n",
    );
    let mut first = fleet.worker("w1", &["--jobs", "1"]);
    let mut submitted = fleet.submit(&[]);
    first.says("\"began\"");
    first.signal("-TERM");
    first.says("no more jobs are taken");
    fleet.let_go();
    let ended = first.finish(LONG);
    assert_eq!((ended.code(), ended.stdout.matches("\"success\"").count()), (Some(0), 1), "{ended:?}");

    fleet.hold();
    let mut second = fleet.worker("w2", &["--jobs", "1", "--lease", "600s"]);
    second.says("\"began\"");
    second.signal("-INT");
    second.says("no more jobs are taken");
    second.signal("-INT");
    let ended = second.finish(LONG);
    assert_eq!(ended.code(), Some(130), "{ended:?}");
    assert!(submitted.has_ended().is_none());
    // At once, though its lease would hold for long.
    fleet.let_go();
    let third = fleet.worker("w3", &["--lease", "600s"]);
    assert_eq!(submitted.finish(LONG).code(), Some(0));
    assert_eq!(fleet.results().len(), 2);
    third.leave();
    fleet.nothing_is_left();
}

#[test]
fn a_submitter_that_is_told_to_stop_takes_back_what_nobody_began() {
    let fleet = fleet("takes back");
    let held: String =
        (0..8).map(|job| format!("{{\"id\": \"{job}\", \"prompt\": \"held {job}\"}}\n")).collect();
    fleet.write("jobs.jsonl", &held);
    let worker = fleet.worker("w1", &["--jobs", "1"]);
    let are_open = |jobs: u64| {
        assert!(alhena_testbed::Deadline::after(LONG).wait_until(|| progress(&fleet)["open"] == jobs));
    };
    let mut submitted = fleet.submit(&[]);
    // Until it has heard that somebody began a job, it takes that back, too.
    submitted.says("1 running · 7 in the queue");
    submitted.signal("-INT");
    submitted.says("no more jobs begin");
    are_open(1);
    fleet.let_go();
    let ended = submitted.finish(LONG);
    assert_eq!(ended.code(), Some(130), "{ended:?}");
    assert_eq!(fleet.count_results(), 1);
    are_open(0);
    // Twice: it does not wait, and finds later what was done without it.
    fleet.hold();
    let mut submitted = fleet.submit(&[]);
    submitted.says("1 running · 6 in the queue");
    submitted.signal("-INT");
    submitted.says("no more jobs begin");
    submitted.signal("-INT");
    assert_eq!(submitted.finish(LONG).code(), Some(130));
    assert_eq!(fleet.count_results(), 1);
    fleet.let_go();
    are_open(0);
    let ended = fleet.submit(&[]).finish(LONG);
    assert_eq!((ended.code(), fleet.results().len()), (Some(0), 8), "{ended:?}");
    let began = worker.leave().stdout.matches("\"began\"").count();
    assert_eq!(began, 8, "nothing was done twice");
    fleet.nothing_is_left();
}

/// A job that nobody has any more is not waited for: not when its worker gave it back, and not when that one was killed.
#[test]
fn a_submitter_that_is_told_to_stop_takes_back_what_nobody_has_any_more() {
    let fleet = fleet("nobody has it");
    fleet.write("jobs.jsonl", "{\"id\": \"h\", \"prompt\": \"hang\"}\n");
    for (lease, killed) in [("600s", false), ("4s", true)] {
        let mut worker = fleet.worker("w1", &["--jobs", "1", "--lease", lease]);
        let mut submitted = fleet.submit(&[]);
        submitted.says("1 running · 0 tokens");
        if killed {
            worker.kill();
        } else {
            worker.signal("-INT");
            worker.says("no more jobs are taken");
            worker.signal("-INT");
            assert_eq!(worker.finish(LONG).code(), Some(130));
        }
        let before = submitted.stderr().len();
        let waits = |line: &str| line.contains("0 running · 1 in the queue");
        let shown = || submitted.stderr().get(before..).is_some_and(waits);
        assert!(alhena_testbed::Deadline::after(LONG).wait_until(shown), "{}", submitted.stderr());
        submitted.signal("-INT");
        let ended = submitted.finish(LONG);
        assert_eq!(ended.code(), Some(130), "{ended:?}");
        assert_eq!((fleet.count_results(), &progress(&fleet)["open"]), (0, &0.into()));
    }
    fleet.nothing_is_left();
}

#[test]
fn the_first_failure_takes_the_rest_out_of_the_queue_when_it_is_to() {
    let fleet = fleet("fail fast");
    let mut all = "{\"id\": \"f\", \"prompt\": \"fail\"}\n".to_owned();
    all.push_str(
        &(0..30)
            .map(|job| format!("{{\"id\": \"{job}\", \"prompt\": \"slow {job}\"}}\n"))
            .collect::<String>(),
    );
    fleet.write("jobs.jsonl", &all);
    let worker = fleet.worker("w1", &["--jobs", "1"]);
    let ended = fleet.submit(&["--fail-fast", "--retries", "0"]).finish(LONG);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let done = fleet.count_results();
    assert!((1..10).contains(&done), "{done}: {ended:?}");
    // It says that it is done with the last one only when the result is there.
    worker.leave();
    assert_eq!(progress(&fleet)["open"], 0);
    fleet.nothing_is_left();
}

#[test]
fn when_all_have_cost_what_they_may_the_rest_leaves_the_queue_and_is_done_when_more_is_allowed() {
    let fleet = fleet("max cost");
    let job = |job: usize| format!("{{\"id\": \"{job}\", \"prompt\": \"slow costs {job}\"}}\n");
    fleet.write("jobs.jsonl", &(0..12).map(job).collect::<String>());
    let worker = fleet.worker("w1", &["--jobs", "1"]);
    let ended = fleet.submit(&["--max-cost", "0.0000001", "--retries", "0"]).finish(LONG);
    assert_eq!(ended.code(), Some(9), "{ended:?}");
    let done = fleet.count_results();
    assert!((1..12).contains(&done), "{done}: {ended:?}");
    // The worker says that it is done with the last one only when the result is there; no other was left to be done.
    let is_empty = || progress(&fleet)["open"] == 0;
    assert!(alhena_testbed::Deadline::after(LONG).wait_until(is_empty));
    assert_eq!(progress(&fleet)["results"], done);
    let rest = fleet.submit(&["--max-cost", "5"]).finish(LONG);
    assert_eq!((rest.code(), fleet.results().len()), (Some(0), 12), "{rest:?}");
    assert!(
        fleet
            .results()
            .values()
            .all(|result| result["outcome"]["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0))
    );
    let began = worker.leave().stdout.matches("\"began\"").count();
    assert_eq!(began, 12, "nothing was done twice");
    fleet.nothing_is_left();
}

#[test]
fn a_job_that_ends_its_workers_is_buried_and_the_others_are_done() {
    let fleet = fleet("buried");
    fleet.write("jobs.jsonl", "{\"id\": \"bomb\", \"prompt\": \"hang\"}\n");
    let submitted = fleet.submit(&["--name", "mine", "--retries", "3"]);
    for _ in 0..5 {
        let mut worker = fleet.worker("w1", &["--jobs", "1", "--lease", "4s"]);
        worker.says("\"began\"");
        worker.kill();
    }
    let mut worker = fleet.worker("w1", &["--lease", "1s"]);
    worker.says("\"buried\"");
    let ended = submitted.finish(LONG);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let result = &fleet.results()["bomb"];
    assert_eq!(result["attempt"], 1, "{result}");
    assert_eq!(result["outcome"]["failure"]["message"], "5 workers were given it, and none came back");
    assert_eq!(progress(&fleet)["dead"], 1);
    worker.leave();
    fleet.nothing_is_left();
}

#[test]
fn a_name_is_that_of_one_batch_until_it_is_forgotten_and_what_is_not_there_is_not_forgotten() {
    let fleet = fleet("one name");
    fleet.write("jobs.jsonl", &jobs(2));
    let urls = fleet.urls();
    let none = fleet.run(&["batch", "forget", "mine", "--nats", &urls]);
    assert_eq!((none.code(), none.stdout.as_str()), (Some(1), ""), "{none:?}");
    assert!(none.stderr.contains("there is no batch mine"), "{none:?}");

    let worker = fleet.worker("w1", &[]);
    let named = ["--name", "mine"];
    assert_eq!(fleet.submit(&named).finish(LONG).code(), Some(0));
    fleet.write("others.jsonl", &jobs(3));
    let batch = |jobs: &str, into: &str| {
        fleet.run(&["batch", jobs, "--into", into, "--nats", &urls, "--name", "mine"])
    };
    let other = batch("others.jsonl", "other.jsonl");
    assert_eq!(other.code(), Some(2), "{other:?}");
    assert!(other.stderr.contains("batch mine has other jobs"), "{other:?}");
    assert!(
        other.stderr.contains("hint: Give another --name, or `alhena batch forget mine` first."),
        "{other:?}"
    );
    assert!(!fleet.path("here/other.jsonl").exists());
    // The same jobs are the same batch, wherever their results go; so is the same file of results.
    assert_eq!(batch("jobs.jsonl", "elsewhere.jsonl").code(), Some(0));
    let more = batch("others.jsonl", "elsewhere.jsonl");
    assert_eq!(more.code(), Some(0), "{more:?}");
    assert_eq!(fleet.run(&["batch", "forget", "mine", "--nats", &urls]).code(), Some(0));
    let free = batch("jobs.jsonl", "last.jsonl");
    assert_eq!(free.code(), Some(0), "{free:?}");
    worker.leave();
    fleet.nothing_is_left();
}

#[test]
fn whoever_waits_for_nobody_is_told_and_also_when_the_server_goes_and_comes() {
    let mut fleet = fleet("nobody");
    fleet.write("jobs.jsonl", &jobs(2));
    let urls = fleet.urls();
    // One that takes others.
    let worker = fleet.worker("w1", &["--label", "big"]);
    let mut submitted = fleet.submit(&["--label", "gpu"]);
    let start = format!("start one with `alhena worker --nats {urls} --label gpu`");
    submitted.says(&format!("no worker takes jobs with the label gpu: {start}"));
    let status = fleet.run(&["batch", "status", "--nats", &urls]);
    assert!(status.stdout.ends_with("at work; no worker takes jobs with the label gpu\n"), "{status:?}");
    let status = fleet.run(&["batch", "status", "--nats", &urls, "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status[0]["unattended"], serde_json::json!(["gpu"]));
    fleet.servers[0].kill();
    submitted.says(&format!("the connection to {urls} is lost"));
    fleet.servers[0].again().unwrap();
    submitted.says(&format!("the connection to {urls} is back"));
    let right = fleet.worker("w2", &["--label", "big", "--label", "gpu"]);
    let ended = submitted.finish(LONG);
    assert_eq!((ended.code(), fleet.results().len()), (Some(0), 2), "{ended:?}");
    assert_eq!(ended.stderr.matches("no worker takes").count(), 1, "{ended:?}");
    // For those with whom somebody is there nothing is said.
    let (queue, batch) = (queue(&fleet), "held".parse().unwrap());
    assert_eq!(queue.unattended(&batch, Duration::from_secs(2)).unwrap(), []);
    let gpu = "gpu".parse().unwrap();
    let attended = || queue.worker_presence(&gpu).unwrap() == alhena_batch::queue::WorkerPresence::Asks;
    assert!(alhena_testbed::Deadline::after(LONG).wait_until(attended));
    worker.leave();
    right.leave();
    fleet.nothing_is_left();
}

/// Also when somebody was there before; but not while somebody works, on whichever batch.
#[test]
fn whoever_waits_for_workers_that_are_gone_is_told_each_time() {
    let fleet = fleet("all gone");
    let urls = fleet.urls();
    fleet.write(
        "jobs.jsonl",
        "{\"id\": \"q\", \"prompt\": \"quick\"}\n{\"id\": \"h\", \"prompt\": \"hang\"}\n",
    );
    fleet.write("others.jsonl", &jobs(1));
    let mut submitted = fleet.submit(&[]);
    let mut worker = fleet.worker("w1", &["--jobs", "1", "--lease", "4s"]);
    let has_hang = |worker: &crate::fleet::Started, since: usize| {
        let began =
            || worker.stdout().matches("\"began\"").count() > worker.stdout().matches("\"done\"").count();
        assert!(alhena_testbed::Deadline::after(LONG).wait_until(|| fleet.count_results() == 1 && began()));
        // Of a worker that was killed before the submitter heard of it nobody is told.
        let heard = |said: &str| said.contains("1/2 done · 0 failed · 1 running");
        let shown = || submitted.stderr().get(since..).is_some_and(heard);
        assert!(alhena_testbed::Deadline::after(LONG).wait_until(shown), "{}", submitted.stderr());
    };
    has_hang(&worker, 0);
    // Whoever is told is the clock for those who must not be.
    let waits = |more: &[&str]| {
        let mut args = vec!["batch", "others.jsonl", "--nats", &urls];
        args.extend(more);
        fleet.start(&args)
    };
    let busy = waits(&["--into", "busy.jsonl"]);
    let mut told = waits(&["--into", "told.jsonl", "--label", "gpu"]);
    told.says("no worker takes jobs with the label gpu");
    assert!(!submitted.stderr().contains("no worker takes"), "{}", submitted.stderr());
    assert!(!busy.stderr().contains("no worker takes"), "{}", busy.stderr());
    for waiting in [busy, told] {
        waiting.signal("-INT");
        assert_eq!(waiting.finish(LONG).code(), Some(130));
    }
    for times in 1..=2 {
        worker.kill();
        let start = format!("no worker takes jobs: start one with `alhena worker --nats {urls}`");
        let said = || submitted.stderr().matches(&start).count() == times;
        assert!(alhena_testbed::Deadline::after(LONG).wait_until(said), "{times}: {}", submitted.stderr());
        let since = submitted.stderr().len();
        worker = fleet.worker("w1", &["--jobs", "1", "--lease", "4s"]);
        has_hang(&worker, since);
    }
    submitted.signal("-INT");
    submitted.says("no more jobs begin");
    submitted.signal("-INT");
    let ended = submitted.finish(LONG);
    assert_eq!((ended.code(), ended.stderr.matches("no worker takes").count()), (Some(130), 2), "{ended:?}");
    worker.kill();
    fleet.nothing_is_left();
}
