//! How long something may take, as people write it.

use std::str::FromStr;
use std::time::Duration;

use alhena::agent::OnRateLimit;

/// A limit that can be lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// However long it takes.
    Never,
    After(Duration),
}

impl Limit {
    /// As the library has it.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Limit::Never => None,
            Limit::After(time) => Some(time),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Limit::Never),
            _ => time(text).map(Limit::After).map_err(|why| format!("{why}, or none")),
        }
    }
}

/// `90s`, `10m`, `1h30m`, `500ms`, `2.5` (seconds).
pub fn time(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let written = || Duration::try_from(text.trim().parse::<jiff::SignedDuration>().ok()?).ok();
    seconds
        .or_else(written)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| format!("{text:?} is no time; write 90s, 10m, 1h30m or 500ms"))
}

/// An amount of US dollars that can be a limit.
pub fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.trim().parse().ok().filter(|amount: &f64| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| {
        "it has to be an amount of more than 0, such as 0.50; leave it out for no limit".to_owned()
    })
}

/// `fail`, `wait`, `wait=90s`, `model=NAME`.
pub fn on_rate_limit(text: &str) -> Result<OnRateLimit, String> {
    match text.split_once('=') {
        None if text == "fail" => Ok(OnRateLimit::Fail),
        None if text == "wait" => Ok(OnRateLimit::Wait(OnRateLimit::LONGEST_WAIT)),
        Some(("wait", limit)) => time(limit).map(OnRateLimit::Wait),
        Some(("model", name)) if !name.trim().is_empty() => Ok(OnRateLimit::Model(name.to_owned())),
        _ => Err(format!("{text:?} is not known; write fail, wait, wait=TIME or model=NAME")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let expected = [
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("1h 30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("10min", 600_000),
            ("500ms", 500),
            ("2.5", 2_500),
        ];
        for (text, millis) in expected {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for wrong in
            ["soon", "", "0", "0s", "-5s", "-5", "5x", "1h30", "none", "5s ago", "inf", "nan", "1e300"]
        {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_can_be_lifted() {
        assert_eq!("none".parse(), Ok(Limit::Never));
        assert_eq!("1m".parse(), Ok(Limit::After(Duration::from_secs(60))));
        assert!("never".parse::<Limit>().is_err());
    }

    #[test]
    fn what_to_do_at_a_rate_limit_is_read_and_everything_else_refused() {
        let minutes = |minutes: u64| Ok(OnRateLimit::Wait(Duration::from_secs(minutes * 60)));
        assert_eq!(on_rate_limit("fail"), Ok(OnRateLimit::Fail));
        assert_eq!((on_rate_limit("wait"), on_rate_limit("wait=10m")), (minutes(5), minutes(10)));
        assert_eq!(on_rate_limit("model=m=1"), Ok(OnRateLimit::Model("m=1".to_owned())));
        for wrong in [
            "",
            "never",
            "wait=",
            "wait=soon",
            "wait=0",
            "wait=-1s",
            "model",
            "model=",
            "model= ",
            "Fail",
            "fail=1",
        ] {
            assert!(on_rate_limit(wrong).is_err(), "{wrong}");
        }
    }
}
