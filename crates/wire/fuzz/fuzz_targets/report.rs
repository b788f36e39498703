//! Any output: no panic, in linear time, and no more is skipped than there is.
#![no_main]

use alhena_wire::report::{find_error_report, find_report};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|output: &[u8]| {
    for found in [find_report(output), find_error_report(output)].into_iter().flatten() {
        assert!(found.skipped_bytes < output.len() as u64);
    }
});
