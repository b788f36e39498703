//! What all agents do, kept ready for those who ask.
//!
//! A look takes up to 80 ms while the CLI draws, so the watcher looks by itself whenever a pane has moved, and answers from
//! what it saw last as long as that holds: nothing has moved since, and record and journal are as they were. Looking also
//! notes when turns begin and end. Whoever waits is woken when somebody was seen to do something else: the end of a turn is
//! seen a moment after the last output, so nothing else would wake them.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use alhena_sys::Process;
use parking_lot::{Condvar, Mutex};

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

#[derive(Debug, Default)]
pub(super) struct Board {
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Known {
    kept: HashMap<String, Kept>,
    /// Whom the watcher is looking at by itself.
    looked_at: HashSet<String>,
    /// How often somebody was seen to do something else.
    news: u64,
}

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
    pub(super) fn reading(&self, terminal: &Terminal, control: &Control) -> Result<Reading, TerminalError> {
        match self.kept(terminal).filter(|kept| kept.holds(control, &files(terminal), WORK, OPEN)) {
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
            files: files_after(files, terminal, &reading),
            cli: record.cli,
        };
        let mut known = self.known.lock();
        let before = known.kept.insert(terminal.id().to_owned(), kept).map(|kept| kept.reading);
        if before.as_ref().is_none_or(|before| before.status != reading.status || before.turn != reading.turn)
        {
            self.announce(&mut known);
        }
        drop(known);
        tell(&record, before.as_ref(), &reading, &pane, control);
        Ok(reading)
    }

    /// Begins to look at everything that has moved, and forgets what has gone. Nobody waits for somebody else's look, which
    /// takes long where a screen does not stand still.
    pub(super) fn refresh(self: &Arc<Self>, terminals: &Terminals, control: &Arc<Control>) {
        let Ok(all) = terminals.list() else { return };
        self.forget_all_but(&all);
        for terminal in all {
            // Sooner than anybody would find it old.
            let holds = |kept: Kept| kept.holds(control, &files(&terminal), WORK / 2, OPEN / 2);
            if self.kept(&terminal).is_some_and(holds) {
                continue;
            }
            let Some(look) = Look::begin(self, terminal.id()) else { continue };
            let control = Arc::clone(control);
            let thread = std::thread::Builder::new().name("alhena-look".to_owned());
            let _tried_again_soon = thread.spawn(move || {
                let _gone_meanwhile = look.board.read_anew(&terminal, &control);
            });
        }
    }

    fn forget_all_but(&self, there: &[Terminal]) {
        let mut known = self.known.lock();
        let before = known.kept.len();
        known.kept.retain(|id, _| there.iter().any(|terminal| terminal.id() == id));
        if known.kept.len() != before {
            self.announce(&mut known);
        }
    }

    fn announce(&self, known: &mut Known) {
        known.news += 1;
        self.changed.notify_all();
    }

    /// How often somebody was seen to do something else, once that is more than somebody knows of, or at the deadline.
    pub(super) fn wait_for_news(&self, seen: u64, deadline: Instant) -> u64 {
        let mut known = self.known.lock();
        self.changed.wait_while_until(&mut known, |known| known.news == seen, deadline);
        known.news
    }

    /// Whether somebody is at work, as far as was seen, or has not stood still yet.
    pub(super) fn is_busy(&self) -> bool {
        let known = self.known.lock();
        let moves = |kept: &Kept| kept.is_unfinished() || kept.at < kept.since + STOOD;
        !known.looked_at.is_empty() || known.kept.values().any(moves)
    }

    fn kept(&self, terminal: &Terminal) -> Option<Kept> {
        self.known.lock().kept.get(terminal.id()).cloned()
    }
}

/// A look of the watcher by itself, of which there is one at a time for each terminal.
struct Look {
    board: Arc<Board>,
    id: String,
}

impl Look {
    fn begin(board: &Arc<Board>, id: &str) -> Option<Self> {
        let first = board.known.lock().looked_at.insert(id.to_owned());
        first.then(|| Self { board: Arc::clone(board), id: id.to_owned() })
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.board.known.lock().looked_at.remove(&self.id);
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

/// The files that a reading was made of. A look that ends a turn notes that in the journal itself, and need not be repeated
/// for it, unless somebody else wrote there too.
fn files_after(before: Files, terminal: &Terminal, reading: &Reading) -> Files {
    let [record, _] = before;
    let [_, journal] = files(terminal);
    let last = terminal.journal().last().map(|turn| turn.note());
    match reading.turn.as_ref().is_some_and(|turn| turn.ended.is_some()) && last == reading.turn {
        true => [record, journal],
        false => before,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_for_news_is_woken_by_them() {
        let board = Board::default();
        let known = board.wait_for_news(0, Instant::now());
        assert_eq!(known, 0);
        let long = Instant::now() + Duration::from_secs(60);
        let told = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| board.wait_for_news(known, long));
            board.announce(&mut board.known.lock());
            waiter.join().unwrap()
        });
        assert_eq!(told, 1);
        // What somebody missed is told at once.
        assert_eq!(board.wait_for_news(known, long), 1);
        assert!(Instant::now() < long);
    }

    #[test]
    fn the_watcher_looks_at_each_terminal_once_at_a_time() {
        let board = Arc::new(Board::default());
        let look = Look::begin(&board, "one").unwrap();
        assert!(board.is_busy() && Look::begin(&board, "one").is_none());
        assert!(Look::begin(&board, "another").is_some());
        drop(look);
        assert!(!board.is_busy() && Look::begin(&board, "one").is_some());
    }
}
