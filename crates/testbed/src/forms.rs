//! The forms in which a value stands in files: for agents that tell secrets, and for tests that look for them.

use std::fmt::Write;

/// As the inside of a JSON string.
pub fn json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// As in a URL, everything encoded that may be.
pub fn percent(value: &str) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            other => {
                let _never = write!(encoded, "%{other:02X}");
            }
        }
    }
    encoded
}

/// In base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for position in 0..4 {
            let letter = LETTERS.get((bits >> (18 - 6 * position)) as usize & 63).copied().unwrap_or(b'=');
            encoded.push(if position > group.len() { '=' } else { letter.into() });
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    #[test]
    fn values_are_written_in_each_form() {
        assert_eq!(super::json("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
        assert_eq!(super::json("\""), "\\\"");
        assert_eq!(super::percent("a b/ü"), "a%20b%2F%C3%BC");
        let pairs = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        pairs.into_iter().for_each(|(plain, encoded)| assert_eq!(super::base64(plain.as_bytes()), encoded));
    }
}
