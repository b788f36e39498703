//! The directories of a run: one in Alhena's state, and one for temporary files.
//!
//! Both go when the run is over. A run that was killed with everything around it leaves them, and a later one removes them:
//! only when nobody holds the lock in the first, and of the second only what carries the run's mark and is the user's own.
//! Nothing is ever judged by its name.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_sys::{files, locks};
use serde::{Deserialize, Serialize};

use crate::answer::{self, Desk};
use crate::budget::Meter;
use crate::hooks::{Audit, Server};
use crate::request::Transport;
use crate::supervise::sweep::{Life, sweep};

/// Held in a run's directory for as long as the run has an Alhena, a keeper or a guard.
const LOCK: &str = "lock";
/// In the directory for temporary files: whose it is.
const MARK: &str = ".alhena-run";

/// What the file that is locked says.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    temporary: OsString,
}

/// The server of the tool that takes answers, and the tool's whole name.
type AnswerTool = (answer::Server, String);

/// The directories of one run, held. Gone when dropped.
#[derive(Debug)]
pub struct RunDir {
    dir: tempfile::TempDir,
    lock: File,
    mark: String,
    temporary: PathBuf,
    /// Where the CLI asks for decisions, while it runs.
    hooks: Option<Server>,
    /// Where its model's answers arrive, and how they get there; in plan mode by text alone.
    answers: Option<(Arc<Desk>, Option<AnswerTool>)>,
}

impl RunDir {
    /// Makes both, the first in `runs`, and clears away what killed runs have left there.
    pub(crate) fn create(runs: &Path) -> io::Result<Self> {
        let named = |path: &Path| {
            let path = path.to_owned();
            move |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        };
        clear_away(runs);
        let (dir, lock) = Self::locked(runs).map_err(named(runs))?;
        let mark = dir.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // In the system's own place, because a long path is too long for sockets.
        let temporary = std::env::temp_dir().join(format!("alhena-{mark}"));
        let held = Self { dir, lock, mark, temporary, hooks: None, answers: None };
        let record = Record { temporary: held.temporary.clone().into_os_string() };
        (&held.lock).write_all(&serde_json::to_vec(&record)?).map_err(named(runs))?;
        files::create_private_dir(&held.temporary)
            .and_then(|dir| fs::write(dir.join(MARK), &held.mark))
            .map_err(named(&held.temporary))?;
        Ok(held)
    }

    /// A new directory with its lock. One who clears away may be faster, and take the empty directory for a leftover.
    fn locked(runs: &Path) -> io::Result<(tempfile::TempDir, File)> {
        let prefix = format!("{}-", std::process::id());
        files::create_private_dir(runs)?;
        for _ in 0..20 {
            let dir = tempfile::Builder::new().prefix(&prefix).tempdir_in(runs)?;
            let path = dir.path().join(LOCK);
            let made = File::options().write(true).create_new(true).open(&path);
            match made.and_then(|_| locks::take_existing(&path)) {
                Ok(Some(lock)) => return Ok((dir, lock)),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("new directories are taken away at once"))
    }

    /// The one in Alhena's state.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Where the CLI and its tools put temporary files: it leaves reports with whole conversations there (0.61.0).
    #[must_use]
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Listens for questions for as long as the run has its directories.
    pub(crate) fn hold(&mut self, hooks: Server) {
        self.hooks = Some(hooks);
    }

    /// Takes answers for as long as the run has its directories.
    pub(crate) fn hold_answers(&mut self, desk: Arc<Desk>, server: Option<AnswerTool>) {
        self.answers = Some((desk, server));
    }

    /// The tool that takes answers, by its whole name.
    pub(crate) fn answer_tool(&self) -> Option<&str> {
        self.answers.as_ref()?.1.as_ref().map(|(_, tool)| tool.as_str())
    }

    /// Where answers of a wanted shape arrive.
    pub(crate) fn desk(&self) -> Option<&Desk> {
        self.answers.as_ref().map(|(desk, _)| &**desk)
    }

    /// Why a hook ended the run, or the turn, if one did. It is told once.
    pub(crate) fn halted(&self) -> Option<String> {
        self.hooks.as_ref().and_then(Server::halted)
    }

    /// Another turn begins: each has its own answer, and is told what concerns it.
    pub(crate) fn begin_turn(&self) {
        self.hooks.iter().for_each(Server::begin_turn);
        if let Some(desk) = self.desk() {
            desk.begin_again();
        }
    }

    /// Who counts what the run spends, if it may not spend everything.
    pub(crate) fn meter(&self) -> Option<&Arc<Meter>> {
        self.hooks.as_ref().and_then(Server::meter)
    }

    /// What compares a run with the decisions of its hooks, if it has any.
    pub(crate) fn audit(&self, transport: Transport) -> Option<Audit> {
        self.hooks.as_ref().map(|hooks| Audit::of(hooks.decisions(), transport))
    }

    /// Whether it is decided that no model is asked any more: a hook has ended the run, or its budget is used up.
    pub(crate) fn is_spent(&self) -> bool {
        self.hooks.as_ref().is_some_and(Server::is_halted)
            || self.meter().is_some_and(|meter| meter.refused_for().is_some())
    }

    /// Stands in the environment of all processes of the run.
    #[must_use]
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// The lock that says that the run is alive, for processes that may outlive this one. The CLI must not inherit it.
    #[must_use]
    pub fn lock(&self) -> &File {
        &self.lock
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        drop(self.hooks.take());
        drop(self.answers.take());
        if remove_temporary(&self.temporary).is_err() {
            // Without the record nobody would know whose the rest is: the next run tries again.
            self.dir.disable_cleanup(true);
        }
    }
}

/// Removes a directory for temporary files, its mark last: what is left of it when this fails still says whose it is.
pub(crate) fn remove_temporary(dir: &Path) -> io::Result<()> {
    const TRIES: u32 = 5;
    let gone = |removed: io::Result<()>| match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    let remove = || -> io::Result<()> {
        // A tool may have put a link in its place: what that leads to is none of ours.
        if !fs::symlink_metadata(dir)?.is_dir() {
            return fs::remove_file(dir);
        }
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_name() == MARK {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => gone(fs::remove_dir_all(entry.path()))?,
                false => gone(fs::remove_file(entry.path()))?,
            }
        }
        let mark = fs::read(dir.join(MARK)).unwrap_or_default();
        gone(fs::remove_file(dir.join(MARK)))?;
        fs::remove_dir(dir).or_else(|error| {
            let again = File::options().write(true).create_new(true).open(dir.join(MARK));
            again.and_then(|mut file| file.write_all(&mark)).and(Err(error))
        })
    };
    // Somebody who is being killed may still have made a file meanwhile.
    let mut removed = gone(remove());
    for _ in 1..TRIES {
        if removed.is_ok() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        removed = gone(remove());
    }
    removed
}

/// Removes what runs have left that nobody holds, and ends what still runs of them.
pub(crate) fn clear_away(runs: &Path) {
    for entry in fs::read_dir(runs).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        match locks::take_existing(&path.join(LOCK)) {
            Ok(Some(lock)) => {
                let mark = name.to_string_lossy().into_owned();
                if sweep(&mark, Life::Thread).left == 0 {
                    clear_away_one(&path, &mark, lock);
                }
            }
            Ok(None) => {}
            // Killed when it had just been made; if it has anything in it, it stays.
            Err(_) => drop(fs::remove_dir(&path)),
        }
    }
}

fn clear_away_one(path: &Path, mark: &str, mut lock: File) {
    let mut text = Vec::new();
    let record = lock.read_to_end(&mut text).ok().and_then(|_| serde_json::from_slice::<Record>(&text).ok());
    let temporary = record.map(|record| PathBuf::from(record.temporary));
    let gone = match temporary {
        Some(dir) if is_of(&dir, mark) => remove_temporary(&dir).is_ok(),
        Some(dir) => {
            remove_unmarked(&dir, mark);
            true
        }
        None => true,
    };
    if gone {
        let _gone = fs::remove_dir_all(path);
    }
}

/// Removes a directory whose run was killed while it was being marked: there is nothing in it but the mark's beginning.
fn remove_unmarked(dir: &Path, mark: &str) {
    let file = dir.join(MARK);
    if own(dir, fs::Metadata::is_dir)
        && own(&file, fs::Metadata::is_file)
        && fs::read(&file).is_ok_and(|text| mark.as_bytes().starts_with(&text))
        && fs::read_dir(dir).is_ok_and(|entries| entries.count() == 1)
    {
        let _gone = fs::remove_file(&file);
    }
    if own(dir, fs::Metadata::is_dir) {
        // Only if nothing is in it.
        let _gone = fs::remove_dir(dir);
    }
}

/// Whether it is there, the user's own, and what it should be.
fn own(path: &Path, is: fn(&fs::Metadata) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| is(&found) && files::is_own(&found))
}

/// Whether a directory is the user's own and carries this mark.
fn is_of(dir: &Path, mark: &str) -> bool {
    let file = dir.join(MARK);
    own(dir, fs::Metadata::is_dir)
        && own(&file, fs::Metadata::is_file)
        && fs::read(&file).is_ok_and(|text| text == mark.as_bytes())
}

/// Whether a run is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Somebody holds it, perhaps in another container.
    Somebody,
    /// All that could hold it are gone.
    Nobody,
    /// It is not among these runs: of another home, or gone.
    Unknown,
}

/// Who holds the run with this mark.
#[must_use]
pub fn holder(runs: &Path, mark: &str) -> Holder {
    let is_mark = mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if mark.is_empty() || !is_mark {
        return Holder::Unknown;
    }
    match locks::take_existing(&runs.join(mark).join(LOCK)) {
        Ok(Some(_)) => Holder::Nobody,
        Ok(None) => Holder::Somebody,
        Err(_) => Holder::Unknown,
    }
}

#[cfg(test)]
mod tests;
