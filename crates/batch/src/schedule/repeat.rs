//! Which failures are worth another attempt.

use std::time::Duration;

use alhena_model::{FailureKind, Outcome};

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        FailureKind::Api | FailureKind::InvalidResponse | FailureKind::Stalled | FailureKind::Crashed => {
            Repeat::Soon
        }
        _ => Repeat::No,
    }
}

#[cfg(test)]
mod tests {
    use alhena_model::{CommandRun, Failure};

    use super::*;

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
