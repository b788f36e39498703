//! What is said to an agent: a named pipe, and what does not fit into it yet.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use alhena_sys::files;
use alhena_sys::poll::Wanted;

/// The agent's standard input, from our side. Nobody is waited for: what the agent does not take now waits here.
pub(super) struct Pipe {
    file: File,
    unsaid: Vec<u8>,
}

impl Pipe {
    /// Makes the pipe. It is opened for both directions, so that neither side waits for the other to open it, and writing never fails
    /// because the agent is gone: its keeper tells that.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: files::create_pipe(path)?, unsaid: Vec::new() })
    }

    /// Says a line.
    pub(super) fn say(&mut self, line: &[u8]) {
        self.unsaid.extend_from_slice(line);
        self.go_on();
    }

    /// Says what could not be said before.
    pub(super) fn go_on(&mut self) {
        while !self.unsaid.is_empty() {
            match self.file.write(&self.unsaid) {
                Ok(said) => drop(self.unsaid.drain(..said)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_full) => return,
            }
        }
    }

    /// To be waited for, as long as there is something to say.
    pub(super) fn wanted(&self) -> Option<Wanted<'_>> {
        (!self.unsaid.is_empty()).then(|| Wanted::writable(&self.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_line_longer_than_the_pipe_is_said_as_the_agent_takes_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stdin");
        let mut pipe = Pipe::create(&path).unwrap();
        let line = vec![b'x'; 300_000];
        pipe.say(&line);
        assert!(pipe.wanted().is_some());
        let mut agent = File::open(&path).unwrap();
        let mut heard = 0;
        while heard < line.len() {
            heard += agent.read(&mut vec![0; 1 << 16]).unwrap();
            pipe.go_on();
        }
        assert!(pipe.wanted().is_none());
    }
}
