//! The guard: a second process outside of the keeper, for the case that somebody kills the keeper.
//!
//! What the CLI had started is then an orphan, perhaps with a cleared environment and in a session of its own: nothing but
//! its descent says whose it is, and a keeper that is gone cannot be asked. So the keeper runs below a guard that is a
//! child subreaper as well. The kernel hands it every orphan of a dead keeper, and it does what the keeper would have done.
//!
//! Both come from one start of the program, which doubles itself: that takes a fraction of a millisecond.

use std::io::{self, BufReader};
use std::time::{Duration, Instant};

use alhena_sys::fork::{Fork, adopt_orphans, fork};
use alhena_sys::handles::OwnedHandle;
use alhena_sys::poll::{self, Wanted};
use alhena_sys::processes::{self, Signal, end_of};
use alhena_sys::signals::{self, Noted};
use alhena_sys::sockets::{self, Stream};

use super::keeper;
use super::protocol::{self, Launch, Report};
use super::sweep::Life;
use crate::home::Stopped;

/// How long a keeper may take when Alhena is gone: its ladder, its sweep and the session of the run.
const PATIENCE: Duration = Duration::from_secs(30);

/// The whole life of the process that Alhena starts; its standard input is the socket to Alhena.
pub fn main() -> io::Result<()> {
    // Out of the terminal's reach: ^C there is for Alhena, which then tells the keeper.
    processes::leave_session();
    let _by_mark_only = adopt_orphans();
    // No process of the run may hold this socket: its end is how Alhena knows that we are gone.
    let control = sockets::from_stdin()?;
    let mut orders = BufReader::new(control.try_clone()?);
    let Some(launch) = keeper::first_order(&control, &mut orders)? else { return Ok(()) };
    match fork() {
        Ok(Fork::Parent(keeper)) => {
            drop(orders);
            Guard::new(keeper, control, *launch)?.watch()
        }
        Ok(Fork::Child) => {
            // Nobody who signals one of them by its group or session meets the other.
            processes::leave_session();
            let _by_mark_only = adopt_orphans();
            keeper::serve(control, orders, *launch, Life::Process)
        }
        // The keeper alone is better than none.
        Err(_) => keeper::serve(control, orders, *launch, Life::Process),
    }
}

struct Guard {
    keeper: u32,
    ended: Option<OwnedHandle>,
    control: Stream,
    launch: Launch,
    /// Somebody asks everything to stop.
    asked: Noted,
    /// Alhena says that the keeper does not answer.
    stuck: Noted,
}

/// The signal by which Alhena says that the keeper does not answer.
pub(super) const TAKE_OVER: Signal = Signal::USR1;

impl Guard {
    fn new(keeper: u32, control: Stream, launch: Launch) -> io::Result<Self> {
        let (asked, stuck) = (Noted::of(&signals::ENDING)?, Noted::of(&[TAKE_OVER])?);
        let ended = end_of(keeper).ok();
        Ok(Self { keeper, ended, control, launch, asked, stuck })
    }

    /// Waits for the keeper's end, and does its work if that came too early.
    fn watch(self) -> io::Result<()> {
        let mut abandoned = None;
        loop {
            match processes::collect(self.keeper) {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Some(_)) | Err(_) => break,
            }
            if self.asked.take() {
                processes::signal(self.keeper, Signal::TERM);
            }
            if abandoned.is_none() && keeper::has_hung_up(&self.control) {
                abandoned = Some(Instant::now());
            }
            let too_long = abandoned.is_some_and(|since| since.elapsed() > PATIENCE);
            if too_long || self.stuck.take() {
                // It works on a process that is stopped, too.
                processes::signal(self.keeper, Signal::KILL);
            }
            self.wait(abandoned.is_none());
        }
        let _gone = protocol::send(&self.control, &Report::KeeperLost);
        keeper::clean_up(&self.launch, &self.control, Life::Process, Stopped::Midway);
        Ok(())
    }

    fn wait(&self, listening: bool) {
        let longest = Duration::from_millis(if self.ended.is_some() { 500 } else { 20 });
        let mut wanted: Vec<Wanted<'_>> = self.ended.iter().map(Wanted::readable).collect();
        if listening {
            wanted.push(Wanted::hung_up(&self.control));
        }
        let _looked_at_anyway = poll::wait(&wanted, Some(longest));
    }
}
