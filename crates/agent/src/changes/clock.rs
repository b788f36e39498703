//! The time to compare files with.
//!
//! File times come from a clock of their own: Linux stamps files with a clock that ticks 100 to 1000 times a second, so a
//! file written right after `SystemTime::now()` may be stamped up to 10 ms before it. Some file systems keep whole seconds
//! only, and a network file system has a clock elsewhere.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use alhena_sys::files::{keeps_fine_time, stamping_clock};

/// What is allowed for file systems that keep whole seconds, or whose clock is another machine's.
const COARSE: Duration = Duration::from_secs(2);

/// What is allowed where the clock that stamps files cannot be read.
const TICK: Duration = Duration::from_millis(20);

/// How often the clock that stamps files is looked at.
const LOOK: Duration = Duration::from_micros(500);

/// A time such that every change below `root` from now on is stamped with it or later, and every change before `began`, or 20
/// ms ago if that is later, is stamped earlier. Touches nothing. What has begun just now waits until files are stamped with
/// a later time: a tick of their clock at most.
///
/// Where that clock cannot be read, or is coarse, the time is early: a change just before may count, none after is missed.
#[must_use]
pub fn scan_start(root: &Path, began: Instant) -> SystemTime {
    // In this order: whatever comes between, the start is never before it began.
    let ago = began.elapsed().min(TICK);
    let start = SystemTime::now() - ago;
    if !keeps_fine_time(root) {
        return start - COARSE;
    }
    let waited = Instant::now();
    loop {
        let late = waited.elapsed() > TICK;
        match stamping_clock() {
            None => return start - TICK,
            Some(clock) if clock >= start => return start,
            // Somebody has set the clock.
            Some(clock) if late => return clock,
            Some(_) => std::thread::sleep(LOOK),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_written_at_once_is_never_stamped_before_the_start() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        for round in 0..2000 {
            let start = scan_start(root.path(), Instant::now());
            std::fs::write(&file, round.to_string()).unwrap();
            let stamp = file.metadata().unwrap().modified().unwrap();
            assert!(stamp >= start, "round {round}: {stamp:?} is before {start:?}");
        }
    }

    // Elsewhere the clock that stamps files cannot be read.
    #[cfg(target_os = "linux")]
    #[test]
    fn file_written_just_before_is_stamped_before_the_start() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        for round in 0..200 {
            std::fs::write(&file, round.to_string()).unwrap();
            let start = scan_start(root.path(), Instant::now());
            let data = file.metadata().unwrap();
            let stamp = data.modified().unwrap().max(alhena_sys::files::changed(&data).unwrap());
            assert!(stamp < start, "round {round}: {stamp:?} is not before {start:?}");
        }
    }

    #[test]
    fn file_system_that_cannot_be_asked_is_allowed_for() {
        let now = SystemTime::now();
        assert!(scan_start(Path::new("/nonexistent/directory"), Instant::now()) <= now - COARSE + TICK);
    }
}
