//! What is seen of a batch: without a terminal, by whoever asks this machine, and as a page.

use alhena_batch::registry::{Registry, State};
use alhena_testbed::{Step, run_bounded};
use serde_json::json;

use super::{Desk, LIMIT, is_there, steps};

#[test]
fn without_a_terminal_a_line_now_and_then_says_how_far_it_is() {
    let desk = Desk::new("lines");
    desk.jobs(&[steps(
        "slow",
        [Step::Init, Step::User, Step::Sleep(11_000), Step::Text("x".into()), Step::Result],
    )]);
    let done = desk.batch("jobs.jsonl", &[]);
    assert!(done.succeeded(), "{}", done.stderr_text());
    let said = done.stderr_text();
    assert!(said.contains("0/1 done · 0 failed · 1 running"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}

#[test]
fn a_batch_is_known_on_its_machine_while_it_runs_and_afterwards() {
    let desk = Desk::new("registry");
    let began = desk.work().join("began");
    let hang =
        [Step::Init, Step::Touch(began.to_str().unwrap().to_owned()), Step::Sleep(60_000), Step::Result];
    desk.jobs(&[json!({"prompt": "a"}), steps("hangs", hang)]);
    let registry = Registry::of(&desk.hostile.lab.env).unwrap();
    let mut child = desk.command("jobs.jsonl", &["--quiet", "--jobs", "1"]).spawn().unwrap();
    is_there(began);
    let deadline = alhena_testbed::Deadline::after(LIMIT);
    assert!(deadline.wait_until(|| {
        let known = registry.list().unwrap();
        known.len() == 1 && known[0].progress.succeeded == 1 && known[0].progress.running.len() == 1
    }));
    let known = registry.list().unwrap().remove(0);
    assert_eq!((known.state(), known.process.pid), (State::Running, child.id()));
    assert_eq!(known.results, desk.work().join("results.jsonl"));
    assert_eq!((known.progress.jobs, known.progress.running[0].id.as_str()), (Some(2), "2"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(registry.get(&known.id).unwrap().unwrap().state(), State::Died);
    desk.nothing_is_left();
    desk.jobs(&[json!({"prompt": "a"})]);
    assert!(desk.batch("jobs.jsonl", &["--again", "changed"]).succeeded());
    let last = registry.list().unwrap().remove(0);
    assert_eq!((last.state(), last.summary.unwrap().succeeded), (State::Ended, 1));
}

#[test]
fn a_page_is_written_also_of_what_was_stopped_and_nothing_is_overwritten_by_mistake() {
    let desk = Desk::new("page");
    let evil = "</title><script>document.body.id='ran'</script>";
    desk.jobs(&[json!({"id": evil, "prompt": "a"}), json!({"prompt": "b"})]);
    let page = |path: &str| std::fs::read_to_string(desk.work().join(path)).unwrap();
    let done =
        desk.batch("jobs.jsonl", &["--summary", "page.html", "--max-cost", "0.0000001", "--jobs", "1"]);
    assert_eq!(done.status.code(), Some(9), "{}", done.stderr_text());
    let stopped = page("page.html");
    assert!(stopped.contains("stopped: ") && !stopped.contains("every job succeeded"), "{stopped}");
    assert!(desk.batch("jobs.jsonl", &["--summary", "page.html"]).succeeded());
    let whole = page("page.html");
    assert!(whole.contains("every job succeeded") && !whole.contains("<script>"), "{whole}");
    for (path, why) in [
        ("jobs.jsonl", "it holds the jobs or the results"),
        ("./results.jsonl", "it holds the jobs or the results"),
        (".", "it is not a regular file"),
        ("no/where.html", "its directory does not exist"),
    ] {
        let refused = run_bounded(&mut desk.command("jobs.jsonl", &["--summary", path]), LIMIT).unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert!(refused.stderr_text().contains(why), "{path}: {}", refused.stderr_text());
    }
    assert_eq!(desk.prompts().len(), 2);
}
