//! Equipping a terminal: what its options, its profile and its MCP servers make of the launch, and of the user's files.
//!
//! Gemini CLI 0.61.0 reads settings and context files once, at its start, so all of it has to be in place before. The result
//! goes to the process in the pane through a file that only the user can read and that is gone once read ([`Orders`]): the
//! shell in the pane has the environment of the tmux server, and secrets never go over a command line.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use alhena_agent::env::{self, Environment};
use alhena_agent::home::McpServer;
use alhena_agent::{Prompt, ResolvedRequest, RunExtras, SystemPrompt};
use alhena_model::options::PromptMode;
use alhena_model::{RunOptions, Setting};
use alhena_sys::files;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::borrowed::{BorrowedFiles, ContextFile};
use crate::error::{TerminalError, TerminalErrorKind};
use crate::launch::Launch;
use crate::mcp::{McpScope, Servers, for_terminal};
use crate::profile::ProfileBy;
use crate::wording::{At, Slash, Wording};

const HONOURED: &[Setting] = &[
    Setting::Dir,
    Setting::Gemini,
    Setting::Model,
    Setting::Approval,
    Setting::Trust,
    Setting::Sandbox,
    Setting::IncludeDir,
    Setting::AllowTool,
    Setting::DenyTool,
    Setting::Policy,
    Setting::McpServer,
    Setting::SystemPrompt,
    Setting::SystemPromptFile,
    Setting::SystemPromptMode,
    Setting::Env,
    Setting::Resume,
    Setting::SessionId,
    Setting::MaxTurns,
    Setting::MaxAttempts,
    Setting::Args,
];

/// A launch whose options name nothing that is still to be read.
#[derive(Clone, Debug)]
pub(crate) struct Equipped {
    pub(crate) launch: Launch,
    /// The environment of the launcher with the terminal's id and the variables of the options.
    pub(crate) environment: Environment,
    pub(crate) notices: Vec<String>,
}

impl Equipped {
    /// Reads the files that the options name, and refuses options that do not apply. `id` is the terminal, as its
    /// processes know it.
    pub(crate) fn of(mut launch: Launch, id: &str, environment: &Environment) -> Result<Self, TerminalError> {
        let options = &mut launch.options;
        let mut given = Setting::ALL.iter().filter(|setting| options.has(**setting));
        if let Some(setting) = given.find(|setting| !HONOURED.contains(setting)) {
            let message = format!("{} does not apply to a terminal", setting.name());
            return Err(TerminalError::usage(message, "Leave it out."));
        }
        let request = ResolvedRequest::of(None, options, RunExtras::of(environment.clone()))?;
        let mut inner = environment.clone();
        inner.set(crate::TERMINAL_ID, id);
        for (name, value) in request.env {
            inner.set(name, value);
        }
        for (outer, name) in
            [(crate::OUTER_GEMINI_HOME, env::GEMINI_CLI_HOME), (crate::OUTER_TMPDIR, "TMPDIR")]
        {
            if let Some(value) = environment.filled(name) {
                inner.set(outer, value);
            }
        }
        options.env.clear();
        options.mcp_server.clear();
        options.system_prompt_file = None;
        options.system_prompt = request.system_prompt.map(|prompt| match prompt {
            SystemPrompt::Append(text) | SystemPrompt::Replace(text) => text,
        });
        if options.system_prompt.is_none() {
            options.system_prompt_mode = None;
        }
        launch.mcp_servers.splice(0..0, request.mcp_servers);
        if let Some(profile) = &launch.profile {
            options.model = options.model.take().or_else(|| profile.model.clone());
            options.deny_tool.extend(profile.denied_tools());
            launch.mcp_servers.extend(profile.servers.iter().cloned());
        }
        launch.mcp_servers = for_terminal(&launch.mcp_servers, id);
        Ok(Self { launch, environment: inner, notices: Vec::new() })
    }

    /// Applies the profile's prompt and the scope of the servers. Changes of the user's files are in `borrowed`, under the
    /// terminal's id.
    pub(crate) fn lend(
        &mut self,
        id: &str,
        borrowed: &BorrowedFiles,
        outer: &Environment,
    ) -> Result<(), TerminalError> {
        self.apply(id, borrowed, outer).map_err(|(what, error)| {
            borrowed.give_back(id);
            TerminalError::new(TerminalErrorKind::Usage, format!("{}: {error}", what.display()))
                .with_hint("Nothing was changed. Launch without `profile_by` document and `mcp_scope` user to leave the file alone.")
        })
    }

    fn apply(
        &mut self,
        id: &str,
        borrowed: &BorrowedFiles,
        outer: &Environment,
    ) -> Result<(), (PathBuf, io::Error)> {
        let Self { launch, notices, .. } = self;
        if launch.mcp_scope == McpScope::User && !launch.mcp_servers.is_empty() {
            let settings = user_settings(outer);
            let told = Servers::add(borrowed, &settings, id, &launch.mcp_servers);
            notices.extend(told.map_err(|error| (settings, error))?);
            launch.mcp_servers.clear();
        }
        let prompt = launch.profile.as_ref().map(|profile| profile.prompt.as_str());
        let Some(prompt) = prompt.filter(|prompt| !prompt.is_empty()) else { return Ok(()) };
        let options = &mut launch.options;
        match launch.profile_by {
            ProfileBy::Home => {
                options.system_prompt =
                    Some(match (options.system_prompt.take(), options.system_prompt_mode) {
                        (None, _) => prompt.to_owned(),
                        (Some(own), Some(PromptMode::Replace)) => format!("{own}\n\n{prompt}"),
                        (Some(own), Some(PromptMode::Append) | None) => format!("{prompt}\n\n{own}"),
                    });
            }
            ProfileBy::Document => {
                let dir = options.dir.clone().unwrap_or_else(|| PathBuf::from("."));
                let told = ContextFile::write(borrowed, &dir, id, prompt);
                notices.extend(told.map_err(|error| (dir.join("GEMINI.md"), error))?);
                launch.prompt = match launch.prompt.trim().is_empty() {
                    true => prompt.to_owned(),
                    false => format!("{prompt}\n\n{}", launch.prompt),
                };
            }
        }
        Ok(())
    }
}

fn user_settings(environment: &Environment) -> PathBuf {
    let chosen = environment.filled(env::GEMINI_CLI_HOME).map(PathBuf::from);
    let home = chosen.or_else(|| environment.home()).unwrap_or_else(|| Path::new(".").to_owned());
    home.join(".gemini/settings.json")
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) gemini: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    prompt: String,
    options: RunOptions,
    mcp_servers: Map<String, Value>,
}

/// A prompt as the CLI takes it at its start. It does not know all its commands then.
pub(crate) fn prompt_of(text: &str) -> Wording {
    Wording::of(text, Slash::Refuses, At::Text)
}

impl Orders {
    pub(crate) fn new(equipped: &Equipped, prompt: &str, dir: &Path, gemini: &Path) -> Self {
        let Equipped { launch, environment, .. } = equipped;
        Self {
            gemini: gemini.to_owned(),
            environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            prompt: prompt_of(prompt).text,
            options: RunOptions { dir: Some(dir.to_owned()), ..launch.options.clone() },
            mcp_servers: launch
                .mcp_servers
                .iter()
                .map(|server| (server.name.clone(), server.entry()))
                .collect(),
        }
    }

    pub(crate) fn leave_at(&self, path: &Path) -> Result<(), TerminalError> {
        let bytes =
            serde_json::to_vec(self).map_err(|error| TerminalError::io(path.display(), &error.into()))?;
        files::replace_own(path, &bytes).map_err(|error| TerminalError::io(path.display(), &error))
    }

    pub(crate) fn take(path: &Path) -> Result<Self, TerminalError> {
        let failed = |error: std::io::Error| TerminalError::io(path.display(), &error);
        let bytes = std::fs::read(path).map_err(failed)?;
        std::fs::remove_file(path).map_err(failed)?;
        serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))
    }

    pub(crate) fn request(self, environment: &Environment) -> Result<ResolvedRequest, TerminalError> {
        let mut request = ResolvedRequest::of(
            Prompt::from(self.prompt),
            &self.options,
            RunExtras::of(environment.clone()),
        )?;
        request.mcp_servers = McpServer::from_json(self.mcp_servers)
            .map_err(|error| TerminalError::usage(error.to_string(), ""))?;
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use alhena_agent::SystemPrompt;
    use alhena_agent::home::McpServer;
    use alhena_model::RunOptions;
    use alhena_model::options::{EnvVar, PromptMode, Resume};

    use super::*;
    use crate::launch::Launch;
    use crate::profile::Profile;

    const TEXT: &str = "---\nmodel: gemini-2.5-pro\nallowedTools: ['fs_*', execute_bash]\nmcpServers:\n  s: {command: c}\n---\nYou are terse.";

    struct Desk {
        root: tempfile::TempDir,
        borrowed: BorrowedFiles,
        environment: Environment,
    }

    fn desk() -> Desk {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        let environment = Environment::from([(env::GEMINI_CLI_HOME, root.path().join("home"))]);
        Desk { borrowed: BorrowedFiles::new(&root.path().join("state")), environment, root }
    }

    fn launch(desk: &Desk) -> Launch {
        let options = RunOptions { dir: Some(desk.root.path().join("work")), ..RunOptions::default() };
        let profile = Some(Profile::parse(TEXT, "p").unwrap());
        Launch { prompt: "Begin.".to_owned(), options, profile, ..Launch::default() }
    }

    fn equip(launch: Launch, desk: &Desk) -> Result<Launch, TerminalError> {
        let mut equipped = Equipped::of(launch, "t1", &desk.environment)?;
        equipped.lend("t1", &desk.borrowed, &desk.environment)?;
        Ok(equipped.launch)
    }

    #[test]
    fn a_profile_goes_into_the_request_and_touches_nothing() {
        let desk = desk();
        let Launch { prompt, options, mcp_servers, .. } = equip(launch(&desk), &desk).unwrap();
        assert_eq!(options.model.as_deref(), Some("gemini-2.5-pro"));
        assert_eq!(options.system_prompt.as_deref(), Some("You are terse."));
        assert_eq!(prompt, "Begin.");
        assert_eq!(options.deny_tool, ["web_fetch", "google_web_search"]);
        assert_eq!(mcp_servers, for_terminal(&[McpServer::process("s", "c", [""; 0])], "t1"));
        assert_eq!(std::fs::read_dir(desk.root.path().join("work")).unwrap().count(), 0);
        assert!(!desk.root.path().join("home").exists());
    }

    #[test]
    fn the_documents_way_is_a_first_message_and_files_that_are_given_back() {
        // D-26, D-27, D-31, D-32
        let desk = desk();
        let wanted = Launch { profile_by: ProfileBy::Document, mcp_scope: McpScope::User, ..launch(&desk) };
        let launch = equip(wanted, &desk).unwrap();
        assert_eq!(launch.prompt, "You are terse.\n\nBegin.");
        assert_eq!((&launch.options.system_prompt, launch.mcp_servers.len()), (&None, 0));
        let context = desk.root.path().join("work/GEMINI.md");
        let settings = desk.root.path().join("home/.gemini/settings.json");
        assert_eq!(std::fs::read_to_string(&context).unwrap(), "You are terse.\n");
        assert!(std::fs::read_to_string(&settings).unwrap().contains("\"CAO_TERMINAL_ID\": \"t1\""));
        assert_eq!(desk.borrowed.give_back("t1"), Vec::<String>::new());
        assert!(!context.exists() && !settings.exists());
    }

    #[test]
    fn options_that_do_not_apply_to_a_terminal_are_refused() {
        let desk = desk();
        let mut wanted = launch(&desk);
        wanted.options.max_calls = Some(3);
        let error = equip(wanted, &desk).unwrap_err();
        assert_eq!(error.to_string(), "max_calls does not apply to a terminal");
    }

    #[test]
    fn when_one_file_cannot_be_changed_the_other_is_given_back() {
        let desk = desk();
        let wanted = Launch { profile_by: ProfileBy::Document, mcp_scope: McpScope::User, ..launch(&desk) };
        let mut equipped = Equipped::of(wanted, "t1", &desk.environment).unwrap();
        std::fs::remove_dir(desk.root.path().join("work")).unwrap();
        let error = equipped.lend("t1", &desk.borrowed, &desk.environment).unwrap_err();
        assert!(error.to_string().contains("GEMINI.md"), "{error}");
        assert!(!desk.root.path().join("home/.gemini/settings.json").exists());
    }

    #[test]
    fn a_request_survives_the_way_into_the_pane() {
        let dir = tempfile::tempdir().unwrap();
        let (prompt, servers) = (dir.path().join("prompt"), dir.path().join("servers.json"));
        std::fs::write(&prompt, "You are terse.").unwrap();
        std::fs::write(
            &servers,
            r#"{"mcpServers": {"web": {"url": "http://127.0.0.1/mcp", "trust": true}}}"#,
        )
        .unwrap();
        let options = RunOptions {
            mcp_server: vec!["s=serve x".to_owned(), servers.to_string_lossy().into_owned()],
            system_prompt_file: Some(prompt),
            system_prompt_mode: Some(PromptMode::Replace),
            env: vec![EnvVar { name: "KEY".to_owned(), value: Some("secret".to_owned()) }],
            resume: Some(Resume::Latest),
            args: vec!["--screen-reader".into()],
            ..RunOptions::default()
        };
        let launch = Launch { options, ..Launch::default() };
        let mut equipped = Equipped::of(launch, "t1", &Environment::default()).unwrap();
        equipped.launch.mcp_servers.push(McpServer::process("own", "serve", ["y"]));
        let path = dir.path().join("orders");
        Orders::new(&equipped, "Begin.", dir.path(), Path::new("/gemini")).leave_at(&path).unwrap();
        let orders = Orders::take(&path).unwrap();
        assert!(!path.exists());
        let environment: Environment = orders.environment.iter().cloned().collect();
        assert_eq!(environment.get("KEY"), Some("secret".as_ref()));
        let request = orders.request(&environment).unwrap();
        assert_eq!(request.prompt, Some("Begin.".into()));
        assert_eq!(request.dir.as_deref(), Some(dir.path()));
        assert_eq!(request.system_prompt, Some(SystemPrompt::Replace("You are terse.".to_owned())));
        assert_eq!(request.resume, Some(Resume::Latest));
        assert_eq!(request.extra_args, ["--screen-reader"]);
        let names: Vec<&str> = request.mcp_servers.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["s", "web", "own"]);
    }
}
