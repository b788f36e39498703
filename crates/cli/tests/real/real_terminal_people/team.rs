//! A supervisor in one pane and workers in others.

use std::time::Duration;

use alhena_agent::home::McpServer;
use alhena_agent::{Approval, Trust};
use alhena_scripted::{After, Scenario, Turn, When};
use alhena_terminal::screen::Status;
use alhena_terminal::{Force, Launch, Terminal, Until};
use alhena_testbed::Deadline;
use serde_json::json;

use super::place::{ALHENA, LONG, Place, ask};
use crate::lab::Build;

fn boss(place: &Place) -> Terminal {
    let tmux = place.tmux.to_string_lossy();
    let args = ["terminal", "--server", &place.server, "--tmux", &tmux, "serve-mcp", "--trust"];
    let mut request = place.wanted("").request.approval(Approval::Yolo).trust(Trust::Run);
    request.mcp_servers.push(McpServer::process("alhena", ALHENA, args));
    let wanted = Launch { name: Some("boss".to_owned()), request, ..place.wanted("") };
    place.terminals.launch(wanted).unwrap()
}

/// What tools answered, for people to see.
fn tools_said(place: &Place) -> String {
    let requests = place.api.requests("api");
    let said = requests.iter().flat_map(|request| request.responses());
    said.map(|(name, answer)| format!("{name}: {answer}\n")).collect()
}

#[test]
fn a_supervisor_hands_work_to_two_others_and_gets_their_answers() {
    // D-45
    let handoff = "mcp_alhena_handoff";
    let both = When::new().response_of(handoff).body("Answer two.");
    let scenario = Scenario::new()
        .turn(Turn::say("One says: Answer one. Two says: Answer two.").when(both))
        .turn(
            Turn::new()
                .call(handoff, json!({"message": "Task one", "name": "one"}))
                .call(handoff, json!({"message": "Task two", "name": "two"}))
                .when(When::new().prompt("Ask both").offers(handoff)),
        )
        .turn(Turn::say("Answer one.").when(When::new().prompt("Task one")))
        .turn(Turn::say("Answer two.").when(When::new().prompt("Task two")))
        .after(After::Error);
    let place = Place::new("handoff", scenario);
    let boss = boss(&place);
    ask(&boss, "Ask both");
    let answer = boss.last_answer().unwrap_or_else(|error| panic!("{error}\n{}", tools_said(&place)));
    assert_eq!(answer.text, "One says: Answer one. Two says: Answer two.");
    let requests = place.api.requests("api");
    let told = requests.iter().rev().find(|request| request.responses().count() > 0).unwrap();
    let answers: Vec<String> = told.responses().map(|(name, answer)| format!("{name} {answer}")).collect();
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers[0].contains("Answer one.") && answers[1].contains("Answer two."), "{answers:?}");
    // The workers have ended, and the user's settings never knew of anything.
    let names: Vec<String> =
        place.terminals.list().unwrap().iter().map(|one| one.name().to_owned()).collect();
    assert_eq!(names, ["boss"]);
    boss.exit(LONG).unwrap();
    place.nothing_left();
}

#[test]
fn a_worker_reports_to_its_supervisor_when_that_is_free() {
    // D-33, D-45
    let (assign, send, list) = ("mcp_alhena_assign", "mcp_alhena_send_message", "mcp_alhena_list");
    let report = json!({"receiver": "boss", "message": "Three is done."});
    let scenario = Scenario::new()
        .turn(Turn::say("Assigned.").when(When::new().response_of(list).body("\\\"you\\\":true")))
        .turn(Turn::new().call(list, json!({})).when(When::new().response_of(assign)))
        .turn(Turn::say("Reported.").when(When::new().response_of(send)))
        .turn(
            Turn::new()
                .call(assign, json!({"message": "Task three", "name": "three"}))
                .when(When::new().prompt("Assign it").offers(assign)),
        )
        .turn(Turn::new().call(send, report).when(When::new().prompt("Task three").offers(send)))
        .turn(
            Turn::say("Thank you.").when(When::new().prompt("[Message from terminal three] Three is done.")),
        )
        .after(After::Error);
    let place = Place::new("assign", scenario);
    let boss = boss(&place);
    ask(&boss, "Assign it");
    let thanked = Deadline::after(Duration::from_secs(90))
        .wait_until(|| boss.last_answer().is_ok_and(|answer| answer.text == "Thank you."));
    assert!(thanked, "{}\n{}", tools_said(&place), place.capture(&boss));
    boss.wait(Until::Completed, LONG).unwrap();
    let worker = place.terminals.find("three").unwrap();
    assert_eq!(worker.waiting_letters() + boss.waiting_letters(), 0);
    worker.exit(LONG).unwrap();
    boss.exit(LONG).unwrap();
    place.nothing_left();
}

/// A supervisor that waits for the answer of a worker, which never comes.
fn waiting_for_slow(name: &str) -> (Place, Terminal) {
    let handoff = "mcp_alhena_handoff";
    let scenario = Scenario::new()
        .turn(
            Turn::new()
                .call(handoff, json!({"message": "Task slow", "name": "slow"}))
                .when(When::new().prompt("Ask one").offers(handoff)),
        )
        .turn(Turn::new().text("Thinking").hang().when(When::new().prompt("Task slow")))
        .after(After::Error);
    let place = Place::new(name, scenario);
    let boss = boss(&place);
    boss.send("Ask one", Force::OnlyWhenReady).unwrap();
    let works = Deadline::after(LONG).wait_until(|| {
        let slow = place.terminals.find("slow");
        slow.is_ok_and(|slow| slow.status_now().is_ok_and(|reading| reading.status == Status::Processing))
    });
    assert!(works, "{}", place.capture(&boss));
    (place, boss)
}

#[test]
fn workers_end_when_nobody_waits_for_their_answer_any_more() {
    let (place, boss) = waiting_for_slow("handoff-killed");
    boss.kill().unwrap();
    assert!(place.terminals.list().unwrap().is_empty());
    place.nothing_left();
}

#[test]
fn interrupting_a_supervisor_ends_the_handoff_that_it_waits_for() {
    let (place, boss) = waiting_for_slow("handoff-interrupted");
    boss.interrupt(LONG).unwrap();
    let gone = Deadline::after(LONG).wait_until(|| place.terminals.find("slow").is_err());
    assert!(gone, "{}", place.capture(&boss));
    boss.exit(LONG).unwrap();
    place.nothing_left();
}

#[test]
fn every_tool_of_the_server_gives_a_result_that_the_cli_takes() {
    let tool = |name: &str| format!("mcp_alhena_{name}");
    let scenario = Scenario::new()
        .turn(Turn::say("All called.").when(When::new().response_of(tool("send_message"))))
        // An answer that is JSON, and no object.
        .turn(Turn::say("[1, 2]").when(When::new().prompt("A task")).always())
        .turn(Turn::say("Got it.").when(When::new().prompt("[Message from terminal boss]")))
        .turn(
            Turn::new()
                .call(tool("assign"), json!({"message": "A task", "name": "worker"}))
                .when(When::new().prompt("Call all").offers(tool("assign"))),
        )
        .turn(
            Turn::new()
                .call(tool("list"), json!({}))
                .call(tool("status"), json!({"terminal": "boss"}))
                .call(tool("handoff"), json!({"message": "A task", "name": "other"}))
                .call(tool("send_message"), json!({"receiver": "worker", "message": "Well done."}))
                .when(When::new().response_of(tool("assign"))),
        )
        .after(After::Error);
    let place = Place::new("every tool", scenario);
    let boss = boss(&place);
    ask(&boss, "Call all");
    let requests = place.api.requests("api");
    let mut good: Vec<String> = Vec::new();
    for (name, answer) in requests.iter().flat_map(|request| request.responses()) {
        let text = answer.to_string();
        assert!(answer.get("error").is_none() && !text.contains("MCP error"), "{name}: {text}");
        good.push(name.to_owned());
    }
    good.sort();
    good.dedup();
    assert!(tools_said(&place).contains("[1, 2]"), "{}", tools_said(&place));
    assert_eq!(good, ["assign", "handoff", "list", "send_message", "status"].map(tool));
    place.terminals.find("worker").unwrap().exit(LONG).unwrap();
    boss.exit(LONG).unwrap();
    place.nothing_left();
}
