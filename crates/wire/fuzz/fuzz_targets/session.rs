//! Any file: a reader and a follower see the same messages.
#![no_main]

use alhena_wire::session::{Format, Log, Session};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let session = Session::read(file);
    for message in session.log.messages() {
        message.decode();
    }
    if session.format == Format::Lines && session.complete {
        let mut follower: Log<'static> = Log::new();
        file.split(|byte| *byte == b'\n').for_each(|line| _ = follower.push_copy(line));
        assert_eq!(follower.messages(), session.log.messages());
        assert_eq!(follower.metadata(), session.log.metadata());
    }
});
