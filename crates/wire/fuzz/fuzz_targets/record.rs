//! Any record: no panic, and a copy equals the original.
#![no_main]

use alhena_wire::session::{MessageRecord, parse_record, shell_end};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &[u8]| {
    if let Ok(record) = parse_record(line) {
        assert_eq!(record.clone().into_owned(), record);
    }
    let Ok(text) = std::str::from_utf8(line) else { return };
    if let Some(message) = MessageRecord::from_text(text) {
        assert_eq!(message.clone().into_owned(), message);
    }
    shell_end(text);
});
