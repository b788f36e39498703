//! The state of a folder, as far as a session reads it once: when it changes, a session that began before is of no use.

use std::collections::VecDeque;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use alhena_session::fingerprint::sha256_hex;
use alhena_sys::files::{self, Stamp};

/// The CLI shows the model up to 200 entries of a folder (0.61.0); what lies deeper than those it does not tell.
const MOST_ENTRIES: usize = 400;
/// Directories that it does not look into.
const PASSED_OVER: &[&str] = &[".git", "node_modules", "dist", "target"];
/// Of the folder's own, below its `.gemini`: settings, commands, skills, agents.
const DEEPEST: usize = 4;

/// What a session is told when it begins: the date, which files there are, and what the instructions in and above the folder say.
pub(super) fn state(dir: &Path, context_names: &[String]) -> String {
    let mut text = Text::default();
    let today = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 3600);
    text.add("hour", &today.to_string());
    for folder in dir.ancestors() {
        for name in context_names {
            text.context(&folder.join(name));
            text.context(&folder.join(".gemini").join(name));
        }
        // Of a repository it reads that it is there, and what is to be ignored (0.61.0). What is in such a file counts, and not which
        // file it is: a place that was made anew like the one before is the same.
        for name in [".geminiignore", ".gitignore", ".git/info/exclude"] {
            text.file(&folder.join(name));
        }
        if let Ok(repository) = fs::symlink_metadata(folder.join(".git")) {
            text.add("repository", if repository.is_dir() { "directory" } else { "elsewhere" });
        }
    }
    text.tree(&dir.join(".gemini"), DEEPEST);
    text.tree(&dir.join(".agents"), DEEPEST);
    text.listing(dir, context_names);
    text.finish()
}

/// Something that is different when what it is made of is.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    pub(super) fn add(&mut self, name: &str, value: &str) {
        // With its length, so that nothing can look like two things.
        self.0.push_str(&format!("{name} {}:{value}\n", value.len()));
    }

    /// What stands in a small file.
    pub(super) fn file(&mut self, path: &Path) {
        const LARGEST: u64 = 1 << 20;
        let Ok(data) = fs::metadata(path) else { return };
        match fs::read(path) {
            Ok(bytes) if data.is_file() && data.len() <= LARGEST => {
                self.add(&path.to_string_lossy(), &sha256_hex(&bytes));
            }
            _ => self.stamp(path),
        }
    }

    /// What instructions say. Those that import other files are never the same: who knows what these say.
    fn context(&mut self, path: &Path) {
        self.file(path);
        if fs::read(path).is_ok_and(|text| text.contains(&b'@')) {
            self.add("now", &format!("{:?}", Instant::now()));
        }
    }

    /// When it was last changed.
    pub(super) fn stamp(&mut self, path: &Path) {
        if let Ok(data) = fs::metadata(path) {
            self.add(&path.to_string_lossy(), &stamp(&data));
        }
    }

    /// All that is below a directory, so deep.
    pub(super) fn tree(&mut self, dir: &Path, depth: usize) {
        let mut names: Vec<_> = fs::read_dir(dir).into_iter().flatten().flatten().collect();
        names.sort_by_key(fs::DirEntry::file_name);
        for entry in names {
            let path = entry.path();
            self.stamp(&path);
            let passed_over = PASSED_OVER.iter().any(|name| entry.file_name() == *name);
            if depth > 1 && !passed_over && path.is_dir() {
                self.tree(&path, depth - 1);
            }
        }
    }

    /// What the model is shown of a folder, and the instructions in it.
    fn listing(&mut self, dir: &Path, context_names: &[String]) {
        let mut folders = VecDeque::from([dir.to_owned()]);
        let mut left = MOST_ENTRIES;
        while let Some(folder) = folders.pop_front() {
            let mut entries: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().collect();
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                if left == 0 {
                    return;
                }
                left -= 1;
                let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
                let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
                self.add(&path.to_string_lossy(), if is_dir { "/" } else { "" });
                if is_dir && !PASSED_OVER.contains(&name.as_str()) {
                    folders.push_back(path);
                } else if context_names.contains(&name) {
                    self.context(&path);
                }
            }
        }
    }

    pub(super) fn finish(self) -> String {
        sha256_hex(self.0.as_bytes())
    }
}

fn stamp(data: &Metadata) -> String {
    format!("{} {:?} {:?} {}", data.len(), data.file_type(), Stamp::of(data), files::mode(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_changes_with_all_that_a_session_reads_once_and_with_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir_all(work.join("sub")).unwrap();
        fs::write(work.join("a.txt"), "a").unwrap();
        let names = ["GEMINI.md".to_owned()];
        let mut states = vec![state(&work, &names)];
        fs::write(work.join("a.txt"), "another text").unwrap();
        assert_eq!(states, [state(&work, &names)]);
        let changes: [(&str, &str); 9] = [
            ("work/GEMINI.md", "one"),
            ("work/GEMINI.md", "two"),
            ("GEMINI.md", "above"),
            ("work/sub/GEMINI.md", "below"),
            ("work/new.txt", ""),
            ("work/.gemini/skills/x/SKILL.md", "skill"),
            ("work/.gitignore", "target"),
            ("work/.git/HEAD", "repository"),
            ("work/.git/info/exclude", "*.log"),
        ];
        for (path, text) in changes {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            let now = state(&work, &names);
            assert!(!states.contains(&now), "{text}");
            states.push(now);
        }
        // The same again is the same.
        fs::remove_dir_all(work.join(".git")).unwrap();
        fs::create_dir_all(work.join(".git/info")).unwrap();
        fs::write(work.join(".git/info/exclude"), "*.log").unwrap();
        fs::remove_file(work.join(".gitignore")).unwrap();
        fs::write(work.join(".gitignore"), "target").unwrap();
        assert_eq!(states.last(), Some(&state(&work, &names)));
    }
}
