//! Events on disk: one JSON object a line, the line's number is the event's.
//!
//! Whoever writes tells how far it is; whoever reads reads from the file. So a reader that comes back later misses nothing, and a
//! slow one costs no memory: what it has not taken is in the file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use alhena_batch::result::harmless_json;
use alhena_sys::files;
use parking_lot::Mutex;
use tokio::sync::watch;

/// A log that may still grow.
#[derive(Debug)]
pub struct Log {
    file: File,
    told: watch::Sender<Told>,
    /// One writes at a time.
    writing: Mutex<()>,
}

/// How far a log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// So many bytes are whole lines.
    pub bytes: u64,
    /// So many lines.
    pub lines: u64,
    /// Nothing comes any more.
    pub is_over: bool,
}

impl Log {
    /// A new one.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = files::private(OpenOptions::new().read(true).append(true).create_new(true)).open(path)?;
        Ok(Self { file, told: watch::Sender::new(Told::default()), writing: Mutex::default() })
    }

    /// One that nobody writes any more. Of a line that was cut off nothing counts.
    pub fn of_old(path: &Path) -> io::Result<Self> {
        let file = files::open(path)?;
        let told = Told { is_over: true, ..whole_lines(&file)? };
        Ok(Self { file, told: watch::Sender::new(told), writing: Mutex::default() })
    }

    /// Puts the last lines behind what is there, where whoever wrote it was killed. They are told the number of the first.
    pub fn end_old(path: &Path, last: impl FnOnce(u64) -> Vec<Vec<u8>>) -> io::Result<()> {
        let mut file = files::private(OpenOptions::new().read(true).append(true).create(true)).open(path)?;
        let told = whole_lines(&file)?;
        file.set_len(told.bytes)?;
        let lines: Vec<u8> = last(told.lines).into_iter().flat_map(ended).collect();
        file.write_all(&lines)
    }

    /// Adds what `line` makes of the next line's number.
    pub fn append(&self, line: impl FnOnce(u64) -> Vec<u8>) -> io::Result<()> {
        let _one_at_a_time = self.writing.lock();
        let told = *self.told.borrow();
        if told.is_over {
            return Ok(());
        }
        let line = ended(line(told.lines));
        if let Err(error) = (&self.file).write_all(&line) {
            // A disk that is full may have taken a part of it.
            self.file.set_len(told.bytes)?;
            return Err(error);
        }
        self.told.send_modify(|told| {
            told.bytes += line.len() as u64;
            told.lines += 1;
        });
        Ok(())
    }

    /// Nothing comes any more.
    pub fn end(&self) {
        self.told.send_modify(|told| told.is_over = true);
    }

    /// How far it is, and word of every change.
    pub fn follow(&self) -> watch::Receiver<Told> {
        self.told.subscribe()
    }

    /// Whether it is over, and whoever has this line has all of it.
    pub fn has_nothing_after(&self, line: Option<u64>) -> bool {
        let told = *self.told.borrow();
        told.is_over && line.is_some_and(|line| line.saturating_add(1) >= told.lines)
    }

    /// How far it is.
    #[cfg(test)]
    pub fn told(&self) -> Told {
        *self.told.borrow()
    }

    /// Reads from there on.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        files::read_at(&self.file, buffer, offset)
    }
}

/// A value as a line, in which nothing is left that a terminal would obey.
pub fn json_line(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_string(value).map(|text| harmless_json(text).into_bytes()).unwrap_or_default()
}

/// Exactly one line end, at the end.
fn ended(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

fn whole_lines(file: &File) -> io::Result<Told> {
    let (mut told, mut read, mut buffer) = (Told::default(), 0, vec![0; 64 << 10]);
    loop {
        let count = files::read_at(file, &mut buffer, read)?;
        let Some(piece) = buffer.get(..count).filter(|piece| !piece.is_empty()) else { return Ok(told) };
        for end in memchr::memchr_iter(b'\n', piece) {
            told.lines += 1;
            told.bytes = read + end as u64 + 1;
        }
        read += count as u64;
    }
}
