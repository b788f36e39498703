//! From a prompt and its options to a request: the one place where the files that options name are read.

use std::path::Path;
use std::time::Duration;

use alhena_model::Hint;
use alhena_model::answer::Schema;
use alhena_model::options::{AnswerSchema, EnvVar, PromptMode, RunOptions, Setting, SettingError, TimeLimit};
use serde_json::Value;

use super::{Prompt, ResolvedRequest, Resume, RunExtras, SystemPrompt};
use crate::home::McpServer;
use crate::hooks::Hooks;
use crate::prepare::RunError;
use crate::prices;
use crate::rules::{BadRule, Decision};

/// How long a hook may take by default.
const HOOK_LIMIT: Duration = Duration::from_secs(60);

impl From<SettingError> for RunError {
    fn from(error: SettingError) -> Self {
        RunError::misuse(error)
    }
}

/// The options that choose the agent. A program that calls the library has chosen it already.
const OF_THE_BINARY: &[Setting] = &[
    Setting::AgentCommand,
    Setting::Offline,
    Setting::Cassette,
    Setting::CassetteMode,
    Setting::Gemini,
    Setting::NoConfig,
];

impl ResolvedRequest {
    /// The request of a program that calls the library. Nothing that it asks for is passed over.
    pub(crate) fn for_program(
        prompt: Option<Prompt>,
        options: &RunOptions,
        extras: RunExtras,
    ) -> Result<Self, RunError> {
        options.check()?;
        if let Some(setting) = OF_THE_BINARY.iter().find(|setting| options.has(**setting)) {
            let message = format!("`{}` is an option of the alhena binary", setting.name());
            return Err(RunError::usage(message, "Leave it out; `Finder` and `AcpAgent` choose the agent."));
        }
        Self::of(prompt, options, extras)
    }

    /// Makes the request for a prompt with these options. Reads the files that they name, and parses rules and servers.
    ///
    /// The options that say who runs it are for the caller: `gemini`, `agent_command`, `offline`, `cassette`.
    pub fn of(
        prompt: impl Into<Option<Prompt>>,
        options: &RunOptions,
        extras: RunExtras,
    ) -> Result<Self, RunError> {
        let RunExtras {
            environment,
            hooks,
            mcp_servers,
            prices: given_prices,
            require_keeper,
            began,
            notices,
            raw_lines,
            conversation,
            usage_dir,
            max_output,
            max_stderr,
        } = extras;
        let RunOptions {
            prompt_by,
            transport,
            agent_command: _,
            offline: _,
            cassette: _,
            cassette_mode: _,
            dir,
            gemini: _,
            model,
            approval,
            trust,
            sandbox,
            include_dir,
            allow_tool,
            deny_tool,
            policy,
            mcp_server,
            system_prompt,
            system_prompt_file,
            system_prompt_mode,
            env,
            resume,
            allow,
            deny,
            ask,
            rules,
            permission_timeout,
            session_id,
            timeout,
            first_event_timeout,
            stall_timeout,
            max_turns,
            max_attempts,
            max_tokens,
            max_cost,
            max_calls,
            on_rate_limit,
            prices,
            schema,
            schema_attempts,
            hook,
            hook_timeout,
            record,
            no_config: _,
            args,
        } = options;
        let defaults = ResolvedRequest::default();
        let mut request = ResolvedRequest {
            prompt: prompt.into(),
            require_keeper,
            began,
            notices,
            raw_lines,
            conversation,
            usage_dir,
            max_output: max_output.unwrap_or(defaults.max_output),
            max_stderr: max_stderr.unwrap_or(defaults.max_stderr),
            ..defaults
        };
        dir.as_deref().map_or(Ok(()), directory)?;
        let instructions = match system_prompt_file {
            None => system_prompt.clone(),
            Some(file) => Some(std::fs::read_to_string(file).map_err(|error| {
                let message = format!("{}: {}: {error}", Setting::SystemPromptFile, file.display());
                RunError::usage(message, "Give a text file that can be read.").caused_by(error)
            })?),
        };
        if matches!(resume, Some(Resume::Id(id)) if id.is_empty()) {
            return Err(RunError::usage(
                format!("{} needs the id of a session, and it is empty", Setting::Resume),
                "Give the id, or no value for the latest session.",
            ));
        }
        request.system_prompt = instructions.map(|text| match system_prompt_mode.unwrap_or_default() {
            PromptMode::Append => SystemPrompt::Append(text),
            PromptMode::Replace => SystemPrompt::Replace(text),
        });
        for server in mcp_server {
            request.mcp_servers.extend(McpServer::from_argument(server).map_err(|error| {
                let hint = "Write 'NAME=COMMAND ARGS', 'NAME=URL', or give a JSON file.";
                RunError::usage(format!("{}: {error}", Setting::McpServer), hint).caused_by(error)
            })?);
        }
        request.mcp_servers.extend(mcp_servers);
        for EnvVar { name, value } in env {
            match value {
                Some(value) => request.env.push((name.into(), value.into())),
                None if environment.get(name).is_some() => {}
                None => {
                    return Err(RunError::usage(
                        format!("{}: {name} is not set", Setting::Env),
                        "Set it, or write NAME=VALUE.",
                    ));
                }
            }
        }
        for file in rules {
            request.rules.read(file).map_err(|bad| bad_rule(Setting::Rules, bad))?;
        }
        for (setting, decision, list) in [
            (Setting::Allow, Decision::Allow, allow),
            (Setting::Deny, Decision::Deny, deny),
            (Setting::Ask, Decision::Ask, ask),
        ] {
            for rule in list {
                request.rules.add(decision, rule).map_err(|bad| bad_rule(setting, bad))?;
            }
        }
        if !hook.is_empty() {
            let commands = hook.iter().map(|hook| (hook.moment, hook.command.clone())).collect();
            request.hooks = Some(Hooks::of_commands(commands, hook_timeout.unwrap_or(HOOK_LIMIT)));
        }
        request.hooks = match (request.hooks.take(), hooks) {
            (Some(commands), Some(hooks)) => Some(commands.then(hooks)),
            (commands, hooks) => commands.or(hooks),
        };
        request.prices = match given_prices {
            None => {
                let found = prices.as_deref().map(|file| prices::find(Some(file), &environment));
                found.transpose().map_err(|error| {
                    let hint = error.hint().unwrap_or_default().into_owned();
                    RunError::usage(format!("{}: {error}", Setting::Prices), hint).caused_by(error)
                })?
            }
            given => given,
        };
        request.schema = schema.as_ref().map(read_schema).transpose()?;
        request.schema_attempts = schema_attempts.unwrap_or(request.schema_attempts);
        request.prompt_by = prompt_by.unwrap_or_default();
        request.transport = transport.unwrap_or_default();
        request.dir.clone_from(dir);
        request.model.clone_from(model);
        request.approval = approval.unwrap_or_default();
        request.trust = trust.unwrap_or_default();
        request.sandbox = sandbox.clone().unwrap_or_default();
        request.include_dirs.clone_from(include_dir);
        request.allow_tools.clone_from(allow_tool);
        request.deny_tools.clone_from(deny_tool);
        request.policies.clone_from(policy);
        request.resume.clone_from(resume);
        request.session_id.clone_from(session_id);
        let or = |given: &Option<TimeLimit>, default| given.map_or(default, TimeLimit::duration);
        request.permission_timeout = or(permission_timeout, request.permission_timeout);
        request.timeout = or(timeout, request.timeout);
        request.first_event_timeout = or(first_event_timeout, request.first_event_timeout);
        request.stall_timeout = or(stall_timeout, request.stall_timeout);
        request.max_turns = max_turns.map(Into::into);
        request.max_attempts = max_attempts.map(Into::into);
        (request.max_tokens, request.max_cost, request.max_calls) = (*max_tokens, *max_cost, *max_calls);
        request.on_rate_limit = on_rate_limit.clone().unwrap_or_default();
        request.record.clone_from(record);
        request.extra_args.clone_from(args);
        Ok(request)
    }
}

/// Refuses a directory that nothing can work in.
pub fn directory(dir: &Path) -> Result<(), RunError> {
    match dir.is_dir() {
        true => Ok(()),
        false => Err(RunError::usage(
            format!("{}: {} is not a directory", Setting::Dir, dir.display()),
            "Give a directory that exists.",
        )),
    }
}

fn bad_rule(setting: Setting, bad: BadRule) -> RunError {
    let hint = bad.hint().unwrap_or_default().into_owned();
    RunError::usage(format!("{setting}: {bad}"), hint).caused_by(bad)
}

/// Reads a schema that is in a file or given as it is.
pub fn read_schema(given: &AnswerSchema) -> Result<Value, RunError> {
    let usage = |message: String| {
        let hint = "Give a file with a JSON schema, or the schema itself, such as {\"type\": \"object\"}.";
        RunError::usage(format!("{}: {message}", Setting::Schema), hint)
    };
    let schema = match given {
        AnswerSchema::Json(schema) => Value::Object(schema.clone()),
        AnswerSchema::FileOrText(given) => {
            // A schema is an object; no path that anybody has begins so.
            let text = given.to_str().filter(|text| text.trim_start().starts_with('{'));
            let text = match text.filter(|_| !Path::new(given).is_file()) {
                Some(text) => text.to_owned(),
                None => std::fs::read_to_string(given).map_err(|error| {
                    usage(format!("{}: {error}", given.to_string_lossy())).caused_by(error)
                })?,
            };
            Schema::parse(&text).map_err(|error| usage(error.to_string()))?
        }
    };
    // A schema that is none is reported before anything is looked for or fetched.
    Schema::new(&schema).map_err(|error| usage(error.to_string()))?;
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use alhena_model::options::Offline;
    use serde_json::json;

    use super::*;

    fn refused(options: Value) -> String {
        let options: RunOptions = serde_json::from_value(options).unwrap();
        let error = ResolvedRequest::of(None, &options, RunExtras::default()).unwrap_err();
        let hint = error.hint().unwrap_or_default().into_owned();
        format!("{error} {hint}")
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_names_of_fields() {
        let expected = r#"`schema`: /proc/nowhere.json: No such file or directory (os error 2) Give a file with a JSON schema, or the schema itself, such as {"type": "object"}."#;
        assert_eq!(refused(json!({"schema": "/proc/nowhere.json"})), expected);
        let expected = "`dir`: /proc/nowhere is not a directory Give a directory that exists.";
        assert_eq!(refused(json!({"dir": "/proc/nowhere"})), expected);
        let expected = "`resume` needs the id of a session, and it is empty Give the id, or no value for the latest session.";
        assert_eq!(refused(json!({"resume": ""})), expected);
        let expected = "`env`: NO_SUCH_VARIABLE_IS_SET is not set Set it, or write NAME=VALUE.";
        assert_eq!(refused(json!({"env": "NO_SUCH_VARIABLE_IS_SET"})), expected);
    }

    #[test]
    fn the_error_of_a_file_is_kept() {
        let options = RunOptions::default().system_prompt_file("/proc/nowhere");
        let error = ResolvedRequest::of(None, &options, RunExtras::default()).unwrap_err();
        assert!(error.source().is_some_and(|source| source.is::<std::io::Error>()), "{error:?}");
    }

    #[test]
    fn a_program_is_told_what_its_run_cannot_mean() {
        let refused = |options: RunOptions| {
            ResolvedRequest::for_program(None, &options, RunExtras::default()).unwrap_err().to_string()
        };
        let options = RunOptions::default;
        assert_eq!(refused(options().offline(Offline::Tour)), "`offline` is an option of the alhena binary");
        let both = options().system_prompt("a").system_prompt_file("b");
        assert_eq!(refused(both), "`system_prompt` and `system_prompt_file` cannot be given together");
    }

    #[test]
    fn options_that_were_not_given_have_the_defaults_of_a_request() {
        let request = ResolvedRequest::of(None, &RunOptions::default(), RunExtras::default()).unwrap();
        assert_eq!(format!("{request:?}"), format!("{:?}", ResolvedRequest::default()));
    }
}
