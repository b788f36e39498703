//! Whoever reads what we print, and whether it is still there.

use std::time::Duration;

use alhena_agent::Stopper;
use alhena_sys::handles::{self, AsHandle, OwnedHandle};
use alhena_sys::poll;

/// How often is looked whether the run is over.
const NOW_AND_THEN: Duration = Duration::from_millis(500);

/// Stops the run when nobody reads its output any more: what the agent does from then on nobody asked for. A write would
/// find out as well, but while a tool runs for an hour there is nothing to write.
pub fn stop_when_gone(output: impl AsHandle, stopper: Stopper) {
    let Ok(output) = handles::duplicate(output) else { return };
    std::thread::spawn(move || {
        while !stopper.is_over() {
            if is_gone(&output) {
                return stopper.stop();
            }
        }
    });
}

/// Waits a while for the other end of a pipe, a socket or a terminal to be closed. Files have no other end.
fn is_gone(output: &OwnedHandle) -> bool {
    poll::has_hung_up(output, NOW_AND_THEN).unwrap_or_else(|_| {
        std::thread::sleep(NOW_AND_THEN);
        false
    })
}
