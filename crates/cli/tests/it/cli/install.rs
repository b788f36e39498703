//! `alhena install`, without fetching anything

use std::time::Duration;

use alhena_testbed::processes::signal;
use alhena_testbed::{Deadline, alive};
use rustix::process::Signal;

use crate::common::{Desk, Started};

/// An npm that begins, starts processes that nobody waits for, and never ends. Each writes its number into `pids`.
fn with_endless_npm() -> Desk {
    let desk = Desk::new();
    desk.program("node", "#!/bin/sh\necho v22.1.0\n");
    desk.program("npm", &endless(&desk));
    desk
}

fn endless(desk: &Desk) -> String {
    let pids = desk.root().join("pids").display().to_string();
    format!(
        "#!/bin/sh\nPATH=/usr/bin:/bin\necho data > fetched\n\
         setsid env -i sh -c 'echo $$ >> {pids}; exec sleep 600' &\n\
         echo $$ >> {pids}\nexec sleep 600\n"
    )
}

/// The processes that have begun, once there are two.
fn begun(desk: &Desk) -> Vec<u32> {
    let numbers = || -> Vec<u32> {
        let text = std::fs::read_to_string(desk.root().join("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    };
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(|| numbers().len() == 2));
    numbers()
}

fn all_gone(pids: &[u32]) -> bool {
    Deadline::after(Duration::from_secs(30)).wait_until(|| !pids.iter().any(|pid| alive(*pid)))
}

/// What there is of installs, apart from locks.
fn fetched(desk: &Desk) -> Vec<String> {
    let entries = std::fs::read_dir(desk.home().join("alhena/data/gemini-cli")).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.ends_with(".lock")).collect()
}

#[test]
fn an_install_that_is_stopped_or_killed_leaves_no_npm_and_no_files() {
    for (number, code) in
        [(Signal::INT, Some(130)), (Signal::TERM, Some(130)), (Signal::HUP, Some(130)), (Signal::KILL, None)]
    {
        let desk = with_endless_npm();
        let started = Started::new(&desk, desk.command(&["install", "0.61.0"]), b"");
        let pids = begun(&desk);
        signal(started.child.id(), number);
        let seen = started.finish(&desk, &["install"], Duration::from_secs(60));
        assert_eq!(seen.code(), code, "{seen}");
        assert!(all_gone(&pids), "{number:?}");
        let clean = Deadline::after(Duration::from_secs(30)).wait_until(|| fetched(&desk).is_empty());
        assert!(clean, "{number:?}: {:?}", fetched(&desk));
    }
}

#[test]
fn what_killed_installs_left_goes_with_the_next_one() {
    let desk = with_endless_npm();
    desk.program("npm", "#!/bin/sh\nexit 1\n");
    let installs = desk.home().join("alhena/data/gemini-cli");
    for name in [".making-0.61.0-abcdef", ".making-0.45.2-abcdef", ".making-0.50.0-abcdef"] {
        std::fs::create_dir_all(installs.join(name)).unwrap();
    }
    let lock = |version: &str| std::fs::File::create(installs.join(format!(".{version}.lock"))).unwrap();
    let (_free, held) = (lock("0.45.2"), lock("0.50.0"));
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(desk.alhena(&["install", "0.61.0"]).code(), Some(1));
    assert_eq!(fetched(&desk), [".making-0.50.0-abcdef"], "somebody is at it");
}

#[test]
fn an_interrupt_during_the_first_fetch_of_an_offline_run_ends_it() {
    let desk = with_endless_npm();
    let started = Started::new(&desk, desk.command(&["run", "--offline", "--as", "outcome", "hi"]), b"");
    let pids = begun(&desk);
    signal(started.child.id(), Signal::INT);
    let seen = started.finish(&desk, &["run", "--offline"], Duration::from_secs(60));
    assert_eq!((seen.code(), &seen.json()["failure"]["kind"]), (Some(130), &"cancelled".into()), "{seen}");
    assert!(all_gone(&pids) && fetched(&desk).is_empty());
}

#[test]
fn a_cli_that_is_asked_for_its_version_does_not_outlive_alhena() {
    for number in [Signal::KILL, Signal::TERM] {
        let desk = Desk::new();
        let gemini = desk.program("gemini", &endless(&desk));
        let args = ["detect", "--gemini", gemini.to_str().unwrap()];
        let started = Started::new(&desk, desk.command(&args), b"");
        let pids = begun(&desk);
        signal(started.child.id(), number);
        assert_eq!(started.finish(&desk, &args, Duration::from_secs(60)).code(), None);
        assert!(all_gone(&pids), "{number:?}");
    }
}
