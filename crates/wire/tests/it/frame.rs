//! Bytes into lines: any chunking, any size, never more memory than allowed.

use alhena_wire::frame::{DEFAULT_LIMIT, Frame, Framer, sample};

/// A frame that outlives its chunk.
#[derive(Debug, PartialEq)]
enum OwnedFrame {
    Line(Vec<u8>),
    TooLong(u64, String),
}

fn line(text: &str) -> OwnedFrame {
    OwnedFrame::Line(text.as_bytes().to_vec())
}

fn frames<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<OwnedFrame> {
    let mut framer = Framer::new(limit);
    let mut seen = Vec::new();
    let mut collect = |frame: Frame<'_>| {
        seen.push(match frame {
            Frame::Line(line) => OwnedFrame::Line(line.to_vec()),
            Frame::TooLong { bytes, sample } => OwnedFrame::TooLong(bytes, sample),
        });
    };
    for chunk in chunks {
        framer.push(chunk, &mut collect);
    }
    framer.finish(&mut collect);
    assert_eq!(framer.pending(), 0);
    seen
}

#[test]
fn lines_end_at_newlines_only() {
    let text = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\rg\nsecond\n";
    assert_eq!(
        frames(99, [text.as_bytes()]),
        [line("a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\rg"), line("second")]
    );
}

#[test]
fn blank_lines_are_skipped() {
    // A-28
    assert_eq!(frames(99, [&b"\n\n \t \r\n\r\na\n\n"[..]]), [line("a")]);
    assert_eq!(frames(99, [&b" "[..], b" ", b"\n"]), []);
    assert_eq!(frames(99, [&b""[..]]), []);
}

#[test]
fn last_line_needs_no_newline() {
    // A-28
    assert_eq!(frames(99, [&b"one\n{\"type\":"[..]]), [line("one"), line("{\"type\":")]);
}

#[test]
fn line_within_a_chunk_is_not_copied() {
    let chunk = b"first\nsecond\nthi".to_vec();
    let range = chunk.as_ptr_range();
    let mut framer = Framer::default();
    let mut inside = Vec::new();
    framer.push(&chunk, |frame| match frame {
        Frame::Line(line) => inside.push(range.contains(&line.as_ptr())),
        other => panic!("{other:?}"),
    });
    assert_eq!(inside, [true, true]);
    assert_eq!(framer.pending(), 3);
}

#[test]
fn endless_line_is_counted_and_let_go() {
    let chunk = vec![b'x'; 1 << 20];
    let mut framer = Framer::new(4 << 20);
    for _ in 0..100 {
        framer.push(&chunk, |frame| panic!("{frame:?}"));
    }
    assert_eq!(framer.pending(), 100 << 20);
    let mut seen = Vec::new();
    framer.push(b"\nnext\n", |frame| seen.push(format!("{frame:?}")));
    assert_eq!(
        seen,
        [
            format!("TooLong {{ bytes: {}, sample: \"{}…\" }}", 100 << 20, "x".repeat(200)),
            "Line([110, 101, 120, 116])".to_owned()
        ]
    );
}

#[test]
fn default_limit_is_64_mebibytes() {
    assert_eq!(DEFAULT_LIMIT, 67_108_864);
    let mut framer = Framer::default();
    let megabyte = vec![b'y'; 1 << 20];
    (0..64).for_each(|_| framer.push(&megabyte, |frame| panic!("{frame:?}")));
    let mut lengths = Vec::new();
    framer.push(b"\n", |frame| match frame {
        Frame::Line(line) => lengths.push(line.len()),
        other => panic!("{other:?}"),
    });
    assert_eq!(lengths, [DEFAULT_LIMIT]);
}

#[test]
fn half_lines_byte_by_byte_are_not_quadratic() {
    // 4 MB one byte at a time; a framer that rescans or recopies does 10^13 steps here and never ends.
    let mut framer = Framer::default();
    for _ in 0..4_000_000 {
        framer.push(b"z", |frame| panic!("{frame:?}"));
    }
    let mut lengths = Vec::new();
    framer.finish(|frame| match frame {
        Frame::Line(line) => lengths.push(line.len()),
        other => panic!("{other:?}"),
    });
    assert_eq!(lengths, [4_000_000]);
}

#[test]
fn sample_makes_everything_visible() {
    assert_eq!(sample(b"plain \"text\" \\ 'x'"), "plain \"text\" \\ 'x'");
    assert_eq!(sample(b"\x1b[31mred\x1b[0m\r\n\t\x00\x7f"), r"\u{1b}[31mred\u{1b}[0m\r\n\t\u{0}\u{7f}");
    assert_eq!(
        sample("\u{9b}31m \u{202e}abc \u{2066}\u{feff}\u{2028}".as_bytes()),
        r"\u{9b}31m \u{202e}abc \u{2066}\u{feff}\u{2028}"
    );
    assert_eq!(sample("é 日本 👩\u{200d}🚀".as_bytes()), "é 日本 👩\u{200d}🚀");
    assert_eq!(sample(b"a\xff\xc3b"), "a\u{fffd}\u{fffd}b");
    assert_eq!(sample(b""), "");
}

#[test]
fn sample_is_short_and_whole() {
    assert_eq!(sample("🌍".repeat(200).as_bytes()), "🌍".repeat(200));
    assert_eq!(sample("🌍".repeat(300_000).as_bytes()), "🌍".repeat(200) + "…");
    assert_eq!(sample(&[0x1b; 5000]), r"\u{1b}".repeat(33) + "…");
    assert_eq!(sample(&[0xff; 5000]), "\u{fffd}".repeat(200) + "…");
}
