//! Follows the session file of a run while the CLI writes it.
//!
//! The stream of 0.61.0 has no thoughts, no diffs and no exit codes; the session file has them a moment later.

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_model::{Called, Fact, SessionFacts, Timestamp};
use alhena_session::names::short_id;
use alhena_sys::growth::Growth;
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::session::Session;

use crate::follow::Follower;

/// How long a file is read that nobody writes to any more: it can be of any size.
const LONGEST_CATCHING_UP: Duration = Duration::from_secs(2);
/// So many buffers of one file are read before others get their turn.
const AT_ONCE: usize = 64;
/// A legacy file is read whole each time, so not beyond this.
const LARGEST_LEGACY: u64 = 64 << 20;

/// The session of a run, as far as it is written.
pub(crate) struct SessionTail {
    chats: PathBuf,
    short_id: Option<String>,
    files: Vec<Log>,
    /// The files of sub-agents, where what they take is counted.
    sub_agents: Option<SubAgents>,
    legacy: HashMap<PathBuf, u64>,
    facts: SessionFacts,
    fresh: VecDeque<Fact>,
    growth: Growth,
    history: History,
    /// The name of the first file that still counts.
    first: String,
}

/// What the agent remembers, since somebody last began to look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum History {
    #[default]
    AsItWas,
    Grown,
    /// It was thrown away after it had grown: the CLI begins the file again, with another header (0.61.0).
    Cleared,
}

impl History {
    fn line(&mut self, line: &[u8]) {
        *self = match *self {
            _ if line.starts_with(br#"{"id":"#) => History::Grown,
            History::Grown if line.starts_with(br#"{"sessionId":"#) => History::Cleared,
            as_it_is => as_it_is,
        };
    }
}

/// One file; after a resume the CLI leaves a stub beside the real one, so there may be two.
struct Log {
    path: PathBuf,
    follower: Follower,
    framer: Framer,
}

impl Log {
    fn open(path: PathBuf) -> Option<Self> {
        let follower = Follower::read_only(&path).ok()?;
        Some(Self { path, follower, framer: Framer::default() })
    }

    /// Reads on; whether there is more to be read at once.
    fn read(&mut self, mut each: impl FnMut(&[u8])) -> bool {
        for _ in 0..AT_ONCE {
            let bytes = self.follower.next().unwrap_or_default();
            if bytes.is_empty() {
                return false;
            }
            self.framer.push(bytes, |frame| {
                if let Frame::Line(line) = frame {
                    each(line);
                }
            });
        }
        true
    }
}

/// The conversations of sub-agents: files in a directory that has the session's id for its name.
#[derive(Default)]
struct SubAgents {
    dir: Option<PathBuf>,
    files: Vec<Log>,
    facts: SessionFacts,
    /// Calls of tools that succeeded.
    calls: Vec<Called>,
}

impl SubAgents {
    fn new() -> Self {
        Self { facts: SessionFacts::default().with_calls(), ..Self::default() }
    }

    fn read(&mut self, facts: &mut Vec<Fact>) -> bool {
        for entry in self.dir.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten() {
            let path = entry.path();
            let known = self.files.iter().any(|log| log.path == path);
            if !known && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                self.files.extend(Log::open(path));
            }
        }
        let (mut more, mut said) = (false, Vec::new());
        for log in &mut self.files {
            more |= log.read(|line| self.facts.line(line, &mut said));
        }
        for fact in said {
            match fact {
                Fact::Usage { model, tokens, .. } => facts.push(Fact::UsageAside { model, tokens }),
                Fact::Tool { fact, call: Some(call), .. }
                    if !(fact.failed || fact.refused || fact.cancelled) =>
                {
                    self.calls.push(*call);
                }
                _ => {}
            }
        }
        more
    }
}

impl SessionTail {
    pub(crate) fn new(chats: PathBuf, since: Timestamp, growth: Growth) -> Self {
        Self {
            chats,
            short_id: None,
            files: Vec::new(),
            sub_agents: None,
            legacy: HashMap::new(),
            facts: SessionFacts::since(since),
            fresh: VecDeque::new(),
            growth,
            history: History::default(),
            first: String::new(),
        }
    }

    /// The same for a session over ACP, where only its file says which calls there were.
    pub(crate) fn with_calls(mut self) -> Self {
        self.facts = self.facts.with_calls();
        self.with_sub_agents()
    }

    /// The same with what sub-agents took.
    pub(crate) fn with_sub_agents(mut self) -> Self {
        self.sub_agents = Some(SubAgents::new());
        self
    }

    /// Returns the calls of tools in sub-agents that succeeded since the last time.
    pub(crate) fn calls_of_sub_agents(&mut self) -> Vec<Called> {
        self.sub_agents.as_mut().map(|agents| std::mem::take(&mut agents.calls)).unwrap_or_default()
    }

    /// The session's id; file names carry its first eight characters.
    pub(crate) fn session(&mut self, id: &str) {
        if self.short_id.is_none() {
            self.short_id = Some(short_id(id));
            if let Some(agents) = &mut self.sub_agents {
                agents.dir = Some(self.chats.join(id));
            }
        }
    }

    /// Another prompt: what was written before is none of its own.
    pub(crate) fn begin_again(&mut self) {
        let _before = self.news();
        if std::mem::take(&mut self.history) == History::Cleared {
            self.forget_past();
        }
    }

    /// A history that was cleared goes on in another file whenever another minute has begun (0.61.0): nobody writes to those before.
    /// Their names have the time in them.
    fn forget_past(&mut self) {
        let name = |log: &Log| log.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(last) = self.files.iter().filter_map(name).max() else { return };
        self.files.retain(|log| name(log).as_ref() == Some(&last));
        self.first = last;
    }

    /// Whether the agent has forgotten all that it was told since.
    pub(crate) fn is_cleared(&self) -> bool {
        self.history == History::Cleared
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
        let deadline = Instant::now() + LONGEST_CATCHING_UP;
        while self.read() && Instant::now() < deadline {}
    }

    /// What has been written since the last time.
    pub(crate) fn news(&mut self) -> VecDeque<Fact> {
        self.read_on();
        std::mem::take(&mut self.fresh)
    }

    /// Reads on.
    pub(crate) fn read_on(&mut self) {
        let _later = self.read();
    }

    /// The first of what was read, unless that is the end of this call.
    pub(crate) fn next_before(&mut self, call: &str) -> Option<Fact> {
        match self.fresh.front() {
            Some(Fact::Tool { id, .. }) if id == call => None,
            _ => self.fresh.pop_front(),
        }
    }

    /// Whether there is something left of what was read.
    pub(crate) fn has_news(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// The first of what was read.
    pub(crate) fn next_of_news(&mut self) -> Option<Fact> {
        self.fresh.pop_front()
    }

    /// Reads on; whether there is more to be read at once.
    fn read(&mut self) -> bool {
        self.look_for_files();
        let mut facts = Vec::new();
        let mut more = false;
        for log in &mut self.files {
            more |= log.read(|line| {
                self.history.line(line);
                self.facts.line(line, &mut facts);
            });
        }
        if let Some(agents) = &mut self.sub_agents {
            more |= agents.read(&mut facts);
        }
        self.read_legacy(&mut facts);
        self.fresh.extend(facts);
        more
    }

    fn look_for_files(&mut self) {
        let Some(short_id) = &self.short_id else { return };
        for entry in fs::read_dir(&self.chats).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let known = self.files.iter().any(|log| log.path == path);
            if known || !name.contains(short_id.as_str()) || name < self.first {
                continue;
            }
            if name.ends_with(".jsonl")
                && entry.file_type().is_ok_and(|kind| kind.is_file())
                && let Some(log) = Log::open(path.clone())
            {
                self.growth.watch(&path);
                self.files.push(log);
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
                self.facts.message(stored.decode(), facts);
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

    #[test]
    fn files_of_a_history_that_was_cleared_are_not_kept_open() {
        let dir = tempfile::tempdir().unwrap();
        let mut tail = SessionTail::new(dir.path().to_owned(), Timestamp::default(), Growth::new());
        tail.session("0c9a14e1-0000-4000-8000-000000000001");
        let (header, said) = (r#"{"sessionId":"a","kind":"main"}"#, r#"{"id":"1","type":"user"}"#);
        for minute in 10..40 {
            let path = dir.path().join(format!("session-2026-11-17T08-{minute}-0c9a14e1.jsonl"));
            fs::write(&path, format!("{header}\n")).unwrap();
            tail.begin_again();
            fs::write(&path, format!("{header}\n{said}\n{header}\n")).unwrap();
            tail.catch_up();
            assert!(tail.is_cleared(), "{minute}");
            assert!(tail.files.len() <= 2, "{minute}: {}", tail.files.len());
        }
    }

    #[test]
    fn a_history_is_cleared_when_a_header_comes_after_what_was_said() {
        let header = br#"{"sessionId":"a","projectHash":"b","kind":"main"}"#;
        let (said, update) = (br#"{"id":"1","type":"user"}"#, br#"{"$set":{"messages":[]}}"#);
        let mut history = History::default();
        let mut after = |lines: &[&[u8]]| {
            lines.iter().for_each(|line| history.line(line));
            history
        };
        // A new session has two headers.
        assert_eq!(after(&[header, update, header, update]), History::AsItWas);
        assert_eq!(after(&[said, update]), History::Grown);
        assert_eq!(after(&[header, update]), History::Cleared);
        assert_eq!(after(&[said]), History::Grown);
    }
}
