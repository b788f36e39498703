//! What all agents do, kept ready for those who ask.
//!
//! A look takes up to 80 ms while the CLI draws, so the watcher looks by itself whenever a pane has moved, and answers from
//! what it saw last as long as that holds: nothing has moved since, and record and journal are as they were. Looking also
//! notes when turns begin and end.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use alhena_sys::Process;

use crate::control::{Activity, Control};
use crate::error::TerminalError;
use crate::notify;
use crate::screen::{Reading, Status};
use crate::store::Record;
use crate::terminal::{Terminal, status_name};
use crate::terminals::Terminals;

/// A screen that has stood still for so long when it was looked at need not be looked at again.
const STOOD: Duration = Duration::from_millis(60);
/// What was seen of an agent at work holds for so long.
const WORK: Duration = Duration::from_millis(300);
/// What was seen of one with an open turn holds for so long: only looking tells that it has ended.
const OPEN: Duration = Duration::from_millis(100);

/// What was seen of every terminal.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<HashMap<String, Kept>>);

#[derive(Clone, Debug)]
struct Kept {
    reading: Reading,
    pane: String,
    count: u64,
    windows: u64,
    since: Instant,
    at: Instant,
    files: Files,
    cli: Option<Process>,
}

/// When the record and the journal were written, and how long they are.
type Files = [Option<(SystemTime, u64)>; 2];

impl Board {
    /// What a terminal's agent does.
    pub(super) fn reading(&self, terminal: &Terminal, control: &Control) -> Result<Reading, TerminalError> {
        let kept = self.kept().get(terminal.id()).cloned();
        match kept.filter(|kept| kept.holds(control, &files(terminal), WORK, OPEN)) {
            Some(kept) => Ok(kept.reading),
            None => self.read_anew(terminal, control),
        }
    }

    fn read_anew(&self, terminal: &Terminal, control: &Control) -> Result<Reading, TerminalError> {
        let files = files(terminal);
        let record = terminal.record()?;
        let pane = terminal.pane().unwrap_or_default();
        let Activity { count, windows, since, .. } = control.activity(&pane);
        let reading = terminal.status()?;
        let at = Instant::now();
        let kept = Kept {
            reading: reading.clone(),
            pane: pane.clone(),
            count,
            windows,
            since,
            at,
            files,
            cli: record.cli,
        };
        let before = self.kept().insert(terminal.id().to_owned(), kept).map(|kept| kept.reading);
        tell(&record, before.as_ref(), &reading, &pane, control);
        Ok(reading)
    }

    /// Looks at everything that has moved, and forgets what has gone.
    pub(super) fn refresh(&self, terminals: &Terminals, control: &Control) {
        let Ok(all) = terminals.list() else { return };
        self.kept().retain(|id, _| all.iter().any(|terminal| terminal.id() == id));
        std::thread::scope(|scope| {
            for terminal in &all {
                let kept = self.kept().get(terminal.id()).cloned();
                // Sooner than anybody would find it old.
                if !kept.is_some_and(|kept| kept.holds(control, &files(terminal), WORK / 2, OPEN / 2)) {
                    scope.spawn(move || {
                        let _gone_meanwhile = self.read_anew(terminal, control);
                    });
                }
            }
        });
    }

    /// Whether somebody is at work, as far as was seen, or has not stood still yet.
    pub(super) fn is_busy(&self) -> bool {
        self.kept().values().any(|kept| kept.is_unfinished() || kept.at < kept.since + STOOD)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<String, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Whether it can change although nothing moves: nothing on the screen says that a turn, or a start, is over.
    fn is_unfinished(&self) -> bool {
        matches!(self.reading.status, Status::Processing | Status::Starting)
    }

    fn holds(&self, control: &Control, files: &Files, work: Duration, open: Duration) -> bool {
        if self.files != *files || self.cli.is_some_and(|cli| !cli.alive()) {
            return false;
        }
        if self.reading.status == Status::Exited {
            return true;
        }
        let now = control.activity(&self.pane);
        if now.windows != self.windows {
            return false;
        }
        if self.reading.status == Status::Starting && now.count != self.count {
            // What was drawn since may be a question.
            return false;
        }
        if self.is_unfinished() {
            let limit = if now.says_working() { work } else { open };
            return self.at.elapsed() < limit;
        }
        now.count == self.count && self.at >= self.since + STOOD
    }
}

/// Tells others of a change: tmux's bar, and whoever wanted to know of questions.
fn tell(record: &Record, before: Option<&Reading>, now: &Reading, pane: &str, control: &Control) {
    if pane.is_empty() {
        return;
    }
    if before.is_none_or(|before| before.status != now.status) {
        let set = ["set-option", "-p", "-t", pane, "@alhena-state", status_name(now.status)];
        let _closed_meanwhile = control.run([&set]);
    }
    if notify::is_new_question(before, now) {
        notify::tell(record, now, pane, control);
    }
}

fn files(terminal: &Terminal) -> Files {
    let stamp = |path: &Path| {
        let data = std::fs::metadata(path).ok()?;
        Some((data.modified().ok()?, data.len()))
    };
    let record = terminal.record_path();
    [stamp(&record), stamp(&record.with_extension("turns"))]
}
