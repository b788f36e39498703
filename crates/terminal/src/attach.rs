//! Showing a terminal to a person.
//!
//! Through a session of their own that shares the windows, so that what they look at moves nobody else's view, and with the
//! size of their terminal: 0.61.0 draws everything anew when that changes, also in the middle of an answer. When the last of
//! them has left, the window gets its own size back: a small screen would stay small for everybody.

use std::ffi::OsStr;
use std::process::ExitStatus;

use crate::error::TerminalError;
use crate::terminal::Terminal;
use crate::tmux::{SESSION, Tmux};

/// What the sessions of those who look are called.
const VIEW: &str = "alhena-view-";

impl Terminal {
    /// Shows the terminal in the caller's own, until they leave it.
    pub fn attach(&self) -> Result<ExitStatus, TerminalError> {
        let live = self.live()?;
        let [window] = live.control.run([&["display-message", "-p", "-t", &live.pane, "#{window_id}"]])?;
        let window = window.trim();
        let tmux = &self.terminals.inner.tmux;
        // Fixed while nobody looks; from now on the person's.
        let _default = tmux.run(&["set-option", "-wu", "-t", window, "window-size"].map(OsStr::new));
        let view = format!("{VIEW}{}", std::process::id());
        let mut command = tmux.command();
        command.args(["new-session", "-t", &format!("={SESSION}"), "-s", &view, ";"]);
        command.args(["select-window", "-t", &format!("{view}:{window}"), ";"]);
        command.args(["select-pane", "-t", &live.pane]);
        let done = command.status().map_err(TerminalError::tmux);
        end_views(tmux);
        give_size_back(tmux, window);
        done
    }
}

/// Ends the sessions that nobody looks through any more, also those of others who were killed before they could.
///
/// Not by tmux's own `destroy-unattached`: 3.3a then ends a session whose client is about to leave, and crashes when it
/// looks at that client once more, with every agent.
fn end_views(tmux: &Tmux) {
    let list = ["list-sessions", "-F", "#{session_attached} #{session_name}"].map(OsStr::new);
    let sessions = tmux.run(&list).unwrap_or_default();
    let unseen = sessions.lines().filter_map(|line| line.strip_prefix("0 "));
    for view in unseen.filter(|name| name.starts_with(VIEW)) {
        let _already_gone = tmux.run(&["kill-session", "-t", &format!("={view}")].map(OsStr::new));
    }
}

/// Makes a window as large as it was launched, unless somebody else still looks at it.
fn give_size_back(tmux: &Tmux, window: &str) {
    let looking = ["list-clients", "-F", "#{session_name} #{window_id}"].map(OsStr::new);
    let looking = tmux.run(&looking).unwrap_or_default();
    if looking.lines().any(|client| client.starts_with(VIEW) && client.ends_with(&format!(" {window}"))) {
        return;
    }
    let size = ["show-options", "-wv", "-t", window, "@alhena-size"].map(OsStr::new);
    let size = tmux.run(&size).unwrap_or_default();
    if let Some((columns, rows)) = size.trim().split_once(' ') {
        let resize = ["resize-window", "-t", window, "-x", columns, "-y", rows].map(OsStr::new);
        let _closed_meanwhile = tmux.run(&resize);
    }
}
