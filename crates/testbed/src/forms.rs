//! The forms in which a value stands in files: for agents that tell secrets, and for tests that look for them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const IN_A_URL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub fn json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// As in a URL, everything encoded that may be.
pub fn percent(value: &str) -> String {
    utf8_percent_encode(value, IN_A_URL).to_string()
}

pub fn base64(bytes: &[u8]) -> String {
    data_encoding::BASE64.encode(bytes)
}
