//! The keeper's loop.
//!
//! It is a process of its own so that it outlives Alhena, SIGKILL included: the socket then says that Alhena is gone,
//! and the keeper stops the run, publishes its session and removes what it left. The CLI dies with it, by the kernel's
//! hand; what the CLI had started is then its [guard's](super::guard).

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use alhena_sys::poll::{self, Wanted};
use alhena_sys::processes;
use alhena_sys::signals::{self, Noted};
use alhena_sys::sockets::Stream;
use alhena_sys::terminals::{Keyboard, Terminal};

use super::held::{Held, Reach};
use super::mark::MARK;
use super::protocol::{self, Gentle, Launch, Order, ProcessEnd, Report, Stdin};
use super::sweep::{Life, Swept, sweep};
use crate::home::{Finished, Stopped, finish};
use crate::run_dir;

/// ^C is obeyed within 0.2 s, SIGTERM within 0.1 s (0.61.0); these are for a machine that is busy.
const PATIENCE_AFTER_INTERRUPT: Duration = Duration::from_millis(2500);
const PATIENCE_AFTER_TERM: Duration = Duration::from_millis(1500);

/// Says who it is, if asked, and reads the order that begins a run; none when Alhena has nothing to say.
pub(super) fn first_order(
    control: &Stream,
    orders: &mut BufReader<Stream>,
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
pub(super) fn serve_in_thread(control: Stream) -> io::Result<()> {
    let mut orders = BufReader::new(control.try_clone()?);
    match first_order(&control, &mut orders)? {
        Some(launch) => serve(control, orders, *launch, Life::Thread),
        None => Ok(()),
    }
}

/// Serves one run.
pub(super) fn serve(
    control: Stream,
    orders: BufReader<Stream>,
    launch: Launch,
    life: Life,
) -> io::Result<()> {
    let running = match start(&launch, life) {
        Ok(running) => running,
        Err(error) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let _gone = protocol::send(&control, &Report::NotStarted { missing, message: error.to_string() });
            finish_and_remove(&launch, &control, Stopped::Never);
            return Ok(());
        }
    };
    let (abandoned, stopped) = (false, Stopped::Never);
    let mut keeper = Keeper { control, orders, launch, life, running, abandoned, stopped };
    keeper.tell(&Report::Started { pid: keeper.running.cli.pid() });
    let ended = keeper.wait()?;
    keeper.tell(&Report::Exited(ended));
    clean_up(&keeper.launch, &keeper.control, keeper.life, keeper.stopped);
    Ok(())
}

/// What there is to do when the CLI is gone: nothing of it is left running, and its home is put away.
pub(super) fn clean_up(launch: &Launch, control: &Stream, life: Life, stopped: Stopped) {
    let Swept { ended, names, left } = sweep(&launch.mark, life);
    // When Alhena is gone there is nobody to tell.
    let _gone = protocol::send(control, &Report::Swept { ended, names, left });
    let finished = finish_and_remove(launch, control, stopped);
    let _gone = protocol::send(control, &Report::Finished(finished));
}

struct Running {
    cli: Held,
    keyboard: Option<Keyboard>,
}

fn start(launch: &Launch, life: Life) -> io::Result<Running> {
    if launch.version != protocol::VERSION {
        return Err(io::Error::other("this keeper belongs to another release of Alhena"));
    }
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).env_clear().envs(launch.env.iter().map(|(name, value)| (name, value)));
    command.env(MARK, &launch.mark).current_dir(&launch.dir);
    processes::lead_group(&mut command);
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
    let cli = Held::start(&mut command, Reach::Group, life, PATIENCE_AFTER_TERM)?;
    Ok(Running { cli, keyboard })
}

fn output(path: &OsStr) -> io::Result<File> {
    // Appending, so that processes that share the file do not overwrite each other.
    OpenOptions::new().create(true).append(true).open(path)
}

struct Keeper {
    control: Stream,
    orders: BufReader<Stream>,
    launch: Launch,
    life: Life,
    running: Running,
    /// Whether Alhena is gone.
    abandoned: bool,
    stopped: Stopped,
}

impl Keeper {
    fn tell(&self, report: &Report) {
        // When Alhena is gone there is nobody to tell.
        let _gone = protocol::send(&self.control, report);
    }

    /// Waits for the CLI to end, and stops it when told to.
    fn wait(&mut self) -> io::Result<ProcessEnd> {
        let asked = match self.life {
            Life::Process => Noted::of(&signals::ENDING)?,
            Life::Thread => Noted::default(),
        };
        loop {
            if let Some(status) = self.running.cli.ended()? {
                self.stopped = if self.running.cli.is_stopping() { Stopped::Midway } else { Stopped::Never };
                return Ok(how(status));
            }
            match self.poll()? {
                Woken::Order => self.obey(),
                Woken::Time => self.running.cli.escalate(),
                Woken::Process => {}
            }
            if asked.has_come() {
                self.running.cli.stop();
            }
        }
    }

    fn poll(&self) -> io::Result<Woken> {
        // An order that came together with the launch is no longer in the socket.
        if self.orders.buffer().contains(&b'\n') {
            return Ok(Woken::Order);
        }
        let cli = &self.running.cli;
        let control = (!self.abandoned).then(|| Wanted::readable(&self.control));
        let wanted: Vec<Wanted<'_>> = cli.end().into_iter().chain(control).collect();
        let come = poll::wait(&wanted, Some(cli.longest_wait()))?;
        Ok(match come.iter().position(|come| *come) {
            Some(0) if cli.end().is_some() => Woken::Process,
            Some(_) => Woken::Order,
            None => Woken::Time,
        })
    }

    fn obey(&mut self) {
        let gentle = match protocol::receive(&mut self.orders) {
            Ok(Some(Order::Stop(gentle))) => gentle,
            Ok(Some(Order::Hello { .. } | Order::Launch(_))) => return,
            Ok(None) | Err(_) => {
                self.abandoned = true;
                Gentle::No
            }
        };
        let Running { cli, keyboard } = &mut self.running;
        match (gentle, keyboard) {
            (Gentle::AtOnce, _) => cli.kill(),
            _ if cli.is_stopping() => {}
            (Gentle::Yes, Some(keyboard)) if keyboard.interrupt().is_ok() => {
                cli.was_asked(PATIENCE_AFTER_INTERRUPT);
            }
            _ => cli.stop(),
        }
    }
}

enum Woken {
    Process,
    Order,
    Time,
}

fn how(status: ExitStatus) -> ProcessEnd {
    match (status.code(), processes::ending_signal(status)) {
        (Some(code), _) => ProcessEnd::Code(code),
        (None, Some(signal)) => ProcessEnd::Signal(signal),
        (None, None) => ProcessEnd::Code(-1),
    }
}

fn finish_and_remove(launch: &Launch, control: &Stream, stopped: Stopped) -> Finished {
    let finished = launch.finish.as_ref().map(|plan| finish(plan, stopped)).unwrap_or_default();
    let mut gone = true;
    for temporary in &launch.remove {
        gone &= run_dir::remove_temporary(Path::new(temporary)).is_ok();
    }
    // The directory says whose the temporary files are: it stays for the next run as long as they do.
    for path in launch.remove_when_abandoned.iter().filter(|_| gone && has_hung_up(control)) {
        let _gone = std::fs::remove_dir_all(path);
    }
    finished
}

/// Whether Alhena is gone. What it has said before is not read.
pub(super) fn has_hung_up(control: &Stream) -> bool {
    poll::has_hung_up(control, Duration::ZERO).unwrap_or(false)
}
