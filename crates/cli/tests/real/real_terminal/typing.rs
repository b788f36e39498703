//! What is sent arrives as it was written, whatever it holds.

use alhena_scripted::{After, Scenario, Turn};
use alhena_terminal::screen::Status;
use alhena_terminal::{Force, Terminal, TerminalErrorKind, Until};
use alhena_testbed::processes::{command_line, descendants, signal};
use rustix::process::Signal;

use super::place::{LONG, Place, answer, ask};

/// What stands in front of a text that would otherwise be a command.
const MARK: &str = "\u{2060} ";

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
    let sent = terminal.send("x\x1b[201~\x03y\x1b]0;✦\x07z", Force::OnlyWhenReady).unwrap();
    terminal.wait(Until::Completed, LONG).unwrap();
    assert_eq!((place.last_prompt().as_str(), sent.removed), ("x[201~y]0;✦z", 4));

    // A draft of somebody else's is not thrown away unless that is wanted.
    place.tmux(&["send-keys", "-t", &place.pane_of(&terminal), "-l", "half a thought"]);
    let refused = || terminal.send("mine", Force::OnlyWhenReady).map_err(|error| error.kind);
    let seen = alhena_testbed::Deadline::after(LONG)
        .wait_until(|| place.capture(&terminal).contains("half a thought"));
    assert!(seen);
    assert_eq!(refused().unwrap_err(), TerminalErrorKind::NotReady);
    terminal.send("mine", Force::Anyway).unwrap();
    terminal.wait(Until::Completed, LONG).unwrap();
    assert_eq!(place.last_prompt(), "mine");
    assert_eq!(terminal.send(" \x1b\n ", Force::OnlyWhenReady).unwrap_err().kind, TerminalErrorKind::Usage);
}

#[test]
fn a_text_that_the_prompt_could_not_bear_goes_by_a_file_that_the_agent_may_read() {
    let place = Place::new("by file", Scenario::new().turn(Turn::say("ok")).after(After::Repeat));
    let terminal = place.launch();
    let text = "word ".repeat(40_000);
    let sent = terminal.send(&text, Force::OnlyWhenReady).unwrap();
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
                while let Err(error) = terminal.send(text, Force::OnlyWhenReady) {
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

#[test]
fn a_message_is_text_whatever_it_begins_with() {
    let place = Place::new("text", Scenario::new().turn(Turn::say("ok")).after(After::Repeat));
    std::fs::write(place.work().join("notes.txt"), "SECRET OF THE FILE").unwrap();
    let file = place.work().join("notes.txt");
    let file = file.to_str().unwrap();
    let terminal = place.launch();
    for text in
        ["/quit", "/about the weather", "/ clear", "/clear\nand more\nlines", "/chat list\n1\n2\n3\n4\n5\n6"]
    {
        let sent = terminal.send(text, Force::OnlyWhenReady).unwrap();
        terminal.wait(Until::Completed, LONG).unwrap();
        assert_eq!((place.last_prompt(), sent.marked), (format!("{MARK}{text}"), true));
    }
    let paths = [file.to_owned(), format!("'{file}' {file}"), format!("{file} is a file")];
    let exact = [
        "/etc/hosts",
        "//comment",
        "/* comment */",
        "!ls",
        "?",
        "@",
        "a @ b",
        "~/.bashrc",
        "Type your message or",
    ];
    for text in exact.into_iter().chain(paths.iter().map(String::as_str)) {
        let sent = terminal.send(text, Force::OnlyWhenReady).unwrap();
        terminal.wait(Until::Completed, LONG).unwrap();
        assert_eq!((place.last_prompt().as_str(), sent.marked, sent.escaped), (text, false, 0));
    }
    let ats = [
        ("@notes.txt", "\\@notes.txt", 1),
        ("what is in @notes.txt", "what is in \\@notes.txt", 1),
        ("a@notes.txt, and \\@notes.txt @no", "a\\@notes.txt, and \\@notes.txt \\@no", 2),
        ("Type your message or @path/to/file", "Type your message or \\@path/to/file", 1),
    ];
    for (text, arrives, escaped) in ats {
        let sent = terminal.send(text, Force::OnlyWhenReady).unwrap();
        terminal.wait(Until::Completed, LONG).unwrap();
        assert_eq!((place.last_prompt().as_str(), sent.escaped), (arrives, escaped));
    }
    let requests = place.api.requests("api");
    assert!(!requests.iter().any(|request| request.body.to_string().contains("SECRET OF THE FILE")));
}

#[test]
fn a_prompt_of_a_launch_is_text_whatever_it_begins_with() {
    let place = Place::new("launch text", Scenario::new().turn(Turn::say("ok")).after(After::Repeat));
    std::fs::write(place.work().join("notes.txt"), "SECRET OF THE FILE").unwrap();
    for (text, arrives) in
        [("/quit", format!("{MARK}/quit")), ("see @notes.txt", "see \\@notes.txt".to_owned())]
    {
        let terminal = place.terminals.launch(place.wanted(text)).unwrap();
        terminal.wait(Until::Completed, LONG).unwrap();
        assert_eq!(place.last_prompt(), arrives);
        terminal.exit(LONG).unwrap();
    }
}

/// The processes of the CLI itself.
fn cli_of(place: &Place, terminal: &Terminal) -> Vec<u32> {
    let shell = place.tmux(&["display-message", "-p", "-t", &place.pane_of(terminal), "#{pane_pid}"]);
    let mut found = descendants(shell.trim().parse().unwrap());
    found.retain(|pid| !command_line(*pid).contains("terminal agent"));
    assert!(!found.is_empty());
    found
}

#[test]
fn a_slow_agent_gets_a_message_once() {
    let place = Place::new("slow", Scenario::new().turn(Turn::say("ok")).after(After::Repeat));
    let terminal = place.launch();
    for (text, pause) in [("one word", 2), ("several\nlines", 6), ("the last", 12)] {
        let cli = cli_of(&place, &terminal);
        cli.iter().for_each(|pid| signal(*pid, Signal::STOP));
        std::thread::scope(|scope| {
            let sent = scope.spawn(|| terminal.send(text, Force::OnlyWhenReady));
            std::thread::sleep(std::time::Duration::from_secs(pause));
            cli.iter().for_each(|pid| signal(*pid, Signal::CONT));
            sent.join().unwrap().unwrap();
        });
        terminal.wait(Until::Completed, LONG).unwrap();
        assert_eq!(place.last_prompt(), text);
    }
    let (turns, _) = terminal.turns().unwrap();
    assert_eq!(turns.len(), 3, "{turns:?}");
}

#[test]
fn a_command_is_run_as_it_was_given() {
    let place = Place::new("command", Scenario::new().turn(Turn::say("ok")).after(After::Repeat));
    let terminal = place.launch();
    let deep = place.home.tmp().join("deep");
    std::fs::create_dir_all(deep.join("inside")).unwrap();
    let command = format!("/directory add {}", deep.display());
    // Completion makes a folder inside, or a slash at the end, of it.
    terminal.command(&command, Force::OnlyWhenReady).unwrap();
    let shown = |wanted: &str| {
        let seen = alhena_testbed::Deadline::after(LONG)
            .wait_until(|| place.capture(&terminal).replace("\n", "").contains(wanted));
        assert!(seen, "{wanted}\n{}", place.capture(&terminal));
    };
    shown("Do you trust the following folders");
    let screen = place.capture(&terminal);
    assert!(screen.lines().any(|line| line.trim() == format!("> {command}")), "{screen}");
    terminal.answer("1").unwrap();
    shown("Successfully added");
    terminal.wait(Until::Idle, LONG).unwrap();
    terminal.command("/stats", Force::OnlyWhenReady).unwrap();
    shown("Session Stats");
    assert_eq!(ask(&terminal, "still there").status, Status::Completed);
}

#[test]
fn whoever_scrolls_in_a_pane_does_not_keep_others_from_typing() {
    let scenario = Scenario::new()
        .turn(Turn::say("ok"))
        .turn(Turn::new().call("run_shell_command", serde_json::json!({"command": "touch allowed.txt"})))
        .turn(Turn::say("done"))
        .turn(Turn::new().text("Working").hang());
    let place = Place::new("copy mode", scenario);
    let terminal = place.launch();
    // A turn of the mouse wheel does it, too.
    let scroll = || {
        let pane = place.pane_of(&terminal);
        place.tmux(&["copy-mode", "-t", &pane, ";", "send-keys", "-t", &pane, "-X", "scroll-up"]);
        assert_eq!(place.tmux(&["display-message", "-p", "-t", &pane, "#{pane_in_mode}"]), "1\n");
    };
    scroll();
    assert_eq!(answer(&terminal, "hello"), "ok");
    assert_eq!(ask(&terminal, "touch").status, Status::Waiting);
    scroll();
    terminal.answer("1").unwrap();
    terminal.wait(Until::Completed, LONG).unwrap();
    assert!(place.work().join("allowed.txt").exists());
    terminal.send("work", Force::OnlyWhenReady).unwrap();
    scroll();
    let reading = terminal.interrupt(LONG).unwrap();
    assert!(Until::Idle.is_met(reading.status), "{reading:?}");
    scroll();
    let exit = terminal.exit(LONG).unwrap();
    assert!(exit.gracefully, "{exit:?}");
}

#[test]
fn hostile_texts_arrive_as_text_and_leave_the_prompt_as_it_was() {
    let place = Place::new("hostile", Scenario::new().turn(Turn::say("ok")).after(After::Repeat));
    let terminal = place.launch();
    let lines = |line: &str| [line; 12].join("\n");
    let texts = [
        // Ends of a paste, and what would follow.
        ("\x1b[201~\r/quit\r", "[201~\n/quit"),
        ("\u{9b}201~\n!id\n", "201~\n!id"),
        ("a\x1b]52;c;L3F1aXQ=\x07b", "a]52;c;L3F1aXQ=b"),
        ("x\x7f\x7f\x7f\x08y\x15\x0b\x17z", "xyz"),
        ("\x03\x04\x1aleft", "left"),
        // Invisible things in front.
        ("\u{200b}\u{feff}/quit", "\u{2060} /quit"),
        ("\u{a0}\u{2003}/quit", "\u{2060} /quit"),
        ("[Pasted Text: 12 lines]", "[Pasted Text: 12 lines]"),
        // Widths.
        ("e\u{301}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{fe0f} ﷽ ｆｕｌｌ \u{10ffff}", ""),
        ("\tindented\n\t\tmore\n   \n.", "indented\n\t\tmore\n   \n."),
        ("'; rm -rf / #{pane_id} %1 $(id) `id` \\; ;", ""),
        ("Press 'Esc' for NORMAL mode.", ""),
        (">   Type your message or", ""),
    ];
    let large = [lines("/quit"), lines("line with \x1b[201~"), "w ".repeat(3000)];
    let large = large.iter().map(|text| (text.as_str(), ""));
    for (text, arrives) in texts.into_iter().chain(large) {
        let sent =
            terminal.send(text, Force::OnlyWhenReady).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
        terminal.wait(Until::Completed, LONG).unwrap();
        let plain: String = text.chars().filter(|c| !c.is_control() || "\n\t".contains(*c)).collect();
        let mark = if sent.marked && arrives.is_empty() { MARK } else { "" };
        let arrives = if arrives.is_empty() { format!("{mark}{}", plain.trim()) } else { arrives.to_owned() };
        assert_eq!(place.last_prompt(), arrives, "{text:?}");
    }
    for nothing in ["", " \t\n", "\u{200b}", "\x1b\x07\r\n"] {
        assert_eq!(
            terminal.send(nothing, Force::OnlyWhenReady).unwrap_err().kind,
            TerminalErrorKind::Usage,
            "{nothing:?}"
        );
    }
    let sent = terminal.send(&"long ".repeat(1 << 18), Force::OnlyWhenReady).unwrap();
    terminal.wait(Until::Completed, LONG).unwrap();
    assert!(sent.file.is_some());
    assert_eq!(terminal.status().unwrap().status, Status::Completed);
}

#[test]
fn a_key_that_a_slow_dialog_does_not_take_at_once_is_not_pressed_again() {
    let call = |name: &str| {
        Turn::new().call("run_shell_command", serde_json::json!({"command": format!("touch {name}")}))
    };
    let scenario = Scenario::new().turn(call("first.txt")).turn(call("second.txt")).turn(Turn::say("ok"));
    let place = Place::new("slow dialog", scenario);
    let terminal = place.launch();
    assert_eq!(ask(&terminal, "go").status, Status::Waiting);
    let cli = cli_of(&place, &terminal);
    cli.iter().for_each(|pid| signal(*pid, Signal::STOP));
    std::thread::scope(|scope| {
        let answered = scope.spawn(|| terminal.answer("1"));
        std::thread::sleep(std::time::Duration::from_secs(6));
        cli.iter().for_each(|pid| signal(*pid, Signal::CONT));
        answered.join().unwrap().unwrap();
    });
    // The next dialog is there, and nobody has answered it.
    let next = || {
        terminal
            .status()
            .unwrap()
            .waiting_for
            .is_some_and(|now| now.detail.unwrap_or_default().contains("second.txt"))
    };
    assert!(alhena_testbed::Deadline::after(LONG).wait_until(next), "{}", place.capture(&terminal));
    assert!(place.work().join("first.txt").exists() && !place.work().join("second.txt").exists());
}
