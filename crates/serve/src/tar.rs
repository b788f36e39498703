//! A directory as a tar archive.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

use ::tar::{Builder, Header};

/// Writes all regular files of a directory under this name; links and devices are left out.
pub fn write(dir: &Path, name: &str, out: impl Write) -> io::Result<()> {
    let mut archive = Builder::new(out);
    add(dir, name, &mut archive)?;
    archive.finish()
}

fn add(dir: &Path, name: &str, archive: &mut Builder<impl Write>) -> io::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(dir)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let inner = format!("{name}/{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            add(&entry.path(), &inner, archive)?;
        } else if kind.is_file() {
            let file = File::open(entry.path())?;
            let meta = file.metadata()?;
            let mut header = Header::new_gnu();
            header.set_mode(0o600);
            header.set_size(meta.len());
            let modified = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            header.set_mtime(modified.as_secs());
            // A file that grows or shrinks meanwhile must not shift what follows.
            let content = file.chain(io::repeat(0)).take(meta.len());
            archive.append_data(&mut header, inner, content)?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_own_tar_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("from");
        std::fs::create_dir_all(from.join("deep/er")).unwrap();
        std::fs::write(from.join("empty"), "").unwrap();
        std::fs::write(from.join("deep/er/exact"), vec![b'x'; 512]).unwrap();
        let long = "n".repeat(120);
        std::fs::write(from.join("deep").join(&long), "too long a name for a header").unwrap();
        std::fs::write(from.join("odd"), vec![b'y'; 1000]).unwrap();
        alhena_sys::files::symlink("/etc/passwd", from.join("link")).unwrap();
        let archive = dir.path().join("it.tar");
        write(&from, "recording", File::create(&archive).unwrap()).unwrap();
        let read = std::process::Command::new("tar").arg("-tvf").arg(&archive).output().unwrap();
        assert!(read.status.success(), "{read:?}");
        let listed = String::from_utf8(read.stdout).unwrap();
        let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
        let long = format!("recording/deep/{long}");
        assert_eq!(names, ["recording/deep/er/exact", &long, "recording/empty", "recording/odd"]);
    }
}
