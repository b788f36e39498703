//! What `.gitignore` says, as git reads it: the file nearest to a path decides first, then the ones above it up to the
//! repository's own directory, then the repository's private list, then the user's.
//!
//! A directory that has `.gitignore` files without being a repository is treated like one: who writes such a file means it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// No such file is larger; what is larger is somebody's mistake, and not worth the time.
const LIMIT: u64 = 1 << 20;

/// The rules for one directory: its own, and the ones above.
#[derive(Clone)]
pub(super) struct Rules(Option<Arc<Layer>>);

struct Layer {
    own: Gitignore,
    above: Rules,
}

impl Rules {
    /// The rules above `root`, a real path.
    pub(super) fn above(root: &Path) -> Self {
        let repository = root.ancestors().skip(1).position(|directory| directory.join(".git").exists());
        let above: Vec<_> = root.ancestors().skip(1).take(repository.map_or(0, |depth| depth + 1)).collect();
        let top = above.last().copied().unwrap_or(root);
        let mut rules = Self::of_repository(top);
        for directory in above.into_iter().rev() {
            rules = rules.with_file(directory, &directory.join(".gitignore"));
        }
        rules
    }

    /// The rules for what is in a directory, given the names in it and the rules for the directory above.
    pub(super) fn inside(self, directory: &Path, names: &[impl AsRef<OsStr>]) -> Self {
        let has = |wanted: &str| names.iter().any(|name| name.as_ref() == wanted);
        // What is written above a repository does not concern it.
        let rules = if has(".git") { Self::of_repository(directory) } else { self };
        if has(".gitignore") { rules.with_file(directory, &directory.join(".gitignore")) } else { rules }
    }

    /// Whether a path in the directory that these rules are for is ignored.
    pub(super) fn ignore(&self, path: &Path, is_directory: bool) -> bool {
        let mut next = &self.0;
        while let Some(layer) = next {
            match layer.own.matched(path, is_directory) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => next = &layer.above.0,
            }
        }
        false
    }

    /// Whether there are any.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The user's list and the repository's private one.
    fn of_repository(top: &Path) -> Self {
        let (users, _bad_lines) = GitignoreBuilder::new(top).build_global();
        let private: PathBuf = top.join(".git/info/exclude");
        Self(None).with(users).with_file(top, &private)
    }

    fn with_file(self, directory: &Path, file: &Path) -> Self {
        // Links are not followed, as git does not, and a pipe would never end.
        if !file.symlink_metadata().is_ok_and(|data| data.is_file() && data.len() <= LIMIT) {
            return self;
        }
        let mut builder = GitignoreBuilder::new(directory);
        let _bad_lines = builder.add(file);
        match builder.build() {
            Ok(own) => self.with(own),
            Err(_) => self,
        }
    }

    fn with(self, own: Gitignore) -> Self {
        if own.is_empty() { self } else { Self(Some(Arc::new(Layer { own, above: self }))) }
    }
}
