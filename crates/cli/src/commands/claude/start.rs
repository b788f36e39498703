//! From the SDK's options to a conversation.

use std::num::NonZeroU32;
use std::path::Path;

use alhena_agent::home::McpServer;
use alhena_agent::rules::{Decision, Rules};
use alhena_agent::{Approval, Conversation, Resume, Trust};
use alhena_agent::{Finder, RunExtras};
use alhena_hosts::claude::control::Initialize;
use alhena_hosts::claude::options::{Options, gemini_names};
use alhena_hosts::claude::{self, Mode};
use alhena_model::Hint;
use alhena_model::RunOptions;
use alhena_model::answer::Schema;
use alhena_model::options::{PromptMode, TimeLimit};
use serde_json::{Map, Value};

/// A conversation, and what the program should know of it.
pub struct Started {
    pub talk: Conversation,
    pub rules: Rules,
    pub mcp_servers: Vec<String>,
    pub notices: Vec<String>,
}

/// Begins a conversation.
pub fn start(options: &Options, initialize: &Initialize, hooked: bool) -> Result<Started, String> {
    if let Some(why) = initialize.impossible() {
        return Err(format!("this cannot be done with Gemini CLI: {why}"));
    }
    let mut notices = Vec::new();
    let (system_prompt, system_prompt_mode) = system_prompt(options, initialize)?.unzip();
    let mut wanted = RunOptions {
        approval: Some(approval(options.mode, hooked)),
        // Whoever gives a program an executable expects it to run; what the folder brings along still needs the user's word.
        trust: Some(Trust::Run),
        // The program has its own clock.
        first_event_timeout: Some(TimeLimit::Never),
        stall_timeout: Some(TimeLimit::Never),
        system_prompt,
        system_prompt_mode,
        schema: schema(options, initialize)?.map(Into::into),
        max_turns: options.max_turns.map(turns).transpose()?,
        max_cost: options.max_budget_usd,
        include_dir: options.add_dirs.iter().map(Into::into).collect(),
        deny_tool: options.denied_tools().into_iter().map(str::to_owned).collect(),
        resume: options.resume.as_ref().map(|id| match id.is_empty() {
            true => Resume::Latest,
            false => Resume::Id(id.clone()),
        }),
        ..RunOptions::default()
    };
    if let Some(name) = &options.model {
        wanted.model = claude::model(name).map(str::to_owned);
        if wanted.model.is_none() && !name.is_empty() {
            notices.push(not_a_model(name));
        }
    }
    let mut extras = RunExtras::default();
    for config in &options.mcp_configs {
        extras.mcp_servers.extend(mcp_servers(config)?);
    }
    let mut rules = Rules::default();
    for (decision, texts) in [(Decision::Allow, &options.allowed), (Decision::Deny, &options.disallowed)] {
        for text in texts {
            match add_rule(&mut rules, decision, text) {
                Err(why) => notices.push(why),
                Ok(added) if decision == Decision::Allow => wanted.allow.extend(added),
                Ok(added) => wanted.deny.extend(added),
            }
        }
    }
    if hooked {
        // The hooks are about every tool, also those that Gemini CLI does not ask about by itself.
        wanted.ask.push("*".to_owned());
    }
    let mcp_servers = extras.mcp_servers.iter().map(|server| server.name.clone()).collect();
    let gemini = Finder::new().env(extras.environment.clone()).find().map_err(|error| with_hint(&error))?;
    let talk = gemini.converse_with(&wanted, extras).map_err(|error| with_hint(&error))?;
    Ok(Started { talk, rules, mcp_servers, notices })
}

fn turns(most: u32) -> Result<NonZeroU32, String> {
    NonZeroU32::new(most).ok_or_else(|| "--max-turns has to be more than 0".to_owned())
}

/// What Gemini CLI may do by itself. With hooks before tools it asks about everything, and the mode is kept here.
pub fn approval(mode: Mode, hooked: bool) -> Approval {
    match mode.approval() {
        Approval::AutoEdit | Approval::Yolo if hooked => Approval::Default,
        approval => approval,
    }
}

/// Adds a rule of Claude's, and returns the rules that it stands for. A name that no tool of Gemini CLI's has would never decide
/// anything.
pub fn add_rule(rules: &mut Rules, decision: Decision, text: &str) -> Result<Vec<String>, String> {
    let meant = meant(decision, text)?;
    for rule in &meant {
        rules.add(decision, rule).map_err(|error| with_hint(&error))?;
    }
    Ok(meant)
}

/// The rules that a rule of Claude's stands for. `mcp__a__b` is the tool `b` of `a`, and where it denies also the server `a__b`.
fn meant(decision: Decision, text: &str) -> Result<Vec<String>, String> {
    let name = text.split('(').next().unwrap_or(text);
    Ok(match text.strip_prefix("mcp__") {
        Some(rest) if !rest.contains("__") => vec![format!("mcp({rest})")],
        Some(rest) if decision != Decision::Allow => vec![text.to_owned(), format!("mcp({rest})")],
        Some(_) => vec![text.to_owned()],
        None if gemini_names(name).is_empty() && name != "*" => {
            return Err(format!("the rule {text:?} means nothing here: Gemini CLI has no tool like {name}"));
        }
        None => vec![text.to_owned()],
    })
}

pub fn not_a_model(name: &str) -> String {
    format!("{name} is a model of Claude's; Gemini CLI chooses one of its own")
}

/// What every answer has to fit: Python says it on the command line, JavaScript when it begins to speak.
fn schema(options: &Options, initialize: &Initialize) -> Result<Option<Value>, String> {
    match &options.json_schema {
        Some(text) => Schema::parse(text).map(Some).map_err(|error| format!("--json-schema: {error}")),
        None => Ok(initialize.json_schema.clone().filter(|schema| !schema.is_null())),
    }
}

fn system_prompt(options: &Options, initialize: &Initialize) -> Result<Option<(String, PromptMode)>, String> {
    let from_file = match &options.system_prompt_file {
        Some(path) => Some(read(path)?),
        None => None,
    };
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let replaced = given(from_file)
        .or_else(|| given(options.system_prompt.clone()))
        .or_else(|| given(initialize.system_prompt.as_ref().map(claude::control::Pieces::text)));
    let appended = given(options.append_system_prompt.clone())
        .or_else(|| given(initialize.append_system_prompt.clone()));
    Ok(match (replaced, appended) {
        (Some(replaced), Some(appended)) => Some((format!("{replaced}\n\n{appended}"), PromptMode::Replace)),
        (Some(replaced), None) => Some((replaced, PromptMode::Replace)),
        (None, Some(appended)) => Some((appended, PromptMode::Append)),
        (None, None) => None,
    })
}

/// The servers of an argument: JSON, or a file of it.
fn mcp_servers(config: &str) -> Result<Vec<McpServer>, String> {
    let text = if config.trim_start().starts_with('{') { config.to_owned() } else { read(config)? };
    let mut object: Map<String, Value> =
        serde_json::from_str(&text).map_err(|error| format!("--mcp-config is no JSON object: {error}"))?;
    if let Some(Value::Object(servers)) = object.get_mut("mcpServers") {
        for (name, server) in servers {
            let Value::Object(server) = server else { continue };
            match server.get("type").and_then(Value::as_str) {
                Some("sdk") => {
                    return Err(format!(
                        "this cannot be done with Gemini CLI: the MCP server {name:?} lives in the program, where Gemini \
                         CLI cannot reach it; run it as a process or over HTTP"
                    ));
                }
                Some("stdio") => drop(server.remove("type")),
                _ => {}
            }
        }
    }
    McpServer::from_json(object).map_err(|error| with_hint(&error))
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(Path::new(path)).map_err(|error| format!("{path}: {error}"))
}

fn with_hint(error: &(impl Hint + std::fmt::Display)) -> String {
    match error.hint() {
        Some(hint) if !hint.is_empty() => format!("{error}. {hint}"),
        _ => error.to_string(),
    }
}
