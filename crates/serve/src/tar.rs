//! A directory as a tar file, in the plain format that every tar reads.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::UNIX_EPOCH;

const BLOCK: usize = 512;

/// Writes all plain files of a directory under this name; links and devices are left out.
pub fn write(dir: &Path, name: &str, out: &mut impl Write) -> io::Result<()> {
    add(dir, name, out)?;
    out.write_all(&[0; 2 * BLOCK])
}

fn add(dir: &Path, name: &str, out: &mut impl Write) -> io::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(dir)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let inner = format!("{name}/{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            add(&entry.path(), &inner, out)?;
        } else if kind.is_file() {
            file(&entry.path(), &inner, out)?;
        }
    }
    Ok(())
}

fn file(path: &Path, name: &str, out: &mut impl Write) -> io::Result<()> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    let modified = meta.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let Some(head) = head(name, meta.len(), modified.as_secs()) else { return Ok(()) };
    out.write_all(&head)?;
    // A file that grows or shrinks meanwhile must not shift what follows.
    let written = io::copy(&mut file.take(meta.len()), out)?;
    let missing = meta.len() - written + padding(meta.len());
    io::copy(&mut io::repeat(0).take(missing), out)?;
    Ok(())
}

fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64) - size
}

/// The head of a file; none for a name that the format has no room for.
fn head(name: &str, size: u64, modified: u64) -> Option<[u8; BLOCK]> {
    let mut head = [0; BLOCK];
    let mut put =
        |at: usize, text: &[u8]| head.get_mut(at..at + text.len()).map(|place| place.copy_from_slice(text));
    let (prefix, last) = match name.len() {
        0..=100 => ("", name),
        _ => {
            let cut = name.match_indices('/').map(|(at, _)| at).find(|at| name.len() - at - 1 <= 100)?;
            (name.get(..cut)?, name.get(cut + 1..)?)
        }
    };
    if prefix.len() > 155 || size >= 1 << 33 {
        return None;
    }
    put(0, last.as_bytes())?;
    put(100, b"0000600\0")?;
    put(108, b"0000000\0")?;
    put(116, b"0000000\0")?;
    put(124, format!("{size:011o}\0").as_bytes())?;
    put(136, format!("{:011o}\0", modified).as_bytes())?;
    put(148, b"        ")?;
    put(156, b"0")?;
    put(257, b"ustar\x0000")?;
    put(345, prefix.as_bytes())?;
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head.get_mut(148..156)?.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Some(head)
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
        std::fs::write(from.join("deep/er/exact"), vec![b'x'; BLOCK]).unwrap();
        std::fs::write(from.join("deep").join("n".repeat(120)), "too long a name to be split").unwrap();
        std::fs::write(from.join("odd"), vec![b'y'; 1000]).unwrap();
        alhena_sys::files::symlink("/etc/passwd", from.join("link")).unwrap();
        let archive = dir.path().join("it.tar");
        write(&from, "recording", &mut File::create(&archive).unwrap()).unwrap();
        let read = std::process::Command::new("tar").arg("-tvf").arg(&archive).output().unwrap();
        assert!(read.status.success(), "{read:?}");
        let listed = String::from_utf8(read.stdout).unwrap();
        let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(names, ["recording/deep/er/exact", "recording/empty", "recording/odd"]);
    }
}
