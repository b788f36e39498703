//! Agents that are not Gemini CLI: any program that speaks ACP on its standard input and output.
//!
//! Such an agent has its own home, its own settings and its own sign-in, and Alhena changes nothing of them. What only Gemini CLI
//! understands is refused before anything starts.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use alhena_model::{RunOptions, Setting};
use alhena_sys::programs::is_executable;
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::pipe::Pipe;
use super::process::{Who, in_custody};
use super::transport;
use crate::dirs::Dirs;
use crate::env::Environment;
use crate::facts;
use crate::home::{McpServer, Resume, Transport as Reached};
use crate::prepare::{self, Ready, RunError};
use crate::programs;
use crate::rate_limit::OnRateLimit;
use crate::request::{Prompt, PromptBy, ResolvedRequest, RunExtras, Sandbox, Trust};
use crate::run::Run;

/// An agent by its command, such as `qwen --acp`.
///
/// It takes the same prompts and options as [`Gemini`](crate::Gemini), always over ACP. There is no session file to complete what it
/// says: tokens, diffs and exit codes are known as far as it tells them, and files as far as the disk shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcpAgent {
    name: String,
    program: String,
    args: Vec<String>,
}

impl AcpAgent {
    /// Reads a command, split as a shell would. Nothing is looked up yet.
    pub fn new(command: &str) -> Result<Self, RunError> {
        let hint = "Give `agent_command` a program and its arguments, such as 'qwen --acp'.";
        let words = shell_words::split(command).map_err(|_open_quote| {
            RunError::usage(format!("the agent command {command:?} has an open quote"), hint)
        })?;
        let mut words = words.into_iter();
        let program = words.next().filter(|program| !program.is_empty());
        let Some(program) = program else {
            return Err(RunError::usage("the agent command is empty", hint));
        };
        let name = Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { name: name.unwrap_or_else(|| program.clone()), program, args: words.collect() })
    }

    /// What it is called: the file name of its program.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts a run.
    pub fn run(&self, prompt: impl Into<Prompt>, options: &RunOptions) -> Result<Run, RunError> {
        self.run_with(prompt, options, RunExtras::default())
    }

    /// Starts a run with what is not an option, such as callbacks or another environment.
    pub fn run_with(
        &self,
        prompt: impl Into<Prompt>,
        options: &RunOptions,
        extras: RunExtras,
    ) -> Result<Run, RunError> {
        let environment = extras.environment.clone();
        self.start(ResolvedRequest::for_program(Some(prompt.into()), options, extras)?, &environment)
    }

    /// Starts a run whose options are resolved, for programs of this workspace.
    #[doc(hidden)]
    pub fn start(&self, request: ResolvedRequest, environment: &Environment) -> Result<Run, RunError> {
        transport::run_once(Who::Other(self), request, environment)
    }

    /// Begins a conversation.
    pub fn converse(&self, options: &RunOptions) -> Result<Conversation, RunError> {
        self.converse_with(options, RunExtras::default())
    }

    /// Begins a conversation with what is not an option, such as callbacks or another environment.
    pub fn converse_with(&self, options: &RunOptions, extras: RunExtras) -> Result<Conversation, RunError> {
        let environment = extras.environment.clone();
        self.start_conversation(ResolvedRequest::for_program(None, options, extras)?, &environment)
    }

    /// Begins a conversation whose options are resolved, for programs of this workspace.
    #[doc(hidden)]
    pub fn start_conversation(
        &self,
        request: ResolvedRequest,
        environment: &Environment,
    ) -> Result<Conversation, RunError> {
        transport::converse(Who::Other(self), request, environment)
    }

    /// The program: as in a shell a name is looked up on `PATH`, never in the folder one is in, and what `PATH` has inside the folder
    /// that is worked in counts only if that is trusted.
    fn find(&self, dir: &Path, environment: &Environment) -> Result<PathBuf, RunError> {
        if self.program.contains(std::path::is_separator) {
            let path = std::path::absolute(&self.program).unwrap_or_else(|_| self.program.clone().into());
            return match is_executable(&path) {
                true => Ok(path),
                false => Err(RunError::usage(
                    format!("{} is no program that can be started", path.display()),
                    "Give `agent_command` a program that exists and may be executed.",
                )),
            };
        }
        let found = programs::on_path(environment, &self.program).ok_or_else(|| {
            RunError::usage(
                format!("there is no {} on PATH", self.program),
                "Install it, or give `agent_command` its whole path.",
            )
        })?;
        let real = found.canonicalize().unwrap_or_else(|_| found.clone());
        if found.starts_with(dir) || real.starts_with(dir) {
            facts::may_use(environment, dir, &found, Trust::AsIs).map_err(|why| {
                RunError::usage(
                    format!("{} is in the folder that is worked in: {why}", found.display()),
                    "Give `agent_command` its whole path if that is the one you mean.",
                )
            })?;
        }
        Ok(found)
    }

    pub(super) fn prepare(
        &self,
        request: &ResolvedRequest,
        base: &Environment,
    ) -> Result<(Ready, Pipe), RunError> {
        request.check()?;
        self.refuse(request)?;
        let mut warnings = request.notices.clone();
        let dir = prepare::working_directory(request)?;
        let mut environment = base.clone();
        for (name, value) in &request.env {
            environment.set(name.clone(), value.clone());
        }
        let dirs = Dirs::of(&environment).ok_or_else(prepare::no_home)?;
        warnings.extend(prepare::without_relative_programs(&mut environment));
        let program = self.find(&dir, &environment)?;
        let run_dir = prepare::private_directories(&dirs.runs())?;
        let args = self.args.iter().map(OsString::from).collect();
        let command = (program.into_os_string(), args);
        in_custody(request, command, None, dir, run_dir, environment, warnings)
    }

    /// What only Gemini CLI has.
    fn refuse(&self, request: &ResolvedRequest) -> Result<(), RunError> {
        let asked: &[(Setting, bool)] = &[
            (Setting::Trust, request.trust != Trust::AsIs),
            (Setting::Sandbox, request.sandbox != Sandbox::Inherit),
            (Setting::IncludeDir, !request.include_dirs.is_empty()),
            (Setting::AllowTool, !request.allow_tools.is_empty()),
            (Setting::DenyTool, !request.deny_tools.is_empty()),
            (Setting::Policy, !request.policies.is_empty()),
            (Setting::Hook, request.hooks.is_some()),
            (Setting::SystemPrompt, request.system_prompt.is_some()),
            (Setting::SessionId, request.session_id.is_some()),
            (Setting::MaxTurns, request.max_turns.is_some()),
            (Setting::MaxAttempts, request.max_attempts.is_some()),
            (Setting::OnRateLimit, request.on_rate_limit != OnRateLimit::Fail),
            (Setting::Schema, request.schema.is_some()),
            (Setting::MaxTokens, request.max_tokens.is_some()),
            (Setting::MaxCost, request.max_cost.is_some()),
            (Setting::MaxCalls, request.max_calls.is_some()),
            (Setting::PromptBy, request.prompt_by != PromptBy::Auto),
            (Setting::Args, !request.extra_args.is_empty()),
        ];
        let refused = |what: &dyn fmt::Display, hint: &str| {
            let message = format!("{what} is only for Gemini CLI, and {} is another agent", self.name);
            Err(RunError::usage(message, hint))
        };
        let rules = "Leave it out; what it may do is said by `approval`, `allow`, `deny` and `ask`.";
        let own = "Leave it out, or give the agent's own options in `agent_command`.";
        match asked.iter().find(|(_, asked)| *asked) {
            Some((tools @ (Setting::AllowTool | Setting::DenyTool), _)) => return refused(tools, rules),
            Some((Setting::Args, _)) => return refused(&"an argument for Gemini CLI itself", own),
            Some((setting, _)) => return refused(setting, own),
            None => {}
        }
        if request.resume == Some(Resume::Latest) {
            let what = format!("{} without an id", Setting::Resume);
            return refused(&what, "Give the id of the session.");
        }
        servers(&request.mcp_servers).map(drop)
    }
}

/// The session that an agent with its own store is to go on with.
pub(super) fn resumed(request: &ResolvedRequest) -> Option<String> {
    match &request.resume {
        Some(Resume::Id(id)) => Some(id.clone()),
        Some(Resume::Latest) | None => None,
    }
}

/// MCP servers, as the protocol has them.
pub(super) fn servers(servers: &[McpServer]) -> Result<Value, RunError> {
    servers.iter().map(server).collect()
}

fn server(server: &McpServer) -> Result<Value, RunError> {
    let pairs = |pairs: &std::collections::BTreeMap<String, String>| -> Value {
        pairs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    };
    let name = &server.name;
    let plain = server.trust.is_none() && server.more.is_empty();
    match &server.transport {
        Reached::Process { command, args, env, cwd: None } if plain => {
            Ok(json!({"name": name, "command": command, "args": args, "env": pairs(env)}))
        }
        Reached::Url { url, kind, headers } if plain => {
            let kind = kind.as_deref().unwrap_or("http");
            Ok(json!({"type": kind, "name": name, "url": url, "headers": pairs(headers)}))
        }
        _ => Err(RunError::usage(
            format!("the MCP server {name} has keys that only Gemini CLI knows"),
            "Give another agent only command, args and env, or url, type and headers.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::env;
    use alhena_sys::files;

    #[test]
    fn a_command_is_read_as_a_shell_would() {
        let agent = AcpAgent::new("/opt/my\\ agents/qwen --acp 'two words'").unwrap();
        assert_eq!((agent.name(), agent.program.as_str()), ("qwen", "/opt/my agents/qwen"));
        assert_eq!(agent.args, ["--acp", "two words"]);
        for wrong in ["", "  ", "''", "qwen 'open"] {
            assert!(matches!(AcpAgent::new(wrong), Err(RunError::Usage { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn what_only_gemini_cli_has_is_refused_with_a_hint() {
        let agent = AcpAgent::new("qwen --acp").unwrap();
        let request = |options| ResolvedRequest::of(None, &options, RunExtras::default()).unwrap();
        let options = RunOptions::default;
        for (options, named) in [
            (options().trust(Trust::Run), "`trust`"),
            (options().sandbox(Sandbox::On), "`sandbox`"),
            (options().include_dir("/tmp"), "`include_dir`"),
            (options().deny_tool("web_fetch"), "`deny_tool`"),
            (options().max_turns(NonZeroU32::MIN), "`max_turns`"),
            (options().session_id("abcdefgh"), "`session_id`"),
            (options().resume(Resume::Latest), "`resume`"),
            (options().args("--debug"), "argument"),
        ] {
            let Err(RunError::Usage { message, hint, .. }) = agent.refuse(&request(options)) else {
                panic!("{named}")
            };
            assert!(message.contains(named) && message.contains("qwen") && !hint.is_empty(), "{message}");
        }
        let fine = options().resume(Resume::Id("x".into())).model("m");
        assert!(agent.refuse(&request(fine)).is_ok());
    }

    #[test]
    fn a_program_of_the_folder_itself_is_not_taken_by_its_name() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().canonicalize().unwrap().join("work");
        let bin = dir.join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::write(bin.join("qwen"), "").unwrap();
        files::set_mode(bin.join("qwen"), 0o755).unwrap();
        let environment = |path: &Path| {
            Environment::from([(env::PATH, path.to_str().unwrap()), ("HOME", root.path().to_str().unwrap())])
        };
        let agent = AcpAgent::new("qwen").unwrap();
        let refused = agent.find(&dir, &environment(&bin)).unwrap_err();
        assert!(refused.to_string().contains("in the folder that is worked in"), "{refused}");
        assert_eq!(agent.find(root.path(), &environment(Path::new("bin"))).unwrap_err().exit_status(), 2);
        // Elsewhere it is one like any other, and whoever names it means it.
        let other = root.path().canonicalize().unwrap().join("other");
        assert_eq!(agent.find(&other, &environment(&bin)).unwrap(), bin.join("qwen"));
        let named = AcpAgent::new(bin.join("qwen").to_str().unwrap()).unwrap();
        assert_eq!(named.find(&dir, &environment(&bin)).unwrap(), bin.join("qwen"));
    }

    #[test]
    fn servers_are_told_as_the_protocol_has_them_and_what_it_cannot_say_is_refused() {
        let plain = McpServer::parse("echo=node server.js").unwrap();
        let url = McpServer::parse("far=http://127.0.0.1:9/mcp").unwrap();
        assert_eq!(
            servers(&[plain.clone(), url]).unwrap(),
            json!([
                {"name": "echo", "command": "node", "args": ["server.js"], "env": []},
                {"type": "http", "name": "far", "url": "http://127.0.0.1:9/mcp", "headers": []},
            ])
        );
        assert!(servers(&[McpServer { trust: Some(true), ..plain }]).is_err());
    }
}
