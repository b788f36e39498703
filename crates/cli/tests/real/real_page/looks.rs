//! How the page looks: every view on a desk and on a phone, light and dark. The pictures are for people; what a program can see of a
//! look is checked: nothing is wider than the screen, and nothing is said against the page.

use std::path::PathBuf;
use std::time::Duration;

use alhena_scripted::{Scenario, Turn, Usage};
use alhena_testbed::browser::{Colours, Screen};
use alhena_testbed::cache::workspace;
use serde_json::json;

use super::place::Place;

const BEFORE: &str = "fn parse(line: &str) -> Option<Entry> {\n    let (name, value) = line.split_once('=')?;\n    Some(Entry { name: name.into(), value: value.into() })\n}\n";
const AFTER: &str = "fn parse(line: &str) -> Option<Entry> {\n    let line = line.trim();\n    if line.is_empty() || line.starts_with('#') {\n        return None;\n    }\n    let (name, value) = line.split_once('=')?;\n    Some(Entry { name: name.trim().into(), value: value.trim().into() })\n}\n";

/// A run that is worth looking at, and a question after it.
fn story() -> Scenario {
    let usage = |prompt, output| Usage {
        prompt_token_count: Some(prompt),
        candidates_token_count: Some(output),
        ..Usage::default()
    };
    Scenario::new()
        .turn(
            Turn::new()
                .thought("How lines are split", "The parser takes every line for a pair; comments are none.")
                .text("The parser takes every line for a pair. I let it skip **comments** and **empty lines**:\n")
                .call("replace", json!({"file_path": "parse.rs", "old_string": BEFORE, "new_string": AFTER, "instruction": "Skip comments and empty lines"}))
                .usage(usage(18_400, 620)),
        )
        .turn(
            Turn::new()
                .call("run_shell_command", json!({"command": "sh run-tests.sh", "description": "Run the tests"}))
                .usage(usage(19_800, 140)),
        )
        .turn(
            Turn::new()
                .chunks("All 12 tests pass. In `parse.rs`:\n\n- lines that begin with `#` and empty ones give nothing\n- names and values are trimmed\n", 24, Duration::from_millis(5))
                .usage(usage(20_300, 260)),
        )
        .turn(Turn::new().text("I would build it once from clean.").call("run_shell_command", json!({"command": "rm -rf dist && npm run build", "description": "Build from clean"})))
        .turn(Turn::say("Then not."))
}

/// Where the pictures go.
fn pictures() -> PathBuf {
    std::env::var_os("ALHENA_PICTURES").map_or_else(|| workspace().join("target/page"), PathBuf::from)
}

/// Takes the pictures of what is shown, and checks what a program can.
pub fn looks(place: &mut Place, name: &str) {
    for (screen, size) in [(Screen::Desktop, "desktop"), (Screen::Phone, "phone")] {
        place.browser.screen(screen).unwrap();
        for (colours, tone) in [(Colours::Light, "light"), (Colours::Dark, "dark")] {
            place.browser.colours(colours).unwrap();
            place.browser.screenshot(&pictures().join(format!("{name}-{size}-{tone}.png"))).unwrap();
        }
        let wide = place.asks("[document.documentElement.scrollWidth, innerWidth]");
        assert!(wide[0].as_f64() <= wide[1].as_f64(), "{name} on a {size}: {wide}");
    }
    place.browser.screen(Screen::Desktop).unwrap();
    place.browser.colours(Colours::Light).unwrap();
}

fn mends_the_parser(place: &mut Place) {
    place.lab.home.write("parse.rs", BEFORE).unwrap();
    place
        .lab
        .home
        .write("run-tests.sh", "echo 'running 12 tests'; echo 'test result: ok. 12 passed'\n")
        .unwrap();
    place.starts("Let the parser skip comments and empty lines, and run the tests.", "yolo");
    place.ends("success");
    place.waits("document.querySelector('.transcript .turn')");
    place.asks("scrollTo(0, 0)");
}

/// `cargo xtask screenshot` takes it.
#[test]
fn the_picture_in_the_readme_is_a_run_with_a_diff() {
    let mut place = Place::new("readme", story());
    mends_the_parser(&mut place);
    place.sees(".change .diff .added");
    place.sees(".change .diff .removed");
    let picture =
        std::env::var_os("ALHENA_SCREENSHOT").map_or_else(|| pictures().join("readme.png"), PathBuf::from);
    place.browser.screenshot(&picture).unwrap();
    let size = std::fs::metadata(&picture).unwrap().len();
    assert!((10_000..200_000).contains(&size), "{size} bytes");
}

#[test]
fn every_view_fits_a_desk_and_a_phone_in_light_and_dark() {
    let mut place = Place::new("looks", story());
    looks(&mut place, "now-empty");
    mends_the_parser(&mut place);
    looks(&mut place, "run");
    place.go("#/start?chat=1");
    place.browser.fill("#start-prompt", "Build the site").unwrap();
    place.fills_the_rest("default");
    looks(&mut place, "start");
    place.browser.click("#go").unwrap();
    place.sees(".asked");
    looks(&mut place, "chat");
    for (view, there) in [
        ("now", ".waits a"),
        ("runs", ".rows a"),
        ("chats", ".rows a"),
        ("sessions", ".rows a"),
        ("sessions?q=parser", ".snippets mark"),
        ("usage", "table[data-by=folder]"),
        ("terminals", "main .empty, main .rows"),
        ("batches", "main .empty, main .rows"),
        ("doctor", ".findings li"),
    ] {
        place.go(&format!("#/{view}"));
        place.sees(there);
        looks(&mut place, &view.replace(['?', '='], "-"));
    }
    place.is_harmless();
}
