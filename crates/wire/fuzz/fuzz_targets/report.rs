//! Any output: no panic, in linear time, and a report that is found can be written and found again.
#![no_main]

use alhena_wire::report::{find_error_report, find_report};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|output: &[u8]| {
    for found in [find_report(output), find_error_report(output)].into_iter().flatten() {
        let written = serde_json::to_string(&found.report).unwrap();
        assert_eq!(find_report(written.as_bytes()).unwrap().skipped_bytes, 0);
    }
});
