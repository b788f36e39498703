//! What is refused, by every command, before anything is started: with the reason, and with what to do.

use std::fs;

use alhena_testbed::Script;

use super::run::desk_with;
use super::sessions::{chats, copy, recorded};
use crate::common::Desk;

#[test]
fn where_there_is_nothing_it_is_said_what_is_missing() {
    let desk = Desk::new();
    desk.transcript(NOTHING_THERE);
    let seen = desk.alhena(&["detect", "--gemini", "/nowhere/gemini", "--json"]);
    assert_eq!((seen.code(), &seen.json()["found"]), (Some(3), &serde_json::json!(false)));
    assert!(!desk.home().join(".gemini").exists());
}

const NOTHING_THERE: &str = r#"
    $ detect --gemini /nowhere/gemini
    $ capabilities --gemini /nowhere/gemini
    $ run --gemini /nowhere/gemini hello
    error: Gemini CLI was not found
      /nowhere/gemini does not exist
    hint: Give --gemini the path of a Gemini CLI that can be started, or leave it out to have one looked for.
    [exit 3]
    $ run --gemini /nowhere/gemini ' '
    error: the prompt is empty
    hint: Give a prompt as an argument, by --prompt-file or on stdin.
    $ run --gemini /nowhere/gemini --dir nowhere hello
    error: --dir: nowhere is not a directory
    hint: Give a directory that exists.
    $ run --offline hello
    error: Gemini CLI needs Node 20 or newer, and `node` is not on PATH
    hint: Install Node 20 or newer, with npm, and make sure that `node` and `npm` are on PATH.
    [exit 3]
    $ install
    error: Gemini CLI needs Node 20 or newer, and `node` is not on PATH
    hint: Install Node 20 or newer, with npm, and make sure that `node` and `npm` are on PATH.
    [exit 1]
    $ install newest
    error: "newest" is no version
    hint: Write it as 0.61.0, or latest.
    $ install --list
    nothing is installed; `alhena install` fetches Gemini CLI 0.61.0
    [exit 0]
    $ install --list --json
    []
    [exit 0]
    $ install --remove 0.61.0
    error: 0.61.0 is not installed
    hint: `alhena install --list` shows what is.
    [exit 1]
    $ capabilities --version newest
    error: "newest" is no version
    hint: Write it as 0.61.0.
    $ run -C /nope hello
    $ doctor -C /nope
    $ detect -C /nope
    $ sessions list -C /nope
    $ sessions show -C /nope
    $ sessions export --every -C /nope
    $ sessions repair -C /nope
    $ sessions follow -C /nope
    $ sessions search -C /nope word
    $ sessions usage -C /nope
    error: --dir: /nope is not a directory
    hint: Give a directory that exists.
    $ doctor -C /nope --json
    {
      "error": {
        "message": "`dir`: /nope is not a directory",
        "hint": "Give a directory that exists."
      }
    }
    $ completions tcsh
    error: invalid value 'tcsh' for '<SHELL>'
      [possible values: bash, elvish, fish, powershell, zsh]

      tip: a similar value exists: 'zsh'

    For more information, try '--help'.
    $ help everything
    error: there is no command or topic "everything"
    hint: Topics are exit-codes, environment, views, config, hooks, budget, control, schema, batch, job and result; `alhena --help` lists the commands.
    $ help sessions lost
    error: there is no command or topic "sessions lost"
    hint: Topics are exit-codes, environment, views, config, hooks, budget, control, schema, batch, job and result; `alhena --help` lists the commands.
    $ host metadata nobody
    error: nothing of the kind for "nobody"
    hint: `alhena host list` names the hosts.
    $ run --cassette talk.json hi
    error: recording needs a key, and GEMINI_API_KEY is not set
    hint: Set it; the key is not written into the cassette. Playing back needs none.
    $ run --cassette talk.json --cassette-mode replay hi
    error: --cassette: talk.json: No such file or directory (os error 2)
    hint: Record it first: --cassette-mode record.
    $ mock --env missing.json
    error: missing.json: No such file or directory (os error 2)
    hint: Give a scenario in JSON, for example {"turns": [{"steps": [{"text": "Hi"}]}]}.
    $ run --offline=missing.json hi
    error: --offline: missing.json: No such file or directory (os error 2)
    hint: Give a scenario in JSON, for example {"turns": [{"steps": [{"text": "Hi"}]}]}.
    $ parse nowhere.jsonl
    error: nowhere.jsonl: No such file or directory (os error 2)
    hint: Give a file that Gemini CLI wrote, or a directory made by `alhena run --record`.
    $ parse --as xml
    error: invalid value 'xml' for '--as <VIEW>'
      [possible values: pretty, text, events, outcome, data, messages, message-lines, stream-json, json, agent-cli-sdk, agent-cli-sdk-lines, aiwf, openase, openase-ticket, promptfoo]

    For more information, try '--help'.
    $ parse /dev/null --as text
    error: The output is empty
    hint: Give what `gemini --output-format stream-json` wrote.
    [exit 1]
"#;

#[test]
fn what_is_wrong_is_refused_before_gemini_cli_is_started() {
    let (desk, hostile) = desk_with(Script::normal());
    desk.program("tmux", "#!/bin/sh\necho tmux 3.4\n");
    for name in ["plain", "stub", "resume_later"] {
        copy(&recorded("0.61.0", name), &chats(&desk));
    }
    let plain = "session-2026-11-15T20-29-3e9f236b.jsonl";
    let text = fs::read_to_string(chats(&desk).join(plain)).unwrap().replace("3e9f236b", "3e9f0000");
    fs::write(chats(&desk).join(plain.replace("3e9f236b", "3e9f0000")), text).unwrap();
    for (name, text) in [
        ("full/file", ""),
        ("empty.txt", " \n"),
        ("bad.json", "{"),
        ("rec/recording.json", "{"),
        ("notes.txt", "no session"),
        ("talk.json", "{\"turns\": []}"),
        ("hello.json", r#"{"turns": [{"steps": [{"text": "Hello."}]}]}"#),
        ("typo.json", "{\n  \"turns\": [\n    {\"stpes\": []}\n  ]\n}"),
    ] {
        desk.write(name, text);
    }
    fs::write(desk.work().join("big.txt"), vec![b'a'; 9 << 20]).unwrap();
    desk.transcript(WRONG);
    let refused = desk.alhena(&["run", "--offline=bad.json", "hello"]);
    assert!(
        refused.code() == Some(2) && refused.stderr.starts_with("error: --offline: bad.json:"),
        "{refused}"
    );
    let piped = desk.alhena_reading(b"\xff\xfe", &["run", "-"]).to_string();
    let not_text = "error: what came on stdin is not UTF-8 text\nhint: Gemini CLI takes text; put other data into a file and name it in the prompt.\n[exit 2]";
    assert!(piped.ends_with(not_text), "{piped}");
    for limit in ["--max-turns=0", "--max-attempts=0", "--max-tokens=0", "--max-calls=0", "--max-cost=nan"] {
        assert_eq!(desk.alhena(&["run", limit, "hello"]).code(), Some(2), "{limit}");
    }
    let starts = hostile.starts().unwrap();
    assert!(starts.iter().all(|start| start.argv.contains(&"--version".to_owned())), "{starts:?}");
}

const WRONG: &str = r#"
    $ run
    $ run ''
    $ run -
    error: the prompt is empty
    hint: Give a prompt as an argument, by --prompt-file or on stdin.
    $ run --prompt-file empty.txt
    error: the prompt is empty
    hint: Give a prompt or a --prompt-file.
    $ run --prompt-file nowhere.txt
    error: --prompt-file: nowhere.txt: No such file or directory (os error 2)
    hint: Give a text file that can be read.
    $ run --system-prompt-file nowhere.txt hello
    error: --system-prompt-file: nowhere.txt: No such file or directory (os error 2)
    hint: Give a text file that can be read.
    $ run hello --prompt-file empty.txt
    error: the argument '[PROMPT]' cannot be used with '--prompt-file <FILE>'

    Usage: alhena run <PROMPT> [-- <ARGS>...]

    For more information, try '--help'.
    $ run --prompt-file big.txt
    error: the prompt is too large: 9437184 bytes, and Gemini CLI sends at most 4000000 characters
    hint: Put the material into files and name them in the prompt.
    $ run --dir nowhere hello
    error: --dir: nowhere is not a directory
    hint: Give a directory that exists.
    $ run --include-dir nowhere hello
    error: --include-dir: nowhere is not a directory
    hint: Give a directory that exists.
    $ run --dir empty.txt hello
    $ doctor -C empty.txt
    error: --dir: empty.txt is not a directory
    hint: Give a directory that exists.
    $ run --allow-tool run_shell_command(git hello
    error: --allow-tool: "run_shell_command(git" has no closing parenthesis
    hint: Write NAME, or run_shell_command(PREFIX) for some commands only.
    $ run --deny-tool '' hello
    error: --deny-tool: "" is not the name of a tool
    hint: Write NAME, or run_shell_command(PREFIX) for some commands only.
    $ run hello -- -o json
    error: -o cannot be given to Gemini CLI through Alhena
    hint: Use Alhena's own options for the prompt and the output.
    $ run hello -- --prompt=bye
    error: --prompt cannot be given to Gemini CLI through Alhena
    hint: Use Alhena's own options for the prompt and the output.
    $ run --record full hello
    error: --record: full is not empty; a recording needs a directory of its own
    hint: Give a new or empty directory.
    $ run --output nowhere/out.txt hello
    error: nowhere/out.txt: No such file or directory (os error 2)
    hint: Give a file that can be written to.
    $ run --timeout soon hello
    error: invalid value 'soon' for '--timeout <TIME>': "soon" is no time; write 90s, 10m, 1h30m or 500ms, or none

    For more information, try '--help'.
    $ run --timeout 0s hello
    error: invalid value '0s' for '--timeout <TIME>': "0s" is no time; write 90s, 10m, 1h30m or 500ms, or none

    For more information, try '--help'.
    $ run --approval sometimes hello
    error: invalid value 'sometimes' for '--approval <MODE>'
      [possible values: default, auto-edit, yolo, plan]

    For more information, try '--help'.
    $ run --env NOBODY_SET_THIS hello
    error: --env: NOBODY_SET_THIS is not set
    hint: Set it, or write NAME=VALUE.
    $ run --env =x hello
    error: invalid value '=x' for '--env <NAME=VALUE>': "=x" names no variable. Write NAME=VALUE, or the NAME of a variable that is set.

    For more information, try '--help'.
    $ run --mcp-server nonsense hello
    error: --mcp-server: "nonsense" is not NAME=COMMAND
    hint: Write 'NAME=COMMAND ARGS', 'NAME=URL', or give a JSON file.
    $ run --session-id no/good hello
    error: --session-id: "no/good" is no good session id
    hint: Use a UUID, or at least eight letters and digits, then letters, digits, - and _.
    $ run --sometimes hello
    error: unexpected argument '--sometimes' found

      tip: a prompt that begins with a dash is given by --prompt=TEXT

    Usage: alhena run [OPTIONS] [PROMPT] [-- <ARGS>...]

    For more information, try '--help'.
    $ run --system-prompt-file empty.txt --system-prompt 'Be brief' hello
    error: the argument '--system-prompt-file <FILE>' cannot be used with '--system-prompt <TEXT>'

    Usage: alhena run --system-prompt-file <FILE> <PROMPT> [-- <ARGS>...]

    For more information, try '--help'.
    $ run --system-prompt-mode replace hello
    error: the following required arguments were not provided:
      <--system-prompt <TEXT>|--system-prompt-file <FILE>>

    Usage: alhena run --system-prompt-mode <SYSTEM_PROMPT_MODE> <--system-prompt <TEXT>|--system-prompt-file <FILE>> <PROMPT> [-- <ARGS>...]

    For more information, try '--help'.
    $ run --offline=typo.json hello
    error: --offline: typo.json:3:12: not a scenario: turns[0].stpes: unknown field `stpes`, expected one of `when`, `times`, `always`, `delay`, `hang`, `drop`, `reset`, `status`, `error`, `retry_after`, `headers`, `steps`, `finish`, `usage`, `raw`
    hint: Did you mean "steps"?
    $ mock typo.json
    error: typo.json:3:12: not a scenario: turns[0].stpes: unknown field `stpes`, expected one of `when`, `times`, `always`, `delay`, `hang`, `drop`, `reset`, `status`, `error`, `retry_after`, `headers`, `steps`, `finish`, `usage`, `raw`
    hint: Did you mean "steps"?
    $ mock hello.json ./hello.json
    error: two scenarios have the name "hello"
    hint: Give one of them another name: NAME=FILE.
    $ mock --cassette talk.json
    error: --cassette: talk.json: not a cassette: unknown field `turns`, expected one of `cassette`, `upstream`, `client`, `incomplete`, `interactions` at line 1 column 8
    hint: Give a file that --cassette has recorded, or the name of a new one: nothing else is replaced.
    $ gemini --skip-trust
    No input provided via stdin.
    Input can be provided by piping data into gemini or using the --prompt option.
    [exit 42]
    $ parse empty.txt --stderr nowhere.txt
    error: nowhere.txt: No such file or directory (os error 2)
    hint: Give a file that Gemini CLI wrote, or a directory made by `alhena run --record`.
    $ parse full
    error: full is a directory without a recording
    hint: Give a file that Gemini CLI wrote, or a directory made by `alhena run --record`.
    $ parse rec
    error: rec: EOF while parsing an object at line 1 column 1
    hint: Give a file that Gemini CLI wrote, or a directory made by `alhena run --record`.
    $ sessions show zzz
    $ sessions export zzz
    $ sessions repair zzz
    error: No Gemini session has the id zzz
    hint: `alhena sessions list --all` shows the ids.
    [exit 1]
    $ sessions show 3e9f
    error: 2 sessions begin with "3e9f": [ID], [ID]
    hint: Give more of the id.
    $ sessions show ''
    error: 4 sessions begin with "": [ID], [ID], [ID], [ID]
    hint: Give more of the id.
    $ sessions show ./none.jsonl
    error: ./none.jsonl: there is no such file
    hint: `alhena sessions list --all` shows the ids.
    $ sessions show ./notes.txt
    error: ./notes.txt: this is no session of Gemini CLI
    hint: Give a file that Gemini CLI wrote.
    $ sessions show --as pdf
    error: invalid value 'pdf' for '--as <VIEW>'
      [possible values: pretty, messages, agent-cli-sdk, events, text, markdown, html]

    For more information, try '--help'.
    $ sessions search --regex (
    error: regex parse error:
        (
        ^
    error: unclosed group
    hint: Without --regex the words are taken as they are.
    $ sessions search ?!
    error: there is no word in that
    hint: Signs are not searched; --regex finds them.
    $ sessions usage --prices bad.json
    error: bad.json: EOF while parsing an object at line 1 column 1
    hint: It has to look like {"date": "2026-11-15", "currency": "USD", "per_tokens": 1000000, "models": {"NAME": {"input": 0.3, "cached": 0.03, "output": 2.5}}}.
    $ sessions usage --since yesterday
    error: --since wants a day
    hint: Such as 2026-11-01.
    $ terminal serve-mcp
    error: nobody spoke MCP: the input ended before an initialize request
    hint: An MCP client has to start it and speak first.
"#;

#[test]
fn every_command_that_prints_json_says_what_is_wrong_in_json() {
    let desk = Desk::new();
    desk.write("bad.json", "{");
    let commands: &[(&[&str], i32)] = &[
        (&["detect", "--gemini", "/nowhere/gemini"], 3),
        (&["capabilities", "--gemini", "/nowhere/gemini"], 3),
        (&["capabilities", "--version", "many"], 2),
        (&["doctor", "-C", "/nope"], 2),
        (&["install", "many"], 2),
        (&["sessions", "search", "!"], 2),
        (&["sessions", "usage", "--since", "soon"], 2),
        (&["sessions", "usage", "--prices", "bad.json"], 2),
        (&["sessions", "repair", "zzz"], 1),
        (&["sessions", "list", "--nonsense"], 2),
        (&["terminal", "status", "nobody"], 2),
    ];
    for (command, code) in commands {
        let seen = desk.alhena(&[*command, &["--json"]].concat());
        let error = &seen.json()["error"];
        assert!(error["message"].is_string() && error["hint"].is_string(), "{command:?}: {seen}");
        assert_eq!(seen.stderr, "", "{command:?}");
        assert!(seen.code().is_some_and(|seen| seen != 0), "{command:?}: {seen}");
        if command[0] != "terminal" {
            assert_eq!(seen.code(), Some(*code), "{command:?}: {seen}");
        }
    }
}
