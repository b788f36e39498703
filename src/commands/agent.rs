//! What can be said of an agent, whether it runs headless or in a terminal.

use std::path::PathBuf;
use std::time::Duration;

use alhena::home::McpServer;
use alhena::{Approval, Request, Resume, RunError, Sandbox, SystemPrompt, Trust};
use clap::ValueEnum;

#[derive(Debug, clap::Args)]
pub struct Agent {
    /// Work in this directory.
    #[arg(long, short = 'C', value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The Gemini CLI to run.
    #[arg(long, value_name = "PATH")]
    pub gemini: Option<PathBuf>,
    /// The model.
    #[arg(long, short, value_name = "NAME")]
    model: Option<String>,
    /// What the model may do without asking: default, auto-edit, yolo, plan.
    #[arg(long, value_name = "MODE")]
    pub approval: Option<Approval>,
    /// Run in a folder that is not trusted; `=settings` loads the folder's own settings too.
    #[arg(long, value_name = "settings", num_args = 0..=1, require_equals = true)]
    trust: Option<Option<TrustArg>>,
    /// The sandbox: on, off, inherit, docker, podman, ...
    #[arg(long, value_name = "ENGINE", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    sandbox: Option<Sandbox>,
    /// Another directory that the model may use; can be repeated.
    #[arg(long, value_name = "DIR")]
    include_dir: Vec<PathBuf>,
    /// Allow a tool: NAME, or run_shell_command(PREFIX); can be repeated.
    #[arg(long, value_name = "TOOL")]
    allow_tool: Vec<String>,
    /// Deny a tool; can be repeated.
    #[arg(long, value_name = "TOOL")]
    deny_tool: Vec<String>,
    /// A policy file of Gemini CLI; can be repeated.
    #[arg(long, value_name = "FILE")]
    policy: Vec<PathBuf>,
    /// An MCP server: 'NAME=COMMAND ARGS', 'NAME=URL' or a JSON file; can be repeated.
    #[arg(long, value_name = "SERVER")]
    mcp_server: Vec<String>,
    /// Instructions for the model beside the prompt.
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// Whether the instructions come after the CLI's own or replace them.
    #[arg(long, value_enum, default_value = "append", requires = "system_prompt")]
    system_prompt_mode: PromptMode,
    /// Set a variable for the CLI (NAME=VALUE), or insist that it is set (NAME); can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Go on with a session: its id, or the latest.
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "latest")]
    resume: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TrustArg {
    Settings,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PromptMode {
    Append,
    Replace,
}

impl Agent {
    /// Puts all of it into a request.
    pub fn describe(self, request: &mut Request) -> Result<(), RunError> {
        let usage = |message: String, hint: &str| Err(RunError::Usage { message, hint: hint.to_owned() });
        if let Some(dir) = self.dir.as_ref().filter(|dir| !dir.is_dir()) {
            return usage(format!("{} is not a directory", dir.display()), "Give a directory that exists.");
        }
        request.dir = self.dir;
        request.model = self.model;
        request.approval = self.approval.unwrap_or_default();
        request.trust = match self.trust {
            None => Trust::AsIs,
            Some(None) => Trust::Run,
            Some(Some(TrustArg::Settings)) => Trust::WithSettings,
        };
        request.sandbox = self.sandbox.unwrap_or_default();
        request.include_dirs = self.include_dir;
        request.allow_tools = self.allow_tool;
        request.deny_tools = self.deny_tool;
        request.policies = self.policy;
        for server in &self.mcp_server {
            match McpServer::from_argument(server) {
                Ok(servers) => request.mcp_servers.extend(servers),
                Err(error) => {
                    let hint = "Write 'NAME=COMMAND ARGS', 'NAME=URL', or give a JSON file.";
                    return usage(error.to_string(), hint);
                }
            }
        }
        request.system_prompt = self.system_prompt.map(|text| match self.system_prompt_mode {
            PromptMode::Append => SystemPrompt::Append(text),
            PromptMode::Replace => SystemPrompt::Replace(text),
        });
        for variable in self.env {
            match variable.split_once('=') {
                Some((name, value)) => request.env.push((name.into(), value.into())),
                None if std::env::var_os(&variable).is_some() => {}
                None => return usage(format!("{variable} is not set"), "Set it, or write NAME=VALUE."),
            }
        }
        request.resume = self.resume.map(|id| if id == "latest" { Resume::Latest } else { Resume::Id(id) });
        Ok(())
    }
}

/// `90s`, `10m`, `1h`, `500ms`, `2.5` (seconds).
pub fn time(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no time; write 90s, 10m, 1h or 500ms");
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let number: f64 = number.trim().parse().map_err(|_| bad())?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" | "sec" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(bad()),
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).ok_or_else(bad)
}
