//! Questions before a tool runs, answered on the page.

use alhena_scripted::{Scenario, Turn};
use serde_json::json;

use super::place::Place;

fn two_files() -> Scenario {
    let write =
        |name: &str, text: &str| Turn::new().call("write_file", json!({"file_path": name, "content": text}));
    Scenario::new()
        .turn(write("kept.txt", "yes\n"))
        .turn(write("refused.txt", "no\n"))
        .turn(Turn::say("One is there, the other is not."))
}

/// A conversation of which the first question is on the screen.
fn asked(place: &mut Place) {
    place.go("#/start?chat=1");
    place.browser.fill("#start-prompt", "Write two files").unwrap();
    place.fills_the_rest("default");
    place.browser.click("#go").unwrap();
    place.sees(".view[data-view=chat] .asked");
}

#[test]
fn one_tool_is_allowed_and_another_rejected_with_a_reason() {
    let mut place = Place::new("approvals", two_files());
    asked(&mut place);
    let (kept, refused) = (place.lab.workspace().join("kept.txt"), place.lab.workspace().join("refused.txt"));
    // What would be done is in view, and is not done yet.
    assert!(!kept.exists());
    assert_eq!(place.texts(".asked .diff .added"), ["+yes"]);
    place.asks("document.querySelector('#close').dataset.seen = 'from the beginning'");
    place.waits("document.querySelector('.tool > summary .state')?.textContent === 'waits for an answer'");
    place.waits("document.title === '(1) Alhena'");
    place.browser.click(".asked [data-decide=allow]").unwrap();
    place.waits("document.querySelector('.asked .diff .added')?.textContent.trim() === '+no'");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "yes\n");
    place.browser.fill(".asked .reject input", "Not that file, please").unwrap();
    place.browser.click(".asked [data-decide=reject]").unwrap();
    place.waits("document.querySelector('.transcript')?.innerText.includes('One is there')");
    place.waits("document.querySelector('.view').dataset.state === 'idle'");
    assert!(!refused.exists());
    assert_eq!(place.asks("document.querySelectorAll('.asked').length"), json!(0));
    let decided = "[...document.querySelectorAll('.decided')].map((node) => node.dataset.decision)";
    assert_eq!(place.asks(decided), json!(["allow", "reject"]));
    // The agent was told why.
    let requests = place.lab.server.requests("lab");
    assert!(
        requests.iter().any(|request| request.body.to_string().contains("Not that file, please")),
        "the reason did not reach the model"
    );
    // It goes on, and is closed.
    place.browser.fill("#say", "Thanks").unwrap();
    place.browser.press(&["Enter"]).unwrap();
    place.waits("document.querySelectorAll('.transcript .prompt').length === 2");
    place.waits("document.querySelectorAll('.transcript .turn').length === 2");
    // What was there all the time is the same button: one that is made anew under a finger is not pressed.
    assert_eq!(place.asks("document.querySelector('#close').dataset.seen"), json!("from the beginning"));
    place.browser.click("#close").unwrap();
    place.browser.click("dialog button.danger").unwrap();
    place.waits("document.querySelector('.view').dataset.state === 'closed'");
    place.no_agent_is_left();
    place.is_harmless();
}

#[test]
fn the_session_of_a_chat_that_is_open_is_one_click_away() {
    let mut place = Place::new("chat-session", two_files());
    asked(&mut place);
    place.browser.click("a[href^='#/session/']").unwrap();
    let shows = |part: &str| {
        format!(
            "document.querySelector('.view[data-view=session] {part}')?.innerText.includes('Write two files')"
        )
    };
    place.waits(&shows(".transcript"));
    place.waits(&shows("h1"));
    place.is_harmless();
}

#[test]
fn a_question_that_comes_under_the_fingers_is_not_answered_by_them() {
    let mut place = Place::new("fingers", two_files());
    // Each question is answered the moment it appears, as by somebody who was typing or clicking already.
    place.asks(
        "new MutationObserver(() => document.querySelectorAll('.asked').forEach((card) => { \
            if (card.dataset.tried) return; \
            card.dataset.tried = 1; card.querySelector('[data-decide=allow]').click(); card.focus(); \
            card.dispatchEvent(new KeyboardEvent('keydown', {key: 'y', bubbles: true})); \
        })).observe(document.querySelector('main'), {childList: true, subtree: true})",
    );
    asked(&mut place);
    place.sees(".asked[data-tried]:not(.fresh)");
    assert_eq!(place.asks("document.querySelectorAll('.decided').length"), json!(0));
    assert!(!place.lab.workspace().join("kept.txt").exists());
    // Whoever means it is heard.
    place.browser.press(&["p", "y"]).unwrap();
    place.waits("document.querySelectorAll('.decided').length === 1");
    place.is_harmless();
}

#[test]
fn what_waits_for_a_person_stands_first() {
    let write =
        |text: &str| Turn::new().call("write_file", json!({"file_path": "notes.txt", "content": text}));
    let scenario =
        Scenario::new().turn(write("once\n")).turn(write("twice\n")).turn(Turn::say("Written twice."));
    let mut place = Place::new("first", scenario);
    asked(&mut place);
    place.browser.fill("#say", "Half a thought").unwrap();
    place.go("#/now");
    place.sees("section[aria-label='Waits for you'] .waits a");
    let first = "document.querySelector('main section').getAttribute('aria-label')";
    assert_eq!(place.asks(first), json!("Waits for you"));
    assert_eq!(place.texts("#waiting"), ["1"]);
    place.browser.click("section[aria-label='Waits for you'] a").unwrap();
    place.sees(".view[data-view=chat] .asked");
    // What was written and not sent is still there.
    assert_eq!(place.asks("document.querySelector('#say').value"), json!("Half a thought"));
    // Always: it does not ask again for the same file.
    assert_eq!(place.texts(".asked [data-decide=always]"), ["Always this file"]);
    place.browser.click(".asked [data-decide=always]").unwrap();
    place.waits("document.querySelector('.view').dataset.state === 'idle'");
    assert_eq!(std::fs::read_to_string(place.lab.workspace().join("notes.txt")).unwrap(), "twice\n");
    place.is_harmless();
}

/// The command, its folder and every letter of a change are in view before anybody can allow them.
#[test]
fn nothing_is_allowed_that_could_not_be_seen() {
    let padded = format!("ls -la{}{}; touch hidden.txt", " ".repeat(300), "\n".repeat(45));
    let shell = |command: &str, more: serde_json::Value| {
        let mut input = json!({"command": command});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Turn::new().call("run_shell_command", input)
    };
    let line = format!("var a=1;/*{}*/TAIL()\n", "p".repeat(1500));
    let lines: String = (0..300).map(|number| format!("line {number}\n")).collect();
    let write =
        |name: &str, text: &str| Turn::new().call("write_file", json!({"file_path": name, "content": text}));
    let elsewhere = json!({"dir_path": "sub", "description": "Looks round", "is_background": true});
    let scenario = Scenario::new()
        .turn(shell(&padded, json!({})))
        .turn(write("min.js", &line))
        .turn(write("long.txt", &lines))
        .turn(shell("touch here.txt", json!({})))
        .turn(shell("touch here.txt", elsewhere))
        .turn(Turn::say("Done."));
    let mut place = Place::new("seen", scenario);
    std::fs::create_dir(place.lab.workspace().join("sub")).unwrap();
    asked(&mut place);
    let shown = |place: &mut Place| place.texts(".asked").join("\n");
    let next = |place: &mut Place, has: &str| {
        place.waits(&format!("document.querySelector('.asked:not(.fresh)')?.textContent.includes({has:?})"));
    };
    let text = shown(&mut place);
    assert!(text.contains("\u{27e8}300 spaces\u{27e9}") && text.contains("empty lines\u{27e9}"), "{text}");
    assert!(text.contains("; touch hidden.txt"), "{text}");
    place.browser.click(".asked [data-decide=reject]").unwrap();
    next(&mut place, "min.js");
    assert!(shown(&mut place).contains("TAIL()"), "no line of a change is cut");
    place.browser.click(".asked [data-decide=reject]").unwrap();
    // What is not all in view is not allowed.
    next(&mut place, "long.txt");
    place.browser.click(".asked [data-decide=allow]").unwrap();
    place.waits("document.querySelector('.asked .error')?.textContent.includes('Look at all of it first')");
    assert!(!place.lab.workspace().join("long.txt").exists());
    place.browser.click(".asked .more button").unwrap();
    place.browser.click(".asked [data-decide=allow]").unwrap();
    next(&mut place, "touch here.txt");
    assert!(place.lab.workspace().join("long.txt").exists());
    // Always is for this folder.
    place.browser.click(".asked [data-decide=always]").unwrap();
    next(&mut place, "[in sub] (Looks round)");
    assert!(shown(&mut place).contains("goes on in the background"));
    assert_eq!(place.asks("document.querySelectorAll('.asked [data-decide=always]').length"), json!(0));
    place.browser.click(".asked [data-decide=reject]").unwrap();
    place.waits("document.querySelector('.view').dataset.state === 'idle'");
    assert!(
        place.lab.workspace().join("here.txt").exists()
            && !place.lab.workspace().join("sub/here.txt").exists()
    );
    place.is_harmless();
}

/// Gemini CLI 0.61.0 cuts this question's title after 100 characters and sends no arguments; its session file has them.
#[test]
fn a_question_about_a_web_page_shows_the_whole_prompt() {
    let prompt =
        format!("Summarise https://example.com/ {} and send what you find to THE-END", "x".repeat(120));
    let scenario = Scenario::new()
        .turn(Turn::new().call("web_fetch", json!({"prompt": prompt})))
        .turn(Turn::say("Well."));
    let mut place = Place::new("untold", scenario);
    asked(&mut place);
    let shown = place.texts(".asked").concat();
    assert!(shown.contains(&prompt), "{shown}");
    assert!(!shown.contains("Not everything is shown"), "{shown}");
    place.browser.click(".asked [data-decide=reject]").unwrap();
    place.waits("document.querySelector('.view').dataset.state === 'idle'");
    place.is_harmless();
}
