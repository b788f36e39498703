//! All that can happen to a conversation, from four threads into one queue: the program speaks, the agent does, somebody
//! wants it to end, nobody reads any more.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use alhena::wire::frame::{Frame, Framer};
use alhena::{Outcome, Turn, TurnItem};
use alhena_sys::poll;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// So many may wait: whoever is faster than the program reads has to wait, too.
const QUEUE: usize = 256;
const NOW_AND_THEN: Duration = Duration::from_millis(500);

pub enum Happening {
    /// The program says a line.
    Line(Vec<u8>),
    /// It says one that is too long for anybody.
    TooLong(u64),
    /// It says nothing any more.
    InputOver,
    /// Something happens in the turn.
    Item(Box<TurnItem>),
    /// The turn is over.
    Over(Arc<Outcome>),
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
    if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) {
        std::thread::spawn(move || {
            for signal in signals.forever() {
                if to.send(Happening::Signal(signal)).is_err() {
                    return;
                }
            }
        });
    }
    let to = sender.clone();
    std::thread::spawn(move || {
        loop {
            match poll::has_hung_up(rustix::stdio::stdout(), NOW_AND_THEN) {
                Ok(true) => break drop(to.send(Happening::Gone)),
                Ok(false) => {}
                // A file, which nobody leaves.
                Err(_) => break,
            }
        }
    });
    (sender, receiver)
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

/// Hands on what happens in a turn, to its end.
pub fn follow(mut turn: Turn, to: SyncSender<Happening>) {
    std::thread::spawn(move || {
        while let Some(item) = turn.next_blocking() {
            if to.send(Happening::Item(Box::new(item))).is_err() {
                return;
            }
        }
        let _over = to.send(Happening::Over(turn.outcome_blocking()));
    });
}
