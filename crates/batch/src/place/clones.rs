//! Repositories that jobs work on, kept for the next time: one bare clone for each address, fetched by one process at a time.
//!
//! A commit that is there is not asked for again. A branch or a tag is, once in each batch, so that all its jobs work on the same
//! commit. What is in a clone is never cleaned up: it can be deleted whenever nobody works.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alhena_model::{Failure, FailureKind};
use alhena_sys::{files, locks};
use parking_lot::Mutex;

use super::git::Git;
use super::ledger::repository;
use super::{Made, cancelled, failed};
use crate::job::{Checkout, Mark};
use crate::perform::Watch;

const GLANCE: Duration = Duration::from_millis(20);

/// All clones.
pub struct Clones {
    root: PathBuf,
    asked: Mutex<HashMap<(String, String), Asked>>,
}

/// What is known of a reference in this batch.
#[derive(Clone)]
enum Asked {
    /// Somebody is on the way.
    Waiting,
    Known(String),
}

/// A commit that is there.
pub struct Found {
    /// Its full name.
    pub commit: String,
    /// The clone that has it.
    pub clone: PathBuf,
}

impl Clones {
    /// Those in a directory.
    pub fn in_dir(root: PathBuf) -> Self {
        Self { root, asked: Mutex::default() }
    }

    /// The commit that a job is to work on; fetched if need be.
    pub fn find(&self, git: &Git, checkout: &Checkout, watch: &Watch) -> Made<Found> {
        let url = address(&checkout.url)?;
        let name = Mark::of(&[url.as_bytes()]).to_string();
        let clone = self.root.join(format!("{name}.git"));
        let key = (url.clone(), checkout.reference.clone());
        loop {
            let mut asked = self.asked.lock();
            match asked.get(&key) {
                Some(Asked::Known(commit)) => return Ok(Found { commit: commit.clone(), clone }),
                Some(Asked::Waiting) => {}
                None => {
                    asked.insert(key.clone(), Asked::Waiting);
                    break;
                }
            }
            drop(asked);
            wait(watch, &url)?;
        }
        let found =
            Fetch { git, url: &url, reference: &checkout.reference, clone: &clone, watch }.find(&self.root);
        match &found {
            Ok(commit) => self.asked.lock().insert(key, Asked::Known(commit.clone())),
            Err(_) => self.asked.lock().remove(&key),
        };
        Ok(Found { commit: found?, clone })
    }
}

fn wait(watch: &Watch, url: &str) -> Made<()> {
    if watch.asked().is_some() {
        return Err(cancelled());
    }
    watch.does(&format!("waits for {}", without_secret(url)));
    std::thread::sleep(GLANCE);
    Ok(())
}

struct Fetch<'a> {
    git: &'a Git,
    url: &'a str,
    reference: &'a str,
    clone: &'a Path,
    watch: &'a Watch,
}

impl Fetch<'_> {
    fn find(&self, root: &Path) -> Made<String> {
        let broken = |error: io::Error| {
            let kind = if files::is_full(&error) { FailureKind::DiskFull } else { FailureKind::Crashed };
            failed(kind, format!("the clone {} cannot be used: {error}", self.clone.display()))
        };
        files::create_private_dir(root).map_err(broken)?;
        let lock_file = self.clone.with_extension("lock");
        let lock = loop {
            match locks::take(&lock_file).map_err(broken)? {
                Some(lock) => break lock,
                None => wait(self.watch, self.url)?,
            }
        };
        if !self.clone.join("HEAD").is_file() {
            repository(self.clone, true, None).map_err(broken)?;
        }
        // Whoever was killed here does not write any more: we have the lock.
        remove_locks(self.clone).map_err(broken)?;
        let is_commit = matches!(self.reference.len(), 40 | 64) && is_hex(self.reference);
        if is_commit && let Some(commit) = self.commit(self.reference)? {
            return Ok(commit);
        }
        self.fetch(&lock)
    }

    fn fetch(&self, lock: &File) -> Made<String> {
        self.watch.does(&format!("fetches {} of {}", self.reference, without_secret(self.url)));
        let kept = format!("refs/alhena/{}", Mark::of(&[self.reference.as_bytes()]));
        let one = format!("+{}:{kept}", self.reference);
        let Some(said) = self.ask(&[&one], lock)? else {
            return self.commit(&kept)?.ok_or_else(|| self.no_commit());
        };
        // A server may give commits only by way of what leads to them; and what is counted from a branch needs the branch.
        let unnamed = said.contains("couldn't find remote ref") || said.contains("invalid refspec");
        if !(unnamed || is_hex(self.reference)) {
            return Err(self.not_fetched(&said));
        }
        if let Some(said) = self.ask(&["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"], lock)? {
            return Err(self.not_fetched(&said));
        }
        self.commit(self.reference)?.ok_or_else(|| self.no_commit())
    }

    /// Fetches; gives what was said if that failed.
    fn ask(&self, wanted: &[&str], lock: &File) -> Made<Option<String>> {
        let fetch =
            ["fetch", "--quiet", "--no-tags", "--force", "--no-recurse-submodules", "--no-write-fetch-head"];
        let ask = self.git.ask_server(self.clone).variable("GIT_DIR", self.clone).holding(Some(lock));
        let ask = ask.args(fetch).args(["--", self.url]).args(wanted);
        let answer = ask.try_get(self.watch, &self.clone.join("scratch"))?;
        Ok((!answer.success).then(|| answer.said.replace(self.url, &without_secret(self.url))))
    }

    fn commit(&self, name: &str) -> Made<Option<String>> {
        let ask = self.git.ask(self.clone).variable("GIT_DIR", self.clone);
        let ask = ask.args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
        let ask = ask.arg(format!("{name}^{{commit}}"));
        let answer = ask.try_get(self.watch, &self.clone.join("scratch"))?;
        let commit = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        Ok(Some(commit).filter(|commit| answer.success && is_hex(commit)))
    }

    fn no_commit(&self) -> Box<Failure> {
        let message = format!("{} has no commit {:?}", without_secret(self.url), self.reference);
        let failure = Failure::new(FailureKind::Input, message);
        Box::new(failure.with_hint("Give a branch, a tag or a commit that is there."))
    }

    fn not_fetched(&self, said: &str) -> Box<Failure> {
        let message = format!("{} cannot be fetched: {said}", without_secret(self.url));
        // A server that is away may be back for the next attempt.
        let kind = match said.contains("does not appear to be a git repository") || said.contains("not found")
        {
            true => FailureKind::Input,
            false => FailureKind::Crashed,
        };
        let hint = "Try `git ls-remote` with this address: nobody is asked for a password here.";
        Box::new(Failure::new(kind, message).with_hint(hint))
    }
}

fn is_hex(text: &str) -> bool {
    text.len() >= 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Removes the locks of git's own that somebody left who was killed.
fn remove_locks(clone: &Path) -> io::Result<()> {
    let mut waiting = vec![clone.join("refs")];
    let mut found =
        vec![clone.join("packed-refs.lock"), clone.join("shallow.lock"), clone.join("config.lock")];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                waiting.push(entry.path());
            } else if entry.path().extension().is_some_and(|ending| ending == "lock") {
                found.push(entry.path());
            }
        }
    }
    found.iter().try_for_each(|path| super::slot::remove(path))
}

/// An address that means the same wherever it is said.
fn address(url: &str) -> Made<String> {
    if !is_path(url) {
        return Ok(url.to_owned());
    }
    let path = fs::canonicalize(url).map_err(|error| {
        let failure = Failure::new(FailureKind::Input, format!("git: {url}: {error}"));
        Box::new(failure.with_hint("Give the address of a repository, or the path of one."))
    })?;
    let no_text = || failed(FailureKind::Input, format!("git: {url} has a path that is no text"));
    path.into_os_string().into_string().map_err(|_| no_text())
}

/// Whether it is a path here, as git tells it: not `https://host/path`, and not `host:path`.
pub fn is_path(url: &str) -> bool {
    !url.split('/').next().unwrap_or_default().contains(':')
}

/// An address for people: a password may be in it.
pub fn without_secret(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
            let host = host.rsplit('@').next().unwrap_or_default();
            let path = path.map(|path| format!("/{path}")).unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}
