//! ^C and its relatives: they stop the run, whenever they come.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use alhena::Stopper;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Catches signals from now on. Made before a run is prepared: whoever is told to stop then must still clean up.
pub struct Interrupts {
    caught: Arc<AtomicI32>,
    stopper: Arc<Mutex<Option<Stopper>>>,
}

impl Interrupts {
    pub fn catch() -> Self {
        let interrupts = Self { caught: Arc::new(AtomicI32::new(0)), stopper: Arc::default() };
        let (caught, stopper) = (interrupts.caught.clone(), interrupts.stopper.clone());
        if let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) {
            std::thread::spawn(move || {
                for signal in signals.forever() {
                    let _first_counts =
                        caught.compare_exchange(0, signal, Ordering::AcqRel, Ordering::Acquire);
                    if let Some(stopper) = &*stopper.lock().unwrap_or_else(PoisonError::into_inner) {
                        stopper.stop();
                    }
                }
            });
        }
        interrupts
    }

    /// From now on signals stop this run; one that came before stops it at once.
    pub fn stop(&self, stopper: Stopper) {
        let mut slot = self.stopper.lock().unwrap_or_else(PoisonError::into_inner);
        if self.caught().is_some() {
            stopper.stop();
        }
        *slot = Some(stopper);
    }

    /// The first signal that came.
    pub fn caught(&self) -> Option<i32> {
        Some(self.caught.load(Ordering::Acquire)).filter(|signal| *signal != 0)
    }
}
