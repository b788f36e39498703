//! What holds for any input: the same entry points as the fuzz targets.

use alhena_wire::frame::{Frame, Framer, sample};
use alhena_wire::release::Version;
use alhena_wire::report::{find_error_report, find_report};
use alhena_wire::stream::{StreamEvent, parse_line};
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes that look enough like the CLI's output to get past the first checks.
fn json_like() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("\n"),
        Just(" "),
        Just("\""),
        Just("\\"),
        Just("\"type\""),
        Just("\"message\""),
        Just("\"role\""),
        Just("\"content\""),
        Just("\"result\""),
        Just("\"status\""),
        Just("\"stats\""),
        Just("\"error\""),
        Just("\"response\""),
        Just("\"models\""),
        Just("1"),
        Just("-1.5e3"),
        Just("null"),
        Just("true"),
        Just("\\ud800"),
        Just("\\udc00"),
        Just("\"x\""),
        Just("[ERROR] {"),
        Just("{\"type\":\"message\",\"role\":\"user\",\"content\":\""),
        Just("é"),
        Just("\u{2028}"),
    ];
    vec(token, 0..40).prop_map(|tokens| tokens.concat().into_bytes())
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..300), json_like()]
}

/// The text of a message.
fn content(line: &str) -> String {
    match parse_line(line.as_bytes()) {
        Ok(StreamEvent::Message(message)) => message.content.into_owned(),
        other => panic!("{line}: {other:?}"),
    }
}

/// Lines as a simple model splits them.
fn split(limit: usize, bytes: &[u8]) -> Vec<Result<Vec<u8>, u64>> {
    bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| match line.len() > limit {
            true => Some(Err(line.len() as u64)),
            false => {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                (!line.iter().all(u8::is_ascii_whitespace)).then(|| Ok(line.to_vec()))
            }
        })
        .collect()
}

fn frames(limit: usize, bytes: &[u8], cuts: &[usize]) -> Vec<Result<Vec<u8>, u64>> {
    let mut framer = Framer::new(limit);
    let mut seen = Vec::new();
    let mut take = |frame: Frame<'_>| {
        seen.push(match frame {
            Frame::Line(line) => Ok(line.to_vec()),
            Frame::TooLong { bytes, .. } => Err(bytes),
        });
    };
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).chain([0, bytes.len()]).collect();
    cuts.sort_unstable();
    for pair in cuts.windows(2) {
        framer.push(&bytes[pair[0]..pair[1]], &mut take);
    }
    framer.finish(&mut take);
    seen
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_lines(
        bytes in vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b' '), any::<u8>()], 0..200),
        cuts in vec(any::<usize>(), 0..20),
        limit in 0_usize..40,
    ) {
        prop_assert_eq!(frames(limit, &bytes, &cuts), split(limit, &bytes));
    }

    #[test]
    fn no_line_panics(bytes in any_bytes()) {
        _ = parse_line(&bytes);
    }

    #[test]
    fn text_survives_escaping(text in ".{0,60}") {
        let line = serde_json::json!({"type": "message", "role": "user", "content": text}).to_string();
        prop_assert_eq!(content(&line), text);
    }

    #[test]
    fn shortcut_for_chunks_reads_what_the_long_way_reads(
        content in prop_oneof![".{0,40}", "[\"\\\\,:{}a-z]{0,20}"],
        timestamp in "[0-9TZ:.\\-\"\\\\ ]{0,24}",
        garbled in any::<prop::sample::Index>(),
    ) {
        let text = serde_json::to_string(&content).unwrap();
        let line = format!(r#"{{"type":"message","timestamp":"{timestamp}","role":"assistant","content":{text},"delta":true}}"#);
        // The same with a space in front of the brace never takes the shortcut.
        let long = format!(" {line}");
        prop_assert_eq!(parse_line(line.as_bytes()).ok(), parse_line(long.as_bytes()).ok());
        let mut bytes = line.into_bytes();
        bytes.remove(garbled.index(bytes.len()));
        let long = [b" ", &bytes[..]].concat();
        prop_assert_eq!(parse_line(&bytes).ok(), parse_line(&long).ok());
    }

    #[test]
    fn utf16_units_are_read_as_javascript_writes_them(units in vec(any::<u16>(), 0..20)) {
        // String.fromCharCode(...units), then JSON.stringify with every unit escaped.
        let escaped: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
        let line = format!(r#"{{"type":"message","role":"user","content":"{escaped}"}}"#);
        prop_assert_eq!(content(&line), String::from_utf16_lossy(&units));
    }

    #[test]
    fn no_output_panics_the_search_for_a_report(bytes in any_bytes()) {
        find_report(&bytes);
        find_error_report(&bytes);
    }

    #[test]
    fn report_is_found_between_lines_without_braces(before in "[^{}]{0,50}", after in "[^{}]{0,50}", text in ".{0,20}") {
        let report = serde_json::to_string_pretty(&serde_json::json!({"session_id": "s", "response": text})).unwrap();
        let output = format!("{before}\n{report}\n{after}");
        let found = find_report(output.as_bytes()).unwrap();
        prop_assert_eq!(found.report.response.as_deref(), Some(&*text));
    }

    #[test]
    fn samples_are_short_and_visible(bytes in any_bytes()) {
        let sample = sample(&bytes);
        prop_assert!(sample.chars().count() <= 201);
        prop_assert!(!sample.chars().any(char::is_control));
    }

    #[test]
    fn versions_survive_printing(text in "[0-9v.a-z+ -]{0,20}") {
        if let Ok(version) = text.parse::<Version>() {
            prop_assert_eq!(version.to_string().parse::<Version>().unwrap(), version);
        }
    }
}
