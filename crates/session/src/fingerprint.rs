//! Fingerprints: what a file held at one moment, to tell whether somebody else changed it meanwhile.

use std::io::{self, Read};
use std::path::Path;

use alhena_sys::files::open;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What a file held at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    size: u64,
    sha256: String,
}

impl Fingerprint {
    /// Of a file, following links; none when there is no such file.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let mut file = match open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut hash = Sha256::new();
        let mut size = 0;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            size += read as u64;
            hash.update(buffer.get(..read).unwrap_or_default());
        }
        Ok(Some(Self { size, sha256: hex(&hash.finalize()) }))
    }

    /// How much it was.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Of bytes in memory.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { size: bytes.len() as u64, sha256: sha256_hex(bytes) }
    }
}

/// The SHA-256 of some bytes, in lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_fingerprint_is_that_of_the_content() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        assert_eq!(Fingerprint::of(&file).unwrap(), None);
        fs::write(&file, "abc").unwrap();
        assert_eq!(Fingerprint::of(&file).unwrap(), Some(Fingerprint::of_bytes(b"abc")));
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
