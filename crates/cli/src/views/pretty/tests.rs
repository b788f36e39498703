use std::sync::Arc;

use alhena_model::{Timestamp, Usage};
use parking_lot::Mutex;
use serde_json::json;

use super::*;

/// Where a view prints, for a test to read.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    fn shows(&self) -> String {
        String::from_utf8(self.0.lock().clone()).unwrap()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Watched {
    OnTerminal,
    InFile,
}

fn pretty(watched: Watched) -> (Pretty, Screen) {
    let screen = Screen::default();
    let terminal = matches!(watched, Watched::OnTerminal);
    let target = Target { out: Box::new(screen.clone()), terminal, colours: Colours::Off };
    (Pretty::new(target, true, Claims::Checked), screen)
}

fn happens(view: &mut Pretty, kind: EventKind) {
    view.event(&Event { seq: 0, at: Timestamp::default(), source: Source::Session, kind }).unwrap();
}

fn text(words: &str) -> EventKind {
    EventKind::Text { delta: words.to_owned() }
}

fn thought(words: &str) -> EventKind {
    EventKind::Thinking { subject: "Plan".to_owned(), text: words.to_owned() }
}

fn call(name: &str, class: Class, input: serde_json::Value) -> EventKind {
    EventKind::ToolCall {
        id: "1".to_owned(),
        name: name.to_owned(),
        class,
        claude_name: name.to_owned(),
        input: Box::new(input),
    }
}

fn result(name: &str, output: &str) -> EventKind {
    EventKind::ToolResult {
        id: "1".to_owned(),
        name: name.to_owned(),
        ok: true,
        output: Some(output.to_owned()),
        error: None,
        exit_code: None,
        cancelled: None,
    }
}

#[test]
fn text_is_shown_at_once_and_its_line_ends_when_a_tool_starts() {
    let (mut view, screen) = pretty(Watched::OnTerminal);
    happens(&mut view, text("Now I wait. "));
    assert_eq!(screen.shows(), "Now I wait. ");
    happens(&mut view, call("run_shell_command", Class::Command, json!({"command": "sleep 4"})));
    assert_eq!(screen.shows(), "Now I wait. \n");
    happens(&mut view, result("run_shell_command", "done"));
    assert_eq!(screen.shows(), "Now I wait. \n✓ $ sleep 4 → done\n");
}

#[test]
fn a_thought_stands_before_what_it_led_to() {
    let (mut view, screen) = pretty(Watched::InFile);
    happens(&mut view, text("I list. "));
    happens(&mut view, call("list_directory", Class::FileRead, json!({"dir_path": "."})));
    happens(&mut view, thought("to list"));
    happens(&mut view, result("list_directory", ""));
    happens(&mut view, text("Two "));
    happens(&mut view, text("files."));
    happens(&mut view, thought("to count"));
    happens(&mut view, EventKind::Usage(alhena_model::CallUsage { call: None, usage: Usage::default() }));
    assert_eq!(screen.shows(), "∴ Plan: to list\nI list. \n✓ list .\n∴ Plan: to count\nTwo files.");
}

#[test]
fn a_thought_that_comes_after_its_text_was_shown_says_so() {
    let (mut view, screen) = pretty(Watched::OnTerminal);
    happens(&mut view, text("Two files."));
    happens(&mut view, thought("to count"));
    assert_eq!(screen.shows(), "Two files.\n∴ earlier: Plan: to count\n");
}

#[test]
fn a_written_file_is_told_of_once() {
    let (mut view, screen) = pretty(Watched::OnTerminal);
    happens(&mut view, call("write_file", Class::FileWrite, json!({"file_path": "a.txt"})));
    happens(&mut view, result("write_file", "Successfully created and wrote to new file: a.txt."));
    assert_eq!(screen.shows(), "✓ write a.txt\n");
}

#[test]
fn long_lines_are_left_to_the_terminal() {
    let (mut view, screen) = pretty(Watched::OnTerminal);
    let command = "echo a long line; ".repeat(20);
    happens(&mut view, call("run_shell_command", Class::Command, json!({"command": command.clone()})));
    happens(&mut view, result("run_shell_command", ""));
    assert_eq!(screen.shows(), format!("✓ $ {}\n", command.trim()));
}
