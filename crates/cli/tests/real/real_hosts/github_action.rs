//! The GitHub Action, under bash, with an environment like GitHub's, a stand-in that says hostile things, and the real CLI.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use alhena_testbed::{Deadline, RealCli, cache, run_bounded, tools};
use serde_json::{Value, json};

use super::place::Place;

const LIMIT: Duration = Duration::from_secs(300);

/// What a model could say to get out of its place.
const HOSTILE: &str = "::error::pwned\n##[error]pwned\n  ::set-output name=status::success\n::stop-commands::pwned\n::pwned::\n\
    ::add-mask::a\r::warning::pwned\n%0A::error::pwned\nEOF\nstatus=success\nstatus<<x\nsuccess\nx\n```\n````\n## Fake\n<img src=x>\n\
    [link](http://pwned.example)\n::notice::no line break at the end";

/// A machine on which the action runs.
struct Runner {
    dir: tempfile::TempDir,
}

/// What GitHub would have seen.
#[derive(Debug)]
struct StepResult {
    code: Option<i32>,
    log: String,
    outputs: Vec<(String, String)>,
    summary: String,
}

impl Runner {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["temp", "workspace", "home"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// An alhena that says what a test wants, and notes how it was called.
    fn stand_in(&self, code: i32, text: &str, outcome: &str) {
        std::fs::write(self.file("text"), text).unwrap();
        std::fs::write(self.file("outcome"), outcome).unwrap();
        let script = format!(
            "#!/bin/bash\ncd \"$(dirname \"$0\")\"\ncase $*\n in parse*outcome*) cat outcome; exit {code};;\n\
             esac\nprintf '%s\\0' \"$@\" >arguments\ncat >prompt\n\
             env >environment\ncat text\ncat text >&2\nexit {code}\n"
        );
        self.program(&script);
    }

    fn program(&self, script: &str) {
        let program = self.file("alhena");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// The script as `action.yml` starts it.
    fn command(&self, inputs: &[(&str, &str)]) -> Command {
        let mut command = Command::new("bash");
        command
            .arg(action("run.sh"))
            .current_dir(self.file("workspace"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.file("home"))
            .env("RUNNER_TEMP", self.file("temp"))
            .env("GITHUB_OUTPUT", self.file("output"))
            .env("GITHUB_STEP_SUMMARY", self.file("summary"))
            .env("GITHUB_ENV", self.file("env"))
            .env("GITHUB_PATH", self.file("path"))
            .env("GITHUB_STATE", self.file("state"))
            .env("ACTIONS_RUNTIME_TOKEN", "the runner's own")
            .env("ALHENA_ACTION_ALHENA", self.file("alhena"))
            .envs(inputs.iter().map(|(name, value)| (format!("ALHENA_ACTION_{name}"), value)));
        command
    }

    fn run(&self, inputs: &[(&str, &str)]) -> StepResult {
        self.seen(&mut self.command(inputs))
    }

    fn seen(&self, command: &mut Command) -> StepResult {
        let done = run_bounded(command, LIMIT).unwrap();
        assert_eq!(done.stderr_text(), "", "one stream keeps the order");
        StepResult {
            code: done.status.code(),
            log: done.stdout_text(),
            outputs: outputs(&self.read("output")),
            summary: self.read("summary"),
        }
    }
}

impl StepResult {
    fn output(&self, name: &str) -> &str {
        let found: Vec<&str> =
            self.outputs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect();
        let [value] = found.as_slice() else { panic!("{name}: {:?}", self.outputs) };
        value
    }

    fn verdict(&self) -> (Option<i32>, &str, &str) {
        (self.code, self.output("status"), self.output("failure-kind"))
    }
}

fn action(name: &str) -> PathBuf {
    cache::workspace().join("hosts/github-action").join(name)
}

/// Reads a file of outputs as GitHub's runner does.
fn outputs(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut lines = text.split('\n');
    while let Some(line) = lines.next() {
        if let Some((name, end)) = line.split_once("<<") {
            let value: Vec<&str> = lines.by_ref().take_while(|line| *line != end).collect();
            found.push((name.to_owned(), value.join("\n")));
        } else if !line.is_empty() {
            found.push(("no output".to_owned(), line.to_owned()));
        }
    }
    found
}

/// The commands that GitHub's runner obeys: those in new and old writing, unless they are off.
fn obeyed(log: &str) -> Vec<String> {
    let mut off: Option<String> = None;
    let mut commands = Vec::new();
    for line in log.split(['\n', '\r']) {
        let new = line.trim_start().strip_prefix("::").and_then(|rest| rest.split_once("::"));
        let name = new.map_or("", |(head, _)| head.split(' ').next().unwrap_or_default());
        if let Some(word) = &off {
            if name == word {
                off = None;
            }
        } else if name == "stop-commands" {
            off = new.map(|(_, word)| word.to_owned());
        } else if new.is_some() || line.contains("##[") {
            commands.push(line.to_owned());
        }
    }
    assert_eq!(off, None, "commands stay off: {log}");
    commands
}

/// What of a summary is not inside a fence.
fn markup(summary: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for line in summary.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) if ticks >= open.len() && line.trim_end().len() == ticks => fence = None,
            Some(_) => {}
            None if ticks >= 3 => fence = line.get(..ticks),
            None => lines.push(line),
        }
    }
    assert_eq!(fence, None, "{summary}");
    lines
}

fn outcome() -> Value {
    json!({
        "status": "success", "text": HOSTILE, "final_text": HOSTILE, "session_id": "s", "models": ["m|x"],
        "files": [{"path": "a|b`c`\n## Fake <b> [x](http://pwned.example)", "change": "created", "claimed": true, "verified": true}],
        "usage": {"total": 130}, "cost_usd": 0.25, "data": HOSTILE, "tool_calls": 2, "duration_ms": 1234, "warnings": ["one\n::error::pwned", "100%, really: x"],
    })
}

#[test]
fn what_a_model_says_stays_text() {
    let runner = Runner::new();
    runner.stand_in(0, HOSTILE, &outcome().to_string());
    let seen = runner.run(&[("PROMPT", "Go")]);
    assert_eq!(seen.verdict(), (Some(0), "success", ""), "{seen:?}");
    assert_eq!(seen.output("text"), HOSTILE);
    assert_eq!((seen.output("tokens"), seen.output("cost"), seen.output("session-id")), ("130", "0.25", "s"));
    let files: Value = serde_json::from_str(seen.output("files")).unwrap();
    assert_eq!(files, outcome()["files"]);
    assert_eq!(serde_json::from_str::<Value>(seen.output("data")).unwrap(), json!(HOSTILE));
    assert_eq!(seen.outputs.len(), 11, "{:?}", seen.outputs);
    assert_eq!(
        obeyed(&seen.log),
        ["::warning title=Gemini CLI::one%0A::error::pwned", "::warning title=Gemini CLI::100%25, really: x"]
    );
    let markup = markup(&seen.summary);
    let headings: Vec<&&str> =
        markup.iter().filter(|line| line.contains('#') && !line.contains("&#")).collect();
    assert_eq!(headings, [&"## Gemini CLI: success", &"### Answer"]);
    assert_eq!(markup.iter().filter(|line| line.starts_with('|')).count(), 6, "{markup:?}");
    assert!(!markup.iter().any(|line| line.contains(['<', '[', '`', '*'])), "{markup:?}");
    assert!(
        markup.iter().any(|line| line.contains("1 s | 130 | &#36;0&#46;25 | 2 | m&#124;x")),
        "{markup:?}"
    );
}

#[test]
fn a_failure_is_never_a_success_whatever_is_said_of_it() {
    let failed = |kind: &str| {
        let mut outcome = outcome();
        outcome["status"] = json!("failed");
        outcome["failure"] = json!({"kind": kind, "message": format!("{HOSTILE}: 50%, x"), "hint": "Look."});
        outcome.to_string()
    };
    let odd = json!({"status": 7, "final_text": [1], "files": "none", "usage": [], "models": {}, "warnings": 3, "failure": "x"});
    for (code, said, verdict) in [
        (6, failed("rate_limited"), (6, "failed", "rate_limited")),
        (3, outcome().to_string(), (3, "failed", "not_installed")),
        (0, failed("api"), (1, "failed", "api")),
        (0, "not JSON".to_owned(), (1, "failed", "protocol")),
        (0, String::new(), (1, "failed", "protocol")),
        (0, odd.to_string(), (1, "failed", "protocol")),
        (124, odd.to_string(), (124, "failed", "timeout")),
        (0, "{\"status\":\"success\\nstatus<<x\"}".to_owned(), (1, "failed", "protocol")),
        (137, "[]".to_owned(), (137, "failed", "crashed")),
    ] {
        let runner = Runner::new();
        runner.stand_in(code, HOSTILE, &said);
        let seen = runner.run(&[("PROMPT", "Go")]);
        let (code, status, kind) = verdict;
        assert_eq!(seen.verdict(), (Some(code), status, kind), "{said}: {seen:?}");
        assert!(!seen.output("failure").is_empty(), "{said}");
        assert_eq!((seen.output("data"), seen.outputs.len()), ("", 11), "{said}: {:?}", seen.outputs);
        assert!(
            serde_json::from_str::<Value>(seen.output("files")).is_ok_and(|files| files.is_array()),
            "{said}"
        );
        let commands = obeyed(&seen.log);
        assert!(
            commands[0].starts_with(&format!("::error title=Gemini CLI%3A failed ({kind})::")),
            "{commands:?}"
        );
        assert!(
            commands.iter().skip(1).all(|line| line.starts_with("::warning title=Gemini CLI::")),
            "{commands:?}"
        );
        assert!(seen.summary.starts_with("## Gemini CLI: failed\n"), "{said}: {}", seen.summary);
        assert!(!markup(&seen.summary).contains(&"## Fake"), "{}", seen.summary);
    }
}

#[test]
fn inputs_are_values_and_never_commands() {
    let hostile = "$(touch pwned) `touch pwned`; touch pwned\n--approval=yolo";
    let runner = Runner::new();
    runner.stand_in(0, "Hi", &outcome().to_string());
    let names =
        ["PROMPT", "MODEL", "APPROVAL", "DIR", "TIMEOUT", "VERSION", "MAX_TOKENS", "MAX_COST", "MAX_CALLS"];
    let inputs: Vec<(&str, &str)> = names.iter().map(|name| (*name, hostile)).collect();
    let tools = ("ALLOW_TOOLS", "glob\r\n\nrun_shell_command($(touch pwned))");
    let seen = runner.run(&[inputs.as_slice(), &[tools]].concat());
    assert_eq!(seen.code, Some(0), "{seen:?}");
    let called = runner.read("arguments");
    let called: Vec<&str> =
        called.trim_end_matches('\0').split('\0').filter(|word| !word.starts_with("--record=")).collect();
    let with = |option: &str| format!("{option}={hostile}");
    let [model, approval, dir, gemini, timeout, first, stall, tokens, cost, calls] = [
        "model",
        "approval",
        "dir",
        "gemini",
        "timeout",
        "first-event-timeout",
        "stall-timeout",
        "max-tokens",
        "max-cost",
        "max-calls",
    ]
    .map(|name| with(&format!("--{name}")));
    let expected = [
        "run",
        "--as=text",
        "--trust",
        "--quiet",
        &model,
        &approval,
        &dir,
        &gemini,
        &timeout,
        &first,
        &stall,
        &tokens,
        &cost,
        &calls,
        "--allow-tool=glob",
        "--allow-tool=run_shell_command($(touch pwned))",
        "-",
    ];
    assert_eq!(called, expected);
    assert_eq!(runner.read("prompt"), hostile);
    assert_eq!(std::fs::read_dir(runner.file("workspace")).unwrap().count(), 0);
    // What GitHub reads commands from is not the agent's to write to.
    let environment = runner.read("environment");
    for name in [
        "GITHUB_OUTPUT",
        "GITHUB_ENV",
        "GITHUB_PATH",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
        "ACTIONS_",
        "ALHENA_ACTION_",
    ] {
        assert!(!environment.lines().any(|line| line.starts_with(name)), "{name}: {environment}");
    }
    // action.yml gives inputs to the environment alone.
    let action = std::fs::read_to_string(action("action.yml")).unwrap();
    let script = action.split("run: bash").nth(1).unwrap();
    assert!(!script.contains("${{"), "{script}");
}

#[test]
fn what_cannot_be_run_is_refused_with_the_reason() {
    let runner = Runner::new();
    runner.stand_in(0, "Hi", &outcome().to_string());
    std::os::unix::fs::symlink("/proc/self/environ", runner.file("workspace/link")).unwrap();
    // A checkout's own pip is not run.
    std::fs::write(runner.file("workspace/pip.py"), "open('pwned', 'w')\n").unwrap();
    for (inputs, reason) in [
        (vec![], "Give a prompt, or a prompt-file"),
        (vec![("PROMPT", "x"), ("PROMPT_FILE", "y")], "Give prompt or prompt-file, not both"),
        (vec![("PROMPT_FILE", "gone")], "prompt-file has to be a file in the workspace"),
        (vec![("PROMPT_FILE", "link")], "prompt-file has to be a file in the workspace"),
        (vec![("PROMPT_FILE", "../text")], "prompt-file has to be a file in the workspace"),
        (vec![("PROMPT_FILE", "/dev/zero")], "prompt-file has to be a file in the workspace"),
        (vec![("PROMPT", "x"), ("SCHEMA", "link")], "schema has to be JSON, or a file in the workspace"),
        (vec![("PROMPT", "x"), ("SCHEMA", "../text")], "schema has to be JSON, or a file in the workspace"),
        (vec![("PROMPT", "x"), ("ALHENA", "")], "alhena 0.1.0 could not be installed from PyPI"),
        (vec![("PROMPT", "x"), ("OFFLINE", "maybe")], "offline has to be true or false"),
        (vec![("PROMPT", "x"), ("ALHENA", "/nowhere\n::error::x")], "/nowhere\n::error::x is no program"),
    ] {
        std::fs::remove_file(runner.file("output")).ok();
        let mut command = runner.command(&inputs);
        let seen = runner.seen(command.env("PIP_NO_INDEX", "1"));
        assert_eq!(seen.verdict(), (Some(2), "failed", "input"), "{seen:?}");
        assert_eq!(seen.output("failure"), reason);
        let mut commands = obeyed(&seen.log);
        commands.retain(|command| !command.starts_with("::group::"));
        assert_eq!(commands, [format!("::error title=Alhena::{}", reason.replace('\n', "%0A"))]);
    }
    assert!(!runner.file("arguments").exists() && !runner.file("workspace/pwned").exists());
    std::fs::write(runner.file("workspace/ask"), "From a file").unwrap();
    assert_eq!(runner.run(&[("PROMPT_FILE", "./ask")]).code, Some(0));
    assert_eq!(runner.read("prompt"), "From a file");
}

#[test]
fn an_answer_that_fits_a_schema_is_an_output() {
    let runner = Runner::new();
    let cli = RealCli::get("0.61.0").unwrap();
    let (alhena, gemini) = (super::place::ALHENA, cli.bin.to_string_lossy());
    std::fs::write(runner.file("workspace/schema.json"), r#"{"type": "string"}"#).unwrap();
    for (schema, verdict) in [
        (r#" {"type": "object", "required": ["no such thing"]}"#, (Some(8), "failed", "schema")),
        ("schema.json", (Some(8), "failed", "schema")),
        ("{no JSON}", (Some(2), "failed", "input")),
    ] {
        std::fs::remove_file(runner.file("output")).ok();
        let inputs = [
            ("PROMPT", "Say hello"),
            ("OFFLINE", "true"),
            ("VERSION", &*gemini),
            ("ALHENA", alhena),
            ("SCHEMA", schema),
        ];
        let seen = runner.seen(runner.command(&inputs).env("ALHENA_HOME", runner.file("alhena-home")));
        // The scripted tour knows of no schemas.
        assert_eq!((seen.verdict(), seen.output("data")), (verdict, ""), "{schema}: {seen:?}");
    }
    runner.stand_in(0, "Hi", &outcome().to_string());
    std::fs::remove_file(runner.file("output")).ok();
    let seen = runner.run(&[("PROMPT", "x"), ("SCHEMA", "schema.json")]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    let schema = runner.read("arguments");
    let schema = schema.split('\0').find_map(|word| word.strip_prefix("--schema=")).unwrap();
    assert_eq!(std::fs::read_to_string(schema).unwrap(), r#"{"type": "string"}"#);
}

#[test]
fn a_cancelled_job_cancels_the_run() {
    let runner = Runner::new();
    runner.program(
        "#!/bin/bash\ncd \"$(dirname \"$0\")\"\n[ \"$1\" = run ] || exit 130\ntrap 'echo stopped >stopped; exit 130' TERM\n\
         echo begun >begun\nfor _ in {1..600}; do sleep 0.1; done\n",
    );
    let script = runner.command(&[("PROMPT", "Go")]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = Deadline::after(LIMIT).wait_until(|| runner.file("begun").exists());
    assert!(begun);
    let mut script = script;
    let killed = Command::new("kill").args(["-TERM", &script.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(script.wait().unwrap().code(), Some(130));
    assert_eq!(runner.read("stopped"), "stopped\n");
    let outputs = outputs(&runner.read("output"));
    assert!(outputs.contains(&("failure-kind".to_owned(), "cancelled".to_owned())), "{outputs:?}");
}

#[test]
fn the_action_runs_the_real_cli() {
    let runner = Runner::new();
    let cli = RealCli::get("0.61.0").unwrap();
    let (alhena, gemini) = (super::place::ALHENA, cli.bin.to_string_lossy());
    let prompt = "Write a haiku about rivers into haiku.txt";
    let inputs = [
        ("PROMPT", prompt),
        ("OFFLINE", "true"),
        ("APPROVAL", "yolo"),
        ("VERSION", &*gemini),
        ("ALHENA", alhena),
    ];
    let seen = runner.seen(runner.command(&inputs).env("ALHENA_HOME", runner.file("alhena-home")));
    assert_eq!(seen.verdict(), (Some(0), "success", ""), "{seen:?}");
    assert!(runner.file("workspace/haiku.txt").is_file());
    let files: Value = serde_json::from_str(seen.output("files")).unwrap();
    assert_eq!((&files[0]["path"], &files[0]["change"]), (&json!("haiku.txt"), &json!("created")), "{files}");
    assert!(seen.output("tokens").parse::<u64>().unwrap() > 0);
    assert!(seen.output("cost").parse::<f64>().is_ok_and(|cost| cost > 0.0), "{seen:?}");
    assert!(Path::new(seen.output("outcome")).is_file());
    assert!(seen.summary.contains("| haiku&#46;txt | created | yes |"), "{}", seen.summary);
    assert!(seen.log.contains(seen.output("text")), "{}", seen.log);

    let again = Runner::new();
    let inputs = [
        ("PROMPT", "x"),
        ("VERSION", &*gemini),
        ("ALHENA", alhena),
        ("TIMEOUT", "100ms"),
        ("OFFLINE", "true"),
    ];
    let seen = again.seen(again.command(&inputs).env("ALHENA_HOME", again.file("alhena-home")));
    assert_eq!(seen.verdict(), (Some(124), "timeout", "timeout"), "{seen:?}");
}

#[test]
fn the_script_has_no_fault_that_shellcheck_knows() {
    let place = Place::new("shellcheck", []);
    let shellcheck = tools::shellcheck().unwrap();
    place.run(&mut place.command("github-action", shellcheck, &["--severity=style", "run.sh"]));
}
