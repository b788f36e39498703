//! `alhena run` and a pipe on stdin that somebody holds open.

use std::fs::File;
use std::io::Write;
use std::process::Stdio;

use alhena_testbed::{Hostile, Script};
use serde_json::{Value, json};

use crate::run::desk_with;

const NOT_READ: &str = "stdin is a pipe that was silent for half a second, so it was not read; --stdin waits for it, `< /dev/null` says that there is nothing";

fn prompt(hostile: &Hostile) -> Option<String> {
    hostile.starts().unwrap().last()?.argv.iter().find(|argument| argument.starts_with("--prompt=")).cloned()
}

/// The warnings of a run with this on its stdin.
fn warnings(args: &[&str], stdin: impl Into<Stdio>) -> (Vec<Value>, Option<String>) {
    let (desk, hostile) = desk_with(Script::normal());
    let mut command = desk.command(&[&["run", "--as", "outcome"], args].concat());
    let output = command.stdin(stdin).stderr(Stdio::null()).output().unwrap();
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["status"], json!("success"), "{outcome}");
    (outcome["warnings"].as_array().cloned().unwrap_or_default(), prompt(&hostile))
}

#[test]
fn a_pipe_that_stays_silent_adds_nothing_to_a_prompt_and_that_is_said() {
    let (stdin, _open) = std::io::pipe().unwrap();
    let (warnings, prompt) = warnings(&["hello"], stdin);
    assert!(warnings.contains(&json!(NOT_READ)), "{warnings:?}");
    assert_eq!(prompt.as_deref(), Some("--prompt=hello"));
}

#[test]
fn nothing_is_said_of_a_stdin_that_has_an_end() {
    let (stdin, open) = std::io::pipe().unwrap();
    drop(open);
    for stdin in [Stdio::null(), Stdio::from(stdin), Stdio::from(File::open("/dev/null").unwrap())] {
        let (warnings, _) = warnings(&["hello"], stdin);
        assert!(!warnings.contains(&json!(NOT_READ)), "{warnings:?}");
    }
}

#[test]
fn a_pipe_is_waited_for_if_that_is_asked_for() {
    let (stdin, mut open) = std::io::pipe().unwrap();
    let writer = std::thread::spawn(move || {
        // Longer than anybody waits who does not have to.
        std::thread::sleep(std::time::Duration::from_millis(1500));
        open.write_all(b"late").unwrap();
    });
    let (warnings, prompt) = warnings(&["--stdin", "hello"], stdin);
    writer.join().unwrap();
    assert!(!warnings.contains(&json!(NOT_READ)), "{warnings:?}");
    assert_eq!(prompt.as_deref(), Some("--prompt=late\n\nhello"));
}
