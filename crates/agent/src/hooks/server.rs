//! Where the questions arrive.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use alhena_sys::poll::{self, Wanted};
use serde_json::{Map, Value};

use super::{Asked, Hooks, Moment, Verdict};

/// A question holds a tool's arguments and its result, or all that the model gets to see.
const LONGEST: u64 = 256 << 20;
/// How long the CLI's side may take to ask.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why somebody ended the run.
type Halted = Arc<Mutex<Option<String>>>;

/// Takes questions until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    path: PathBuf,
    stop: Option<UnixStream>,
    halted: Halted,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens in a directory of the run's own.
    pub(crate) fn start(dir: &Path, hooks: Hooks) -> io::Result<Self> {
        let path = dir.join("hooks");
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let (stop, stopped) = UnixStream::pair()?;
        let thread = thread::Builder::new().name("alhena-hooks".to_owned());
        let halted = Halted::default();
        let told = Arc::clone(&halted);
        let thread = thread.spawn(move || listen(&listener, &stopped, &hooks, &told))?;
        Ok(Self { path, stop: Some(stop), halted, thread: Some(thread) })
    }

    /// Why somebody ended the run, if anybody did.
    pub(crate) fn halted(&self) -> Option<String> {
        self.halted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its address.
    pub(crate) fn socket(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
        let _gone = std::fs::remove_file(&self.path);
    }
}

fn listen(listener: &UnixListener, stopped: &UnixStream, hooks: &Hooks, halted: &Halted) {
    loop {
        let _looked_at_anyway = poll::wait(
            &[Wanted::readable(listener), Wanted::readable(stopped)],
            Some(Duration::from_secs(1)),
        );
        if poll::is_readable(stopped, Duration::ZERO).unwrap_or(true) {
            return;
        }
        while let Ok((line, _)) = listener.accept() {
            let (hooks, halted) = (hooks.clone(), Arc::clone(halted));
            let answering = thread::Builder::new().name("alhena-hook".to_owned()).spawn(move || {
                if let Err(error) = answer(line, &hooks, &halted) {
                    tracing::warn!(%error, "a hook's question was not answered");
                }
            });
            // Without a thread the line is closed, and that is a denial.
            if let Err(error) = answering {
                tracing::warn!(%error, "a hook's question could not be taken");
            }
        }
    }
}

fn answer(line: UnixStream, hooks: &Hooks, halted: &Halted) -> io::Result<()> {
    line.set_nonblocking(false)?;
    line.set_read_timeout(Some(PATIENCE))?;
    line.set_write_timeout(Some(PATIENCE))?;
    let (moment, asked) = read(&line)?;
    let verdict = match asked {
        Some(asked) => within(hooks, asked),
        None => Verdict::Deny("what Gemini CLI says of it cannot be read".to_owned()),
    };
    if let Verdict::Stop(why) = &verdict {
        halted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| why.clone());
    }
    let mut text = serde_json::to_vec(&verdict.in_words_of_cli(moment))?;
    text.push(b'\n');
    (&line).write_all(&text)
}

fn read(line: &UnixStream) -> io::Result<(Moment, Option<Asked>)> {
    let mut input = BufReader::new(line).take(LONGEST);
    let mut name = String::new();
    input.read_line(&mut name)?;
    let moment = Moment::named(name.trim_end())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no such moment"))?;
    let told: Result<Map<String, Value>, _> = serde_json::from_reader(input);
    Ok((moment, told.ok().map(|told| Asked { moment, told })))
}

/// The decision, if it comes in time. One that comes late, or never, is left alone.
fn within(hooks: &Hooks, asked: Asked) -> Verdict {
    let (decided, decision) = mpsc::channel();
    let decide = hooks.decide.clone();
    let deciding =
        thread::Builder::new().name("alhena-decide".to_owned()).spawn(move || decided.send(decide(&asked)));
    let denied = |why: &str| Verdict::Deny(format!("it was not allowed: {why}"));
    if deciding.is_err() {
        return denied("there was no thread to decide on");
    }
    match decision.recv_timeout(hooks.limit) {
        Ok(verdict) => verdict,
        Err(mpsc::RecvTimeoutError::Timeout) => denied("nobody decided in time"),
        Err(mpsc::RecvTimeoutError::Disconnected) => denied("whoever decides failed"),
    }
}
