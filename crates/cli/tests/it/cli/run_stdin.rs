//! `alhena run` and its standard input: everything that is piped in is sent, and nothing is waited for without end.

use std::io::{PipeReader, Read, Write};
use std::process::{Child, Command, Stdio};

use alhena_testbed::{Hostile, Script};

use super::run::desk_with;

const WAITING: &str = "Waiting for input on stdin; `< /dev/null` or --no-stdin runs without it.\n";

fn prompt(hostile: &Hostile) -> Option<String> {
    hostile.starts().unwrap().last()?.argv.iter().find(|argument| argument.starts_with("--prompt=")).cloned()
}

fn start(command: &mut Command, stdin: impl Into<Stdio>) -> (Child, PipeReader) {
    let (reader, writer) = std::io::pipe().unwrap();
    let child = command.stdin(stdin).stdout(Stdio::null()).stderr(writer).spawn().unwrap();
    command.stderr(Stdio::null());
    (child, reader)
}

/// The exit code of a run with this on its stdin, its messages, and the prompt that Gemini CLI got.
fn run(args: &[&str], stdin: impl Into<Stdio>) -> (Option<i32>, String, Option<String>) {
    let (desk, hostile) = desk_with(Script::normal());
    let (mut child, mut messages) = start(&mut desk.command(&[&["run"], args].concat()), stdin);
    let code = child.wait().unwrap().code();
    let mut said = String::new();
    messages.read_to_string(&mut said).unwrap();
    (code, said, prompt(&hostile))
}

#[test]
fn a_pipe_that_begins_late_is_read_to_its_end() {
    let (desk, hostile) = desk_with(Script::normal());
    let (stdin, mut producer) = std::io::pipe().unwrap();
    let (mut child, mut messages) = start(&mut desk.command(&["run", "hello"]), stdin);
    let mut said = vec![0; WAITING.len()];
    messages.read_exact(&mut said).unwrap();
    assert_eq!(String::from_utf8(said).unwrap(), WAITING);
    producer.write_all(b"late").unwrap();
    drop(producer);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(prompt(&hostile).as_deref(), Some("--prompt=late\n\nhello"));
}

/// The only test that waits the whole time; the others are at the function that reads.
#[test]
fn a_pipe_that_stays_silent_is_refused_with_the_fix() {
    let (stdin, _open) = std::io::pipe().unwrap();
    let (code, said, prompt) = run(&["hello"], stdin);
    let refused = format!(
        "{WAITING}error: stdin is open, but nothing arrived within 30 s\nhint: Put `< /dev/null` behind the command or use --no-stdin to run without input; save the output of a slow command to a file and pass it by `< FILE`.\n"
    );
    assert_eq!((code, said, prompt), (Some(2), refused, None));
}

#[test]
fn no_stdin_leaves_a_pipe_unread() {
    let (silent, _open) = std::io::pipe().unwrap();
    let (full, mut producer) = std::io::pipe().unwrap();
    producer.write_all(b"for the next command of the loop").unwrap();
    for stdin in [silent, full] {
        let (code, said, prompt) = run(&["--no-stdin", "--quiet", "hello"], stdin);
        assert_eq!((code, said.as_str(), prompt.as_deref()), (Some(0), "", Some("--prompt=hello")));
    }
}

#[test]
fn no_stdin_needs_a_prompt_from_elsewhere() {
    let refused = |args: &[&str]| {
        let (code, said, _) = run(args, Stdio::null());
        assert_eq!(code, Some(2), "{said}");
        said
    };
    assert_eq!(
        refused(&["--no-stdin"]),
        "error: there is no prompt\nhint: Give a prompt, or a --prompt-file.\n"
    );
    assert_eq!(
        refused(&["--no-stdin", "-"]),
        "error: the prompt - is read from stdin, and --no-stdin forbids that\nhint: Leave out one of them.\n"
    );
}

#[test]
fn the_option_that_waited_for_stdin_is_gone() {
    let (code, said, _) = run(&["--stdin", "hello"], Stdio::null());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("tip: piped input is always read to its end; leave --stdin out"), "{said}");
    assert!(!said.contains("--no-stdin"), "{said}");
}

#[test]
fn the_drop_in_keeps_the_rule_of_gemini_cli() {
    let (desk, hostile) = desk_with(Script::normal());
    let (silent, _open) = std::io::pipe().unwrap();
    let (mut child, _messages) = start(&mut desk.command(&["gemini", "--skip-trust", "-p", "hello"]), silent);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(prompt(&hostile).as_deref(), Some("--prompt=hello"));
}
