//! Writes a recording while the run goes on: whatever kills Alhena, what had happened by then is there.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_model::{End, Input, Outcome};
use alhena_sys::files;
use memchr::memrchr;

use super::mask::Mask;
use super::{Header, RecordedInput, names};

/// A line is held back until it is whole, because a secret may be in two pieces of it; of a longer line only so much.
const HELD: usize = 1 << 20;
/// No secret is so long in any form.
const OVERLAP: usize = 64 << 10;

/// So much of stderr at a time.
const PIECE: u64 = 1 << 20;
/// How long the rest of it is copied when the run is over: nobody waits for a flood.
const COPYING_THE_REST: Duration = Duration::from_secs(3);

/// Keeps a run.
pub(crate) struct Recorder {
    dir: PathBuf,
    mask: Mask,
    inputs: File,
    stdout: Masked,
    stderr: Masked,
    stderr_source: Source,
    /// So much of it may still come; a CLI that is being stopped for too much of it goes on for a while.
    stderr_left: u64,
    sessions: Vec<PathBuf>,
    /// Why nothing more can be written.
    broken: Option<io::Error>,
}

impl Recorder {
    /// Makes the directory, which must be empty or new, and writes down what was asked. `stderr` is where the CLI will write
    /// its own, of which so much is kept.
    pub(crate) fn new(
        dir: &Path,
        header: &Header,
        mask: Mask,
        stderr: &Path,
        most_stderr: u64,
    ) -> io::Result<Self> {
        files::create_private_dir(dir)?;
        if fs::read_dir(dir)?.next().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is not empty; a recording needs a directory of its own", dir.display()),
            ));
        }
        files::set_mode(dir, 0o700)?;
        let dir = fs::canonicalize(dir)?;
        Self::begin(&dir, header, mask, stderr, most_stderr).inspect_err(|_| {
            // So that it can be given again.
            for name in [names::HEADER, names::INPUTS, names::STDOUT, names::STDERR] {
                let _ = fs::remove_file(dir.join(name));
            }
        })
    }

    fn begin(dir: &Path, header: &Header, mask: Mask, stderr: &Path, most_stderr: u64) -> io::Result<Self> {
        let header = serde_json::to_string_pretty(header)? + "\n";
        private(&dir.join(names::HEADER))?.write_all(&mask.hide(header.as_bytes()))?;
        Ok(Self {
            inputs: private(&dir.join(names::INPUTS))?,
            stdout: Masked::new(private(&dir.join(names::STDOUT))?),
            stderr: Masked::new(private(&dir.join(names::STDERR))?),
            stderr_source: Source::At(stderr.to_owned()),
            stderr_left: most_stderr,
            dir: dir.to_owned(),
            mask,
            sessions: Vec::new(),
            broken: None,
        })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// What the CLI has written, as it is read.
    pub(crate) fn output(&mut self, bytes: &[u8]) {
        self.attempt(|this| this.stdout.write(&this.mask, bytes));
    }

    /// What was fed to the interpreter, after so many lines of output.
    pub(crate) fn input(&mut self, input: &Input<'_>, after_lines: u64) {
        self.entry(after_lines, input);
    }

    /// What follows of the output was not read.
    pub(crate) fn cut_short(&mut self, after_lines: u64) {
        self.entry(after_lines, &RecordedInput::CutShort);
    }

    fn entry(&mut self, after_lines: u64, entry: &impl serde::Serialize) {
        self.attempt(|this| {
            let line = serde_json::to_string(&(after_lines, entry))? + "\n";
            this.inputs.write_all(&this.mask.hide(line.as_bytes()))
        });
    }

    /// What has come on stderr since; not more than a piece of it, because there is more to do.
    pub(crate) fn follow_stderr(&mut self) {
        self.attempt(|this| {
            let Some(source) = this.stderr_source.open()? else { return Ok(()) };
            let piece = PIECE.min(this.stderr_left);
            this.stderr_left -= copy(source.take(piece), &mut this.stderr, &this.mask)?;
            Ok(())
        });
    }

    /// What there is more of it than was copied.
    fn stderr_left_out(&mut self) -> u64 {
        let left = |file: &mut File| Ok(file.metadata()?.len().saturating_sub(file.stream_position()?));
        self.stderr_source.open().and_then(|source| source.map_or(Ok(0), left)).unwrap_or(0)
    }

    pub(crate) fn sessions(&mut self, published: &[PathBuf]) {
        self.sessions = published.to_vec();
    }

    /// Writes the rest. Gives back what has to be said if the recording is not whole.
    pub(crate) fn finish(mut self, end: &End, outcome: &Outcome, after_lines: u64) -> Option<String> {
        let deadline = Instant::now() + COPYING_THE_REST;
        while self.broken.is_none()
            && self.stderr_left > 0
            && self.stderr_left_out() > 0
            && Instant::now() < deadline
        {
            self.follow_stderr();
        }
        let left_out = self.stderr_left_out();
        self.attempt(|this| this.stdout.close(&this.mask));
        self.attempt(|this| this.stderr.close(&this.mask));
        for session in std::mem::take(&mut self.sessions) {
            self.attempt(|this| this.keep_session(&session));
        }
        self.attempt(|this| {
            let mut to = Masked::new(private(&this.dir.join(names::OUTCOME))?);
            // In pieces: to look through a long answer at once takes twenty times its memory.
            let mut pieces = BufWriter::with_capacity(64 << 10, Masking { to: &mut to, mask: &this.mask });
            serde_json::to_writer_pretty(&mut pieces, outcome)?;
            pieces.write_all(b"\n")?;
            pieces.flush()?;
            drop(pieces);
            to.close(&this.mask)
        });
        // Last, because it says that the rest is there.
        self.input(&Input::End(Box::new(end.clone())), after_lines);
        let missing = match self.broken {
            Some(error) => error.to_string(),
            None if left_out > 0 => format!("{left_out} bytes of stderr were left out"),
            None => return None,
        };
        Some(format!("The recording in {} is not whole: {missing}", self.dir.display()))
    }

    fn keep_session(&mut self, path: &Path) -> io::Result<()> {
        let Some(name) = path.file_name() else { return Ok(()) };
        let dir = self.dir.join(names::SESSIONS);
        files::create_private_dir(&dir)?;
        let mut to = Masked::new(private(&dir.join(name))?);
        let _all = copy(File::open(path)?, &mut to, &self.mask)?;
        to.close(&self.mask)
    }

    /// Does something unless it failed before: a recording with a hole in it would be taken for whole.
    fn attempt(&mut self, what: impl FnOnce(&mut Self) -> io::Result<()>) {
        if self.broken.is_none() {
            self.broken = what(self).err();
        }
    }
}

/// A file that is made later.
enum Source {
    At(PathBuf),
    /// As far as it has been read.
    Open(File),
}

impl Source {
    fn open(&mut self) -> io::Result<Option<&mut File>> {
        if let Source::At(path) = self {
            match File::open(path) {
                Ok(file) => *self = Source::Open(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(match self {
            Source::Open(file) => Some(file),
            Source::At(_) => None,
        })
    }
}

/// Copies to the end, and says how much that was.
fn copy(mut from: impl Read, to: &mut Masked, mask: &Mask) -> io::Result<u64> {
    let (mut buffer, mut copied) = (vec![0; 64 << 10], 0);
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(copied),
            count => {
                to.write(mask, buffer.get(..count).unwrap_or_default())?;
                copied += count as u64;
            }
        }
    }
}

/// A new file that nobody else can read.
fn private(path: &Path) -> io::Result<File> {
    files::create_new(path, 0o600)
}

/// A file without secrets.
struct Masked {
    to: File,
    held: Vec<u8>,
}

impl Masked {
    fn new(to: File) -> Self {
        Self { to, held: Vec::new() }
    }

    fn write(&mut self, mask: &Mask, bytes: &[u8]) -> io::Result<()> {
        self.held.extend_from_slice(bytes);
        let mut ready = memrchr(b'\n', &self.held).map_or(0, |at| at + 1);
        if self.held.len() - ready > HELD {
            ready = mask.settled(&self.held, self.held.len() - OVERLAP);
        }
        self.put(mask, ready)
    }

    fn close(&mut self, mask: &Mask) -> io::Result<()> {
        self.put(mask, self.held.len())
    }

    fn put(&mut self, mask: &Mask, count: usize) -> io::Result<()> {
        let rest = self.held.split_off(count.min(self.held.len()));
        let ready = std::mem::replace(&mut self.held, rest);
        let mut hidden = Vec::with_capacity(ready.len());
        for line in ready.split_inclusive(|byte| *byte == b'\n') {
            hidden.extend_from_slice(&mask.hide(line));
        }
        self.to.write_all(&hidden)
    }
}

/// For those who write to anything that can be written to.
struct Masking<'a> {
    to: &'a mut Masked,
    mask: &'a Mask,
}

impl Write for Masking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(self.mask, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(pieces: &[&[u8]], secret: &str) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mask = Mask::new([("KEY".to_owned(), secret.to_owned())]);
        let mut masked = Masked::new(file.reopen().unwrap());
        pieces.iter().for_each(|piece| masked.write(&mask, piece).unwrap());
        masked.close(&mask).unwrap();
        fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn a_secret_in_two_pieces_is_hidden() {
        assert_eq!(
            masked(&[b"a secret-va", b"lue b\nc sec", b"ret-value"], "secret-value"),
            "a [KEY] b\nc [KEY]"
        );
    }

    #[test]
    fn a_line_that_does_not_end_is_let_go_of_but_no_secret_in_it() {
        let mut text = vec![b'.'; HELD - OVERLAP + 5];
        text.extend_from_slice(b"secret-value");
        text.extend_from_slice(&vec![b','; OVERLAP - 10]);
        for cut in 0..40 {
            let (one, two) = text.split_at(HELD - OVERLAP + cut);
            let seen = masked(&[one, two], "secret-value");
            assert!(seen.contains(".[KEY],"), "{cut}");
        }
    }
}
