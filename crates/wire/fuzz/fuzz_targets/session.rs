//! Any file: a reader, a follower and one that watches see the same messages.
#![no_main]

use alhena_wire::session::{Format, Log, Session};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|file: &[u8]| {
    let session = Session::read(file);
    let mut shown = Vec::new();
    let each = Session::read_each(file, |record, raw| {
        serde_json::to_string(&record).unwrap();
        shown.push(raw.get().to_owned());
    });
    let read: Vec<_> = session.log.messages().iter().map(|message| message.raw().get().to_owned()).collect();
    assert_eq!(shown, read);
    assert_eq!(each.log.unreadable(), session.log.unreadable());

    if session.format == Format::Lines && session.complete {
        let mut follower: Log<'static> = Log::new();
        file.split(|byte| *byte == b'\n').for_each(|line| _ = follower.push_copy(line));
        assert_eq!(follower.messages(), session.log.messages());
        assert_eq!(follower.metadata(), session.log.metadata());
    }
});
