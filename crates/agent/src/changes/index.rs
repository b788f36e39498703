//! The names in git's index, read without git.
//!
//! git itself obeys the repository's configuration whatever it is asked for: a sparse index with a promisor remote makes
//! `git ls-files` run whatever the remote's address names. So the file is read here, in versions 2 to 4 of its format, and
//! nothing else of the repository is. An index that is split in two, damaged or of an unknown kind is not known.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::Instant;

use alhena_sys::files;

/// No path is longer; what claims to be is damaged.
const LONGEST_NAME: u64 = 64 << 10;

/// The bytes of an object's name, for the two hashes that git knows. Which one it is stands in the configuration, but only
/// one of them makes sense of a file.
const HASHES: [u64; 2] = [20, 32];

/// An index that was read once and makes sense.
#[derive(Debug)]
pub(super) struct Index {
    /// The directory that the names are relative to.
    pub(super) top: PathBuf,
    /// None where the repository has no index yet.
    file: Option<File>,
    hash: u64,
    deadline: Instant,
}

/// A name in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexedName<'a> {
    pub(super) name: &'a [u8],
    /// Whether git expects it to be there: not what is left out of a sparse checkout.
    pub(super) expected: bool,
}

/// The index of the repository that `root` is in; none without a repository, or when it cannot be read in time.
pub(super) fn of(root: &Path, deadline: Instant) -> Option<Index> {
    let (top, directory) = repository(root)?;
    let file = match files::open(&directory.join("index")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some(Index { top, file: None, hash: 0, deadline });
        }
        Err(_) => return None,
    };
    let mut index = Index { top, file: Some(file), hash: 0, deadline };
    HASHES
        .into_iter()
        .any(|hash| {
            index.hash = hash;
            index.each(|_| {}).is_ok()
        })
        .then_some(index)
}

/// The directory with `.git` in it, and what that leads to.
fn repository(root: &Path) -> Option<(PathBuf, PathBuf)> {
    for top in root.ancestors() {
        let mark = top.join(".git");
        let Ok(data) = fs::metadata(&mark) else { continue };
        let directory = if data.is_dir() { mark } else { linked(&mark, top)? };
        if directory.join("HEAD").symlink_metadata().is_ok() {
            return Some((top.to_path_buf(), directory));
        }
    }
    None
}

/// Where a `.git` file leads: that of a submodule or of a second working tree.
fn linked(mark: &Path, top: &Path) -> Option<PathBuf> {
    let mut text = Vec::new();
    files::open(mark).ok()?.take(LONGEST_NAME).read_to_end(&mut text).ok()?;
    let name = text.strip_prefix(b"gitdir: ")?.trim_ascii_end();
    Some(top.join(files::path_from_bytes(name)))
}

impl Index {
    /// Calls `seen` with every name, each once, in order. What it has seen by the time of an error is not to be relied on.
    pub(super) fn each(&mut self, mut seen: impl FnMut(IndexedName<'_>)) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.rewind()?;
        let left = file.metadata()?.len();
        let mut bytes = Bytes { from: BufReader::with_capacity(1 << 16, file), left };
        let mut header = [0; 12];
        bytes.fill(&mut header)?;
        let (magic, version, count) = (number(&header, 0), number(&header, 4), number(&header, 8));
        if magic != u32::from_be_bytes(*b"DIRC") || !(2..=4).contains(&version) {
            return Err(damaged());
        }
        let (mut name, mut before) = (Vec::new(), Vec::new());
        for position in 0..count {
            if position % 1024 == 0 && Instant::now() > self.deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let expected = bytes.entry(version, self.hash, &before, &mut name)?;
            // The versions of a file that is being merged have one name.
            if name != before {
                if name < before || !is_plain(&name) {
                    return Err(damaged());
                }
                seen(IndexedName { name: &name, expected });
            }
            std::mem::swap(&mut name, &mut before);
        }
        bytes.extensions(self.hash)
    }
}

/// The bytes of a file, and how many there are still.
struct Bytes<R> {
    from: R,
    left: u64,
}

impl<R: BufRead> Bytes<R> {
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.from.read_exact(buffer)?;
        self.left = self.left.checked_sub(buffer.len() as u64).ok_or_else(damaged)?;
        Ok(())
    }

    fn skip(&mut self, count: u64) -> io::Result<()> {
        self.left = self.left.checked_sub(count).ok_or_else(damaged)?;
        match io::copy(&mut self.from.by_ref().take(count), &mut io::sink())? == count {
            true => Ok(()),
            false => Err(damaged()),
        }
    }

    /// Adds to `text` what stands before the next NUL.
    fn until_nul(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        let read = self.from.by_ref().take(LONGEST_NAME).read_until(0, text)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(damaged)?;
        if text.pop() == Some(0) { Ok(()) } else { Err(damaged()) }
    }

    /// One entry: 40 bytes about the file, the object's name, flags, and the name of the file. Whether it is expected to be there.
    fn entry(&mut self, version: u32, hash: u64, before: &[u8], name: &mut Vec<u8>) -> io::Result<bool> {
        const EXTENDED: u16 = 1 << 14;
        const SKIPPED: u16 = 1 << 14;
        const LONG: u16 = 0xfff;
        let mut about = [0; 40];
        self.fill(&mut about)?;
        let kind = number(&about, 24) & 0o170_000;
        self.skip(hash)?;
        let flags = self.short()?;
        let more = if version >= 3 && flags & EXTENDED != 0 { Some(self.short()?) } else { None };
        name.clear();
        if version == 4 {
            let dropped = self.variable_number()?;
            let kept = before.len().checked_sub(dropped).ok_or_else(damaged)?;
            name.extend(before.iter().take(kept));
            self.until_nul(name)?;
        } else {
            let length = u64::from(flags & LONG);
            let mut padding = 1;
            if flags & LONG == LONG {
                self.until_nul(name)?;
                padding = 0;
            } else {
                name.resize(length as usize, 0);
                self.fill(name)?;
            }
            // One to eight NULs make the entry's length a multiple of eight.
            let written = 42 + hash + 2 * u64::from(more.is_some()) + name.len() as u64;
            self.skip(7 - written % 8 + padding)?;
        }
        match kind {
            0o100_000 | 0o120_000 | 0o160_000 if more.unwrap_or(0) & SKIPPED == 0 => Ok(true),
            // A directory stands for everything in it that a sparse checkout leaves out.
            0o100_000 | 0o120_000 | 0o160_000 | 0o040_000 => Ok(false),
            _ => Err(damaged()),
        }
    }

    fn short(&mut self) -> io::Result<u16> {
        let mut bytes = [0; 2];
        self.fill(&mut bytes)?;
        Ok(u16::from_be_bytes(bytes))
    }

    /// Seven bits a byte, the high bit meaning that more follow; each further byte adds one, so that no number has two forms.
    fn variable_number(&mut self) -> io::Result<usize> {
        let mut number = 0_usize;
        loop {
            let mut byte = [0];
            self.fill(&mut byte)?;
            let [byte] = byte;
            number = number.checked_mul(128).ok_or_else(damaged)? + usize::from(byte & 127);
            if byte & 128 == 0 {
                return Ok(number);
            }
            number += 1;
        }
    }

    /// What follows the entries up to the checksum. Names in capitals may be passed over; one that may not and is not known
    /// here changes what the entries mean, as `link` does, which says that most of them are in another file.
    fn extensions(&mut self, hash: u64) -> io::Result<()> {
        while self.left > hash {
            let mut header = [0; 8];
            self.fill(&mut header)?;
            let [first, ..] = header;
            if !first.is_ascii_uppercase() && !header.starts_with(b"sdir") {
                return Err(damaged());
            }
            self.skip(u64::from(number(&header, 4)))?;
        }
        if self.left == hash { Ok(()) } else { Err(damaged()) }
    }
}

/// Whether a name stays below the top, as every name that git wrote does.
fn is_plain(name: &[u8]) -> bool {
    let name = name.strip_suffix(b"/").unwrap_or(name);
    name.split(|byte| *byte == b'/')
        .all(|part| !part.is_empty() && part != b"." && part != b".." && part != b".git")
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|bytes| bytes.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn damaged() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
