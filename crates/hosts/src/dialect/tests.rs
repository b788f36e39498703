use super::*;
use crate::native::Format;
use proptest::prelude::*;

const PIPES: Surroundings = Surroundings { stdin: Stream::Other, stdout: Stream::Other, ci: false };
const TERMINAL: Surroundings = Surroundings { stdin: Stream::Terminal, stdout: Stream::Terminal, ci: false };

fn arguments(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The words of a command line in which no word has a space.
fn split(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn run(words: &[&str]) -> DropIn {
    match read(&arguments(words), PIPES) {
        Invocation::Run(run) => *run,
        Invocation::PassThrough(why) => panic!("{words:?} was passed through: {why}"),
    }
}

/// The run without its explanations, and these.
fn explained(words: &[&str]) -> (DropIn, Vec<String>) {
    let mut run = run(words);
    let explanations = std::mem::take(&mut run.explanations);
    (run, explanations)
}

fn text(words: &[&str]) -> Option<String> {
    Some(words.concat())
}

fn list(words: &[&str]) -> Vec<String> {
    arguments(words)
}

// A-01, A-06 to A-10, A-13: as aiwf's source writes it
#[test]
fn aiwf() {
    let mut words = split(
        "-o stream-json -y -m gemini-2.5-pro -s --include-directories lib --include-directories docs \
         --allowed-tools read_file --allowed-tools glob -p",
    );
    words.push("Process the prompt in /tmp/prompt.md");
    let (got, why) = explained(&words);
    let expected = DropIn {
        prompt: text(&["Process the prompt in /tmp/prompt.md"]),
        model: text(&["gemini-2.5-pro"]),
        approval: Some(Approval::Yolo),
        output_format: Some(Format::StreamJson),
        sandbox: Sandbox::On,
        include_dirs: list(&["lib", "docs"]),
        allow_tools: list(&["read_file", "glob"]),
        ..DropIn::default()
    };
    assert_eq!(got, expected);
    assert_eq!(
        why,
        [
            "--allowed-tools read_file: allowed by a policy; the flag is deprecated",
            "--allowed-tools glob: allowed by a policy; the flag is deprecated"
        ]
    );
}

// A-15: the prompt goes on standard input
#[test]
fn aiwf_with_the_prompt_on_stdin() {
    let got = run(&["-o", "stream-json", "--approval-mode", "auto_edit"]);
    let expected = DropIn {
        approval: Some(Approval::AutoEdit),
        output_format: Some(Format::StreamJson),
        ..DropIn::default()
    };
    assert_eq!(got, expected);
    assert_eq!(got.with_stdin("the prompt"), "the prompt");
}

// B-50 to B-53
#[test]
fn agent_cli_sdk() {
    for (mode, approval) in [
        (&["--approval-mode", "default"][..], Approval::Default),
        (&["--approval-mode", "auto_edit"], Approval::AutoEdit),
        (&["--yolo"], Approval::Yolo),
    ] {
        let words = [&["--output-format", "stream-json"], mode, &["Say hello"]].concat();
        let expected = DropIn {
            prompt: text(&["Say hello"]),
            approval: Some(approval),
            output_format: Some(Format::StreamJson),
            ..DropIn::default()
        };
        assert_eq!(run(&words), expected);
    }
}

#[test]
fn openase() {
    let expected = DropIn {
        prompt: text(&["## User request\nFix it"]),
        model: text(&["gemini-2.5-flash"]),
        approval: Some(Approval::Yolo),
        output_format: Some(Format::StreamJson),
        ..DropIn::default()
    };
    let mut words = split("-m gemini-2.5-flash --approval-mode=yolo --output-format stream-json -p");
    words.push("## User request\nFix it");
    assert_eq!(run(&words), expected);
    let old = DropIn { prompt: text(&["x"]), output_format: Some(Format::Json), ..DropIn::default() };
    assert_eq!(run(&["-p", "x", "--output-format", "json"]), old);
}

// E-06 to E-15: everything that the plan can write, at once
#[test]
fn promptfoos_plan() {
    let (got, why) = explained(&split(
        "-p Review --output-format json -m gemini-2.5-pro --approval-mode full_auto --yolo --include-directories a,b --sandbox docker --disable-tool run_shell_command --disable-tool web_fetch",
    ));
    let expected = DropIn {
        prompt: text(&["Review"]),
        model: text(&["gemini-2.5-pro"]),
        approval: Some(Approval::Yolo),
        output_format: Some(Format::Json),
        sandbox: Sandbox::Engine("docker".to_owned()),
        include_dirs: list(&["a", "b"]),
        deny_tools: list(&["run_shell_command", "web_fetch"]),
        ..DropIn::default()
    };
    assert_eq!(got, expected);
    assert_eq!(
        why,
        [
            "--approval-mode full_auto is yolo to Gemini CLI",
            "--sandbox docker: the engine is set by GEMINI_SANDBOX; with the flag Gemini CLI would run without a sandbox",
            "--disable-tool run_shell_command: denied by a policy; Gemini CLI has no such flag",
            "--disable-tool web_fetch: denied by a policy; Gemini CLI has no such flag",
            "--approval-mode and --yolo together are refused by Gemini CLI; yolo is used",
        ]
    );
}

// E-11, E-12, D-36
#[test]
fn every_way_to_name_a_sandbox() {
    let engine = |name: &str| Sandbox::Engine(name.to_owned());
    let ways = [
        (&["--sandbox", "none"][..], Sandbox::Off),
        (&["--sandbox", "false"], Sandbox::Off),
        (&["--sandbox=false"], Sandbox::Off),
        (&["--no-sandbox"], Sandbox::Off),
        (&["-s"], Sandbox::On),
        (&["--sandbox"], Sandbox::On),
        (&["--sandbox", "true"], Sandbox::On),
        (&["--sandbox", "podman"], engine("podman")),
        (&["--sandbox=docker"], engine("docker")),
        (&["-s", "docker"], engine("docker")),
        (&["--sandbox=qemu"], engine("qemu")),
        (&[], Sandbox::Inherit),
    ];
    for (way, sandbox) in ways {
        let words = [way, &["-p", "x"]].concat();
        let (got, _) = explained(&words);
        assert_eq!(got, DropIn { prompt: text(&["x"]), sandbox, ..DropIn::default() }, "{way:?}");
    }
}

// D: `-p "-x"` is exit 1 in the CLI, `--prompt=-x` works
#[test]
fn a_prompt_may_look_like_anything() {
    for (words, prompt) in [
        (&["-p", "-x"][..], "-x"),
        (&["-p", "--looks-like-flag"], "--looks-like-flag"),
        (&["--prompt", "- a list\n- of things"], "- a list\n- of things"),
        (&["--prompt=-x"], "-x"),
        (&["--prompt="], ""),
        (&["-p=a=b"], "a=b"),
        (&["--prompt=--yolo"], "--yolo"),
        (&["-p", ""], ""),
        (&["-p", "mcp"], "mcp"),
        (&["--", "--version"], "--version"),
        (&["--", "-x", "y"], "-x y"),
        (&["- a list"], "- a list"),
        (&["-- not a flag"], "-- not a flag"),
        (&["-5"], "-5"),
        (&["-"], "-"),
        (&["two", "words"], "two words"),
    ] {
        let (got, _) = explained(words);
        assert_eq!(got, DropIn { prompt: text(&[prompt]), ..DropIn::default() }, "{words:?}");
    }
    let (_, why) = explained(&["-p", "-x"]);
    assert_eq!(why, ["the value of -p starts with a dash, which Gemini CLI refuses there"]);
}

#[test]
fn a_prompt_flag_without_a_prompt_leaves_it_to_stdin() {
    let (got, why) = explained(&["-p", "--output-format", "json"]);
    assert_eq!(got, DropIn { output_format: Some(Format::Json), ..DropIn::default() });
    assert_eq!(why, ["-p has no value; the prompt is taken from standard input"]);
    assert_eq!(run(&["-o", "json", "-p"]).prompt, None);
}

#[test]
fn stdin_comes_before_the_prompt_as_in_the_cli() {
    assert_eq!(run(&["-p", "Explain"]).with_stdin("int main"), "int main\n\nExplain");
    assert_eq!(run(&["-p", "Explain"]).with_stdin(""), "Explain");
    assert_eq!(run(&["-p", ""]).with_stdin("int main"), "int main");
}

// The table of disagreements: exactly one approval flag
#[test]
fn approval_has_every_name_and_one_value() {
    for (name, approval) in [
        ("default", Approval::Default),
        ("suggest", Approval::Default),
        ("auto_edit", Approval::AutoEdit),
        ("acceptEdits", Approval::AutoEdit),
        ("yolo", Approval::Yolo),
        ("full_auto", Approval::Yolo),
        ("bypassPermissions", Approval::Yolo),
        ("plan", Approval::Plan),
    ] {
        assert_eq!(run(&["-p", "x", "--approval-mode", name]).approval, Some(approval));
    }
    assert_eq!(
        run(&["-p", "x", "--approval-mode", "plan", "--approvalMode=default"]).approval,
        Some(Approval::Default)
    );
    assert_eq!(run(&["-y", "-p", "x", "--approval-mode", "plan"]).approval, Some(Approval::Yolo));
    assert_eq!(
        run(&["--yolo", "false", "-p", "x", "--approval-mode", "plan"]).approval,
        Some(Approval::Plan)
    );
    assert_eq!(run(&["--no-yolo", "-p", "x"]).approval, None);
    let (got, why) = explained(&["-p", "x", "--approval-mode", "sudo"]);
    assert_eq!(
        got,
        DropIn { prompt: text(&["x"]), extra: list(&["--approval-mode=sudo"]), ..DropIn::default() }
    );
    assert_eq!(why, ["--approval-mode sudo is not known and is passed on as it is"]);
}

#[test]
fn repeated_flags_count_once() {
    let (got, why) =
        explained(&["-m", "a", "--model=b", "-p", "one", "--prompt", "two", "-o", "text", "-o", "json"]);
    let expected = DropIn {
        prompt: text(&["two"]),
        model: text(&["b"]),
        output_format: Some(Format::Json),
        ..DropIn::default()
    };
    assert_eq!(got, expected);
    assert_eq!(
        why,
        [
            "--model was given more than once; the last one counts",
            "--prompt was given more than once; the last one counts",
            "-o was given more than once; the last one counts",
        ]
    );
}

#[test]
fn flags_are_read_as_yargs_reads_them() {
    let expected = DropIn {
        prompt: text(&["x"]),
        model: text(&["m"]),
        approval: Some(Approval::Yolo),
        sandbox: Sandbox::On,
        output_format: Some(Format::Json),
        ..DropIn::default()
    };
    assert_eq!(run(&["-ysp", "x", "--outputFormat", "json", "-m=m"]), expected);
    let (glued, why) = explained(&["-mm", "-p", "x", "-ys", "-o", "json"]);
    assert_eq!(glued, expected);
    assert_eq!(why, ["the value of -m is glued to it, which Gemini CLI refuses"]);
}

#[test]
fn what_belongs_to_the_cli_is_kept() {
    let (got, why) = explained(&split(
        "-p x -d --extensions none --session-file /s.jsonl --raw-output --policy a.toml,b.toml --skip-trust --no-debug",
    ));
    let expected = DropIn {
        prompt: text(&["x"]),
        policies: list(&["a.toml", "b.toml"]),
        extra: list(&["-d", "--extensions=none", "--session-file=/s.jsonl", "--raw-output"]),
        ..DropIn::default()
    };
    assert_eq!((got, why), (expected, Vec::new()));
}

#[test]
fn unknown_flags_are_passed_on_and_words_go_where_they_belong() {
    let (got, why) = explained(&["-p", "x", "--novel", "value", "-Z", "--include-directories", "a", "b"]);
    let expected = DropIn {
        prompt: text(&["x"]),
        include_dirs: list(&["a", "b"]),
        extra: list(&["--novel", "value", "-Z"]),
        ..DropIn::default()
    };
    assert_eq!(got, expected);
    assert_eq!(
        why,
        [
            "--novel is not known and is passed on as it is",
            "-Z is not known and is passed on as it is",
            "\"b\" is taken as one more value of the list before it",
        ]
    );
    // Without -p the word is the prompt.
    let expected = DropIn { prompt: text(&["Do it"]), extra: list(&["--novel"]), ..DropIn::default() };
    assert_eq!(explained(&["--novel", "Do it"]).0, expected);
    let expected = DropIn { prompt: text(&["Do it"]), include_dirs: list(&["a"]), ..DropIn::default() };
    assert_eq!(explained(&["--include-directories", "a", "Do it"]).0, expected);
}

#[test]
fn words_beside_a_prompt_flag_come_before_it() {
    let (got, why) = explained(&["Context", "-p", "Question"]);
    assert_eq!(got.prompt, text(&["Context\n\nQuestion"]));
    assert_eq!(why, ["words and -p together are refused by Gemini CLI; the words are put before the prompt"]);
}

// E-19 as a flag, which no release has
#[test]
fn a_working_directory_is_where_it_runs() {
    let (got, why) = explained(&["--working-directory", "./src", "-p", "x"]);
    assert_eq!(got, DropIn { prompt: text(&["x"]), dir: text(&["./src"]), ..DropIn::default() });
    assert_eq!(why, ["--working-directory ./src: the run is started there; Gemini CLI has no such flag"]);
}

#[test]
fn sessions_are_resumed_by_any_name() {
    let resumed = |words: &[&str]| {
        let run = run(words);
        (run.resume, run.session_id)
    };
    assert_eq!(resumed(&["-p", "x", "--resume"]), (text(&["latest"]), None));
    assert_eq!(resumed(&["-r", "3", "-p", "x"]), (text(&["3"]), None));
    assert_eq!(resumed(&["--resume=abc", "-p", "x"]), (text(&["abc"]), None));
    assert_eq!(resumed(&["--session-id", "abc", "-p", "x"]), (None, text(&["abc"])));
    assert_eq!(resumed(&["--session-id", "abc", "-p", "x", "--resume"]), (text(&["abc"]), None));
    assert_eq!(resumed(&["--session-id", "abc", "--resume", "def", "-p", "x"]), (text(&["def"]), None));
}

fn passed_through(words: &[&str], around: Surroundings) -> Option<String> {
    match read(&arguments(words), around) {
        Invocation::PassThrough(why) => Some(why),
        Invocation::Run(_) => None,
    }
}

// D-26, D-31, D-34 to D-36: CAO's terminals and commands are the CLI's own
#[test]
fn interactive_use_and_commands_are_handed_over() {
    for words in [
        &["mcp", "add", "cao-mcp-server", "--scope", "user", "-e", "CAO_TERMINAL_ID=abc", "npx", "-y", "x"][..],
        &["--debug", "mcp", "list"],
        &["extensions", "list"],
        &["skill", "list"],
        &["hooks", "migrate"],
        &["gemma", "status"],
        &["--yolo", "--sandbox", "false", "-i", "You are the supervisor"],
        &["--version"],
        &["-v"],
        &["--help", "-p", "x"],
        &["--acp"],
        &["--experimental-acp"],
        &["--list-sessions"],
        &["--delete-session", "1"],
        &["-l"],
    ] {
        for around in [PIPES, TERMINAL] {
            assert!(passed_through(words, around).is_some(), "{words:?}");
        }
    }
    assert_eq!(passed_through(&["mcp", "list"], PIPES).unwrap(), "`mcp` is a command of Gemini CLI");
    assert_eq!(passed_through(&["-i", "x"], TERMINAL).unwrap(), "-i is for Gemini CLI itself");
}

#[test]
fn without_p_the_terminal_decides() {
    let typed_into_a_pipe = Surroundings { stdout: Stream::Other, ..TERMINAL };
    let piped_onto_a_terminal = Surroundings { stdin: Stream::Other, ..TERMINAL };
    let in_ci = Surroundings { ci: true, ..TERMINAL };
    let nothing = "there is no prompt, and standard input is a terminal";
    let words = "a prompt without -p opens the screen on a terminal";
    assert_eq!(passed_through(&[], TERMINAL).as_deref(), Some(nothing));
    assert_eq!(passed_through(&["-r"], TERMINAL).as_deref(), Some(nothing));
    assert_eq!(passed_through(&["--yolo"], typed_into_a_pipe).as_deref(), Some(nothing));
    assert_eq!(passed_through(&["Fix", "it"], TERMINAL).as_deref(), Some(words));
    assert_eq!(passed_through(&["-p", "Fix it"], TERMINAL), None);
    assert_eq!(passed_through(&["Fix it"], typed_into_a_pipe), None);
    assert_eq!(passed_through(&["Fix it"], in_ci), None);
    assert_eq!(passed_through(&[], piped_onto_a_terminal), None);
    assert_eq!(passed_through(&[], PIPES), None);
}

proptest! {
    #[test]
    fn any_command_line_is_understood_or_handed_over(
        words in proptest::collection::vec(prop_oneof!["--?[a-z-]{0,12}(=.{0,4})?", "-{0,2}\\PC{0,6}", ".{0,8}"], 0..8),
    ) {
        for around in [PIPES, TERMINAL] {
            if let Invocation::Run(run) = read(&words, around) {
                // On a terminal nobody could type the prompt of a headless run.
                prop_assert!(run.prompt.is_some() || around.stdin == Stream::Other);
            }
        }
    }
}
