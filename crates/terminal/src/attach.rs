//! Showing a terminal to a person.
//!
//! Through a session of their own that shares the windows, so that what they look at moves nobody else's view, and with the
//! size of their terminal: 0.61.0 draws everything anew when that changes, also in the middle of an answer.

use std::ffi::OsStr;
use std::process::ExitStatus;

use crate::error::TerminalError;
use crate::terminal::Terminal;
use crate::tmux::SESSION;

impl Terminal {
    /// Shows the terminal in the caller's own, until they leave it.
    pub fn attach(&self) -> Result<ExitStatus, TerminalError> {
        let live = self.live()?;
        let [window] = live.control.run([&["display-message", "-p", "-t", &live.pane, "#{window_id}"]])?;
        let window = window.trim();
        let tmux = &self.terminals.inner.tmux;
        // Fixed while nobody looks; from now on the person's.
        let _default = tmux.run(&["set-option", "-wu", "-t", window, "window-size"].map(OsStr::new));
        let view = format!("{SESSION}-view-{}", std::process::id());
        let mut command = tmux.command();
        command.args(["new-session", "-t", &format!("={SESSION}"), "-s", &view, ";"]);
        command.args(["set-option", "-t", &view, "destroy-unattached", "on", ";"]);
        command.args(["select-window", "-t", &format!("{view}:{window}")]);
        command.status().map_err(TerminalError::tmux)
    }
}
