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

/// How long the stream waits for the file.
const PATIENCE: Duration = Duration::from_millis(400);
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
    given_up: bool,
}

/// One file; after a resume the CLI leaves a stub beside the real one, so there may be two.
struct Log {
    path: PathBuf,
    follower: Follower,
    framer: Framer,
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
            given_up: false,
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

    /// What has been written since the last time; results of tools are kept for when they are asked for.
    pub(crate) fn news(&mut self) -> Vec<Fact> {
        self.read();
        std::mem::take(&mut self.fresh)
    }

    /// What is known of a call whose result the stream has just given.
    pub(crate) fn tool(&mut self, id: &str) -> Option<ToolFact> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.read();
            if let Some(fact) = self.tools.remove(id) {
                return Some(fact);
            }
            if self.given_up || Instant::now() > deadline {
                // A file that is not there now will not be there for the next call either.
                self.given_up |= !self.found();
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn read(&mut self) {
        self.look_for_files();
        let mut facts = Vec::new();
        for log in &mut self.files {
            while let Ok(bytes) = log.follower.next()
                && !bytes.is_empty()
            {
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
                && let Ok(follower) = Follower::read_only(&path)
            {
                let _not_told = self.growth.watch(&path);
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
