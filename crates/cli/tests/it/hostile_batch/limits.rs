//! How many, how often, for how much, and in which order.

use std::time::SystemTime;

use alhena_testbed::Step;
use alhena_testbed::script::Ending;
use serde_json::{Value, json};

use super::{Desk, steps};

#[test]
fn jobs_that_may_change_the_same_place_run_one_after_another() {
    let desk = Desk::new("lanes");
    let work = desk.work();
    let job = |number: usize| {
        let touch =
            |when: &str| Step::Touch(work.join(format!("{when}-{number}")).to_str().unwrap().to_owned());
        let mut job = steps("x", [touch("began"), Step::Sleep(150), touch("ended"), Step::Normal]);
        job["approval"] = json!("yolo");
        job
    };
    desk.jobs(&(0..4).map(job).collect::<Vec<Value>>());
    let done = desk.batch("jobs.jsonl", &["--jobs", "4"]);
    assert!(done.succeeded(), "{}", done.stderr_text());
    let at = |when: &str, number: usize| -> SystemTime {
        std::fs::metadata(work.join(format!("{when}-{number}"))).unwrap().modified().unwrap()
    };
    let mut spans: Vec<_> = (0..4).map(|number| (at("began", number), at("ended", number))).collect();
    spans.sort();
    assert!(spans.windows(2).all(|two| two[0].1 <= two[1].0), "{spans:?}");
}

#[test]
fn a_failure_is_the_end_where_that_was_said() {
    let desk = Desk::new("fail-fast");
    let failing =
        steps("fails", [Step::Init, Step::User, Step::ResultError("no".into()), Step::End(Ending::Exit(1))]);
    desk.jobs(&[json!({"prompt": "a"}), failing, json!({"prompt": "b"}), json!({"prompt": "c"})]);
    let done = desk.batch("jobs.jsonl", &["--jobs", "1", "--retries", "0", "--fail-fast"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(
        done.stdout_text().contains("1 of 4 jobs succeeded, 1 failed, 2 not done"),
        "{}",
        done.stdout_text()
    );
    assert_eq!(desk.prompts(), ["a", "fails"]);
    let rest = desk.batch("jobs.jsonl", &["--jobs", "1", "--retries", "0"]);
    assert_eq!((rest.status.code(), desk.prompts().len()), (Some(1), 4));
}

#[test]
fn no_job_begins_when_all_have_cost_what_they_may() {
    let desk = Desk::new("max-cost");
    desk.jobs(&["a", "b", "c"].map(|prompt| json!({"prompt": prompt, "model": "gemini-2.5-flash"})));
    let done = desk.batch("jobs.jsonl", &["--jobs", "1", "--max-cost", "0.0000001"]);
    assert_eq!(done.status.code(), Some(9), "{} {}", done.stdout_text(), done.stderr_text());
    assert_eq!((desk.prompts().len(), desk.results().len()), (1, 1));
    assert!(desk.batch("jobs.jsonl", &["--max-cost", "5"]).succeeded());
    assert_eq!(desk.results().len(), 3);
}

#[test]
fn results_are_in_the_order_of_jobs_where_that_was_said() {
    let desk = Desk::new("ordered");
    let second = desk.work().join("second");
    // The first waits for the second one's end, as nobody else can end before.
    let slow = json!({"id": "slow", "prompt": "a", "env": [
        format!("HOSTILE={}", json!([{"sleep": 1500}, "normal"]))]});
    let touch = Step::Touch(second.to_str().unwrap().to_owned());
    let mut quick = steps("b", [touch, Step::Normal]);
    quick["id"] = json!("quick");
    desk.jobs(&[slow, quick, json!({"id": "last", "prompt": "c"})]);
    assert!(desk.batch("jobs.jsonl", &["--jobs", "2", "--ordered"]).succeeded());
    let ids: Vec<Value> = desk.results().iter().map(|result| result["id"].clone()).collect();
    assert_eq!(ids, ["slow", "quick", "last"]);
}

#[test]
fn what_may_pass_is_repeated_so_often_as_was_said() {
    let desk = Desk::new("retries");
    desk.jobs(&[steps("dies", [Step::Init, Step::End(Ending::Signal(9))])]);
    let done = desk.batch("jobs.jsonl", &["--retries", "1"]);
    assert_eq!(done.status.code(), Some(1));
    let result = &desk.results()[0];
    assert_eq!((&result["attempt"], result["earlier"].as_array().map(Vec::len)), (&json!(2), Some(1)));
    assert_eq!(result["earlier"][0]["kind"], "crashed");
    assert!(done.stderr_text().contains("again 1: attempt 1 failed"), "{}", done.stderr_text());
}
