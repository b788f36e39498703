//! The cache is whole and shared, snapshots see every change, and waiting is bounded.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use alhena_testbed::cache::entry_in;
use alhena_testbed::snapshot::{Change, Entry};
use alhena_testbed::stand_in::sha256;
use alhena_testbed::streams::{write_deltas, write_mixed};
use alhena_testbed::{Deadline, PrivateHome, Snapshot, diff, forms, run_bounded, tools};

#[test]
fn many_who_ask_at_once_make_an_entry_once() {
    let root = tempfile::tempdir().unwrap();
    let made = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let place = entry_in(root.path(), "tool/1.0", |directory| {
                    made.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(50));
                    std::fs::write(directory.join("file"), "whole")
                });
                assert_eq!(std::fs::read_to_string(place.unwrap().join("file")).unwrap(), "whole");
            });
        }
    });
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[test]
fn an_entry_that_failed_leaves_nothing_and_can_be_tried_again() {
    let root = tempfile::tempdir().unwrap();
    let failed = entry_in(root.path(), "tool/1.0", |directory| {
        std::fs::write(directory.join("half"), "half")?;
        Err(std::io::Error::other("no network"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "no network");
    assert_eq!(std::fs::read_dir(root.path().join("tool")).unwrap().count(), 0);
    let place =
        entry_in(root.path(), "tool/1.0", |directory| std::fs::write(directory.join("file"), "whole"))
            .unwrap();
    assert_eq!(place, root.path().join("tool/1.0"));
}

#[test]
fn a_snapshot_sees_every_kind_of_change() {
    let home = PrivateHome::new().unwrap();
    let path = |name: &str| home.path().join(name);
    std::fs::write(path("same"), "same").unwrap();
    std::fs::write(path("mode"), "m").unwrap();
    std::fs::write(path("gone"), "g").unwrap();
    std::fs::write(path("size"), vec![b'a'; 100_000]).unwrap();
    std::os::unix::fs::symlink("nowhere", path("link")).unwrap();
    let before = home.snapshot().unwrap();
    assert_eq!(before.entries[&PathBuf::from("link")], Entry::Link("nowhere".into()));
    assert_eq!(diff(&before, &home.snapshot().unwrap()), []);

    std::fs::write(path("same"), "same").unwrap();
    std::fs::set_permissions(path("mode"), PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::remove_file(path("gone")).unwrap();
    std::fs::write(path("size"), vec![b'b'; 100_000]).unwrap();
    std::fs::create_dir(path(".gemini/new")).unwrap();
    let changes = diff(&before, &home.snapshot().unwrap());
    let file = |mode, bytes: Vec<u8>| Entry::File {
        mode,
        size: bytes.len() as u64,
        sha256: sha256(&bytes),
        bytes: (bytes.len() < 1000).then_some(bytes),
    };
    let mode = std::fs::metadata(path("size")).unwrap().permissions().mode() & 0o7777;
    let expected = [
        Change::Added(".gemini/new".into()),
        Change::Removed("gone".into()),
        Change::Changed {
            path: "mode".into(),
            before: file(mode, b"m".into()),
            after: file(0o600, b"m".into()),
        },
        Change::Changed {
            path: "size".into(),
            before: file(mode, vec![b'a'; 100_000]),
            after: file(mode, vec![b'b'; 100_000]),
        },
    ];
    assert_eq!(changes, expected);
    let without = |snapshot: &Snapshot| snapshot.clone().without(&[".gemini", "gone", "mode", "size"]);
    assert_eq!(diff(&without(&before), &without(&home.snapshot().unwrap())), []);
}

#[test]
fn a_command_that_does_not_end_is_killed_with_its_descendants() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let script = format!("setsid sleep 100 & echo $! > {}; wait", file.display());
    let done = run_bounded(Command::new("sh").arg("-c").arg(script), Duration::from_secs(5)).unwrap();
    assert_eq!(
        (done.timed_out, done.succeeded(), done.ending().as_str()),
        (true, false, "it ran out of time")
    );
    let sleeper: u32 = std::fs::read_to_string(file).unwrap().trim().parse().unwrap();
    assert!(Deadline::after(Duration::from_secs(10)).wait_until(|| !alhena_testbed::alive(sleeper)));
}

#[test]
fn a_command_that_leaves_a_writer_behind_is_not_waited_for() {
    let done = run_bounded(Command::new("sh").arg("-c").arg("sleep 3 & echo done"), Duration::from_secs(60))
        .unwrap();
    assert_eq!((done.stdout_text().as_str(), done.timed_out), ("done\n", false));
}

#[test]
fn generated_streams_are_the_same_for_the_same_seed() {
    let (mut one, mut two, mut other) = (Vec::new(), Vec::new(), Vec::new());
    write_mixed(&mut one, 3_000_000, 7).unwrap();
    write_mixed(&mut two, 3_000_000, 7).unwrap();
    write_mixed(&mut other, 3_000_000, 8).unwrap();
    assert!(one == two && one != other);
    let mut deltas = Vec::new();
    write_deltas(&mut deltas, 100_000, 7).unwrap();
    let types = |bytes: &[u8]| {
        let mut counts = std::collections::BTreeMap::<String, u32>::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let event: serde_json::Value = serde_json::from_slice(line).unwrap();
            *counts.entry(event["type"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        counts
    };
    assert_eq!(types(&deltas).keys().collect::<Vec<_>>(), ["init", "message", "result"]);
    let mixed = types(&one);
    assert_eq!(mixed.keys().collect::<Vec<_>>(), ["init", "message", "result", "tool_result", "tool_use"]);
    assert_eq!(mixed["tool_use"], mixed["tool_result"]);
}

#[test]
fn the_table_of_tools_has_no_row_twice_and_always_the_newest_cli() {
    let all = tools::all();
    let rows: std::collections::BTreeSet<(&str, &str)> =
        all.iter().map(|tool| (tool.name, tool.version.as_str())).collect();
    assert_eq!(rows.len(), all.len());
    assert!(all.iter().any(|tool| tool.name == "gemini-cli" && tool.needed()));
}

#[test]
fn values_are_written_in_each_form() {
    assert_eq!(forms::json("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    assert_eq!(forms::percent("a b/ü"), "a%20b%2F%C3%BC");
}
