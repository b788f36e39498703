//! Whole files into memory that is used again.
//!
//! Reading into memory that does not begin at a page was up to four times as slow on one machine: the kernel then copies
//! piece by piece. So there is a little more memory than needed, and the file begins where a page does.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

pub(crate) const PAGE: usize = 4096;

/// Reads all of a file into a buffer, and gives the part of the buffer that holds it.
pub(crate) fn read(file: &mut File, buffer: &mut Vec<u8>) -> io::Result<Range<usize>> {
    let expected = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    make_room(buffer, expected + 1);
    let mut start = buffer.as_ptr().align_offset(PAGE).min(PAGE);
    let mut end = start;
    loop {
        if end == buffer.len() {
            // It has grown since; growing can move the memory.
            let held = end - start;
            let taken: Vec<u8> = buffer.get(start..end).unwrap_or_default().to_vec();
            make_room(buffer, held * 2);
            start = buffer.as_ptr().align_offset(PAGE).min(PAGE);
            end = start + held;
            if let Some(place) = buffer.get_mut(start..end) {
                place.copy_from_slice(&taken);
            }
        }
        match file.read(buffer.get_mut(end..).unwrap_or_default()) {
            Ok(0) => return Ok(start..end),
            Ok(count) => end += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn make_room(buffer: &mut Vec<u8>, size: usize) {
    if buffer.len() < size + PAGE {
        *buffer = vec![0; size + PAGE];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_whatever_the_buffer_held_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut buffer = Vec::new();
        for size in [0, 1, 5000, 1_000_000, 17] {
            let text: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
            std::fs::write(&path, &text).unwrap();
            let range = read(&mut File::open(&path).unwrap(), &mut buffer).unwrap();
            assert_eq!(&buffer[range], text, "{size}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_says_nothing_about_its_size_is_read_whole_too() {
        let mut buffer = Vec::new();
        let mut file = File::open("/proc/self/environ").unwrap();
        let range = read(&mut file, &mut buffer).unwrap();
        assert_eq!(&buffer[range], std::fs::read("/proc/self/environ").unwrap());
    }
}
