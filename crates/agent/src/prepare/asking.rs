//! What has to be so that the CLI asks about what it does, where somebody decides about it.
//!
//! A policy makes it ask, above all that the user and the CLI itself allow. It would also stand above what they deny: that is said
//! again, or refused where it cannot be. The tools of an MCP server that is trusted ask nobody, whatever a policy says (0.61.0).

use std::fs;
use std::path::{Path, PathBuf};

use alhena_wire::release::Feature;
use serde_json::{Map, Value, json};

use super::{RunError, hooks, takes_folder_settings};
use crate::budget;
use crate::env::Environment;
use crate::facts;
use crate::find::Gemini;
use crate::home::{McpServer, policy_paths};
use crate::hooks::Moment;
use crate::request::{Approval, ResolvedRequest, Transport};
use crate::rules::Decision;
use crate::settings::read_settings;

/// Whether the CLI has to ask about tools that it would not ask about by itself.
pub(crate) fn is_wanted(request: &ResolvedRequest, transport: Transport) -> bool {
    transport == Transport::Acp && (request.rules.restrict() || about_everything(request))
}

/// Whether it has to ask about all of them over ACP: somebody decides before a tool runs.
pub(crate) fn about_everything(request: &ResolvedRequest) -> bool {
    request.hooks.as_ref().is_some_and(|hooks| hooks.moments.contains(&Moment::BeforeTool))
}

/// The MCP servers of the request and of the user that are trusted.
pub(crate) fn trusted_servers(request: &ResolvedRequest, user: &Value) -> Vec<String> {
    let own = request.mcp_servers.iter().map(|server| (server.name.clone(), server.entry()));
    own.chain(servers(user)).filter(|(_, entry)| is_trusted(entry)).map(|(name, _)| name).collect()
}

/// Trusts none of these servers in the settings of the run: their tools ask, and are answered as if they did not.
pub(super) fn distrust(request: &ResolvedRequest, user: &Value, wanted: &mut Map<String, Value>) {
    let users = servers(user).filter(|(_, entry)| is_trusted(entry));
    let own = request.mcp_servers.iter().map(|server| (server.name.clone(), server.clone()));
    let own = own.map(|(name, server)| (name, McpServer { trust: None, ..server }.entry()));
    let mut changed: Map<String, Value> = users.chain(own).collect();
    for entry in changed.values_mut().filter_map(Value::as_object_mut) {
        entry.insert("trust".to_owned(), json!(false));
    }
    if changed.is_empty() {
        return;
    }
    if let Some(servers) = wanted.entry("mcpServers").or_insert_with(|| json!({})).as_object_mut() {
        servers.extend(changed);
    }
}

/// Refuses what would let a tool run unasked, or be asked about that is denied.
pub(super) fn check(
    request: &ResolvedRequest,
    gemini: &Gemini,
    user_home: &Path,
    user: &Value,
    others: &[PathBuf],
    environment: &Environment,
) -> Result<(), RunError> {
    let about_servers = |name: &String| name == "*" || name.contains("__") || name.starts_with("mcp_");
    let all = about_everything(request);
    if all || request.rules.to_be_asked_about().iter().any(about_servers) {
        refuse_trusted(others, if all { "hooks" } else { "rules" })?;
    }
    if !all {
        return Ok(());
    }
    if !gemini.version.has(Feature::ToolIdPrefix) {
        return Err(RunError::usage(
            format!("Gemini CLI {} does not say over ACP which call it asks about", gemini.version),
            "Use `transport` headless with `hook`, or a newer release: `alhena install` fetches it.",
        ));
    }
    if request.approval == Approval::Plan {
        return Err(not_in_plan_mode());
    }
    let none = Map::new();
    let settings = user.as_object().unwrap_or(&none);
    let users = policy_paths(Path::new(""), &request.policies, user_home, settings).into_iter().skip(1);
    let extensions = fs::read_dir(user_home.join(".gemini/extensions"));
    let extensions = extensions.into_iter().flatten().flatten().map(|entry| entry.path().join("policies"));
    for file in users.chain(extensions).flat_map(|path| files(&path)) {
        refuse_policy(&file, "deny", "denies something, which a hook would be asked about over ACP")?;
    }
    let admins = settings.get("adminPolicyPaths").and_then(Value::as_array).into_iter().flatten();
    let admins = admins.filter_map(Value::as_str).map(PathBuf::from);
    let system = facts::system_settings(environment).with_file_name("policies");
    for file in admins.chain([system]).flat_map(|path| files(&path)) {
        refuse_policy(&file, "allow", "allows something, about which no hook would be asked over ACP")?;
    }
    Ok(())
}

/// There the CLI decides by policies of its own what may be.
pub(crate) fn not_in_plan_mode() -> RunError {
    RunError::usage(
        "over ACP nobody can decide before a tool runs in plan mode",
        "Use `transport` headless with `hook` before-tool, or another `approval`.",
    )
}

/// The request with all that makes the CLI ask, for its arguments.
pub(crate) fn asking(
    request: &ResolvedRequest,
    user_home: &Path,
    dir: &Path,
    user: &Value,
    environment: &Environment,
) -> ResolvedRequest {
    let mut request = request.clone();
    if !about_everything(&request) {
        return request;
    }
    // It stands for every tool, so that it can always be read.
    let _never_fails = request.rules.add(Decision::Ask, "*");
    let folder = takes_folder_settings(&request, user_home, dir, environment);
    let others = hooks::other_settings(folder, dir, environment);
    let others: Vec<Value> = others.iter().filter_map(|path| read_settings(path).ok()).collect();
    for settings in [user].into_iter().chain(&others) {
        let lists = ["/tools/exclude", "/excludeTools"].map(|key| settings.pointer(key));
        let names = lists.into_iter().flatten().filter_map(Value::as_array).flatten();
        request.deny_tools.extend(names.filter_map(Value::as_str).map(str::to_owned));
    }
    // Its own policies deny these in some modes, and ours stands above them.
    request.deny_tools.extend(["enter_plan_mode", "exit_plan_mode"].map(str::to_owned));
    request
}

/// Makes the CLI ask about tools that call models, so that a budget is asked before each of them. The mode stays as it is.
pub(crate) fn about_model_tools(request: &mut ResolvedRequest) {
    for tool in budget::model_tools() {
        // The name of a tool is a rule.
        let _never_fails = request.rules.add(Decision::Ask, tool);
    }
}

/// Refuses policies of the user that deny a tool that calls a model: the rule that asks about it would stand above them.
pub(super) fn check_model_tools(
    request: &ResolvedRequest,
    user_home: &Path,
    user: &Value,
) -> Result<(), RunError> {
    let none = Map::new();
    let settings = user.as_object().unwrap_or(&none);
    for file in policy_paths(Path::new(""), &request.policies, user_home, settings)
        .iter()
        .skip(1)
        .flat_map(|path| files(path))
    {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let table: toml::Table = toml::from_str(&text).unwrap_or_default();
        let rules = table.get("rule").and_then(toml::Value::as_array).into_iter().flatten();
        for rule in rules.filter(|rule| rule.get("decision").and_then(toml::Value::as_str) == Some("deny")) {
            if let Some(tool) = budget::model_tools().find(|tool| names(rule, tool)) {
                return Err(RunError::usage(
                    format!(
                        "{} denies {tool}, and a budget over ACP has to be asked about it",
                        file.display()
                    ),
                    format!("Use `deny` {tool} in its place, or `transport` headless."),
                ));
            }
        }
    }
    Ok(())
}

/// Whether a rule of a policy may be about a built-in tool.
fn names(rule: &toml::Value, tool: &str) -> bool {
    let about = |name: &toml::Value| name.as_str().is_none_or(|name| name == tool || name.contains('*'));
    match (rule.get("mcpName"), rule.get("toolName")) {
        (Some(_), _) => false,
        (None, Some(toml::Value::Array(tools))) => tools.iter().any(about),
        (None, Some(name)) => about(name),
        (None, None) => true,
    }
}

fn refuse_trusted(others: &[PathBuf], who: &str) -> Result<(), RunError> {
    for path in others {
        let settings = read_settings(path).unwrap_or_default();
        if let Some((name, _)) = servers(&settings).find(|(_, entry)| is_trusted(entry)) {
            let path = path.display();
            return Err(RunError::usage(
                format!(
                    "{path} trusts the MCP server {name}, so that its tools ask nobody and {who} cannot be kept"
                ),
                "Take \"trust\" out of its entry there.",
            ));
        }
    }
    Ok(())
}

fn refuse_policy(file: &Path, decision: &str, why: &str) -> Result<(), RunError> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let hint = "Use `transport` headless with `hook`, or leave the policy out.";
    let path = file.display();
    let table: toml::Table =
        toml::from_str(&text).map_err(|_| RunError::usage(format!("{path} cannot be read"), hint))?;
    let rules = table.get("rule").and_then(toml::Value::as_array).into_iter().flatten();
    let mut decisions = rules.filter_map(|rule| rule.get("decision")?.as_str());
    match decisions.any(|found| found == decision) {
        true => Err(RunError::usage(format!("{path} {why}"), hint)),
        false => Ok(()),
    }
}

/// The policy files that a path stands for.
fn files(path: &Path) -> Vec<PathBuf> {
    let is_policy = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).filter(is_policy).collect(),
        Err(_) => Some(path.to_owned()).filter(|path| path.is_file()).into_iter().collect(),
    }
}

fn servers(settings: &Value) -> impl Iterator<Item = (String, Value)> {
    let servers = settings.get("mcpServers").and_then(Value::as_object).cloned().unwrap_or_default();
    servers.into_iter()
}

fn is_trusted(entry: &Value) -> bool {
    entry.get("trust") == Some(&json!(true))
}
