//! Showing a terminal to a person.
//!
//! Through a session of their own that shares the windows, so that what they look at moves nobody else's view, and with the
//! size of their terminal: 0.61.0 draws everything anew when that changes, also in the middle of an answer.

use std::process::ExitStatus;

use crate::error::TerminalError;
use crate::terminal::Terminal;
use crate::tmux::SESSION;

impl Terminal {
    /// Shows the terminal in the caller's own, until they leave it.
    pub fn attach(&self) -> Result<ExitStatus, TerminalError> {
        let pane = self.live()?.pane;
        let tmux = &self.terminals.inner.tmux;
        // Fixed while nobody looks; from now on the person's.
        let _default = tmux.run(&[
            "set-option".as_ref(),
            "-wu".as_ref(),
            "-t".as_ref(),
            pane.as_ref(),
            "window-size".as_ref(),
        ]);
        let view = format!("{SESSION}-view-{}", std::process::id());
        let mut command = tmux.command();
        command.args(["new-session", "-t", &format!("={SESSION}"), "-s", &view, ";"]);
        command.args(["set-option", "-t", &view, "destroy-unattached", "on", ";"]);
        command.args(["select-window", "-t", &format!("{view}:{}", self.name())]);
        command.status().map_err(TerminalError::tmux)
    }
}
