//! Launching, and each way in which it can fail (D-38 to D-41).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use alhena_scripted::{Scenario, Turn};
use alhena_terminal::screen::{Status, WaitingFor};
use alhena_terminal::{Force, TerminalErrorKind, Unready, Until};
use alhena_testbed::Trust;
use serde_json::json;

use super::place::{LONG, Place, answer};

#[test]
fn a_first_prompt_is_worked_on_and_the_names_of_terminals_are_unique() {
    let place = Place::new("prompt", Scenario::new().turn(Turn::say("Four.")));
    let mut wanted = place.wanted("What is 2+2? Say \"it's\" & $HOME -x");
    wanted.name = Some("sums".to_owned());
    let terminal = place.terminals.launch(wanted.clone()).unwrap();
    assert_eq!(terminal.wait(Until::Completed, LONG).unwrap().message.as_deref(), Some("Four."));
    assert_eq!(place.last_prompt(), "What is 2+2? Say \"it's\" & $HOME -x");
    assert_eq!(place.terminals.launch(wanted.clone()).unwrap_err().kind, TerminalErrorKind::Usage);
    wanted.name = Some("no good: name".to_owned());
    assert_eq!(place.terminals.launch(wanted).unwrap_err().kind, TerminalErrorKind::Usage);
    assert_eq!(place.terminals.list().unwrap().len(), 1);
    terminal.exit(LONG).unwrap();
    place.nothing_left();
}

#[test]
fn a_folder_that_nobody_trusts_is_told_apart_and_can_be_trusted_by_an_answer() {
    let place = Place::with("trust", Scenario::new().turn(Turn::say("Hi.")), Trust::Untrusted);
    let refused = place.terminals.launch(place.wanted("")).unwrap_err();
    assert_eq!(refused.kind, TerminalErrorKind::Untrusted);
    assert!(refused.hint.contains("`trust`"));
    place.nothing_left();

    let terminal = place.terminals.launch({
        let mut wanted = place.wanted("");
        wanted.unready = Unready::Keep;
        wanted
    });
    let terminal = terminal.unwrap();
    let reading = terminal.status().unwrap();
    assert_eq!(reading.status, Status::Waiting);
    assert_eq!(reading.waiting_for.unwrap().kind, WaitingFor::Trust);
    terminal.answer("1").unwrap();
    assert_eq!(terminal.wait(Until::Idle, LONG).unwrap().status, Status::Idle);
    assert_eq!(answer(&terminal, "Hello"), "Hi.");
    terminal.exit(LONG).unwrap();
    place.nothing_left();
    let trusted = fs::read_to_string(place.home.gemini().join("trustedFolders.json")).unwrap();
    assert!(trusted.contains("TRUST_FOLDER"), "{trusted}");
}

#[test]
fn a_missing_login_a_missing_cli_and_a_crash_are_told_apart() {
    let mut place = Place::new("failures", Scenario::new());
    let mut wanted = place.wanted("");
    wanted.options.gemini = Some(place.work().join("nowhere"));
    assert_eq!(place.terminals.launch(wanted).unwrap_err().kind, TerminalErrorKind::NotInstalled);

    let broken = place.work().join("gemini");
    let script =
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 0.61.0 && exit\necho 'Cannot find module x' >&2\nexit 3\n";
    fs::write(&broken, script).unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let mut wanted = place.wanted("");
    wanted.options.gemini = Some(broken);
    let crashed = place.terminals.launch(wanted).unwrap_err();
    assert_eq!(crashed.kind, TerminalErrorKind::Crashed, "{crashed}");
    assert!(crashed.message.contains("exit code 3"), "{crashed}");
    assert!(crashed.screen.unwrap().contains("Cannot find module x"));

    // A key alone does not choose how to sign in; whoever has one need not be told to set it.
    place.home.write_settings(&json!({})).unwrap();
    let refused = place.terminals.launch(place.wanted("")).unwrap_err();
    assert_eq!(refused.kind, TerminalErrorKind::Auth, "{refused}");
    assert!(refused.hint.contains("GEMINI_API_KEY is set"), "{}", refused.hint);

    place.env.remove("GEMINI_API_KEY").remove("GOOGLE_GEMINI_BASE_URL");
    let refused = place.again().launch(place.wanted("")).unwrap_err();
    assert_eq!(refused.kind, TerminalErrorKind::Auth, "{refused}");
    assert_eq!(place.terminals.list().unwrap().len(), 0);
    place.nothing_left();
}

#[test]
fn a_launch_leaves_nothing_in_the_history_of_the_shell() {
    let mut place = Place::new("history", Scenario::new());
    place.env.set("SHELL", "/bin/bash");
    let terminal = place.again().launch(place.wanted("")).unwrap();
    let pane = place.pane_of(&terminal);
    let shell = place.tmux(&["display-message", "-p", "-t", &pane, "#{pane_pid}"]);
    // Two ^D would do too, but only where the CLI takes them for two within a second.
    let _gone = terminal.command("/quit", Force::OnlyWhenReady);
    let command = || place.tmux(&["display-message", "-p", "-t", &pane, "#{pane_current_command}"]);
    assert!(alhena_testbed::Deadline::after(LONG).wait_until(|| command().trim() == "bash"));
    // A person goes on in the pane, and leaves.
    for line in ["echo mine", "exit"] {
        place.tmux(&["send-keys", "-t", &pane, "-l", line]);
        place.tmux(&["send-keys", "-t", &pane, "Enter"]);
    }
    let shell: u32 = shell.trim().parse().unwrap();
    assert!(alhena_testbed::Deadline::after(LONG).wait_until(|| !alhena_testbed::processes::alive(shell)));
    let history = fs::read_to_string(place.home.path().join(".bash_history")).unwrap();
    assert_eq!(history, "echo mine\nexit\n");
}
