//! All that can happen to whoever speaks a protocol on stdin and stdout, from four threads and more into one queue: the program
//! speaks, an agent does, somebody wants it to end, nobody reads any more.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use alhena_agent::{Turn, TurnItem};
use alhena_model::Outcome;
use alhena_sys::signals::{Arrivals, ENDING};
use alhena_sys::{handles, poll};
use alhena_wire::frame::{Frame, Framer};

/// So many may wait: whoever is faster than the program reads has to wait, too.
const QUEUE: usize = 256;
const NOW_AND_THEN: Duration = Duration::from_millis(500);
/// How long after a signal everything has to be over: whoever does not read what is written must not keep it from ending. The
/// keepers clean up by themselves.
const LAST_RESORT: Duration = Duration::from_secs(20);

pub enum Happening {
    /// The program says a line.
    Line(Vec<u8>),
    /// It says one that is too long for anybody.
    TooLong(u64),
    /// It says nothing any more.
    InputOver,
    /// Something happens in the turn of this conversation.
    Item(u64, Box<TurnItem>),
    /// That turn is over.
    Over(u64, Arc<Outcome>),
    /// A signal.
    Signal(i32),
    /// Nobody reads what is written.
    Gone,
}

/// Listens to the program, to signals, and for the end of whoever reads.
pub fn listen() -> (SyncSender<Happening>, Receiver<Happening>) {
    let (sender, receiver) = sync_channel(QUEUE);
    let to = sender.clone();
    std::thread::spawn(move || read_lines(&to));
    let to = sender.clone();
    if let Ok(mut signals) = Arrivals::of(&ENDING) {
        std::thread::spawn(move || {
            for signal in signals.forever() {
                std::thread::spawn(move || {
                    std::thread::sleep(LAST_RESORT);
                    std::process::exit(i32::from(exit_code(signal)));
                });
                if to.send(Happening::Signal(signal)).is_err() {
                    return;
                }
            }
        });
    }
    let to = sender.clone();
    std::thread::spawn(move || {
        loop {
            match poll::has_hung_up(handles::stdout(), NOW_AND_THEN) {
                Ok(true) => break drop(to.send(Happening::Gone)),
                Ok(false) => {}
                // A file, which nobody leaves.
                Err(_) => break,
            }
        }
    });
    (sender, receiver)
}

/// The exit code of a process that a signal ends.
pub fn exit_code(signal: i32) -> u8 {
    128_u8.saturating_add(signal as u8)
}

fn read_lines(to: &SyncSender<Happening>) {
    let (mut framer, mut buffer) = (Framer::default(), vec![0; 64 << 10]);
    let mut stdin = io::stdin().lock();
    let mut open = true;
    let mut take = |frame: Frame<'_>| {
        open &= to
            .send(match frame {
                Frame::Line(line) => Happening::Line(line.to_vec()),
                Frame::TooLong { bytes, .. } => Happening::TooLong(bytes),
            })
            .is_ok();
    };
    loop {
        match stdin.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => framer.push(buffer.get(..count).unwrap_or_default(), &mut take),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    framer.finish(&mut take);
    let _over = to.send(Happening::InputOver);
}

/// Hands on what happens in a turn of this conversation, to its end.
pub fn follow(conversation: u64, mut turn: Turn, to: SyncSender<Happening>) {
    std::thread::spawn(move || {
        while let Some(item) = turn.next_blocking() {
            if to.send(Happening::Item(conversation, Box::new(item))).is_err() {
                return;
            }
        }
        let _over = to.send(Happening::Over(conversation, turn.outcome_blocking()));
    });
}
