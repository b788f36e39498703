//! What tmux says and does for terminals, whoever asks it.
//!
//! The watcher has the only control-mode connection ([`Connection`]); everybody else asks the watcher ([`Client`]), or, where
//! there is none, plain tmux commands ([`Plain`]).

mod connection;
mod parse;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::command_line::quoted;
use crate::error::TerminalError;
use crate::screen::Title;
use crate::tmux::Tmux;
use crate::watcher::Client;

pub(crate) use self::connection::Connection;

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

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(60);
/// After so long a watcher is tried again.
const OLD: Duration = Duration::from_secs(10);

/// Plain commands, a process each, for when no watcher can be started: slower, and blind between two looks, but tmux 3.3a bears
/// it.
#[derive(Debug)]
pub(crate) struct Plain {
    tmux: Tmux,
    opened: Instant,
    panes: Mutex<HashMap<String, Pane>>,
}

#[derive(Debug, Default)]
struct Pane {
    activity: Activity,
    screen: Option<u64>,
}

impl Plain {
    pub(crate) fn new(tmux: &Tmux) -> Self {
        Self { tmux: tmux.clone(), opened: Instant::now(), panes: Mutex::default() }
    }

    pub(crate) fn is_old(&self) -> bool {
        self.opened.elapsed() > OLD
    }

    pub(crate) fn run(&self, commands: &[&[&str]]) -> Result<Vec<String>, TerminalError> {
        self.tmux.run_each(commands)
    }

    pub(crate) fn activity(&self, pane: &str) -> Activity {
        let now = self.run(&[
            &["display-message", "-p", "-t", pane, "#{history_size} #{cursor_x} #{cursor_y} #{pane_title}"],
            &["capture-pane", "-p", "-t", pane],
        ]);
        let mut panes = self.panes.lock();
        let known = panes.entry(pane.to_owned()).or_default();
        let Ok(now) = now else {
            // The pane has gone.
            known.activity.windows += 1;
            return known.activity.clone();
        };
        let title = now.first().and_then(|about| about.trim_end().splitn(4, ' ').nth(3)).map(str::to_owned);
        let mut hasher = DefaultHasher::new();
        now.hash(&mut hasher);
        let screen = hasher.finish();
        if known.screen.replace(screen) != Some(screen) {
            let activity = &mut known.activity;
            activity.count += 1;
            activity.last = Some(Instant::now());
            activity.since = Instant::now();
            let worked = activity.says_working();
            activity.title = title;
            activity.begun += u64::from(!worked && activity.says_working());
        }
        known.activity.clone()
    }

    pub(crate) fn wait(&self, pane: &str, seen: &Activity, deadline: Instant) -> Activity {
        loop {
            let now = self.activity(pane);
            let left = deadline.saturating_duration_since(Instant::now());
            if now.count != seen.count || now.windows != seen.windows || left.is_zero() {
                return now;
            }
            std::thread::sleep(PAUSE.min(left));
        }
    }
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
