//! What can be said of an agent, whether it runs headless or in a terminal.

use std::path::{Path, PathBuf};

use alhena::agent::home::McpServer;
use alhena::agent::{Sandbox, SystemPrompt};
use alhena::{Approval, Request, Resume, RunError, Trust};
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::config::Config;

#[derive(Debug, clap::Args)]
pub struct Agent {
    /// Work in this directory.
    #[arg(long, short = 'C', value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// The Gemini CLI to run: a path, a command on PATH, or a version, which is fetched if it is not there.
    #[arg(long, value_name = "PATH|VERSION")]
    pub gemini: Option<PathBuf>,
    /// The model.
    #[arg(long, short, value_name = "NAME")]
    model: Option<String>,
    /// What the model may do without asking.
    #[arg(long, value_name = "MODE", value_parser = approval())]
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
    #[arg(long, value_name = "TEXT", group = "instructions")]
    system_prompt: Option<String>,
    /// Read these instructions from a file.
    #[arg(long, value_name = "FILE", group = "instructions")]
    system_prompt_file: Option<PathBuf>,
    /// Whether the instructions come after the CLI's own or replace them.
    #[arg(long, value_enum, default_value = "append", requires = "instructions")]
    system_prompt_mode: PromptMode,
    /// Set a variable for the CLI (NAME=VALUE), or insist that it is set (NAME); can be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Go on with a session: its id or the beginning of it, or the latest. A text with spaces is the prompt.
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = LATEST)]
    resume: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum TrustArg {
    Settings,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum PromptMode {
    Append,
    Replace,
}

/// What `--trust` and `--trust=settings` mean.
pub fn trust(given: Option<TrustArg>) -> Trust {
    match given {
        None => Trust::Run,
        Some(TrustArg::Settings) => Trust::WithSettings,
    }
}

/// Whether the directory that `-C` names can be one to work in.
pub fn directory(dir: &Path) -> Result<(), RunError> {
    match dir.is_dir() {
        true => Ok(()),
        false => Err(RunError::Usage {
            message: format!("{} is not a directory", dir.display()),
            hint: "Give a directory that exists.".to_owned(),
        }),
    }
}

/// What `--resume` means without a value.
const LATEST: &str = "latest";

impl Agent {
    /// What the caller says of the folder's trust.
    pub fn said_trust(&self) -> Option<Trust> {
        self.trust.map(trust)
    }

    /// Puts the defaults of the files where nothing was said.
    pub fn fill(&mut self, config: &Config) {
        self.model = self.model.take().or_else(|| config.model.clone());
        self.approval = self.approval.or(config.approval);
    }

    /// The prompt, where it follows `--resume` and was taken for its value: no id has a space in it.
    pub fn prompt_behind_resume(&mut self) -> Option<String> {
        let prompt = self.resume.take_if(|text| text.contains(char::is_whitespace))?;
        self.resume = Some(LATEST.to_owned());
        Some(prompt)
    }

    /// What stands behind `--resume` in so many words, and could have been meant for something else.
    pub fn word_behind_resume(&self) -> Option<&str> {
        self.resume.as_deref().filter(|word| *word != LATEST && !word.is_empty())
    }

    /// Whether it is to go on with a session.
    pub fn resumes(&self) -> bool {
        self.resume.is_some()
    }

    /// Goes on as one that has gone, where nothing else is said. Fails if that had no session: the latest is another's.
    pub fn go_on(&mut self, gone: &alhena::terminal::Record, session: Option<String>) -> Result<(), ()> {
        self.dir.get_or_insert_with(|| gone.dir.clone());
        self.gemini.get_or_insert_with(|| gone.gemini.clone());
        self.model = self.model.take().or_else(|| gone.model.clone());
        self.approval = self.approval.or_else(|| gone.approval.parse().ok());
        if self.resume.as_deref() == Some(LATEST) {
            self.resume = Some(session.ok_or(())?);
        }
        Ok(())
    }

    /// Puts all of it into a request.
    pub fn describe(self, request: &mut Request) -> Result<(), RunError> {
        let usage = |message: String, hint: &str| Err(RunError::Usage { message, hint: hint.to_owned() });
        if let Some(dir) = &self.dir {
            directory(dir)?;
        }
        if self.resume.as_ref().is_some_and(String::is_empty) {
            let hint = "`alhena sessions list` shows them; --resume alone goes on with the latest.";
            return usage("--resume needs the id of a session, and it is empty".to_owned(), hint);
        }
        request.trust = self.said_trust().unwrap_or(request.trust);
        request.dir = self.dir;
        request.model = self.model;
        request.approval = self.approval.unwrap_or_default();
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
        let instructions = match self.system_prompt_file {
            None => self.system_prompt,
            Some(file) => match std::fs::read_to_string(&file) {
                Ok(text) => Some(text),
                Err(error) => {
                    let hint = "Give a text file that can be read.";
                    return usage(format!("{}: {error}", file.display()), hint);
                }
            },
        };
        request.system_prompt = instructions.map(|text| match self.system_prompt_mode {
            PromptMode::Append => SystemPrompt::Append(text),
            PromptMode::Replace => SystemPrompt::Replace(text),
        });
        for variable in self.env {
            match variable.split_once('=') {
                _ if variable.is_empty() || variable.starts_with('=') => {
                    let message = format!("--env {variable:?} names no variable");
                    return usage(message, "Write NAME=VALUE, or the NAME of a variable that is set.");
                }
                Some((name, value)) => request.env.push((name.into(), value.into())),
                None if std::env::var_os(&variable).is_some() => {}
                None => return usage(format!("{variable} is not set"), "Set it, or write NAME=VALUE."),
            }
        }
        request.resume = self.resume.map(|id| if id == LATEST { Resume::Latest } else { Resume::Id(id) });
        Ok(())
    }
}

/// The names of the approval modes, for the help and the completions; other hosts' names are taken, too.
pub fn approval() -> impl TypedValueParser<Value = Approval> {
    let values = Approval::ALL.into_iter().filter_map(|approval| {
        let (name, others) = approval.names().split_first()?;
        Some(PossibleValue::new(*name).help(approval.meaning()).aliases(others.iter().copied()))
    });
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Approval>())
}
