//! What tmux says and does for terminals, whoever asks it.
//!
//! The watcher has the only control-mode connection ([`Connection`]); everybody else asks the watcher ([`Client`]), or, where
//! there is none, plain tmux commands ([`Plain`]).

mod connection;
mod osc;
mod parse;
mod plain;

use std::time::{Duration, Instant};

pub(crate) use self::connection::Connection;
pub(crate) use self::plain::Plain;
use crate::command_line::quoted;
use crate::error::TerminalError;
use crate::screen::Title;
use crate::tmux::Tmux;
use crate::watcher::Client;

/// Between two looks where nobody tells that something has changed.
pub(crate) const GLANCE: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// How many pieces of output came.
    pub(crate) count: u64,
    pub(crate) last: Option<Instant>,
    /// Since when it has been quiet: the last output, or the beginning of the watch.
    pub(crate) since: Instant,
    pub(crate) title: Option<String>,
    /// How many titles said that the agent works: it may have finished before anybody looked.
    pub(crate) begun: u64,
    /// How often windows came or went.
    pub(crate) windows: u64,
}

impl Default for Activity {
    fn default() -> Self {
        Self { count: 0, last: None, since: Instant::now(), title: None, begun: 0, windows: 0 }
    }
}

impl Activity {
    pub(crate) fn says_working(&self) -> bool {
        matches!(Title::read(self.title.as_deref()), Title::Working)
    }
}

#[derive(Debug)]
pub(crate) enum Control {
    Own(Connection),
    Watcher(Client),
    Plain(Plain),
}

impl Control {
    pub(crate) fn plain(tmux: &Tmux) -> Self {
        Self::Plain(Plain::new(tmux))
    }

    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Control::Own(connection) => connection.is_gone(),
            Control::Watcher(client) => client.is_gone(),
            Control::Plain(plain) => plain.is_old(),
        }
    }

    pub(crate) fn run<const N: usize>(&self, commands: [&[&str]; N]) -> Result<[String; N], TerminalError> {
        self.run_all(&commands)?.try_into().map_err(|_| TerminalError::tmux("an answer is missing"))
    }

    pub(crate) fn run_all(&self, commands: &[&[&str]]) -> Result<Vec<String>, TerminalError> {
        match self {
            Control::Own(connection) => connection.run(commands),
            Control::Watcher(client) => client.run(commands),
            Control::Plain(plain) => plain.run(commands),
        }
    }

    /// Ends it. Only the watcher has something to end.
    pub(crate) fn leave(&self) {
        if let Control::Own(connection) = self {
            connection.leave();
        }
    }

    /// How often anything happened, in any pane, once that is not what was seen any more, or at the deadline. Only the
    /// watcher counts.
    pub(crate) fn wait_for_changes(&self, seen: u64, deadline: Instant) -> u64 {
        match self {
            Control::Own(connection) => connection.wait_for_changes(seen, deadline),
            Control::Watcher(_) | Control::Plain(_) => seen,
        }
    }

    /// How often agents were seen to do something else, so far.
    pub(crate) fn news(&self) -> u64 {
        self.wait_for_news(0, Instant::now())
    }

    /// The same, once that is not what was seen any more, or at the deadline. Where there is no watcher, after a while.
    pub(crate) fn wait_for_news(&self, seen: u64, deadline: Instant) -> u64 {
        let told = match self {
            Control::Watcher(client) => client.wait_for_news(seen, deadline),
            Control::Own(_) | Control::Plain(_) => None,
        };
        told.unwrap_or_else(|| {
            std::thread::sleep(GLANCE.min(deadline.saturating_duration_since(Instant::now())));
            seen
        })
    }

    pub(crate) fn activity(&self, pane: &str) -> Activity {
        match self {
            Control::Own(connection) => connection.activity(pane),
            Control::Watcher(client) => client.activity(pane),
            Control::Plain(plain) => plain.activity(pane),
        }
    }

    pub(crate) fn quiet(&self, pane: &str) -> Duration {
        self.activity(pane).since.elapsed()
    }

    /// Waits for output of a pane beyond what was seen, for a window to come or go, or for the deadline.
    pub(crate) fn wait_for_output(&self, pane: &str, seen: &Activity, deadline: Instant) -> Activity {
        match self {
            Control::Own(connection) => connection.wait(pane, seen, deadline),
            Control::Watcher(client) => client.wait(pane, seen, deadline),
            Control::Plain(plain) => plain.wait(pane, seen, deadline),
        }
    }

    pub(crate) fn wait_until_quiet(&self, pane: &str, quiet: Duration, longest: Duration) {
        let deadline = Instant::now() + longest;
        let mut activity = self.activity(pane);
        while let Some(last) = activity.last {
            let until = (last + quiet).min(deadline);
            if until <= Instant::now() {
                return;
            }
            activity = self.wait_for_output(pane, &activity, until);
        }
    }
}

fn line_of(commands: &[&[&str]]) -> String {
    let command = |words: &&[&str]| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    commands.iter().map(command).collect::<Vec<_>>().join(" ; ") + "\n"
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn no_word_can_leave_its_quotes() {
        let line = line_of(&[&["send-keys", "-l", "it's ; #{x}"], &["list-panes"]]);
        assert_eq!(line, "'send-keys' '-l' 'it'\\''s ; #{x}' ; 'list-panes'\n");
    }
}
