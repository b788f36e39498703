//! A person at a terminal: a pane with a shell, beside the agents' session.

use std::process::Command;
use std::time::Duration;

use alhena_testbed::{Deadline, run_bounded};

use super::place::{ALHENA, LONG, Place};

pub struct Person<'a>(&'a Place);

impl<'a> Person<'a> {
    pub fn sit_down(place: &'a Place) -> Self {
        Self::with_size(place, "100", "30")
    }

    pub fn with_size(place: &'a Place, columns: &str, rows: &str) -> Self {
        place.tmux(&["new-session", "-d", "-s", "person", "-x", columns, "-y", rows, "/bin/sh"]);
        Self(place)
    }

    pub fn press(&self, keys: &[&str]) {
        self.0.tmux(&[&["send-keys", "-t", "=person:"], keys].concat());
    }

    pub fn type_line(&self, line: &str) {
        self.press(&["-l", line]);
        self.press(&["Enter"]);
    }

    pub fn shown(&self) -> String {
        self.0.tmux(&["capture-pane", "-p", "-t", "=person:"])
    }

    pub fn sees(&self, text: &str) {
        let seen = Deadline::after(LONG).wait_until(|| self.shown().contains(text));
        assert!(seen, "no {text:?} in:\n{}", self.shown());
    }

    pub fn alternate(&self) -> String {
        self.0.tmux(&["display-message", "-p", "-t", "=person:", "#{alternate_on}"]).trim().to_owned()
    }

    /// How the commands for the agents here begin.
    pub fn alhena(&self) -> String {
        format!("{ALHENA} terminal --server {} --tmux {}", self.0.server, self.0.tmux.display())
    }

    /// Closes the terminal, whatever runs in it.
    pub fn leave(&self) {
        self.0.tmux(&["kill-session", "-t", "=person"]);
    }
}

/// What comes of pasting a command, as it was told, into a shell. It must name the test's server.
pub fn paste(place: &Place, told: &str) -> (i32, String, String) {
    let (_, command) =
        told.split_once("`alhena terminal ").unwrap_or_else(|| panic!("no command in: {told}"));
    let command = command.split_once('`').unwrap().0;
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().envs(place.env.iter()).current_dir(place.work());
    shell.arg("-c").arg(format!("{ALHENA} terminal {command}"));
    let done = run_bounded(&mut shell, Duration::from_secs(120)).unwrap();
    (done.status.code().unwrap(), done.stdout_text(), done.stderr_text())
}
