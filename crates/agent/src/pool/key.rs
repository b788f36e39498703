//! Which prompts may share a process: those for which everything is equal that a process has only once.

use std::fs;
use std::path::{Path, PathBuf};

use alhena_session::registry;
use alhena_wire::release::Feature;
use serde_json::Value;

use super::folder::{self, Text};
use super::unfit::{NoKey, Unfit};
use crate::acp::SessionFolder;
use crate::env::Environment;
use crate::facts;
use crate::find::Gemini;
use crate::home;
use crate::prepare;
use crate::request::{PromptBy, ResolvedRequest, Sandbox};
use crate::settings::read_settings;

/// Equal for prompts that may share a process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(String);

/// In the user's `.gemini`: what the CLI writes as it goes, and logins, which every process reads when it needs them.
const PASSED_OVER: &[&str] = &[
    "tmp",
    "history",
    "projects.json",
    "state.json",
    "installation_id",
    "user_id",
    "google_accounts.json",
    "oauth_creds.json",
    "gemini-credentials.json",
    "mcp-oauth-tokens.json",
    "mcp-oauth-tokens-v2.json",
    "a2a-oauth-tokens.json",
];
/// So deep extensions, skills, commands and policies are looked at.
const DEEPEST: usize = 4;

/// A request that can share a process, and what has been looked up for it.
pub(super) struct Shareable {
    text: Text,
    environment: Environment,
    dir: PathBuf,
    user_home: PathBuf,
    user: Value,
}

/// Whether a request can share a process at all.
pub(super) fn shareable(
    gemini: &Gemini,
    request: &ResolvedRequest,
    environment: &Environment,
) -> Result<Shareable, NoKey> {
    let mut text = Text::default();
    options(request, &mut text)?;
    if !gemini.version.has(Feature::Acp) {
        return Err(Unfit::because(format!("Gemini CLI {} does not speak ACP", gemini.version)).into());
    }
    let mut environment = environment.clone();
    for (name, value) in &request.env {
        environment.set(name.clone(), value.clone());
    }
    let dir = prepare::working_directory(request).map_err(NoKey::Wrong)?;
    let Some(user_home) = environment.gemini_home() else {
        return Err(Unfit::because("there is no home directory").into());
    };
    if real(&user_home) == dir {
        return Err(Unfit::because("it works in the home directory itself").into());
    }
    if dir.to_str().is_none() || real(&user_home).to_str().is_none() {
        return Err(Unfit::because("the path of its directory or of the home is no Unicode text").into());
    }
    let user = read_settings(&user_home.join(".gemini/settings.json")).unwrap_or_default();
    // Only then is it one process, whose heap can be limited and whose memory can be looked at.
    if gemini.fast_start(&environment, &user).is_none() {
        let reason = format!("{} is not known to be a plain start of Node", gemini.path.display());
        return Err(Unfit::because(reason).into());
    }
    Ok(Shareable { text, environment, dir, user_home, user })
}

/// The key of a request, and where it works.
pub(super) fn of(
    gemini: &Gemini,
    request: &ResolvedRequest,
    environment: &Environment,
) -> Result<(Key, SessionFolder), NoKey> {
    let Shareable { mut text, environment, dir, user_home, user } = shareable(gemini, request, environment)?;
    text.add("gemini", &format!("{gemini:?}"));
    for (name, value) in environment.iter() {
        text.add(&format!("{name:?}"), &format!("{value:?}"));
    }
    users(&user_home, &environment, &mut text);
    let context_names = folders(&dir, &user_home, &user, &environment, &mut text);
    let included = request.include_dirs.iter().map(|dir| real(dir));
    let states: Vec<String> =
        [dir.clone()].into_iter().chain(included).map(|dir| folder::state(&dir, &context_names)).collect();
    let state = states.join(" ");
    Ok((Key(text.finish()), SessionFolder { dir, state }))
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// What the options say that a process has only once, or why it cannot be shared at all.
///
/// Every field is named, so that one who adds an option has to decide here.
fn options(request: &ResolvedRequest, text: &mut Text) -> Result<(), Unfit> {
    let ResolvedRequest {
        prompt: _,
        prompt_by,
        dir: _,
        transport: _,
        model,
        approval,
        trust,
        sandbox,
        include_dirs,
        allow_tools,
        deny_tools,
        policies,
        rules,
        hooks,
        permission_timeout: _,
        mcp_servers,
        system_prompt,
        env,
        resume,
        session_id,
        timeout: _,
        began: _,
        first_event_timeout: _,
        stall_timeout: _,
        max_turns,
        max_attempts,
        max_tokens,
        max_cost,
        max_calls,
        on_rate_limit: _,
        max_output: _,
        max_stderr: _,
        schema,
        schema_attempts: _,
        prices: _,
        record,
        extra_args,
        raw_lines,
        conversation: _,
        notices: _,
        usage_dir: _,
        require_keeper,
    } = request;
    let own = [
        (hooks.is_some(), "it has hooks, and a process tells nobody which prompt it asks them for"),
        (resume.is_some(), "it goes on with a session"),
        (session_id.is_some(), "its session has to have a given id"),
        (record.is_some(), "it is to be recorded"),
        (schema.is_some(), "its answer has to fit a schema"),
        // Who asks about its model calls is told by the settings of the process.
        (max_tokens.is_some() || max_cost.is_some() || max_calls.is_some(), "it has a budget"),
        (*raw_lines, "it wants the CLI's own lines"),
        (*require_keeper, "it requires a keeper"),
        (*prompt_by == PromptBy::File, "its prompt goes by a file"),
        (matches!(sandbox, Sandbox::On | Sandbox::Engine(_)), "it runs in a sandbox"),
    ];
    if let Some((_, reason)) = own.iter().find(|(wanted, _)| *wanted) {
        return Err(Unfit::because(*reason));
    }
    text.add(
        "asked",
        &format!("{model:?} {approval:?} {trust:?} {sandbox:?} {max_turns:?} {max_attempts:?}"),
    );
    text.add("tools", &format!("{allow_tools:?} {deny_tools:?} {rules:?}"));
    text.add("servers", &format!("{mcp_servers:?}"));
    text.add("told", &format!("{system_prompt:?} {env:?} {extra_args:?}"));
    for path in include_dirs {
        text.add("include", &real(path).to_string_lossy());
    }
    for path in policies {
        text.add("policy", &real(path).to_string_lossy());
        text.file(path);
    }
    Ok(())
}

/// What the user and the system have written for every process.
fn users(user_home: &Path, environment: &Environment, text: &mut Text) {
    let users = user_home.join(".gemini");
    let mut names: Vec<PathBuf> =
        fs::read_dir(&users).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    names.sort();
    for path in names {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if PASSED_OVER.contains(&name.as_str()) || name.contains(".lock") || name.contains(".tmp") {
            continue;
        }
        match path.is_dir() {
            true => text.tree(&path, DEEPEST),
            false => text.file(&path),
        }
    }
    text.tree(&user_home.join(".agents"), DEEPEST);
    let system = facts::system_settings(environment);
    text.file(&system.with_file_name("system-defaults.json"));
    text.file(&system);
}

/// What the folder brings along that a process has only once. One that has settings or memories of its own gets a process of its
/// own: settings are read again only after 10 s, and the name of context files is that of the last session (0.61.0). Gives these names.
fn folders(
    dir: &Path,
    user_home: &Path,
    user: &Value,
    environment: &Environment,
    text: &mut Text,
) -> Vec<String> {
    for place in dir.ancestors().chain([user_home]) {
        text.file(&place.join(".gemini/.env"));
        text.file(&place.join(".env"));
    }
    text.add("trust", &format!("{:?}", facts::trust(user_home, dir, environment)));
    let own = dir.join(".gemini/settings.json");
    let folder = read_settings(&own).unwrap_or_default();
    text.file(&own);
    let users = user_home.join(".gemini");
    let slug = dir.to_str().and_then(|dir| registry::registered_slug(&users, dir));
    let remembers = slug.is_some_and(|slug| users.join("tmp").join(slug).join("memory").exists());
    if dir.join(".gemini").exists() || remembers {
        text.add("dir", &dir.to_string_lossy());
    }
    let mut names: Vec<String> =
        [user, &folder].into_iter().filter_map(Value::as_object).flat_map(home::context_names).collect();
    names.push("GEMINI.md".to_owned());
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Approval, RunExtras, Trust};
    use alhena_model::RunOptions;
    use alhena_model::options::PromptMode;

    fn key(request: &ResolvedRequest) -> Option<String> {
        let mut text = Text::default();
        options(request, &mut text).ok().map(|()| text.finish())
    }

    fn asked(prompt: &str, options: &RunOptions) -> ResolvedRequest {
        ResolvedRequest::of(Some(prompt.into()), options, RunExtras::default()).unwrap()
    }

    fn extra(extras: RunExtras) -> ResolvedRequest {
        ResolvedRequest::of(None, &RunOptions::default().dir("/"), extras).unwrap()
    }

    #[test]
    fn what_a_process_has_only_once_makes_another_key_and_what_is_the_prompts_own_does_not() {
        let plain = || RunOptions::default().dir("/");
        let extras = RunExtras::default;
        let same = [
            asked("two", &plain().dir("/proc")),
            asked("one", &plain().timeout(std::time::Duration::from_secs(1))),
            extra(RunExtras { max_output: Some(5), ..extras() }),
            extra(RunExtras { notices: vec!["n".to_owned()], ..extras() }),
            extra(RunExtras { conversation: true, ..extras() }),
        ];
        let first = key(&asked("one", &plain()));
        for request in same {
            assert_eq!(key(&request), first, "{request:?}");
        }
        let others = [
            plain().model("m"),
            plain().approval(Approval::Yolo),
            plain().trust(Trust::Run),
            plain().sandbox(Sandbox::Off),
            plain().include_dir("/usr"),
            plain().allow_tool("read_file"),
            plain().deny_tool("read_file"),
            plain().policy("/etc/hostname"),
            plain().deny("shell(rm *)"),
            plain().mcp_server("a=node a.js"),
            plain().system_prompt("a"),
            plain().system_prompt("a").system_prompt_mode(PromptMode::Replace),
            plain().env("A", "1"),
            plain().env("A", "2"),
            plain().max_turns(3.try_into().unwrap()),
            plain().max_attempts(4.try_into().unwrap()),
            plain().args("--debug"),
        ];
        let mut keys: Vec<_> =
            others.iter().map(|options| key(&asked("one", options))).chain([first]).collect();
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!((keys.len(), keys.contains(&None)), (count, false));
    }

    #[test]
    fn what_needs_a_process_of_its_own_says_why() {
        let plain = RunOptions::default;
        let why = |request: &ResolvedRequest| options(request, &mut Text::default()).unwrap_err().to_string();
        assert_eq!(
            why(&asked("one", &plain().session_id("12345678"))),
            "a pool cannot take this: its session has to have a given id"
        );
        let others = [
            (asked("one", &plain().record("/r")), "recorded"),
            (asked("one", &plain().resume(home::Resume::Latest)), "session"),
            (asked("one", &plain().max_calls(3)), "budget"),
            (asked("one", &plain().prompt_by(PromptBy::File)), "file"),
            (asked("one", &plain().sandbox(Sandbox::On)), "sandbox"),
            (extra(RunExtras { raw_lines: true, ..RunExtras::default() }), "lines"),
            (extra(RunExtras { require_keeper: true, ..RunExtras::default() }), "keeper"),
        ];
        for (request, word) in others {
            assert!(why(&request).contains(word), "{word}");
        }
    }
}
