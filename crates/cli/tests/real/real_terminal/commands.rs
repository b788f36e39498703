//! The commands, as people and scripts type them.

use alhena_scripted::{After, Scenario, Turn, When};
use alhena_testbed::Deadline;
use serde_json::json;

use super::place::{LONG, Place, json_of, type_in};

#[test]
fn a_whole_life_from_the_command_line() {
    let scenario = Scenario::new()
        .turn(Turn::say("Hello."))
        .turn(Turn::new().text("Working").hang())
        .turn(Turn::status(400))
        .after(After::Repeat);
    let place = Place::new("commands", scenario);
    let gemini = place.gemini.to_str().unwrap().to_owned();
    assert_eq!(type_in(&place, &["list"]), (0, "There are no terminals.\n".to_owned(), String::new()));
    let (code, error) = json_of(&place, &["status", "nobody"]);
    assert_eq!((code, &error["error"]["kind"]), (2, &json!("not_found")));

    let launch = ["launch", "--name", "one", "--gemini", &gemini, "--model", "gemini-2.5-flash"];
    assert_eq!(type_in(&place, &launch), (0, "one\n".to_owned(), String::new()));
    assert_eq!(type_in(&place, &["status", "one"]).1, "idle\n");
    let (code, listed) = json_of(&place, &["list"]);
    assert_eq!((code, &listed[0]["name"], &listed[0]["status"]), (0, &json!("one"), &json!("idle")));

    let (code, _, err) = type_in(&place, &["read", "one"]);
    assert_eq!((code, err.lines().next()), (1, Some("error: one has had no turn: there is no answer")));
    assert_eq!(type_in(&place, &["send", "one", "Hi"]), (0, String::new(), String::new()));
    assert_eq!(type_in(&place, &["wait", "one", "--until", "completed"]).1, "completed\n");
    assert_eq!(type_in(&place, &["read", "one"]).1, "Hello.\n");
    assert_eq!(type_in(&place, &["read", "one", "--all"]).1, "> Hi\n\nHello.\n");
    assert_eq!(
        json_of(&place, &["read", "one"]).1,
        json!({"text": "Hello.", "source": "session", "turn": 1})
    );
    assert!(type_in(&place, &["read", "one", "--screen"]).1.contains("✦ Hello."));

    type_in(&place, &["send", "one", "Go on"]);
    assert_eq!(type_in(&place, &["status", "one"]).1, "processing\n");
    let (code, _, err) = type_in(&place, &["wait", "one", "--timeout", "300ms"]);
    assert_eq!((code, err.lines().next()), (124, Some("error: one was still processing after 0.3 s")));
    let (code, _, err) = type_in(&place, &["send", "one", "More"]);
    assert_eq!((code, err.lines().next()), (1, Some("error: one is not ready: it is processing")));
    assert_eq!(type_in(&place, &["interrupt", "one"]).0, 0);

    type_in(&place, &["send", "one", "Fail"]);
    let (code, failed) = json_of(&place, &["wait", "one"]);
    assert_eq!((code, &failed["status"]), (1, &json!("error")));
    let (code, exited) = json_of(&place, &["exit", "one"]);
    assert_eq!((code, &exited["gracefully"], &exited["code"]), (0, &json!(true), &json!(0)));
    assert_eq!(type_in(&place, &["read", "one"]).0, 2);
    place.nothing_left();
}

#[test]
fn a_command_that_the_cli_does_not_have_never_reaches_the_model() {
    let scenario = Scenario::new().turn(Turn::say("Hi there.").when(When::new().prompt("Greet everybody.")));
    let place = Place::new("known commands", scenario.after(After::Error));
    let commands = place.home.gemini().join("commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("greet.toml"), "prompt = \"Greet everybody.\"\n").unwrap();
    let agent = place.launch();
    let name = agent.name();
    for unknown in ["/nosuch", "/gre", "/nosuch stats"] {
        let (code, _, err) = type_in(&place, &["send", name, "--command", unknown]);
        let first = unknown.split(' ').next().unwrap();
        assert!(err.starts_with(&format!("error: Gemini CLI 0.61.0 has no command {first} here")), "{err}");
        assert_eq!((code, err.contains("Did you mean /greet?")), (2, unknown == "/gre"), "{err}");
    }
    assert_eq!(place.api.requests("api").len(), 0);
    for known in ["/stats model", "/usage", "/greet"] {
        assert_eq!(type_in(&place, &["send", name, "--command", known]).0, 0, "{}", place.capture(&agent));
    }
    let answered = || place.capture(&agent).contains("✦ Hi there.");
    assert!(Deadline::after(LONG).wait_until(answered), "{}", place.capture(&agent));
}
