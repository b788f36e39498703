//! Errors name a setting as the caller writes it.

use std::fs;

use alhena_model::Setting;
use alhena_testbed::{Script, Step};
use serde_json::json;

use super::run::desk_with;

/// When a bad value is found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Before anything is looked for.
    Early,
    /// When the run is prepared.
    Late,
}

use Found::{Early, Late};

/// A bad value of each setting that has one. Any text is a model or a prompt, and an argument is named by itself.
pub const BAD: &[(Setting, &str, Found)] = &[
    (Setting::PromptFile, "nowhere.txt", Late),
    (Setting::PromptBy, "x", Early),
    (Setting::Transport, "x", Early),
    (Setting::AgentCommand, "'", Early),
    (Setting::Offline, "bad.json", Late),
    (Setting::Cassette, "bad.json", Late),
    (Setting::CassetteMode, "x", Early),
    (Setting::Dir, "nowhere", Early),
    (Setting::Gemini, "/nowhere/gemini", Late),
    (Setting::Approval, "x", Early),
    (Setting::Trust, "x", Early),
    (Setting::Sandbox, "x", Early),
    (Setting::IncludeDir, "nowhere", Late),
    (Setting::AllowTool, "run_shell_command(", Late),
    (Setting::DenyTool, "run_shell_command(", Late),
    (Setting::Policy, "nowhere.toml", Late),
    (Setting::McpServer, "x", Early),
    (Setting::SystemPromptFile, "nowhere.md", Early),
    (Setting::SystemPromptMode, "x", Early),
    (Setting::Env, "=x", Early),
    (Setting::Resume, "", Early),
    (Setting::Allow, "shell(", Early),
    (Setting::Deny, "shell(", Early),
    (Setting::Ask, "shell(", Early),
    (Setting::Rules, "nowhere.toml", Early),
    (Setting::PermissionTimeout, "soon", Early),
    (Setting::SessionId, "no/good", Early),
    (Setting::Timeout, "soon", Early),
    (Setting::FirstEventTimeout, "soon", Early),
    (Setting::StallTimeout, "soon", Early),
    (Setting::MaxTurns, "0", Early),
    (Setting::MaxAttempts, "0", Early),
    (Setting::MaxTokens, "0", Early),
    (Setting::MaxCost, "0", Early),
    (Setting::MaxCalls, "0", Early),
    (Setting::OnRateLimit, "x", Early),
    (Setting::Prices, "nowhere.json", Early),
    (Setting::Schema, "nowhere.json", Early),
    (Setting::SchemaAttempts, "x", Early),
    (Setting::Hook, "x", Early),
    (Setting::HookTimeout, "soon", Early),
    (Setting::Record, "full", Late),
];

const WITHOUT: &[Setting] =
    &[Setting::Prompt, Setting::Model, Setting::SystemPrompt, Setting::NoConfig, Setting::Args];

#[test]
fn errors_name_settings_as_the_command_line_files_and_jobs_do() {
    let all = BAD.iter().map(|(setting, ..)| setting).chain(WITHOUT);
    assert!(Setting::ALL.iter().all(|setting| all.clone().any(|other| other == setting)), "one is missing");
    let (desk, _hostile) = desk_with(Script::normal());
    desk.write("full/file", "");
    desk.write("bad.json", "[1]");
    let config = desk.home().join("alhena/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let (mut jobs, mut wrong) = (String::new(), Vec::new());
    for (setting, value, found) in BAD {
        let (name, dashed) = (setting.name(), setting.name().replace('_', "-"));
        let flag = format!("--{dashed}={value}");
        let prompt = if *setting == Setting::PromptFile { &[][..] } else { &["hello"] };
        let seen = desk.alhena(&[&["run", &flag], prompt].concat());
        if seen.code() == Some(0)
            || !seen.stderr.contains(&format!("--{dashed}"))
            || seen.stderr.contains(&setting.to_string())
        {
            wrong.push(format!("{flag}: {seen}"));
        }
        fs::write(&config, format!("{dashed} = {value:?}\n")).unwrap();
        let seen = desk.alhena(&["run", "hello"]);
        let is_named = seen.stderr.contains(&dashed) || seen.stderr.contains(name);
        // A CLI that is not there exits with 3.
        if !matches!(seen.code(), Some(2 | 3)) || !is_named {
            wrong.push(format!("{dashed} in config.toml: {seen}"));
        }
        fs::remove_file(&config).unwrap();
        if *found == Early {
            jobs += &format!("{}\n", json!({"id": name, "prompt": "hello", name: value}));
        }
    }
    desk.write("jobs.jsonl", &jobs);
    let seen = desk.alhena(&["batch", "jobs.jsonl", "--into", "results.jsonl"]);
    let early = BAD.iter().filter(|(.., found)| *found == Early);
    for (at, (setting, ..)) in early.enumerate() {
        let place = format!("jobs.jsonl:{}:", at + 1);
        if !seen.stderr.lines().any(|line| line.contains(&place) && line.contains(&setting.to_string())) {
            wrong.push(format!("{place} does not name {setting}: {seen}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_gemini_cli_and_the_model_say_of_settings_stays_as_it_is() {
    let error = Step::Error { severity: "warning".to_owned(), message: "the CLI says `model`".to_owned() };
    let text = Step::Text("use `model`".to_owned());
    let (desk, _hostile) = desk_with(Script::new([Step::Init, Step::User, error, text, Step::Result]));
    for view in ["text", "pretty"] {
        let seen = desk.alhena(&["run", "--as", view, "hello"]).to_string();
        assert!(seen.contains("the CLI says `model`") && seen.contains("use `model`"), "{seen}");
    }
}
