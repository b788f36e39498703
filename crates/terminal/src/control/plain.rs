//! tmux without a watcher: plain commands, a process each, and gentle polling.
//!
//! For when no watcher can be started. Slower, and blind between two looks, but it needs nothing but tmux, and tmux 3.3a
//! bears it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Activity;
use crate::error::TerminalError;
use crate::tmux::Tmux;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(60);
/// After so long a watcher is tried again.
const OLD: Duration = Duration::from_secs(10);

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
