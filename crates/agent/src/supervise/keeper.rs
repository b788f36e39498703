//! The keeper's loop.
//!
//! It is a process of its own so that it outlives Alhena, SIGKILL included: the socket then says that Alhena is gone,
//! and the keeper stops the run, publishes its session and removes what it left. The CLI dies with it, by the kernel's
//! hand; what the CLI had started is then its [guard's](super::guard).

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, kill_process_group, pidfd_open, waitpid,
};

use super::fork::die_with_parent;
use super::mark::MARK;
use super::protocol::{self, Ended, Gentle, Launch, Order, Report, Stdin};
use super::sweep::{Life, Swept, sweep};
use super::terminal::{Keyboard, Terminal};
use crate::home::{Finished, Stopped, finish};

/// ^C is obeyed within 0.2 s, SIGTERM within 0.1 s (0.61.0); these are for a machine that is busy.
const PATIENCE_AFTER_INTERRUPT: Duration = Duration::from_millis(2500);
const PATIENCE_AFTER_TERM: Duration = Duration::from_millis(1500);

/// Says who it is, if asked, and reads the order that begins a run; none when Alhena has nothing to say.
pub(super) fn first_order(
    control: &UnixStream,
    orders: &mut BufReader<UnixStream>,
) -> io::Result<Option<Box<Launch>>> {
    loop {
        match protocol::receive(orders)? {
            Some(Order::Hello { .. }) => {
                protocol::send(control, &Report::Hello { version: protocol::VERSION })?;
            }
            Some(Order::Launch(launch)) => return Ok(Some(launch)),
            Some(Order::Stop(_)) | None => return Ok(None),
        }
    }
}

/// Serves one run in a thread of the host.
pub(super) fn serve_in_thread(control: UnixStream) -> io::Result<()> {
    let mut orders = BufReader::new(control.try_clone()?);
    match first_order(&control, &mut orders)? {
        Some(launch) => serve(control, orders, *launch, Life::Thread),
        None => Ok(()),
    }
}

/// Serves one run.
pub(super) fn serve(
    control: UnixStream,
    orders: BufReader<UnixStream>,
    launch: Launch,
    life: Life,
) -> io::Result<()> {
    let running = match start(&launch) {
        Ok(running) => running,
        Err(error) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let _gone = protocol::send(&control, &Report::NotStarted { missing, message: error.to_string() });
            put_away(&launch, &control, Stopped::No);
            return Ok(());
        }
    };
    let (abandoned, stopped) = (Abandoned::No, Stopped::No);
    let mut keeper = Keeper { control, orders, launch, life, running, abandoned, stopped };
    keeper.tell(&Report::Started { pid: keeper.running.pid.as_raw_nonzero().get() });
    let ended = keeper.wait()?;
    keeper.tell(&Report::Exited(ended));
    clean_up(&keeper.launch, &keeper.control, keeper.life, keeper.stopped);
    Ok(())
}

/// What there is to do when the CLI is gone: nothing of it is left running, and its home is put away.
pub(super) fn clean_up(launch: &Launch, control: &UnixStream, life: Life, stopped: Stopped) {
    let Swept { ended, names, left } = sweep(&launch.mark, life);
    // When Alhena is gone there is nobody to tell.
    let _gone = protocol::send(control, &Report::Swept { ended, names, left });
    let finished = put_away(launch, control, stopped);
    let _gone = protocol::send(control, &Report::Finished(finished));
}

/// Whether Alhena is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abandoned {
    Yes,
    No,
}

struct Running {
    pid: Pid,
    /// Readable when it has ended; none where the kernel has no such thing.
    watch: Option<OwnedFd>,
    keyboard: Option<Keyboard>,
}

fn start(launch: &Launch) -> io::Result<Running> {
    if launch.version != protocol::VERSION {
        return Err(io::Error::other("this keeper belongs to another release of Alhena"));
    }
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).env_clear().envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.env(MARK, &launch.mark).current_dir(&launch.dir).process_group(0);
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
    die_with_parent(&mut command);
    let child = spawn(&mut command)?;
    let pid = Pid::from_child(&child);
    let watch = pidfd_open(pid, PidfdFlags::empty()).ok();
    Ok(Running { pid, watch, keyboard })
}

/// Starts a command, and waits a moment for a program that is just being written.
fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..20 {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(20));
            }
            started => return started,
        }
    }
    command.spawn()
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
    stopped: Stopped,
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
                self.stopped = if step == Step::Running { Stopped::No } else { Stopped::Yes };
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
        let longest = Duration::from_millis(if self.running.watch.is_some() { 500 } else { 20 });
        let wait = match step {
            Step::Running | Step::Killed => longest,
            Step::Interrupted(deadline) | Step::Terminated(deadline) => {
                deadline.saturating_duration_since(Instant::now()).min(longest)
            }
        };
        let time = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut fds = Vec::with_capacity(2);
        let listening = self.abandoned == Abandoned::No;
        if listening {
            fds.push(PollFd::new(&self.control, PollFlags::IN));
        }
        fds.extend(self.running.watch.as_ref().map(|watch| PollFd::new(watch, PollFlags::IN)));
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = |fd: Option<&PollFd<'_>>| fd.is_some_and(|fd| !fd.revents().is_empty());
        let ordered = listening && ready(fds.first());
        let ended = self.running.watch.is_some() && ready(fds.last());
        Ok(match (ended, ordered) {
            (true, _) => Woken::Process,
            (_, true) => Woken::Order,
            (false, false) => Woken::Time,
        })
    }

    fn obey(&mut self, step: Step) -> Step {
        let gentle = match protocol::receive(&mut self.orders) {
            Ok(Some(Order::Stop(gentle))) => gentle,
            Ok(Some(Order::Hello { .. } | Order::Launch(_))) => return step,
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

fn put_away(launch: &Launch, control: &UnixStream, stopped: Stopped) -> Finished {
    let finished = launch.finish.as_ref().map(|plan| finish(plan, stopped)).unwrap_or_default();
    let mut goes: Vec<&OsStr> = launch.remove.iter().map(AsRef::as_ref).collect();
    if has_hung_up(control) {
        goes.extend(launch.remove_when_abandoned.iter().map(|path| path.as_os_str()));
    }
    for path in goes {
        let _gone = std::fs::remove_dir_all(path);
    }
    finished
}

/// Whether Alhena is gone. What it has said before is not read.
pub(super) fn has_hung_up(control: &UnixStream) -> bool {
    let mut fds = [PollFd::new(control, PollFlags::empty())];
    let _interrupted = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}
