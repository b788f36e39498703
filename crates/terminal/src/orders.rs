//! What a launch hands to the process in the pane: the prompt, its options, and the environment of whoever launched it.
//!
//! The shell in the pane has the environment of the tmux server, which may be days old. Secrets go through a file that only
//! the user can read and that is gone as soon as it has been read, never over a command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use alhena_agent::env::Environment;
use alhena_agent::home::McpServer;
use alhena_agent::{Prompt, ResolvedRequest, RunExtras};
use alhena_model::RunOptions;
use alhena_sys::files;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::equip::Equipped;
use crate::error::TerminalError;
use crate::wording::{At, Slash, Wording};

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
    use alhena_model::options::{EnvVar, PromptMode, Resume};

    use super::*;
    use crate::launch::Launch;

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
