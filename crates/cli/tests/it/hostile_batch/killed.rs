//! A batch that is killed at random moments: whatever is lost, no result is, and none is there twice.

use std::process::Stdio;
use std::time::{Duration, SystemTime};

use alhena_testbed::{Deadline, Step};
use serde_json::{Value, json};

use super::{Desk, steps};

/// How many jobs and kills; `ALHENA_BATCH_KILLS=20` is the whole, with 200 jobs.
fn size() -> (usize, u32) {
    match std::env::var("ALHENA_BATCH_KILLS").ok().and_then(|kills| kills.parse().ok()) {
        Some(kills) => (kills as usize * 10, kills),
        None => (40, 5),
    }
}

#[test]
fn killed_at_random_moments_every_job_is_done_once_in_the_results_and_nothing_is_left() {
    let desk = Desk::new("killed");
    let (count, kills) = size();
    desk.write("dir/file", "text\n");
    let job = |number: usize| {
        let mut job = steps(
            &format!("job {number}"),
            [Step::Init, Step::User, Step::Sleep(30), Step::Text("x".into()), Step::Result],
        );
        if number.is_multiple_of(5) {
            job["dir"] = json!("dir");
            job["copy"] = json!(true);
            job["trust"] = json!(true);
        }
        job
    };
    desk.jobs(&(1..=count).map(job).collect::<Vec<Value>>());
    let mut seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    eprintln!("seed {seed}");
    let results = desk.work().join("results.jsonl");
    let done_so_far =
        || std::fs::read(&results).unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
    for _ in 0..kills {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let mut command = desk.command("jobs.jsonl", &["--jobs", "4"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap();
        // At its very start, or when it has got so much further, and then at any moment.
        let further = (done_so_far() + seed as usize % (count / kills as usize + 2)).min(count);
        let mut ended = None;
        let reached = Deadline::after(Duration::from_secs(30)).wait_until(|| {
            ended = child.try_wait().unwrap();
            ended.is_some() || done_so_far() >= further
        });
        assert!(reached, "{} of {further} are done", done_so_far());
        assert!(ended.is_none_or(|status| status.success()), "it ended by itself: {ended:?}");
        std::thread::sleep(Duration::from_millis((seed >> 20) % 150));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = desk.results();
    let done = desk.batch("jobs.jsonl", &["--jobs", "4", "--ordered"]);
    assert!(done.succeeded(), "{} {}", done.stdout_text(), done.stderr_text());
    let results = desk.results();
    let ids: Vec<usize> =
        results.iter().map(|result| result["id"].as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(ids, (1..=count).collect::<Vec<_>>());
    assert!(results.iter().all(|result| result["outcome"]["status"] == "success"));
    // What was on the disk stays as it was.
    assert!(before.iter().all(|result| results.contains(result)));
    eprintln!("{} of {count} were done before the last start", before.len());
    desk.nothing_is_left();
}
