//! Ten terminals at once, launched and used by ten threads with connections of their own.

use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_terminal::screen::Status;

use super::place::{LONG, Place, answer};

#[test]
fn ten_terminals_at_once_each_get_their_own_answers() {
    let echo = |request: &RecordedRequest| {
        let prompt = request.prompt().unwrap_or_default();
        Turn::say(format!("You said {}.", prompt.rsplit("</session_context>").next().unwrap_or_default()))
    };
    let place = Place::new("ten", Scenario::dynamic(echo));
    std::thread::scope(|scope| {
        for number in 0..10 {
            let place = &place;
            scope.spawn(move || {
                let terminals = place.again();
                let mut wanted = place.wanted("");
                wanted.name = Some(format!("worker-{number}"));
                wanted.timeout = LONG * 2;
                let terminal = terminals.launch(wanted).unwrap();
                for turn in 0..2 {
                    let text = format!("number {number} turn {turn}");
                    assert_eq!(answer(&terminal, &text), format!("You said {text}."));
                }
            });
        }
    });
    let all = place.terminals.list().unwrap();
    assert_eq!(all.len(), 10);
    assert!(all.iter().all(|terminal| terminal.status().unwrap().status == Status::Completed));
    std::thread::scope(|scope| {
        for terminal in &all {
            scope.spawn(|| terminal.exit(LONG).unwrap());
        }
    });
    assert_eq!(place.terminals.list().unwrap().len(), 0);
    place.nothing_left();
}
