//! What to run: a prompt and its options, with the files read and the rules parsed.

mod extras;
mod options;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub use alhena_model::options::{Approval, Prompt, PromptBy, Resume, Sandbox, Transport, Trust};
use alhena_model::{Prices, Setting};
use serde_json::Value;

pub use self::extras::RunExtras;
pub use self::options::{directory, read_schema};
use crate::home::McpServer;
use crate::hooks::Hooks;
use crate::prepare::RunError;
use crate::rate_limit::OnRateLimit;
use crate::rules::Rules;

/// A prompt with its options resolved: files read, rules and servers parsed, defaults filled in.
///
/// Made by [`ResolvedRequest::of`] from [`RunOptions`](alhena_model::RunOptions) and [`RunExtras`]. Programs of this workspace that adjust it
/// before the start take it from there to `Gemini::start`.
#[derive(Clone, Debug)]
pub struct ResolvedRequest {
    /// The prompt; none for a conversation.
    pub prompt: Option<Prompt>,
    /// How the prompt gets to the CLI.
    pub prompt_by: PromptBy,
    /// Where to work; the current directory by default.
    pub dir: Option<PathBuf>,
    /// How the CLI is talked to.
    pub transport: Transport,
    /// The model; the CLI's choice by default.
    pub model: Option<String>,
    /// What the model may do without asking.
    pub approval: Approval,
    /// Whether to run in a folder that is not trusted.
    pub trust: Trust,
    /// The sandbox.
    pub sandbox: Sandbox,
    /// More directories that the model may use.
    pub include_dirs: Vec<PathBuf>,
    /// Tools to allow: `NAME` or `NAME(prefix)`.
    pub allow_tools: Vec<String>,
    /// Tools to deny, in the same form.
    pub deny_tools: Vec<String>,
    /// Policy files of the caller.
    pub policies: Vec<PathBuf>,
    /// What decides first when a warm agent asks.
    pub rules: Rules,
    /// Who decides while the CLI works.
    pub hooks: Option<Hooks>,
    /// The schema that the answer has to fit, as JSON; the outcome then has `data`.
    pub schema: Option<Value>,
    /// How often the model may try again when its answer does not fit.
    pub schema_attempts: u32,
    /// How long a question of a warm agent may wait for its answer before it is rejected; `None` is for ever.
    pub permission_timeout: Option<Duration>,
    /// MCP servers for this run only.
    pub mcp_servers: Vec<McpServer>,
    /// What to tell the model beside the prompt.
    pub system_prompt: Option<SystemPrompt>,
    /// Variables to set for the CLI.
    pub env: Vec<(OsString, OsString)>,
    /// A session to go on with.
    pub resume: Option<Resume>,
    /// The id for the new session.
    pub session_id: Option<String>,
    /// How long the whole run may take.
    pub timeout: Option<Duration>,
    /// When that time began, if it was before the start: looking for the CLI can take long.
    pub began: Option<Instant>,
    /// How long it may take until the first event.
    pub first_event_timeout: Option<Duration>,
    /// How long it may be silent while no tool runs.
    pub stall_timeout: Option<Duration>,
    /// How many turns the model may take.
    pub max_turns: Option<u32>,
    /// How often a failing request is tried; 3 by default, where the CLI takes 10 and four minutes.
    pub max_attempts: Option<u32>,
    /// How many tokens the run may take: those of prompts, cached or not, answers and thoughts, sub-agents included.
    pub max_tokens: Option<u64>,
    /// How many US dollars it may cost.
    pub max_cost: Option<f64>,
    /// How many model calls it may make, failed ones included.
    pub max_calls: Option<u64>,
    /// What to do when the API limits requests.
    pub on_rate_limit: OnRateLimit,
    /// What models cost; by default the file that `ALHENA_PRICES` names, or the table that comes with Alhena.
    pub prices: Option<Prices>,
    /// How many bytes the CLI may write to standard output.
    pub max_output: u64,
    /// How many bytes it may write to standard error, where it has little to say.
    pub max_stderr: u64,
    /// Where to keep everything that the CLI wrote.
    pub record: Option<PathBuf>,
    /// More arguments for the CLI itself.
    pub extra_args: Vec<OsString>,
    /// Whether the CLI's own lines are handed out beside the events.
    pub raw_lines: bool,
    /// Hand out all that was said and done, before the last event; it is held in memory until then.
    pub conversation: bool,
    /// What the caller wants to be said in the outcome's warnings.
    pub notices: Vec<String>,
    /// The project that the tokens of a warm run are counted for, where it works in a copy of it; `dir` by default.
    pub usage_dir: Option<PathBuf>,
    /// Fails the run when no process can supervise it.
    pub require_keeper: bool,
}

/// What to tell the model beside the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemPrompt {
    /// After the CLI's own system prompt.
    Append(String),
    /// Instead of it.
    Replace(String),
}

/// Refuses a variable that no environment can have: the system would drop it or give it another name.
fn check_variable(name: &OsStr, value: &OsStr) -> Result<(), RunError> {
    let has = |text: &OsStr, byte: u8| text.as_encoded_bytes().contains(&byte);
    let wrong = match name.is_empty() {
        true => "the name is empty",
        false if has(name, b'=') => "the name has a = in it",
        false if has(name, 0) || has(value, 0) => "it has a zero character in it",
        false => return Ok(()),
    };
    let variable = name.to_string_lossy();
    Err(RunError::usage(
        format!("{} cannot set the variable {variable:?}: {wrong}", Setting::Env),
        "Write NAME=VALUE.",
    ))
}

impl ResolvedRequest {
    /// The transport that is used.
    pub(crate) fn chosen_transport(&self) -> Transport {
        match self.transport {
            // Only there somebody asks whom rules can answer.
            Transport::Auto if !self.rules.is_empty() => Transport::Acp,
            // Whatever else a request can ask for, headless can do; what only a person could allow is told when it comes up.
            Transport::Auto => Transport::Headless,
            chosen => chosen,
        }
    }

    /// Checks the values that are wrong in every environment. Every start does so before it looks for anything.
    pub fn check(&self) -> Result<(), RunError> {
        crate::budget::Budget::limits(self)?;
        let times = [
            (Setting::Timeout, self.timeout),
            (Setting::FirstEventTimeout, self.first_event_timeout),
            (Setting::StallTimeout, self.stall_timeout),
        ];
        let counts = [(Setting::MaxTurns, self.max_turns), (Setting::MaxAttempts, self.max_attempts)];
        let times = times.into_iter().filter(|(_, time)| *time == Some(Duration::ZERO)).map(|(name, _)| name);
        let counts = counts.into_iter().filter(|(_, count)| *count == Some(0)).map(|(name, _)| name);
        if let Some(name) = times.chain(counts).next() {
            return Err(RunError::usage(
                format!("{name} has to be more than 0"),
                "Leave it out for the default.",
            ));
        }
        self.env.iter().try_for_each(|(name, value)| check_variable(name, value))?;
        self.session_id.as_deref().map(crate::prepare::arguments::session_id).transpose()?;
        Ok(())
    }
}

impl Default for ResolvedRequest {
    fn default() -> Self {
        Self {
            prompt: None,
            prompt_by: PromptBy::default(),
            dir: None,
            transport: Transport::default(),
            model: None,
            approval: Approval::default(),
            trust: Trust::default(),
            sandbox: Sandbox::default(),
            include_dirs: Vec::new(),
            allow_tools: Vec::new(),
            deny_tools: Vec::new(),
            policies: Vec::new(),
            rules: Rules::default(),
            hooks: None,
            schema: None,
            schema_attempts: 2,
            permission_timeout: Some(Duration::from_secs(300)),
            mcp_servers: Vec::new(),
            system_prompt: None,
            env: Vec::new(),
            resume: None,
            session_id: None,
            timeout: None,
            began: None,
            first_event_timeout: Some(Duration::from_secs(60)),
            stall_timeout: Some(Duration::from_secs(300)),
            max_turns: None,
            max_attempts: None,
            max_tokens: None,
            max_cost: None,
            max_calls: None,
            on_rate_limit: OnRateLimit::default(),
            prices: None,
            max_output: 4 << 30,
            max_stderr: 256 << 20,
            record: None,
            extra_args: Vec::new(),
            raw_lines: false,
            conversation: false,
            notices: Vec::new(),
            usage_dir: None,
            require_keeper: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_zero_and_variables_that_cannot_be_set_are_refused() {
        let refused = |request: &ResolvedRequest| request.check().map_err(|error| error.to_string());
        type Set = fn(&mut ResolvedRequest);
        let cases: [(&str, Set); 9] = [
            ("`max_turns`", |request| request.max_turns = Some(0)),
            ("`max_attempts`", |request| request.max_attempts = Some(0)),
            ("`max_calls`", |request| request.max_calls = Some(0)),
            ("`max_tokens`", |request| request.max_tokens = Some(0)),
            ("`max_cost`", |request| request.max_cost = Some(f64::NAN)),
            ("`max_cost`", |request| request.max_cost = Some(-1.0)),
            ("`timeout`", |request| request.timeout = Some(Duration::ZERO)),
            ("`first_event_timeout`", |request| request.first_event_timeout = Some(Duration::ZERO)),
            ("`stall_timeout`", |request| request.stall_timeout = Some(Duration::ZERO)),
        ];
        for (name, set) in cases {
            let mut request = ResolvedRequest::default();
            set(&mut request);
            assert_eq!(refused(&request), Err(format!("{name} has to be more than 0")));
        }
        let with = |variables: &[(&str, &str)]| {
            let env = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
            ResolvedRequest { env, ..ResolvedRequest::default() }
        };
        for (name, value, why) in [
            ("", "x", "the name is empty"),
            ("A=B", "x", "the name has a = in it"),
            ("A\0B", "x", "it has a zero character in it"),
            ("A", "x\0", "it has a zero character in it"),
        ] {
            let said = refused(&with(&[(name, value)])).unwrap_err();
            assert_eq!(said, format!("`env` cannot set the variable {name:?}: {why}"));
        }
        assert_eq!(refused(&with(&[("A", "x=y"), ("B", "")])), Ok(()));
    }
}
