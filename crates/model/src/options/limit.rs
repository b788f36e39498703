//! Times and amounts, as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::BadValue;

/// A time limit, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// No limit.
    Never,
    /// This long.
    After(Duration),
}

impl TimeLimit {
    /// The limit, if there is one.
    pub fn duration(self) -> Option<Duration> {
        match self {
            TimeLimit::Never => None,
            TimeLimit::After(time) => Some(time),
        }
    }
}

impl From<Duration> for TimeLimit {
    fn from(time: Duration) -> Self {
        TimeLimit::After(time)
    }
}

impl FromStr for TimeLimit {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "none" => Ok(TimeLimit::Never),
            _ => time(text)
                .map(TimeLimit::After)
                .map_err(|bad| BadValue::new(format!("{}, or none", bad.problem))),
        }
    }
}

impl fmt::Display for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimeLimit::Never => f.write_str("none"),
            TimeLimit::After(time) => f.write_str(&written(*time)),
        }
    }
}

/// Reads `90s`, `10m`, `1h30m`, `500ms`, `2.5` (seconds).
pub fn time(text: &str) -> Result<Duration, BadValue> {
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let written = || Duration::try_from(text.trim().parse::<jiff::SignedDuration>().ok()?).ok();
    seconds
        .or_else(written)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| BadValue::new(format!("{text:?} is no time; write 90s, 10m, 1h30m or 500ms")))
}

/// Writes a time so that [`time`] reads it.
pub(super) fn written(time: Duration) -> String {
    let (seconds, nanos) = (time.as_secs(), time.subsec_nanos());
    match nanos {
        0 => format!("{seconds}s"),
        _ => format!("{}s", format!("{seconds}.{nanos:09}").trim_end_matches('0')),
    }
}

/// Reads an amount of US dollars that can be a limit.
pub fn dollars(text: &str) -> Result<f64, BadValue> {
    let amount = text.trim().parse().ok().filter(|amount: &f64| amount.is_finite() && *amount > 0.0);
    amount.ok_or_else(|| {
        BadValue::new("it has to be an amount of more than 0, such as 0.50; leave it out for no limit")
    })
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
            let read = time(text).unwrap();
            assert_eq!(read, Duration::from_millis(millis), "{text}");
            assert_eq!(time(&written(read)), Ok(read), "{text}");
        }
        for wrong in
            ["soon", "", "0", "0s", "-5s", "-5", "5x", "1h30", "none", "5s ago", "inf", "nan", "1e300"]
        {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_limit_can_be_lifted() {
        assert_eq!("none".parse(), Ok(TimeLimit::Never));
        assert_eq!("1m".parse(), Ok(TimeLimit::After(Duration::from_secs(60))));
        assert!("never".parse::<TimeLimit>().is_err());
    }
}
