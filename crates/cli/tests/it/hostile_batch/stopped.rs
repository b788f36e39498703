//! ^C: once, no more jobs begin; twice, those that run are stopped. The journal is right either way.

use std::fs::{self, File};
use std::process::{Child, Stdio};

use alhena_testbed::{Deadline, Step};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Desk, LIMIT, is_there, steps};

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

fn code(mut child: Child) -> Option<i32> {
    let deadline = Deadline::after(LIMIT);
    let mut code = None;
    let ended = deadline.wait_until(|| {
        code = child.try_wait().unwrap().map(|status| status.code());
        code.is_some()
    });
    assert!(ended, "it goes on");
    code.flatten()
}

fn begins(desk: &Desk, first: impl IntoIterator<Item = Step>) -> Child {
    let began = desk.work().join("began");
    let mut all = vec![Step::Init, Step::User, Step::Touch(began.to_str().unwrap().to_owned())];
    all.extend(first);
    desk.jobs(&[steps("first", all), json!({"prompt": "second"})]);
    let mut command = desk.command("jobs.jsonl", &["--jobs", "1"]);
    let said = File::create(desk.work().join("said")).unwrap();
    let child = command.stdout(Stdio::null()).stderr(said).spawn().unwrap();
    is_there(began);
    child
}

#[test]
fn once_lets_those_that_run_finish_and_the_same_command_goes_on() {
    let desk = Desk::new("once");
    let go = desk.work().join("go");
    let held = Step::WaitFor(go.to_str().unwrap().to_owned());
    let child = begins(&desk, [held, Step::Text("done".into()), Step::Result]);
    interrupt(&child);
    let said = || fs::read_to_string(desk.work().join("said")).unwrap();
    let drains = Deadline::after(LIMIT).wait_until(|| said().contains("no more jobs begin"));
    assert!(drains, "{}", said());
    fs::write(go, "").unwrap();
    assert_eq!(code(child), Some(130));
    assert_eq!(desk.statuses().into_iter().collect::<Vec<_>>(), [("1".to_owned(), "success".to_owned())]);
    assert_eq!(desk.prompts(), ["first"]);
    let done = desk.batch("jobs.jsonl", &[]);
    assert!(done.succeeded(), "{}", done.stderr_text());
    assert_eq!((desk.prompts(), desk.results().len()), (vec!["first".to_owned(), "second".to_owned()], 2));
}

#[test]
fn twice_stops_those_that_run_which_are_not_done() {
    let desk = Desk::new("twice");
    let child = begins(&desk, [Step::Sleep(60_000), Step::Result]);
    interrupt(&child);
    interrupt(&child);
    // Two that come at the same moment are one.
    let deadline = Deadline::after(LIMIT);
    let mut child = child;
    while child.try_wait().unwrap().is_none() && !deadline.passed() {
        interrupt(&child);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!(code(child), Some(130));
    assert_eq!(desk.results(), Vec::<Value>::new());
    desk.nothing_is_left();
}

/// Whoever opens a pipe waits for somebody who writes.
#[test]
fn a_pipe_into_which_nobody_writes_is_not_waited_for_when_somebody_wants_to_go() {
    let desk = Desk::new("pipe");
    let pipe = desk.work().join("jobs.pipe");
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    );
    made.unwrap();
    let mut command = desk.command("jobs.pipe", &[]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Once its results are open, it listens for jobs and for signals.
    is_there(desk.work().join("results.jsonl"));
    interrupt(&child);
    assert_eq!(code(child), Some(130));
    let mut child = desk.command("jobs.pipe", &[]).stdout(Stdio::null()).spawn().unwrap();
    fs::write(&pipe, "{\"prompt\": \"through a pipe\"}\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(desk.prompts(), ["through a pipe"]);
    desk.nothing_is_left();
}
