//! Points in time as the events carry them: UTC, ISO-8601, milliseconds, the format of Gemini CLI itself.

use std::fmt;
use std::ops::Range;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970 in UTC; `2026-11-15T17:49:10.599Z` in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The given number of milliseconds after (or before) 1970.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Now, by the system's clock.
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_millisecond())
    }

    /// Reads an ISO-8601 time with an offset; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        own_format(text.as_bytes())
            .or_else(|| text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond()))
            .map(Self)
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }
}

/// `2026-11-15T17:49:10.599Z`, as the CLI writes it on every line of its stream: a general reader took a tenth of the time
/// that a whole line takes. Anything unusual is left to that one.
fn own_format(text: &[u8]) -> Option<i64> {
    let number = |digits: Range<usize>| {
        let mut digits = text.get(digits)?.iter();
        digits.try_fold(0i64, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
    };
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if text.len() != 24 || marks.iter().any(|(at, mark)| text.get(*at) != Some(mark)) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    // Days 29 to 31 depend on the month.
    if !(1..=12).contains(&month) || !(1..=28).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    // Days since 1970-01-01, with years that begin in March so that the leap day comes last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    Some(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + number(20..23)?)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            // Outside of the years -9999 to 9999: nobody meant a date.
            Err(_) => f.write_str("1970-01-01T00:00:00.000Z"),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Iso;
        impl Visitor<'_> for Iso {
            type Value = Timestamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an ISO-8601 time")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).ok_or_else(|| E::custom(format!("not an ISO-8601 time: {text:?}")))
            }
        }
        deserializer.deserialize_str(Iso)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time", "description": "UTC, ISO-8601, with milliseconds."})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_read() {
        for text in ["2026-11-15T17:49:10.599Z", "1970-01-01T00:00:00.000Z", "1969-12-31T23:59:59.999Z"] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(
            Timestamp::parse("2026-11-15T19:49:10.599+02:00").unwrap().to_string(),
            "2026-11-15T17:49:10.599Z"
        );
    }

    #[test]
    fn the_short_way_agrees_with_the_general_one() {
        for year in [0, 1600, 1899, 1900, 1969, 1970, 1999, 2000, 2024, 2026, 2100, 9999] {
            for (month, day) in (1..=12).flat_map(|month| [1, 9, 27, 28].map(|day| (month, day))) {
                let text = format!("{year:04}-{month:02}-{day:02}T23:59:07.042Z");
                let general = text.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond());
                assert_eq!(own_format(text.as_bytes()), general, "{text}");
            }
        }
        for text in [
            "2026-02-29T00:00:00.000Z",
            "2026-13-01T00:00:00.000Z",
            "2026-01-01T24:00:00.000Z",
            "2026-01-01T0x:00:00.000Z",
        ] {
            assert_eq!(own_format(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_time() {
        for text in ["", "yesterday", "2026-11-15", "2026-13-45T99:99:99Z"] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
        assert!(serde_json::from_str::<Timestamp>("\"soon\"").is_err());
        assert!(serde_json::from_str::<Timestamp>("17").is_err());
    }

    #[test]
    fn an_absurd_value_still_prints() {
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), "1970-01-01T00:00:00.000Z");
    }
}
