//! A session while somebody works in it.
//!
//! From 0.39 on the CLI appends records, each with one write; up to 0.38 it writes the whole file again. It opens the file
//! anew every time, so nothing tells that a session is over, and a clean-up by another process can take the file away and
//! the next record bring it back without its beginning.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use alhena_sys::growth::Growth;
use alhena_wire::session::{Change, Log, Session};

use crate::file::Stamp;

/// Follows one session file and folds what comes.
pub struct Follow {
    path: PathBuf,
    stamp: Option<Stamp>,
    /// How much of the file has been folded: up to the end of its last whole line.
    folded: u64,
    log: Log<'static>,
    growth: Growth,
}

/// What has become of the file since the last look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing.
    Nothing,
    /// These records came, in order.
    Records(Vec<Change>),
    /// It was written again from the start: everything may be different.
    Rewritten,
    /// It is not there.
    Gone,
}

impl Follow {
    /// Starts with what is there; the file need not exist yet.
    pub fn start(path: &Path) -> io::Result<Self> {
        let growth = Growth::new();
        growth.watch(path.parent().unwrap_or(path));
        let mut follow = Self { path: path.to_path_buf(), stamp: None, folded: 0, log: Log::new(), growth };
        follow.look()?;
        Ok(follow)
    }

    /// The conversation so far.
    pub fn log(&self) -> &Log<'static> {
        &self.log
    }

    /// Waits until something may have happened, at most this long.
    pub fn wait(&self, longest: Duration) {
        self.growth.wait(longest);
    }

    /// Reads what came since.
    pub fn look(&mut self) -> io::Result<News> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(if self.stamp.take().is_some() { News::Gone } else { News::Nothing });
            }
            Err(error) => return Err(error),
        };
        let now = Stamp::of(&file.metadata()?);
        let before = self.stamp.replace(now);
        if before == Some(now) {
            return Ok(News::Nothing);
        }
        let continued = before.is_some_and(|before| before.inode == now.inode && now.size >= self.folded);
        if !continued || self.folded == 0 {
            return self.read_again(&mut file, before.is_some());
        }
        file.seek(SeekFrom::Start(self.folded))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(self.append(&bytes))
    }

    fn append(&mut self, bytes: &[u8]) -> News {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let lines = bytes.get(..whole).unwrap_or_default();
        self.folded += whole as u64;
        let changes: Vec<Change> = lines
            .split_inclusive(|byte| *byte == b'\n')
            .map(|line| self.log.push_copy(line.trim_ascii_end()))
            .filter(|change| *change != Change::Nothing)
            .collect();
        if changes.is_empty() { News::Nothing } else { News::Records(changes) }
    }

    /// Reads the whole file: at the start, after it was replaced, and always when it is one object.
    fn read_again(&mut self, file: &mut File, known: bool) -> io::Result<News> {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        if first.trim_ascii() == b"{" {
            let session = Session::read(&bytes);
            // Half of it was written: what is known stays until the rest has come.
            if session.complete || session.log.messages().len() >= self.log.messages().len() {
                self.log = session.log.to_lines();
            } else {
                self.stamp = None;
                return Ok(News::Nothing);
            }
            self.folded = 0;
            return Ok(News::Rewritten);
        }
        self.log = Log::new();
        self.folded = 0;
        let news = self.append(&bytes);
        Ok(if known { News::Rewritten } else { news })
    }
}

/// Whether a path is there at all; a follower waits for it.
pub fn exists(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::io::Write;

    const HEADER: &str = r#"{"sessionId":"s","projectHash":"p"}"#;

    fn message(id: &str, text: &str) -> Value {
        json!({"id": id, "type": "user", "content": text})
    }

    fn texts(log: &Log<'_>) -> Vec<String> {
        log.messages().iter().map(|stored| stored.decode().content.unwrap().text().into_owned()).collect()
    }

    fn append(path: &Path, text: &str) {
        File::options().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn records_are_folded_as_they_come_and_half_of_one_waits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let mut follow = Follow::start(&path).unwrap();
        assert_eq!(follow.look().unwrap(), News::Nothing);
        append(&path, &format!("{HEADER}\n{}\n", message("a", "one")));
        assert_eq!(follow.look().unwrap(), News::Records(vec![Change::Metadata, Change::Added(0)]));
        assert_eq!(follow.look().unwrap(), News::Nothing);
        let second = message("b", "two").to_string();
        let (start, end) = second.split_at(10);
        append(&path, start);
        assert_eq!(follow.look().unwrap(), News::Nothing);
        append(&path, &format!("{end}\n{}\n", message("a", "ONE")));
        assert_eq!(follow.look().unwrap(), News::Records(vec![Change::Added(1), Change::Replaced(0)]));
        assert_eq!(texts(follow.log()), ["ONE", "two"]);
    }

    // gemini-cli-observed.md, section 6, bug 2: a clean-up deletes the file and the next record brings it back.
    #[test]
    fn a_file_that_goes_away_and_comes_back_is_read_from_its_new_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        append(&path, &format!("{HEADER}\n{}\n", message("a", "one")));
        let mut follow = Follow::start(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(follow.look().unwrap(), News::Gone);
        assert_eq!(follow.look().unwrap(), News::Nothing);
        assert_eq!(texts(follow.log()), ["one"]);
        append(&path, &format!("{}\n", message("b", "two")));
        assert_eq!(follow.look().unwrap(), News::Records(vec![Change::Added(0)]));
        assert_eq!(texts(follow.log()), ["two"]);
        fs::write(&path, format!("{HEADER}\n")).unwrap();
        assert_eq!(follow.look().unwrap(), News::Rewritten);
        assert_eq!(texts(follow.log()), [] as [&str; 0]);
    }

    #[test]
    fn one_object_is_read_again_and_half_of_it_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.json");
        let whole = |messages: &[Value]| {
            serde_json::to_string_pretty(&json!({"sessionId": "s", "projectHash": "p", "messages": messages}))
                .unwrap()
        };
        fs::write(&path, whole(&[message("a", "one")])).unwrap();
        let mut follow = Follow::start(&path).unwrap();
        assert_eq!(texts(follow.log()), ["one"]);
        let next = whole(&[message("a", "one"), message("b", "two")]);
        fs::write(&path, next.get(..40).unwrap()).unwrap();
        assert_eq!(follow.look().unwrap(), News::Nothing);
        assert_eq!(texts(follow.log()), ["one"]);
        fs::write(&path, &next).unwrap();
        assert_eq!(follow.look().unwrap(), News::Rewritten);
        assert_eq!(texts(follow.log()), ["one", "two"]);
    }

    #[test]
    fn waiting_ends_when_something_happens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let mut follow = Follow::start(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                append(&path, &format!("{HEADER}\n{}\n", message("a", "one")));
            });
            while follow.log().messages().is_empty() {
                follow.wait(Duration::from_secs(5));
                follow.look().unwrap();
            }
        });
        assert_eq!(texts(follow.log()), ["one"]);
    }
}
