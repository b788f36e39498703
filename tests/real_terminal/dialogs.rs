//! Approvals: accepted and refused.

use alhena::scripted::{Scenario, Turn, When};
use alhena::terminal::screen::{Status, WaitingFor};
use alhena::terminal::{Force, TerminalErrorKind, Until};
use serde_json::json;

use crate::place::{LONG, Place, ask};

#[test]
fn an_approval_is_shown_with_its_options_and_can_be_accepted_and_refused() {
    let call = |name: &str| {
        Turn::new().text("Let me.").call("run_shell_command", json!({"command": format!("touch {name}")}))
    };
    let scenario = Scenario::new()
        .turn(call("accepted.txt").when(When::new().prompt("first")))
        .turn(Turn::say("Done.").when(When::new().response_of("run_shell_command")))
        .turn(call("refused.txt").when(When::new().prompt("second")))
        .turn(Turn::say("Never mind.").always());
    let place = Place::new("approval", scenario);
    let terminal = place.launch();
    let reading = ask(&terminal, "first");
    assert_eq!(reading.status, Status::Waiting);
    let waiting = reading.waiting_for.unwrap();
    assert_eq!(waiting.kind, WaitingFor::ToolApproval);
    assert!(waiting.options.len() >= 3, "{waiting:?}");
    assert!(waiting.options[0].selected);
    assert_eq!(terminal.send("Not now", Force::No).unwrap_err().kind, TerminalErrorKind::NotReady);
    assert_eq!(terminal.answer("7").unwrap_err().kind, TerminalErrorKind::Usage);
    terminal.answer("1").unwrap();
    let reading = terminal.wait(Until::Completed, LONG).unwrap();
    assert_eq!(reading.status, Status::Completed);
    assert!(place.work().join("accepted.txt").exists());
    assert_eq!(terminal.last_answer().unwrap().text, "Let me.\n\nDone.");

    assert_eq!(ask(&terminal, "second").status, Status::Waiting);
    let options = terminal.status().unwrap().waiting_for.unwrap().options;
    let no = options.iter().find(|option| option.label.starts_with("No")).unwrap().number;
    terminal.answer(&no.to_string()).unwrap();
    terminal.wait(Until::Idle, LONG).unwrap();
    assert!(!place.work().join("refused.txt").exists());
    assert_eq!(terminal.answer("1").unwrap_err().kind, TerminalErrorKind::NotReady);
    terminal.exit(LONG).unwrap();
    place.nothing_left();
}
