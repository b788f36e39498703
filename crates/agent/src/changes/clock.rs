//! The time to compare files with.
//!
//! File times come from a clock of their own: Linux stamps files with a clock that ticks 100 to 1000 times a second, so a
//! file written right after `SystemTime::now()` may be stamped up to 10 ms before it. Some file systems keep whole seconds
//! only, and a network file system has a clock elsewhere.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

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

#[cfg(target_os = "linux")]
fn stamping_clock() -> Option<SystemTime> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    let (seconds, nanoseconds) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

#[cfg(not(target_os = "linux"))]
fn stamping_clock() -> Option<SystemTime> {
    None
}

/// Whether a directory is on a local file system that keeps fractions of seconds.
#[cfg(target_os = "linux")]
fn keeps_fine_time(root: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    /// NFS, SMB in three forms, 9P, FUSE, FAT, and Ceph, by the numbers of `statfs(2)`.
    const ELSEWHERE: [u32; 8] =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x6573_5546, 0x4d44, 0x00c3_6400];
    // The numbers fill 32 bits, which some machines keep in a signed and some in a longer integer.
    let local = rustix::fs::statfs(root).is_ok_and(|data| !ELSEWHERE.contains(&(data.f_type as u32)));
    local && root.metadata().is_ok_and(|data| data.mtime_nsec() != 0 || data.ctime_nsec() != 0)
}

#[cfg(not(target_os = "linux"))]
fn keeps_fine_time(root: &Path) -> bool {
    let modified = root.metadata().and_then(|data| data.modified());
    let fraction = modified.ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    fraction.is_some_and(|time| time.subsec_nanos() != 0)
}

/// When anything about a file last changed: its contents, its name, its permissions.
#[cfg(unix)]
pub(super) fn changed(data: &Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    let (seconds, nanoseconds) = (u64::try_from(data.ctime()).ok()?, u32::try_from(data.ctime_nsec()).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

/// When anything about a file last changed, which Windows does not tell.
#[cfg(not(unix))]
pub(super) fn changed(_data: &Metadata) -> Option<SystemTime> {
    None
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
            let stamp = data.modified().unwrap().max(changed(&data).unwrap());
            assert!(stamp < start, "round {round}: {stamp:?} is not before {start:?}");
        }
    }

    #[test]
    fn file_system_that_cannot_be_asked_is_allowed_for() {
        let now = SystemTime::now();
        assert!(scan_start(Path::new("/nonexistent/directory"), Instant::now()) <= now - COARSE + TICK);
    }
}
