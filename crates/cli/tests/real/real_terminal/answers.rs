//! Answers are what the API sent: hard content, three sizes, from the session exactly, from the screen as it is rendered.

use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_terminal::Source;
use alhena_terminal::screen::Capture;
use serde_json::Value;

use super::place::{Place, ask};

#[allow(dead_code, clippy::string_slice)]
#[path = "../../../../terminal/tests/it/screen/markdown.rs"]
mod markdown;

const ANSWERS: &str = include_str!("../../../../terminal/tests/data/answers/answers.json");
const INDEX: &str = include_str!("../../../../terminal/tests/data/answers/index.json");

fn all() -> Vec<(String, String)> {
    let answers: Vec<Value> = serde_json::from_str(ANSWERS).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    answers.iter().map(|answer| (text(&answer["name"]), text(&answer["markdown"]))).collect()
}

/// The answers that the screen of this width cannot give back, because the CLI draws something else.
fn excused(columns: u16) -> Vec<String> {
    let index: Vec<Value> = serde_json::from_str(INDEX).unwrap();
    let file = format!("61-{columns}.txt");
    let recording = index.iter().find(|recording| recording["file"] == file.as_str()).unwrap();
    recording["cannot"].as_object().into_iter().flat_map(|names| names.keys().cloned()).collect()
}

fn check(place: &Place, columns: u16, rows: u16, answers: &[(String, String)]) {
    let mut wanted = place.wanted("");
    (wanted.columns, wanted.rows) = (columns, rows);
    let terminal = place.again().launch(wanted).unwrap();
    for (name, sent) in answers {
        ask(&terminal, &format!("Give me {name}"));
        let read = terminal.last_answer().unwrap();
        assert_eq!((&read.text, read.source), (sent, Source::Session), "{name} at {columns}x{rows}");
    }
    let captured = place.capture(&terminal);
    let excused = excused(columns);
    let turns = Capture::new(&captured).columns(columns).turns();
    assert_eq!(turns.len(), answers.len());
    for ((name, sent), turn) in answers.iter().zip(turns).filter(|((name, _), _)| !excused.contains(name)) {
        assert_eq!(turn.answer, markdown::normal_form(sent), "{name} on a screen of {columns}x{rows}");
    }
}

// D-18 to D-24
#[test]
fn hard_answers_in_three_sizes_are_what_the_api_sent() {
    let answers = all();
    assert!(answers.len() >= 40);
    let table = answers.clone();
    let by_name = move |request: &RecordedRequest| {
        let prompt = request.prompt().unwrap_or_default();
        let name = prompt.rsplit("Give me ").next().unwrap_or_default();
        let found = table.iter().find(|(known, _)| known == name);
        Turn::say(found.map_or("unknown", |(_, text)| text.as_str()))
    };
    let place = Place::new("answers", Scenario::dynamic(by_name));
    // Every answer in one size, and each size with answers of all kinds.
    let part = |rest: usize| -> Vec<(String, String)> {
        answers
            .iter()
            .enumerate()
            .filter(|(at, _)| at % 3 == rest)
            .map(|(_, answer)| answer.clone())
            .collect()
    };
    std::thread::scope(|scope| {
        for (rest, (columns, rows)) in [(60, 15), (150, 46), (250, 80)].into_iter().enumerate() {
            let (place, part) = (&place, part(rest));
            scope.spawn(move || check(place, columns, rows, &part));
        }
    });
}
