//! Batches of this machine, for whoever asks: each keeps a small private file with how far it is, as long as it runs and for a while
//! after. What died without a word is told apart from what runs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_model::Timestamp;
use alhena_sys::{Process, files};
use serde::{Deserialize, Serialize};

use crate::progress::{Board, Progress};
use crate::summary::Summary;

/// A file is written no more often.
const EVERY: Duration = Duration::from_secs(1);
/// What is over is forgotten after so long, and when there are more than so many.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const MOST: usize = 200;
/// The longest id: that of [`Registry::enter`] has under 40 characters.
const LONGEST_ID: usize = 64;
/// Nobody writes a larger one.
const LARGEST: u64 = 4 << 20;

/// What is known of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// By which it is asked for.
    pub id: String,
    /// Where its jobs come from; `-` is standard input.
    pub jobs: String,
    /// Where its results go.
    pub results: PathBuf,
    /// Who runs it.
    pub process: Process,
    /// When it began.
    pub started: Timestamp,
    /// When this was written.
    pub updated: Timestamp,
    /// How far it is.
    pub progress: Progress,
    /// What came of it, when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
}

/// Whether a batch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It does.
    Running,
    /// It is over.
    Ended,
    /// It was killed. The same command goes on with it.
    Died,
}

impl Record {
    /// Whether it runs.
    pub fn state(&self) -> State {
        match (&self.summary, self.process.alive()) {
            (Some(_), _) => State::Ended,
            (None, true) => State::Running,
            (None, false) => State::Died,
        }
    }
}

/// All batches that are known, the last one first.
pub fn list() -> io::Result<Vec<Record>> {
    Registry::of(&Environment::of_process()).map_or(Ok(Vec::new()), |registry| registry.list())
}

/// The batch of this id.
pub fn get(id: &str) -> io::Result<Option<Record>> {
    Registry::of(&Environment::of_process()).map_or(Ok(None), |registry| registry.get(id))
}

/// The directory with all of them.
#[derive(Clone, Debug)]
pub struct Registry {
    dir: PathBuf,
}

impl Registry {
    /// The one of an environment; none where Alhena has no directories.
    pub fn of(environment: &Environment) -> Option<Self> {
        Some(Self { dir: Dirs::of(environment)?.state.join("batches") })
    }

    /// All batches that are known, the last one first. A file that says something else is passed over.
    pub fn list(&self) -> io::Result<Vec<Record>> {
        let names = files::names_in(&self.dir)?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(".json"));
        let mut records: Vec<Record> = ids.filter_map(|id| self.get(id).ok().flatten()).collect();
        records.sort_by(|one, other| (other.started, &other.id).cmp(&(one.started, &one.id)));
        Ok(records)
    }

    /// The batch of this id.
    pub fn get(&self, id: &str) -> io::Result<Option<Record>> {
        let is_plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !(1..=LONGEST_ID).contains(&id.len()) || !is_plain {
            return Ok(None);
        }
        let path = self.file(id);
        if path.metadata().is_ok_and(|data| data.len() > LARGEST) {
            return Err(io::Error::other("it is too large to be a batch"));
        }
        let Some(bytes) = files::read_if_there(&path)? else { return Ok(None) };
        let record: Record = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
        Ok(Some(record).filter(|record| record.id == id))
    }

    fn file(&self, id: &str) -> PathBuf {
        self.dir.join(format!("{id}.json"))
    }

    /// Enters a batch that begins, and forgets old ones.
    pub fn enter(&self, jobs: &Path, results: &Path, board: &Board) -> io::Result<Entered> {
        files::create_private_dir(&self.dir)?;
        let started = Timestamp::now();
        self.forget(started);
        let process = Process::own().ok_or_else(|| io::Error::other("this process is not known"))?;
        let digits: String = started.to_string().chars().filter(char::is_ascii_digit).collect();
        let jobs = match jobs.as_os_str() == "-" {
            true => jobs.to_owned(),
            false => std::path::absolute(jobs)?,
        };
        let record = Record {
            id: format!("{digits}-{}", process.pid),
            jobs: jobs.to_string_lossy().into_owned(),
            results: results.to_owned(),
            process,
            started,
            updated: started,
            progress: board.progress(),
            summary: None,
        };
        let entered = Entered { file: self.file(&record.id), record, written: Instant::now() };
        entered.write()?;
        Ok(entered)
    }

    /// Takes away what is old, or too much. What cannot be taken away stays.
    fn forget(&self, now: Timestamp) {
        let oldest = now.as_millis().saturating_sub(KEPT.as_millis() as i64);
        let over =
            self.list().unwrap_or_default().into_iter().filter(|record| record.state() != State::Running);
        for (count, record) in over.enumerate() {
            if count + 1 >= MOST || record.started.as_millis() < oldest {
                let _stays = fs::remove_file(self.file(&record.id));
            }
        }
    }
}

/// A batch that is entered.
#[derive(Debug)]
pub struct Entered {
    file: PathBuf,
    record: Record,
    written: Instant,
}

impl Entered {
    /// By which it is asked for.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Notes how far it is, not too often. A file that cannot be written harms nobody.
    pub fn note(&mut self, board: &Board) {
        if self.written.elapsed() >= EVERY {
            self.written = Instant::now();
            self.record.progress = board.progress();
            self.settle();
        }
    }

    /// It is over.
    pub fn end(mut self, progress: &Progress, summary: &Summary) {
        self.record.progress = progress.clone();
        self.record.summary = Some(summary.clone());
        self.settle();
    }

    fn settle(&mut self) {
        self.record.updated = Timestamp::now();
        if let Err(error) = self.write() {
            tracing::debug!(%error, "the batch cannot be noted");
        }
    }

    fn write(&self) -> io::Result<()> {
        files::replace_own(&self.file, &serde_json::to_vec(&self.record)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Spent;

    fn registry(dir: &Path) -> Registry {
        Registry::of(&Environment::from([("ALHENA_HOME", dir)])).unwrap()
    }

    #[test]
    fn a_batch_is_known_while_it_runs_and_when_it_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry(dir.path());
        assert_eq!(registry.list().unwrap(), []);
        let board = Board::new();
        let mut entered = registry.enter(Path::new("jobs"), Path::new("/results"), &board).unwrap();
        let id = entered.id().to_owned();
        let known = registry.get(&id).unwrap().unwrap();
        assert_eq!((known.state(), known.progress.known), (State::Running, 0));
        assert_eq!(registry.list().unwrap(), [known]);
        let mut board = Board::new();
        board.known = 7;
        entered.note(&board);
        assert_eq!(registry.get(&id).unwrap().unwrap().progress.known, 0, "not so soon");
        entered.written = Instant::now() - EVERY;
        entered.note(&board);
        assert_eq!(registry.get(&id).unwrap().unwrap().progress.known, 7);
        let spent = Spent { tokens: 5, ..Spent::default() };
        let summary = Summary { jobs: 7, spent, stopped: Some("why".into()), ..Summary::default() };
        entered.end(&board.progress(), &summary);
        let known = registry.get(&id).unwrap().unwrap();
        assert_eq!((known.state(), known.summary), (State::Ended, Some(summary)));
        let mode = files::mode(&fs::metadata(registry.file(&id)).unwrap());
        assert_eq!(mode, 0o600);
    }

    #[test]
    fn the_dead_are_told_apart_the_old_forgotten_and_the_broken_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let registry = registry(dir.path());
        let board = Board::new();
        let enter = || registry.enter(Path::new("jobs"), Path::new("/results"), &board).unwrap();
        let entered = enter();
        let put = |id: &str, change: &dyn Fn(&mut Record)| {
            let mut record = Record { id: id.to_owned(), ..entered.record.clone() };
            change(&mut record);
            fs::write(registry.file(id), serde_json::to_vec(&record).unwrap()).unwrap();
        };
        put("dead", &|record| record.process.started += 1);
        assert_eq!(registry.get("dead").unwrap().unwrap().state(), State::Died);
        let month = Timestamp::from_millis(Timestamp::now().as_millis() - KEPT.as_millis() as i64 - 1000);
        put("old", &|record| (record.process.started, record.started) = (0, month));
        put("runs", &|record| record.started = month);
        for number in 0..MOST {
            put(&format!("many-{number}"), &|record| record.process.started = 0);
        }
        fs::write(registry.file("broken"), "{\"id\": 5}").unwrap();
        fs::write(registry.file("other"), serde_json::to_vec(&entered.record).unwrap()).unwrap();
        assert!(registry.get("../batches/dead").unwrap().is_none() && registry.get("").unwrap().is_none());
        drop(enter());
        let left = registry.list().unwrap();
        let over = left.iter().filter(|record| record.state() != State::Running).count();
        assert_eq!(over, MOST - 1);
        assert!(
            left.iter().any(|record| record.id == "runs") && left.iter().all(|record| record.id != "old")
        );
        assert!(left.iter().all(|record| record.id != "other"));
    }
}
