//! Files of the user's that terminals changed and give back, written down in Alhena's state directory.
//!
//! The way of CAO's document writes `GEMINI.md` into the working directory and servers into the user's settings, where
//! Gemini CLI 0.61.0 finds them. What was there before has to come back when the last terminal that needs it has ended,
//! also when that terminal, Alhena or the machine did not end well. So each change is written down before it is made; any
//! later command looks here for what belongs to terminals that are gone. One lock covers all of it.

mod context;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use alhena_sys::{Process, files, locks};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub(crate) use self::context::ContextFile;
use crate::mcp::Servers;

/// Who changed what, and how it was.
#[derive(Clone, Debug)]
pub(crate) struct BorrowedFiles {
    dir: PathBuf,
}

#[derive(Debug, Deserialize, Serialize)]
struct Borrowed {
    target: PathBuf,
    kind: BorrowedKind,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BorrowedKind {
    Context(ContextFile),
    Servers(Servers),
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Holder<T> {
    pub(crate) terminal: String,
    /// The process that is starting the terminal, until it is there for others to see.
    launcher: Option<Process>,
    pub(crate) content: T,
}

impl<T> Holder<T> {
    pub(crate) fn new(terminal: &str, content: T) -> Self {
        Self { terminal: terminal.to_owned(), launcher: Process::own(), content }
    }

    fn launching(&self) -> bool {
        self.launcher.is_some_and(Process::alive)
    }
}

/// Something that was borrowed: knows how to make its file fit those who still need it.
pub(crate) trait Restorable: Clone + Into<BorrowedKind> {
    type Content;
    fn of(kind: BorrowedKind) -> Option<Self>;
    /// Those who need it, in the order they came.
    fn holders(&mut self) -> &mut Vec<Holder<Self::Content>>;
    /// Makes the file fit all holders but those that `leaving` picks. Nothing else is remembered of those that leave.
    fn settle(
        &mut self,
        target: &Path,
        leaving: &dyn Fn(&Holder<Self::Content>) -> bool,
        warnings: &mut Vec<String>,
    ) -> io::Result<()>;
}

enum Staying<'a> {
    AllBut(&'a str),
    /// Those that are alive, or being launched.
    Alive(&'a dyn Fn(&str) -> bool),
}

impl Staying<'_> {
    fn leaves<T>(&self, holder: &Holder<T>) -> bool {
        match self {
            Staying::AllBut(terminal) => holder.terminal == *terminal,
            Staying::Alive(alive) => !holder.launching() && !alive(&holder.terminal),
        }
    }
}

impl BorrowedFiles {
    /// The borrowed in Alhena's state directory.
    pub(crate) fn new(state: &Path) -> Self {
        Self { dir: state.join("lent") }
    }

    /// Says that a terminal has started and can be seen by others: its launcher may end now.
    pub(crate) fn confirm(&self, terminal: &str) -> io::Result<()> {
        if !self.dir.is_dir() {
            return Ok(());
        }
        let lock = self.lock()?;
        for (path, mut borrowed) in self.borrowed_files()? {
            fn confirm<T>(holders: &mut [Holder<T>], terminal: &str) -> bool {
                let of_it = holders.iter_mut().filter(|holder| holder.terminal == terminal);
                of_it.map(|holder| holder.launcher = None).count() > 0
            }
            let changed = match &mut borrowed.kind {
                BorrowedKind::Context(borrowed) => confirm(borrowed.holders(), terminal),
                BorrowedKind::Servers(borrowed) => confirm(borrowed.holders(), terminal),
            };
            if changed {
                save(&path, &borrowed, &lock)?;
            }
        }
        Ok(())
    }

    /// Gives back what one terminal needed and no other does. What went wrong, or what people should know, comes back.
    pub(crate) fn give_back(&self, terminal: &str) -> Vec<String> {
        self.settle_all(&Staying::AllBut(terminal))
    }

    /// Gives back what belonged to terminals that are gone. Cheap when there is nothing to do.
    pub(crate) fn recover(&self, alive: &dyn Fn(&str) -> bool) -> Vec<String> {
        self.settle_all(&Staying::Alive(alive))
    }

    fn settle_all(&self, staying: &Staying<'_>) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.dir.is_dir() {
            return warnings;
        }
        let settled = self.lock().and_then(|lock| {
            for (path, mut borrowed) in self.borrowed_files()? {
                let target = borrowed.target.clone();
                let settled = match &mut borrowed.kind {
                    BorrowedKind::Context(borrowed) => settle_one(borrowed, &target, staying, &mut warnings),
                    BorrowedKind::Servers(borrowed) => settle_one(borrowed, &target, staying, &mut warnings),
                };
                let written = settled.and_then(|settled| match settled {
                    Settled::Same => Ok(()),
                    Settled::Fewer => save(&path, &borrowed, &lock),
                    Settled::Done => fs::remove_file(&path),
                });
                if let Err(error) = written {
                    warnings.push(format!("{} could not be put back: {error}", target.display()));
                }
            }
            Ok(())
        });
        if let Err(error) = settled {
            warnings.push(format!("{}: {error}", self.dir.display()));
        }
        warnings
    }

    /// Changes a file for a terminal. `change` gets what was borrowed before, if anything, and adds the terminal to it; that is
    /// written down; then the file is made to fit. When that fails, the terminal holds nothing.
    pub(crate) fn lend<L: Restorable>(
        &self,
        target: &Path,
        terminal: &str,
        change: impl FnOnce(Option<L>) -> io::Result<L>,
    ) -> io::Result<Vec<String>> {
        files::create_private_dir(&self.dir)?;
        let lock = self.lock()?;
        let path = self.path_of(target);
        let before = read(&path)?.and_then(|borrowed| L::of(borrowed.kind));
        let mut borrowed = change(before)?;
        save(&path, &Borrowed { target: target.to_owned(), kind: borrowed.clone().into() }, &lock)?;
        let mut warnings = Vec::new();
        let settled = borrowed.settle(target, &|_| false, &mut warnings);
        drop(lock);
        if let Err(error) = settled {
            self.give_back(terminal);
            return Err(error);
        }
        Ok(warnings)
    }

    fn path_of(&self, target: &Path) -> PathBuf {
        let hash = Sha256::digest(target.as_os_str().as_encoded_bytes());
        let name: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        self.dir.join(format!("{name}.json"))
    }

    fn lock(&self) -> io::Result<Locked> {
        let file = locks::open(&self.dir.join("lock"))?;
        locks::lock(&file)?;
        Ok(Locked(file))
    }

    fn borrowed_files(&self) -> io::Result<Vec<(PathBuf, Borrowed)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json")
                && let Some(borrowed) = read(&path)?
            {
                found.push((path, borrowed));
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }
}

struct Locked(#[expect(dead_code, reason = "closing it unlocks")] File);

enum Settled {
    Same,
    Fewer,
    Done,
}

fn settle_one<L: Restorable>(
    borrowed: &mut L,
    target: &Path,
    staying: &Staying<'_>,
    warnings: &mut Vec<String>,
) -> io::Result<Settled> {
    let before = borrowed.holders().len();
    if before > 0 && !borrowed.holders().iter().any(|holder| staying.leaves(holder)) {
        return Ok(Settled::Same);
    }
    borrowed.settle(target, &|holder| staying.leaves(holder), warnings)?;
    borrowed.holders().retain(|holder| !staying.leaves(holder));
    Ok(if borrowed.holders().is_empty() { Settled::Done } else { Settled::Fewer })
}

fn read(path: &Path) -> io::Result<Option<Borrowed>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn save(path: &Path, borrowed: &Borrowed, _held: &Locked) -> io::Result<()> {
    files::replace(path, &serde_json::to_vec_pretty(borrowed)?, 0o600)
}

#[cfg(test)]
mod tests;
