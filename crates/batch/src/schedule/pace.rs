//! The API's rate limits, kept by all jobs together.
//!
//! When one job is told to wait, all others would be told the same: none begins before that time. And as fewer at once would not
//! have been told so, half as many may work from then on; each success makes it a little more again.

use std::time::{Duration, Instant};

/// How long is waited where the API does not say: doubled each time that it happens again without a success.
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(60);

/// How many may work, and from when on.
#[derive(Debug)]
pub struct Pace {
    most: usize,
    allowed: f64,
    until: Option<Instant>,
    times: u32,
}

impl Pace {
    /// So many at once, at most.
    pub fn new(most: usize) -> Self {
        Self { most, allowed: most as f64, until: None, times: 0 }
    }

    /// How many may work at this moment.
    pub fn allowed(&self, now: Instant) -> usize {
        match self.until {
            Some(until) if now < until => 0,
            _ => (self.allowed as usize).clamp(1, self.most.max(1)),
        }
    }

    /// Until when nobody may begin.
    pub fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }

    /// The API told a job to come again later. Gives how long all wait.
    pub fn limited(&mut self, after: Option<Duration>, now: Instant) -> Duration {
        let held = self.until(now);
        if held.is_none() {
            // Jobs that were under way are told so, too: that is one time.
            self.allowed = (self.allowed / 2.0).max(1.0);
            self.times += 1;
        }
        let doubled = FIRST.saturating_mul(1 << (self.times.saturating_sub(1)).min(8)).min(LONGEST);
        let until = now + after.unwrap_or(doubled);
        let until = held.map_or(until, |held| held.max(until));
        self.until = Some(until);
        until.saturating_duration_since(now)
    }

    /// The API answered.
    pub fn answered(&mut self) {
        self.times = 0;
        self.allowed = (self.allowed + 1.0 / self.allowed).min(self.most as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_wait_as_long_as_one_was_told_and_fewer_begin_then() {
        let (mut pace, now) = (Pace::new(8), Instant::now());
        let seconds = Duration::from_secs;
        assert_eq!(pace.allowed(now), 8);
        assert_eq!(pace.limited(Some(seconds(30)), now), seconds(30));
        // Others of the same moment change nothing but the time.
        assert_eq!(pace.limited(Some(seconds(10)), now), seconds(30));
        assert_eq!(pace.limited(Some(seconds(40)), now), seconds(40));
        assert_eq!(pace.allowed(now + seconds(39)), 0);
        assert_eq!(pace.allowed(now + seconds(40)), 4);
        (0..100).for_each(|_| pace.answered());
        assert_eq!(pace.allowed(now + seconds(40)), 8);
    }

    #[test]
    fn where_no_time_is_told_it_is_doubled_until_an_answer_comes() {
        let (mut pace, mut now) = (Pace::new(2), Instant::now());
        let mut waits = Vec::new();
        for _ in 0..6 {
            let wait = pace.limited(None, now);
            now += wait;
            waits.push(wait.as_secs());
            assert_eq!(pace.allowed(now), 1);
        }
        assert_eq!(waits, [5, 10, 20, 40, 60, 60]);
        pace.answered();
        assert_eq!(pace.limited(None, now).as_secs(), 5);
    }
}
