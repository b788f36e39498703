//! Any line: no panic, and a copy equals the original.
#![no_main]

use alhena_wire::stream::parse_line;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    let Ok(event) = parse_line(line) else { return };
    assert_eq!(event.clone().into_owned(), event);
});
