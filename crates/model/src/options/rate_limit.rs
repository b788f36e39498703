//! The reaction to rate limits of the API.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::BadValue;
use super::limit::{time, written};

/// What to do when the API limits requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnRateLimit {
    /// The run fails when Gemini CLI has given up.
    #[default]
    Fail,
    /// It waits as long as the API says, but in a row no longer than this. A daily quota is not waited for.
    Wait(Duration),
    /// It continues with this model in the same session, also after a daily quota.
    Model(String),
}

impl OnRateLimit {
    /// How long is waited in a row by default.
    pub const LONGEST_WAIT: Duration = Duration::from_secs(300);
}

impl FromStr for OnRateLimit {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text.split_once('=') {
            None if text == "fail" => Ok(OnRateLimit::Fail),
            None if text == "wait" => Ok(OnRateLimit::Wait(OnRateLimit::LONGEST_WAIT)),
            Some(("wait", limit)) => time(limit).map(OnRateLimit::Wait),
            Some(("model", name)) if !name.trim().is_empty() => Ok(OnRateLimit::Model(name.to_owned())),
            _ => Err(BadValue::new(format!(
                "{text:?} is not known; write fail, wait, wait=TIME or model=NAME"
            ))),
        }
    }
}

impl fmt::Display for OnRateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OnRateLimit::Fail => f.write_str("fail"),
            OnRateLimit::Wait(limit) => write!(f, "wait={}", written(*limit)),
            OnRateLimit::Model(name) => write!(f, "model={name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_at_a_rate_limit_is_read_and_everything_else_refused() {
        let minutes = |minutes: u64| Ok(OnRateLimit::Wait(Duration::from_secs(minutes * 60)));
        assert_eq!("fail".parse(), Ok(OnRateLimit::Fail));
        assert_eq!(("wait".parse(), "wait=10m".parse()), (minutes(5), minutes(10)));
        assert_eq!("model=m=1".parse(), Ok(OnRateLimit::Model("m=1".to_owned())));
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
            assert!(wrong.parse::<OnRateLimit>().is_err(), "{wrong}");
        }
    }
}
