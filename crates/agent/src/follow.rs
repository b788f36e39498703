//! Following a file that another process writes.
//!
//! The CLI's output goes to regular files, because on a pipe it loses the end of what it wrote (0.61.0: with a 1 MB
//! prompt and a slow reader, runs lost their `result` and still exited 0). The system says when a file grew.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A file that grows.
pub struct Follower {
    file: File,
    buffer: Vec<u8>,
    read: u64,
}

impl Follower {
    /// Creates the file if it is not there yet.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        Ok(Self { file, buffer: vec![0; 128 << 10], read: 0 })
    }

    /// A file that must be there.
    pub fn read_only(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, buffer: vec![0; 16 << 10], read: 0 })
    }

    /// What came since the last time, up to one buffer; empty when there is nothing new now.
    pub fn next(&mut self) -> io::Result<&[u8]> {
        self.next_until(u64::MAX)
    }

    /// The same, not beyond this position.
    pub fn next_until(&mut self, end: u64) -> io::Result<&[u8]> {
        let room = usize::try_from(end.saturating_sub(self.read)).unwrap_or(usize::MAX);
        let size = self.buffer.len().min(room);
        let count = loop {
            match self.file.read(self.buffer.get_mut(..size).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.read += count as u64;
        Ok(self.buffer.get(..count).unwrap_or_default())
    }

    /// How much has been read.
    pub fn position(&self) -> u64 {
        self.read
    }

    /// How much there is.
    pub fn len(&self) -> u64 {
        self.file.metadata().map_or(self.read, |data| data.len())
    }
}
