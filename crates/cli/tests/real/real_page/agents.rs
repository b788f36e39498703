//! Agents that others started, on the page: in terminals, and in batches.

use std::process::Stdio;
use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{Deadline, run_bounded};
use serde_json::json;

use super::place::{MODEL, Place};

#[test]
fn the_agent_in_a_terminal_is_seen_sent_a_message_and_answered() {
    let command = json!({"command": "echo hello > said.txt", "description": "Says it"});
    let scenario = Scenario::new()
        .turn(Turn::new().text("I write it down.").call("run_shell_command", command))
        .turn(Turn::say("It is written."));
    let mut place = Place::new("terminal", scenario);
    let mut launch = place.alhena(&["terminal"]);
    launch.args(["--server", &place.tmux_server]).arg("--tmux").arg(&place.tmux);
    launch.args(["launch", "--name", "fixer", "--model", MODEL, "--gemini"]).arg(&place.lab.gemini.path);
    let launched = run_bounded(&mut launch, Duration::from_secs(120)).unwrap();
    assert!(launched.succeeded(), "{}", launched.stderr_text());
    place.go("#/terminals");
    place.sees(".rows a[data-id=fixer]");
    place.browser.click(".rows a[data-id=fixer]").unwrap();
    place.sees(".view[data-view=terminal] .screen");
    place.waits("document.querySelector('.screen').textContent.includes('Type your message')");
    place.browser.fill("#say", "Say hello to a file").unwrap();
    place.browser.press(&["Enter"]).unwrap();
    // It asks; what it would do is in view, and is not done.
    place.sees(".asked");
    place.waits("document.querySelector('.asked')?.textContent.includes('echo hello > said.txt')");
    place.waits("document.querySelector('.screen').textContent.includes('Say hello to a file')");
    let said = place.lab.workspace().join("said.txt");
    assert!(!said.exists());
    assert!(place.texts(".asked").concat().contains("echo hello > said.txt"), "{:?}", place.texts(".asked"));
    super::looks::looks(&mut place, "terminal");
    place.browser.click(".asked .acts > button.primary").unwrap();
    place.waits("document.querySelector('.screen').textContent.includes('It is written.')");
    assert_eq!(std::fs::read_to_string(&said).unwrap(), "hello\n");
    place.waits("!document.querySelector('.asked')");
    place.browser.click("#exit").unwrap();
    place.browser.click("dialog button.danger").unwrap();
    place.sees(".view[data-view=terminals] .empty");
    place.is_harmless();
}

#[test]
fn without_tmux_the_page_works_and_says_what_cannot_be_seen() {
    let mut place = Place::new("no-tmux", Scenario::new().turn(Turn::say("Hello.")));
    place.end_server();
    place.tmux = "/nope/tmux".into();
    place.start_server_again();
    place.go("#/terminals");
    place.sees(".view[data-view=terminals] .failure .hint");
    assert!(place.texts(".failure").concat().contains("/nope/tmux"), "{:?}", place.texts(".failure"));
    place.go("#/doctor");
    place.sees(".findings li[data-state=doubtful]");
    let doubtful = place.texts(".findings li[data-state=doubtful]").concat();
    assert!(doubtful.contains("/nope/tmux"), "{doubtful}");
    place.go("#/now");
    place.sees(".view[data-view=now] .empty");
    assert_eq!(place.texts(".view[data-view=now] .failure"), Vec::<String>::new());
    place.is_harmless();
}

#[test]
fn a_batch_is_followed_from_its_first_job_to_its_results() {
    let scenario = Scenario::new()
        .turn(Turn::say("The first answer."))
        .turn(Turn::new().gate("on").text("The second answer."));
    let mut place = Place::new("batch", scenario);
    let job = |id: &str| json!({"id": id, "prompt": format!("Do {id}"), "model": MODEL}).to_string();
    place.lab.home.write("jobs.jsonl", format!("{}\n{}\n", job("one"), job("two"))).unwrap();
    let mut batch = place.alhena(&["batch", "jobs.jsonl", "--into", "results.jsonl", "--jobs", "1"]);
    let mut batch = batch.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    place.go("#/now");
    place.sees("section[aria-label='At work'] a[href^='#/batch/']");
    place.go("#/batches");
    place.waits("document.querySelector('.rows .doing')?.textContent.includes('1 of 2')");
    place.browser.click(".rows a").unwrap();
    place.sees(".view[data-view=batch][data-state=running] .results");
    assert_eq!(place.texts(".results tbody th"), ["one"]);
    place.lab.server.release("lab", "on");
    place.sees(".view[data-view=batch][data-state=ended]");
    place.waits("document.querySelectorAll('.results tbody tr').length === 2");
    assert_eq!(place.texts(".results tbody td:last-child"), ["The second answer.", "The first answer."]);
    super::looks::looks(&mut place, "batch");
    let deadline = Deadline::after(Duration::from_secs(30));
    assert!(deadline.wait_until(|| batch.try_wait().unwrap().is_some()));
    place.is_harmless();
}
