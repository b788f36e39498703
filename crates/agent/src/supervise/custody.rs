//! Alhena's side of the keeper.

use std::io::{self, BufReader};
use std::net::Shutdown;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use alhena_sys::{poll, processes};
use rustix::process::Pid;

use super::protocol::{self, Gentle, Launch, Order, Report};
use super::sweep::{Life, sweep};
use super::{adoption, guard, keeper};
use crate::env::{self, Environment};
use crate::programs;

static OWN_KEEPER: OnceLock<PathBuf> = OnceLock::new();

/// Says that this very program answers to `keeper`; the `alhena` binary does so when it starts.
pub fn this_program_is_the_keeper() {
    if let Ok(program) = std::env::current_exe() {
        let _set_before = OWN_KEEPER.set(program);
    }
}

/// The program to run as the keeper: `ALHENA_KEEPER`, this program, one beside it, one on `PATH`.
pub fn keeper_program(environment: &Environment) -> Option<PathBuf> {
    let named = environment.filled(env::ALHENA_KEEPER).map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute() && path.is_file());
    let beside =
        || Some(std::env::current_exe().ok()?.parent()?.join("alhena")).filter(|path| path.is_file());
    let on_path = || programs::on_path(environment, "alhena");
    named.or_else(|| OWN_KEEPER.get().cloned()).or_else(beside).or_else(on_path)
}

/// What says that a run is alive: held until the last of Alhena, the keeper and the guard is gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Locks<'a> {
    /// On the run's home.
    pub home: Option<BorrowedFd<'a>>,
    /// On its directories.
    pub run: Option<BorrowedFd<'a>>,
}

/// A run in the hands of a keeper.
pub struct Custody {
    socket: UnixStream,
    reports: BufReader<UnixStream>,
    holder: Holder,
    /// Why there is no process that holds the run.
    unkept: Option<String>,
    mark: String,
    /// When the guard was told to do the keeper's work.
    taken_over: Option<Instant>,
    over: bool,
}

enum Holder {
    /// The guard, which is the keeper's parent.
    Process(Child),
    Thread(Option<JoinHandle<()>>),
}

/// How long a guard may take to do its keeper's work.
pub(crate) const PATIENCE_WITH_GUARD: Duration = Duration::from_secs(20);
/// How long it may take to end when all is done.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(2);
/// How long a program may take to say that it is a keeper; ours takes some milliseconds.
const PATIENCE_WITH_HELLO: Duration = Duration::from_secs(10);
/// A keeper that does not read its orders within this is itself stuck.
const PATIENCE_WITH_READER: Duration = Duration::from_secs(30);

impl Custody {
    /// Hands the launch to a keeper: a process if there is a program that can be it, otherwise a thread.
    ///
    /// The keeper and its guard inherit the locks of the run, because they may outlive us.
    pub fn take(launch: &Launch, program: Option<&Path>, locks: Locks<'_>) -> io::Result<Self> {
        let kept = match program {
            Some(program) => in_process(program, locks)
                .map_err(|why| format!("{} cannot be the keeper: {why}", program.display())),
            None => Err("There is no keeper program (alhena on PATH, or ALHENA_KEEPER)".to_owned()),
        };
        let (line, unkept) = match kept {
            Ok(line) => (line, None),
            Err(why) => (in_thread()?, Some(format!("{why}: a process that hides can outlive the run"))),
        };
        protocol::send(&line.socket, &Order::Launch(Box::new(launch.clone())))?;
        let Line { socket, reports, holder } = line;
        Ok(Self { reports, socket, holder, unkept, mark: launch.mark.clone(), taken_over: None, over: false })
    }

    /// Why no process holds the run, if none does.
    pub fn unkept(&self) -> Option<&str> {
        self.unkept.as_deref()
    }

    /// For waiting: readable when a report is there.
    pub fn socket(&self) -> &UnixStream {
        &self.socket
    }

    /// Whether a report can be had without waiting for the socket.
    pub fn has_buffered_report(&self) -> bool {
        self.reports.buffer().contains(&b'\n')
    }

    /// Waits for a report, at most so long.
    pub fn has_report_within(&self, longest: Duration) -> bool {
        self.has_buffered_report() || poll::is_readable(&self.socket, longest).unwrap_or(false)
    }

    /// The next report; `None` when the keeper is gone before its time.
    pub fn report(&mut self) -> io::Result<Option<Report>> {
        let report = protocol::receive(&mut self.reports)?;
        self.over |= matches!(report, Some(Report::Finished(_) | Report::NotStarted { .. }));
        Ok(report)
    }

    /// Orders the run to be stopped.
    pub fn stop(&self, gentle: Gentle) {
        // A keeper that is gone has stopped everything already, or `report` finds out.
        let _gone = protocol::send(&self.socket, &Order::Stop(gentle));
    }
}

impl Custody {
    /// The keeper does not answer: its guard ends it and does its work. What it reports then is the guard's.
    pub fn take_over(&mut self) {
        self.taken_over.get_or_insert_with(Instant::now);
        if let Holder::Process(guard) = &self.holder {
            let _gone = rustix::process::kill_process(Pid::from_child(guard), guard::TAKE_OVER);
        }
    }

    /// Ends the custody. A keeper that has not finished was killed, or is stuck: then its run dies here.
    pub fn end(&mut self) {
        let finished = std::mem::replace(&mut self.over, true);
        if !finished {
            self.take_over();
        }
        match &mut self.holder {
            Holder::Process(guard) => {
                let deadline = match self.taken_over {
                    Some(since) if !finished => since + PATIENCE_WITH_GUARD,
                    _ => Instant::now() + PATIENCE_AT_THE_END,
                };
                if !has_ended_by(guard, deadline) {
                    kill_tree(guard);
                }
                let _status = guard.wait();
                adoption::lost(guard.id());
            }
            Holder::Thread(thread) => {
                let _closed = self.socket.shutdown(Shutdown::Both);
                if let Some(thread) = thread.take() {
                    let _panicked = thread.join();
                }
            }
        }
        if !finished {
            adoption::end_orphans();
            let _not_told = sweep(&self.mark, Life::Thread);
        }
    }
}

fn has_ended_by(guard: &mut Child, deadline: Instant) -> bool {
    while matches!(guard.try_wait(), Ok(None)) {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Kills a guard that does not answer, last: as long as it is there, all that its run has started descends from it.
fn kill_tree(guard: &mut Child) {
    let deadline = Instant::now() + PATIENCE_AT_THE_END;
    loop {
        let held = processes::descendants(guard.id());
        if held.is_empty() || Instant::now() >= deadline {
            break;
        }
        processes::signal_all(&held, rustix::process::Signal::KILL);
        std::thread::sleep(Duration::from_millis(5));
    }
    let _gone = guard.kill();
}

impl Drop for Custody {
    fn drop(&mut self) {
        self.end();
    }
}

/// The way to whoever will hold a run.
struct Line {
    socket: UnixStream,
    reports: BufReader<UnixStream>,
    holder: Holder,
}

impl Line {
    fn new(socket: UnixStream, holder: Holder) -> io::Result<Self> {
        socket.set_write_timeout(Some(PATIENCE_WITH_READER))?;
        Ok(Self { reports: BufReader::new(socket.try_clone()?), socket, holder })
    }

    /// Asks a keeper for its release: one that is found on PATH may be of any. Older ones end at the word.
    fn shake_hands(&mut self) -> Result<(), &'static str> {
        let said = self.socket.set_read_timeout(Some(PATIENCE_WITH_HELLO)).and_then(|()| {
            protocol::send(&self.socket, &Order::Hello { version: protocol::VERSION })?;
            let answer = protocol::receive(&mut self.reports)?;
            self.socket.set_read_timeout(None)?;
            Ok(answer)
        });
        match said {
            Ok(Some(Report::Hello { version: protocol::VERSION })) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err("it does not answer"),
            Ok(_) | Err(_) => Err("it belongs to another release of Alhena"),
        }
    }
}

/// Somebody may kill a keeper before it holds anything: then there is another one.
const TRIES: u32 = 3;

fn in_process(program: &Path, locks: Locks<'_>) -> Result<Line, String> {
    let mut tried = greet(program, locks);
    for _ in 1..TRIES {
        match tried {
            Err(NotKept::Killed) => tried = greet(program, locks),
            Ok(_) | Err(NotKept::Because(_)) => break,
        }
    }
    tried.map_err(|not| match not {
        NotKept::Killed => "it was killed".to_owned(),
        NotKept::Because(why) => why,
    })
}

/// Why a program does not hold the run.
enum NotKept {
    /// A signal ended it before it had said anything.
    Killed,
    Because(String),
}

fn greet(program: &Path, locks: Locks<'_>) -> Result<Line, NotKept> {
    let said = |error: io::Error| NotKept::Because(error.to_string());
    let (ours, theirs) = UnixStream::pair().map_err(said)?;
    let guard = spawn(program, theirs, locks).map_err(said)?;
    let pid = guard.id();
    adoption::keeps(pid);
    let mut line = Line::new(ours, Holder::Process(guard)).map_err(said)?;
    let Err(why) = line.shake_hands() else { return Ok(line) };
    // It has nothing of the run, and the end of the line tells any keeper to end.
    let _closed = line.socket.shutdown(Shutdown::Both);
    let mut not = NotKept::Because(why.to_owned());
    if let Holder::Process(guard) = &mut line.holder {
        if !has_ended_by(guard, Instant::now() + PATIENCE_AT_THE_END) {
            kill_tree(guard);
        } else if guard.try_wait().is_ok_and(|status| status.is_some_and(|status| status.signal().is_some()))
        {
            not = NotKept::Killed;
        }
        let _status = guard.wait();
    }
    adoption::lost(pid);
    Err(not)
}

fn in_thread() -> io::Result<Line> {
    let (ours, theirs) = UnixStream::pair()?;
    let thread = std::thread::Builder::new().name("alhena-keeper".into());
    let thread = thread.spawn(move || {
        if let Err(error) = keeper::serve_in_thread(theirs) {
            tracing::warn!(%error, "the keeper's thread failed");
        }
    })?;
    Line::new(ours, Holder::Thread(Some(thread)))
}

fn spawn(program: &Path, socket: UnixStream, locks: Locks<'_>) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg0("alhena").arg("keeper").stdin(Stdio::from(OwnedFd::from(socket)));
    let inherited = |lock: Option<BorrowedFd<'_>>| {
        let lock = lock.map(|lock| lock.try_clone_to_owned()).transpose()?;
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
