//! Points in time as the events carry them: UTC, ISO-8601, milliseconds, the format of Gemini CLI itself.

use std::fmt;

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
        text.parse::<jiff::Timestamp>().ok().map(|time| Self(time.as_millisecond()))
    }

    /// Milliseconds since 1970.
    pub fn as_millis(self) -> i64 {
        self.0
    }
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
