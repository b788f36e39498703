//! Questions before a tool runs, answered on the page.

use alhena::scripted::{Scenario, Turn};
use serde_json::json;

use crate::place::Place;

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
    place.browser.click("#close").unwrap();
    place.browser.click("dialog button.danger").unwrap();
    place.waits("document.querySelector('.view').dataset.state === 'closed'");
    place.no_agent_is_left();
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
    place.go("#/now");
    place.sees("section[aria-label='Waits for you'] .waits a");
    let first = "document.querySelector('main section').getAttribute('aria-label')";
    assert_eq!(place.asks(first), json!("Waits for you"));
    assert_eq!(place.texts("#waiting"), ["1"]);
    place.browser.click("section[aria-label='Waits for you'] a").unwrap();
    place.sees(".view[data-view=chat] .asked");
    // Always: it does not ask again for the same file.
    assert_eq!(place.texts(".asked [data-decide=always]"), ["Always this file"]);
    place.browser.click(".asked [data-decide=always]").unwrap();
    place.waits("document.querySelector('.view').dataset.state === 'idle'");
    assert_eq!(std::fs::read_to_string(place.lab.workspace().join("notes.txt")).unwrap(), "twice\n");
    place.is_harmless();
}
