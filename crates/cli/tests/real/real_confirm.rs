//! A person is asked on a terminal before a tool runs, by the real CLI.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::lab::Lab;
use crate::real_chat::screen::Screen;
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::run_bounded;
use serde_json::json;

fn writes() -> Scenario {
    let write = json!({"file_path": "n.txt", "content": "one\nnew\n"});
    Scenario::new().turn(Turn::new().text("Let me. ").call("write_file", write)).turn(Turn::say("Well."))
}

fn lab(name: &str, scenario: Scenario) -> Lab {
    Lab::real(name, "0.61.0", scenario)
}

fn run(lab: &Lab, args: &[&str]) -> Command {
    let mut all = vec!["--trust", "--approval", "yolo", "-m", "gemini-2.5-flash"];
    all.extend(args);
    let mut command = lab.command(&all);
    command.env_remove("NO_COLOR");
    command
}

/// What the model was told at last.
fn last_request(lab: &Lab) -> String {
    lab.server.requests("lab").last().unwrap().raw_body.clone()
}

#[test]
fn real_cli_a_yes_lets_a_tool_run_after_its_diff_was_shown_headless_and_over_acp() {
    for transport in ["headless", "acp"] {
        let lab = lab(transport, writes());
        std::fs::write(lab.workspace().join("n.txt"), "one\nold\n").unwrap();
        let mut screen =
            Screen::start(run(&lab, &["--transport", transport, "--confirm", "write_file", "go"]));
        screen.wait_for("Change n.txt");
        screen.wait_for("- old");
        screen.wait_for("+ new");
        screen.answer("y");
        screen.wait_for("Well.");
        assert!(screen.ended().success(), "{transport}: {}", screen.seen);
        assert_eq!(
            std::fs::read_to_string(lab.workspace().join("n.txt")).unwrap(),
            "one\nnew\n",
            "{transport}"
        );
    }
}

#[test]
fn real_cli_a_no_a_reason_and_the_end_of_input_are_a_no_and_the_tool_never_ran() {
    for (transport, keys, told) in [
        ("headless", "n\r", "the user said no"),
        ("headless", "\r", "the user said no"),
        ("headless", "use tabs, please\r", "use tabs, please"),
        ("headless", "\u{4}", "nobody answered"),
        ("acp", "not like this\r", "not like this"),
    ] {
        let lab = lab("no", writes());
        let args = ["--transport", transport, "--confirm", "write_file", "--as", "outcome", "go"];
        let mut screen = Screen::start(run(&lab, &args));
        screen.wait_for("or a reason: ");
        screen.press(keys);
        screen.wait_for("\"status\": \"success\"");
        assert!(screen.ended().success(), "{}", screen.seen);
        assert!(!lab.workspace().join("n.txt").exists(), "{transport} {keys:?}");
        assert!(last_request(&lab).contains(told), "{transport} {keys:?}");
        if transport == "headless" {
            let warning = format!("A call of write_file was not confirmed: {told}");
            assert!(screen.seen.contains(&warning), "{}", screen.seen);
        }
    }
}

#[test]
fn real_cli_what_nobody_answers_in_time_is_denied() {
    let lab = lab("late", writes());
    let mut screen =
        Screen::start(run(&lab, &["--confirm", "write_file", "--permission-timeout", "1s", "go"]));
    screen.wait_for("or a reason: ");
    screen.wait_for("Well.");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert!(!lab.workspace().join("n.txt").exists());
    assert!(last_request(&lab).contains("nobody answered in time"));
}

#[test]
fn real_cli_ctrl_c_at_the_question_ends_the_run_and_the_tool_never_ran() {
    let lab = lab("interrupted", writes());
    let mut screen = Screen::start(run(&lab, &["--confirm", "write_file", "go"]));
    screen.wait_for("or a reason: ");
    screen.press("\u{3}");
    assert_eq!(screen.ended().code(), Some(130), "{}", screen.seen);
    assert!(!lab.workspace().join("n.txt").exists());
}

#[test]
fn real_cli_only_the_commands_that_are_named_are_asked_about_and_what_was_typed_before_is_no_answer() {
    let shell = |command: &str| Turn::new().call("run_shell_command", json!({ "command": command }));
    let scenario = Scenario::new()
        .turn(shell("touch free"))
        .turn(
            Turn::new()
                .text("Wait. ")
                .gate("typed")
                .call("run_shell_command", json!({"command": "cd . && rm free"})),
        )
        .turn(Turn::say("Well."));
    let lab = lab("commands", scenario);
    let mut screen = Screen::start(run(&lab, &["--confirm", "run_shell_command(rm)", "go"]));
    screen.wait_for("Wait.");
    screen.press("y\r");
    screen.wait_for("y");
    lab.server.release("lab", "typed");
    screen.wait_for("Run");
    screen.wait_for("cd . && rm free");
    screen.answer("n");
    screen.wait_for("Well.");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert!(lab.workspace().join("free").exists());
}

#[test]
fn real_cli_hooks_decide_before_a_person_is_asked_and_what_they_change_is_what_is_shown() {
    let lab = lab("both", writes());
    let hook = r#"before-tool=echo '{"decision":"allow","input":{"file_path":"n.txt","content":"the hook'"'"'s\\n"}}'"#;
    let mut screen = Screen::start(run(&lab, &["--confirm", "write_file", "--hook", hook, "go"]));
    screen.wait_for("+ the hook's");
    screen.answer("y");
    screen.wait_for("Well.");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert_eq!(std::fs::read_to_string(lab.workspace().join("n.txt")).unwrap(), "the hook's\n");
}

#[test]
fn real_cli_of_two_tools_at_once_each_is_asked_about_by_itself() {
    let write = |path: &str| json!({"file_path": path, "content": "x\n"});
    let both = Turn::new().call("write_file", write("a.txt")).call("write_file", write("b.txt"));
    let lab = lab("two", Scenario::new().turn(both).turn(Turn::say("Well.")));
    let mut screen = Screen::start(run(&lab, &["--confirm", "edit", "go"]));
    for _ in 0..2 {
        screen.wait_for("Write ");
        screen.wait_for("or a reason: ");
        // Which comes first is not said.
        let last = screen.seen.rfind("Write a.txt") > screen.seen.rfind("Write b.txt");
        screen.press(if last { "y\r" } else { "n\r" });
    }
    screen.wait_for("Well.");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert!(lab.workspace().join("a.txt").exists() && !lab.workspace().join("b.txt").exists());
}

#[test]
fn real_cli_nothing_that_is_asked_about_is_obeyed_by_the_terminal() {
    let write = json!({"file_path": "n\u{1b}[2J.txt", "content": "\u{1b}]0;title\u{7}\n"});
    let scenario = Scenario::new().turn(Turn::new().call("write_file", write)).turn(Turn::say("Well."));
    let lab = lab("hostile", scenario);
    let mut screen = Screen::start(run(&lab, &["--confirm", "*", "go"]));
    screen.wait_for("or a reason: ");
    screen.press("n\r");
    assert!(screen.ended().success(), "{}", screen.seen);
    assert!(!screen.seen.contains("\u{1b}[2J") && !screen.seen.contains("\u{1b}]0;"), "{:?}", screen.seen);
}

#[test]
fn who_cannot_be_asked_and_what_is_no_tool_is_refused_before_the_start() {
    let lab = lab("nobody", writes());
    let mut command = run(&lab, &["--confirm", "write_file", "go"]);
    // SAFETY: a plain system call.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::setsid().map(|_| ())?));
    }
    let done = run_bounded(&mut command, Duration::from_secs(60)).unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", done.stderr_text());
    assert!(done.stderr_text().contains("there is no terminal"), "{}", done.stderr_text());
    assert!(done.stderr_text().contains("--hook before-tool=COMMAND"), "{}", done.stderr_text());
    let done =
        run_bounded(&mut run(&lab, &["--confirm", "write_fil", "go"]), Duration::from_secs(60)).unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(done.stderr_text().contains("did you mean write_file?"), "{}", done.stderr_text());
    assert_eq!(lab.server.requests("lab").len(), 0);
}

#[test]
fn real_cli_a_hidden_command_is_asked_about_headless_and_over_acp() {
    for (transport, command) in [("headless", "true && \\\n  touch M"), ("acp", "$\\\n'\\x74ouch' M")] {
        let call = Turn::new().call("run_shell_command", json!({"command": command}));
        let lab = lab("hidden", Scenario::new().turn(call).turn(Turn::say("Well.")));
        let args = ["--transport", transport, "--confirm", "run_shell_command(touch)", "go"];
        let mut screen = Screen::start(run(&lab, &args));
        screen.answer("n");
        screen.wait_for("Well.");
        assert!(screen.ended().success(), "{transport}: {}", screen.seen);
        assert!(!lab.workspace().join("M").exists(), "{transport}");
    }
}
