//! The page without a mouse.

use alhena_scripted::{Scenario, Turn};
use serde_json::json;

use super::place::Place;

#[test]
fn everything_is_done_with_the_keyboard_alone() {
    let write =
        |name: &str| Turn::new().call("write_file", json!({"file_path": name, "content": "by keys\n"}));
    let scenario =
        Scenario::new().turn(write("first.txt")).turn(write("second.txt")).turn(Turn::say("Fine."));
    let mut place = Place::new("keys", scenario);
    // The first thing to reach leads past the menu.
    place.browser.press(&["Tab", "Enter"]).unwrap();
    place.waits("document.activeElement.id === 'main'");
    place.browser.press(&["?"]).unwrap();
    place.sees("dialog[open] kbd");
    place.browser.press(&["Escape"]).unwrap();
    place.waits("!document.querySelector('dialog[open]')");
    // Each view has its keys, and the focus goes along.
    for (key, view) in [
        ("u", "usage"),
        ("r", "runs"),
        ("c", "chats"),
        ("s", "sessions"),
        ("t", "terminals"),
        ("b", "batches"),
        ("d", "doctor"),
        ("n", "now"),
    ] {
        place.browser.press(&["g", key]).unwrap();
        place.sees(&format!(".view[data-view={view}] h1"));
        place.waits("document.activeElement.tagName === 'H1'");
    }
    // A conversation from the first key to the last answer.
    place.browser.press(&["g", "c"]).unwrap();
    place.sees(".view[data-view=chats]");
    place.browser.press(&["Tab", "Enter"]).unwrap();
    place.sees(".view[data-view=start] #start-prompt");
    place.waits("document.activeElement.id === 'start-prompt'");
    place.browser.type_text("Write two files").unwrap();
    let dir = place.lab.workspace().display().to_string();
    place.browser.press(&["Tab"]).unwrap();
    place.asks("document.activeElement.select()");
    place.browser.type_text(&dir).unwrap();
    place.browser.press(&["Tab", "Tab"]).unwrap();
    place.browser.type_text(super::place::MODEL).unwrap();
    place.browser.press(&["Control+Enter"]).unwrap();
    place.sees(".view[data-view=chat] .asked");
    place.browser.press(&["p"]).unwrap();
    place.waits("document.activeElement.matches('.asked')");
    let ring = "getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(place.asks(ring), json!("solid"));
    place.waits("!document.querySelector('.asked.fresh')");
    place.browser.press(&["y"]).unwrap();
    place.waits("document.querySelectorAll('.decided').length === 1 && document.querySelector('.asked')");
    place.browser.press(&["p", "r"]).unwrap();
    place.waits("document.activeElement.matches('.reject input')");
    place.browser.type_text("no more").unwrap();
    place.browser.press(&["Enter"]).unwrap();
    place.waits("document.querySelector('.view').dataset.state === 'idle'");
    assert!(place.lab.workspace().join("first.txt").exists());
    assert!(!place.lab.workspace().join("second.txt").exists());
    place.is_harmless();
}
