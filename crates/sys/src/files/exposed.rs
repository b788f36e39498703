//! Whether somebody else could have put a file where it is.
//!
//! A directory that others may write to lets them replace whatever is in it, also the way there. So every part of a path
//! counts, from the root on, and of a link both the link and all it leads to. This is what OpenSSH and sudo ask of files
//! that they obey. An access list shows in the bits for the group, so none can hide a writer.

use std::ffi::OsString;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

/// Somebody but the user and root could change what a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exposed {
    /// The part of the path that they could change.
    pub at: PathBuf,
    /// What lets them.
    pub by: ExposedBy,
}

/// What lets others change a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExposedBy {
    /// It belongs to another user.
    Owner,
    /// Its group may write.
    Group,
    /// Everybody may write.
    Everybody,
    /// It cannot be looked at, or links lead in a circle.
    Unknown,
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.at.display();
        match self.by {
            ExposedBy::Owner => write!(f, "{at} belongs to another user"),
            ExposedBy::Group => write!(f, "the group of {at} may write to it"),
            ExposedBy::Everybody => write!(f, "everybody may write to {at}"),
            ExposedBy::Unknown => write!(f, "{at} cannot be looked at"),
        }
    }
}

/// Looks at every part of an absolute path. Windows' access lists are not looked at.
#[cfg(not(unix))]
pub fn check(_path: &Path) -> Result<(), Exposed> {
    Ok(())
}

/// Looks at every part of an absolute path.
#[cfg(unix)]
pub fn check(path: &Path) -> Result<(), Exposed> {
    unix::check(path)
}

/// Returns true if root owns a file and every directory above it, and only root may write to them.
#[cfg(unix)]
#[must_use]
pub fn is_roots(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(path) = path.canonicalize() else { return false };
    path.ancestors().all(|part| part.metadata().is_ok_and(|data| data.uid() == 0 && data.mode() & 0o022 == 0))
}

/// Returns true if a file is there. Windows' access lists are not looked at.
#[cfg(not(unix))]
#[must_use]
pub fn is_roots(path: &Path) -> bool {
    path.exists()
}

/// As many links as Linux itself follows.
pub const MOST_LINKS: usize = 40;

/// The parts of a path as the system walks it, the next one last.
pub fn parts(path: &Path) -> Vec<OsString> {
    let named = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut parts: Vec<_> = named.collect();
    parts.reverse();
    parts
}

#[cfg(unix)]
mod unix {
    use std::fs::{self, Metadata};
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use super::{Exposed, ExposedBy, MOST_LINKS, parts};

    pub(super) fn check(path: &Path) -> Result<(), Exposed> {
        let unknown = |at: &Path| Exposed { at: at.to_path_buf(), by: ExposedBy::Unknown };
        let mut here = PathBuf::from("/");
        look(&here, &here.symlink_metadata().map_err(|_| unknown(&here))?)?;
        // What is still to be walked, the next part last.
        let mut ahead = parts(path);
        let mut links = 0;
        while let Some(part) = ahead.pop() {
            if part == ".." {
                here.pop();
                continue;
            }
            let next = here.join(&part);
            let data = next.symlink_metadata().map_err(|_| unknown(&next))?;
            look(&next, &data)?;
            if !data.is_symlink() {
                here = next;
                continue;
            }
            links += 1;
            let target = fs::read_link(&next).ok().filter(|_| links <= MOST_LINKS);
            let target = target.ok_or_else(|| unknown(&next))?;
            if target.is_absolute() {
                here = PathBuf::from("/");
            }
            ahead.extend(parts(&target));
        }
        Ok(())
    }

    /// A sticky directory, such as `/tmp`, lets everybody add to it and nobody replace what is another's: what comes next
    /// on the way has to be ours, which is asked of every part anyway.
    fn look(path: &Path, data: &Metadata) -> Result<(), Exposed> {
        let sticky = data.is_dir() && data.mode() & 0o1000 != 0;
        let by = match data.mode() {
            _ if data.uid() != 0 && data.uid() != rustix::process::geteuid().as_raw() => ExposedBy::Owner,
            // A link's own bits mean nothing.
            _ if sticky || data.is_symlink() => return Ok(()),
            mode if mode & 0o002 != 0 => ExposedBy::Everybody,
            mode if mode & 0o020 != 0 => ExposedBy::Group,
            _ => return Ok(()),
        };
        Err(Exposed { at: path.to_path_buf(), by })
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new() -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(tree.at("a/b")).unwrap();
            fs::write(tree.at("a/b/file"), "").unwrap();
            for path in ["", "a", "a/b", "a/b/file"] {
                tree.set(path, 0o755);
            }
            tree
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        fn set(&self, path: &str, mode: u32) {
            fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
        }

        fn found(&self, path: &str, at: &str, by: ExposedBy) {
            assert_eq!(check(&self.at(path)), Err(Exposed { at: self.at(at), by }));
        }
    }

    #[test]
    fn own_file_below_a_sticky_directory_is_safe() {
        let tree = Tree::new();
        assert_eq!(check(&tree.at("a/b/file")), Ok(()));
        tree.set("a", 0o1777);
        assert_eq!(check(&tree.at("a/b/file")), Ok(()));
    }

    #[test]
    fn every_part_of_the_way_counts() {
        for part in ["a", "a/b", "a/b/file"] {
            let tree = Tree::new();
            tree.set(part, 0o757);
            tree.found("a/b/file", part, ExposedBy::Everybody);
            tree.set(part, 0o775);
            tree.found("a/b/file", part, ExposedBy::Group);
        }
    }

    #[test]
    fn link_is_as_safe_as_where_it_is_and_where_it_leads() {
        let tree = Tree::new();
        fs::create_dir(tree.at("safe")).unwrap();
        symlink("../a/b/../b/file", tree.at("safe/relative")).unwrap();
        symlink(tree.at("a"), tree.at("safe/absolute")).unwrap();
        assert_eq!(check(&tree.at("safe/relative")), Ok(()));
        assert_eq!(check(&tree.at("safe/absolute/b/file")), Ok(()));
        tree.set("a", 0o777);
        tree.found("safe/relative", "a", ExposedBy::Everybody);
        tree.found("safe/absolute/b/file", "a", ExposedBy::Everybody);
        tree.set("a", 0o755);
        tree.set("safe", 0o777);
        tree.found("safe/relative", "safe", ExposedBy::Everybody);
    }

    #[test]
    fn circle_and_a_missing_part_are_not_safe() {
        let tree = Tree::new();
        symlink("two", tree.at("one")).unwrap();
        symlink("one", tree.at("two")).unwrap();
        assert_eq!(check(&tree.at("one")).unwrap_err().by, ExposedBy::Unknown);
        tree.found("a/missing/file", "a/missing", ExposedBy::Unknown);
    }

    #[test]
    fn what_belongs_to_another_user_is_not_safe() {
        // Only root can give files away.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let tree = Tree::new();
        std::os::unix::fs::chown(tree.at("a/b"), Some(65534), None).unwrap();
        tree.found("a/b/file", "a/b", ExposedBy::Owner);
        symlink("a", tree.at("link")).unwrap();
        std::os::unix::fs::lchown(tree.at("link"), Some(65534), None).unwrap();
        tree.found("link", "link", ExposedBy::Owner);
    }
}
