//! Names in the store: those of session files, and which ids can be a name.
//!
//! Gemini CLI calls a file `session-2026-11-15T18-07-cccccccc.jsonl`: the minute (UTC) in which it was made and eight
//! characters of the session's id. Imported ones have milliseconds instead of the minute.

use crate::file::Format;

/// What the names of session files, of their logs and of their long outputs start with.
pub const PREFIX: &str = "session-";
/// How a minute is written.
const MINUTE: &str = "0000-00-00T00-00";

/// Whether a file name is that of a session.
#[must_use]
pub fn is_session_name(name: &str) -> bool {
    name.starts_with(PREFIX) && stem(name).is_some()
}

/// The part of a name before `.json` or `.jsonl`, and which of them it is.
#[must_use]
pub fn stem(name: &str) -> Option<(&str, Format)> {
    let log = name.strip_suffix(".jsonl").map(|stem| (stem, Format::Jsonl));
    log.or_else(|| name.strip_suffix(".json").map(|stem| (stem, Format::Json)))
}

/// The end of the id, and the format, of `session-…-cccccccc.json` or `.jsonl`.
pub(crate) fn read_name(name: &str) -> Option<(String, Format)> {
    let (stem, format) = stem(name)?;
    let rest = stem.strip_prefix(PREFIX)?;
    // The time is fixed in length; an id may have dashes of its own (`--session-id my-1`).
    let id = match split_minute(rest) {
        Some((_, id)) => id,
        // Somebody may have given it any name: the CLI looks only at its beginning and its end.
        None => rest.rsplit_once('-').map_or(rest, |(_, id)| id),
    };
    (!id.is_empty()).then(|| (id.to_owned(), format))
}

/// Splits `2026-11-15T18-07-cccccccc`.
fn split_minute(rest: &str) -> Option<(&str, &str)> {
    let (minute, rest) = rest.split_at_checked(MINUTE.len())?;
    let mut shape = minute.bytes().zip(MINUTE.bytes());
    let is_minute = shape.all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte == shape,
    });
    Some((minute, rest.strip_prefix('-')?)).filter(|_| is_minute)
}

/// The minute in a session's file name.
#[must_use]
pub fn minute_of(name: &str) -> Option<&str> {
    split_minute(name.strip_prefix(PREFIX)?).map(|(minute, _)| minute)
}

/// The name with another minute in it. None when it has another form.
#[must_use]
pub fn with_minute(name: &str, minute: &str) -> Option<String> {
    let (_, tail) = split_minute(name.strip_prefix(PREFIX)?)?;
    Some(format!("{PREFIX}{minute}-{tail}"))
}

/// What a file name carries of an id: its first eight characters, those that the CLI does not allow replaced.
#[must_use]
pub fn short_id(id: &str) -> String {
    id.chars().take(8).map(|character| if is_name_character(character) { character } else { '_' }).collect()
}

/// Whether a file of this name may hold the session with this id.
#[must_use]
pub fn may_hold(name: &str, id: &str) -> bool {
    stem(name).is_some_and(|(stem, _)| stem.ends_with(&format!("-{}", short_id(id))))
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-' || character == '_'
}

/// An id that is one component of a path, and none of the names that mean something in a project's directory.
#[must_use]
pub fn is_plain_name(id: &str) -> bool {
    const RESERVED: [&str; 6] = ["chats", "logs", "tool-outputs", "checkpoints", "memory", "bin"];
    !id.is_empty()
        && id.chars().all(is_name_character)
        && !RESERVED.contains(&id.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_id_and_the_format() {
        let read = |name: &str| read_name(name);
        assert_eq!(read("session-2026-11-15T18-07-cccccccc.jsonl"), Some(("cccccccc".into(), Format::Jsonl)));
        assert_eq!(read("session-2025-10-29T10-36-9c9a14e1.json"), Some(("9c9a14e1".into(), Format::Json)));
        assert_eq!(read("session-1794766072729-abcdef01.jsonl"), Some(("abcdef01".into(), Format::Jsonl)));
        assert_eq!(read("session-2026-11-15T18-07-my-sessi.jsonl"), Some(("my-sessi".into(), Format::Jsonl)));
        assert_eq!(read("session-renamed.jsonl"), Some(("renamed".into(), Format::Jsonl)));
        for other in [
            "session-2026-11-15T18-07-cccccccc.jsonl.unreadable-17",
            "session-2026-11-15T18-07-cccccccc.jsonl.tmp-1234",
            "notes.json",
            "session-.jsonl",
            "",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn an_id_never_leads_out_of_the_project() {
        for id in ["..", "../x", "a/b", "", "chats", "LOGS", "memory", ".project_root"] {
            assert!(!is_plain_name(id), "{id}");
        }
        assert!(is_plain_name("3ba3ca89-ea92-4752-8d96-5b774503dd73"));
    }

    #[test]
    fn the_minute_in_a_name_can_be_changed() {
        let name = "session-2026-11-15T20-11-f8031cde.jsonl";
        assert_eq!(minute_of(name), Some("2026-11-15T20-11"));
        assert_eq!(
            with_minute(name, "2026-11-15T20-12").as_deref(),
            Some("session-2026-11-15T20-12-f8031cde.jsonl")
        );
        for other in [
            "session-1794773496780-6de1f4a0.jsonl",
            "session-é",
            "session-",
            "x",
            "session-aaaaaaaaaaaaaaaa-x",
        ] {
            assert_eq!(minute_of(other), None, "{other}");
        }
    }

    #[test]
    fn an_id_is_known_by_its_first_eight_characters() {
        assert_eq!(short_id("9c9a14e1-7b1f"), "9c9a14e1");
        assert_eq!(short_id("my_id/x:éz"), "my_id_x_");
        assert!(may_hold("session-2026-11-15T18-07-9c9a14e1.jsonl", "9c9a14e1-7b1f"));
        assert!(!may_hold("session-2026-11-15T18-07-9c9a14e1.jsonl", "9c9a14e2-7b1f"));
    }
}
