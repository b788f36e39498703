//! Reads standard input for commands whose prompt may come from it. Nothing that arrives is dropped, and no wait is endless:
//! a silent pipe has a time limit, a signal ends the wait, and the size is bounded.

use std::fmt;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use alhena_sys::handles::{self, AsHandle};
use alhena_sys::poll;

use crate::signals::Interrupts;

/// How often the caller's signals are checked.
const GLANCE: Duration = Duration::from_millis(50);
/// How long an input may stay silent before it counts as one that will never be written.
pub const LIMIT: Duration = Duration::from_secs(30);
/// The largest input that is accepted.
const MAX_BYTES: usize = 8 << 20;

/// What to do while standard input is open and has sent nothing. Once a byte has arrived, all of it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Wait without a limit.
    Wait,
    /// Continue without input after this time.
    Ignore(Duration),
    /// Say that input is waited for after `notice`, and give up after `limit`.
    Refuse { notice: Duration, limit: Duration },
}

impl Silence {
    /// Gemini CLI's own rule (0.61.0), for hosts that leave a pipe open and expect the run to start.
    pub const OF_GEMINI_CLI: Silence = Silence::Ignore(Duration::from_millis(500));
    /// The rule of `alhena run`. A producer may need a while before it writes; one that never writes must not block a run
    /// for ever.
    pub const OF_RUN: Silence = Silence::Refuse { notice: Duration::from_secs(1), limit: LIMIT };
}

/// Why standard input could not be read.
#[derive(Debug)]
pub enum Unread {
    /// A signal arrived first.
    Interrupted,
    /// Nothing arrived within the limit.
    Silent(Duration),
    TooMuch,
    Failed(io::Error),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unread::Interrupted => f.write_str("Stopped while the prompt was read from stdin"),
            Unread::Silent(limit) => {
                write!(f, "stdin is open, but nothing arrived within {} s", limit.as_secs_f32())
            }
            Unread::TooMuch => {
                write!(f, "the prompt is too large: there are more than {MAX_BYTES} bytes on stdin")
            }
            Unread::Failed(error) => write!(f, "stdin: {error}"),
        }
    }
}

/// Reads standard input to its end. A terminal is read only with [`Silence::Wait`]; otherwise it counts as empty.
/// `notice` is called once when a wait begins to be long.
pub fn read(silence: Silence, interrupts: &Interrupts, notice: impl FnOnce()) -> Result<Vec<u8>, Unread> {
    let stdin = io::stdin();
    if silence != Silence::Wait && stdin.is_terminal() {
        return Ok(Vec::new());
    }
    read_from(&stdin, silence, || interrupts.caught().is_some(), notice)
}

/// Reads any input by these rules. Pipes, sockets and devices may be silent; files and `/dev/null` never are.
fn read_from(
    input: impl AsHandle,
    silence: Silence,
    interrupted: impl Fn() -> bool,
    notice: impl FnOnce(),
) -> Result<Vec<u8>, Unread> {
    let mut notice = Some(notice);
    let (begun, mut bytes, mut buffer) = (Instant::now(), Vec::new(), vec![0; 64 << 10]);
    loop {
        if interrupted() {
            return Err(Unread::Interrupted);
        }
        if !poll::is_readable(&input, GLANCE).map_err(Unread::Failed)? {
            match silence {
                _ if !bytes.is_empty() => {}
                Silence::Wait => {}
                Silence::Ignore(limit) if begun.elapsed() >= limit => return Ok(bytes),
                Silence::Ignore(_) => {}
                Silence::Refuse { limit, .. } if begun.elapsed() >= limit => {
                    return Err(Unread::Silent(limit));
                }
                Silence::Refuse { notice: after, .. } if begun.elapsed() >= after => {
                    notice.take().into_iter().for_each(|notice| notice());
                }
                Silence::Refuse { .. } => {}
            }
            continue;
        }
        match handles::read(&input, &mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            // Another process may share a non-blocking pipe and have read first.
            Err(error) if handles::is_for_later(&error) => {}
            // Such as the one that `nohup` gives: it can only be written to.
            Err(error) if handles::is_not_for_reading(&error) => return Ok(bytes),
            Err(error) => return Err(Unread::Failed(error)),
        }
        if bytes.len() > MAX_BYTES {
            return Err(Unread::TooMuch);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs::File;
    use std::io::Write;

    use alhena_sys::sockets::Stream;

    use super::*;

    const SOON: Duration = Duration::from_millis(60);
    const NEVER: Duration = Duration::from_secs(3600);
    const PATIENT: Silence = Silence::Refuse { notice: NEVER, limit: NEVER };

    fn read(input: impl AsHandle, silence: Silence) -> Result<Vec<u8>, Unread> {
        read_from(input, silence, || false, || {})
    }

    #[test]
    fn a_pipe_that_begins_late_is_read_to_its_end_after_a_notice() {
        let (reader, mut writer) = io::pipe().unwrap();
        let silence = Silence::Refuse { notice: Duration::ZERO, limit: NEVER };
        let noticed = Cell::new(0);
        // The producer writes only once the reader has said that it waits.
        let notice = || {
            noticed.set(noticed.get() + 1);
            writer.write_all(b"late").unwrap();
            std::thread::spawn(move || {
                // The pause between two writes is longer than a silent beginning may be.
                std::thread::sleep(SOON * 2);
                writer.write_all(b" and later").unwrap();
            });
        };
        let read = read_from(&reader, silence, || false, notice).unwrap();
        assert_eq!((read.as_slice(), noticed.get()), (&b"late and later"[..], 1));
    }

    #[test]
    fn a_pause_after_the_first_byte_is_no_end_and_no_refusal() {
        for silence in [Silence::Ignore(SOON), Silence::Refuse { notice: SOON, limit: SOON }] {
            let (reader, mut writer) = io::pipe().unwrap();
            writer.write_all(b"one").unwrap();
            let producer = std::thread::spawn(move || {
                std::thread::sleep(SOON * 3);
                writer.write_all(b" two").unwrap();
            });
            assert_eq!(read(&reader, silence).unwrap(), b"one two", "{silence:?}");
            producer.join().unwrap();
        }
    }

    #[test]
    fn pipes_sockets_and_devices_that_stay_silent_are_refused_and_the_drop_in_goes_on() {
        let (pipe, _open) = io::pipe().unwrap();
        let (socket, _peer) = Stream::pair().unwrap();
        let refuse = Silence::Refuse { notice: NEVER, limit: SOON };
        for input in [handles::of(&pipe), handles::of(&socket)] {
            let refused = read(input, refuse).unwrap_err();
            assert!(matches!(refused, Unread::Silent(limit) if limit == SOON), "{refused}");
            assert_eq!(read(input, Silence::Ignore(SOON)).unwrap(), b"");
        }
    }

    #[test]
    fn input_that_has_an_end_is_never_waited_for() {
        let (closed_pipe, writer) = io::pipe().unwrap();
        drop(writer);
        let (closed_socket, peer) = Stream::pair().unwrap();
        drop(peer);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"text").unwrap();
        let unreadable = File::options().write(true).open("/dev/null").unwrap();
        let null = File::open("/dev/null").unwrap();
        for silence in [PATIENT, Silence::Wait] {
            let pipe_and_socket = [handles::of(&closed_pipe), handles::of(&closed_socket)];
            let devices = [handles::of(&null), handles::of(&unreadable)];
            for input in pipe_and_socket.into_iter().chain(devices) {
                assert_eq!(read(input, silence).unwrap(), b"");
            }
            io::Seek::rewind(&mut file).unwrap();
            assert_eq!(read(&file, silence).unwrap(), b"text");
        }
    }

    #[test]
    fn a_signal_ends_every_wait_and_no_input_is_too_large_to_refuse() {
        let (reader, mut writer) = io::pipe().unwrap();
        for silence in [Silence::Wait, PATIENT, Silence::Ignore(NEVER)] {
            let ended = read_from(&reader, silence, || true, || {});
            assert!(matches!(ended, Err(Unread::Interrupted)), "{ended:?}");
        }
        let flood = std::thread::spawn(move || {
            let chunk = vec![b'a'; 1 << 20];
            while writer.write_all(&chunk).is_ok() {}
        });
        assert!(matches!(read(&reader, PATIENT), Err(Unread::TooMuch)));
        drop(reader);
        flood.join().unwrap();
    }
}
