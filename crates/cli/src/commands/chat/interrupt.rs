//! ^C while the model works: the first cancels the turn, the second ends the conversation. While a line is being typed the
//! editor sees the key itself.

use std::sync::Arc;
use std::time::Duration;

use alhena_agent::Canceller;
use alhena_sys::handles;
use alhena_sys::processes::Signal;
use alhena_sys::signals::{Arrivals, ENDING};
use alhena_sys::terminals::Settings;
use parking_lot::Mutex;

/// The exit code of a conversation that was interrupted.
pub const INTERRUPTED: u8 = 130;
/// What a conversation gets to end in order.
const PATIENCE: Duration = Duration::from_secs(5);

/// Catches signals for as long as the program runs.
pub struct Interrupts {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What goes on.
    turn: Option<Canceller>,
    /// Whether this turn has been cancelled.
    cancelled: bool,
    ending: bool,
    typed: bool,
    /// How the terminal was, for when a line is being typed.
    terminal: Option<Settings>,
}

impl Interrupts {
    /// `typed` says that somebody types at a line editor, who sees ^C there.
    pub fn catch(typed: bool) -> Self {
        let terminal = Settings::of(handles::stdin());
        let state = State { terminal, typed, ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let theirs = state.clone();
        if let Ok(mut signals) = Arrivals::of(&ENDING) {
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    theirs.lock().take(signal);
                }
            });
        }
        Self { state }
    }

    /// From now on ^C cancels this turn.
    pub fn begin(&self, turn: Canceller) {
        let mut state = self.state.lock();
        if state.ending {
            turn.cancel();
        }
        state.turn = Some(turn);
        state.cancelled = false;
    }

    /// The turn is over.
    pub fn end(&self) {
        self.state.lock().turn = None;
    }

    /// Whether all is to end.
    pub fn ending(&self) -> bool {
        self.state.lock().ending
    }
}

impl State {
    fn take(&mut self, signal: i32) {
        let again = std::mem::replace(&mut self.cancelled, true);
        match &self.turn {
            Some(turn) => {
                turn.cancel();
                if signal != Signal::INT.as_raw() || again {
                    self.end();
                }
            }
            // It came when the turn had just ended: the next one is a key of the editor's.
            None if self.typed && signal == Signal::INT.as_raw() => {}
            // Nobody is at work but somebody may be typing, and cannot be woken. The keeper ends what there is, and keeps
            // the session.
            None => self.exit(),
        }
    }

    /// The turn ends, and then all does; if it does not, all does at once.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.ending, true) {
            std::thread::spawn(|| {
                std::thread::sleep(PATIENCE);
                std::process::exit(INTERRUPTED.into())
            });
        }
    }

    fn exit(&self) {
        if let Some(terminal) = &self.terminal {
            let _no_terminal = terminal.restore(handles::stdin());
        }
        std::process::exit(INTERRUPTED.into())
    }
}
