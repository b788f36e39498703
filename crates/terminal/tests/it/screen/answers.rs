//! Answers read back from the screen are what the API had sent.
//!
//! Each recording holds one conversation with the real CLI, one turn per answer of `answers.json`, in one size and colour
//! depth. `index.json` names the release, the width, and the answers that cannot be read back from it, each with the reason.

use std::fs;
use std::path::PathBuf;

use alhena_terminal::screen::Capture;
use serde_json::Value;

use super::markdown::{normal_form, reader_form};

fn data(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/answers").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn answers() -> Vec<(String, String)> {
    let answers: Value = serde_json::from_str(&data("answers.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    answers.as_array().unwrap().iter().map(|pair| (text(&pair["name"]), text(&pair["markdown"]))).collect()
}

/// What could not be read back, one line per answer.
fn differences(recording: &Value) -> Vec<String> {
    let file = recording["file"].as_str().unwrap();
    let text = data(file);
    let mut capture = Capture::new(&text);
    let reader = recording["layout"] == "screen_reader";
    if reader {
        capture = capture.columns(recording["columns"].as_u64().unwrap() as u16);
    }
    let turns = capture.turns();
    let found: Vec<(String, String)> = turns.into_iter().map(|turn| (turn.query, turn.answer)).collect();
    let skipped: Vec<&String> =
        recording["cannot"].as_object().into_iter().flat_map(|names| names.keys()).collect();
    let form = if reader { reader_form } else { normal_form };
    let expected: Vec<(String, String)> = answers()
        .iter()
        .enumerate()
        .map(|(at, (name, markdown))| (format!("Question {}: {name}", at + 1), form(markdown)))
        .collect();
    if expected.len() != found.len() {
        return vec![format!("{file}: {} turns instead of {}", found.len(), expected.len())];
    }
    let problem = |(expected, found): (&(String, String), &(String, String))| {
        let excused = skipped.iter().any(|name| expected.0.ends_with(&format!(" {name}")));
        match (expected == found, excused) {
            (true, false) | (false, true) => None,
            (true, true) => Some(format!("{file}: {} can be read after all", expected.0)),
            (false, false) => Some(format!("{file}\n  sent {expected:?}\n  read {found:?}")),
        }
    };
    expected.iter().zip(&found).filter_map(problem).collect()
}

// D-18 to D-24
#[test]
fn every_answer_of_every_recording_is_read_back_as_it_was_sent() {
    let index: Value = serde_json::from_str(&data("index.json")).unwrap();
    let problems: Vec<String> = index.as_array().unwrap().iter().flat_map(differences).collect();
    assert!(problems.is_empty(), "{} differences\n{}", problems.len(), problems.join("\n"));
}
