//! Ending a terminal, so that nothing of it is left (D-42, D-43).
//!
//! 0.61.0 wants ^D twice, within a second, and takes it only on an empty prompt; its launcher ignores SIGTERM, and what its
//! tools started lives on. So: the keys, then signals to the process in the pane, then to everything that carries the mark.

use std::time::{Duration, Instant};

use alhena_agent::dirs::Dirs;
use alhena_agent::run_dir::{self, Holder};
use alhena_agent::supervise::mark::marked;
use alhena_sys::processes::{self, Process, Signal};
use serde::Serialize;

use crate::control::Control;
use crate::error::TerminalError;
use crate::screen::Status;
use crate::store::{Cause, Phase, Record, TerminalEnd};
use crate::terminal::{History, TICK, Terminal};
use crate::tmux::SESSION;
use crate::window;

/// How long the process in the pane, or its guard, may take to sweep and to publish.
const SWEEP: Duration = Duration::from_secs(12);
/// How long the end is waited for where nobody is left to tell it.
const NOBODY: Duration = Duration::from_secs(3);

/// How a terminal was ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exit {
    /// Whether the CLI left by itself when it was asked to.
    pub gracefully: bool,
    /// How the CLI ended.
    #[serde(flatten)]
    pub ended: TerminalEnd,
}

impl Terminal {
    /// Asks the CLI to leave, ends what does not, and puts the terminal away.
    pub fn exit(&self, timeout: Duration) -> Result<Exit, TerminalError> {
        let deadline = Instant::now() + timeout;
        let lock = self.terminals.inner.store.lock_typing(self.id(), timeout);
        // The pane may close under our hands: the record tells how it went.
        let asked = lock.is_ok() && self.ask_to_leave(deadline).is_ok();
        let gracefully = asked && self.has_left()?;
        drop(lock);
        Ok(Exit { gracefully, ended: self.keep_ending()? })
    }

    /// Ends the CLI and everything of it at once, and puts the terminal away.
    pub fn kill(&self) -> Result<Exit, TerminalError> {
        Ok(Exit { gracefully: false, ended: self.keep_ending()? })
    }

    /// Waits until an agent that goes has gone: its session is in the store then. Not for ever, and not long where nobody is
    /// left to put anything there.
    pub fn wait_until_gone(&self) -> Result<(), TerminalError> {
        let patience = self.patience(&self.record()?);
        self.wait_for_end(Instant::now() + patience).map(|_| ())
    }

    /// Waits for the session of one that has just exited, if somebody is left to publish it: for a moment it is neither where
    /// the CLI wrote it nor in the store. Not for ever, and for nothing else.
    pub fn wait_for_session(&self) {
        if self.status_now().is_ok_and(|reading| reading.status == Status::Exited) {
            let _not_for_ever = self.wait_for_publisher(Instant::now() + SWEEP);
        }
    }

    fn wait_for_publisher(&self, deadline: Instant) -> Result<(), TerminalError> {
        let goes = |record: &Record| record.phase != Phase::Ended && self.is_held(record);
        // It may only have looked so: a CLI that starts again is gone for a moment, too.
        while goes(&self.record()?)
            && self.status_now()?.status == Status::Exited
            && Instant::now() < deadline
        {
            self.wait_for_end(deadline.min(Instant::now() + TICK))?;
        }
        Ok(())
    }

    fn patience(&self, record: &Record) -> Duration {
        if self.is_held(record) { SWEEP } else { NOBODY }
    }

    /// Whether somebody is left who sweeps and publishes: the process in the pane, or its guard, which holds the run's lock.
    fn is_held(&self, record: &Record) -> bool {
        let runs = || Dirs::of(&self.terminals.inner.environment).map(|dirs| dirs.runs());
        let guarded =
            |mark: &String| runs().is_some_and(|runs| run_dir::holder(&runs, mark) == Holder::Somebody);
        record.agent.is_some_and(Process::alive) || record.mark.as_ref().is_some_and(guarded)
    }

    fn has_left(&self) -> Result<bool, TerminalError> {
        let record = self.record()?;
        Ok(record.phase == Phase::Ended && record.ended.is_some_and(|ended| ended.signal.is_none()))
    }

    fn ask_to_leave(&self, deadline: Instant) -> Result<(), TerminalError> {
        while Instant::now() < deadline {
            let record = self.record()?;
            if record.phase != Phase::Running {
                return Ok(());
            }
            if record.cli.is_none_or(|cli| !cli.alive()) {
                // What is typed now would be for the shell.
                self.wait_for_end(deadline)?;
                return Ok(());
            }
            if matches!(self.status_now()?.status, Status::Processing | Status::Waiting) {
                let left = deadline.saturating_duration_since(Instant::now());
                let _still_busy = self.interrupt_unlocked(left.min(Duration::from_secs(4)));
            }
            let Ok(live) = self.live() else { return Ok(()) };
            let draft = live.capture_pane(History::None)?.capture().draft();
            if draft.is_some_and(|draft| !draft.text.is_empty()) {
                live.press("C-c")?;
                std::thread::sleep(Duration::from_millis(100));
            }
            live.press("C-d")?;
            std::thread::sleep(Duration::from_millis(100));
            live.press("C-d")?;
            let patience = deadline.min(Instant::now() + Duration::from_secs(3));
            while record.cli.is_some_and(|cli| cli.alive()) && Instant::now() < patience {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        Ok(())
    }

    fn wait_for_end(&self, deadline: Instant) -> Result<bool, TerminalError> {
        loop {
            match self.terminals.inner.store.get(self.id())? {
                Some(record) if record.phase != Phase::Ended => {}
                _ => return Ok(true),
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends what runs, closes the window, and forgets the terminal.
    fn keep_ending(&self) -> Result<TerminalEnd, TerminalError> {
        let record = self.record()?;
        let ours = record.phase != Phase::Ended;
        if ours {
            self.end_processes(&record)?;
        }
        let record = self.record().unwrap_or(record);
        self.close_window();
        if let Some(mark) = &record.mark {
            end_marked(mark);
        }
        self.terminals.inner.store.remove(self.id());
        for worker in self.terminals.inner.store.all()? {
            if worker.supervisor.as_deref() == Some(self.id()) {
                let _already_gone = self.terminals.terminal(&worker).kill();
            }
        }
        for warning in self.terminals.inner.borrowed.give_back(self.id()) {
            tracing::warn!("{warning}");
        }
        let ended = record.ended.unwrap_or_default();
        Ok(TerminalEnd { cause: if ours { Some(Cause::Told) } else { ended.cause }, ..ended })
    }

    fn end_processes(&self, record: &Record) -> Result<(), TerminalError> {
        // The CLI first, so that the process in the pane can do what it does at every end.
        match (record.cli, record.agent) {
            (Some(cli), _) if cli.alive() => cli.signal(Signal::KILL),
            (_, Some(agent)) => agent.signal(Signal::TERM),
            (_, None) => return Ok(()),
        }
        if let Some(agent) = record.agent {
            agent.signal(Signal::TERM);
            if !self.wait_for_end(Instant::now() + self.patience(record))? && agent.alive() {
                agent.signal(Signal::KILL);
                self.wait_for_end(Instant::now() + self.patience(record))?;
            }
        }
        Ok(())
    }

    /// Asks tmux itself and not the control connection: that may have ended with what it watched, and a window that is not
    /// found would stay, with its shell.
    fn close_window(&self) {
        let tmux = &self.terminals.inner.tmux;
        let session = format!("={SESSION}");
        let format = "#{@alhena-id} #{pane_id}";
        let list = ["list-panes", "-s", "-t", session.as_str(), "-F", format];
        let panes = tmux.run(list).unwrap_or_default();
        let ours = |line: &'_ str| line.strip_prefix(self.id())?.strip_prefix(' ').map(str::to_owned);
        for pane in panes.lines().filter_map(ours) {
            let _already_gone = tmux.run(["kill-pane", "-t", pane.as_str()]);
        }
        // Those that are left share the room.
        window::tidy(&Control::plain(tmux));
    }
}

fn end_marked(mark: &str) {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let left = marked(mark);
        if left.is_empty() || Instant::now() >= deadline {
            return;
        }
        processes::signal_all(&left, Signal::KILL);
        std::thread::sleep(Duration::from_millis(5));
    }
}
