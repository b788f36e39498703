//! Places of their own for jobs to work in: a copy of a directory, or a checkout of a repository. What a job changed there is told
//! as a patch, and nothing of a place is left when its job is over.
//!
//! | Module | Its one job |
//! |---|---|
//! | `slot` | numbered directories, held by locks |
//! | `copy` | a directory as it is, once more |
//! | `clones` | repositories, kept for the next time |
//! | `ledger` | what was in a place before, and what became of it |
//! | `git` | the program git, with nothing of a repository running |

mod clones;
mod copy;
mod git;
mod ledger;
mod slot;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_model::{Failure, FailureKind};
use alhena_sys::files;
use parking_lot::Mutex;

use self::clones::{Clones, Found};
pub use self::clones::{is_path, without_secret};
use self::copy::Copy;
pub(crate) use self::copy::is_repository;
pub use self::copy::{LeftOut, NEITHER};
use self::git::Git;
use self::ledger::Ledger;
pub use self::ledger::{Changes, LARGEST};
use self::slot::Slot;
use crate::job::{Checkout, Job, Place};
use crate::outputs::{Gathered, Outputs};
use crate::perform::Watch;

pub(crate) type Made<T> = Result<T, Box<Failure>>;

fn failed(kind: FailureKind, message: String) -> Box<Failure> {
    Box::new(Failure::new(kind, message))
}

fn cancelled() -> Box<Failure> {
    failed(FailureKind::Cancelled, "it was stopped before it began".to_owned())
}

/// Makes places, and takes them away.
pub struct Places {
    root: PathBuf,
    clones: Clones,
    git: Option<Git>,
    /// Slots that are ours and in which nobody works.
    free: Mutex<Vec<Slot>>,
}

/// A place that was made for one attempt of a job. Dropping it takes away what is in it.
pub struct Workplace<'a> {
    places: &'a Places,
    git: &'a Git,
    slot: Option<Slot>,
    /// All of it.
    top: PathBuf,
    /// Where the job works.
    dir: PathBuf,
    /// What it was made of, if that is a directory of this machine.
    source: Option<PathBuf>,
    /// What was in it at first.
    since: String,
    commit: Option<String>,
    warnings: Vec<String>,
    /// What is not in it any more, because no patch can have it.
    taken_out: Vec<PathBuf>,
}

impl Places {
    /// In Alhena's own directories; none where it has none.
    pub fn of(environment: &Environment) -> Option<Self> {
        let dirs = Dirs::of(environment)?;
        Some(Self {
            root: dirs.state.join("places"),
            clones: Clones::in_dir(dirs.cache.join("git")),
            git: Git::find(environment),
            free: Mutex::default(),
        })
    }

    /// Why no place can be made here, whatever the job.
    pub fn unusable(&self) -> Option<Failure> {
        self.git.is_none().then(no_git)
    }

    /// Takes away what those left who were killed.
    pub fn sweep(&self) {
        match slot::sweep(&self.root) {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "places of batches that were killed are taken away"),
            Err(error) => tracing::warn!(%error, "places of others could not be looked at"),
        }
    }

    /// Makes the place that a job asks for; none where it works in its directory as that is.
    pub fn make(&self, job: &Job, watch: &Watch) -> Result<Option<Workplace<'_>>, Box<Failure>> {
        if job.place == Place::Dir {
            return Ok(None);
        }
        let git = self.git.as_ref().ok_or_else(|| Box::new(no_git()))?;
        match &job.place {
            Place::Dir => Ok(None),
            Place::Copy => {
                let source = job.options.dir.as_deref().unwrap_or(Path::new("."));
                self.copy(git, source, watch).map(Some)
            }
            Place::Git(checkout) => self.check_out(git, checkout, watch).map(Some),
        }
    }

    /// An empty place.
    fn workplace<'a>(&'a self, git: &'a Git, name: &str) -> Made<Workplace<'a>> {
        let free = self.free.lock().pop();
        let slot = free.map_or_else(|| Slot::take(&self.root), Ok);
        let made = slot.and_then(|slot| Ok((slot.place(&name_of(name))?, slot)));
        let (top, slot) = made.map_err(|error| unmade(&error))?;
        Ok(Workplace {
            places: self,
            git,
            slot: Some(slot),
            dir: top.clone(),
            top,
            source: None,
            since: String::new(),
            commit: None,
            warnings: Vec::new(),
            taken_out: Vec::new(),
        })
    }

    fn copy<'a>(&'a self, git: &'a Git, source: &Path, watch: &Watch) -> Made<Workplace<'a>> {
        watch.does("copies its directory");
        let source = source.canonicalize().map_err(|error| {
            failed(FailureKind::Input, format!("{} cannot be copied: {error}", source.display()))
        })?;
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut place = self.workplace(git, &name)?;
        if self.root.canonicalize().is_ok_and(|root| source.starts_with(root)) {
            let message = format!("{} is where copies are made", source.display());
            return Err(failed(FailureKind::Input, message));
        }
        let mut copy = Copy::of(&source, &self.root, watch).map_err(|error| unmade(&error))?;
        copy.files(&place.top)?;
        watch.does("notes what is in its copy");
        let ledger = place.begin(None)?;
        let (since, warnings) = ledger.note(Some(&source.join(".git/index")), watch)?;
        drop(ledger);
        place.source = Some(source);
        place.since = since;
        place.warnings = warnings;
        place.warnings.extend(copy.repositories()?);
        Ok(place)
    }

    fn check_out<'a>(&'a self, git: &'a Git, checkout: &Checkout, watch: &Watch) -> Made<Workplace<'a>> {
        watch.does("looks for its commit");
        let Found { commit, clone } = self.clones.find(git, checkout, watch)?;
        let trimmed = checkout.url.trim_end_matches('/');
        let name = trimmed.rsplit(['/', ':']).next().unwrap_or_default();
        let mut place = self.workplace(git, name.trim_end_matches(".git"))?;
        watch.does("checks out its commit");
        let objects = clone.join("objects");
        let ledger = place.begin(Some(&objects))?;
        ledger.check_out(&commit, watch)?;
        own_repository(&place.top, &clone, &commit, &ledger.index()).map_err(|error| unmade(&error))?;
        drop(ledger);
        let dir = place.top.join(&checkout.dir);
        // A link in the repository may lead anywhere.
        place.dir = dir.canonicalize().ok().filter(|dir| is_below(dir, &place.top)).ok_or_else(|| {
            let message = format!("dir: there is no directory {} in the repository", checkout.dir.display());
            Box::new(
                Failure::new(FailureKind::Input, message)
                    .with_hint("With git, dir is a path in the repository."),
            )
        })?;
        let local = checkout.url.strip_prefix("file://").unwrap_or(&checkout.url);
        let repository = Path::new(local).canonicalize().ok().filter(|path| path.is_dir());
        place.source = repository.map(|path| path.join(&checkout.dir).components().collect());
        place.since.clone_from(&commit);
        place.commit = Some(commit);
        Ok(place)
    }
}

fn is_below(dir: &Path, top: &Path) -> bool {
    dir.is_dir() && top.canonicalize().is_ok_and(|top| dir.starts_with(top))
}

/// A repository in the place for whoever works there. It shares the clone's commits, and nothing of what is done in it comes back.
fn own_repository(top: &Path, clone: &Path, commit: &str, index: &Path) -> io::Result<()> {
    let own = top.join(".git");
    ledger::repository(&own, false, Some(&clone.join("objects")))?;
    std::fs::write(own.join("HEAD"), format!("{commit}\n"))?;
    for (from, to) in [(index, "index"), (&clone.join("shallow"), "shallow")] {
        if from.exists() {
            std::fs::copy(from, own.join(to))?;
        }
    }
    Ok(())
}

impl Workplace<'_> {
    fn begin(&self, objects: Option<&Path>) -> Made<Ledger<'_>> {
        let ledger = Ledger::begin(self.git, self.ledger(), self.top.clone(), objects);
        Ok(ledger.map_err(|error| unmade(&error))?.holding(self.lock()))
    }

    fn lock(&self) -> Option<&File> {
        self.slot.as_ref().map(Slot::lock)
    }

    fn ledger(&self) -> PathBuf {
        self.slot.as_ref().map(Slot::ledger).unwrap_or_default()
    }

    /// Where the job works.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory that it was made of; none for a checkout of a repository elsewhere.
    pub fn source(&self) -> Option<&Path> {
        self.source.as_deref()
    }

    /// The commit that it works on, if it is a checkout.
    pub fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    /// What was changed in it. Nobody works in it any more.
    pub fn changes(&mut self, watch: &Watch) -> Result<Changes, Box<Failure>> {
        watch.does("notes what it has changed");
        still_there(&self.top)?;
        let ledger = Ledger::open(self.git, self.ledger(), self.top.clone()).holding(self.lock());
        let mut changes = ledger.changes(&self.since, watch)?;
        self.taken_out.append(&mut changes.taken_out);
        changes.warnings.splice(0..0, std::mem::take(&mut self.warnings));
        Ok(changes)
    }
}

impl Workplace<'_> {
    /// The files that it was to give back. Nobody works in it any more.
    pub fn outputs(&self, wanted: &Outputs, watch: &Watch) -> Result<Gathered, Box<Failure>> {
        if wanted.is_empty() {
            return Ok(Gathered::default());
        }
        watch.does("takes its outputs");
        still_there(&self.dir)?;
        let unread = |error| failed(FailureKind::Crashed, format!("its outputs cannot be read: {error}"));
        wanted.gather(&self.dir, &self.taken_out).map_err(unread)
    }
}

/// A link in the place of a directory would have us look, and clean up, wherever it leads.
fn still_there(dir: &Path) -> Made<()> {
    match dir.canonicalize().ok().as_deref() == Some(dir) {
        true => Ok(()),
        false => Err(failed(FailureKind::Crashed, "its place was taken away".to_owned())),
    }
}

impl Drop for Workplace<'_> {
    fn drop(&mut self) {
        let Some(slot) = self.slot.take() else { return };
        match slot.tidy() {
            Ok(()) => self.places.free.lock().push(slot),
            // It is taken away as a whole, by us or by the next.
            Err(error) => tracing::warn!(%error, "a place could not be emptied"),
        }
    }
}

fn no_git() -> Failure {
    let failure =
        Failure::new(FailureKind::Input, "there is no program git on PATH, which private places need");
    failure.with_hint("Install git, or leave out copy and git.")
}

fn unmade(error: &io::Error) -> Box<Failure> {
    let kind = if files::is_full(error) { FailureKind::DiskFull } else { FailureKind::Crashed };
    failed(kind, format!("the place for it could not be made: {error}"))
}

/// A name for a directory that reads like the original and means nothing to anybody.
fn name_of(original: &str) -> String {
    let plain = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => character,
        _ => '_',
    };
    let name: String = original.chars().take(40).map(plain).collect();
    match name.trim_start_matches(['.', '-']) {
        "" => "work".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
