//! Telling a person that an agent waits for them: by a bell, or by a command of theirs.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alhena_agent::env;
use alhena_sys::fork::die_with_parent;
use alhena_sys::processes::{self, Signal};
use alhena_sys::terminals;

use crate::control::Control;
use crate::screen::{Reading, Status};
use crate::store::Record;
use crate::terminal::status_name;

/// What rings the bell of whoever looks, instead of a command.
pub(crate) const BELL: &str = "bell";
/// How long a command may take.
const LONGEST: Duration = Duration::from_secs(30);

pub(crate) fn is_new_question(before: Option<&Reading>, now: &Reading) -> bool {
    let question = |reading: &Reading| {
        let waiting = reading.waiting_for.as_ref().filter(|_| reading.status == Status::Waiting);
        waiting.map(|waiting| (waiting.kind, waiting.question.clone()))
    };
    question(now).is_some_and(|now| before.and_then(question) != Some(now))
}

/// Tells whoever wanted to be told. Comes back at once.
pub(crate) fn tell(record: &Record, reading: &Reading, pane: &str, control: &Control) {
    match record.notify.as_deref() {
        None => {}
        Some(BELL) => ring(pane, control),
        Some(command) => run(command, record, reading),
    }
}

/// As if the agent itself had rung: tmux passes that on to everybody who is attached, whichever window they look at.
fn ring(pane: &str, control: &Control) {
    let Ok([tty]) = control.run([&["display-message", "-p", "-t", pane, "#{pane_tty}"]]) else { return };
    if let Err(error) = terminals::ring(tty.trim()) {
        tracing::warn!("no bell for {pane}: {error}");
    }
}

fn run(command: &str, record: &Record, reading: &Reading) {
    let question = reading.waiting_for.as_ref().map(|waiting| waiting.question.clone());
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", command])
        .current_dir(&record.dir)
        .env(env::ALHENA_TERMINAL, &record.name)
        .env(env::ALHENA_TERMINAL_ID, &record.id)
        .env(env::ALHENA_STATUS, status_name(reading.status))
        .env(env::ALHENA_QUESTION, question.unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    processes::lead_group(&mut shell);
    die_with_parent(&mut shell);
    let _refused = std::thread::Builder::new().name("alhena-notify".to_owned()).spawn(move || {
        let mut child = match shell.spawn() {
            Ok(child) => child,
            Err(error) => return tracing::warn!("a command could not be run: {error}"),
        };
        let group = child.id();
        let deadline = Instant::now() + LONGEST;
        // What it has put into the background may go on until then, too.
        let lives =
            |child: &mut Child| matches!(child.try_wait(), Ok(None)) || processes::group_is_alive(group);
        while lives(&mut child) {
            if Instant::now() >= deadline {
                processes::signal_group(group, Signal::KILL);
                let _ended = child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::{Waiting, WaitingFor};

    #[test]
    fn each_question_is_told_once() {
        let waits = |question: &str| Reading {
            waiting_for: Some(Waiting {
                question: question.to_owned(),
                ..Waiting::asking(WaitingFor::ToolApproval, &[], None)
            }),
            ..Reading::of(Status::Waiting)
        };
        let works = Reading::of(Status::Processing);
        assert!(is_new_question(None, &waits("one?")));
        assert!(is_new_question(Some(&works), &waits("one?")));
        assert!(!is_new_question(Some(&waits("one?")), &waits("one?")));
        assert!(is_new_question(Some(&waits("one?")), &waits("two?")));
        assert!(!is_new_question(Some(&waits("one?")), &works));
    }
}
