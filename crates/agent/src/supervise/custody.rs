//! Alhena's side of the keeper.

use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use alhena_sys::poll;
use alhena_sys::processes::{self, Signal};
use alhena_sys::sockets::Stream;

use super::greeting::{
    Greeting, Holder, HolderLine, NotKept, PATIENCE_AT_THE_END, cannot_be_it, has_ended_by, in_thread,
    kill_tree, unkept,
};
use super::protocol::{self, Gentle, Launch, Order, Report};
use super::sweep::{Life, sweep};
use super::{adoption, guard};
use crate::env::{self, Environment};
use crate::home::{self, Stopped};
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

/// Takes back the home of a run that nobody holds.
fn abandon(launch: &Launch) {
    if let Some(plan) = &launch.finish {
        let _nothing_begun = home::finish(plan, Stopped::Never);
    }
}

/// What says that a run is alive: held until the last of Alhena, the keeper and the guard is gone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Locks<'a> {
    /// On the run's home.
    pub home: Option<&'a File>,
    /// On its directories.
    pub run: Option<&'a File>,
}

/// A run in the hands of a keeper, or on its way there.
pub struct Custody {
    line: HolderLine,
    /// What waits for the word of a keeper. Until it has come nothing is started.
    greeting: Option<Greeting>,
    /// Why there is no process that holds the run.
    unkept: Option<String>,
    /// Somebody has the launch.
    begun: bool,
    mark: String,
    /// When the guard was told to do the keeper's work.
    taken_over: Option<Instant>,
    /// Whether it has said that it does.
    guard_answered: bool,
    over: bool,
}

/// How long a guard may take to do its keeper's work. Long for the same reason as the keeper's own time.
pub(crate) const PATIENCE_WITH_GUARD: Duration = Duration::from_secs(20);
/// How long it may take to say that it begins; a healthy one takes some milliseconds.
pub(crate) const PATIENCE_WITH_SILENT_GUARD: Duration = Duration::from_secs(3);

impl Custody {
    /// Hands the launch to a keeper: a process if there is a program that can be it, otherwise a thread, unless the launch requires a keeper. Nobody is waited for:
    /// [`Report::Hello`] says that it is known who holds the run.
    ///
    /// The keeper and its guard inherit the locks of the run, because they may outlive us.
    pub fn take(launch: &Launch, program: Option<&Path>, locks: Locks<'_>) -> io::Result<Self> {
        let custody = |line, greeting: Option<Greeting>, unkept| Self {
            line,
            begun: greeting.is_none(),
            greeting,
            unkept,
            mark: launch.mark.clone(),
            taken_over: None,
            guard_answered: false,
            over: false,
        };
        let why = match program {
            Some(program) => match Greeting::begin(launch, program, locks) {
                Ok((line, greeting)) => return Ok(custody(line, Some(greeting), None)),
                Err(error) => cannot_be_it(program, &error),
            },
            None => "There is no keeper program (alhena on PATH, or ALHENA_KEEPER)".to_owned(),
        };
        match launch.require_keeper {
            true => {
                abandon(launch);
                Err(io::Error::other(why))
            }
            false => Ok(custody(in_thread(launch)?, None, Some(unkept(&why)))),
        }
    }

    /// Why no process holds the run, if none does.
    pub fn unkept(&self) -> Option<&str> {
        self.unkept.as_deref()
    }

    /// The keeper that has not said a word yet, while it is waited for.
    pub fn awaited(&self) -> Option<&Path> {
        self.greeting.as_ref().map(|greeting| greeting.program.as_path())
    }

    /// Whether anything of the launch can have happened.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// For waiting: readable when a report is there.
    pub fn socket(&self) -> &Stream {
        &self.line.socket
    }

    /// Whether a report can be had without waiting for the socket.
    pub fn has_buffered_report(&self) -> bool {
        self.line.reports.buffer().contains(&b'\n')
    }

    /// Waits for a report, at most so long.
    pub fn has_report_within(&self, longest: Duration) -> bool {
        let awaited = self.greeting.as_ref().map(|greeting| greeting.until);
        let left = awaited.map(|until| until.saturating_duration_since(Instant::now()));
        self.has_buffered_report()
            || poll::is_readable(self.socket(), left.map_or(longest, |left| left.min(longest)))
                .unwrap_or(false)
            // Silence is an answer too.
            || left.is_some_and(|left| left <= longest)
    }

    /// The next report; `None` when the keeper is gone before its time.
    pub fn report(&mut self) -> io::Result<Option<Report>> {
        if let Some(greeting) = self.greeting.take() {
            return self.greeted(greeting).map(Some);
        }
        let report = protocol::receive(&mut self.line.reports)?;
        self.over |= matches!(report, Some(Report::Finished(_) | Report::NotStarted { .. }));
        self.guard_answered |= matches!(report, Some(Report::KeeperLost));
        Ok(report)
    }

    /// Takes a keeper's first word, and hands over the launch; or looks for somebody else.
    fn greeted(&mut self, greeting: Greeting) -> io::Result<Report> {
        let known = Report::Hello { version: protocol::VERSION };
        self.begun = true;
        let not = match self.line.hello() {
            Ok(()) => {
                protocol::send(&self.line.socket, &Order::Launch(greeting.launch))?;
                return Ok(known);
            }
            Err(not) => self.line.dismiss(not),
        };
        let why = match greeting.again(not) {
            Some(Ok((line, greeting))) => {
                (self.line, self.greeting, self.begun) = (line, Some(greeting), false);
                return Ok(known);
            }
            Some(Err(error)) => cannot_be_it(&greeting.program, &error),
            None => cannot_be_it(&greeting.program, &not),
        };
        if greeting.launch.require_keeper {
            self.over = true;
            abandon(&greeting.launch);
            return Ok(Report::NotStarted { missing: false, message: why });
        }
        self.line = in_thread(&greeting.launch)?;
        self.unkept = Some(unkept(&why));
        Ok(known)
    }

    /// Orders the run to be stopped.
    pub fn stop(&mut self, gentle: Gentle) {
        if self.greeting.take().is_some() {
            // Nothing of it has begun.
            let _whatever = self.line.dismiss(NotKept::Mute);
            self.over = true;
            return;
        }
        self.resume();
        // A keeper that is gone has stopped everything already, or `report` finds out.
        let _gone = protocol::send(&self.line.socket, &Order::Stop(gentle));
    }
}

impl Custody {
    /// The keeper does not answer: its guard ends it and does its work. What it reports then is the guard's.
    pub fn take_over(&mut self) {
        self.taken_over.get_or_insert_with(Instant::now);
        self.resume();
        if let Holder::Process(guard) = &self.line.holder {
            processes::signal(guard.id(), guard::TAKE_OVER);
        }
    }

    /// Whether a guard that was told to take over has had enough time.
    pub fn guard_is_stuck(&self) -> bool {
        self.taken_over.is_some_and(|since| since.elapsed() > self.patience_with_guard())
    }

    fn patience_with_guard(&self) -> Duration {
        if self.guard_answered { PATIENCE_WITH_GUARD } else { PATIENCE_WITH_SILENT_GUARD }
    }

    /// Lets a guard and a keeper continue that somebody stopped by SIGSTOP: they can obey no order otherwise.
    fn resume(&self) {
        if let Holder::Process(guard) = &self.line.holder {
            let below = processes::descendants(guard.id());
            processes::signal_all(&[&[guard.id()], below.as_slice()].concat(), Signal::CONT);
        }
    }

    /// Ends the custody. A keeper that has not finished was killed, or is stuck: then its run dies here.
    pub fn end(&mut self) {
        if self.greeting.is_some() {
            // It holds nothing yet, and may never answer.
            self.stop(Gentle::AtOnce);
        }
        let finished = std::mem::replace(&mut self.over, true);
        let deadline = match self.taken_over {
            _ if finished => Instant::now() + PATIENCE_AT_THE_END,
            Some(since) => since + self.patience_with_guard(),
            // Its reports are not read any more, so that it cannot be seen whether it answers.
            None => Instant::now() + PATIENCE_WITH_GUARD,
        };
        if !finished {
            self.take_over();
        }
        match &mut self.line.holder {
            Holder::Process(guard) => {
                if !has_ended_by(guard, deadline) {
                    kill_tree(guard);
                }
                let _status = guard.wait();
                adoption::lost(guard.id());
            }
            Holder::Thread(thread) => {
                let _closed = self.line.socket.shutdown(Shutdown::Both);
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

impl Drop for Custody {
    fn drop(&mut self) {
        self.end();
    }
}
