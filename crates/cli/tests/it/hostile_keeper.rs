//! Runs whose keeper is not what it should be: of another release, killed, mute.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::lab::{Build, HostileLab};
use alhena_agent::Run;
use alhena_model::{FailureKind, Status};
use alhena_testbed::Script;

impl HostileLab {
    /// Makes a program of this text the keeper.
    fn set_keeper(&mut self, program: &str) {
        let home = self.lab.home.path();
        let (keeper, sleep) = (home.join("keeper"), home.join("sleep"));
        std::fs::write(&keeper, program.replace("sleep", sleep.to_str().unwrap())).unwrap();
        std::os::unix::fs::symlink("/bin/sleep", sleep).unwrap();
        std::fs::set_permissions(&keeper, std::fs::Permissions::from_mode(0o755)).unwrap();
        self.lab.env.set("ALHENA_KEEPER", &keeper);
    }

    /// Starts a run that is to be kept by a program of this text.
    fn start_kept_by(&mut self, program: &str, limit: Option<Duration>) -> Run {
        self.set_keeper(program);
        let request = self.lab.request("hello");
        self.lab.start(limit.into_iter().fold(request, |request, limit| request.timeout(limit)))
    }

    /// What is left of the run and of its keeper.
    fn left(&self) -> Vec<String> {
        let home = self.lab.home.path().to_str().unwrap().to_owned();
        let commands = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
            Some(String::from_utf8_lossy(&line).replace('\0', " "))
        });
        let marked = self.hostile.survivors().unwrap().into_iter().map(|pid| pid.to_string());
        commands.filter(|line| line.contains(&home)).chain(marked).collect()
    }
}

/// Waited for in vain, these cost ten seconds.
const MUTE: [(&str, &str); 3] = [
    ("mute", "#!/bin/sh\nsleep 100\n"),
    ("mute to signals too", "#!/bin/sh\ntrap '' TERM INT HUP USR1 USR2\nsleep 100 & wait; wait\n"),
    ("mute to itself", "#!/bin/sh\nread -r order\nsleep 100\n"),
];

/// A library may find any release's `alhena` on PATH.
#[test]
fn a_keeper_that_is_none_costs_a_warning_and_not_the_run() {
    let keepers = [
        ("older", "#!/bin/sh\nread -r order\nexit 1\n", "another release"),
        (
            "newer",
            "#!/bin/sh\nread -r order\necho '{\"hello\":{\"version\":99}}' >&0\nread -r order\n",
            "another release",
        ),
        ("half a word", "#!/bin/sh\nprintf '{\"hel' >&0\nsleep 100\n", "another release"),
        ("no program", "\0", "Exec format error"),
        (MUTE[1].0, MUTE[1].1, "does not answer"),
    ];
    for (name, program, why) in keepers {
        let mut hostile = HostileLab::new(name, Script::normal());
        let outcome = hostile.start_kept_by(program, None).outcome_blocking();
        assert_eq!((outcome.status, &outcome.failure), (Status::Success, &None), "{name}");
        let told = outcome.warnings.iter().find(|warning| warning.contains("/keeper cannot be the keeper: "));
        assert!(told.is_some_and(|warning| warning.contains(why)), "{name}: {:?}", outcome.warnings);
        assert_eq!(hostile.left(), [""; 0], "{name}");
    }
}

#[test]
fn a_run_that_requires_a_keeper_is_not_started_without_one() {
    for (name, program, why) in [
        ("older", "#!/bin/sh\nread -r order\nexit 1\n", "another release"),
        ("no program", "\0", "Exec format error"),
    ] {
        let mut hostile = HostileLab::new(name, Script::normal());
        hostile.set_keeper(program);
        let mut request = hostile.lab.request("hello");
        request.require_keeper = true;
        let failure = match hostile.lab.gemini.start(request, &hostile.lab.env) {
            Ok(run) => run.outcome_blocking().failure.clone().unwrap(),
            Err(error) => error.into_failure(),
        };
        assert_eq!(failure.kind, FailureKind::Crashed, "{name}: {failure:?}");
        let said = format!("{} {}", failure.message, failure.errors.join(" "));
        assert!(said.contains("/keeper cannot be the keeper: ") && said.contains(why), "{name}: {said}");
        assert_eq!(hostile.left(), [""; 0], "{name}");
    }
}

#[test]
fn a_time_limit_is_kept_while_a_keeper_says_nothing() {
    for (name, program) in MUTE {
        let mut hostile = HostileLab::new(name, Script::normal());
        let outcome = hostile.start_kept_by(program, Some(Duration::from_millis(500))).outcome_blocking();
        let kind = outcome.failure.as_ref().map(|failure| failure.kind);
        assert_eq!((outcome.status, kind), (Status::Timeout, Some(FailureKind::Timeout)), "{name}");
        assert!(outcome.warnings.is_empty(), "{name}: {:?}", outcome.warnings);
        assert_eq!(hostile.left(), [""; 0], "{name}");
    }
}

#[test]
fn a_stop_is_heard_while_a_keeper_says_nothing() {
    for (name, program) in MUTE {
        let mut hostile = HostileLab::new(name, Script::normal());
        let run = hostile.start_kept_by(program, None);
        run.stopper().stop();
        let outcome = run.outcome_blocking();
        assert_eq!((outcome.status, &outcome.warnings), (Status::Cancelled, &Vec::new()), "{name}");
        assert_eq!(hostile.left(), [""; 0], "{name}");
    }
}

#[test]
fn a_keeper_that_is_killed_before_it_holds_anything_is_replaced() {
    for (deaths, kept) in [(1, true), (2, true), (3, false)] {
        let mut hostile = HostileLab::new("killed early", Script::normal());
        let script = format!(
            "#!/bin/sh\necho x >> {marks}\n[ $(wc -l < {marks}) -le {deaths} ] && kill -KILL $$\nexec {} \"$@\"\n",
            crate::lab::ALHENA,
            marks = hostile.lab.home.path().join("marks").display(),
        );
        let outcome = hostile.start_kept_by(&script, None).outcome_blocking();
        assert_eq!((outcome.status, &outcome.failure), (Status::Success, &None), "{deaths}");
        let warned =
            outcome.warnings.iter().any(|warning| warning.contains("cannot be the keeper: it was killed"));
        assert_eq!(warned, !kept, "{deaths}: {:?}", outcome.warnings);
        assert_eq!(hostile.left(), [""; 0], "{deaths}");
    }
}
