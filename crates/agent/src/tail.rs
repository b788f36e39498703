//! Follows the session file of a run while the CLI writes it.
//!
//! The stream of 0.61.0 has no thoughts, no diffs and no exit codes; the session file has them a moment later. The record
//! with a call's result is written at about the time when the stream gives the result, so the file is waited for, briefly.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_model::{Fact, SessionFacts, Timestamp, ToolFact};
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::session::Session;

use crate::follow::{Follower, Growth};

/// How long the stream waits for the record of one call.
const PATIENCE: Duration = Duration::from_millis(400);
/// How long it waits in vain, all in all, until a record comes: a stream with thousands of results that no file has must
/// not hold up the clocks.
const ALL_PATIENCE: Duration = Duration::from_secs(2);
/// So many buffers of one file are read before others get their turn.
const AT_ONCE: usize = 64;
/// A legacy file is read whole each time, so not beyond this.
const LARGEST_LEGACY: u64 = 64 << 20;

/// The session of a run, as far as it is written.
pub(crate) struct SessionTail {
    chats: PathBuf,
    short_id: Option<String>,
    files: Vec<Log>,
    legacy: HashMap<PathBuf, u64>,
    facts: SessionFacts,
    tools: HashMap<String, ToolFact>,
    fresh: Vec<Fact>,
    growth: Growth,
    patience: Duration,
}

/// One file; after a resume the CLI leaves a stub beside the real one, so there may be two.
struct Log {
    path: PathBuf,
    follower: Follower,
    framer: Framer,
}

/// Whether there is more to be read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    Yes,
    No,
}

impl SessionTail {
    pub(crate) fn new(chats: PathBuf, since: Timestamp, growth: Growth) -> Self {
        Self {
            chats,
            short_id: None,
            files: Vec::new(),
            legacy: HashMap::new(),
            facts: SessionFacts::since(since),
            tools: HashMap::new(),
            fresh: Vec::new(),
            growth,
            patience: ALL_PATIENCE,
        }
    }

    /// The session's id; file names carry its first eight characters.
    pub(crate) fn session(&mut self, id: &str) {
        if self.short_id.is_none() {
            let plain = id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
            self.short_id = Some(plain.take(8).collect());
        }
    }

    /// Tells when the file grows.
    pub(crate) fn growth(&self) -> &Growth {
        &self.growth
    }

    /// Whether a file was ever there.
    pub(crate) fn found(&self) -> bool {
        !self.files.is_empty() || !self.legacy.is_empty()
    }

    /// Reads to the end, once nobody writes any more; not for ever, as a file can be of any size.
    pub(crate) fn catch_up(&mut self) {
        let deadline = Instant::now() + ALL_PATIENCE;
        while self.read() == More::Yes && Instant::now() < deadline {}
    }

    /// What has been written since the last time; results of tools are kept for when they are asked for.
    pub(crate) fn news(&mut self) -> Vec<Fact> {
        let _later = self.read();
        std::mem::take(&mut self.fresh)
    }

    /// What is known of a call whose result the stream has just given.
    pub(crate) fn tool(&mut self, id: &str) -> Option<ToolFact> {
        let began = Instant::now();
        let patience = PATIENCE.min(self.patience);
        loop {
            let more = self.read();
            if let Some(fact) = self.tools.remove(id) {
                self.patience = ALL_PATIENCE;
                return Some(fact);
            }
            if began.elapsed() >= patience {
                self.patience = self.patience.saturating_sub(patience);
                // A file that is not there now will not be there for the next call either.
                if !self.found() {
                    self.patience = Duration::ZERO;
                }
                return None;
            }
            if more == More::No {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    fn read(&mut self) -> More {
        self.look_for_files();
        let mut facts = Vec::new();
        let mut more = More::No;
        for log in &mut self.files {
            for turn in 1..=AT_ONCE {
                let bytes = log.follower.next().unwrap_or_default();
                if bytes.is_empty() {
                    break;
                }
                if turn == AT_ONCE {
                    more = More::Yes;
                }
                log.framer.push(bytes, |frame| {
                    if let Frame::Line(line) = frame {
                        self.facts.line(line, &mut facts);
                    }
                });
            }
        }
        self.read_legacy(&mut facts);
        for fact in facts {
            match fact {
                Fact::Tool { id, fact } => {
                    self.tools.insert(id, fact);
                }
                other => self.fresh.push(other),
            }
        }
        more
    }

    fn look_for_files(&mut self) {
        let Some(short_id) = &self.short_id else { return };
        for entry in fs::read_dir(&self.chats).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let known = self.files.iter().any(|log| log.path == path);
            if known || !name.contains(short_id.as_str()) {
                continue;
            }
            if name.ends_with(".jsonl")
                && entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Ok(follower) = Follower::read_only(&path)
            {
                self.growth.watch(&path);
                self.files.push(Log { path, follower, framer: Framer::default() });
            } else if name.ends_with(".json") {
                self.legacy.entry(path).or_insert(0);
            }
        }
    }

    /// Up to 0.38 the file is one object, written anew each time.
    fn read_legacy(&mut self, facts: &mut Vec<Fact>) {
        for (path, seen) in &mut self.legacy {
            let Some(stamp) = stamp(path).filter(|stamp| stamp != seen) else { continue };
            let Ok(bytes) = fs::read(path) else { continue };
            let session = Session::read(&bytes);
            if !session.log.messages().is_empty() {
                *seen = stamp;
            }
            for stored in session.log.messages() {
                self.facts.message(&stored.decode(), facts);
            }
        }
    }
}

/// Changes whenever the file does.
fn stamp(path: &Path) -> Option<u64> {
    let data = fs::metadata(path).ok().filter(|data| data.len() <= LARGEST_LEGACY)?;
    let modified = data.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(modified.as_nanos() as u64 ^ data.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn results_that_the_file_never_has_do_not_hold_up_the_run_and_one_that_it_has_is_waited_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("session-2026-11-15T17-49-11111111.jsonl");
        let mut file = fs::File::create(&path).unwrap();
        let mut tail = SessionTail::new(dir.path().to_owned(), Timestamp::default(), Growth::new());
        tail.session("11111111-2222-4333-8444-555555555555");
        let began = Instant::now();
        for call in 0..500 {
            assert_eq!(tail.tool(&format!("never {call}")), None);
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert_eq!(tail.patience, Duration::ZERO);
        let record = r#"{"id":"m","type":"gemini","timestamp":"2026-11-15T17:49:10.000Z","toolCalls":[{"id":"there","name":"x","status":"success"}]}"#;
        writeln!(file, "{record}").unwrap();
        assert!(tail.tool("there").is_some());
        assert_eq!(tail.patience, ALL_PATIENCE);
    }
}
