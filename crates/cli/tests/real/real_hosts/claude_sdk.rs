//! The Claude Agent SDKs, unmodified, on the real Gemini CLI.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use alhena_scripted::{Scenario, Turn, Usage, When};
use alhena_testbed::{cache, tools};
use serde_json::{Value, json};

use super::place::{ALHENA, Place};

fn usage() -> Usage {
    Usage {
        prompt_token_count: Some(1000),
        cached_content_token_count: Some(200),
        candidates_token_count: Some(100),
        thoughts_token_count: Some(50),
        total_token_count: Some(1150),
        ..Usage::default()
    }
}

/// What one answer of that size costs with gemini-2.5-flash: 800 fresh, 200 cached, 150 out.
const ONE_ANSWER: f64 = (800.0 * 0.3 + 200.0 * 0.03 + 150.0 * 2.5) / 1e6;

fn scenario() -> Scenario {
    let note = json!({"file_path": "note.txt", "content": "hi\n"});
    let edit =
        json!({"file_path": "kept.txt", "old_string": "kept", "new_string": "changed", "instruction": "x"});
    let wrong = json!({"code": 400, "message": "No such luck.", "status": "INVALID_ARGUMENT"});
    let on = |prompt: &str| When::new().prompt(prompt);
    let after = |tool: &str| When::new().response_of(tool);
    Scenario::new()
        .turn(Turn::say("It ran.").when(after("run_shell_command")).always())
        .turn(
            Turn::new()
                .calls([
                    ("write_file", note.clone()),
                    ("run_shell_command", json!({"command": "touch ran.txt", "description": "x"})),
                ])
                .when(after("read_file"))
                .always(),
        )
        .turn(
            Turn::new()
                .call("read_file", json!({"file_path": "kept.txt"}))
                .when(on("Read the note and write and run"))
                .always(),
        )
        .turn(Turn::say("I wrote it.").usage(usage()).when(after("write_file")).always())
        .turn(Turn::new().call("write_file", note.clone()).usage(usage()).when(on("Write the note")).always())
        .turn(
            Turn::new()
                .call("write_file", json!({"file_path": "greeting.txt", "content": "Hello!\n"}))
                .usage(usage())
                .when(on("Write a greeting"))
                .always(),
        )
        .turn(Turn::say("I changed it.").when(after("replace")).always())
        .turn(Turn::new().call("replace", edit).when(on("Change the kept file")).always())
        .turn(Turn::say("A greeting.").usage(usage()).when(on("What did you write?")).always())
        .turn(Turn::say("Hello again.").usage(usage()).when(on("Say it again")).always())
        .turn(Turn::say("Hello.").usage(usage()).when(on("Say hello")).always())
        .turn(Turn::new().text("Wait").hang().when(on("Slow")).always())
        .turn(
            Turn::new()
                .call("mcp_answer_submit_result", json!({"result": {"n": 7}}))
                .when(When::new().text("Count"))
                .always(),
        )
        .turn(Turn::error(400, wrong).when(on("Fail")).always())
}

struct Stage {
    place: Place,
    /// A link to Alhena under the name `claude`.
    claude: PathBuf,
}

impl Stage {
    fn new(name: &str) -> Self {
        let place = Place::new(name, [("claude", scenario())]);
        let claude = place.home.tmp().join("claude");
        symlink(ALHENA, &claude).unwrap();
        std::fs::write(place.home.workspace().join("kept.txt"), "kept\n").unwrap();
        Self { place, claude }
    }

    fn seen(&self, mut command: Command) -> Vec<Value> {
        command.env("CLAUDE_CLI", &self.claude).current_dir(self.place.home.workspace());
        let done = self.place.run(&mut command);
        self.place.assert_nothing_left();
        let said = done.stdout_text();
        let seen: Result<Vec<Value>, _> = said.lines().map(serde_json::from_str).collect();
        seen.unwrap_or_else(|_| panic!("{said}\n{}", done.stderr_text()))
    }

    fn python(&self, file: &str) -> Command {
        let mut command = self.place.command("claude-agent-sdk", "python3", &[]);
        command
            .arg(cache::workspace().join("hosts/claude-agent-sdk").join(file))
            .env("PYTHONPATH", tools::claude_sdk_python().unwrap())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// A module finds others beside itself only.
    fn javascript(&self, file: &str) -> Command {
        let directory = self.place.home.tmp().join("js");
        std::fs::create_dir_all(&directory).unwrap();
        symlink(tools::claude_sdk_npm().unwrap(), directory.join("node_modules")).unwrap();
        let source = cache::workspace().join("hosts/claude-agent-sdk").join(file);
        let program = directory.join(Path::new(file).file_name().unwrap());
        std::fs::copy(source, &program).unwrap();
        let mut command = self.place.command("claude-agent-sdk", tools::node22().unwrap(), &[]);
        command.arg(program);
        command
    }

    fn py(&self, scene: &str) -> Vec<Value> {
        let mut command = self.python("test/program.py");
        command.arg(scene);
        self.seen(command)
    }

    fn js(&self, scene: &str) -> Vec<Value> {
        let mut command = self.javascript("test/program.mjs");
        command.arg(scene);
        self.seen(command)
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.place.home.workspace().join(name)).ok()
    }

    fn models_asked(&self) -> Vec<String> {
        self.place.requests("claude").iter().map(|request| request.model.clone()).collect()
    }
}

fn of<'v>(seen: &'v [Value], kind: &str) -> Vec<&'v Value> {
    seen.iter().filter(|one| one["kind"] == kind).collect()
}

fn texts(seen: &[Value], pointer: &str) -> String {
    let blocks = seen.iter().filter_map(|one| one.pointer(pointer)?.as_array()).flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("|")
}

#[test]
fn a_python_query_runs_on_gemini_with_usage_and_cost() {
    let stage = Stage::new("claude-py-one");
    let seen = stage.py("one");
    assert_eq!(of(&seen, "SystemMessage")[0]["subtype"], "init", "{seen:#?}");
    assert_eq!(
        texts(&of(&seen, "AssistantMessage").into_iter().cloned().collect::<Vec<_>>(), "/content"),
        "Hello."
    );
    let result = of(&seen, "ResultMessage")[0];
    assert_eq!((&result["subtype"], &result["result"]), (&json!("success"), &json!("Hello.")), "{result:#}");
    assert_eq!(result["usage"]["input_tokens"], 800);
    assert_eq!(result["usage"]["cache_read_input_tokens"], 200);
    assert_eq!(result["usage"]["output_tokens"], 150);
    assert!((result["total_cost_usd"].as_f64().unwrap() - ONE_ANSWER).abs() < 1e-9, "{result:#}");
    assert!(result["model_usage"]["gemini-2.5-flash"].is_object(), "{result:#}");
    assert_eq!(result["session_id"].as_str().unwrap().len(), 36);
}

#[test]
fn a_python_client_holds_a_conversation_and_changes_the_model() {
    let stage = Stage::new("claude-py-two");
    let seen = stage.py("two_turns");
    let results: Vec<&Value> = of(&seen, "ResultMessage").iter().map(|one| &one["result"]).collect();
    assert_eq!(results, ["Hello.", "Hello again."], "{seen:#?}");
    assert_eq!(stage.models_asked(), ["gemini-2.5-flash", "gemini-2.5-pro"]);
    let again = stage.place.requests("claude").pop().unwrap();
    assert!(again.texts().any(|text| text.contains("Say hello")), "the second turn has the first before it");
    assert_eq!(of(&seen, "mcp")[0]["mcpServers"], json!([]));
}

#[test]
fn can_use_tool_decides_in_python() {
    for (scene, written) in [("allow", Some("hi\n")), ("deny", None), ("change", None)] {
        let stage = Stage::new("claude-py-asked");
        let seen = stage.py(scene);
        let asked = of(&seen, "asked");
        assert_eq!(asked.len(), 1, "{scene}: {seen:#?}");
        assert_eq!((&asked[0]["tool"], &asked[0]["input"]["content"]), (&json!("Write"), &json!("hi\n")));
        assert_eq!(stage.file("note.txt").as_deref(), written, "{scene}: {seen:#?}");
        let denials = of(&seen, "ResultMessage")[0]["permission_denials"].as_array().unwrap();
        assert_eq!(denials.is_empty(), written.is_some(), "{scene}: {seen:#?}");
        let notices =
            of(&seen, "SystemMessage").iter().filter(|one| one["subtype"] == "informational").count();
        assert_eq!(notices > 0, scene == "change", "{scene}: {seen:#?}");
    }
}

#[test]
fn can_use_tool_sees_the_old_and_the_new_text_of_an_edit() {
    let stage = Stage::new("claude-py-edit");
    let seen = stage.py("edit");
    let asked = of(&seen, "asked");
    assert_eq!(asked.len(), 1, "{seen:#?}");
    let input = &asked[0]["input"];
    assert_eq!(
        (&asked[0]["tool"], &input["old_string"], &input["new_string"]),
        (&json!("Edit"), &json!("kept"), &json!("changed"))
    );
    assert_eq!(stage.file("kept.txt").as_deref(), Some("changed\n"), "{seen:#?}");
}

#[test]
fn what_needs_a_permission_that_nobody_can_give_is_denied_until_the_mode_allows_it() {
    let stage = Stage::new("claude-py-edits");
    let seen = stage.py("edits");
    let results = of(&seen, "ResultMessage");
    let denied: Vec<usize> =
        results.iter().map(|one| one["permission_denials"].as_array().unwrap().len()).collect();
    assert_eq!(denied, [1, 0], "{seen:#?}");
    assert_eq!(stage.file("note.txt").as_deref(), Some("hi\n"));
}

#[test]
fn interrupting_a_turn_leaves_the_conversation() {
    let stage = Stage::new("claude-py-interrupt");
    let seen = stage.py("interrupt");
    let results = of(&seen, "ResultMessage");
    assert_eq!(results.len(), 2, "{seen:#?}");
    assert_eq!(
        (&results[0]["subtype"], &results[0]["errors"]),
        (&json!("error_during_execution"), &json!(["interrupted"]))
    );
    assert_eq!((&results[1]["subtype"], &results[1]["result"]), (&json!("success"), &json!("Hello.")));
}

#[test]
fn hooks_see_every_tool_and_are_heeded() {
    let stage = Stage::new("claude-py-hooks");
    let seen = stage.py("hooks");
    hooks_were_heeded(&stage, &seen);
    let results = of(&seen, "ResultMessage");
    assert_eq!(results.len(), 1, "{seen:#?}");
    assert_eq!(results[0]["result"], "Hello.");
}

fn hooks_were_heeded(stage: &Stage, seen: &[Value]) {
    let hooks: Vec<String> = of(seen, "hook")
        .iter()
        .map(|one| {
            format!("{} {}", one["event"].as_str().unwrap(), one["tool"].as_str().unwrap_or_default())
                .trim()
                .to_owned()
        })
        .collect();
    for expected in [
        "UserPromptSubmit",
        "PreToolUse Read",
        "PostToolUse Read",
        "PreToolUse Write",
        "PostToolUse Write",
        "PreToolUse Bash",
        "Stop",
    ] {
        assert!(hooks.iter().any(|hook| hook == expected), "{expected}: {hooks:?}\n{seen:#?}");
    }
    assert_eq!(hooks.iter().filter(|hook| *hook == "Stop").count(), 2, "{hooks:?}");
    assert_eq!(stage.file("note.txt").as_deref(), Some("hi\n"));
    assert_eq!(stage.file("ran.txt"), None);
    let first = &stage.place.requests("claude")[0];
    assert!(first.texts().any(|text| text.contains("The note is blue.")));
}

#[test]
fn system_prompts_sessions_and_limits_are_kept() {
    let stage = Stage::new("claude-py-limits");
    let seen = stage.py("limits");
    let results = of(&seen, "ResultMessage");
    let subtypes: Vec<&Value> = results.iter().map(|one| &one["subtype"]).collect();
    assert_eq!(subtypes, ["success", "success", "error_max_budget_usd", "error_max_turns"], "{seen:#?}");
    assert_eq!(results[0]["session_id"], results[1]["session_id"]);
    let requests = stage.place.requests("claude");
    assert!(requests[0].raw_body.contains("You are a pirate."));
    assert!(requests[1].texts().any(|text| text.contains("Say hello")), "the session goes on");
}

#[test]
fn what_gemini_cannot_do_is_an_exception_that_says_so() {
    let stage = Stage::new("claude-py-impossible");
    let seen = stage.py("impossible");
    let errors: Vec<&str> = of(&seen, "error").iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(errors.len(), 4, "{seen:#?}");
    for (error, expected) in errors.iter().zip(["lives in the program", "PreCompact", "strong", "auto"]) {
        assert!(error.contains(expected), "{expected}: {errors:#?}");
    }
    assert!(stage.place.requests("claude").is_empty());
}

#[test]
fn a_turn_that_fails_is_an_error_in_python() {
    let stage = Stage::new("claude-py-failing");
    let seen = stage.py("failing");
    let result = of(&seen, "ResultMessage")[0];
    assert_eq!((&result["is_error"], &result["subtype"]), (&json!(true), &json!("error_during_execution")));
    assert!(result["errors"][0].as_str().unwrap().contains("No such luck"), "{result:#}");
    assert!(of(&seen, "raised")[0]["text"].as_str().unwrap().contains("No such luck"), "{seen:#?}");
}

#[test]
fn the_javascript_sdk_queries_converses_asks_and_interrupts() {
    let results = |seen: &[Value]| -> Vec<Value> {
        of(seen, "result").iter().map(|one| one["message"]["result"].clone()).collect()
    };
    let stage = Stage::new("claude-js-one");
    let seen = stage.js("one");
    assert_eq!(results(&seen), ["Hello."], "{seen:#?}");
    let result = &of(&seen, "result")[0]["message"];
    assert!((result["total_cost_usd"].as_f64().unwrap() - ONE_ANSWER).abs() < 1e-9, "{result:#}");

    let stage = Stage::new("claude-js-two");
    assert_eq!(results(&stage.js("twoTurns")), ["Hello.", "Hello again."]);
    assert_eq!(stage.models_asked(), ["gemini-2.5-flash", "gemini-2.5-pro"]);

    for (scene, written) in [("allow", Some("hi\n")), ("deny", None)] {
        let stage = Stage::new("claude-js-asked");
        let seen = stage.js(scene);
        assert_eq!(of(&seen, "asked")[0]["tool"], "Write", "{seen:#?}");
        assert_eq!(stage.file("note.txt").as_deref(), written, "{seen:#?}");
    }

    let stage = Stage::new("claude-js-interrupt");
    let seen = stage.js("interrupt");
    let subtypes: Vec<&Value> = of(&seen, "result").iter().map(|one| &one["message"]["subtype"]).collect();
    assert_eq!(subtypes, ["error_during_execution", "success"], "{seen:#?}");
}

#[test]
fn hooks_and_permission_modes_of_the_javascript_sdk_are_heeded() {
    let stage = Stage::new("claude-js-hooks");
    let seen = stage.js("hooks");
    hooks_were_heeded(&stage, &seen);
    let results = of(&seen, "result");
    assert_eq!((results.len(), &results[0]["message"]["result"]), (1, &json!("Hello.")), "{seen:#?}");

    let stage = Stage::new("claude-js-edits");
    let seen = stage.js("edits");
    let denied: Vec<usize> = of(&seen, "result")
        .iter()
        .map(|one| one["message"]["permission_denials"].as_array().unwrap().len())
        .collect();
    assert_eq!(denied, [1, 0], "{seen:#?}");
    assert_eq!(stage.file("note.txt").as_deref(), Some("hi\n"));
}

#[test]
fn answers_that_have_to_fit_a_schema_are_values_in_both_languages() {
    let stage = Stage::new("claude-values");
    let (python, javascript) = (stage.py("values"), stage.js("values"));
    let python = of(&python, "ResultMessage").into_iter().cloned().collect::<Vec<_>>();
    let javascript = of(&javascript, "result").iter().map(|one| one["message"].clone()).collect::<Vec<_>>();
    for results in [python, javascript] {
        assert_eq!(results.len(), 2, "{results:#?}");
        assert_eq!(results[0]["structured_output"], json!({"n": 7}), "{results:#?}");
        assert_eq!(results[1]["subtype"], "error_max_structured_output_retries", "{results:#?}");
        assert_eq!(results[1].get("structured_output").unwrap_or(&Value::Null), &Value::Null);
    }
}

#[test]
fn what_gemini_cannot_do_is_an_exception_in_javascript_too() {
    let stage = Stage::new("claude-js-impossible");
    let seen = stage.js("impossible");
    let errors: Vec<&str> = of(&seen, "error").iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(errors.len(), 4, "{seen:#?}");
    for (error, expected) in errors.iter().zip(["lives in the program", "PreCompact", "strong", "auto"]) {
        assert!(error.contains(expected), "{expected}: {errors:#?}");
    }
    assert!(stage.place.requests("claude").is_empty());
}

#[test]
fn the_examples_of_the_readme_run() {
    let stage = Stage::new("claude-examples");
    for command in [stage.python("example.py"), stage.javascript("example.mjs")] {
        let mut command = command;
        command.env("CLAUDE_CLI", &stage.claude).current_dir(stage.place.home.workspace());
        let said = stage.place.run(&mut command).stdout_text();
        assert!(said.contains("I wrote it.") && said.contains(" USD"), "{said}");
        assert_eq!(stage.file("greeting.txt").as_deref(), Some("Hello!\n"));
        std::fs::remove_file(stage.place.home.workspace().join("greeting.txt")).unwrap();
    }
    stage.place.assert_nothing_left();
}
