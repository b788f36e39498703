//! The keeper's loop.
//!
//! It is a process of its own so that it outlives Alhena, SIGKILL included: the socket then says that Alhena is gone,
//! and the keeper stops the run, publishes its session and removes what it left.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process_group, pidfd_open, wait, waitpid,
};

use super::processes;
use super::protocol::{self, Ended, Gentle, Launch, Order, Report, Stdin};
use super::terminal::{Keyboard, Terminal};

/// How the keeper lives, and so what it can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// A process of its own: orphans become its children.
    Process,
    /// A thread of the host: orphans are known only by their mark.
    Thread,
}

/// ^C is obeyed within 0.2 s, SIGTERM within 0.1 s (0.61.0); these are for a machine that is busy.
const PATIENCE_AFTER_INTERRUPT: Duration = Duration::from_millis(2500);
const PATIENCE_AFTER_TERM: Duration = Duration::from_millis(1500);
const PATIENCE_OF_SWEEP: Duration = Duration::from_millis(300);
const LONGEST_SWEEP: Duration = Duration::from_secs(10);

/// The whole life of the keeper process; its standard input is the socket to Alhena.
pub fn main() -> io::Result<()> {
    // Out of the terminal's reach: ^C there is for Alhena, which then tells us.
    let _already_leader = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    // No process of the run may hold this socket: its end is how Alhena knows that we are gone.
    let control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?);
    serve(control, Life::Process)
}

/// Serves one run.
pub fn serve(control: UnixStream, life: Life) -> io::Result<()> {
    let mut orders = BufReader::new(control.try_clone()?);
    let Some(Order::Launch(launch)) = protocol::receive(&mut orders)? else { return Ok(()) };
    let running = match start(&launch) {
        Ok(running) => running,
        Err(error) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let _gone = protocol::send(&control, &Report::NotStarted { missing, message: error.to_string() });
            put_away(&launch, Abandoned::No);
            return Ok(());
        }
    };
    let mut keeper = Keeper { control, orders, launch: *launch, life, running, abandoned: Abandoned::No };
    keeper.tell(&Report::Started { pid: keeper.running.pid.as_raw_nonzero().get() });
    let ended = keeper.wait()?;
    keeper.tell(&Report::Exited(ended));
    let (ended, left) = sweep(&keeper.launch.mark, keeper.life);
    keeper.tell(&Report::Swept { ended, left });
    let finished = put_away(&keeper.launch, keeper.abandoned);
    keeper.tell(&Report::Finished(finished));
    Ok(())
}

/// Whether Alhena is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abandoned {
    Yes,
    No,
}

struct Running {
    pid: Pid,
    watch: OwnedFd,
    keyboard: Option<Keyboard>,
}

fn start(launch: &Launch) -> io::Result<Running> {
    if launch.version != protocol::VERSION {
        return Err(io::Error::other("this keeper belongs to another release of Alhena"));
    }
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).env_clear().envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.env(processes::MARK, &launch.mark).current_dir(&launch.dir).process_group(0);
    command.stdout(output(&launch.stdout)?).stderr(output(&launch.stderr)?);
    let keyboard = match &launch.stdin {
        Stdin::Null => {
            command.stdin(Stdio::null());
            None
        }
        Stdin::File(path) => {
            command.stdin(File::open(path)?);
            None
        }
        Stdin::Terminal => {
            let terminal = Terminal::open()?;
            command.stdin(Stdio::from(terminal.slave.try_clone()?));
            Some(terminal.keyboard())
        }
    };
    let child = command.spawn()?;
    let pid = Pid::from_child(&child);
    let watch = pidfd_open(pid, PidfdFlags::empty())?;
    Ok(Running { pid, watch, keyboard })
}

fn output(path: &OsStr) -> io::Result<File> {
    // Appending, so that processes that share the file do not overwrite each other.
    OpenOptions::new().create(true).append(true).open(path)
}

struct Keeper {
    control: UnixStream,
    orders: BufReader<UnixStream>,
    launch: Launch,
    life: Life,
    running: Running,
    abandoned: Abandoned,
}

/// How far the stopping has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Running,
    Interrupted(Instant),
    Terminated(Instant),
    Killed,
}

impl Keeper {
    fn tell(&self, report: &Report) {
        // When Alhena is gone there is nobody to tell.
        let _gone = protocol::send(&self.control, report);
    }

    /// Waits for the CLI to end, and stops it when told to.
    fn wait(&mut self) -> io::Result<Ended> {
        let ask_to_stop = Arc::new(AtomicBool::new(false));
        if self.life == Life::Process {
            for signal in
                [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP]
            {
                signal_hook::flag::register(signal, ask_to_stop.clone())?;
            }
        }
        let mut step = Step::Running;
        loop {
            if let Some(ended) = self.reap()? {
                return Ok(ended);
            }
            match self.poll(step)? {
                Woken::Order => step = self.obey(step),
                Woken::Time => step = self.escalate(step),
                Woken::Process => {}
            }
            if step == Step::Running && ask_to_stop.load(Ordering::Relaxed) {
                step = self.terminate();
            }
        }
    }

    fn poll(&self, step: Step) -> io::Result<Woken> {
        // An order that came together with the launch is no longer in the socket.
        if self.orders.buffer().contains(&b'\n') {
            return Ok(Woken::Order);
        }
        let until = match step {
            Step::Running | Step::Killed => Instant::now() + Duration::from_millis(500),
            Step::Interrupted(deadline) | Step::Terminated(deadline) => deadline,
        };
        let wait = until.saturating_duration_since(Instant::now());
        let time = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut watch = PollFd::new(&self.running.watch, PollFlags::IN);
        let mut control = PollFd::new(&self.control, PollFlags::IN);
        let listening = self.abandoned == Abandoned::No;
        let woken = {
            let mut both = [watch.clone(), control.clone()];
            let fds = if listening { &mut both[..] } else { &mut both[..1] };
            match poll(fds, Some(&time)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let [seen_watch, seen_control] = both;
            (watch, control) = (seen_watch, seen_control);
            (!watch.revents().is_empty(), listening && !control.revents().is_empty())
        };
        Ok(match woken {
            (true, _) => Woken::Process,
            (_, true) => Woken::Order,
            (false, false) => Woken::Time,
        })
    }

    fn obey(&mut self, step: Step) -> Step {
        let gentle = match protocol::receive(&mut self.orders) {
            Ok(Some(Order::Stop(gentle))) => gentle,
            Ok(Some(Order::Launch(_))) => return step,
            Ok(None) | Err(_) => {
                self.abandoned = Abandoned::Yes;
                Gentle::No
            }
        };
        match (step, gentle, &self.running.keyboard) {
            (_, Gentle::AtOnce, _) => self.kill(),
            (Step::Running, Gentle::Yes, Some(keyboard)) if keyboard.interrupt().is_ok() => {
                Step::Interrupted(Instant::now() + PATIENCE_AFTER_INTERRUPT)
            }
            (Step::Running, _, _) => self.terminate(),
            (step, _, _) => step,
        }
    }

    fn escalate(&self, step: Step) -> Step {
        match step {
            Step::Running => Step::Running,
            Step::Interrupted(deadline) if Instant::now() < deadline => step,
            Step::Terminated(deadline) if Instant::now() < deadline => step,
            Step::Interrupted(_) => self.terminate(),
            Step::Terminated(_) | Step::Killed => self.kill(),
        }
    }

    fn kill(&self) -> Step {
        let _gone = kill_process_group(self.running.pid, Signal::KILL);
        Step::Killed
    }

    fn terminate(&self) -> Step {
        let _gone = kill_process_group(self.running.pid, Signal::TERM);
        Step::Terminated(Instant::now() + PATIENCE_AFTER_TERM)
    }

    /// Collects the CLI if it has ended, and orphans that have.
    fn reap(&self) -> io::Result<Option<Ended>> {
        if let Some((_, status)) = waitpid(Some(self.running.pid), WaitOptions::NOHANG)? {
            return Ok(Some(how(status)));
        }
        Ok(None)
    }
}

/// Ends everything that is left of the run with this mark, politely first: how many processes, and how many could not be
/// ended. In a process, everything that descends from it counts; it has to be a child subreaper.
pub fn sweep(mark: &str, life: Life) -> (usize, usize) {
    let started = Instant::now();
    let mut ended = std::collections::HashSet::new();
    loop {
        let children = collect_orphans(life);
        let left = remaining(mark, children);
        let over = left.is_empty() && children == Children::None;
        if over || started.elapsed() > LONGEST_SWEEP {
            return (ended.len(), left.len());
        }
        let polite = started.elapsed() < PATIENCE_OF_SWEEP;
        let fresh: Vec<i32> = left.iter().copied().filter(|pid| ended.insert(*pid)).collect();
        match polite {
            true => processes::signal_all(&fresh, Signal::TERM),
            false => processes::signal_all(&left, Signal::KILL),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn remaining(mark: &str, children: Children) -> Vec<i32> {
    let mut left = processes::marked(mark);
    if children == Children::Some {
        left.extend(processes::descendants(rustix::process::getpid().as_raw_nonzero().get()));
        left.sort_unstable();
        left.dedup();
    }
    left
}

/// Collects orphans that have ended, and tells whether there are others.
///
/// A listing of processes can miss one that is being forked. The kernel cannot: whoever descends from a subreaper
/// has an ancestor among its children, so without children there is nobody.
fn collect_orphans(life: Life) -> Children {
    // A host's other children are not ours to collect.
    if life == Life::Thread {
        return Children::None;
    }
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Children::Some,
            Err(_) => return Children::None,
        }
    }
}

/// Whether the keeper has children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Children {
    Some,
    None,
}

enum Woken {
    Process,
    Order,
    Time,
}

fn how(status: WaitStatus) -> Ended {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, Some(signal)) => Ended::Signal(signal),
        (None, None) => Ended::Code(-1),
    }
}

fn put_away(launch: &Launch, abandoned: Abandoned) -> crate::home::Finished {
    let finished = launch.finish.as_ref().map(crate::home::finish).unwrap_or_default();
    let mut goes: Vec<&OsStr> = launch.remove.iter().map(AsRef::as_ref).collect();
    if abandoned == Abandoned::Yes {
        goes.extend(launch.remove_when_abandoned.iter().map(|path| path.as_os_str()));
    }
    for path in goes {
        let _gone = std::fs::remove_dir_all(path);
    }
    finished
}
