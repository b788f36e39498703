//! Runs from the page: started, watched, stopped, resumed.

use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use serde_json::json;

use super::place::Place;

fn writes_a_file() -> Scenario {
    Scenario::new()
        .turn(
            Turn::new()
                .thought("Where to write", "A new file is enough.")
                .text("I write **it** down.\n\n- one\n- two\n")
                .call("write_file", json!({"file_path": "haiku.txt", "content": "old pond\nfrog\n"})),
        )
        .turn(Turn::new().chunks("All of it is done.", 4, Duration::from_millis(20)))
}

#[test]
fn a_run_that_is_started_from_the_page_is_watched_until_it_ends() {
    let mut place = Place::new("start", writes_a_file());
    place.starts("Write a haiku", "auto-edit");
    place.ends("success");
    assert_eq!(std::fs::read_to_string(place.lab.workspace().join("haiku.txt")).unwrap(), "old pond\nfrog\n");
    place.waits("document.querySelector('.transcript .turn')");
    assert_eq!(place.texts(".prompt pre"), ["Write a haiku"]);
    let answers = place.texts(".answer");
    assert!(answers.iter().any(|answer| answer.contains("All of it is done.")), "{answers:?}");
    assert_eq!(place.texts(".answer strong"), ["it"]);
    assert_eq!(place.texts(".answer li"), ["one", "two"]);
    assert_eq!(place.texts(".thought > summary bdi"), ["Where to write"]);
    let folded = "!document.querySelector('.thought pre').checkVisibility()";
    assert_eq!(place.asks(folded), json!(true));
    assert_eq!(place.texts(".tool > summary b"), ["Write"]);
    assert_eq!(place.texts(".change .diff .added"), ["+old pond", "+frog"]);
    assert_eq!(place.texts(".files .path"), ["haiku.txt"]);
    // What is not told as live has no button to stop it; the way on is there.
    assert_eq!(place.asks("Boolean(document.querySelector('#stop'))"), json!(false));
    place.sees("#resume");
    // A stored session reads the same.
    place.browser.click("#resume").unwrap();
    place.sees(".view[data-view=start]");
    place.browser.fill("#start-prompt", "And now?").unwrap();
    place.browser.click("#go").unwrap();
    place.sees(".view[data-view=run][data-state]");
    place.ends("success");
    let requests = place.lab.server.requests("lab");
    let last = requests.last().unwrap();
    assert!(last.texts().any(|text| text.contains("Write a haiku")), "the session was not resumed");
    place.is_harmless();
}

#[test]
fn stopping_a_run_during_a_shell_command_leaves_no_process() {
    let command = json!({"command": "echo begun > begun.txt; sleep 63.1; echo over > over.txt"});
    let scenario = Scenario::new().turn(Turn::new().text("Working. ").call("run_shell_command", command));
    let mut place = Place::new("stop", scenario);
    place.starts("Sleep a little", "yolo");
    place.sees(".tool[data-tool=run_shell_command][data-state=running]");
    let begun = place.lab.workspace().join("begun.txt");
    let deadline = alhena_testbed::Deadline::after(Duration::from_secs(60));
    assert!(deadline.wait_until(|| begun.exists()));
    place.browser.click("#stop").unwrap();
    place.ends("cancelled");
    place.no_agent_is_left();
    assert!(!place.lab.workspace().join("over.txt").exists());
    place.waits("document.querySelector('.tool[data-tool=run_shell_command]').dataset.state !== 'running'");
    // Nothing runs any more, and the list of what runs says so.
    place.go("#/now");
    place.waits("!document.querySelector('.badge[data-state=running]')");
    place.is_harmless();
}

#[test]
fn what_the_server_does_not_take_is_told_at_the_field() {
    let mut place = Place::new("fields", Scenario::new());
    place.go("#/start");
    place.browser.click("#go").unwrap();
    place.waits("document.querySelector('[data-field=prompt].wrong')");
    assert_eq!(place.asks("document.activeElement.id"), json!("start-prompt"));
    place.browser.fill("#start-prompt", "Hello").unwrap();
    place.fills_the_rest("default");
    place.browser.fill("#start-dir", "/no/such/folder").unwrap();
    place.browser.click("#go").unwrap();
    place.waits("document.querySelector('[data-field=dir] .error').textContent.includes('/no/such/folder')");
    assert_eq!(place.asks("document.querySelector('[data-field=prompt].wrong')"), json!(null));
    let dir = place.lab.workspace().display().to_string();
    place.browser.fill("#start-dir", &dir).unwrap();
    place.browser.click("form details > summary").unwrap();
    place.browser.fill("#start-schema", "{no json").unwrap();
    place.browser.fill("#start-max_cost", "much").unwrap();
    place.browser.click("#go").unwrap();
    place.waits("document.querySelectorAll('.field.wrong').length === 2");
    place.browser.fill("#start-max_cost", "1.50").unwrap();
    place.browser.fill("#start-schema", "{\"type\": 5}").unwrap();
    place.browser.click("#go").unwrap();
    place.waits("document.querySelector('[data-field=schema] .error').textContent.length > 5");
    assert_eq!(place.asks("location.hash"), json!("#/start"));
    place.is_harmless();
}

#[test]
fn a_run_from_the_page_gives_data_by_its_schema_and_keeps_to_its_budget() {
    let submits = json!({"result": {"n": 3}});
    let scenario = Scenario::new()
        .turn(Turn::new().call("mcp_answer_submit_result", submits))
        .turn(Turn::new().call("list_directory", json!({"dir_path": "."})))
        .turn(Turn::say("Too much already."));
    let mut place = Place::new("limits", scenario);
    place.go("#/start");
    place.browser.fill("#start-prompt", "How many?").unwrap();
    place.fills_the_rest("default");
    let asked = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    place.browser.click("form details > summary").unwrap();
    place.browser.fill("#start-schema", &asked.to_string()).unwrap();
    place.browser.fill("#start-max_cost", "2,50").unwrap();
    place.browser.fill("#start-max_tokens", "900000").unwrap();
    // A look at the other form loses none of it.
    for words in ["A conversation instead", "A single run instead"] {
        assert_eq!(place.texts("form .acts a"), [words]);
        place.browser.click("form .acts a").unwrap();
        place.waits(&format!("!document.querySelector('form .acts a').textContent.includes({words:?})"));
    }
    let kept =
        "['schema', 'max_cost', 'max_tokens'].map((key) => document.querySelector(`#start-${key}`).value)";
    assert_eq!(place.asks(kept), json!([asked.to_string(), "2,50", "900000"]));
    place.sees("#start-schema");
    place.browser.click("#go").unwrap();
    place.sees(".view[data-view=run][data-state]");
    place.ends("success");
    place.sees("section[aria-label=Data] pre");
    let shown = place.texts("section[aria-label=Data] pre").concat();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json!({"n": 3}));
    assert_eq!(place.lab.server.requests("lab").len(), 1);

    place.go("#/start");
    place.browser.fill("#start-prompt", "And more?").unwrap();
    place.fills_the_rest("default");
    place.browser.click("form details > summary").unwrap();
    place.browser.fill("#start-max_tokens", "1").unwrap();
    place.browser.click("#go").unwrap();
    place.sees(".view[data-view=run][data-state]");
    place.ends("failed");
    place.waits("document.querySelector('.failure')?.innerText.includes('of 1 tokens')");
    assert_eq!(place.lab.server.requests("lab").len(), 2);
    place.is_harmless();
}

#[test]
fn nothing_is_put_into_a_field_that_somebody_is_in() {
    let mut place = Place::new("fingers", Scenario::new().turn(Turn::say("Hello.")));
    place.starts("Say hello", "default");
    place.ends("success");
    // The folder of that run is suggested, but late.
    place.asks(
        "(() => { const fetch = window.fetch; const late = new Promise((go) => { window.letThemCome = go; });
            window.fetch = async (...all) => { await late; return fetch(...all); }; })()",
    );
    place.go("#/start");
    place.browser.click("#start-dir").unwrap();
    assert_eq!(place.asks("document.activeElement.id"), json!("start-dir"));
    place.asks("window.letThemCome()");
    place.waits("document.querySelectorAll('#dirs option').length");
    assert_eq!(place.asks("document.querySelector('#start-dir').value"), json!(""));
    // Where nobody has been, it stands in the field.
    place.go("#/now");
    place.go("#/start");
    let dir = place.lab.workspace().canonicalize().unwrap().display().to_string();
    place.waits(&format!("document.querySelector('#start-dir').value === {}", json!(dir)));
    place.is_harmless();
}

#[test]
fn a_run_in_a_folder_that_is_not_trusted_is_started_again_with_the_box_ticked() {
    let mut place = Place::untrusted("untrusted", Scenario::new().turn(Turn::say("Here I am.")));
    let prompt = format!("Look round{}", " and round".repeat(300));
    place.starts(&prompt, "default");
    place.ends("failed");
    place.waits("document.querySelector('main').innerText.includes('Start again, and tick')");
    // Once is enough.
    place.waits("document.querySelectorAll('.failure').length === 1");
    let form = |place: &mut Place| {
        let value = "['prompt', 'dir', 'model', 'approval'].map((key) => document.querySelector(`#start-${key}`).value)";
        let dir = place.lab.workspace().display().to_string();
        assert_eq!(place.asks(value), json!([prompt, dir, super::place::MODEL, "default"]));
        place.sees("[data-untrusted]");
    };
    place.browser.click("#again").unwrap();
    place.sees(".view[data-view=start] #go");
    form(&mut place);
    // Neither does the other form lose what was typed.
    for words in ["A conversation instead", "A single run instead"] {
        assert_eq!(place.texts("form .acts a"), [words]);
        place.browser.click("form .acts a").unwrap();
        place.waits(&format!("!document.querySelector('form .acts a').textContent.includes({words:?})"));
        form(&mut place);
    }
    place.browser.click("#start-trust").unwrap();
    place.browser.click("#go").unwrap();
    place.sees(".view[data-view=run][data-state]");
    place.ends("success");
    place.is_harmless();
}
