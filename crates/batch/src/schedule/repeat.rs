//! Which failures are worth another attempt.

use std::time::Duration;

use alhena_model::judge::finish;
use alhena_model::{FailureKind, Outcome};
use serde::{Deserialize, Serialize};

/// What to do about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It is the result.
    No,
    /// Try again, after a little while.
    Soon,
    /// Try again when the API's rate limit lets it.
    WhenAllowed(Option<Duration>),
    /// The API answers nobody any more today.
    QuotaIsUsedUp,
}

/// Where an attempt worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// In a place that was made for it: the next attempt gets a new one.
    Own,
    /// In a place that stays: what was done there would be done twice.
    Shared,
    /// Wherever it was: nobody tries it again, because it ended everybody who did.
    Nowhere,
}

/// Whether an attempt is worth another.
pub fn judge(outcome: &Outcome, place: Where) -> Repeat {
    let Some(failure) = &outcome.failure else { return Repeat::No };
    if place == Where::Nowhere {
        return Repeat::No;
    }
    if failure.kind == FailureKind::RateLimited && failure.daily_quota {
        return Repeat::QuotaIsUsedUp;
    }
    let has_acted = !outcome.commands.is_empty() || outcome.files.iter().any(|file| file.claimed);
    if has_acted && place == Where::Shared {
        return Repeat::No;
    }
    match failure.kind {
        FailureKind::RateLimited => Repeat::WhenAllowed(failure.retry_after_ms.map(Duration::from_millis)),
        // What is wrong with the request stays wrong.
        FailureKind::Api if matches!(failure.http_status, Some(400..=407 | 409..=499)) => Repeat::No,
        // So does the length of an answer, and what a filter blocks.
        FailureKind::InvalidResponse if is_cut_off(outcome) => Repeat::No,
        FailureKind::Api | FailureKind::InvalidResponse | FailureKind::Stalled | FailureKind::Crashed => {
            Repeat::Soon
        }
        _ => Repeat::No,
    }
}

/// Whether the last answer was used, and reached a limit or a filter.
fn is_cut_off(outcome: &Outcome) -> bool {
    let cut_off = |reason: &str| reason == finish::MAX_TOKENS || finish::is_filter(reason);
    outcome.finish_reason.as_deref().is_some_and(cut_off)
        && outcome.failure.as_ref().is_some_and(|failure| failure.reported.is_none())
}

#[cfg(test)]
mod tests {
    use alhena_model::{CommandRun, Failure};

    use super::*;

    #[test]
    fn an_answer_that_was_cut_off_would_be_again() {
        let mut outcome = failed(FailureKind::InvalidResponse, |_| {});
        for (reason, expected) in [
            ("MAX_TOKENS", Repeat::No),
            ("SAFETY", Repeat::No),
            ("OTHER", Repeat::Soon),
            ("STOP", Repeat::Soon),
        ] {
            outcome.finish_reason = Some(reason.to_owned());
            assert_eq!(judge(&outcome, Where::Own), expected, "{reason}");
        }
    }

    fn failed(kind: FailureKind, change: impl FnOnce(&mut Failure)) -> Outcome {
        let mut failure = Failure::new(kind, "");
        change(&mut failure);
        Outcome::not_begun(failure)
    }

    #[test]
    fn what_may_go_better_next_time_is_repeated_and_nothing_else() {
        let judged = |kind| judge(&failed(kind, |_| {}), Where::Shared);
        assert_eq!(judge(&Outcome::default(), Where::Own), Repeat::No);
        for kind in FailureKind::all() {
            let expected = match kind {
                FailureKind::RateLimited => Repeat::WhenAllowed(None),
                FailureKind::Api
                | FailureKind::InvalidResponse
                | FailureKind::Stalled
                | FailureKind::Crashed => Repeat::Soon,
                _ => Repeat::No,
            };
            assert_eq!(judged(kind), expected, "{kind:?}");
        }
        let api = |status| {
            judge(&failed(FailureKind::Api, |failure| failure.http_status = Some(status)), Where::Own)
        };
        assert_eq!([api(404), api(408), api(503)], [Repeat::No, Repeat::Soon, Repeat::Soon]);
        let told = failed(FailureKind::RateLimited, |failure| failure.retry_after_ms = Some(1500));
        assert_eq!(judge(&told, Where::Own), Repeat::WhenAllowed(Some(Duration::from_millis(1500))));
        let daily = failed(FailureKind::RateLimited, |failure| failure.daily_quota = true);
        assert_eq!(judge(&daily, Where::Own), Repeat::QuotaIsUsedUp);
    }

    #[test]
    fn what_has_changed_something_that_stays_is_not_repeated() {
        let mut outcome = failed(FailureKind::Api, |_| {});
        outcome.commands.push(CommandRun {
            call_id: String::new(),
            command: "make".into(),
            exit_code: None,
            output: None,
        });
        assert_eq!(judge(&outcome, Where::Shared), Repeat::No);
        assert_eq!(judge(&outcome, Where::Own), Repeat::Soon);
        assert_eq!(judge(&outcome, Where::Nowhere), Repeat::No);
    }
}
