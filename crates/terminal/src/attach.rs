//! Showing a terminal to a person.
//!
//! Through a session of their own that shares the windows, so that what they look at moves nobody else's view, and with the
//! size of their terminal: 0.61.0 draws everything anew when that changes, also in the middle of an answer. When the last of
//! them has left, the window gets its own size back (`fit.rs`): a small screen would stay small for everybody.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use alhena_sys::processes::{Process, Signal};

use crate::control::Control;
use crate::error::TerminalError;
use crate::fit::{self, VIEW};
use crate::terminal::Terminal;
use crate::tmux::SESSION;

/// Between two looks whether the person has left, or is to.
const PAUSE: Duration = Duration::from_millis(30);
/// How long tmux's client may take to leave when it is told to.
const LEAVE: Duration = Duration::from_secs(3);

impl Terminal {
    /// Shows the terminal in the caller's own, until they leave it, or are to: `over` is asked now and then.
    pub fn attach(&self, over: impl Fn() -> bool) -> Result<ExitStatus, TerminalError> {
        let live = self.live()?;
        let [window] = live.control.run([&["display-message", "-p", "-t", &live.pane, "#{window_id}"]])?;
        let window = window.trim();
        let tmux = &self.terminals.inner.tmux;
        let view = format!("{VIEW}{}", std::process::id());
        let mut command = tmux.command();
        command.args(["new-session", "-t", &format!("={SESSION}"), "-s", &view, ";"]);
        command.args(["set-option", "-t", &view, "@alhena-window", window, ";"]);
        // Fixed while nobody looks; from now on the person's.
        command.args(["set-option", "-w", "-t", window, "window-size", "latest", ";"]);
        command.args(["select-window", "-t", &format!("{view}:{window}"), ";"]);
        command.args(["select-pane", "-t", &live.pane]);
        let done = command.spawn().and_then(|mut client| wait(&mut client, over));
        fit::tidy(&Control::plain(tmux));
        done.map_err(TerminalError::tmux)
    }
}

/// Waits for a client. It is asked to leave, which gives the terminal back, when it is over; and ended if it does not.
fn wait(client: &mut Child, over: impl Fn() -> bool) -> std::io::Result<ExitStatus> {
    let mut told: Option<Instant> = None;
    loop {
        if let Some(status) = client.try_wait()? {
            return Ok(status);
        }
        match told {
            None if over() => {
                told = Some(Instant::now());
                if let Some(client) = Process::of(client.id()) {
                    client.signal(Signal::TERM);
                }
            }
            Some(since) if since.elapsed() > LEAVE => client.kill()?,
            _ => {}
        }
        std::thread::sleep(PAUSE);
    }
}
