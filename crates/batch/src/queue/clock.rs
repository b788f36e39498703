//! Until when nobody calls a model: what the API told one worker, all of them keep to.
//!
//! When the time is over they do not begin all at once, or most of them would be told the same again: each waits a little longer, by
//! chance, and looks once more whether somebody was told something new. `docs/scale.md` has what that saves.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::server;
use super::{Queue, QueueError};

/// The longest time that announcements hold a worker without a pause, from the moment when that worker first sees one. The API asks for
/// less than a minute. An announcement that exceeds this limit comes from a machine with a wrong clock, or from an attacker.
const LONGEST: Duration = Duration::from_secs(300);

/// Over so long a time those begin who have waited together.
const SPREAD: Duration = Duration::from_secs(15);

/// Somebody who wants to call a model.
#[derive(Debug, Default)]
pub struct Turn {
    waited: Duration,
    rested: bool,
}

/// The hold of each model, as it was seen last.
pub(crate) type Seen = HashMap<String, Option<Hold>>;

/// Announcements that hold a model without a pause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hold {
    /// When the first of them was seen.
    since: Instant,
    /// When the last of them ends, in milliseconds since 1970.
    until: u64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Call it.
    Call,
    /// Ask again after this time.
    Wait(Duration),
}

impl Turn {
    /// What to do when the model is held for so long yet; `chance` is from 0 to 1.
    pub fn next(&mut self, held: Option<Duration>, chance: f64) -> Next {
        match held {
            Some(left) => {
                self.rested = false;
                self.waited = self.waited.saturating_add(left);
                Next::Wait(left)
            }
            None if self.rested || self.waited.is_zero() => Next::Call,
            None => {
                self.rested = true;
                Next::Wait(self.waited.min(SPREAD).mul_f64(chance.clamp(0.0, 1.0)))
            }
        }
    }
}

impl Queue {
    /// Nobody calls this model for so long, five minutes at most. A longer time that was said before stands, unless it is later than
    /// anybody could have said.
    pub fn hold(&self, model: &str, time: Duration) -> Result<(), QueueError> {
        let after =
            |time: Duration| now().saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let until = after(time.min(LONGEST));
        self.wait(async {
            // Somebody else may say the same in the same moment.
            for _ in 0..16 {
                let there = self.limits.entry(key(model)).await.map_err(server("a limit is looked up"))?;
                let said = there.as_ref().and_then(|entry| time_of(&entry.value));
                if said.is_some_and(|said| (until..=after(LONGEST)).contains(&said)) {
                    return Ok(());
                }
                let revision = there.map_or(0, |entry| entry.revision);
                let value = until.to_string();
                if self.limits.update(key(model), value.into(), revision).await.is_ok() {
                    return Ok(());
                }
            }
            Err(QueueError::Server {
                doing: "a limit is told",
                reason: "others told theirs all the time".to_owned(),
            })
        })
    }

    /// How long nobody calls this model yet. Clocks differ between machines: what is left by this one's counts, and no announcement
    /// counts for longer than five minutes after it was first seen here.
    pub fn held(&self, model: &str) -> Result<Option<Duration>, QueueError> {
        let entry = self.wait(self.limits.entry(key(model))).map_err(server("a limit is looked up"))?;
        let until = entry.and_then(|entry| time_of(&entry.value)).unwrap_or_default();
        let mut seen = self.seen.lock();
        Ok(left_of(seen.entry(key(model)).or_insert(None), until, now(), Instant::now()))
    }
}

/// How long an announcement that ends at `until` still holds. An announcement belongs to the hold that was seen last unless that one has
/// been over for longer than [`SPREAD`]: everybody who waited for its end has looked again by then. A job that is cancelled while it
/// waits does not look again, so nobody may have seen the end.
fn left_of(seen: &mut Option<Hold>, until: u64, now: u64, instant: Instant) -> Option<Duration> {
    let announced = Duration::from_millis(until.saturating_sub(now));
    if announced.is_zero() {
        *seen = None;
        return None;
    }
    let continues = |hold: &Hold| Duration::from_millis(now.saturating_sub(hold.until)) <= SPREAD;
    let since = seen.filter(continues).map_or(instant, |hold| hold.since);
    *seen = Some(Hold { since, until });
    let held = instant.saturating_duration_since(since);
    Some(announced.min(LONGEST.saturating_sub(held))).filter(|left| !left.is_zero())
}

fn key(model: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    format!("model.{}", model.chars().map(plain).collect::<String>())
}

fn time_of(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod simulated;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_a_wrong_clock_announced_holds_nobody_for_longer_than_five_minutes() {
        let (now, seconds, start) = (1_000_000, Duration::from_secs, Instant::now());
        let left = |seen: &mut Option<Hold>, until: u64, at: u64| {
            left_of(seen, until, now + at * 1000, start + seconds(at))
        };
        let mut seen = None;
        assert_eq!(left(&mut seen, now + 30_000, 0), Some(seconds(30)));
        assert_eq!(left(&mut seen, now + 30_000, 30), None);
        assert!(seen.is_none());
        // An hour ahead, and the end of time.
        for until in [now + 3_600_000, u64::MAX] {
            let mut seen = None;
            assert_eq!(left(&mut seen, until, 0), Some(LONGEST));
            assert_eq!(left(&mut seen, until, 299), Some(seconds(1)));
            assert_eq!(left(&mut seen, until, 300), None);
            // Announcing the same again holds nobody again.
            assert_eq!(left(&mut seen, until.saturating_add(3_600_000), 301), None);
        }
    }

    #[test]
    fn announcements_without_a_pause_hold_nobody_for_longer_than_five_minutes() {
        let (now, start) = (1_000_000, Instant::now());
        let mut seen = None;
        // Each is seen at the end of the one before it.
        for at in (0..300).step_by(30) {
            let left =
                left_of(&mut seen, now + (at + 30) * 1000, now + at * 1000, start + Duration::from_secs(at));
            assert_eq!(left, Some(Duration::from_secs(30)), "{at}");
        }
        let after = start + Duration::from_secs(300);
        assert_eq!(left_of(&mut seen, now + 330_000, now + 300_000, after), None);
    }

    #[test]
    fn a_limit_holds_also_when_nobody_saw_the_end_of_the_one_before_it() {
        let (now, start) = (1_000_000, Instant::now());
        let mut seen = None;
        // The job that waited for it is cancelled, and nobody looks for a while.
        assert!(left_of(&mut seen, now + 30_000, now, start).is_some());
        let later = start + Duration::from_secs(400);
        let left = left_of(&mut seen, now + 430_000, now + 400_000, later);
        assert_eq!(left, Some(Duration::from_secs(30)));
        // Not yet a pause: whoever waited for the end may look a little later.
        let soon = start + Duration::from_secs(440);
        let left = left_of(&mut seen, now + 3_600_000, now + 440_000, soon);
        assert_eq!(left, Some(Duration::from_secs(260)));
    }

    #[test]
    fn a_limit_that_the_api_tells_after_a_pause_holds_again() {
        let (now, start) = (1_000_000, Instant::now());
        let mut seen = None;
        assert!(left_of(&mut seen, now + 30_000, now, start).is_some());
        let later = start + Duration::from_secs(400);
        assert_eq!(left_of(&mut seen, now + 30_000, now + 400_000, later), None);
        let left = left_of(&mut seen, now + 430_000, now + 400_000, later);
        assert_eq!(left, Some(Duration::from_secs(30)));
    }
}
