//! Any line: no panic, and what is read can be written and is then the same kind of event.
#![no_main]

use alhena_wire::stream::parse_line;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let Ok(event) = parse_line(line) else { return };
    assert_eq!(event.clone().into_owned(), event);
    let written = serde_json::to_string(&event).unwrap();
    let again = parse_line(written.as_bytes()).unwrap();
    assert_eq!(again.kind(), event.kind());
});
