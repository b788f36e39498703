//! What Gemini CLI says on stderr, while it says it: `--verbose`.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use alhena_wire::frame::{Frame, Framer};

use crate::output::say;
use crate::style::Harmless;

/// How often the file is looked at.
const GLANCE: Duration = Duration::from_millis(100);
/// Nobody reads a longer line.
const LONGEST_LINE: usize = 64 << 10;

/// Prints a file as it grows, in a thread of its own, until this is dropped; then the rest of it.
pub struct Echo {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    /// The file may be removed meanwhile: what is open stays readable.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        // The keeper may not have made it yet.
        let file = File::options().read(true).append(true).create(true).open(path)?;
        let (over, told) = channel();
        let thread =
            std::thread::Builder::new().name("echo".to_owned()).spawn(move || repeat(file, &told))?;
        Ok(Self { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn repeat(mut file: File, told: &Receiver<()>) {
    let (mut framer, mut buffer) = (Framer::new(LONGEST_LINE), vec![0; 64 << 10]);
    let mut show = |frame: Frame<'_>| match frame {
        Frame::Line(line) => {
            let line = Harmless::default().clean(&String::from_utf8_lossy(line));
            say(format_args!("gemini: {line}"));
        }
        Frame::TooLong { bytes, .. } => say(format_args!("gemini: (a line of {bytes} bytes)")),
    };
    let mut over = false;
    loop {
        while let Ok(count @ 1..) = file.read(&mut buffer) {
            framer.push(buffer.get(..count).unwrap_or_default(), &mut show);
        }
        if over {
            return framer.finish(&mut show);
        }
        over = matches!(told.recv_timeout(GLANCE), Err(RecvTimeoutError::Disconnected));
    }
}
