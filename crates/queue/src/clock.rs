//! Until when nobody calls a model: what the API told one worker, all of them keep to.
//!
//! When the time is over they do not begin all at once, or most of them would be told the same again: each waits a little longer, by
//! chance, and looks once more whether somebody was told something new. `docs/scale.md` has what that saves.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::server;
use crate::{Queue, QueueError};

/// Over so long a time those begin who have waited together.
const SPREAD: Duration = Duration::from_secs(15);

/// Somebody who wants to call a model.
#[derive(Debug, Default)]
pub struct Turn {
    waited: Duration,
    rested: bool,
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
    /// Nobody calls this model for so long. A longer time that was said before stands.
    pub fn hold(&self, model: &str, time: Duration) -> Result<(), QueueError> {
        let until = now().saturating_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self.wait(async {
            // Somebody else may say the same in the same moment.
            for _ in 0..16 {
                let there = self.limits.entry(key(model)).await.map_err(server("a limit is looked up"))?;
                let said = there.as_ref().and_then(|entry| time_of(&entry.value));
                if said.is_some_and(|said| said >= until) {
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

    /// How long nobody calls this model yet.
    pub fn held(&self, model: &str) -> Result<Option<Duration>, QueueError> {
        let value = self.wait(self.limits.get(key(model))).map_err(server("a limit is looked up"))?;
        let until = value.and_then(|value| time_of(&value)).unwrap_or(0);
        Ok(until.checked_sub(now()).filter(|left| *left > 0).map(Duration::from_millis))
    }
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
