//! Following a file that another process writes.
//!
//! The CLI's output goes to regular files, because on a pipe it loses the end of what it wrote (0.61.0: with a 1 MB
//! prompt and a slow reader, runs lost their `result` and still exited 0). The system says when a file grew.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use alhena_sys::files;

/// A file that grows.
pub struct Follower {
    file: File,
    buffer: Vec<u8>,
    read: u64,
    forgotten: u64,
}

impl Follower {
    /// Creates the file if it is not there yet.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).append(true).create(true).open(path)?;
        Ok(Self { file, buffer: vec![0; 128 << 10], read: 0, forgotten: 0 })
    }

    /// A file that must be there.
    pub fn read_only(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, buffer: vec![0; 16 << 10], read: 0, forgotten: 0 })
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

    /// Gives the room on the disk back that what has been read takes, from time to time. Nobody can read it again; the file keeps its length,
    /// so that whoever writes goes on where it is.
    pub fn forget(&mut self) {
        const AT_ONCE: u64 = 4 << 20;
        if self.read - self.forgotten < AT_ONCE {
            return;
        }
        // Where the file system cannot do that, the file stays as it is.
        let _kept = files::punch_hole(&self.file, self.forgotten, self.read - self.forgotten);
        self.forgotten = self.read;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_has_been_read_and_forgotten_takes_no_room_and_the_rest_is_read_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output");
        let mut writer = File::options().append(true).create(true).open(&path).unwrap();
        let mut follower = Follower::open(&path).unwrap();
        let piece = vec![b'x'; 1 << 20];
        let mut read = 0;
        for _ in 0..12 {
            writer.write_all(&piece).unwrap();
            loop {
                let count = follower.next().unwrap().len();
                read += count;
                if count == 0 {
                    break;
                }
            }
            follower.forget();
        }
        writer.write_all(b"end").unwrap();
        assert_eq!((read, follower.next().unwrap()), (12 << 20, &b"end"[..]));
        let data = std::fs::metadata(&path).unwrap();
        assert_eq!(data.len(), (12 << 20) + 3);
        let size = files::size_on_disk(&data);
        assert!(size < 6 << 20, "{size} bytes");
    }
}
