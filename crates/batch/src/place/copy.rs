//! A private copy of a directory: as it is, by reference where the file system can.
//!
//! Modes and times are kept, links stay links. What is no file, directory or link is left out, and so is what cannot be read; both
//! are told. `.git` comes last: what a job changes is told from what was there without it.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use alhena_model::FailureKind;
use alhena_sys::files::{self, FileId};

use super::{Made, cancelled, failed};
use crate::perform::Watch;

/// Nobody means to copy more for one job.
const MOST_ENTRIES: u64 = 2_000_000;
const MOST_BYTES: u64 = 256 << 30;
/// So many things that were left out are told one by one.
const MOST_TOLD: usize = 10;
/// What a copy has none of.
pub const NEITHER: &str = "it is neither a file nor a directory nor a link";
const SAID: Duration = Duration::from_millis(250);

/// A copy on its way.
pub struct Copy<'a> {
    watch: &'a Watch,
    source: PathBuf,
    /// Directories that are not looked into: where copies are made.
    spared: FileId,
    entries: u64,
    bytes: u64,
    left_out: LeftOut,
    /// What every directory is to be like when all is in it.
    directories: Vec<(PathBuf, Metadata)>,
    /// The repositories, which come last.
    repositories: Vec<(PathBuf, PathBuf)>,
    can_refer: bool,
    said: Instant,
}

/// How an entry is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Files,
    Repositories,
}

impl<'a> Copy<'a> {
    /// Of a directory, which is not changed. `places` is where copies are made.
    pub fn of(source: &Path, places: &Path, watch: &'a Watch) -> io::Result<Self> {
        let spared = FileId::at(places)?;
        Ok(Self {
            watch,
            source: source.to_owned(),
            spared,
            entries: 0,
            bytes: 0,
            left_out: LeftOut::of("the copy"),
            directories: Vec::new(),
            repositories: Vec::new(),
            can_refer: true,
            said: Instant::now(),
        })
    }

    /// Copies all but `.git` into an empty directory.
    pub fn files(&mut self, to: &Path) -> Made<()> {
        let source = self.source.clone();
        self.directories.push((to.to_owned(), fs::metadata(&source).map_err(|error| told(&source, &error))?));
        self.tree(&source, to, Stage::Files)
    }

    /// Copies the repositories that were passed over, as far as they work where they are then; and sets what directories are like.
    pub fn repositories(mut self) -> Made<Vec<String>> {
        for (from, to) in std::mem::take(&mut self.repositories) {
            match self.leads_out(&from) {
                Some(why) => self.leave_out(&from, why),
                None => self.entry(&from, &to, Stage::Repositories)?,
            }
        }
        for (path, data) in self.directories.iter().rev() {
            let settled = File::open(path)
                .and_then(|dir| data.modified().and_then(|modified| dir.set_modified(modified)))
                .and_then(|()| files::set_mode(path, files::mode(data) & 0o777));
            settled.map_err(|error| told(path, &error))?;
        }
        Ok(self.left_out.told())
    }

    /// Whether git would work somewhere else with this `.git`: what it does there would be done to the original.
    fn leads_out(&self, from: &Path) -> Option<&'static str> {
        let data = fs::symlink_metadata(from).ok()?;
        if data.is_symlink() {
            return Some("it is a link");
        }
        if data.is_dir() {
            let settings = fs::read_to_string(from.join("config")).unwrap_or_default();
            let elsewhere = settings.lines().any(|line| {
                let (name, value) = line.split_once('=').unwrap_or_default();
                name.trim().eq_ignore_ascii_case("worktree") && value.trim().starts_with(['/', '"'])
            });
            let shares = from.join("commondir").exists();
            return (elsewhere || shares).then_some("it belongs to a working tree elsewhere");
        }
        let text = fs::read_to_string(from).unwrap_or_default();
        let target = Path::new(text.trim().strip_prefix("gitdir:").unwrap_or_default().trim());
        let inside = target.is_relative()
            && from.parent().and_then(|dir| dir.join(target).canonicalize().ok()).is_some_and(|there| {
                self.source.canonicalize().is_ok_and(|source| there.starts_with(source))
            });
        (!inside).then_some("its repository is somewhere else")
    }

    fn tree(&mut self, from: &Path, to: &Path, stage: Stage) -> Made<()> {
        let mut waiting = vec![(from.to_owned(), to.to_owned())];
        while let Some((from, to)) = waiting.pop() {
            let entries = match fs::read_dir(&from) {
                Ok(entries) => entries,
                Err(error) => {
                    self.leave_out(&from, &error.to_string());
                    continue;
                }
            };
            for entry in entries {
                let entry = entry.map_err(|error| told(&from, &error))?;
                let (source, target) = (entry.path(), to.join(entry.file_name()));
                if stage == Stage::Files && is_repository(&entry.file_name()) {
                    self.repositories.push((source, target));
                    continue;
                }
                if self.one(&source, &target, stage)? == Next::Below {
                    waiting.push((source, target));
                }
            }
        }
        Ok(())
    }

    fn entry(&mut self, from: &Path, to: &Path, stage: Stage) -> Made<()> {
        match self.one(from, to, stage)? {
            Next::Below => self.tree(from, to, stage),
            Next::Nothing => Ok(()),
        }
    }

    /// One entry; of a directory only itself.
    fn one(&mut self, from: &Path, to: &Path, stage: Stage) -> Made<Next> {
        self.look_round()?;
        let data = match fs::symlink_metadata(from) {
            Ok(data) => data,
            // It was there a moment ago.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Next::Nothing),
            Err(error) => return Err(told(from, &error)),
        };
        let kind = data.file_type();
        if kind.is_dir() {
            if FileId::at_link(from).is_ok_and(|id| id == self.spared) {
                return Ok(Next::Nothing);
            }
            files::create_private_dir(to).map_err(|error| told(to, &error))?;
            self.directories.push((to.to_owned(), data));
            return Ok(Next::Below);
        }
        // Somebody's git is at work in the original, not in the copy.
        if stage == Stage::Repositories && from.extension().is_some_and(|ending| ending == "lock") {
            return Ok(Next::Nothing);
        }
        if kind.is_symlink() {
            let link = fs::read_link(from).and_then(|target| files::symlink(target, to));
            link.map_err(|error| told(to, &error))?;
        } else if kind.is_file() {
            match files::open_without_following(from) {
                Ok(source) => self.file(&source, to).map_err(|error| told(to, &error))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.leave_out(from, &error.to_string()),
            }
        } else {
            self.leave_out(from, NEITHER);
        }
        Ok(Next::Nothing)
    }

    fn file(&mut self, source: &File, to: &Path) -> io::Result<()> {
        let data = source.metadata()?;
        let mut target = files::create_new(to, 0o600)?;
        if !(self.can_refer && files::share_blocks(source, &target)) {
            self.can_refer &= data.len() == 0;
            io::copy(&mut &*source, &mut target)?;
        }
        self.bytes = self.bytes.saturating_add(data.len());
        target.set_modified(data.modified().unwrap_or(SystemTime::UNIX_EPOCH))?;
        files::set_file_mode(&target, files::mode(&data) & 0o777)
    }

    /// Whether to go on, and what is said meanwhile.
    fn look_round(&mut self) -> Made<()> {
        self.entries += 1;
        if self.watch.asked().is_some() {
            return Err(cancelled());
        }
        if self.entries > MOST_ENTRIES || self.bytes > MOST_BYTES {
            let size = format!("{} files, {} GB", self.entries, self.bytes >> 30);
            let message = format!("{} is too large for a copy: {size} so far", self.source.display());
            return Err(failed(FailureKind::Input, message));
        }
        if self.said.elapsed() > SAID {
            self.said = Instant::now();
            self.watch.does(&format!(
                "copies its directory: {} files, {} MB",
                self.entries,
                self.bytes >> 20
            ));
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &Path, why: &str) {
        self.left_out.add(path.strip_prefix(&self.source).unwrap_or(path), why);
    }
}

/// What of a directory was not taken, for whoever misses it.
#[derive(Debug)]
pub struct LeftOut {
    of: &'static str,
    told: Vec<String>,
    more: usize,
}

impl LeftOut {
    /// Of what: "the copy".
    pub fn of(of: &'static str) -> Self {
        Self { of, told: Vec::new(), more: 0 }
    }

    /// One more, by its path in the directory.
    pub fn add(&mut self, path: &Path, why: &str) {
        match self.told.len() < MOST_TOLD {
            true => self.told.push(format!("{} was left out of {}: {why}", path.display(), self.of)),
            false => self.more += 1,
        }
    }

    /// As warnings.
    pub fn told(mut self) -> Vec<String> {
        if self.more > 0 {
            self.told.push(format!("and {} more were left out of {}", self.more, self.of));
        }
        self.told
    }
}

#[derive(PartialEq, Eq)]
enum Next {
    /// What is in it.
    Below,
    Nothing,
}

/// Whether git keeps a repository by this name; it takes no such file for content, in whatever letters.
pub fn is_repository(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().eq_ignore_ascii_case(b".git")
}

fn told(path: &Path, error: &io::Error) -> Box<alhena_model::Failure> {
    let kind = if files::is_full(error) { FailureKind::DiskFull } else { FailureKind::Crashed };
    failed(kind, format!("the copy failed at {}: {error}", path.display()))
}
