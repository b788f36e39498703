//! The CLI's arguments, all but the prompt.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use alhena_model::{FailureKind, Setting};
use alhena_wire::release::{Feature, Version};
use serde_json::{Map, Value};

use super::RunError;
use crate::find::Gemini;
use crate::home::{Home, Resume, Shell, ToolRule, check_policy, policy_paths, policy_text};
use crate::request::{Approval, ResolvedRequest, Sandbox, Transport, Trust};

/// The policy file that Alhena writes; what the CLI says about it is not the user's concern.
pub(crate) const OUR_POLICY: &str = "alhena-rules.toml";

/// A warning for each `--allow-tool`, `--deny-tool` and rule of a policy file that names no tool or no MCP server of the
/// run: it would be without effect.
pub(crate) fn without_effect(request: &ResolvedRequest, servers: &[String]) -> Vec<String> {
    let options = [(Setting::AllowTool, &request.allow_tools), (Setting::DenyTool, &request.deny_tools)];
    let named = options.into_iter().flat_map(|(option, names)| names.iter().map(move |name| (option, name)));
    let options = named.filter_map(|(option, name)| {
        let rule = name.parse::<ToolRule>().ok()?;
        let why = match rule.mistaken() {
            Some(mistaken) => mistaken.to_string(),
            None if rule.names_none_of(servers.iter().map(String::as_str)) => match servers {
                [] => "the run has no MCP server".to_owned(),
                _ => format!("the MCP servers of the run are called {}", servers.join(", ")),
            },
            None => return None,
        };
        Some(format!("{option} {name} has no effect: {why}"))
    });
    // A file that is refused is told elsewhere.
    let files = request.policies.iter().filter_map(|path| check_policy(path).ok());
    options.chain(files.flat_map(|policy| policy.warnings)).collect()
}

pub(crate) fn of(
    request: &ResolvedRequest,
    gemini: &Gemini,
    home: Option<&Home>,
    run_dir: &Path,
    user_home: &Path,
    user_settings: &Value,
) -> Result<Vec<OsString>, RunError> {
    let version = &gemini.version;
    let mut args: Vec<OsString> = Vec::new();
    if request.approval == Approval::Plan {
        needs(version, Feature::PlanMode, "`approval` plan")?;
    }
    for dir in &request.include_dirs {
        args.push(include(dir)?);
    }
    let mut flag = |name: &str, value: &dyn AsRef<OsStr>| args.push(with_value(name, value.as_ref()));
    // Exactly one: the flag twice, or with --yolo, ends the CLI.
    flag("--approval-mode", &request.approval.flag());
    if let Some(model) = &request.model {
        flag("--model", model);
    }
    if let Some(id) = &request.session_id {
        needs(version, Feature::SessionIdFlag, Setting::SessionId)?;
        flag("--session-id", &session_id(id)?);
    }
    if let Some(resume) = &request.resume {
        needs(version, Feature::Resume, Setting::Resume)?;
        if request.session_id.is_some() {
            return Err(RunError::usage(
                format!("{} and {} exclude each other", Setting::Resume, Setting::SessionId),
                "Leave one of them out.",
            ));
        }
        match (home, resume) {
            (Some(home), _) => {
                if let Some(id) = home.resumed_id() {
                    flag("--resume", &id);
                }
            }
            (None, Resume::Latest) => flag("--resume", &"latest"),
            (None, Resume::Id(id)) => flag("--resume", id),
        }
    }
    for (name, value) in tool_flags(request, version, run_dir, user_home, user_settings)? {
        flag(name, &value);
    }
    if matches!(request.sandbox, Sandbox::On | Sandbox::Engine(_)) {
        args.push("--sandbox".into());
    }
    if request.trust == Trust::Run && version.has(Feature::SkipTrust) {
        args.push("--skip-trust".into());
    }
    args.extend_from_slice(extra(&request.extra_args)?);
    Ok(args)
}

fn with_value(name: &str, value: &OsStr) -> OsString {
    let mut argument = OsString::from(format!("{name}="));
    argument.push(value);
    argument
}

/// The argument that lets the model use another directory.
pub(super) fn include(dir: &Path) -> Result<OsString, RunError> {
    Ok(with_value("--include-directories", existing(dir)?.as_os_str()))
}

pub(super) fn needs(version: &Version, feature: Feature, option: impl fmt::Display) -> Result<(), RunError> {
    if version.has(feature) {
        return Ok(());
    }
    let since = feature.row().map_or((0, 0, 0), |row| row.since);
    Err(RunError::usage(
        format!("Gemini CLI {version} cannot do {option}; it came with {}.{}.{}", since.0, since.1, since.2),
        "Use a newer one: `alhena install` fetches it.",
    ))
}

fn existing(dir: &Path) -> Result<PathBuf, RunError> {
    let found = fs::canonicalize(dir).ok().filter(|dir| dir.is_dir());
    let found = found.ok_or_else(|| {
        RunError::usage(
            format!("{}: {} is not a directory", Setting::IncludeDir, dir.display()),
            "Give a directory that exists.",
        )
    })?;
    // The CLI takes a comma for the start of the next directory.
    match found.to_string_lossy().contains(',') {
        true => Err(RunError::usage(
            format!(
                "{}: {} has a comma in its name, which Gemini CLI cannot handle",
                Setting::IncludeDir,
                found.display()
            ),
            "Give it another name, or a link without a comma.",
        )),
        false => Ok(found),
    }
}

/// The CLI takes letters, digits, `-` and `_`; files are named by the first eight, which must be plain (0.61.0).
pub(crate) fn session_id(id: &str) -> Result<&str, RunError> {
    let plain = id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    match plain && id.bytes().take(8).all(|byte| byte.is_ascii_alphanumeric()) {
        true => Ok(id),
        false => Err(RunError::usage(
            format!("{}: {id:?} is no good session id", Setting::SessionId),
            "Use a UUID, or at least eight letters and digits, then letters, digits, - and _.",
        )),
    }
}

/// Allow and deny lists: a policy since 0.30, flags before.
fn tool_flags(
    request: &ResolvedRequest,
    version: &Version,
    run_dir: &Path,
    user_home: &Path,
    user_settings: &Value,
) -> Result<Vec<(&'static str, OsString)>, RunError> {
    let allow = rules(Setting::AllowTool, &request.allow_tools)?;
    let deny = rules(Setting::DenyTool, &request.deny_tools)?;
    let ask = rules(Setting::Rules, &request.rules.to_be_asked_about())?;
    if let Some(rule) = allow.iter().find(|rule| rule.is_ambiguous()) {
        return Err(RunError::usage(
            format!("{} {rule} does not say where the server's name ends", Setting::AllowTool),
            "Write mcp_SERVER_TOOL, the name that the model is given.",
        ));
    }
    if let Some(rule) = deny.iter().find(|rule| rule.is_beyond_policies()) {
        return Err(RunError::usage(
            format!("{} {rule}: Gemini CLI cannot deny these tools by a pattern", Setting::DenyTool),
            "Name each tool, or use `deny` with mcp(SERVER/TOOL) over ACP.",
        ));
    }
    if !ask.is_empty() {
        needs(version, Feature::Policy, "a rule that denies or asks")?;
    }
    if !version.has(Feature::Policy) {
        if !request.policies.is_empty() {
            needs(version, Feature::Policy, Setting::Policy)?;
        }
        // Denials are in the settings.
        return Ok(request.allow_tools.iter().map(|tool| ("--allowed-tools", tool.into())).collect());
    }
    let policies: Vec<PathBuf> = request
        .policies
        .iter()
        .map(|path| {
            check_policy(path).map(|policy| policy.path).map_err(|bad| {
                let hint = "Gemini CLI would run without it; mend the file, or leave out `policy`.";
                RunError::usage(format!("{}: {bad}", Setting::Policy), hint).caused_by(bad)
            })
        })
        .collect::<Result<_, _>>()?;
    let shell = if request.transport == Transport::Acp { Shell::Asks } else { Shell::Judges };
    if allow.is_empty() && deny.is_empty() && ask.is_empty() && shell == Shell::Judges {
        return Ok(policies.into_iter().map(|path| ("--policy", path.into_os_string())).collect());
    }
    let ours = run_dir.join(OUR_POLICY);
    fs::write(&ours, policy_text(&allow, &deny, &ask, shell))
        .map_err(|error| RunError::failed(FailureKind::Config, format!("{}: {error}", ours.display())))?;
    let none = Map::new();
    let settings = user_settings.as_object().unwrap_or(&none);
    let paths = policy_paths(&ours, &policies, user_home, settings);
    Ok(paths.into_iter().map(|path| ("--policy", path.into_os_string())).collect())
}

fn rules(setting: Setting, texts: &[String]) -> Result<Vec<ToolRule>, RunError> {
    texts
        .iter()
        .map(|text| {
            text.parse::<ToolRule>().map_err(|error| {
                RunError::usage(
                    format!("{setting}: {error}"),
                    "Write NAME, or run_shell_command(PREFIX) for some commands only.",
                )
            })
        })
        .collect()
}

/// Arguments that would take the output away from us are refused.
fn extra(args: &[OsString]) -> Result<&[OsString], RunError> {
    const OURS: &[&str] = &[
        "-o",
        "--output-format",
        "-p",
        "--prompt",
        "-i",
        "--prompt-interactive",
        "--acp",
        "--experimental-acp",
    ];
    let name = |arg: &OsString| arg.to_string_lossy().split('=').next().unwrap_or("").to_owned();
    match args.iter().map(name).find(|name| OURS.contains(&name.as_str())) {
        None => Ok(args),
        Some(name) => Err(RunError::usage(
            format!("{name} cannot be given to Gemini CLI through Alhena"),
            "Use Alhena's own options for the prompt and the output.",
        )),
    }
}
