//! ^C and its relatives: they stop the run, whenever they come, and a second one ends at once what the first one ends
//! gently.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use alhena_agent::Stopper;
use alhena_sys::signals::{Arrivals, ENDING};
use parking_lot::Mutex;

use crate::output;

/// The exit code of a run that was cancelled.
const CANCELLED: i32 = 130;

/// What a run that is over gets to print its outcome, when it is told to end at once.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long a run that was stopped waits, when it is over, for somebody who takes nothing of what it prints.
const UNREAD: Duration = Duration::from_secs(10);
const NOW_AND_THEN: Duration = Duration::from_millis(100);

/// Whether one has come, for those who can only be asked: a plain function is all that an install takes.
static COME: AtomicBool = AtomicBool::new(false);

/// Whether a signal has been caught.
pub fn have_come() -> bool {
    COME.load(Ordering::Acquire)
}

/// Catches signals from now on. Made before a run is prepared: whoever is told to stop then must still clean up.
pub struct Interrupts {
    caught: Arc<AtomicI32>,
    stopper: Arc<Mutex<Option<Stopper>>>,
    told: Arc<Mutex<Told>>,
}

/// Somebody who stops more than one run.
#[derive(Default)]
struct Told {
    /// How many signals have come.
    count: u32,
    tell: Option<Box<dyn Fn(u32) + Send>>,
}

impl Interrupts {
    pub fn catch() -> Self {
        let interrupts =
            Self { caught: Arc::new(AtomicI32::new(0)), stopper: Arc::default(), told: Arc::default() };
        let (caught, stopper) = (interrupts.caught.clone(), interrupts.stopper.clone());
        let told = interrupts.told.clone();
        if let Ok(mut signals) = Arrivals::of(&ENDING) {
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    COME.store(true, Ordering::Release);
                    told.lock().hear();
                    let first =
                        caught.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire).is_ok();
                    match &*stopper.lock() {
                        Some(stopper) if first => stop(stopper),
                        // Nothing of the run is left: what still keeps us is somebody who does not read what we print.
                        // Whoever does read has been told how it ended, and the exit code is to say the same.
                        Some(stopper) if stopper.is_over() => {
                            std::thread::sleep(LAST_WORDS);
                            std::process::exit(CANCELLED)
                        }
                        Some(stopper) => stopper.stop_at_once(),
                        None => {}
                    }
                }
            });
        }
        interrupts
    }

    /// From now on signals stop this run; one that came before stops it at once.
    pub fn stop(&self, stopper: Stopper) {
        let mut slot = self.stopper.lock();
        if self.caught().is_some() {
            stop(&stopper);
        }
        *slot = Some(stopper);
    }

    /// From now on each signal is told, with its number from 1; those that came before at once.
    pub fn tell(&self, tell: impl Fn(u32) + Send + 'static) {
        let mut told = self.told.lock();
        (1..=told.count).for_each(&tell);
        told.tell = Some(Box::new(tell));
    }

    /// The first signal that came.
    pub fn caught(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::Acquire)).filter(|signal| *signal != 0)
    }
}

impl Told {
    fn hear(&mut self) {
        self.count += 1;
        if let Some(tell) = &self.tell {
            tell(self.count);
        }
    }
}

/// Stops a run, and does not let it be held up afterwards by somebody who does not read what we print.
fn stop(stopper: &Stopper) {
    stopper.stop();
    let stopper = stopper.clone();
    std::thread::spawn(move || {
        while !stopper.is_over() {
            std::thread::sleep(NOW_AND_THEN);
        }
        let mut last = (output::taken(), Instant::now());
        while last.1.elapsed() < UNREAD {
            std::thread::sleep(NOW_AND_THEN);
            if output::taken() != last.0 {
                last = (output::taken(), Instant::now());
            }
        }
        std::process::exit(CANCELLED)
    });
}
