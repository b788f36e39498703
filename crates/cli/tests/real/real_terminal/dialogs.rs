//! Approvals: accepted and refused.

use alhena_scripted::{Scenario, Turn, When};
use alhena_terminal::screen::{Status, WaitingFor};
use alhena_terminal::{Force, How, Reply, TerminalErrorKind, Until};
use serde_json::json;

use super::place::{LONG, Place, ask, type_in};

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
    assert_eq!(terminal.send("Not now", Force::OnlyWhenReady).unwrap_err().kind, TerminalErrorKind::NotReady);
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

fn asks(question: serde_json::Value) -> Turn {
    Turn::new().call("ask_user", json!({"questions": [question]}))
}

/// What the model was told last by a tool.
fn told(place: &Place) -> String {
    let requests = place.api.requests("api");
    let answers = requests.iter().rev().flat_map(|request| request.responses().collect::<Vec<_>>());
    answers.map(|(_, answer)| answer.to_string()).next().unwrap_or_default()
}

#[test]
fn questions_take_one_option_several_options_and_texts_of_ones_own() {
    let colours = json!([
        {"label": "Red", "description": "As blood"},
        {"label": "Green", "description": "As grass"},
        {"label": "Blue", "description": "As the sky"},
    ]);
    let choice = |several: bool| json!({"question": "Which colour?", "header": "Colour", "type": "choice", "options": colours, "multiSelect": several});
    let text = json!({"question": "What is it called?", "header": "Name", "type": "text"});
    let scenario = Scenario::new()
        .turn(asks(choice(false)).when(When::new().prompt("one of them")))
        .turn(asks(choice(false)).when(When::new().prompt("own words")))
        .turn(asks(choice(true)).when(When::new().prompt("two of them")))
        .turn(asks(choice(true)).when(When::new().prompt("two and words")))
        .turn(asks(text).when(When::new().prompt("a name")))
        .turn(Turn::say("Noted.").always());
    let place = Place::new("questions", scenario);
    let terminal = place.launch();
    let reply = |prompt: &str, choose: &[&str], text: Option<&str>| {
        let reading = ask(&terminal, prompt);
        assert_eq!(reading.status, Status::Waiting, "{reading:?}\n{}", place.capture(&terminal));
        // There are three options, one for all of them where several may be chosen, and one for other words.
        for wrong in ["5", "9"].iter().filter(|_| !choose.is_empty()) {
            let error = terminal.reply(&Reply { choose: vec![(*wrong).to_owned()], text: None }).unwrap_err();
            assert_eq!(
                error.kind,
                TerminalErrorKind::Usage,
                "{wrong}: {error}\n{}",
                place.capture(&terminal)
            );
        }
        let choose = choose.iter().map(|one| (*one).to_owned()).collect();
        let replied = terminal.reply(&Reply { choose, text: text.map(str::to_owned) });
        replied.unwrap_or_else(|error| panic!("{prompt}: {error}\n{}", place.capture(&terminal)));
        let reading = terminal.wait(Until::Settled, LONG).unwrap();
        assert_eq!(reading.status, Status::Completed, "{reading:?}\n{}", place.capture(&terminal));
        told(&place)
    };
    let said = |answer: &str| format!("\\\"0\\\":\\\"{answer}\\\"");
    for (prompt, choose, text, answer) in [
        ("one of them", &["2"][..], None, "Green"),
        ("own words", &[], Some("7"), "7"),
        ("two of them", &["1", "blue"], None, "Red, Blue"),
        ("two and words", &["1", "3"], Some("and a bit of /grey"), "Red, Blue, and a bit of /grey"),
        ("a name", &[], Some("Rover, 2"), "Rover, 2"),
    ] {
        let told = reply(prompt, choose, text);
        assert!(told.contains(&said(answer)), "{prompt}: {told}");
    }
}

/// After several questions 0.61.0 shows what was answered, to be submitted.
#[test]
fn answers_to_several_questions_are_shown_once_more_and_submitted_as_they_are() {
    let options = json!([{"label": "Small", "description": "s"}, {"label": "Large", "description": "l"}]);
    let size = json!({"question": "Which size?", "header": "Size", "type": "choice", "options": options});
    let name = json!({"question": "What is it called?", "header": "Name", "type": "text"});
    let both = Turn::new().call("ask_user", json!({"questions": [size, name]}));
    let scenario = Scenario::new()
        .turn(Turn::say("Noted.").when(When::new().response_of("ask_user")))
        .turn(both.when(When::new().prompt("both")).always());
    let place = Place::new("review", scenario);
    let terminal = place.launch();
    let name = terminal.name();
    let answer = |text: &str| type_in(&place, &["answer", name, text]);
    for way in ["submit", "interrupt"] {
        assert_eq!(ask(&terminal, "both").status, Status::Waiting);
        let (code, out, err) = answer("2");
        assert_eq!((code, out.contains("What is it called?")), (0, true), "{out}{err}");
        let (code, out, err) = answer("Rover");
        assert_eq!((code, out.starts_with("waiting: Review your answers")), (0, true), "{out}{err}");
        let (code, out, err) = type_in(&place, &["wait", name]);
        assert_eq!(
            (code, err.starts_with("Submit them with `alhena terminal --server ")),
            (10, true),
            "{out}{err}"
        );
        let (code, _, err) = answer("3");
        assert_eq!(code, 2, "{err}");
        if way == "interrupt" {
            assert_eq!(type_in(&place, &["interrupt", name]).0, 0);
            continue;
        }
        let (code, out, err) = answer("submit");
        assert_eq!(code, 0, "{out}{err}");
        let reading = terminal.wait(Until::Settled, LONG).unwrap();
        assert_eq!(reading.status, Status::Completed, "{reading:?}\n{}", place.capture(&terminal));
        let told = told(&place);
        assert!(told.contains("Large") && told.contains("Rover"), "{told}");
    }
}

/// The CLI then writes its whole history once more, as if it had just been said.
#[test]
fn a_turn_whose_call_was_refused_has_no_answer_and_leaves_the_others_theirs() {
    let call = Turn::new().call("run_shell_command", json!({"command": "touch refused.txt"}));
    let scenario = Scenario::new()
        .turn(call.when(When::new().prompt("do it")))
        .turn(Turn::say("First answer.").when(When::new().prompt("one")))
        .turn(Turn::say("Second answer.").always());
    let place = Place::new("refused", scenario);
    let terminal = place.launch();
    for prompt in ["one", "two"] {
        assert_eq!(ask(&terminal, prompt).status, Status::Completed);
    }
    assert_eq!(ask(&terminal, "do it").status, Status::Waiting);
    terminal.answer("No").unwrap_or_else(|error| panic!("{error}\n{}", place.capture(&terminal)));
    terminal.wait(Until::Settled, LONG).unwrap();
    let answer = terminal.last_answer();
    assert!(answer.as_ref().is_err_and(|error| error.kind == TerminalErrorKind::NoAnswer), "{answer:?}");
    let ends: Vec<_> =
        terminal.turn_records().into_iter().map(|turn| turn.ended.map(|end| end.how)).collect();
    assert_eq!(ends, [Some(How::Answered), Some(How::Answered), Some(How::Cancelled)]);
}

#[test]
fn a_word_of_feedback_goes_with_an_approval_and_with_a_refusal() {
    let call =
        |name: &str| Turn::new().call("run_shell_command", json!({"command": format!("touch {name}")}));
    let scenario = Scenario::new()
        .turn(call("refused.txt").when(When::new().prompt("first")))
        .turn(call("allowed.txt").when(When::new().prompt("second")))
        .turn(Turn::say("Done.").when(When::new().response_of("run_shell_command").prompt("second")))
        .turn(Turn::say("Well.").always());
    let place = Place::new("feedback", scenario);
    let terminal = place.launch();
    let reply = |choose: &str, text: &str| {
        let reply = Reply { choose: vec![choose.to_owned()], text: Some(text.to_owned()) };
        terminal.reply(&reply).unwrap_or_else(|error| panic!("{error}\n{}", place.capture(&terminal)));
        terminal.wait(Until::Completed, LONG).unwrap();
    };
    assert_eq!(ask(&terminal, "first").status, Status::Waiting);
    // The CLI sends it together with the news of the refusal.
    let heard = |text: &str| {
        let asked =
            || place.api.requests("api").last().is_some_and(|request| request.texts().any(|one| one == text));
        assert!(alhena_testbed::Deadline::after(LONG).wait_until(asked), "{}", place.capture(&terminal));
    };
    reply("No", "Use another name");
    heard("Use another name");
    assert!(!place.work().join("refused.txt").exists());
    assert_eq!(ask(&terminal, "second").status, Status::Waiting);
    reply("1", "Thank you");
    heard("Thank you");
    assert!(place.work().join("allowed.txt").exists());
}
