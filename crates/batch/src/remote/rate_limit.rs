//! Rate limits of the API that all workers of a quota share: none calls a model before the time that one of them was told.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use alhena_model::{FailureKind, Outcome};

use crate::perform::Watch;
use crate::queue::{Next, Queue, Turn};

/// How long to wait where the API does not say it.
const UNTOLD: Duration = Duration::from_secs(10);
/// How often a wait checks whether the job is still wanted.
const LOOK: Duration = Duration::from_millis(250);

/// Returns the name of a model's limit among those who share a quota.
pub fn clock(quota: &str, model: Option<&str>) -> String {
    format!("{quota} {}", model.unwrap_or("default"))
}

/// Waits until the model may be called or the job is stopped. Tells the time that is left, once for each announcement.
pub fn wait(queue: &Queue, clock: &str, watch: &Watch, tell: impl Fn(Duration)) {
    let mut turn = Turn::default();
    while watch.asked().is_none() {
        let held = queue.held(clock).unwrap_or(None);
        held.into_iter().for_each(&tell);
        match turn.next(held, chance()) {
            Next::Call => return,
            Next::Wait(time) => rest(time, watch),
        }
    }
}

fn rest(time: Duration, watch: &Watch) {
    let until = Instant::now() + time;
    while watch.asked().is_none() && Instant::now() < until {
        std::thread::sleep(until.saturating_duration_since(Instant::now()).min(LOOK));
    }
}

/// Returns a random number from 0 to 1.
fn chance() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}

/// Announces a limit to the other workers, if this attempt met one.
pub fn announce(queue: &Queue, clock: &str, outcome: &Outcome) {
    let Some(failure) = outcome.failure.as_ref().filter(|failure| failure.kind == FailureKind::RateLimited)
    else {
        return;
    };
    let time = failure.retry_after_ms.map_or(UNTOLD, Duration::from_millis);
    // A daily quota ends the batch; workers with another key go on.
    if !failure.daily_quota {
        let _told_again_by_the_next = queue.hold(clock, time);
    }
}
