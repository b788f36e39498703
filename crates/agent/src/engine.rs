//! The engine: one thread for each process of the CLI. It waits, hears its keeper and whoever wants a stop, reads, and keeps the
//! clocks. How the CLI is talked to is a [`Transport`]: headless, or over ACP.
//!
//! It never waits for the reader of the events: what the reader has not taken stays in the output file, and the clocks go on.

mod outlet;

use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_model::{Stop, Timestamp, options};
use alhena_sys::growth::Growth;
use alhena_sys::poll::{self, Wanted};
use alhena_sys::processes;
use alhena_sys::sockets::Stream;

pub(crate) use self::outlet::Outlet;
use crate::account::{Account, NOBODY_TELLS};
use crate::follow::Follower;
use crate::prepare::{Ready, Restart};
use crate::retries::Retries;
use crate::run::{AT_ONCE, About, Item, Listener, Over, RING, Sessions};
use crate::supervise::custody::{Custody, Locks};
use crate::tail::SessionTail;
use crate::ward::Ward;

/// How long to wait for a reader that is behind before looking again.
pub(crate) const READER_IS_BEHIND: Duration = Duration::from_millis(5);
/// How long to wait at most if nothing happens.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// How long to read before everything else gets its turn.
pub(crate) const READ_AT_A_TIME: Duration = Duration::from_millis(20);

/// How a CLI is talked to: the source of inputs, and the way to send a prompt and to stop.
///
/// The engine calls these in this order, over and over until the keeper has nothing left to report.
pub(crate) trait Transport: Sized {
    /// The process that is talked to.
    fn process(&mut self) -> &mut Process;

    /// Does what comes before the first wait.
    fn begin(&mut self);

    /// Waits with [`Process::wait`] until there is something to do.
    fn wait(&mut self);

    /// The CLI has exited; its files hold all that it wrote.
    fn cli_has_exited(&mut self) {}

    /// Handles a request to stop.
    fn stop_asked(&mut self, asked: StopAsked);

    /// Hands out what waits, then reads as far as the reader keeps up, and not for long.
    fn read(&mut self);

    /// Takes the next step that the state allows, such as sending a prompt.
    fn go_on(&mut self);

    /// Stops what exceeds a limit.
    fn check_limits(&mut self);

    /// The process is over. Returns true if another one has taken its place.
    fn is_continued(&mut self) -> bool {
        false
    }

    /// Judges, cleans up, and hands out the outcome.
    fn finish(self);
}

/// Runs a transport to its end.
pub(crate) fn run<T: Transport>(mut transport: T) {
    transport.begin();
    loop {
        while !transport.process().ward.over {
            transport.wait();
            if transport.process().hear_keeper() {
                transport.cli_has_exited();
            }
            if let Some(asked) = transport.process().stop_asked() {
                transport.stop_asked(asked);
            }
            transport.read();
            transport.go_on();
            transport.check_limits();
        }
        if !transport.is_continued() {
            return transport.finish();
        }
    }
}

/// The two ends of the way to an engine: what is written to the first wakes it.
pub(crate) fn bell() -> io::Result<(Stream, Stream)> {
    let (bell, rung) = Stream::pair()?;
    bell.set_nonblocking(true)?;
    rung.set_nonblocking(true)?;
    Ok((bell, rung))
}

/// A request to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopAsked {
    /// Stop gently.
    Gently,
    /// Stop without waiting for anything.
    AtOnce,
    /// The caller that could ask for a stop is gone.
    CallerIsGone,
}

/// A process of the CLI under its keeper, the files that it writes, and the way to its engine.
pub(crate) struct Process {
    pub ward: Ward,
    pub stdout: Follower,
    /// Tells when a file grows.
    pub growth: Growth,
    /// What standard error says of requests to the API.
    pub retries: Retries,
    /// Callers ring here.
    pub bell: Stream,
    caller_is_gone: bool,
    pub started: Instant,
    /// The session files that it left in the user's store.
    pub sessions: Sessions,
    /// Set when nothing of it is left.
    pub over: Over,
}

/// What an engine waits for besides its process.
#[derive(Default)]
pub(crate) struct Waits<'a> {
    /// The longest time, if it is shorter than [`LONGEST_WAIT`].
    pub longest: Option<Duration>,
    /// The times at which something has to be done.
    pub alarms: [Option<Instant>; 2],
    /// The run or turn that is followed.
    pub account: Option<&'a Account>,
    /// More that can become readable or writable.
    pub others: Vec<Wanted<'a>>,
    /// The reader is behind: news of more output would only keep the engine awake.
    pub ignores_output: bool,
}

impl Process {
    /// Starts what was prepared, and follows its output from the first byte. Returns also the warnings of the preparation.
    pub(crate) fn start(
        ready: Ready,
        keeper: Option<&Path>,
        bell: Stream,
        started: Instant,
    ) -> io::Result<Self> {
        let Ready { launch, home, run_dir, warnings, .. } = ready;
        let (stdout, stderr): (&Path, &Path) = (launch.stdout.as_ref(), launch.stderr.as_ref());
        let follower = Follower::open(stdout)?;
        // Here already, so that it can be watched from the start.
        let _stderr = Follower::open(stderr)?;
        let growth = Growth::new();
        growth.watch(stdout);
        growth.watch(stderr);
        let locks = Locks { home: home.as_ref().map(|home| home.lock()), run: Some(run_dir.lock()) };
        let custody = Custody::take(&launch, keeper, locks)?;
        let mut ward = Ward::new(custody, PathBuf::from(&launch.stderr), run_dir, home);
        ward.warnings.splice(0..0, warnings);
        if !processes::COMPLETE {
            let warning = "On this system processes that leave their group can outlive the run";
            ward.warnings.push(warning.to_owned());
        }
        Ok(Self {
            retries: Retries::new(&ward.stderr),
            ward,
            stdout: follower,
            growth,
            bell,
            caller_is_gone: false,
            started,
            sessions: Sessions::default(),
            over: Over::default(),
        })
    }

    /// Starts another CLI in the place of the one that has ended.
    pub(crate) fn restart(&mut self, restart: Restart, keeper: Option<&Path>) -> io::Result<()> {
        let Restart { launch, home, warnings } = restart;
        let run = Some(self.ward.run_dir.lock());
        let locks = Locks { home: home.as_ref().map(|home| home.lock()), run };
        let custody = Custody::take(&launch, keeper, locks)?;
        for file in [&launch.stdout, &launch.stderr] {
            self.growth.watch(file.as_ref());
        }
        self.ward.warnings.extend(warnings);
        self.ward.begin_again(custody, home);
        Ok(())
    }

    /// What is known of it from its start.
    pub(crate) fn about(&self, transport: options::Transport) -> About {
        About::new(self.ward.run_dir.mark().to_owned(), self.ward.stderr.clone(), transport)
    }

    /// The session files of its home; none if it works in the user's own.
    pub(crate) fn session_tail(&self) -> Option<SessionTail> {
        let home = self.ward.home.as_ref()?;
        Some(SessionTail::new(home.chats_dir(), Timestamp::now(), Growth::new()))
    }

    /// Returns true if the CLI is gone. A keeper that was lost does not report it.
    pub(crate) fn is_gone(&self) -> bool {
        self.ward.ended.is_some() || self.ward.over
    }

    /// Waits until the CLI, the keeper or a caller has something to say, or an alarm is due.
    pub(crate) fn wait(&self, waits: Waits<'_>) {
        if self.ward.custody.has_buffered_report() {
            return;
        }
        let Waits { longest, alarms, account, others, ignores_output } = waits;
        let session = account.and_then(Account::session_growth);
        let growths = || [Some(&self.growth), session].into_iter().flatten();
        let blind = growths().any(|growth| growth.fd().is_none());
        let now = Instant::now();
        let alarms = alarms.into_iter().flatten().map(|at| at.saturating_duration_since(now));
        let times =
            [longest, blind.then_some(NOBODY_TELLS), account.and_then(Account::longest_wait_for_fact)];
        let longest = times.into_iter().flatten().chain(alarms).fold(LONGEST_WAIT, Duration::min);
        let mut wanted = vec![Wanted::readable(self.ward.custody.socket())];
        if !self.caller_is_gone {
            wanted.push(Wanted::readable(&self.bell));
        }
        wanted.extend(others);
        if !ignores_output {
            wanted.extend(growths().filter_map(Growth::fd).map(Wanted::Readable));
        }
        let _looked_at_anyway = poll::wait(&wanted, Some(longest));
        growths().for_each(Growth::clear);
    }

    /// Waits until this time, or until a caller rings, where no process is followed.
    pub(crate) fn wait_for_caller(&self, longest: Duration) {
        let wanted = [Wanted::readable(&self.bell)];
        let wanted = if self.caller_is_gone { &[][..] } else { &wanted };
        let _looked_at_anyway = poll::wait(wanted, Some(longest));
    }

    /// Takes what the keeper has reported. Returns true if the CLI has exited by now.
    fn hear_keeper(&mut self) -> bool {
        let ended_before = self.ward.ended.is_some();
        while !self.ward.over && self.ward.custody.has_report_within(Duration::ZERO) {
            match self.ward.custody.report() {
                Ok(Some(report)) => self.ward.take_report(report),
                Ok(None) | Err(_) => self.ward.over = true,
            }
        }
        self.ward.ended.is_some() && !ended_before
    }

    /// Returns what callers have asked for since the last time.
    pub(crate) fn stop_asked(&mut self) -> Option<StopAsked> {
        let mut words = [0; 64];
        match self.bell.read(&mut words) {
            Ok(0) if !self.caller_is_gone => {
                self.caller_is_gone = true;
                Some(StopAsked::CallerIsGone)
            }
            Ok(count) => {
                let words = words.get(..count).unwrap_or_default();
                match words {
                    _ if words.contains(&AT_ONCE) => Some(StopAsked::AtOnce),
                    _ => words.iter().any(|word| *word != RING).then_some(StopAsked::Gently),
                }
            }
            Err(_nobody_rang) => None,
        }
    }

    /// Returns the stop for a CLI that writes more than it may, beyond what there was before.
    pub(crate) fn too_much_written(&self, most: (u64, u64), before: (u64, u64)) -> Option<Stop> {
        match () {
            () if self.stdout.len().saturating_sub(before.0) > most.0 => Some(Stop::TooMuchOutput(most.0)),
            () if self.retries.written().saturating_sub(before.1) > most.1 => {
                Some(Stop::TooMuchStderr(most.1))
            }
            () => None,
        }
    }

    /// Removes everything of the process, then hands out the last events: a caller that has them may exit at once.
    pub(crate) fn close(
        self,
        last: impl IntoIterator<Item = (Outlet, VecDeque<Item>)>,
        between: impl FnOnce(),
    ) {
        let Self { ward, over, .. } = self;
        drop(ward);
        over.set();
        between();
        for (outlet, mut waiting) in last {
            while !outlet.hand_out(&mut waiting) && outlet.listener() != Listener::Gone {
                std::thread::sleep(READER_IS_BEHIND);
            }
        }
    }
}

/// Returns the alarm that is due first: the end of the whole time, or of a silence.
pub(crate) fn first_alarm(
    (began, whole): (Instant, Option<Duration>),
    quiet: Option<(Instant, Stop)>,
) -> Option<(Instant, Stop)> {
    let whole = whole.and_then(|limit| Some((began.checked_add(limit)?, Stop::Timeout(limit))));
    whole.into_iter().chain(quiet).min_by_key(|(at, _)| *at)
}
