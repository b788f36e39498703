//! `alhena doctor`

use std::fs;

use alhena_testbed::{Hostile, Script};
use insta::assert_snapshot;
use serde_json::{Value, json};

use super::run::desk_with;
use crate::common::{Desk, Transcript};

/// A desk with a CLI and Node on its PATH.
fn furnished() -> (Desk, Hostile) {
    let (desk, hostile) = desk_with(Script::normal());
    let desk = desk.env("GEMINI_API_KEY", "");
    desk.program("node", "#!/bin/sh\necho v20.0.0\n");
    desk.program("tmux", "#!/bin/sh\necho tmux 3.3a\n");
    (desk, hostile)
}

/// Without what is said of the whole machine: other tests leave processes there for a moment.
fn of_this_desk(seen: &Transcript) -> String {
    let seen = seen.to_string();
    let of_machine = ["leftovers", "--fix", "other runs", "end them yourself"];
    let lines: Vec<&str> =
        seen.lines().filter(|line| !of_machine.iter().any(|word| line.contains(word))).collect();
    lines.join("\n")
}

/// State and cure of one finding.
fn finding(findings: &Value, what: &str) -> (String, Option<String>) {
    let found = findings.as_array().unwrap().iter().find(|finding| finding["what"] == what);
    let found = found.unwrap_or_else(|| panic!("{what} is not in {findings:#}"));
    let text = |name: &str| found[name].as_str().map(str::to_owned);
    (text("state").unwrap(), text("cure"))
}

#[test]
fn an_empty_machine_is_told_what_is_missing_and_how_to_get_it() {
    assert_snapshot!(of_this_desk(&Desk::new().alhena(&["doctor", "--gemini", "/nowhere/gemini"])), @r#"
    BAD  Gemini CLI      Gemini CLI was not found
                           /nowhere/gemini does not exist
                         → Give --gemini the path of a Gemini CLI that can be started, or leave it out to have one looked for.
    BAD  Node            not on PATH
                         → Install Node 20 or newer, with npm, and put it first on PATH.
    ok   settings        none in [DESK]/home/.gemini
    BAD  authentication  no sign-in is configured
                         → Set GEMINI_API_KEY, or run Gemini CLI once and sign in.
    note trust           [DESK]/work is not trusted: headless runs end with exit 55
                         → Run with --trust, or --trust=settings to load the folder's own settings too.
    ok   config          no defaults of your own
    ok   keeper          [ALHENA]
    ok   kernel          allows all that it takes to leave nothing behind
    note tmux            not on PATH
                         → Only interactive agents need it; install tmux 3.2 or newer.
    ok   own installs    0 of Gemini CLI
    [exit 1]
    "#);
}

#[test]
fn a_good_machine_is_good() {
    let (desk, _hostile) = furnished();
    let desk = desk.env("GEMINI_API_KEY", "none").env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    assert_snapshot!(of_this_desk(&desk.alhena(&["doctor"])), @r#"
    ok   Gemini CLI      [DESK]/bin/gemini
    ok   version         0.61.0
    ok   Node            [DESK]/bin/node
    ok   settings        none in [DESK]/home/.gemini
    ok   authentication  gemini-api-key
    ok   trust           [DESK]/work is trusted
    ok   config          no defaults of your own
    ok   keeper          [ALHENA]
    ok   kernel          allows all that it takes to leave nothing behind
    ok   tmux            [DESK]/bin/tmux
    ok   own installs    0 of Gemini CLI
    [exit 0]
    "#);
}

#[test]
fn findings_are_data_with_json_and_follow_what_is_there() {
    let (desk, _hostile) = furnished();
    let asked = || desk.alhena(&["doctor", "--json"]);
    let found = |what: &str| finding(&asked().json(), what);
    assert_eq!(asked().code(), Some(1));
    let good = ("good".to_owned(), None);
    assert_eq!([found("Gemini CLI"), found("version")], [good.clone(), good.clone()]);
    for (what, expected, word) in
        [("authentication", "bad", "GEMINI_API_KEY"), ("trust", "doubtful", "--trust")]
    {
        let (state, cure) = found(what);
        assert_eq!((state.as_str(), cure.unwrap().contains(word)), (expected, true), "{what}");
    }
    fs::create_dir(desk.home().join(".gemini")).unwrap();
    let trusted = json!({desk.work().to_str().unwrap(): "TRUST_FOLDER"}).to_string();
    fs::write(desk.home().join(".gemini/trustedFolders.json"), trusted).unwrap();
    assert_eq!(found("trust"), good);
    fs::write(desk.home().join(".gemini/settings.json"), "{ not json").unwrap();
    let (state, cure) = found("settings");
    assert_eq!((asked().code(), state.as_str(), cure.is_some()), (Some(1), "bad", true));
}

#[test]
fn a_lock_is_noticed_while_the_next_start_would_wait_for_it() {
    let (desk, _hostile) = furnished();
    let lock = desk.home().join(".gemini/projects.json.lock");
    fs::create_dir_all(&lock).unwrap();
    let left = |when: std::time::SystemTime| {
        fs::File::open(&lock).unwrap().set_modified(when).unwrap();
        desk.alhena(&["doctor", "--json"]).json()
    };
    let hour = std::time::Duration::from_secs(3600);
    // In the future, so that a slow machine does not make it old.
    let (state, cure) = finding(&left(std::time::SystemTime::now() + hour), "lock");
    assert_eq!((state.as_str(), cure.is_some()), ("doubtful", true));
    let findings = left(std::time::SystemTime::now() - hour);
    assert!(findings.as_array().unwrap().iter().all(|finding| finding["what"] != "lock"), "{findings:#}");
}

#[test]
fn versions_that_are_too_old_or_too_new_are_noticed() {
    for (version, state) in
        [("0.9.0", "bad"), ("0.20.0", "doubtful"), ("0.61.0", "good"), ("99.0.0", "doubtful")]
    {
        let hostile = Hostile::new(Script::normal()).unwrap().version(version);
        let mut desk = Desk::new();
        for (name, value) in hostile.env() {
            desk = desk.env(&name, value);
        }
        let seen = desk.alhena(&["doctor", "--json", "--gemini", hostile.path().to_str().unwrap()]);
        assert_eq!(finding(&seen.json(), "version").0, state, "{version}");
    }
}

/// Containers that share a home see each other's locks and not each other's processes.
#[test]
fn doctor_ends_processes_of_runs_that_nobody_holds_and_no_others() {
    let desk = Desk::new();
    // The number is that of no process here, as with a run of another container.
    let mark = "4194999-abcdef";
    let run = desk.home().join("alhena/state/runs").join(mark);
    std::fs::create_dir_all(&run).unwrap();
    let lock = std::fs::File::create(run.join("lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let sleeper =
        |mark: &str| std::process::Command::new("sleep").arg("120").env("ALHENA_RUN", mark).spawn().unwrap();
    let mut held = sleeper(mark);
    let mut elsewhere = sleeper("4194998-ghijkl");
    desk.alhena(&["doctor", "--fix"]);
    assert_eq!(held.try_wait().unwrap(), None, "somebody holds its run");
    drop(lock);
    desk.alhena(&["doctor", "--fix"]);
    assert!(!held.wait().unwrap().success());
    let seen = desk.alhena(&["doctor", "--json"]).json();
    let other = seen.as_array().unwrap().iter().find(|finding| finding["what"] == "other runs").unwrap();
    assert!(other["detail"].as_str().unwrap().contains(&elsewhere.id().to_string()), "{other}");
    assert_eq!(elsewhere.try_wait().unwrap(), None, "its run is of another home");
    elsewhere.kill().unwrap();
    elsewhere.wait().unwrap();
}
