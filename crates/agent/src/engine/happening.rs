//! Everything that can happen to a run, and the one place that waits for it.

use std::io::Read;
use std::time::{Duration, Instant};

use alhena_sys::growth::Growth;
use alhena_sys::poll::{self, Wanted};

use super::reading::Progress;
use super::{Engine, RunState};
use crate::account::NOBODY_TELLS;
use crate::run::{AT_ONCE, Listener};
use crate::supervise::protocol::Report;

/// How long to wait for a reader that is behind before looking again.
pub(super) const READER_IS_BEHIND: Duration = Duration::from_millis(5);
/// How long to wait at the most, whatever was told.
pub(super) const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// What can happen.
pub(super) enum Happening {
    /// The keeper reports.
    Report(Report),
    /// The keeper is gone before its time.
    KeeperGone,
    /// Somebody asks for a stop.
    StopAsked,
    /// Somebody asks for a stop that has no patience with anything.
    StopAskedAtOnce,
    /// Whoever could ask for a stop is gone.
    NobodyCanAsk,
    /// Whoever took the events is gone.
    NobodyListens,
    /// There may be something to read, or a clock rings.
    TimeToLook,
}

impl Engine {
    /// Waits for the CLI, the keeper, a stop, or the next alarm, and tells the one thing to see to now: first what the keeper
    /// says, then who wants a stop, then what the CLI writes.
    pub(super) fn next(&mut self, watch: &RunState, progress: Progress) -> Happening {
        self.wait(watch, progress);
        if self.ward.custody.has_report_within(Duration::ZERO) {
            return match self.ward.custody.report() {
                Ok(Some(report)) => Happening::Report(report),
                Ok(None) | Err(_) => Happening::KeeperGone,
            };
        }
        self.stop_asked(watch).unwrap_or(Happening::TimeToLook)
    }

    /// Whether somebody wants a stop, or nobody is left who wants anything. Nobody is waited for.
    pub(super) fn stop_asked(&mut self, watch: &RunState) -> Option<Happening> {
        let mut asked = [0; 64];
        match self.asked_to_stop.read(&mut asked) {
            Ok(0) if !watch.nobody_can_ask => Some(Happening::NobodyCanAsk),
            Ok(count) if asked.iter().take(count).any(|word| *word == AT_ONCE) => {
                Some(Happening::StopAskedAtOnce)
            }
            Ok(1..) => Some(Happening::StopAsked),
            Ok(0) | Err(_) => {
                let alone = self.queue.listener() == Listener::Gone && watch.stop.is_none();
                alone.then_some(Happening::NobodyListens)
            }
        }
    }

    fn wait(&self, watch: &RunState, progress: Progress) {
        if self.ward.custody.has_buffered_report() || progress == Progress::ThereIsMore {
            return;
        }
        let behind = progress == Progress::ReaderIsBehind;
        let alarm = self.next_alarm(watch).map(|(at, _)| at.saturating_duration_since(Instant::now()));
        let longest = if behind { READER_IS_BEHIND } else { LONGEST_WAIT };
        let session = self.account.session_growth();
        let growths = || [Some(&self.growth), session].into_iter().flatten();
        let blind = growths().any(|growth| growth.fd().is_none());
        let longest = if blind { longest.min(NOBODY_TELLS) } else { longest };
        let longest = self.account.longest_wait_for_fact().map_or(longest, |wait| longest.min(wait));
        let time = alarm.unwrap_or(longest).min(longest);
        let mut wanted = vec![Wanted::readable(self.ward.custody.socket())];
        if !watch.nobody_can_ask {
            wanted.push(Wanted::readable(&self.asked_to_stop));
        }
        // When the reader is behind, news of more output would only keep us awake.
        if !behind {
            wanted.extend(growths().filter_map(Growth::fd).map(Wanted::Readable));
        }
        let _looked_at_anyway = poll::wait(&wanted, Some(time));
        growths().for_each(Growth::clear);
    }
}
