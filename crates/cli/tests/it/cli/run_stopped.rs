//! `alhena run`, stopped before Gemini CLI was started.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use alhena_testbed::processes::signal;
use alhena_testbed::{Deadline, Script};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::run::desk_with;
use crate::common::Desk;

const LONG: Duration = Duration::from_secs(60);

/// It catches signals before it does anything that takes long.
fn catches_signals(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
    u64::from_str_radix(mask, 16).unwrap() & (1 << 14) != 0
}

fn failure_of(mut child: Child) -> (Option<i32>, Value) {
    let code = child.wait().unwrap().code();
    let outcome: Value = serde_json::from_reader(child.stdout.take().unwrap()).unwrap();
    (code, outcome["failure"]["kind"].clone())
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_signal_ends_the_wait_for_a_prompt_on_stdin() {
    let (desk, hostile) = desk_with(Script::normal());
    let (stdin, _open) = std::io::pipe().unwrap();
    let child = start(desk.command(&["run", "-", "--as", "outcome"]).stdin(stdin));
    assert!(Deadline::after(LONG).wait_until(|| catches_signals(&child)));
    signal(child.id(), Signal::TERM);
    assert_eq!(failure_of(child), (Some(130), json!("cancelled")));
    assert_eq!(hostile.starts().unwrap().len(), 0);
}

/// Asked for its version, the stand-in would never answer, and hears no gentle word.
#[test]
fn a_signal_ends_the_question_for_the_version_with_whoever_was_asked() {
    for signal_sent in [Signal::INT, Signal::TERM, Signal::HUP] {
        let desk = Desk::new();
        let asked = desk.root().join("asked");
        let script = format!(
            "#!/bin/sh\ntrap '' INT TERM HUP\necho $$ > {0}.part\n/bin/mv {0}.part {0}\nexec /bin/sleep 600\n",
            asked.display()
        );
        let gemini = desk.program("slow", &script);
        let args = ["run", "--as", "outcome", "--trust", "--gemini", gemini.to_str().unwrap(), "hello"];
        let child = start(desk.command(&args).stdin(Stdio::null()));
        assert!(Deadline::after(LONG).wait_until(|| asked.exists()));
        signal(child.id(), signal_sent);
        assert_eq!(failure_of(child), (Some(130), json!("cancelled")));
        let pid: u32 = fs::read_to_string(&asked).unwrap().trim().parse().unwrap();
        assert!(!alhena_testbed::alive(pid), "who was asked lives on");
    }
}
