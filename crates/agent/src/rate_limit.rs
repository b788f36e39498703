//! What to do when the API says that there were too many requests.
//!
//! Gemini CLI waits by itself for what takes less than five minutes, as often as it may try (`general.maxAttempts`), and says so
//! on standard error (0.61.0). It gives up at once on a daily quota, on longer waits and on some that are short. What it gives up
//! on, and another model, is Alhena's: the session goes on with another prompt, by another process or over ACP by the same.

use std::time::Duration;

pub use alhena_model::options::OnRateLimit;
use alhena_model::{Failure, FailureKind};

use crate::prepare::RunError;
use crate::request::ResolvedRequest;
use crate::retries::Attempt;

/// Refuses to continue with the model that is limited.
pub(crate) fn check(request: &ResolvedRequest) -> Result<(), RunError> {
    let OnRateLimit::Model(model) = &request.on_rate_limit else { return Ok(()) };
    let wrong = |message: String| {
        Err(RunError::usage(message, "Name another model, such as `on_rate_limit` model=gemini-2.5-flash."))
    };
    if model.trim().is_empty() {
        return wrong("`on_rate_limit` model= names no model".to_owned());
    }
    match request.model.as_ref() == Some(model) {
        true => wrong(format!("`on_rate_limit` goes on with {model:?}, which is the model that is limited")),
        false => Ok(()),
    }
}

/// What the prompt is that goes on with a session: the CLI's own words for it.
pub(crate) const GO_ON: &str = "Please continue.";

/// Where the API does not say how long, its quotas are by the minute.
const A_MINUTE: Duration = Duration::from_secs(60);
/// A wait of nothing would only ask again.
const A_MOMENT: Duration = Duration::from_secs(1);

/// How it goes on after an attempt that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    /// After this time.
    pub after: Duration,
    /// With another model.
    pub model: Option<String>,
    /// What people are told.
    pub told: String,
}

/// What is done while Gemini CLI waits by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meanwhile {
    /// It may.
    Wait,
    /// It waits for longer than is borne.
    TooLong,
    /// Somebody else can go on at once.
    Move,
}

/// Decides for one run, or one turn of a conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patience {
    policy: OnRateLimit,
    /// How long has been waited since the model last answered.
    waited: Duration,
    /// The other model goes on already.
    moved: bool,
}

impl Patience {
    pub(crate) fn of(request: &ResolvedRequest) -> Self {
        let policy = request.on_rate_limit.clone();
        let moved = matches!(&policy, OnRateLimit::Model(model) if request.model.as_ref() == Some(model));
        Self { policy, waited: Duration::ZERO, moved }
    }

    /// Whether an attempt that fails may be followed by another.
    pub(crate) fn may_go_on(&self) -> bool {
        self.policy != OnRateLimit::Fail
    }

    /// The model answers: whatever was waited for is over.
    pub(crate) fn answered(&mut self) {
        self.waited = Duration::ZERO;
    }

    /// Gemini CLI tries again by itself: what people are told, and what is done about it.
    pub(crate) fn hear(&mut self, attempt: &Attempt) -> (String, Meanwhile) {
        let usual = || (attempt.warning(), Meanwhile::Wait);
        if !attempt.limited {
            return usual();
        }
        let Attempt { reason, waits, asked, .. } = attempt;
        match self.policy.clone() {
            OnRateLimit::Fail => usual(),
            OnRateLimit::Model(_) if self.moved => usual(),
            OnRateLimit::Model(_) => (attempt.warning(), Meanwhile::Move),
            OnRateLimit::Wait(limit) => {
                // Gemini CLI waits for five seconds at the least, and a little longer than it is told.
                let Some(delay) = asked.or(*waits) else { return usual() };
                match self.wait(delay, limit) {
                    Some(_) => {
                        let time = in_words(waits.unwrap_or(delay));
                        (
                            format!(
                                "The API limits its requests ({reason}): waiting {time}, then asking again"
                            ),
                            Meanwhile::Wait,
                        )
                    }
                    None => (too_long(delay, limit), Meanwhile::TooLong),
                }
            }
        }
    }

    /// An attempt has failed: how it goes on, if it does. Where it does not, perhaps what people should know of that.
    pub(crate) fn after(&mut self, failure: &Failure) -> Result<Next, Option<String>> {
        if failure.kind != FailureKind::RateLimited {
            return Err(None);
        }
        match self.policy.clone() {
            OnRateLimit::Fail => Err(None),
            OnRateLimit::Wait(_) if failure.daily_quota => {
                Err(Some("The daily quota is used up, which is not waited for".to_owned()))
            }
            OnRateLimit::Wait(limit) => {
                let asked = failure.retry_after_ms.map(Duration::from_millis);
                let delay = asked.unwrap_or(A_MINUTE).max(A_MOMENT);
                let after = self.wait(delay, limit).ok_or_else(|| Some(too_long(delay, limit)))?;
                let told = format!("{}: waiting {}, then going on", limited(failure), in_words(after));
                Ok(Next { after, model: None, told })
            }
            OnRateLimit::Model(model) if self.moved => Err(Some(format!("{model} is limited as well"))),
            OnRateLimit::Model(model) => {
                self.moved = true;
                let told = format!("{}: going on with {model}", limited(failure));
                Ok(Next { after: Duration::ZERO, model: Some(model), told })
            }
        }
    }

    fn wait(&mut self, delay: Duration, limit: Duration) -> Option<Duration> {
        let waited = self.waited.checked_add(delay).filter(|waited| *waited <= limit)?;
        self.waited = waited;
        Some(delay)
    }
}

fn limited(failure: &Failure) -> String {
    match failure.daily_quota {
        true => "The daily quota is used up".to_owned(),
        false => {
            let said = failure.message.lines().next().unwrap_or_default();
            format!("The API limits its requests ({said})")
        }
    }
}

fn too_long(delay: Duration, limit: Duration) -> String {
    format!(
        "The API asks to wait {}, and `on_rate_limit` waits for {} in a row",
        in_words(delay),
        in_words(limit)
    )
}

fn in_words(time: Duration) -> String {
    match time.as_millis() {
        millis @ 0..1000 => format!("{millis} ms"),
        1000..=120_000 => format!("{} s", time.as_millis().div_ceil(1000)),
        _ => format!("{} min", time.as_secs().div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited_for(seconds: Option<u64>) -> Failure {
        let mut failure = Failure::new(FailureKind::RateLimited, "Too many.\nMore of it.");
        failure.retry_after_ms = seconds.map(|seconds| seconds * 1000);
        failure
    }

    fn daily() -> Failure {
        let mut failure = limited_for(None);
        failure.daily_quota = true;
        failure
    }

    fn patience(policy: OnRateLimit) -> Patience {
        Patience { policy, ..Patience::default() }
    }

    fn attempt(seconds: u64) -> Attempt {
        let time = Duration::from_secs(seconds);
        Attempt { number: 1, reason: "busy".to_owned(), limited: true, waits: Some(time), asked: Some(time) }
    }

    #[test]
    fn who_waits_does_so_as_long_as_the_api_says_and_in_a_row_no_longer_than_the_limit() {
        let mut patience = patience(OnRateLimit::Wait(Duration::from_secs(100)));
        let next = patience.after(&limited_for(Some(40))).unwrap();
        assert_eq!((next.after, next.model), (Duration::from_secs(40), None));
        assert_eq!(next.told, "The API limits its requests (Too many.): waiting 40 s, then going on");
        // The API says nothing: a minute.
        assert_eq!(patience.after(&limited_for(None)).unwrap().after, Duration::from_secs(60));
        let why = patience.after(&limited_for(Some(1))).unwrap_err();
        assert_eq!(
            why.as_deref(),
            Some("The API asks to wait 1 s, and `on_rate_limit` waits for 100 s in a row")
        );
        patience.answered();
        assert!(patience.after(&limited_for(Some(100))).is_ok());
        assert!(patience.after(&daily()).is_err());
    }

    #[test]
    fn what_the_cli_waits_for_counts_as_well() {
        let mut patience = patience(OnRateLimit::Wait(Duration::from_secs(100)));
        let (told, meanwhile) = patience.hear(&attempt(60));
        assert_eq!(meanwhile, Meanwhile::Wait);
        assert_eq!(told, "The API limits its requests (busy): waiting 60 s, then asking again");
        assert_eq!(patience.hear(&attempt(60)).1, Meanwhile::TooLong);
        let other = Attempt { limited: false, ..attempt(600) };
        assert_eq!(patience.hear(&other).1, Meanwhile::Wait);
    }

    #[test]
    fn another_model_goes_on_once_also_after_a_daily_quota() {
        let mut patience = patience(OnRateLimit::Model("m".to_owned()));
        assert_eq!(patience.hear(&attempt(60)).1, Meanwhile::Move);
        let next = patience.after(&daily()).unwrap();
        assert_eq!((next.after, next.model.as_deref()), (Duration::ZERO, Some("m")));
        assert_eq!(next.told, "The daily quota is used up: going on with m");
        assert_eq!(patience.after(&daily()).unwrap_err().as_deref(), Some("m is limited as well"));
        assert_eq!(patience.hear(&attempt(60)).1, Meanwhile::Wait);
    }

    #[test]
    fn who_fails_fast_and_what_is_no_rate_limit_fails() {
        assert_eq!(patience(OnRateLimit::Fail).after(&limited_for(Some(1))), Err(None));
        let mut patience = patience(OnRateLimit::Model("m".to_owned()));
        assert_eq!(patience.after(&Failure::new(FailureKind::Api, "500")), Err(None));
    }
}
