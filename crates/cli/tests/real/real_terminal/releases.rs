//! Releases that people still have: a launch, a turn, its status, its answer, an exit.

use alhena_agent::Trust as Trusting;
use alhena_agent::home::McpServer;
use alhena_scripted::{Scenario, Turn};
use alhena_terminal::screen::Status;
use alhena_terminal::{How, TerminalErrorKind, Until};
use alhena_testbed::{RealCli, Trust};

use super::place::{LONG, Place, answer};

fn a_life_on(version: &str) {
    let place = Place::new(version, Scenario::new().turn(Turn::say("Well.").always()));
    let mut wanted = place.wanted("");
    wanted.options.gemini = Some(RealCli::get(version).unwrap().bin);
    wanted.timeout = LONG * 2;
    let started = place.work().join("started.txt");
    let script = format!("sleep 7; touch {}", started.display());
    wanted.mcp_servers.push(McpServer::process("slow", "sh", ["-c", &script]));
    let terminal = place.terminals.launch(wanted).unwrap();
    assert!(started.exists(), "ready before its server");
    assert_eq!(terminal.record().unwrap().gemini_version, version);
    // 0.30 shows what its server ended with as an error.
    assert!(Until::Idle.is_met(terminal.status().unwrap().status));
    assert_eq!(answer(&terminal, "Be well"), "Well.");
    let reading = terminal.status().unwrap();
    assert_eq!(reading.status, Status::Completed);
    assert_eq!(reading.turn.unwrap().ended, Some(How::Answered));
    // A message is text there, too.
    let path = if version == "0.30.1" { "\u{2060} /etc/hosts" } else { "/etc/hosts" };
    for (text, arrives) in [("/quit @x", "\u{2060} /quit \\@x"), ("/etc/hosts", path)] {
        assert_eq!(answer(&terminal, text), "Well.");
        assert_eq!(place.last_prompt(), arrives);
    }
    let exit = terminal.exit(LONG).unwrap();
    assert!(exit.gracefully, "{exit:?}");
    place.nothing_left();
}

#[test]
fn a_whole_life_on_0_30_1() {
    // A spinner about the login passes by at its start.
    a_life_on("0.30.1");
}

#[test]
fn a_whole_life_on_0_38_2() {
    a_life_on("0.38.2");
}

#[test]
fn a_whole_life_on_0_45_2() {
    a_life_on("0.45.2");
}

#[test]
fn a_release_that_cannot_be_told_to_trust_says_what_to_do_instead() {
    let place = Place::with("old trust", Scenario::new(), Trust::Untrusted);
    let mut wanted = place.wanted("");
    wanted.options.gemini = Some(RealCli::get("0.38.2").unwrap().bin);
    wanted.options.trust = Some(Trusting::Run);
    wanted.timeout = LONG * 2;
    match place.terminals.launch(wanted) {
        // It runs there without asking.
        Ok(terminal) => assert_eq!(terminal.status().unwrap().status, Status::Idle),
        Err(error) => {
            assert_eq!(error.kind, TerminalErrorKind::Untrusted);
            assert!(
                error.message.contains("0.38.2") && !error.hint.contains("Launch with `trust`"),
                "{error:?}"
            );
        }
    }
}
