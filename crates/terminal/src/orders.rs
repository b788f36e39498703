//! What a launch hands to the process in the pane: the request and the environment of whoever launched it.
//!
//! The shell in the pane has the environment of the tmux server, which may be days old. Secrets go through a file that only
//! the user can read and that is gone as soon as it has been read, never over a command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use alhena_agent::env::Environment;
use alhena_agent::home::McpServer;
use alhena_agent::{Approval, Prompt, ResolvedRequest, Resume, Sandbox, SystemPrompt, Trust};
use alhena_sys::files;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::TerminalError;
use crate::wording::{At, Slash, Wording};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) gemini: PathBuf,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) prompt: String,
    dir: Option<PathBuf>,
    model: Option<String>,
    approval: String,
    trust: u8,
    sandbox: Option<String>,
    include_dirs: Vec<PathBuf>,
    allow_tools: Vec<String>,
    deny_tools: Vec<String>,
    policies: Vec<PathBuf>,
    mcp_servers: Map<String, Value>,
    append_prompt: Option<String>,
    replace_prompt: Option<String>,
    resume: Option<String>,
    session_id: Option<String>,
    max_turns: Option<u32>,
    max_attempts: Option<u32>,
    extra_args: Vec<OsString>,
}

/// A prompt as the CLI takes it at its start. It does not know all its commands then.
pub(crate) fn prompt_of(text: &str) -> Wording {
    Wording::of(text, Slash::Refuses, At::Text)
}

impl Orders {
    pub(crate) fn new(request: &ResolvedRequest, gemini: &Path, environment: &Environment) -> Self {
        let prompt = match &request.prompt {
            Some(Prompt::Text(text)) => prompt_of(text).text,
            Some(Prompt::File(_)) | None => String::new(),
        };
        let (append_prompt, replace_prompt) = match request.system_prompt.clone() {
            Some(SystemPrompt::Append(text)) => (Some(text), None),
            Some(SystemPrompt::Replace(text)) => (None, Some(text)),
            None => (None, None),
        };
        let mut environment = environment.clone();
        for (name, value) in &request.env {
            environment.set(name.clone(), value.clone());
        }
        Self {
            gemini: gemini.to_owned(),
            environment: environment.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            prompt,
            dir: request.dir.clone(),
            model: request.model.clone(),
            approval: request.approval.flag().to_owned(),
            trust: match request.trust {
                Trust::AsIs => 0,
                Trust::Run => 1,
                Trust::WithSettings => 2,
            },
            sandbox: match &request.sandbox {
                Sandbox::Inherit => None,
                Sandbox::Off => Some("off".to_owned()),
                Sandbox::On => Some("on".to_owned()),
                Sandbox::Engine(engine) => Some(engine.clone()),
            },
            include_dirs: request.include_dirs.clone(),
            allow_tools: request.allow_tools.clone(),
            deny_tools: request.deny_tools.clone(),
            policies: request.policies.clone(),
            mcp_servers: request
                .mcp_servers
                .iter()
                .map(|server| (server.name.clone(), server.entry()))
                .collect(),
            append_prompt,
            replace_prompt,
            resume: request.resume.as_ref().map(|resume| match resume {
                Resume::Latest => "latest".to_owned(),
                Resume::Id(id) => id.clone(),
            }),
            session_id: request.session_id.clone(),
            max_turns: request.max_turns,
            max_attempts: request.max_attempts,
            extra_args: request.extra_args.clone(),
        }
    }

    pub(crate) fn leave_at(&self, path: &Path) -> Result<(), TerminalError> {
        let bytes =
            serde_json::to_vec(self).map_err(|error| TerminalError::io(path.display(), &error.into()))?;
        files::replace_own(path, &bytes).map_err(|error| TerminalError::io(path.display(), &error))
    }

    /// Reads the orders and removes them.
    pub(crate) fn take(path: &Path) -> Result<Self, TerminalError> {
        let failed = |error: std::io::Error| TerminalError::io(path.display(), &error);
        let bytes = std::fs::read(path).map_err(failed)?;
        std::fs::remove_file(path).map_err(failed)?;
        serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))
    }

    pub(crate) fn request(&self) -> Result<ResolvedRequest, TerminalError> {
        let wrong = |what: String| TerminalError::usage(what, "");
        let mut request =
            ResolvedRequest { prompt: Some(self.prompt.as_str().into()), ..ResolvedRequest::default() };
        request.dir = self.dir.clone();
        request.model = self.model.clone();
        request.approval = self.approval.parse::<Approval>().map_err(|bad| wrong(bad.to_string()))?;
        request.trust = match self.trust {
            0 => Trust::AsIs,
            1 => Trust::Run,
            _ => Trust::WithSettings,
        };
        request.sandbox = match &self.sandbox {
            None => Sandbox::Inherit,
            Some(name) => name.parse::<Sandbox>().map_err(|bad| wrong(bad.to_string()))?,
        };
        request.include_dirs = self.include_dirs.clone();
        request.allow_tools = self.allow_tools.clone();
        request.deny_tools = self.deny_tools.clone();
        request.policies = self.policies.clone();
        request.mcp_servers =
            McpServer::from_json(self.mcp_servers.clone()).map_err(|error| wrong(error.to_string()))?;
        request.system_prompt = match (&self.append_prompt, &self.replace_prompt) {
            (Some(text), _) => Some(SystemPrompt::Append(text.clone())),
            (None, Some(text)) => Some(SystemPrompt::Replace(text.clone())),
            (None, None) => None,
        };
        request.resume = self.resume.as_deref().map(|id| match id {
            "latest" => Resume::Latest,
            id => Resume::Id(id.to_owned()),
        });
        request.session_id = self.session_id.clone();
        request.max_turns = self.max_turns;
        request.max_attempts = self.max_attempts;
        request.extra_args = self.extra_args.clone();
        Ok(request)
    }
}
