//! A turn in one command, and waiting for whoever is first.

use std::fs::{self, File};
use std::process::Stdio;

use alhena_scripted::{After, Scenario, Turn, When};
use alhena_terminal::{Force, Until};
use alhena_testbed::Deadline;
use serde_json::{Value, json};

use super::person::paste;
use super::place::{LONG, Place, command, json_of, type_in};

#[test]
fn ask_prints_the_answer_of_its_own_turn_and_its_exit_code_says_how_it_ended() {
    let shell = |command: &str| Turn::new().call("run_shell_command", json!({ "command": command }));
    let asked = |text: &str| When::new().prompt(text);
    let scenario = Scenario::new()
        .turn(Turn::say("Done.").when(When::new().response_of("run_shell_command")))
        .turn(Turn::say("Forty-two.").when(asked("Good")))
        .turn(Turn::new().text("Half of").finish("MAX_TOKENS").when(asked("Cut")))
        .turn(Turn::new().finish("SAFETY").when(asked("Blocked")).always())
        .turn(Turn::status(400).when(asked("Fail")))
        .turn(shell("touch asked.txt").when(asked("Touch")))
        .turn(Turn::new().text("Thinking").hang().when(asked("Hang")))
        .after(After::Error);
    let place = Place::new("ask", scenario);
    let gemini = place.gemini.to_str().unwrap().to_owned();
    let launch = ["launch", "--name", "one", "--gemini", &gemini, "--model", "gemini-2.5-flash"];
    assert_eq!(type_in(&place, &launch).0, 0);

    assert_eq!(type_in(&place, &["ask", "one", "Good"]), (0, "Forty-two.\n".to_owned(), String::new()));
    let (code, _, err) = type_in(&place, &["answer", "one", "1"]);
    assert_eq!((code, err.lines().next()), (1, Some("error: one asks nothing: it is completed")));
    assert!(err.contains(" send one TEXT` sends it a message."), "{err}");
    assert_eq!(
        json_of(&place, &["ask", "one", "Cut"]),
        (
            1,
            json!({"turn": 2, "status": "completed", "ended": "cut_off", "text": "Half of", "source": "session",
                   "warning": "Response truncated due to token limits."})
        )
    );
    // Never the answer of the turn before.
    let (code, out, err) = type_in(&place, &["ask", "one", "Blocked"]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.starts_with("warning: "), "{err}");
    let (code, out, err) = type_in(&place, &["ask", "one", "Fail"]);
    assert_eq!((code, out.as_str(), err.contains("400")), (1, "", true), "{err}");

    let (code, out, err) = type_in(&place, &["ask", "one", "Touch it"]);
    assert_eq!((code, out.as_str()), (10, ""), "{err}");
    assert!(err.contains("1. ") && err.contains(&place.server), "{err}");
    let told = err;
    let (code, waits) = json_of(&place, &["wait", "one"]);
    assert_eq!((code, &waits["status"], &waits["turn"]["id"]), (10, &json!("waiting"), &json!(5)));
    assert_eq!(type_in(&place, &["wait", "one", "--until", "waiting"]).0, 0);
    // What it says to type works as it is printed.
    assert_eq!(paste(&place, &told).0, 0, "{told}");
    assert_eq!(type_in(&place, &["wait", "one"]), (0, "completed\n".to_owned(), String::new()));
    assert_eq!(type_in(&place, &["read", "one"]).1, "Done.\n");
    assert_eq!(type_in(&place, &["read", "one", "--turn", "1"]).1, "Forty-two.\n");
    assert_eq!(type_in(&place, &["read", "one", "--turn", "77"]).0, 2);

    // What was changed in it is said, whatever comes of it.
    let (code, _, err) = type_in(&place, &["ask", "one", "/Hang", "--timeout", "5s"]);
    assert_eq!(code, 124, "{err}");
    assert!(err.starts_with("An invisible mark stands before it"), "{err}");
    assert!(err.contains("had not finished turn 6 after 5.0 s"), "{err}");
    let (code, told) = json_of(&place, &["ask", "one", "/Hang on", "--force", "--timeout", "5s"]);
    let notice = told["error"]["notices"][0].as_str().unwrap_or_default();
    assert!(code == 124 && notice.starts_with("An invisible mark stands before it"), "{code}: {told}");
    let (code, _, err) = type_in(&place, &["answer", "one", "1"]);
    assert_eq!((code, err.lines().next()), (1, Some("error: one asks nothing: it is processing")));
    assert!(err.contains(" wait one` ") && !err.contains(" send "), "{err}");
    assert_eq!(type_in(&place, &["ask", "one", "--file", "nothing.txt"]).0, 2);
}

#[test]
fn wait_any_comes_back_with_the_first_that_is_done_and_says_which() {
    let scenario = Scenario::new()
        .turn(Turn::new().text("Slow").hang().when(When::new().prompt("Slow")))
        .turn(Turn::new().text("Quick ").gate("go").text("answer.").when(When::new().prompt("Quick")))
        .after(After::Error);
    let place = Place::new("wait any", scenario);
    let named = |name: &str| alhena_terminal::Launch { name: Some(name.to_owned()), ..place.wanted("") };
    let [slow, quick] = ["slow", "quick"].map(|name| place.terminals.launch(named(name)).unwrap());
    let (code, _, err) = type_in(&place, &["wait", "--any"]);
    assert_eq!((code, err.lines().next()), (1, Some("error: there is no agent to wait for")));
    assert_eq!(type_in(&place, &["wait", "slow", "quick"]).0, 2);
    slow.send("Slow", Force::OnlyWhenReady).unwrap();
    quick.send("Quick", Force::OnlyWhenReady).unwrap();
    let (code, _, err) = type_in(&place, &["wait", "--any", "--timeout", "1s"]);
    assert_eq!(code, 124, "{err}");
    assert!(
        err.starts_with("Waiting for slow, quick.\nerror: none of slow, quick was done after 1.0 s\n"),
        "{err}"
    );
    std::thread::scope(|scope| {
        let said = place.home.path().join("any.txt");
        let mut any = command(&place, &["wait", "--any", "--json"]);
        any.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&said).unwrap());
        let any = any.spawn().unwrap();
        let named = scope.spawn(|| type_in(&place, &["wait", "--any", "slow", "quick"]));
        // Not before it has chosen: one that is done already is not waited for.
        let chosen = || fs::read_to_string(&said).unwrap() == "Waiting for slow, quick.\n";
        assert!(Deadline::after(LONG).wait_until(chosen), "{}", fs::read_to_string(&said).unwrap());
        place.api.release("api", "go");
        let done = any.wait_with_output().unwrap();
        let first: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(
            (done.status.code(), &first["name"], &first["status"]),
            (Some(0), &json!("quick"), &json!("completed")),
            "{first}"
        );
        assert_eq!(named.join().unwrap(), (0, "quick: completed\n".to_owned(), String::new()));
    });
    slow.kill().unwrap();
    quick.wait(Until::Completed, LONG).unwrap();
}
