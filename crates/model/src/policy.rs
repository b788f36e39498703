//! What others may ask for: a request over HTTP, or a job from a queue.
//!
//! The owner of a machine decides it with a [`Policy`]. [`Policy::admit`] and [`travel_errors`] name every field of
//! [`RunOptions`], so that a new option does not compile until it is decided whether others may give it.

use std::path::{Component, Path, PathBuf};

use crate::options::{
    AnswerSchema, Approval, CassetteMode, EnvVar, Offline, Prompt, RunOptions, Sandbox, Setting,
    SettingError, Trust,
};

/// What the owner of a machine allows others to ask for.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The directory that all others and all files are below, without symbolic links.
    pub root: Option<PathBuf>,
    /// The directory that relative paths begin at.
    pub base: PathBuf,
    /// The highest approval mode.
    pub max_approval: Approval,
    /// Variables that may be set.
    pub allow_env: Vec<String>,
    /// Whether options may name programs, or load settings that do.
    pub allow_programs: bool,
}

/// The approval modes, from the one that allows least to the one that allows most.
pub const MODES: [Approval; 4] = [Approval::Plan, Approval::Default, Approval::AutoEdit, Approval::Yolo];

/// The use that a run makes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathUse {
    /// A directory.
    Directory,
    /// A file that is read.
    Read,
    /// A file that is read or written.
    Write,
}

/// Why options are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal<E> {
    /// The approval mode is above the highest.
    Approval(Approval),
    /// The option allows what the highest approval mode does not.
    Grant(Setting),
    /// The option does something that only programs of the owner's choice may do, described by a verb.
    Program(Setting, &'static str),
    /// A variable that may not be set.
    Variable(String),
    /// A cassette would be recorded, which writes a file.
    Recording,
    /// The option is never for others.
    Never(Setting),
    /// The text of a schema is not JSON.
    NotJson(Setting, String),
    /// A path is not allowed.
    Path(E),
}

impl Policy {
    /// Returns true if this mode may be asked for.
    pub fn allows(&self, mode: Approval) -> bool {
        mode.rank() <= self.max_approval.rank()
    }

    /// The modes that may be asked for.
    pub fn modes(&self) -> impl Iterator<Item = Approval> {
        MODES.into_iter().filter(|mode| self.allows(*mode))
    }

    /// Admits a prompt and options that somebody else wrote, or tells why not. `resolve` returns the real path of one that the
    /// options name, if it is below the root; it takes the place of the path.
    pub fn admit<E>(
        &self,
        prompt: Option<&mut Prompt>,
        options: &mut RunOptions,
        mut resolve: impl FnMut(Setting, &Path, PathUse) -> Result<PathBuf, E>,
    ) -> Result<(), Refusal<E>> {
        let RunOptions {
            // These reach nothing but the model and the limits of the run itself.
            prompt_by: _,
            transport: _,
            model: _,
            deny_tool: _,
            deny: _,
            ask: _,
            system_prompt: _,
            system_prompt_mode: _,
            permission_timeout: _,
            timeout: _,
            first_event_timeout: _,
            stall_timeout: _,
            max_turns: _,
            max_attempts: _,
            max_tokens: _,
            max_cost: _,
            max_calls: _,
            on_rate_limit: _,
            schema_attempts: _,
            hook_timeout: _,
            no_config: _,
            // Sessions are those of the machine.
            resume: _,
            session_id: _,
            // The others are limited.
            agent_command,
            offline,
            cassette,
            cassette_mode,
            dir,
            gemini,
            approval,
            trust,
            sandbox,
            include_dir,
            allow_tool,
            policy,
            mcp_server,
            system_prompt_file,
            env,
            allow,
            rules,
            prices,
            schema,
            hook,
            record,
            args,
        } = options;
        if let Some(mode) = approval.filter(|mode| !self.allows(*mode)) {
            return Err(Refusal::Approval(mode));
        }
        let may_write = self.allows(Approval::AutoEdit);
        if cassette.is_some() && !may_write && *cassette_mode != Some(CassetteMode::Replay) {
            return Err(Refusal::Recording);
        }
        if record.is_some() {
            return Err(Refusal::Never(Setting::Record));
        }
        let grants = [
            (Setting::AllowTool, !allow_tool.is_empty()),
            (Setting::Allow, !allow.is_empty()),
            (Setting::Policy, !policy.is_empty()),
            (Setting::Rules, !rules.is_empty()),
        ];
        if let Some((setting, _)) = grants.into_iter().find(|(_, given)| *given)
            && !self.allows(Approval::Yolo)
        {
            return Err(Refusal::Grant(setting));
        }
        const NAMES: &str = "names a program";
        let programs = [
            (Setting::AgentCommand, agent_command.is_some(), NAMES),
            (Setting::Gemini, gemini.is_some(), NAMES),
            (Setting::McpServer, !mcp_server.is_empty(), NAMES),
            (Setting::Hook, !hook.is_empty(), NAMES),
            (Setting::Args, !args.is_empty(), NAMES),
            (Setting::Trust, *trust == Some(Trust::WithSettings), "loads what the folder brings along"),
            (Setting::Sandbox, *sandbox == Some(Sandbox::Off), "takes the sandbox away"),
        ];
        if let Some((setting, _, what)) = programs.into_iter().find(|(_, given, _)| *given)
            && !self.allow_programs
        {
            return Err(Refusal::Program(setting, what));
        }
        if let Some(EnvVar { name, .. }) =
            env.iter().find(|variable| !self.allow_env.contains(&variable.name))
        {
            return Err(Refusal::Variable(name.clone()));
        }
        if let Some(AnswerSchema::FileOrText(text)) = schema
            && let Some(text) = text.to_str().filter(|text| text.trim_start().starts_with('{'))
        {
            // A file could have such a name.
            let parsed = serde_json::from_str(text);
            let parsed = parsed.map_err(|error| Refusal::NotJson(Setting::Schema, error.to_string()))?;
            *schema = Some(AnswerSchema::Json(parsed));
        }
        let mut each = |setting: Setting, path: &mut PathBuf, used: PathUse| {
            *path = resolve(setting, path, used).map_err(Refusal::Path)?;
            Ok(())
        };
        if let Some(Prompt::File(file)) = prompt {
            each(Setting::PromptFile, file, PathUse::Read)?;
        }
        if let Some(Offline::Scenario(file)) = offline {
            each(Setting::Offline, file, PathUse::Read)?;
        }
        if let Some(AnswerSchema::FileOrText(given)) = schema {
            let mut file = PathBuf::from(std::mem::take(given));
            each(Setting::Schema, &mut file, PathUse::Read)?;
            *given = file.into_os_string();
        }
        let of_cassette = if may_write { PathUse::Write } else { PathUse::Read };
        let one = [
            (Setting::Dir, dir, PathUse::Directory),
            (Setting::SystemPromptFile, system_prompt_file, PathUse::Read),
            (Setting::Prices, prices, PathUse::Read),
            (Setting::Cassette, cassette, of_cassette),
        ];
        for (setting, path, used) in one {
            path.iter_mut().try_for_each(|path| each(setting, path, used))?;
        }
        let several = [
            (Setting::IncludeDir, include_dir, PathUse::Directory),
            (Setting::Policy, policy, PathUse::Read),
            (Setting::Rules, rules, PathUse::Read),
        ];
        for (setting, paths, used) in several {
            paths.iter_mut().try_for_each(|path| each(setting, path, used))?;
        }
        Ok(())
    }
}

const PROGRAMS: &str = "the worker chooses which programs run on it";
const FILES: &str = "it names a file on the worker, which nobody but its owner chooses";

/// Returns why options cannot travel to a worker, as far as that shows before a worker has them. With `brings_dir`, the directory
/// travels with the job; otherwise it is one of the worker's.
///
/// Files with instructions and schemas do not travel themselves: their content does.
pub fn travel_errors(options: &RunOptions, brings_dir: bool) -> Vec<SettingError> {
    let RunOptions {
        // These mean the same everywhere.
        prompt_by: _,
        transport: _,
        model: _,
        deny_tool: _,
        deny: _,
        ask: _,
        system_prompt: _,
        system_prompt_file: _,
        system_prompt_mode: _,
        permission_timeout: _,
        timeout: _,
        first_event_timeout: _,
        stall_timeout: _,
        max_turns: _,
        max_attempts: _,
        max_tokens: _,
        max_cost: _,
        max_calls: _,
        on_rate_limit: _,
        schema: _,
        schema_attempts: _,
        no_config: _,
        // The worker's policy decides.
        approval: _,
        allow_tool: _,
        allow: _,
        // Some values of these travel.
        dir,
        include_dir,
        trust,
        offline,
        // These do not.
        gemini,
        agent_command,
        args,
        env,
        mcp_server,
        hook,
        hook_timeout,
        sandbox,
        policy,
        rules,
        prices,
        cassette,
        cassette_mode,
        record,
        resume,
        session_id,
    } = options;
    let mut errors = Vec::new();
    let mut error = |setting: Setting, is_wrong: bool, why: &str, fix: &str| {
        if is_wrong {
            let problem = format!("{setting} {why}");
            errors.push(SettingError { setting: Some(setting), problem, fix: fix.to_owned() });
        }
    };
    let why = "has to be a relative path, below the worker's root";
    let fix = "Give such a path, or let the folder travel with \"copy\": true.";
    error(Setting::Dir, !brings_dir && dir.as_deref().is_some_and(|dir| !is_below(dir)), why, fix);
    error(Setting::IncludeDir, !include_dir.iter().all(|dir| is_below(dir)), why, fix);
    let (why, fix) = ("travels to a worker only as true or false", "Write true.");
    error(Setting::Trust, *trust == Some(Trust::WithSettings), why, fix);
    error(Setting::Offline, matches!(offline, Some(Offline::Scenario(_))), why, fix);
    for (setting, given, why) in [
        (Setting::Gemini, gemini.is_some(), PROGRAMS),
        (Setting::AgentCommand, agent_command.is_some(), PROGRAMS),
        (Setting::Args, !args.is_empty(), "they would say to Gemini CLI what no other option may"),
        (Setting::Env, !env.is_empty(), "a worker has its own environment, with its own key"),
        (Setting::McpServer, !mcp_server.is_empty(), PROGRAMS),
        (Setting::Hook, !hook.is_empty(), PROGRAMS),
        (Setting::HookTimeout, hook_timeout.is_some(), PROGRAMS),
        (Setting::Sandbox, sandbox.is_some(), "the worker chooses in what its agents are shut up"),
        (Setting::Policy, !policy.is_empty(), FILES),
        (Setting::Rules, !rules.is_empty(), FILES),
        (Setting::Prices, prices.is_some(), FILES),
        (Setting::Cassette, cassette.is_some(), FILES),
        (Setting::CassetteMode, cassette_mode.is_some(), FILES),
        (Setting::Record, record.is_some(), FILES),
        (Setting::Resume, resume.is_some(), "sessions stay on the machine that they are on"),
        (
            Setting::SessionId,
            session_id.is_some(),
            "a job that is given to another worker begins a session anew",
        ),
    ] {
        error(setting, given, &format!("cannot travel to a worker: {why}"), "Leave it out.");
    }
    errors
}

/// Returns true if a path, as it is written, stays below the directory that it begins at.
pub fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(max_approval: Approval) -> Policy {
        let base = PathBuf::from("/root");
        Policy { root: Some(base.clone()), base, max_approval, allow_env: Vec::new(), allow_programs: false }
    }

    fn read(given: Value) -> (Option<Prompt>, RunOptions) {
        RunOptions::with_prompt_from(given.as_object().unwrap(), &[]).unwrap()
    }

    /// Admits options whose paths are all allowed, and returns what they became.
    fn admit(policy: &Policy, given: Value) -> Result<Value, Refusal<()>> {
        let (mut prompt, mut options) = read(given);
        policy.admit(prompt.as_mut(), &mut options, |setting, path, used| {
            Ok(PathBuf::from(format!("/{} {used:?}/{}", setting.name(), path.display())))
        })?;
        let mut fields = options.to_fields().unwrap();
        fields.extend(
            prompt.map(|prompt| prompt.to_field()).map(|(name, value)| (name.name().to_owned(), value)),
        );
        Ok(fields.into())
    }

    #[test]
    fn every_path_is_resolved_by_the_caller_with_its_use() {
        let given = json!({
            "prompt_file": "p", "offline": "o", "schema": "s", "dir": "d", "system_prompt_file": "i", "prices": "c",
            "include_dir": ["a", "b"], "policy": "x", "rules": "y",
        });
        let expected = json!({
            "prompt_file": "/prompt_file Read/p", "offline": "/offline Read/o", "schema": "/schema Read/s",
            "dir": "/dir Directory/d", "system_prompt_file": "/system_prompt_file Read/i", "prices": "/prices Read/c",
            "include_dir": ["/include_dir Directory/a", "/include_dir Directory/b"], "policy": ["/policy Read/x"],
            "rules": ["/rules Read/y"],
        });
        assert_eq!(admit(&policy(Approval::Yolo), given).unwrap(), expected);
        let (_, mut options) = read(json!({"dir": "d"}));
        let refused = policy(Approval::Yolo).admit(None, &mut options, |_, _, _| Err("no"));
        assert_eq!(refused, Err(Refusal::Path("no")));
    }

    #[test]
    fn a_schema_that_is_given_as_it_is_stays_json() {
        let policy = policy(Approval::Yolo);
        let schema = json!({"schema": {"type": "object"}});
        assert_eq!(admit(&policy, schema.clone()).unwrap(), schema);
        assert_eq!(admit(&policy, json!({"schema": " {\"type\": \"object\"}"})).unwrap(), schema);
        let refused = admit(&policy, json!({"schema": "{no json"})).unwrap_err();
        assert!(matches!(refused, Refusal::NotJson(Setting::Schema, _)), "{refused:?}");
    }

    #[test]
    fn no_mode_is_above_the_limit_and_nothing_else_gives_more() {
        let policy = policy(Approval::AutoEdit);
        assert_eq!(
            policy.modes().collect::<Vec<_>>(),
            [Approval::Plan, Approval::Default, Approval::AutoEdit]
        );
        assert!(admit(&policy, json!({"approval": "acceptEdits"})).is_ok());
        for name in ["yolo", "bypassPermissions", "full_auto"] {
            let refused = admit(&policy, json!({"approval": name}));
            assert_eq!(refused, Err(Refusal::Approval(Approval::Yolo)), "{name}");
        }
        for name in ["allow_tool", "allow", "policy", "rules"] {
            let refused = admit(&policy, json!({name: "x"}));
            assert_eq!(refused, Err(Refusal::Grant(Setting::named(name).unwrap())), "{name}");
        }
    }

    #[test]
    fn programs_and_variables_are_the_owners_choice() {
        let closed = policy(Approval::Yolo);
        let programs = json!({
            "gemini": "/bin/sh", "agent_command": "sh -c id", "hook": ["before-tool=id"], "mcp_server": "x=sh -c id",
            "args": ["--approval-mode=yolo"], "trust": "settings", "sandbox": false,
        });
        for (name, value) in programs.as_object().unwrap() {
            let refused = admit(&closed, json!({name: value}));
            let setting = Setting::named(name).unwrap();
            assert!(
                matches!(&refused, Err(Refusal::Program(of, _)) if *of == setting),
                "{name}: {refused:?}"
            );
        }
        let env =
            [json!({"PATH": "/tmp"}), json!(["LD_PRELOAD=/tmp/x.so"]), json!("NODE_OPTIONS=--require x")];
        for env in env {
            let refused = admit(&closed, json!({"env": env}));
            assert!(matches!(refused, Err(Refusal::Variable(_))), "{env}");
        }
        assert_eq!(admit(&closed, json!({"record": "app"})), Err(Refusal::Never(Setting::Record)));
        let open = Policy { allow_programs: true, allow_env: vec!["LANG".to_owned()], ..closed };
        assert!(admit(&open, json!({"agent_command": "sh", "trust": "settings", "sandbox": false})).is_ok());
        assert!(admit(&open, json!({"env": {"LANG": "C"}})).is_ok());
        let refused = admit(&open, json!({"env": ["LANG=C", "PATH=/tmp"]}));
        assert_eq!(refused, Err(Refusal::Variable("PATH".to_owned())));
    }

    #[test]
    fn a_cassette_is_written_only_where_edits_may_be_made() {
        for max_approval in [Approval::Plan, Approval::Default] {
            let policy = policy(max_approval);
            for mode in [json!("record"), json!("auto"), json!(null)] {
                let refused = admit(&policy, json!({"cassette": "c", "cassette_mode": mode}));
                assert_eq!(refused, Err(Refusal::Recording), "{mode}");
            }
            let played = admit(&policy, json!({"cassette": "c", "cassette_mode": "replay"})).unwrap();
            assert_eq!(played["cassette"], "/cassette Read/c");
        }
        let written = admit(&policy(Approval::AutoEdit), json!({"cassette": "c"})).unwrap();
        assert_eq!(written["cassette"], "/cassette Write/c");
    }

    #[test]
    fn what_names_programs_files_keys_and_sessions_of_the_worker_does_not_travel() {
        let never = json!({
            "gemini": "/bin/sh", "agent_command": "sh", "mcp_server": "x=sh", "hook": "before-tool=sh", "hook_timeout": "1s",
            "args": ["--yolo"], "env": {"GEMINI_API_KEY": "k"}, "sandbox": "off", "policy": "p", "rules": "r",
            "prices": "p", "cassette": "c", "record": "r", "resume": "latest", "session_id": "s",
            "dir": "../x", "include_dir": ["a", "/etc"], "trust": "settings", "offline": "s.json",
        });
        for (name, value) in never.as_object().unwrap() {
            let errors = travel_errors(&read(json!({name: value})).1, false);
            let settings: Vec<_> = errors.iter().map(|error| error.setting).collect();
            assert_eq!(settings, [Setting::named(name)], "{name}");
        }
        let fine = json!({
            "dir": "a/b", "include_dir": "c", "trust": true, "offline": true, "approval": "yolo", "allow": "shell(*)",
            "system_prompt_file": "/i", "schema": "/s",
        });
        assert_eq!(travel_errors(&read(fine).1, false), []);
        assert_eq!(travel_errors(&read(json!({"dir": "/etc"})).1, true), [], "it travels with the job");
    }
}
