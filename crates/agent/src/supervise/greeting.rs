//! How a program becomes the keeper of a run: it is started, asked for its release, and dismissed if that is not ours.
//! Nobody is waited for here.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use alhena_sys::poll;
use alhena_sys::processes::{self, Signal};
use alhena_sys::sockets::{self, Stream};

use super::custody::Locks;
use super::protocol::{self, Launch, Order, Report};
use super::{adoption, embedded, keeper};

/// The way to whoever holds a run.
pub(super) struct HolderLine {
    pub(super) socket: Stream,
    pub(super) reports: BufReader<Stream>,
    pub(super) holder: Holder,
}

pub(super) enum Holder {
    /// The guard, which is the keeper's parent.
    Process(Child),
    Thread(Option<JoinHandle<()>>),
}

/// How long it may take to end when all is done.
pub(super) const PATIENCE_AT_THE_END: Duration = Duration::from_secs(2);
/// How long a program may take to say that it is a keeper; ours takes some milliseconds.
const PATIENCE_WITH_HELLO: Duration = Duration::from_secs(10);
/// A keeper that does not read its orders within this is itself stuck.
const PATIENCE_WITH_READER: Duration = Duration::from_secs(30);

/// What a keeper gets when it has said who it is.
pub(super) struct Greeting {
    pub(super) launch: Box<Launch>,
    pub(super) program: PathBuf,
    /// For a keeper that takes the place of another one.
    home: Option<File>,
    run: Option<File>,
    pub(super) until: Instant,
    tries: u32,
}

/// Somebody may kill a keeper before it holds anything: then there is another one.
const TRIES: u32 = 3;

impl Greeting {
    pub(super) fn begin(launch: &Launch, program: &Path, locks: Locks<'_>) -> io::Result<(HolderLine, Self)> {
        let own = |lock: Option<&File>| lock.map(File::try_clone).transpose();
        let (home, run) = (own(locks.home)?, own(locks.run)?);
        let line = greet(program, locks)?;
        let until = Instant::now() + PATIENCE_WITH_HELLO;
        let (launch, program) = (Box::new(launch.clone()), program.to_owned());
        Ok((line, Self { launch, program, home, run, until, tries: 1 }))
    }

    /// Another keeper, if that helps.
    pub(super) fn again(&self, not: NotKept) -> Option<io::Result<(HolderLine, Self)>> {
        if !matches!(not, NotKept::Killed) || self.tries >= TRIES {
            return None;
        }
        let locks = Locks { home: self.home.as_ref(), run: self.run.as_ref() };
        let begun = Self::begin(&self.launch, &self.program, locks);
        Some(begun.map(|(line, greeting)| (line, Self { tries: self.tries + 1, ..greeting })))
    }
}

/// Why a program does not hold the run.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotKept {
    /// A signal ended it before it had said anything.
    Killed,
    /// It says nothing.
    Mute,
    /// What it says is not the word.
    Foreign,
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Killed => "it was killed",
            Self::Mute => "it does not answer",
            Self::Foreign => "it belongs to another release of Alhena",
        })
    }
}

pub(super) fn cannot_be_it(program: &Path, why: &dyn fmt::Display) -> String {
    format!("{} cannot be the keeper: {why}", program.display())
}

pub(super) fn unkept(why: &str) -> String {
    format!("{why}: a process that hides can outlive the run")
}

impl HolderLine {
    fn new(socket: Stream, holder: Holder) -> io::Result<Self> {
        socket.set_write_timeout(Some(PATIENCE_WITH_READER))?;
        Ok(Self { reports: BufReader::new(socket.try_clone()?), socket, holder })
    }

    /// Takes a keeper's release: one that is found on PATH may be of any. Older ones end at our word.
    pub(super) fn hello(&mut self) -> Result<(), NotKept> {
        if !poll::is_readable(&self.socket, Duration::ZERO).unwrap_or(false) {
            return Err(NotKept::Mute);
        }
        // A keeper says it in one piece, and who does not is not waited for.
        let whole = self.reports.fill_buf().is_ok_and(|said| said.contains(&b'\n'));
        match whole.then(|| protocol::receive(&mut self.reports)) {
            Some(Ok(Some(Report::Hello { version: protocol::VERSION }))) => Ok(()),
            _ => Err(NotKept::Foreign),
        }
    }

    /// Ends a keeper that holds nothing, and tells whether somebody else had done so.
    pub(super) fn dismiss(&mut self, not: NotKept) -> NotKept {
        let _closed = self.socket.shutdown(Shutdown::Both);
        let Holder::Process(guard) = &mut self.holder else { return not };
        // One that has spoken, or closed the line, is about to end; one that has not may never.
        let patience = if matches!(not, NotKept::Mute) { Duration::ZERO } else { PATIENCE_AT_THE_END };
        let ended = has_ended_by(guard, Instant::now() + patience);
        if !ended {
            kill_tree(guard);
        }
        let status = guard.wait();
        adoption::lost(guard.id());
        match ended && status.is_ok_and(|status| processes::ending_signal(status).is_some()) {
            true => NotKept::Killed,
            false => not,
        }
    }
}

/// Starts a keeper and asks it for its release.
fn greet(program: &Path, locks: Locks<'_>) -> io::Result<HolderLine> {
    let (ours, theirs) = Stream::pair()?;
    let guard = adoption::keeping(|| spawn(program, theirs, locks))?;
    let mut line = HolderLine::new(ours, Holder::Process(guard))?;
    // One that is gone already has closed the line, and that is found when its answer is read.
    let _gone = protocol::send(&mut line.socket, &Order::Hello { version: protocol::VERSION });
    Ok(line)
}

pub(super) fn in_thread(launch: &Launch) -> io::Result<HolderLine> {
    let (ours, theirs) = Stream::pair()?;
    let thread = std::thread::Builder::new().name("alhena-keeper".into());
    let thread = thread.spawn(move || {
        if let Err(error) = keeper::serve_in_thread(theirs) {
            tracing::warn!(%error, "the keeper's thread failed");
        }
    })?;
    let line = HolderLine::new(ours, Holder::Thread(Some(thread)))?;
    protocol::send(&line.socket, &Order::Launch(Box::new(launch.clone())))?;
    Ok(line)
}

fn spawn(program: &Path, socket: Stream, locks: Locks<'_>) -> io::Result<Child> {
    let mut command = Command::new(program);
    processes::set_name(&mut command, "alhena").arg(embedded::KEEPER).stdin(sockets::as_stdin(socket));
    let inherited = |lock: Option<&File>| {
        let lock = lock.map(File::try_clone).transpose()?;
        io::Result::Ok(lock.map_or_else(Stdio::null, Stdio::from))
    };
    // The CLI gets other files in these places, and so none of the locks.
    command.stdout(inherited(locks.home)?).stderr(inherited(locks.run)?).current_dir("/");
    // The keeper needs nothing of the environment, and secrets need not lie about in one more process.
    // The second is where instrumented builds write what ran.
    let needed = ["PATH", "LLVM_PROFILE_FILE"].map(|name| std::env::var_os(name).map(|value| (name, value)));
    command.env_clear().envs(needed.into_iter().flatten());
    command.spawn()
}

pub(super) fn has_ended_by(guard: &mut Child, deadline: Instant) -> bool {
    while matches!(guard.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Kills a guard that does not answer, last: as long as it is there, all that its run has started descends from it.
pub(super) fn kill_tree(guard: &mut Child) {
    let deadline = Instant::now() + PATIENCE_AT_THE_END;
    // So that it starts nothing more, once the signal has reached it.
    processes::signal(guard.id(), Signal::STOP);
    let mut quiet = 0;
    while quiet < 2 && Instant::now() < deadline {
        let held = processes::descendants(guard.id());
        quiet = if held.is_empty() { quiet + 1 } else { 0 };
        processes::signal_all(&held, Signal::KILL);
        std::thread::sleep(Duration::from_millis(5));
    }
    let _gone = guard.kill();
}
