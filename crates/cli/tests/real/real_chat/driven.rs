//! `alhena chat --control`: a program holds the conversation.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use alhena_scripted::Turn;
use alhena_testbed::Deadline;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{chat, lab, told};
use crate::lab::{Lab, shell, write_file};

/// The program's side.
pub struct Program {
    pub child: Child,
    stdin: Option<ChildStdin>,
    pub lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(lab: &Lab, args: &[&str]) -> Self {
        let mut command = chat(lab, &["--control"]);
        command.args(args);
        Self::of(command)
    }

    pub fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { stdin: child.stdin.take(), lines, child }
    }

    fn say(&mut self, line: impl std::fmt::Display) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn prompt(&mut self, text: &str) {
        self.say(json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    pub fn request(&mut self, request: &Value) {
        self.say(json!({"type": "control_request", "request_id": "r", "request": request}));
    }

    fn answer(&mut self, question: &Value, answer: &Value) {
        let id = &question["request_id"];
        self.say(json!({"type": "control_response", "response": {"subtype": "success", "request_id": id, "response": answer}}));
    }

    /// The next line of a type, with those before it passed over.
    pub fn next(&mut self, kind: &str) -> Value {
        let mut lines =
            self.lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        lines.find(|line| line["type"] == kind).unwrap_or_else(|| panic!("no {kind} came"))
    }

    /// The result of the next turn: status, last text and messages.
    fn result(&mut self) -> (String, String, Value) {
        let result = self.next("result");
        let text = |key: &str| result["outcome"][key].as_str().unwrap().to_owned();
        (text("status"), text("final_text"), result["messages"].clone())
    }

    pub fn end(mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
}

#[test]
fn real_cli_a_program_holds_a_conversation_and_is_asked() {
    let edit =
        json!({"file_path": "a.txt", "old_string": "two", "new_string": "2", "instruction": "shorten"});
    let lab = lab(
        "chat control",
        [
            write_file("made.txt", "made\n"),
            Turn::say("Written."),
            Turn::new().call("replace", edit),
            Turn::say("Edited."),
            Turn::new().call("run_shell_command", json!({"command": "touch never", "dir_path": "sub"})),
            Turn::say("Then not."),
            shell("touch once"),
            shell("touch once"),
            Turn::say("Twice."),
            Turn::new().text("Thinking").hang(),
            write_file("free.txt", "free\n"),
            Turn::say("Back."),
        ],
    );
    std::fs::write(lab.workspace().join("a.txt"), "one two three\n").unwrap();
    std::fs::create_dir(lab.workspace().join("sub")).unwrap();
    let mut program = Program::start(&lab, &[]);
    program.request(&json!({"subtype": "initialize"}));
    assert_eq!(program.next("control_response")["response"]["subtype"], "success");
    // What makes no sense costs nothing.
    program.say("rubbish");
    program.say(json!({"type": "unheard of"}));
    program.answer(&json!({"request_id": "nobody asked"}), &json!({"behavior": "allow"}));
    for wrong in [
        json!({"subtype": "fly"}),
        json!({"subtype": "set_permission_mode", "mode": "fly"}),
        json!({"subtype": "set_model", "model": 7}),
    ] {
        program.request(&wrong);
        assert_eq!(program.next("control_response")["response"]["subtype"], "error", "{wrong}");
    }
    program.prompt(" \n");
    assert_eq!(program.result().0, "failed");

    program.prompt("write");
    let question = program.next("control_request");
    let asked = &question["request"];
    assert_eq!((&asked["subtype"], &asked["tool_name"]), (&json!("can_use_tool"), &json!("Write")));
    assert_eq!(asked["input"], json!({"file_path": "made.txt", "content": "made\n"}));
    program.answer(&question, &json!({"behavior": "allow"}));
    let (status, text, first) = program.result();
    assert_eq!((status.as_str(), text.as_str()), ("success", "Written."));
    // It was asked about what the messages tell.
    assert_eq!(first[1]["content"][0]["id"], asked["tool_use_id"]);
    assert_eq!(std::fs::read_to_string(lab.workspace().join("made.txt")).unwrap(), "made\n");

    // An edit is asked about with the old and the new text.
    program.prompt("edit");
    let question = program.next("control_request");
    let asked = &question["request"];
    let (tool, input) = (&asked["tool_name"], &asked["input"]);
    assert_eq!((tool, &input["file_path"]), (&json!("Edit"), &json!("a.txt")), "{asked}");
    let texts = (&input["old_string"], &input["new_string"]);
    assert_eq!(texts, (&json!("two"), &json!("2")), "{asked}");
    let edited = || std::fs::read_to_string(lab.workspace().join("a.txt")).unwrap();
    assert_eq!(edited(), "one two three\n");
    program.answer(&question, &json!({"behavior": "allow"}));
    assert_eq!((program.result().1.as_str(), edited().as_str()), ("Edited.", "one 2 three\n"));

    // Half an answer is none, and neither is one that wants more than can be done.
    program.prompt("shell");
    let question = program.next("control_request");
    // Where it would run is a part of what is asked.
    assert_eq!(question["request"]["title"], "touch never [in sub]");
    program.answer(&question, &json!({"behavior": "allow", "updatedInput": {"command": "touch other"}}));
    let (_, text, second) = program.result();
    assert_eq!(text, "Then not.");
    assert!(!lab.workspace().join("sub/never").exists() && !lab.workspace().join("sub/other").exists());
    assert!(told(&lab).contains("cannot be changed"), "the model was not told why");
    // Every message of every turn has a name of its own.
    let ids = |messages: &Value| -> Vec<String> {
        messages
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(ids(&first).iter().all(|id| !ids(&second).contains(id)), "{first} {second}");

    program.prompt("the same twice");
    let question = program.next("control_request");
    program.answer(&question, &json!({"behavior": "allow", "remember": true}));
    assert_eq!(program.result().1, "Twice.");
    assert!(lab.workspace().join("once").exists());

    program.prompt("hang");
    while program.next("event")["event"]["type"] != "text" {}
    program.request(&json!({"subtype": "interrupt"}));
    assert_eq!(program.result().0, "cancelled");
    program.request(&json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}));
    program.prompt("go on");
    assert_eq!(program.result().1, "Back.");
    assert!(lab.workspace().join("free.txt").exists());
    assert_eq!(program.end(), Some(130), "the exit code of the last turn that failed");
    lab.nothing_is_left();
}

#[test]
fn real_cli_a_program_that_says_nothing_any_more_allows_nothing() {
    let lab = lab("chat control mute", [shell("touch never"), Turn::say("Then not.")]);
    let mut program = Program::start(&lab, &[]);
    program.prompt("shell");
    program.next("control_request");
    program.stdin = None;
    assert_eq!(program.result().1, "Then not.");
    assert!(!lab.workspace().join("never").exists());
    assert_eq!(program.end(), Some(0));
    lab.nothing_is_left();
}

#[test]
fn real_cli_a_program_that_is_gone_leaves_nothing() {
    let lab = lab("chat control gone", [Turn::new().text("Thinking").hang().always()]);
    let mut program = Program::start(&lab, &["--timeout=none", "--stall-timeout=none"]);
    program.prompt("hang");
    while program.next("event")["event"]["type"] != "text" {}
    let Program { mut child, stdin, lines } = program;
    drop((stdin, lines));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    lab.nothing_is_left();
}

#[test]
fn real_cli_what_a_program_was_asked_is_withdrawn_as_soon_as_no_answer_counts() {
    // Behind the second question, too: its time may be over before its turn is interrupted.
    let goes_on = || Turn::new().text("On ").hang();
    let lab = lab("chat control late", [shell("touch never"), goes_on(), shell("touch never"), goes_on()]);
    let mut program = Program::start(&lab, &["--permission-timeout", "500ms"]);
    program.prompt("shell");
    let question = program.next("control_request");
    // The turn goes on, and hangs: it is not its end that withdraws the question.
    let withdrawn = program.next("control_cancel_request");
    assert_eq!(withdrawn["request_id"], question["request_id"]);
    while program.next("event")["event"]["type"] != "text" {}
    program.answer(&question, &json!({"behavior": "allow"}));
    program.request(&json!({"subtype": "interrupt"}));
    assert_eq!(program.result().0, "cancelled");
    program.prompt("shell again");
    let question = program.next("control_request");
    program.request(&json!({"subtype": "interrupt"}));
    assert_eq!(program.next("control_cancel_request")["request_id"], question["request_id"]);
    assert_eq!(program.result().0, "cancelled");
    assert!(!lab.workspace().join("never").exists());
    program.end();
    lab.nothing_is_left();
}

#[test]
fn real_cli_a_signal_ends_the_turn_with_a_result_and_leaves_nothing() {
    let lab = lab("chat control signal", [shell("touch begun; sleep 300")]);
    let mut program = Program::start(&lab, &["--approval", "yolo"]);
    program.prompt("sleep");
    program.prompt("never");
    let deadline = Deadline::after(Duration::from_secs(120));
    assert!(deadline.wait_until(|| lab.workspace().join("begun").exists()));
    kill_process(Pid::from_child(&program.child), Signal::INT).unwrap();
    let result = program.next("result");
    assert_eq!(result["outcome"]["status"], "cancelled", "{result}");
    assert_eq!(result["outcome"]["commands"][0]["command"], "touch begun; sleep 300", "{result}");
    assert!(program.lines.next().is_none(), "the second prompt was taken");
    assert_eq!(program.end(), Some(130));
    lab.nothing_is_left();
}

#[test]
fn real_cli_a_conversation_that_cannot_begin_tells_the_program_why() {
    let lab = lab("chat control never", []);
    let mut program = Program::start(&lab, &["--dir=/nonexistent"]);
    let result = program.next("result");
    assert_eq!(result["outcome"]["failure"]["message"], "`dir`: /nonexistent is not a directory");
    assert_eq!(program.end(), Some(2));
}
