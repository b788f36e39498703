//! What a model says is text: nothing in it acts, nothing in it freezes the page.

use alhena_scripted::{Scenario, Turn};
use serde_json::json;

use super::place::Place;

const EVIL: &str = "<script>document.body.id='ran';alert(1)</script><img src=\"http://127.0.0.1:9/x\" onerror=\"document.body.id='ran'\">\
    <iframe srcdoc=\"<script>parent.document.body.id='ran'</script>\"></iframe>[click](javascript:document.body.id='ran')\
    \u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}gnp.exe\u{2066}\u{200f} <svg onload=alert(2)>";

/// A line without an end and without anything that repeats: the CLI would take that for a loop of the model.
fn one_line(length: usize) -> String {
    let mut state = 1_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    };
    std::iter::repeat_with(&mut letter).take(length).collect()
}

#[test]
fn hostile_text_does_nothing_and_a_megabyte_in_one_line_freezes_nothing() {
    let long = one_line(1_000_000);
    let print = "printf '\\033]0;owned\\007\\n'; cat evil.html";
    let scenario =
        Scenario::new()
            .turn(Turn::new().thought("<b>bold</b>", EVIL).text(EVIL).call(
                "write_file",
                json!({"file_path": "evil.html", "content": format!("{EVIL}\n{long}\n")}),
            ))
            .turn(Turn::new().call("run_shell_command", json!({"command": print, "description": EVIL})))
            .turn(Turn::new().text(long.clone()).text(format!("\n\nthe end {EVIL}")));
    let mut place = Place::new("hostile", scenario);
    place.starts(&format!("Be evil {EVIL}"), "yolo");
    place.ends("success");
    place.waits("document.querySelector('.transcript .turn')");
    // Everything unfolded, and the page still answers.
    place.asks("document.querySelectorAll('details').forEach((node) => { node.open = true; })");
    place.asks("new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(1))))");
    let seen = place.asks(
        "({ran: document.body.id, title: document.title,
            foreign: document.querySelectorAll('main :is(script, img, iframe, object, embed, [onerror], [onload], [srcdoc])').length,
            links: [...document.querySelectorAll('main a')].map((node) => node.href).filter((to) => /^javascript/i.test(to)).length,
            acting: /[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069\\u200e\\u200f]/.test(document.body.textContent),
            shown: document.body.textContent.includes('<script>document.body.id') && document.body.textContent.includes('\\u27e8RLO\\u27e9') && document.body.textContent.includes('\\u27e8ESC\\u27e9'),
            wide: document.documentElement.scrollWidth <= innerWidth,
            small: document.body.textContent.length < 600000})",
    );
    let expected = json!({
        "ran": "", "title": "Alhena", "foreign": 0, "links": 0, "acting": false, "shown": true, "wide": true, "small": true,
    });
    assert_eq!(seen, expected);
    // The rest is there for who wants it.
    place.browser.click(".answer .more button").unwrap();
    place.waits("document.querySelectorAll('.answer .long pre').length >= 2");
    place.go("#/runs");
    place.sees(".rows a");
    place.go("#/sessions");
    place.sees(".rows a");
    place.browser.click(".rows a").unwrap();
    place.waits("document.querySelector('.view[data-view=session] .transcript .change')");
    assert_eq!(place.asks("document.body.id"), json!(""));
    place.is_harmless();
}
