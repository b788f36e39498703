//! `alhena chat` on a terminal and without one: the real CLI against the scripted API.

mod claude;
mod driven;
pub mod screen;
mod together;
mod withdrawn;

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::lab::{ALHENA, Lab};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::processes_with_env;
use screen::Screen;
use serde_json::{Value, json};

const VERSION: &str = "0.61.0";

fn chat(lab: &Lab, args: &[&str]) -> Command {
    let mut command = Command::new(ALHENA);
    command.env_clear().envs(lab.env.iter()).env_remove("NO_COLOR").current_dir(lab.workspace());
    command.args(["chat", "--model", "gemini-2.5-flash", "--gemini"]).arg(&lab.gemini.path).args(args);
    command
}

fn lab(name: &str, turns: impl IntoIterator<Item = Turn>) -> Lab {
    Lab::real(name, VERSION, turns.into_iter().fold(Scenario::new(), Scenario::turn))
}

fn shell(command: &str) -> Turn {
    Turn::new().call("run_shell_command", json!({ "command": command }))
}

fn write(path: &str, content: &str) -> Turn {
    Turn::new().call("write_file", json!({ "file_path": path, "content": content }))
}

/// What the model was told of its tool calls, in all requests.
fn told(lab: &Lab) -> String {
    lab.server.requests("lab").iter().map(|request| request.body.to_string()).collect()
}

fn home_of(lab: &Lab) -> String {
    format!("ALHENA_HOME={}", lab.home.path().join("alhena").display())
}

/// The CLIs of the lab.
fn agents(lab: &Lab) -> Vec<u32> {
    let all = processes_with_env(&home_of(lab)).into_iter();
    all.filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"--acp")
    })
    .collect()
}

/// Nothing with the lab's home in its environment lives on.
fn nothing_is_left(lab: &Lab) {
    let home = home_of(lab);
    let deadline = alhena_testbed::Deadline::after(std::time::Duration::from_secs(30));
    assert!(deadline.wait_until(|| processes_with_env(&home).is_empty()), "{:?}", processes_with_env(&home));
}

#[test]
fn real_cli_answers_are_streamed_thoughts_folded_and_questions_answered_once_always_or_not() {
    let lab = lab(
        "chat permissions",
        [
            Turn::new().thought("Planning", "A long thought\nabout much.").text("Hello from the model."),
            shell("touch once"),
            Turn::say("First done."),
            shell("touch always"),
            Turn::say("Second done."),
            shell("rm always; touch always"),
            shell("touch always"),
            Turn::say("Third done."),
            Turn::say("Fourth."),
        ],
    );
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("hello");
    screen.wait_for("Hello from the model.");
    screen.wait_for("done ·");
    screen.say("make once");
    screen.wait_for(" Run");
    screen.wait_for("touch once");
    screen.answer("y");
    screen.wait_for("First done.");
    assert!(lab.workspace().join("once").exists());
    screen.say("make always");
    screen.answer("a");
    screen.wait_for("Second done.");
    assert!(lab.workspace().join("always").exists());
    // Another command is asked about, with a reason against it; the very same is not.
    screen.say("again");
    screen.wait_for("rm always; touch always");
    screen.answer("use git rm");
    screen.wait_for("Third done.");
    screen.say("well?");
    screen.wait_for("Fourth.");
    assert!(told(&lab).contains("Reason: use git rm"), "the model was not told why");
    screen.say("/exit");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert_eq!(screen.seen.matches("or a reason: ").count(), 3, "{}", screen.seen);
    assert!(screen.seen.contains("∴") && !screen.seen.contains("about much"), "{}", screen.seen);
    nothing_is_left(&lab);
}

#[test]
fn real_cli_a_no_is_a_no_and_what_was_typed_before_the_question_is_no_answer() {
    let lab = lab(
        "chat no",
        [
            Turn::new()
                .text("Wait. ")
                .gate("typed")
                .call("run_shell_command", json!({ "command": "touch never" })),
            Turn::say("Then not."),
        ],
    );
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("go");
    screen.wait_for("Wait.");
    screen.press("y\r");
    screen.wait_for("y");
    lab.server.release("lab", "typed");
    screen.answer("n");
    screen.wait_for("Then not.");
    screen.say("/exit");
    assert!(screen.ended().success());
    assert!(!lab.workspace().join("never").exists());
}

#[test]
fn real_cli_a_change_is_shown_as_a_diff_and_undo_takes_it_back() {
    let lab = lab(
        "chat undo",
        [
            Turn::new().call("replace", json!({ "file_path": "a.txt", "old_string": "two", "new_string": "zwei", "instruction": "in German" })),
            write("new.txt", "made\n"),
            write("Cargo.toml", "[package]\n"),
            Turn::say("Changed."),
        ],
    );
    fs::write(lab.workspace().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("change");
    for (sees, answer) in [("+ zwei", "y"), ("+ made", "y"), ("+ [package]", "y")] {
        screen.wait_for(sees);
        screen.answer(answer);
    }
    screen.wait_for("Changed.");
    let read = |name: &str| fs::read_to_string(lab.workspace().join(name)).ok();
    assert_eq!(read("a.txt").as_deref(), Some("one\nzwei\nthree\n"));
    assert_eq!(read("new.txt").as_deref(), Some("made\n"));
    screen.wait_for("done ·");
    // Somebody else changes one of them.
    fs::write(lab.workspace().join("Cargo.toml"), "[package]\nname = \"x\"\n").unwrap();
    screen.say("/undo");
    screen.wait_for("has changed since");
    screen.say("/exit");
    assert!(screen.ended().success());
    assert_eq!(read("a.txt").as_deref(), Some("one\ntwo\nthree\n"), "{}", screen.seen);
    assert_eq!(read("new.txt"), None, "{}", screen.seen);
    assert_eq!(read("Cargo.toml").as_deref(), Some("[package]\nname = \"x\"\n"));
    assert!(
        screen.seen.contains("\u{1b}[32m+ zwei") && screen.seen.contains("\u{1b}[31m- two"),
        "{}",
        screen.seen
    );
}

#[test]
fn real_cli_ctrl_c_cancels_a_turn_in_mid_stream_and_twice_ends_the_conversation() {
    let lab = lab(
        "chat ^C",
        [Turn::new().text("Begun. ").hang(), Turn::say("Still here."), Turn::new().text("Again. ").hang()],
    );
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("slow");
    screen.wait_for("Begun.");
    screen.press("\u{3}");
    screen.wait_for("cancelled ·");
    screen.say("and now");
    screen.wait_for("Still here.");
    screen.say("slow again");
    screen.wait_for("Again.");
    screen.press("\u{3}");
    screen.wait_for("cancelled ·");
    screen.wait_for("> ");
    screen.press("\u{3}");
    assert_eq!(screen.ended().code(), Some(130), "{}", screen.seen);
    nothing_is_left(&lab);
}

#[test]
fn real_cli_ctrl_c_at_the_prompt_ends_it_only_when_pressed_twice() {
    let lab = lab("chat ^C at the prompt", [Turn::say("Hi.")]);
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.wait_for("> ");
    screen.press("half a line\u{3}");
    screen.wait_for("^C again");
    screen.say("hello");
    screen.wait_for("Hi.");
    screen.wait_for("> ");
    screen.press("\u{3}");
    screen.wait_for("^C again");
    screen.wait_for("> ");
    screen.press("\u{3}");
    assert_eq!(screen.ended().code(), Some(130));
    nothing_is_left(&lab);
}

#[test]
fn real_cli_nothing_in_an_answer_is_obeyed_by_the_terminal() {
    let evil = "\u{1b}[35mzorg\u{1b}]52;c;cm0=\u{7}\u{9b}7m\u{1b}[2J\u{202e}";
    let lab = lab(
        "chat hostile",
        [
            Turn::new().thought(evil, evil).text(evil),
            shell(&format!("touch '{evil}'")),
            write("x.txt", &format!("{evil}\n")),
            Turn::say(evil),
        ],
    );
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("hello");
    screen.wait_for("zorg");
    screen.wait_for("done ·");
    screen.say("more");
    screen.answer("n");
    screen.answer("n");
    screen.wait_for("done ·");
    screen.say("/exit");
    assert!(screen.ended().success());
    for bad in ["\u{1b}[35m", "\u{1b}]52", "\u{9b}", "\u{1b}[2J", "\u{202e}", "\u{7}"] {
        assert!(!screen.seen.contains(bad), "{bad:?} in {:?}", screen.seen);
    }
    // Whoever is asked sees what is hidden in it.
    assert!(screen.seen.contains("\\u001b[35mzorg"), "{}", screen.seen);
}

#[test]
fn real_cli_rules_decide_before_anybody_is_asked() {
    let lab = lab(
        "chat rules",
        [
            shell("touch allowed"),
            shell("touch allowed; touch denied"),
            shell("touch x && rm allowed"),
            Turn::say("End."),
        ],
    );
    let rules = lab.workspace().join("rules.toml");
    fs::write(&rules, "deny = [\"shell(rm *)\"]\n").unwrap();
    let args = ["--allow", "shell(touch allowed)", "--rules", "rules.toml"];
    let mut screen = Screen::start(chat(&lab, &args));
    screen.say("go");
    screen.wait_for("touch allowed; touch denied");
    screen.answer("n");
    screen.wait_for("End.");
    screen.say("/exit");
    assert!(screen.ended().success());
    assert_eq!(screen.seen.matches("or a reason: ").count(), 1, "{}", screen.seen);
    assert!(lab.workspace().join("allowed").exists());
    assert!(!lab.workspace().join("denied").exists() && !lab.workspace().join("x").exists());
    assert!(screen.seen.contains("denied by the rule shell(rm *)"), "{}", screen.seen);
}

#[test]
fn real_cli_what_rules_deny_is_not_done_in_any_mode_nor_by_tools_that_never_ask() {
    let lab = lab(
        "run rules",
        [
            shell("touch made; rm -f keep"),
            write("secret.env", "x"),
            Turn::new().call("read_file", json!({ "file_path": "private/key" })),
            Turn::new().call("read_file", json!({ "file_path": "open.txt" })),
            shell("touch made"),
            Turn::say("End."),
        ],
    );
    for (name, text) in [("keep", "k"), ("private/key", "PRIVATE-KEY-TEXT"), ("open.txt", "OPEN-TEXT")] {
        lab.home.write(name, text).unwrap();
    }
    let rules = ["--deny", "shell(rm *)", "--deny", "edit(*.env)", "--deny", "read(private)"];
    let mut command = lab.command(&["--transport", "acp", "--approval", "yolo", "--as", "outcome", "go"]);
    let done = command.args(["--model", "gemini-2.5-flash"]).args(rules).output().unwrap();
    let outcome: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(
        (&outcome["status"], &outcome["final_text"]),
        (&json!("success"), &json!("End.")),
        "{outcome:#}"
    );
    assert!(lab.workspace().join("keep").exists() && lab.workspace().join("made").exists());
    assert!(!lab.workspace().join("secret.env").exists());
    let told = told(&lab);
    assert!(told.contains("OPEN-TEXT") && !told.contains("PRIVATE-KEY-TEXT"), "{told}");
    // Headless nobody could keep them.
    let refused = lab.command(&["--deny", "shell(rm *)", "go"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn real_cli_a_hook_decides_in_every_turn_of_a_chat() {
    let turns = [write("a.txt", "x"), Turn::say("One."), write("b.txt", "x"), Turn::say("Two.")];
    let lab = lab("chat hook", turns);
    let hook = r#"before-tool=grep -q a.txt && echo '{"decision":"deny","reason":"no a"}' || echo '{"decision":"allow"}'"#;
    let done = piped(chat(&lab, &["--approval", "auto-edit", "--hook", hook]), "first\nsecond\n");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(!lab.workspace().join("a.txt").exists() && lab.workspace().join("b.txt").exists());
    assert!(told(&lab).contains("no a"));
}

#[test]
fn real_cli_mode_model_and_session_are_changed_on_the_way() {
    let lab =
        lab("chat changes", [Turn::say("One."), shell("touch yolo"), Turn::say("Two."), Turn::say("Three.")]);
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("first words");
    screen.wait_for("One.");
    screen.say("/mode yolo");
    screen.wait_for("Everything");
    screen.say("/model gemini-2.5-pro");
    screen.wait_for("From the next prompt on");
    screen.say("touch");
    screen.wait_for("Two.");
    screen.say("/mode nonsense");
    screen.wait_for("unknown approval mode");
    screen.say("/exit");
    assert!(screen.ended().success());
    assert!(lab.workspace().join("yolo").exists());
    assert_eq!(lab.server.requests("lab").last().unwrap().model, "gemini-2.5-pro");
    // And back to it later.
    let mut screen = Screen::start(chat(&lab, &[]));
    screen.say("/resume latest");
    screen.say("go on");
    screen.wait_for("Three.");
    screen.say("/exit");
    assert!(screen.ended().success());
    let last = lab.server.requests("lab").last().unwrap().body.to_string();
    assert!(last.contains("first words"), "{last}");
}

fn piped(mut command: Command, input: &str) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn real_cli_without_a_terminal_lines_are_prompts_and_questions_are_rejected() {
    let lab =
        lab("chat piped", [Turn::say("One."), shell("touch never"), Turn::say("Two."), Turn::say("Three.")]);
    let done = piped(chat(&lab, &[]), "first\nsecond\n");
    let text = String::from_utf8(done.stdout).unwrap();
    assert_eq!(text, "One.\nTwo.\n", "{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && !lab.workspace().join("never").exists());
    // The same for programs.
    let done = piped(chat(&lab, &["--json"]), "third\n");
    let events: Vec<Value> = String::from_utf8(done.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.last().unwrap()["type"], "finished");
    assert_eq!(events.last().unwrap()["outcome"]["text"], "Three.");
    nothing_is_left(&lab);
}
