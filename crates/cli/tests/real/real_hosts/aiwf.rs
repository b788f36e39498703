//! aiwf's provider, in Python.

use alhena_scripted::{Scenario, Turn};
use serde_json::json;

use super::place::Place;

fn scenarios() -> Vec<(&'static str, Scenario)> {
    let files = Scenario::new()
        .turn(
            Turn::new()
                .text("Writing. ")
                .call("read_file", json!({"file_path": "a.txt"}))
                .call("write_file", json!({"file_path": "b.txt", "content": "made\n"}))
                .call("replace", json!({"file_path": "a.txt", "instruction": "i", "old_string": "old", "new_string": "new"}))
                .call("replace", json!({"file_path": "missing.txt", "instruction": "i", "old_string": "x", "new_string": "y"})),
        )
        .turn(Turn::say("Done."));
    let refused = json!({"code": 400, "message": "Request contains an invalid argument.", "status": "INVALID_ARGUMENT"});
    let unasked = Turn::new().call("write_file", json!({"file_path": "c.txt", "content": "never\n"}));
    vec![
        ("files", files),
        ("prompt_file", Scenario::new().turn(Turn::say("It.").times(2))),
        ("value", Scenario::new().turn(Turn::say("It is {\"n\": 7}").always())),
        ("blocked", Scenario::new().turn(Turn::new().finish("SAFETY").always())),
        ("refused", Scenario::new().turn(Turn::error(400, refused).always())),
        ("hang", Scenario::new().turn(Turn::new().text("Thinking").hang())),
        ("unasked", Scenario::new().turn(unasked).turn(Turn::say("I may not."))),
    ]
}

#[test]
fn the_python_provider_keeps_its_contract() {
    let place = Place::new("aiwf", scenarios());
    let done = place.run(&mut place.python("hosts/aiwf", &["-m", "unittest", "discover", "-s", "tests"]));
    let said = done.stderr_text();
    assert!(!said.contains("skipped"), "{said}");
    // what was to be asked arrived, although it starts with a dash.
    let files = place.requests("files");
    assert_eq!(files[0].prompt(), Some("- write\n- the files"));
    //
    let asked: Vec<Option<String>> =
        place.requests("prompt_file").iter().map(|request| request.prompt().map(str::to_owned)).collect();
    assert!(asked.contains(&Some("Process the prompt in prompt.md".to_owned())), "{asked:?}");
    assert!(!asked.iter().flatten().any(|prompt| prompt.contains("never sent")), "{asked:?}");
    place.assert_nothing_left();
}

#[test]
fn the_python_example_runs() {
    let answer = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "haiku.txt", "content": "rivers\n"})))
        .turn(Turn::say("Here it is."));
    let place = Place::new("aiwf-example", [("example", answer)]);
    let example = alhena_testbed::cache::workspace().join("hosts/aiwf/example.py");
    let mut command = place.python("hosts/aiwf", &[&example.to_string_lossy()]);
    let done = place.run(command.current_dir(place.home.workspace()));
    assert_eq!(done.stdout_text(), "Here it is.\nwrote haiku.txt\n");
}
