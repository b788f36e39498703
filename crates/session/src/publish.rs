//! Puts the sessions of a run into the user's store, when the CLI has ended.
//!
//! A session file is moved by rename, so that a reader sees either the old one or the new one. If the user, or another
//! run, changed the original meanwhile, both stay: the CLI (0.61.0) takes the one that was written last for a given id.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alhena_sys::files::{self, Existing, move_file};
use alhena_sys::locks::{self, Lock};
use serde::{Deserialize, Serialize};

use crate::fingerprint::Fingerprint;
use crate::names::{PREFIX, is_plain_name, is_session_name, minute_of, stem, with_minute};
use crate::repair;
use crate::survey::survey_at;

/// A session that the run continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedSession {
    /// Its id.
    pub id: String,
    /// Its file in the user's store.
    pub original: PathBuf,
    /// Its file name in the run's own store.
    pub name: String,
    /// What it held when it was copied.
    pub fingerprint: Fingerprint,
}

/// A file as it was when the run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopiedFile {
    /// Where it is, below the directory that was copied.
    pub path: PathBuf,
    /// What it held.
    pub fingerprint: Fingerprint,
}

/// Two versions of one session, both in the user's store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBoth {
    /// The version that somebody else changed.
    pub theirs: PathBuf,
    /// The version of this run.
    pub ours: PathBuf,
}

/// What became of the sessions of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Session files that are now in the user's store. Empty when the run left no conversation.
    pub published: Vec<PathBuf>,
    /// The ids of the sessions of the run that are in the user's store, whether they are new there or as they were.
    pub sessions: Vec<String>,
    /// Sessions whose original was changed by somebody else during the run.
    pub kept_both: Vec<KeptBoth>,
    /// What people should know.
    pub warnings: Vec<String>,
}

/// One project's directory in the run's own store, and its place in the user's.
#[derive(Debug)]
pub struct PrivateProject<'a> {
    /// The run's own.
    pub from: &'a Path,
    /// The user's.
    pub to: &'a Path,
    /// The session that the run continued.
    pub resumed: Option<&'a CopiedSession>,
    /// Other files that were copied in, by their path in the project's directory.
    pub copied: &'a [CopiedFile],
    /// Whether the run was stopped before its end: what the CLI took back of its last turn is brought back.
    pub stopped: bool,
}

impl PrivateProject<'_> {
    /// Moves everything worth keeping. An error leaves what is not moved yet where it is.
    pub fn publish(&self, done: &mut Published) -> io::Result<()> {
        let ids = self.publish_sessions(done)?;
        done.sessions.extend(ids.iter().cloned());
        let mut all = ids.clone();
        for id in &ids {
            all.extend(self.publish_subagents(id, done)?);
        }
        for id in all.iter().filter(|id| is_plain_name(id)) {
            for part in [
                PathBuf::from(id),
                Path::new("tool-outputs").join(format!("{PREFIX}{id}")),
                Path::new("logs").join(format!("{PREFIX}{id}.jsonl")),
            ] {
                self.publish_artifact(&part, done)?;
            }
        }
        // The project's memory: the model may write to it (0.44 and later), and it is the user's.
        self.publish_artifact(Path::new("memory"), done)?;
        self.publish_saved_chats(done)?;
        if !ids.is_empty() {
            // Releases before the sub-directories put long outputs straight there.
            for name in files::names_in(&self.from.join("tool-outputs"))? {
                let part = Path::new("tool-outputs").join(name);
                if files::is_plain_file(&self.from.join(&part)) {
                    self.publish_artifact(&part, done)?;
                }
            }
        }
        Ok(())
    }

    /// The session files; gives the ids of those that are now in the user's store.
    fn publish_sessions(&self, done: &mut Published) -> io::Result<BTreeSet<String>> {
        let chats = self.from.join("chats");
        let mut ids = BTreeSet::new();
        if let Some(resumed) = self.resumed
            && !chats.join(&resumed.name).exists()
            && Fingerprint::of(&resumed.original)?.as_ref() == Some(&resumed.fingerprint)
        {
            done.warnings.push(format!(
                "The CLI deleted the session {} in this run; it was left as it was",
                resumed.id
            ));
            done.sessions.push(resumed.id.clone());
        }
        for name in files::names_in(&chats)? {
            let path = chats.join(&name);
            if !is_session_name(&name) || !files::is_plain_file(&path) {
                continue;
            }
            if self.stopped {
                let copied = self.resumed.filter(|resumed| resumed.name == name);
                let _undone = repair::undo_stop(&path, copied.map_or(0, |copied| copied.fingerprint.size()))?;
            }
            let survey = survey_at(&path)?;
            let Some(id) = survey.id.as_ref().filter(|_| survey.header) else {
                done.warnings.push(format!("The session file {name} is damaged and was not kept"));
                continue;
            };
            if !survey.has_conversation() {
                continue;
            }
            match self.resumed.filter(|resumed| resumed.id == *id && is_version_of(&name, &resumed.name)) {
                Some(resumed) => self.publish_resumed(&path, resumed, done)?,
                None => {
                    let to = self.to.join("chats").join(&name);
                    let to = publish_file(&path, &to, None, free_session_name)?;
                    done.published.extend(to.moved_to());
                }
            }
            ids.insert(id.clone());
        }
        Ok(ids)
    }

    fn publish_resumed(&self, path: &Path, resumed: &CopiedSession, done: &mut Published) -> io::Result<()> {
        // 0.39 and later continue a `.json` as a `.jsonl` beside it, and leave the old one as it is.
        let was_converted = path.extension() != Path::new(&resumed.name).extension();
        let (target, base) = if was_converted {
            (resumed.original.with_extension("jsonl"), None)
        } else {
            (resumed.original.clone(), Some(&resumed.fingerprint))
        };
        match publish_file(path, &target, base, free_session_name)? {
            Moved::Beside(ours) if base.is_some() => {
                done.published.push(ours.clone());
                done.warnings.push(format!(
                    "The session {} was changed by another program during the run; both versions are kept: {} and {}",
                    resumed.id,
                    target.display(),
                    ours.display()
                ));
                done.kept_both.push(KeptBoth { theirs: target, ours });
            }
            moved => done.published.extend(moved.moved_to()),
        }
        Ok(())
    }

    /// The transcripts of a session's sub-agents; gives their ids.
    fn publish_subagents(&self, parent: &str, done: &mut Published) -> io::Result<Vec<String>> {
        let part = Path::new("chats").join(parent);
        if !is_plain_name(parent) || !files::is_plain_dir(&self.from.join(&part)) {
            return Ok(Vec::new());
        }
        let names = files::names_in(&self.from.join(&part))?;
        self.publish_artifact(&part, done)?;
        Ok(names.iter().filter_map(|name| Some(stem(name)?.0.to_owned())).collect())
    }

    /// Conversations that were saved by name (`/chat save`); those of the user are links and stay where they are.
    fn publish_saved_chats(&self, done: &mut Published) -> io::Result<()> {
        for name in files::names_in(self.from)? {
            if name.starts_with("checkpoint-") && name.ends_with(".json") {
                self.publish_artifact(Path::new(&name), done)?;
            }
        }
        Ok(())
    }

    /// A file, or a directory with all its files. Links are the user's own and are passed over.
    fn publish_artifact(&self, part: &Path, done: &mut Published) -> io::Result<()> {
        let from = self.from.join(part);
        if files::is_plain_dir(&from) {
            for name in files::names_in(&from)? {
                self.publish_artifact(&part.join(name), done)?;
            }
        } else if files::is_plain_file(&from) {
            let base =
                self.copied.iter().find(|copied| copied.path == part).map(|copied| &copied.fingerprint);
            let to = self.to.join(part);
            if let Moved::Beside(ours) = publish_file(&from, &to, base, free_name)? {
                done.warnings.push(format!(
                    "{} changed during the run; its version is {}",
                    to.display(),
                    ours.display()
                ));
            }
        }
        Ok(())
    }
}

/// The copy itself, or what the CLI made of it: `x.json` becomes `x.jsonl`.
fn is_version_of(name: &str, copied: &str) -> bool {
    name == copied || name.strip_suffix('l') == Some(copied)
}

/// Where a file went.
#[derive(Debug, PartialEq, Eq)]
enum Moved {
    /// Nowhere: what it holds is there already.
    NotNeeded,
    /// To its place.
    ToPlace(PathBuf),
    /// Beside its place, which holds something else.
    Beside(PathBuf),
}

impl Moved {
    fn moved_to(self) -> Option<PathBuf> {
        match self {
            Moved::NotNeeded => None,
            Moved::ToPlace(path) | Moved::Beside(path) => Some(path),
        }
    }
}

/// The right to replace files of a directory, until dropped. Without it two runs that went on with one session would both find
/// it unchanged, and the second would take the place of the first. It is a lock on the directory itself, so that nothing is
/// added to the user's home.
#[derive(Debug)]
enum ReplaceRight {
    Ours(#[expect(dead_code, reason = "its end is the end of the lock")] fs::File),
    /// Somebody does not let go: then nothing is replaced.
    Others,
    /// There are no locks here.
    Unknown,
}

impl ReplaceRight {
    fn take(dir: &Path) -> Self {
        let Ok(handle) = fs::File::open(dir) else { return ReplaceRight::Unknown };
        match locks::lock_within(&handle, LONGEST_TURN) {
            Ok(Lock::Ours) => ReplaceRight::Ours(handle),
            Ok(Lock::Others) => ReplaceRight::Others,
            Err(_) => ReplaceRight::Unknown,
        }
    }
}

/// To compare and replace a file takes milliseconds.
const LONGEST_TURN: Duration = Duration::from_secs(5);

/// Moves a file to its place, which may hold what it was made from (`base`) and nothing else.
fn publish_file(
    from: &Path,
    to: &Path,
    base: Option<&Fingerprint>,
    free: fn(&Path, u32) -> PathBuf,
) -> io::Result<Moved> {
    let dir = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let right = ReplaceRight::take(dir);
    let ours = Fingerprint::of(from)?;
    let theirs = Fingerprint::of(to)?;
    if ours == theirs || (ours.as_ref() == base && theirs.is_some()) {
        fs::remove_file(from)?;
        return Ok(Moved::NotNeeded);
    }
    if theirs.is_some() && theirs.as_ref() == base && !matches!(right, ReplaceRight::Others) {
        move_file(from, to, Existing::Replace)?;
        return Ok(Moved::ToPlace(to.to_owned()));
    }
    let mut target = to.to_owned();
    for attempt in 1.. {
        match move_file(from, &target, Existing::Keep) {
            Ok(()) if attempt == 1 => return Ok(Moved::ToPlace(target)),
            Ok(()) => return Ok(Moved::Beside(target)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        if Fingerprint::of(&target)? == ours {
            // An earlier attempt got this far.
            fs::remove_file(from)?;
            return Ok(Moved::NotNeeded);
        }
        target = free(to, attempt);
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// A name that the CLI also takes for this session: another minute, the same short id.
fn free_session_name(path: &Path, attempt: u32) -> PathBuf {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let later = minute_of(name).and_then(|minute| minute_after(minute, attempt));
    match later.and_then(|minute| with_minute(name, &minute)) {
        Some(name) => path.with_file_name(name),
        None => free_name(path, attempt),
    }
}

fn minute_after(minute: &str, count: u32) -> Option<String> {
    const FORM: &str = "%Y-%m-%dT%H-%M";
    let time = jiff::civil::DateTime::strptime(FORM, minute).ok()?;
    let later = time.checked_add(jiff::Span::new().try_minutes(i64::from(count)).ok()?).ok()?;
    Some(later.strftime(FORM).to_string())
}

/// `name-1.ext`, `name-2.ext` and so on.
fn free_name(path: &Path, attempt: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}-{attempt}{}", extension.unwrap_or_default()))
}

#[cfg(test)]
mod tests;
