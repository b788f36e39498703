//! `alhena run`, as far as it gets without the real CLI: what is wrong before anything starts, and the views.

use std::fs;
use std::process::Stdio;

use alhena_testbed::{Hostile, Script, Step};
use insta::assert_snapshot;
use serde_json::json;

use crate::common::{Desk, Transcript};

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

/// A command that is refused, and that nothing was started by it.
fn refused(args: &[&str]) -> Transcript {
    let (desk, hostile) = desk_with(Script::normal());
    desk.write("full/file", "");
    desk.write("empty.txt", " \n");
    desk.write("bad.json", "{");
    desk.write("wrong.json", r#"{"turns": [{"stepz": []}]}"#);
    fs::write(desk.work().join("big.txt"), vec![b'a'; 9 << 20]).unwrap();
    let seen = desk.alhena(&[&["run"], args].concat());
    let runs =
        hostile.starts().unwrap().into_iter().filter(|start| !start.argv.contains(&"--version".to_owned()));
    assert_eq!(runs.count(), 0, "{seen}");
    seen
}

#[test]
fn no_prompt_is_wrong_usage() {
    assert_snapshot!(refused(&[]), @r#"
    ---- stderr ----
    error: the prompt is empty
    hint: Give a prompt as an argument, by --prompt-file or on stdin.
    [exit 2]
    "#);
    assert_snapshot!(refused(&[""]), @r#"
    ---- stderr ----
    error: the prompt is empty
    hint: Give a prompt as an argument, by --prompt-file or on stdin.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["-"]), @r#"
    ---- stderr ----
    error: the prompt is empty
    hint: Give a prompt as an argument, by --prompt-file or on stdin.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--prompt-file", "empty.txt"]), @r#"
    ---- stderr ----
    error: the prompt is empty
    hint: Give a prompt or a --prompt-file.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--prompt-file", "nowhere.txt"]), @r#"
    ---- stderr ----
    error: --prompt-file: nowhere.txt: No such file or directory (os error 2)
    hint: Give a text file that can be read.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["hello", "--prompt-file", "empty.txt"]), @r#"
    ---- stderr ----
    error: the argument '[PROMPT]' cannot be used with '--prompt-file <FILE>'

    Usage: alhena run <PROMPT> [-- <ARGS>...]

    For more information, try '--help'.
    [exit 2]
    "#);
}

#[test]
fn wrong_usage_is_said_before_the_cli_is_looked_for() {
    assert_snapshot!(Desk::new().alhena(&["run", "--gemini", "/nowhere/gemini", " "]), @r#"
    ---- stderr ----
    error: the prompt is empty
    hint: Give a prompt as an argument, by --prompt-file or on stdin.
    [exit 2]
    "#);
    assert_snapshot!(Desk::new().alhena(&["run", "--gemini", "/nowhere/gemini", "--dir", "nowhere", "hello"]), @r#"
    ---- stderr ----
    error: --dir: nowhere is not a directory
    hint: Give a directory that exists.
    [exit 2]
    "#);
}

#[test]
fn a_prompt_that_the_cli_would_not_send_is_refused() {
    assert_snapshot!(refused(&["--prompt-file", "big.txt"]), @r#"
    ---- stderr ----
    error: the prompt is too large: 9437184 bytes, and Gemini CLI sends at most 4000000 characters
    hint: Put the material into files and name them in the prompt.
    [exit 2]
    "#);
}

#[test]
fn a_prompt_on_stdin_that_is_no_text_is_refused() {
    let (desk, _hostile) = desk_with(Script::normal());
    assert_snapshot!(desk.alhena_reading(b"\xff\xfe", &["run", "-"]), @r#"
    ---- stderr ----
    error: what came on stdin is not UTF-8 text
    hint: Gemini CLI takes text; put other data into a file and name it in the prompt.
    [exit 2]
    "#);
}

#[test]
fn a_directory_that_is_none_is_refused() {
    assert_snapshot!(refused(&["--dir", "nowhere", "hello"]), @r#"
    ---- stderr ----
    error: --dir: nowhere is not a directory
    hint: Give a directory that exists.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--dir", "empty.txt", "hello"]), @r#"
    ---- stderr ----
    error: --dir: empty.txt is not a directory
    hint: Give a directory that exists.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--include-dir", "nowhere", "hello"]), @r#"
    ---- stderr ----
    error: --include-dir: nowhere is not a directory
    hint: Give a directory that exists.
    [exit 2]
    "#);
}

#[test]
fn rules_for_tools_are_checked() {
    assert_snapshot!(refused(&["--allow-tool", "run_shell_command(git", "hello"]), @r#"
    ---- stderr ----
    error: --allow-tool: "run_shell_command(git" has no closing parenthesis
    hint: Write NAME, or run_shell_command(PREFIX) for some commands only.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--deny-tool", "", "hello"]), @r#"
    ---- stderr ----
    error: --deny-tool: "" is not the name of a tool
    hint: Write NAME, or run_shell_command(PREFIX) for some commands only.
    [exit 2]
    "#);
}

#[test]
fn arguments_that_are_alhenas_own_are_not_passed_on() {
    assert_snapshot!(refused(&["hello", "--", "-o", "json"]), @r#"
    ---- stderr ----
    error: -o cannot be given to Gemini CLI through Alhena
    hint: Use Alhena's own options for the prompt and the output.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["hello", "--", "--prompt=bye"]), @r#"
    ---- stderr ----
    error: --prompt cannot be given to Gemini CLI through Alhena
    hint: Use Alhena's own options for the prompt and the output.
    [exit 2]
    "#);
}

#[test]
fn a_recording_needs_a_directory_of_its_own() {
    assert_snapshot!(refused(&["--record", "full", "hello"]), @r#"
    ---- stderr ----
    error: --record: full is not empty; a recording needs a directory of its own
    hint: Give a new or empty directory.
    [exit 2]
    "#);
}

#[test]
fn an_output_file_that_cannot_be_written_is_said() {
    assert_snapshot!(refused(&["--output", "nowhere/out.txt", "hello"]), @r#"
    ---- stderr ----
    error: nowhere/out.txt: No such file or directory (os error 2)
    hint: Give a file that can be written to.
    [exit 2]
    "#);
}

#[test]
fn words_that_mean_nothing_are_explained() {
    assert_snapshot!(refused(&["--timeout", "soon", "hello"]), @r#"
    ---- stderr ----
    error: invalid value 'soon' for '--timeout <TIME>': "soon" is no time; write 90s, 10m, 1h30m or 500ms, or none

    For more information, try '--help'.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--timeout", "0s", "hello"]), @r#"
    ---- stderr ----
    error: invalid value '0s' for '--timeout <TIME>': "0s" is no time; write 90s, 10m, 1h30m or 500ms, or none

    For more information, try '--help'.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--approval", "sometimes", "hello"]), @r#"
    ---- stderr ----
    error: invalid value 'sometimes' for '--approval <MODE>'
      [possible values: default, auto-edit, yolo, plan]

    For more information, try '--help'.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--env", "NOBODY_SET_THIS", "hello"]), @r#"
    ---- stderr ----
    error: --env: NOBODY_SET_THIS is not set
    hint: Set it, or write NAME=VALUE.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--env", "=x", "hello"]), @r#"
    ---- stderr ----
    error: invalid value '=x' for '--env <NAME=VALUE>': "=x" names no variable. Write NAME=VALUE, or the NAME of a variable that is set.

    For more information, try '--help'.
    [exit 2]
    "#);
    for limit in ["--max-turns=0", "--max-attempts=0", "--max-tokens=0", "--max-calls=0", "--max-cost=nan"] {
        assert_eq!(refused(&[limit, "hello"]).code(), Some(2), "{limit}");
    }
    assert_snapshot!(refused(&["--mcp-server", "nonsense", "hello"]), @r#"
    ---- stderr ----
    error: --mcp-server: "nonsense" is not NAME=COMMAND
    hint: Write 'NAME=COMMAND ARGS', 'NAME=URL', or give a JSON file.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--session-id", "no/good", "hello"]), @r#"
    ---- stderr ----
    error: --session-id: "no/good" is no good session id
    hint: Use a UUID, or at least eight letters and digits, then letters, digits, - and _.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--sometimes", "hello"]), @r#"
    ---- stderr ----
    error: unexpected argument '--sometimes' found

      tip: a prompt that begins with a dash is given by --prompt=TEXT

    Usage: alhena run [OPTIONS] [PROMPT] [-- <ARGS>...]

    For more information, try '--help'.
    [exit 2]
    "#);
}

#[test]
fn instructions_come_from_a_file_or_from_the_command_line() {
    assert_snapshot!(refused(&["--system-prompt-file", "nowhere.md", "hello"]), @r#"
    ---- stderr ----
    error: --system-prompt-file: nowhere.md: No such file or directory (os error 2)
    hint: Give a text file that can be read.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--system-prompt-file", "empty.txt", "--system-prompt", "Be brief", "hello"]), @r#"
    ---- stderr ----
    error: the argument '--system-prompt-file <FILE>' cannot be used with '--system-prompt <TEXT>'

    Usage: alhena run --system-prompt-file <FILE> <PROMPT> [-- <ARGS>...]

    For more information, try '--help'.
    [exit 2]
    "#);
    assert_snapshot!(refused(&["--system-prompt-mode", "replace", "hello"]), @r#"
    ---- stderr ----
    error: the following required arguments were not provided:
      <--system-prompt <TEXT>|--system-prompt-file <FILE>>

    Usage: alhena run --system-prompt-mode <SYSTEM_PROMPT_MODE> <--system-prompt <TEXT>|--system-prompt-file <FILE>> <PROMPT> [-- <ARGS>...]

    For more information, try '--help'.
    [exit 2]
    "#);
}

#[test]
fn a_scenario_that_is_none_is_refused() {
    assert_snapshot!(refused(&["--offline=wrong.json", "hello"]), @r#"
    ---- stderr ----
    error: --offline: wrong.json:1:19: not a scenario: turns[0].stepz: unknown field `stepz`, expected one of `when`, `times`, `always`, `delay`, `hang`, `drop`, `reset`, `status`, `error`, `retry_after`, `headers`, `steps`, `finish`, `usage`, `raw`
    hint: Did you mean "steps"?
    [exit 2]
    "#);
    let broken = refused(&["--offline=bad.json", "hello"]);
    assert_eq!(broken.code(), Some(2));
    assert!(broken.stderr.starts_with("error: --offline: bad.json:"), "{broken}");
    assert!(broken.stderr.contains(": not a scenario: "), "{broken}");
    assert_snapshot!(refused(&["--offline=nowhere.json", "hello"]), @r#"
    ---- stderr ----
    error: --offline: nowhere.json: No such file or directory (os error 2)
    hint: Give a scenario in JSON, for example {"turns": [{"steps": [{"text": "Hi"}]}]}.
    [exit 2]
    "#);
}

#[test]
fn without_a_cli_it_says_how_to_get_one() {
    assert_snapshot!(Desk::new().alhena(&["run", "--gemini", "/nowhere/gemini", "hello"]), @r#"
    ---- stderr ----
    error: Gemini CLI was not found
      /nowhere/gemini does not exist
    hint: Give --gemini the path of a Gemini CLI that can be started, or leave it out to have one looked for.
    [exit 3]
    "#);
}

#[test]
fn offline_without_npm_says_what_to_install() {
    assert_snapshot!(Desk::new().alhena(&["run", "--offline", "hello"]), @r#"
    ---- stderr ----
    error: Gemini CLI needs Node 20 or newer, and `node` is not on PATH
    hint: Install Node 20 or newer, with npm, and make sure that `node` and `npm` are on PATH.
    [exit 3]
    "#);
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
fn a_dash_as_the_output_is_stdout() {
    let (desk, _hostile) = desk_with(tools());
    let seen = desk.alhena(&["run", "-o", "-", "--quiet", "hello"]);
    assert_eq!((seen.code(), seen.stdout.as_str()), (Some(0), "Looking. \nAll done.\n"));
    assert!(!desk.work().join("-").exists());
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
    assert_snapshot!(desk.alhena_reading(b"\xff\xfe", &["run", "Review this"]), @r#"
    ---- stderr ----
    error: what came on stdin is not UTF-8 text
    hint: Gemini CLI takes text; put other data into a file and name it in the prompt.
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
    let (desk, _hostile) = desk_with(tools());
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
