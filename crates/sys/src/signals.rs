//! Signals that come to this process: noted, and looked at when there is time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::processes::Signal;
use crate::sockets::Stream;

/// Those by which somebody asks a process to end.
pub const ENDING: [Signal; 3] = [Signal::TERM, Signal::INT, Signal::HUP];

/// Whether a signal has come.
#[derive(Clone, Debug, Default)]
pub struct Noted(Arc<AtomicBool>);

impl Noted {
    /// Notes these signals from now on, in place of what they do otherwise.
    pub fn of(signals: &[Signal]) -> io::Result<Self> {
        let noted = Self::default();
        for signal in signals {
            signal_hook::flag::register(signal.as_raw(), Arc::clone(&noted.0))?;
        }
        Ok(noted)
    }

    /// Whether one has come.
    #[must_use]
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether one has come since this was asked the last time.
    #[must_use]
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Signals one after the other, by their numbers, for a thread that does nothing else.
#[derive(Debug)]
pub struct Arrivals(signal_hook::iterator::Signals);

impl Arrivals {
    /// Takes these signals from now on, in place of what they do otherwise.
    pub fn of(signals: &[Signal]) -> io::Result<Self> {
        signal_hook::iterator::Signals::new(signals.iter().map(|signal| signal.as_raw())).map(Self)
    }

    /// Waits for the next one, again and again.
    pub fn forever(&mut self) -> impl Iterator<Item = i32> + '_ {
        self.0.forever()
    }
}

/// Returns a socket that is readable when one of these signals has come.
pub fn as_socket(signals: &[Signal]) -> io::Result<Stream> {
    let (come, told) = Stream::pair()?;
    for signal in signals {
        signal_hook::low_level::pipe::register(signal.as_raw(), told.try_clone()?)?;
    }
    Ok(come)
}

/// Lets a file that must not grow any more be an error like others: without this the system kills whoever writes.
///
/// By a handler that does nothing. Programs that we start are to have the signal as it was, and ignoring is inherited.
pub fn outlive_file_limits() {
    let _as_before = Noted::of(&[Signal::XFSZ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_noted_until_it_is_taken() {
        let noted = Noted::of(&[Signal::USR2]).unwrap();
        assert!(!noted.has_come());
        rustix::process::kill_process(rustix::process::getpid(), Signal::USR2).unwrap();
        while !noted.has_come() {
            std::thread::yield_now();
        }
        assert!(noted.take());
        assert!(!noted.has_come() && !noted.take());
    }
}
