//! `GEMINI.md` in the working directory, borrowed to terminals, as CAO's document describes (D-27 to D-29).
//!
//! Gemini CLI 0.61.0 reads the file once at its start and on `/memory refresh`. Terminals that share a directory share the
//! file: it holds what the latest of them wrote. What was there before is moved to `GEMINI.md.cao_backup`, as it is,
//! and moved back when the last of them has ended. What somebody else wrote meanwhile is never overwritten.

use std::path::{Path, PathBuf};
use std::{fs, io};

use alhena_sys::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{BorrowedFiles, BorrowedKind, Holder, Restorable};

const NAME: &str = "GEMINI.md";
const BACKUP: &str = "GEMINI.md.cao_backup";

/// A `GEMINI.md` that terminals wrote.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ContextFile {
    /// Where the one that was there before is; none if there was none.
    backup: Option<PathBuf>,
    /// What terminals wrote, as hashes: anything else is somebody else's.
    ours: Vec<String>,
    holders: Vec<Holder<String>>,
}

impl ContextFile {
    /// Writes a system prompt to `GEMINI.md` for as long as a terminal is there. Gives back what people should know.
    pub(crate) fn write(
        borrowed: &BorrowedFiles,
        dir: &Path,
        terminal: &str,
        prompt: &str,
    ) -> io::Result<Vec<String>> {
        let dir = fs::canonicalize(dir)?;
        let text = format!("{}\n", prompt.trim_end());
        let target = dir.join(NAME);
        borrowed.lend(&target, terminal, |before: Option<Self>| {
            let mut borrowed = before.unwrap_or_else(|| Self {
                backup: fs::symlink_metadata(&target).is_ok().then(|| free_name(&dir)),
                ours: Vec::new(),
                holders: Vec::new(),
            });
            borrowed.ours.push(hash(text.as_bytes()));
            borrowed.holders.push(Holder::new(terminal, text.clone()));
            Ok(borrowed)
        })
    }

    /// Writes what a terminal wants to be there, unless somebody else's text is.
    fn put(&self, target: &Path, text: &str, warnings: &mut Vec<String>) -> io::Result<()> {
        if let Some(backup) = &self.backup
            && fs::symlink_metadata(backup).is_err()
            && fs::symlink_metadata(target).is_ok()
        {
            fs::rename(target, backup)?;
        }
        if self.content(target)? == WhoseText::Others {
            warnings.push(format!("{} was changed by somebody else and is left as it is", target.display()));
            return Ok(());
        }
        files::replace(target, text.as_bytes(), 0o600)
    }

    fn restore(&self, target: &Path, warnings: &mut Vec<String>) -> io::Result<()> {
        let _left_by_a_crash = files::remove_unfinished(target);
        let content = self.content(target)?;
        match &self.backup {
            None if content == WhoseText::Ours => fs::remove_file(target),
            None => Ok(()),
            // Moving it away was planned and did not happen: what is there is the original.
            Some(backup) if fs::symlink_metadata(backup).is_err() => Ok(()),
            Some(backup) if content != WhoseText::Others || same(target, backup) => {
                fs::rename(backup, target)
            }
            Some(backup) => {
                warnings.push(format!(
                    "{} was changed by somebody else and is left as it is; what was there before is in {}",
                    target.display(),
                    backup.display()
                ));
                Ok(())
            }
        }
    }

    fn content(&self, target: &Path) -> io::Result<WhoseText> {
        match fs::read(target) {
            Ok(bytes) if self.ours.contains(&hash(&bytes)) => Ok(WhoseText::Ours),
            Ok(_) => Ok(WhoseText::Others),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::symlink_metadata(target) {
                Ok(_) => Ok(WhoseText::Others),
                Err(_) => Ok(WhoseText::Nothing),
            },
            Err(error) => Err(error),
        }
    }
}

impl From<ContextFile> for BorrowedKind {
    fn from(borrowed: ContextFile) -> Self {
        BorrowedKind::Context(borrowed)
    }
}

impl Restorable for ContextFile {
    type Content = String;

    fn of(kind: BorrowedKind) -> Option<Self> {
        match kind {
            BorrowedKind::Context(borrowed) => Some(borrowed),
            BorrowedKind::Servers(_) => None,
        }
    }

    fn holders(&mut self) -> &mut Vec<Holder<String>> {
        &mut self.holders
    }

    fn settle(
        &mut self,
        target: &Path,
        leaving: &dyn Fn(&Holder<String>) -> bool,
        warnings: &mut Vec<String>,
    ) -> io::Result<()> {
        if target.parent().is_some_and(|dir| !dir.is_dir()) {
            return Ok(());
        }
        match self.holders.iter().rev().find(|holder| !leaving(holder)) {
            Some(holder) => self.put(target, &holder.content, warnings),
            None => self.restore(target, warnings),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WhoseText {
    Nothing,
    Ours,
    Others,
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

/// A backup of somebody else's is not overwritten.
fn free_name(dir: &Path) -> PathBuf {
    let numbered = (1_u32..).map(|number| dir.join(format!("{BACKUP}.{number}")));
    let mut names = std::iter::once(dir.join(BACKUP)).chain(numbered);
    names.find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_else(|| dir.join(BACKUP))
}
