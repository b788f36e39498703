//! The API's limits, kept by all workers of a quota together: nobody calls a model before the time that one of them was told.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};

use alhena::batch::perform::Watch;
use alhena::batch::queue::{Next, Queue, Turn};
use alhena::{FailureKind, Outcome};

/// Where the API does not say how long.
const UNTOLD: Duration = Duration::from_secs(10);
/// How often it is looked whether the job is still wanted.
const LOOK: Duration = Duration::from_millis(250);

/// A model of those who share a quota.
pub fn clock(quota: &str, model: Option<&str>) -> String {
    format!("{quota} {}", model.unwrap_or("default"))
}

/// Waits until the model may be called, or nobody wants the job any more. Says how long, once for each time that was announced.
pub fn wait(queue: &Queue, clock: &str, watch: &Watch, say: impl Fn(&str)) {
    let mut turn = Turn::default();
    while watch.asked().is_none() {
        let held = queue.held(clock).unwrap_or(None);
        if let Some(left) = held {
            let seconds = left.as_secs_f64().ceil();
            say(&format!("waits {seconds} s for the rate limit of {clock:?}, which another worker was told"));
        }
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

/// From 0 to 1.
fn chance() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}

/// Tells the others, if the API told this one to wait.
pub fn tell(queue: &Queue, clock: &str, outcome: &Outcome) {
    let Some(failure) = outcome.failure.as_ref().filter(|failure| failure.kind == FailureKind::RateLimited)
    else {
        return;
    };
    let time = failure.retry_after_ms.map_or(UNTOLD, Duration::from_millis);
    // A quota of a day ends the batch; who has another key goes on.
    if !failure.daily_quota {
        let _told_again_by_the_next = queue.hold(clock, time);
    }
}
