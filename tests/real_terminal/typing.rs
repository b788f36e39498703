//! What is sent arrives as it was written, whatever it holds.

use alhena::scripted::{After, Scenario, Turn};
use alhena::terminal::{Force, TerminalErrorKind, Until};

use crate::place::{LONG, Place, answer};

#[test]
fn text_of_any_content_arrives_as_it_was_written() {
    let place = Place::new("typing", Scenario::new().turn(Turn::say("ok")).after(After::Repeat));
    let terminal = place.launch();
    let lines: Vec<String> = (0..300).map(|number| format!("line {number}: `code` ? ! / @")).collect();
    let exact = [
        "?",
        "!ls is no command",
        "/etc/hosts is no command either?",
        "ends with a backslash\\",
        "two\n\nlines\n  indented",
        "tab\there",
        "quotes ' \" ` $HOME $(id) ; #{pane_id} %0 \\n \\033",
        "日本語 👩‍👩‍👧 é — «»",
        "-n --help",
        &lines.join("\n"),
    ];
    for text in exact {
        answer(&terminal, text);
        assert_eq!(place.last_prompt(), text);
    }
    answer(&terminal, "a\r\nb\rc");
    assert_eq!(place.last_prompt(), "a\nb\nc");
    let sent = terminal.send("x\x1b[201~\x03y\x1b]0;✦\x07z", Force::No).unwrap();
    terminal.wait(Until::Completed, LONG).unwrap();
    assert_eq!((place.last_prompt().as_str(), sent.removed), ("x[201~y]0;✦z", 4));

    // A draft of somebody else's is not thrown away unless that is wanted.
    place.tmux(&["send-keys", "-t", &place.pane_of(&terminal), "-l", "half a thought"]);
    let refused = || terminal.send("mine", Force::No).map_err(|error| error.kind);
    let seen = alhena_testbed::Deadline::after(LONG)
        .wait_until(|| place.capture(&terminal).contains("half a thought"));
    assert!(seen);
    assert_eq!(refused().unwrap_err(), TerminalErrorKind::NotReady);
    terminal.send("mine", Force::Yes).unwrap();
    terminal.wait(Until::Completed, LONG).unwrap();
    assert_eq!(place.last_prompt(), "mine");
    assert_eq!(terminal.send(" \x1b\n ", Force::No).unwrap_err().kind, TerminalErrorKind::Usage);
}

#[test]
fn a_text_that_the_prompt_could_not_bear_goes_by_a_file_that_the_agent_may_read() {
    let place = Place::new("by file", Scenario::new().turn(Turn::say("ok")).after(After::Repeat));
    let terminal = place.launch();
    let text = "word ".repeat(40_000);
    let sent = terminal.send(&text, Force::No).unwrap();
    terminal.wait(Until::Completed, LONG).unwrap();
    let file = sent.file.unwrap();
    assert_eq!(place.last_prompt(), format!("Process the prompt in {}", file.display()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    terminal.exit(LONG).unwrap();
    assert!(!file.exists());
}

#[test]
fn two_who_send_at_once_do_not_mix_their_words() {
    let place = Place::new("two", Scenario::new().turn(Turn::say("ok")).after(After::Repeat));
    let id = place.launch().id().to_owned();
    let texts: Vec<String> =
        (0..4).map(|number| format!("sender {number} says {}", "word ".repeat(30).trim())).collect();
    std::thread::scope(|scope| {
        for text in &texts {
            let (place, id) = (&place, &id);
            scope.spawn(move || {
                let terminal = place.again().find(id).unwrap();
                while let Err(error) = terminal.send(text, Force::No) {
                    assert_eq!(error.kind, TerminalErrorKind::NotReady, "{error}");
                    terminal.wait(Until::Idle, LONG).unwrap();
                }
            });
        }
    });
    place.terminals.find(&id).unwrap().wait(Until::Completed, LONG).unwrap();
    let (turns, _) = place.terminals.find(&id).unwrap().turns().unwrap();
    let mut asked: Vec<String> = turns.into_iter().map(|turn| turn.query).collect();
    asked.sort();
    assert_eq!(asked, texts);
}
