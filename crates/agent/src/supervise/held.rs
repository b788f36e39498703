//! A program that is held: it dies with us, its end is noticed, and it is stopped step by step.
//!
//! The keeper holds the headless CLI, and the process in a pane the interactive one. What the program itself had started is
//! then [`sweep`](super::sweep)'s.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use alhena_sys::fork::die_with_parent;
use alhena_sys::handles::OwnedHandle;
use alhena_sys::poll::Wanted;
use alhena_sys::processes::{self, Signal, end_of};

use super::sweep::Life;

/// Whom the signals of a stop reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The program and its process group, of which it is the leader.
    Group,
    /// The program alone: it shares our own group, because a terminal has only one in the foreground.
    Program,
}

/// How far the stopping has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Running,
    /// It was asked in its own way, until then.
    Asked(Instant),
    Terminated(Instant),
    Killed,
}

/// A program that runs under us.
#[derive(Debug)]
pub struct Held {
    pid: u32,
    /// Readable when it has ended; none where the kernel has no such thing.
    end: Option<OwnedHandle>,
    reach: Reach,
    life: Life,
    /// How long it may take to obey SIGTERM.
    patience: Duration,
    step: Step,
}

impl Held {
    /// Starts a program. The thread that calls this must stay: the program dies with it.
    pub fn start(command: &mut Command, reach: Reach, life: Life, patience: Duration) -> io::Result<Self> {
        die_with_parent(command);
        let pid = spawn(command)?.id();
        let end = end_of(pid).ok();
        Ok(Self { pid, end, reach, life, patience, step: Step::Running })
    }

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, if it has. Orphans that have ended are collected on the way, in a process that adopts them.
    pub fn ended(&self) -> io::Result<Option<ExitStatus>> {
        // A host's other children are not ours to collect.
        if self.life == Life::Thread {
            return processes::collect(self.pid);
        }
        while let Some((ended, status)) = processes::collect_any()? {
            if ended == self.pid {
                return Ok(Some(status));
            }
        }
        Ok(None)
    }

    /// To be waited for together with other things.
    #[must_use]
    pub fn end(&self) -> Option<Wanted<'_>> {
        self.end.as_ref().map(Wanted::readable)
    }

    /// How long one may wait before the next look.
    #[must_use]
    pub fn longest_wait(&self) -> Duration {
        let longest = Duration::from_millis(if self.end.is_some() { 500 } else { 20 });
        match self.step {
            Step::Running | Step::Killed => longest,
            Step::Asked(deadline) | Step::Terminated(deadline) => {
                deadline.saturating_duration_since(Instant::now()).min(longest)
            }
        }
    }

    /// Whether a stop is under way, or has been.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.step != Step::Running
    }

    /// It was asked in its own way to end, and has this long.
    pub fn was_asked(&mut self, patience: Duration) {
        if self.step == Step::Running {
            self.step = Step::Asked(Instant::now() + patience);
        }
    }

    /// SIGTERM, unless a stop is under way.
    pub fn stop(&mut self) {
        if self.step == Step::Running {
            self.terminate();
        }
    }

    /// SIGKILL, also when a gentler stop is under way.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.step = Step::Killed;
    }

    /// The next step for a program that did not obey in time.
    pub fn escalate(&mut self) {
        match self.step {
            Step::Running => {}
            Step::Asked(deadline) | Step::Terminated(deadline) if Instant::now() < deadline => {}
            Step::Asked(_) => self.terminate(),
            Step::Terminated(_) | Step::Killed => self.kill(),
        }
    }

    fn terminate(&mut self) {
        self.signal(Signal::TERM);
        self.step = Step::Terminated(Instant::now() + self.patience);
    }

    fn signal(&self, signal: Signal) {
        match self.reach {
            Reach::Group => processes::signal_group(self.pid, signal),
            Reach::Program => processes::signal(self.pid, signal),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    use alhena_sys::processes::ending_signal;

    fn held(script: &str, patience: Duration) -> Held {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdout(Stdio::null());
        processes::lead_group(&mut command);
        Held::start(&mut command, Reach::Group, Life::Thread, patience).unwrap()
    }

    fn end_of(held: &mut Held) -> ExitStatus {
        loop {
            if let Some(status) = held.ended().unwrap() {
                return status;
            }
            let wanted: Vec<Wanted<'_>> = held.end().into_iter().collect();
            alhena_sys::poll::wait(&wanted, Some(held.longest_wait())).unwrap();
            held.escalate();
        }
    }

    #[test]
    fn a_program_that_ends_by_itself_was_not_stopped() {
        let mut held = held("exit 7", Duration::ZERO);
        assert_eq!(end_of(&mut held).code(), Some(7));
        assert!(!held.is_stopping());
    }

    #[test]
    fn a_program_that_obeys_is_not_killed_and_one_that_does_not_is() {
        let mut obeys = held("exec sleep 600", Duration::from_secs(60));
        obeys.stop();
        assert_eq!(ending_signal(end_of(&mut obeys)), Some(Signal::TERM.as_raw()));
        let mut asked = held("exec sleep 600", Duration::from_secs(60));
        asked.was_asked(Duration::from_millis(1));
        assert_eq!(ending_signal(end_of(&mut asked)), Some(Signal::TERM.as_raw()));
        let dir = tempfile::tempdir().unwrap();
        let ready = dir.path().join("deaf");
        let script = format!("trap '' TERM; : > {}; while :; do sleep 0.01; done", ready.display());
        let mut deaf = held(&script, Duration::from_millis(50));
        while !ready.exists() {
            std::thread::yield_now();
        }
        deaf.stop();
        deaf.stop();
        assert_eq!(ending_signal(end_of(&mut deaf)), Some(Signal::KILL.as_raw()));
        assert!(deaf.is_stopping());
    }
}
