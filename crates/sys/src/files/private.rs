//! Files that only the user may read, however they come to be: new, over an older one, by way of a link.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{Existing, Unfinished};

/// As many links in a row as Linux follows.
const MOST_LINKS: usize = 40;

/// Replaces a file as a whole or not at all, and leaves it readable by the user alone, whatever its mode was. A link of the
/// user's is followed, also one to a file that is not there yet.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = private_target(path)?;
    let mut unfinished = Unfinished::beside(&target, 0o600)?;
    unfinished.file.write_all(bytes)?;
    unfinished.file.set_permissions(fs::Permissions::from_mode(0o600))?;
    unfinished.file.sync_all()?;
    unfinished.appear(&target, Existing::Replace)
}

/// Says beforehand why [`replace_private`] could not write there. Nothing is made, and nothing is left.
pub fn can_be_replaced(path: &Path) -> io::Result<()> {
    let target = private_target(path)?;
    // One that the user protects from being written stays as it is.
    if target.exists() {
        OpenOptions::new().append(true).open(&target)?;
    }
    Unfinished::beside(&target, 0o600).map(drop)
}

/// Where a path leads to, over links that nobody else has laid: a regular file, or none.
fn private_target(path: &Path) -> io::Result<PathBuf> {
    let refused = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
    let own = rustix::process::geteuid().as_raw();
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&target) {
            Ok(there) if there.file_type().is_symlink() => {
                if ![own, 0].contains(&there.uid()) {
                    return Err(refused("it is a link of somebody else"));
                }
                let to = fs::read_link(&target)?;
                target = target.parent().unwrap_or(Path::new(".")).join(to);
            }
            Ok(there) if there.is_file() => return Ok(target),
            Ok(_) => return Err(refused("it is not a regular file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(target),
            Err(error) => return Err(error),
        }
    }
    Err(refused("it is a link to itself"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_private_file_is_one_whatever_was_there_before() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("open"), "old").unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o644)).unwrap();
        symlink("open", at("link")).unwrap();
        symlink("nothing", at("dangling")).unwrap();
        for (name, file) in [("new", "new"), ("link", "open"), ("dangling", "nothing")] {
            can_be_replaced(&at(name)).unwrap();
            assert_eq!(at(file).exists(), file == "open", "{name} was made by the question");
            replace_private(&at(name), b"new").unwrap();
            assert_eq!((fs::read(at(file)).unwrap(), mode(&at(file))), (b"new".to_vec(), 0o600), "{name}");
        }
        assert!(at("link").is_symlink() && at("dangling").is_symlink());
        assert_eq!(
            super::super::names_in(dir.path()).unwrap(),
            ["dangling", "link", "new", "nothing", "open"]
        );
    }

    #[test]
    fn what_is_no_file_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        symlink("loop", at("loop")).unwrap();
        symlink("nowhere/file", at("into nowhere")).unwrap();
        symlink("/dev/null", at("device")).unwrap();
        for name in ["", "loop", "into nowhere", "device"] {
            assert!(
                can_be_replaced(&at(name)).is_err() && replace_private(&at(name), b"x").is_err(),
                "{name}"
            );
        }
    }
}
