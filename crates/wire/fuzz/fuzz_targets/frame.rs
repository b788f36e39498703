//! Any bytes in any chunks: the same lines, and samples that can be shown.
#![no_main]

use alhena_wire::frame::{Frame, Framer, sample};
use libfuzzer_sys::fuzz_target;

fn frames<'a>(limit: usize, chunks: impl Iterator<Item = &'a [u8]>) -> Vec<Result<Vec<u8>, (u64, String)>> {
    let mut framer = Framer::new(limit);
    let mut seen = Vec::new();
    let mut take = |frame: Frame<'_>| {
        seen.push(match frame {
            Frame::Line(line) => Ok(line.to_vec()),
            Frame::TooLong { bytes, sample } => Err((bytes, sample)),
        });
    };
    chunks.for_each(|chunk| framer.push(chunk, &mut take));
    framer.finish(&mut take);
    seen
}

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (limit, size, bytes) = input;
    let whole = frames(limit.into(), std::iter::once(bytes));
    assert_eq!(frames(limit.into(), bytes.chunks(usize::from(size) + 1)), whole);
    let shown = sample(bytes);
    assert!(shown.chars().count() <= 201 && !shown.chars().any(char::is_control));
});
