//! Whoever reads what we print, and whether it is still there.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use alhena::Stopper;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How often is looked whether the run is over.
const NOW_AND_THEN: Duration = Duration::from_millis(500);

/// Stops the run when nobody reads its output any more: what the agent does from then on nobody asked for. A write would
/// find out as well, but while a tool runs for an hour there is nothing to write.
pub fn stop_when_gone(output: impl AsFd, stopper: Stopper) {
    let Ok(output) = output.as_fd().try_clone_to_owned() else { return };
    std::thread::spawn(move || {
        while !stopper.is_over() {
            if is_gone(&output) {
                return stopper.stop();
            }
        }
    });
}

/// Waits a while for the other end of a pipe, a socket or a terminal to be closed. Files have no other end.
fn is_gone(output: &OwnedFd) -> bool {
    let time = Timespec { tv_sec: 0, tv_nsec: i64::from(NOW_AND_THEN.subsec_nanos()) };
    let mut fds = [PollFd::new(output, PollFlags::empty())];
    match poll(&mut fds, Some(&time)) {
        Ok(_) => fds.iter().any(|fd| fd.revents().intersects(PollFlags::ERR | PollFlags::HUP)),
        Err(_) => {
            std::thread::sleep(NOW_AND_THEN);
            false
        }
    }
}
