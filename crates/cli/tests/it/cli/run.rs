//! `alhena run`, as far as it gets without the real CLI: what is wrong before anything starts, and the views.

use std::fs;
use std::process::Stdio;

use alhena_testbed::{Hostile, Script, Step};
use insta::assert_snapshot;
use serde_json::json;

use crate::common::Desk;

/// A desk whose `gemini` plays a script.
pub fn desk_with(script: Script) -> (Desk, Hostile) {
    let hostile = Hostile::new(script).unwrap();
    let mut desk = Desk::new().env("GEMINI_API_KEY", "none");
    for (name, value) in hostile.env() {
        desk = desk.env(&name, value);
    }
    std::os::unix::fs::symlink(hostile.path(), desk.root().join("bin/gemini")).unwrap();
    (desk, hostile)
}

#[test]
fn whoever_reads_data_gets_some_also_when_nothing_could_be_started() {
    let desk = Desk::new();
    let missing =
        |view: &str| desk.alhena(&["run", "--gemini", "/nowhere/gemini", "--as", view, "--quiet", "hello"]);
    let outcome = missing("outcome");
    assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(3), ""));
    assert_eq!(outcome.json()["failure"]["kind"], json!("not_installed"));
    let events = missing("events").json_lines();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["outcome"], outcome.json());
    let lines = missing("stream-json").json_lines();
    assert_eq!([&lines[0]["type"], &lines[0]["status"]], [&json!("result"), &json!("error")]);
    assert_eq!(missing("json").json()["error"]["type"], json!("NotInstalledError"));
    // Those who read text still get told why.
    assert!(missing("text").stderr.starts_with("error: "));
}

fn tools() -> Script {
    Script::new([
        Step::Init,
        Step::User,
        Step::Text("Looking. ".into()),
        Step::Tool { name: "read_file".into(), parameters: json!({"file_path": "a.txt"}), output: "".into() },
        Step::Tool {
            name: "run_shell_command".into(),
            parameters: json!({"command": "ls"}),
            output: "a.txt".into(),
        },
        Step::Tool {
            name: "write_file".into(),
            parameters: json!({"file_path": "never.txt"}),
            output: "".into(),
        },
        Step::Error { severity: "warning".into(), message: "Loop detected, stopping execution".into() },
        Step::Text("All done.".into()),
        Step::Result,
    ])
}

#[test]
fn a_run_is_shown_as_text_by_default_and_warnings_go_to_stderr() {
    let (desk, _hostile) = desk_with(tools());
    assert_snapshot!(desk.alhena(&["run", "hello"]), @r#"
    Looking. 
    All done.
    ---- stderr ----
    warning: Loop detected, stopping execution
    warning: The session file never appeared: thoughts, diffs and exit codes are missing
    [exit 0]
    "#);
    assert_snapshot!(desk.alhena(&["run", "--quiet", "hello"]), @r#"
    Looking. 
    All done.
    [exit 0]
    "#);
}

#[test]
fn pretty_tells_a_claim_from_a_file() {
    let (desk, _hostile) = desk_with(tools());
    let seen = desk.alhena(&["run", "--as", "pretty", "hello"]).to_string();
    let timeless: Vec<&str> = seen.lines().filter(|line| !line.starts_with("done ")).collect();
    assert_snapshot!(timeless.join("\n"), @r#"
    · Gemini CLI, model gemini-2.5-flash
    Looking. 
    ✓ read a.txt
    ✓ $ ls → a.txt
    ✓ write never.txt
      ~ never.txt (not on disk)
    All done.

      ~ never.txt  claimed, but not on disk
      ! Loop detected, stopping execution
      ! The session file never appeared: thoughts, diffs and exit codes are missing
      session [ID]
    [exit 0]
    "#);
}

#[test]
fn output_can_go_to_a_file() {
    let (desk, _hostile) = desk_with(tools());
    assert_snapshot!(desk.alhena(&["run", "--output", "answer.txt", "--quiet", "hello"]), @"[exit 0]");
    let kept = || fs::read_to_string(desk.work().join("answer.txt")).unwrap();
    assert_eq!(kept(), "Looking. \nAll done.\n");
    let seen = desk.alhena(&["run", "-o", "-", "--quiet", "hello"]);
    assert_eq!((seen.code(), seen.stdout.as_str()), (Some(0), "Looking. \nAll done.\n"));
    assert!(!desk.work().join("-").exists());
    // A request that is refused costs nothing.
    assert_eq!(desk.alhena(&["run", "--output", "answer.txt", " "]).code(), Some(2));
    assert_eq!(kept(), "Looking. \nAll done.\n");
    desk.write("answer.txt", "a longer answer of an earlier run\n".repeat(10));
    desk.alhena(&["run", "--output", "answer.txt", "--quiet", "hello"]);
    assert_eq!(kept(), "Looking. \nAll done.\n");
}

#[test]
fn verbose_shows_what_the_cli_says_on_stderr_and_no_terminal_has_to_fear_it() {
    let script = Script::new([
        Step::Stderr("[STARTUP] \x1b[31mslow\x1b[0m\nhalf".into()),
        Step::Init,
        Step::User,
        Step::Text("Hi".into()),
        Step::Result,
    ]);
    let (desk, _hostile) = desk_with(script);
    let seen = desk.alhena(&["run", "--verbose", "hello"]);
    assert_eq!((seen.code(), seen.stdout.as_str()), (Some(0), "Hi\n"), "{seen}");
    assert!(
        seen.stderr.contains("gemini: [STARTUP] slow\n") && seen.stderr.contains("gemini: half"),
        "{seen}"
    );
    assert!(!desk.alhena(&["run", "hello"]).stderr.contains("STARTUP"));
    assert_eq!(desk.alhena(&["run", "--verbose", "--quiet", "hello"]).code(), Some(2));
}

#[test]
fn a_warning_does_not_stick_to_the_text_where_both_are_seen_together() {
    let script = Script::new([
        Step::Init,
        Step::User,
        Step::Text("Half a line".into()),
        Step::Error { severity: "warning".into(), message: "Loop detected".into() },
        Step::Result,
    ]);
    let (desk, _hostile) = desk_with(script);
    let both = fs::File::create(desk.work().join("both")).unwrap();
    let mut command = desk.command(&["run", "hello"]);
    let command = command.stdin(Stdio::null()).stdout(both.try_clone().unwrap()).stderr(both);
    assert!(command.status().unwrap().success());
    let seen = fs::read_to_string(desk.work().join("both")).unwrap();
    assert!(seen.starts_with("Half a line\nwarning: Loop detected\n"), "{seen}");
    // Whoever reads only the text gets only that.
    assert_eq!(desk.alhena(&["run", "hello"]).stdout, "Half a line\n");
}

#[test]
fn the_prompt_comes_from_wherever_it_is_given() {
    let (desk, hostile) = desk_with(Script::normal());
    desk.write("prompt.txt", "from a file");
    let asked = |stdin: &[u8], args: &[&str]| {
        let seen = desk.alhena_reading(stdin, &[&["run", "--quiet"], args].concat());
        assert_eq!(seen.code(), Some(0), "{seen}");
        hostile.starts().unwrap().last().unwrap().argv.iter().find(|arg| arg.starts_with("--prompt")).cloned()
    };
    assert_eq!(asked(b"", &["as an argument"]).as_deref(), Some("--prompt=as an argument"));
    assert_eq!(asked(b"", &["--prompt-file", "prompt.txt"]).as_deref(), Some("--prompt=from a file"));
    assert_eq!(asked(b"from stdin", &[]).as_deref(), Some("--prompt=from stdin"));
    assert_eq!(asked(b"from stdin", &["-"]).as_deref(), Some("--prompt=from stdin"));
    assert_eq!(
        asked(b"", &["--prompt=-x, is it an option?"]).as_deref(),
        Some("--prompt=-x, is it an option?")
    );
    assert_eq!(asked(b"", &["-p", "--short too"]).as_deref(), Some("--prompt=--short too"));
    // What is piped in stands before what is asked about it, as `gemini -p` has it.
    assert_eq!(asked(b"a diff", &["Review this"]).as_deref(), Some("--prompt=a diff\n\nReview this"));
    assert_eq!(asked(b"a diff", &["-p", "Review"]).as_deref(), Some("--prompt=a diff\n\nReview"));
    let file = ["--prompt-file", "prompt.txt"];
    assert_eq!(asked(b"a diff", &file).as_deref(), Some("--prompt=a diff\n\nfrom a file"));
}

#[test]
fn what_is_piped_in_is_refused_where_it_cannot_go_along() {
    let (desk, _hostile) = desk_with(Script::normal());
    desk.write("prompt.txt", "from a file");
    assert_snapshot!(desk.alhena_reading(b"a diff", &["run", "--prompt-by", "file", "--prompt-file", "prompt.txt"]), @r#"
    ---- stderr ----
    error: there is something on stdin, and --prompt-by file sends only the file
    hint: Leave out --prompt-by, or put `< /dev/null` behind the command.
    [exit 2]
    "#);
    assert_snapshot!(desk.alhena_reading(&vec![b'a'; 9 << 20], &["run", "Review this"]), @r#"
    ---- stderr ----
    error: the prompt is too large: there are more than 8388608 bytes on stdin
    hint: Put the material into files and name them in the prompt.
    [exit 2]
    "#);
}

#[test]
fn a_recording_plays_back_to_what_was_seen() {
    let (desk, _hostile) = desk_with(Script::new(
        [Step::Init, Step::Garbage].into_iter().chain(tools().steps.into_iter().skip(1)),
    ));
    for view in ["events", "outcome", "text", "stream-json", "json"] {
        let dir = format!("rec-{view}");
        let live = desk.alhena(&["run", "--as", view, "--record", &dir, "--quiet", "hello"]);
        let played = desk.alhena(&["parse", &dir, "--as", view]);
        assert_eq!(live.stdout, played.stdout, "{view}");
        assert_eq!(live.to_string(), played.to_string(), "{view}");
    }
}

#[test]
fn an_offline_run_that_is_quiet_says_nothing_on_stderr() {
    let (desk, _hostile) = desk_with(Script::normal());
    let run = |option: &str| desk.alhena(&["run", "--offline", "--gemini", "gemini", option, "hello"]).stderr;
    assert_eq!(run("--quiet"), "");
    assert!(run("--as=text").contains("not from Gemini"));
}
