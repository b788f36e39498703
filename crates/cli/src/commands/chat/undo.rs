//! `/undo`: the files of the last turn as they were before it, where nothing else has changed them since.
//!
//! What a turn did to a file is known as one diff, from the file's first state to its last. Taken backwards it gives the first
//! state, if the last one is still there to the letter.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use alhena_model::{Change, FileRecord};
use alhena_sys::files;

/// What a turn changed, and how the files were when it was over.
#[derive(Debug, Default)]
pub struct Turn {
    files: Vec<Changed>,
}

#[derive(Debug)]
struct Changed {
    /// As it is told.
    name: String,
    path: PathBuf,
    change: Change,
    diff: Option<String>,
    /// What was in it; none where there was no such file.
    left: Option<u64>,
}

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Undone {
    pub name: String,
    pub result: Result<Back, Kept>,
}

/// How a file was put back.
#[derive(Debug, PartialEq, Eq)]
pub enum Back {
    /// As it was.
    Restored,
    /// It is gone, as it was.
    Removed,
}

/// Why a file stays as it is.
#[derive(Debug, PartialEq, Eq)]
pub enum Kept {
    /// Somebody changed it after the turn.
    ChangedSince,
    /// What the turn did is not known to the letter.
    Unknown,
    Failed(String),
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::ChangedSince => f.write_str("it has changed since"),
            Kept::Unknown => f.write_str("what the turn changed in it is not known"),
            Kept::Failed(why) => f.write_str(why),
        }
    }
}

impl Turn {
    /// Looks at the files of a turn that is over.
    pub fn over(files: &[FileRecord], dir: &Path) -> Self {
        let changed = |file: &FileRecord| {
            let path = dir.join(&file.path);
            let left = content(&path);
            Changed { name: file.path.clone(), change: file.change, diff: file.diff.clone(), left, path }
        };
        // What a tool claims and the disk denies did not happen.
        let happened = files.iter().filter(|file| file.verified || !file.claimed);
        Self { files: happened.map(changed).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Puts the files back, each by itself.
    pub fn undo(self) -> Vec<Undone> {
        self.files.into_iter().map(|file| Undone { result: file.undo(), name: file.name }).collect()
    }
}

/// The file's content as a number; none where it cannot be read. A link is no file of the turn's.
fn content(path: &Path) -> Option<u64> {
    files::is_plain_file(path).then_some(())?;
    let mut hasher = DefaultHasher::new();
    fs::read(path).ok()?.hash(&mut hasher);
    Some(hasher.finish())
}

impl Changed {
    fn undo(&self) -> Result<Back, Kept> {
        let (Some(diff), Some(left)) = (&self.diff, self.left) else { return Err(Kept::Unknown) };
        if content(&self.path) != Some(left) {
            return Err(Kept::ChangedSince);
        }
        let failed = |error: std::io::Error| Kept::Failed(error.to_string());
        let now = String::from_utf8(fs::read(&self.path).map_err(failed)?).map_err(|_| Kept::Unknown)?;
        let before = backwards(diff, &now).ok_or(Kept::Unknown)?;
        match self.change {
            Change::Created if before.is_empty() => {
                fs::remove_file(&self.path).map_err(failed).map(|()| Back::Removed)
            }
            Change::Created | Change::Deleted => Err(Kept::Unknown),
            Change::Modified => {
                files::replace(&self.path, before.as_bytes(), 0o644).map_err(failed).map(|()| Back::Restored)
            }
        }
    }
}

/// The text before a unified diff, if this is the text after it to the letter.
fn backwards(diff: &str, after: &str) -> Option<String> {
    let after: Vec<&str> = after.split_inclusive('\n').collect();
    let mut lines = diff.split_inclusive('\n').peekable();
    let mut before = String::with_capacity(diff.len());
    let mut at = 0;
    let mut any = false;
    while let Some(line) = lines.next() {
        let Some(hunk) = Hunk::of(line) else {
            // Between the hunks there is nothing; before the first there are names.
            if any {
                return None;
            }
            continue;
        };
        any = true;
        let start = hunk.start.checked_sub(at)?;
        for line in after.get(at..at + start)? {
            before.push_str(line);
        }
        at += start;
        let (mut old, mut new) = (hunk.old, hunk.new);
        while old + new > 0 {
            let line = lines.next()?;
            let mut chars = line.chars();
            let sign = chars.next()?;
            let mut text = chars.as_str();
            // The line has no end in the file.
            if lines.next_if(|next| next.starts_with('\\')).is_some() {
                text = text.strip_suffix('\n').unwrap_or(text);
            }
            if matches!(sign, ' ' | '+') {
                new = new.checked_sub(1)?;
                if *after.get(at)? != text {
                    return None;
                }
                at += 1;
            }
            match sign {
                ' ' | '-' => {
                    old = old.checked_sub(1)?;
                    before.push_str(text);
                }
                '+' => {}
                _ => return None,
            }
        }
    }
    for line in after.get(at..)? {
        before.push_str(line);
    }
    any.then_some(before)
}

/// `@@ -1,3 +1,4 @@`.
struct Hunk {
    /// Lines of the new text before it.
    start: usize,
    old: usize,
    new: usize,
}

impl Hunk {
    fn of(line: &str) -> Option<Self> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let counted = |range: &str| match range.split_once(',') {
            Some((start, count)) => Some((start.parse::<usize>().ok()?, count.parse::<usize>().ok()?)),
            None => Some((range.parse().ok()?, 1)),
        };
        let ((_, old), (start, new)) = (counted(old)?, counted(new)?);
        // Where no line is left, the number is of the line before.
        let start = if new == 0 { start } else { start.checked_sub(1)? };
        Some(Self { start, old, new })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use similar::TextDiff;

    use super::*;

    fn diff(before: &str, after: &str) -> String {
        let diff = TextDiff::from_lines(before, after);
        format!("Index: x\n====\n--- x\tOriginal\n+++ x\tWritten\n{}", diff.unified_diff().context_radius(3))
    }

    #[test]
    fn a_diff_taken_backwards_gives_the_text_before() {
        let long = |odd: &str| {
            (1..60)
                .map(|n| if n % 20 == 0 { format!("{odd} {n}\n") } else { format!("line {n}\n") })
                .collect::<String>()
        };
        let cases = [
            ("a\nb\nc\n".to_owned(), "a\nB\nc\n".to_owned()),
            ("a\nb".to_owned(), "a\nb\n".to_owned()),
            ("a\nb\n".to_owned(), "a\nb".to_owned()),
            ("a".to_owned(), "b".to_owned()),
            (String::new(), "new\nfile\n".to_owned()),
            ("old\n".to_owned(), String::new()),
            ("a\r\nb\r\n".to_owned(), "a\r\nc\r\n".to_owned()),
            ("--- a\n+++ b\n@@ x\n".to_owned(), "--- a\n@@ x\n\\ y\n".to_owned()),
            (long("old"), long("new")),
            (long("old"), format!("first\n{}last", long("old"))),
        ];
        for (before, after) in cases {
            assert_eq!(
                backwards(&diff(&before, &after), &after),
                Some(before.clone()),
                "{before:?} {after:?}"
            );
            // Another text is not taken for it.
            assert_eq!(
                backwards(&diff(&before, &after), &format!("x{after}")).filter(|text| *text == before),
                None
            );
        }
        for wrong in [
            "",
            "Index: x\n",
            "@@ -1 +1 @@\n",
            "@@ -1 +1 @@\n-a\n",
            "@@ -x +1 @@\n-a\n+b\n",
            "@@ -9,9 +99 @@\n-a\n+b\n",
            "@@ -1 +1 @@\n-a\n+b\nrest\n",
        ] {
            assert_eq!(backwards(wrong, "b\n"), None, "{wrong:?}");
        }
    }

    fn record(path: &str, change: Change, diff: Option<String>, claimed: bool) -> FileRecord {
        let tool = claimed.then(|| "write_file".to_owned());
        FileRecord { path: path.to_owned(), change, tool, claimed, verified: true, diff }
    }

    #[test]
    fn files_are_put_back_where_nothing_else_changed_them() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (name, text) in [
            ("edited", "a\nB\n"),
            ("made", "new\n"),
            ("touched", "mine\n"),
            ("by-shell", "x\n"),
            ("gone", "y\n"),
        ] {
            fs::write(at(name), text).unwrap();
        }
        files::symlink(at("edited"), at("link")).unwrap();
        let files = [
            record("edited", Change::Modified, Some(diff("a\nb\n", "a\nB\n")), true),
            record("made", Change::Created, Some(diff("", "new\n")), true),
            record("touched", Change::Modified, Some(diff("old\n", "mine\n")), true),
            record("by-shell", Change::Modified, None, false),
            record("gone", Change::Created, Some(diff("", "y\n")), true),
            record("link", Change::Modified, Some(diff("a\nb\n", "a\nB\n")), true),
            FileRecord { verified: false, ..record("never", Change::Created, Some(diff("", "z\n")), true) },
        ];
        let turn = Turn::over(&files, dir.path());
        fs::write(at("touched"), "mine\nand more\n").unwrap();
        fs::remove_file(at("gone")).unwrap();
        let undone: Vec<_> = turn.undo().into_iter().map(|file| (file.name, file.result)).collect();
        let expected = [
            ("edited", Ok(Back::Restored)),
            ("made", Ok(Back::Removed)),
            ("touched", Err(Kept::ChangedSince)),
            ("by-shell", Err(Kept::Unknown)),
            ("gone", Err(Kept::ChangedSince)),
            ("link", Err(Kept::Unknown)),
        ];
        assert_eq!(undone, expected.map(|(name, result)| (name.to_owned(), result)));
        assert_eq!(fs::read_to_string(at("edited")).unwrap(), "a\nb\n");
        assert!(!at("made").exists());
        assert_eq!(fs::read_to_string(at("touched")).unwrap(), "mine\nand more\n");
    }
}
