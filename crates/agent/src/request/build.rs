//! A request is built option by option: one method for each.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use alhena_model::Prices;
use serde_json::Value;

use super::{Approval, PromptBy, Request, Resume, Sandbox, SystemPrompt, Transport, Trust};
use crate::home::McpServer;
use crate::hooks::Hooks;
use crate::rate_limit::OnRateLimit;
use crate::rules::Rules;

impl Request {
    /// How the prompt gets to the CLI.
    pub fn prompt_by(mut self, way: PromptBy) -> Self {
        self.prompt_by = way;
        self
    }

    /// Where to work.
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.dir = Some(dir.into());
        self
    }

    /// How the CLI is talked to.
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Which model.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// What the model may do.
    pub fn approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }

    /// Whether to run in an untrusted folder.
    pub fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Which sandbox.
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// One more directory that the model may use.
    pub fn include_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.include_dirs.push(dir.into());
        self
    }

    /// One more tool that is allowed: `NAME` or `NAME(prefix)`.
    pub fn allow_tool(mut self, rule: impl Into<String>) -> Self {
        self.allow_tools.push(rule.into());
        self
    }

    /// One more tool that is denied, in the same form.
    pub fn deny_tool(mut self, rule: impl Into<String>) -> Self {
        self.deny_tools.push(rule.into());
        self
    }

    /// One more policy file.
    pub fn policy(mut self, file: impl Into<PathBuf>) -> Self {
        self.policies.push(file.into());
        self
    }

    /// Rules that decide first when a warm agent asks.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// How long a question may wait for its answer; `None` is for ever.
    pub fn permission_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.permission_timeout = limit.into();
        self
    }

    /// Who decides before a tool runs, after it ran, or before the model is asked. The user's own hooks go on working.
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.hooks = Some(hooks);
        self
    }

    /// The answer has to fit this JSON schema: the outcome then has it as `data`, and a run without one has failed.
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// The answer has to be a value of this type; `Outcome::data_as` gives it.
    #[cfg(feature = "typed")]
    pub fn answer<T: schemars::JsonSchema>(self) -> Self {
        self.schema(schemars::schema_for!(T).to_value())
    }

    /// How often the model may try again when its answer does not fit; 2 by default.
    pub fn schema_attempts(mut self, more: u32) -> Self {
        self.schema_attempts = more;
        self
    }

    /// One more MCP server, for this run only.
    pub fn mcp_server(mut self, server: McpServer) -> Self {
        self.mcp_servers.push(server);
        self
    }

    /// What to tell the model beside the prompt.
    pub fn system_prompt(mut self, prompt: SystemPrompt) -> Self {
        self.system_prompt = Some(prompt);
        self
    }

    /// A variable for the CLI.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// A session to go on with.
    pub fn resume(mut self, resume: Resume) -> Self {
        self.resume = Some(resume);
        self
    }

    /// The id for the new session.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// How long the whole run may take.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// When that time began, if it was before the start.
    pub fn began(mut self, moment: Instant) -> Self {
        self.began = Some(moment);
        self
    }

    /// How long it may take until the first event; `None` is for ever.
    pub fn first_event_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.first_event_timeout = limit.into();
        self
    }

    /// How long it may be silent while no tool runs; `None` is for ever.
    pub fn stall_timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.stall_timeout = limit.into();
        self
    }

    /// How many turns the model may take.
    pub fn max_turns(mut self, turns: u32) -> Self {
        self.max_turns = Some(turns);
        self
    }

    /// How often a failing request is tried.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = Some(attempts);
        self
    }

    /// How many tokens the run may take. Once they are used up, no model is called any more.
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }

    /// How many US dollars it may cost, by the prices.
    pub fn max_cost(mut self, dollars: f64) -> Self {
        self.max_cost = Some(dollars);
        self
    }

    /// How many model calls it may make.
    pub fn max_calls(mut self, calls: u64) -> Self {
        self.max_calls = Some(calls);
        self
    }

    /// What to do when the API limits requests: fail, wait, or go on with another model.
    pub fn on_rate_limit(mut self, what: OnRateLimit) -> Self {
        self.on_rate_limit = what;
        self
    }

    /// What models cost.
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Some(prices);
        self
    }

    /// How many bytes the CLI may write to standard output.
    pub fn max_output(mut self, bytes: u64) -> Self {
        self.max_output = bytes;
        self
    }

    /// How many bytes it may write to standard error.
    pub fn max_stderr(mut self, bytes: u64) -> Self {
        self.max_stderr = bytes;
        self
    }

    /// Where to keep everything.
    pub fn record(mut self, dir: impl Into<PathBuf>) -> Self {
        self.record = Some(dir.into());
        self
    }

    /// One more argument for the CLI itself.
    pub fn extra_arg(mut self, argument: impl Into<OsString>) -> Self {
        self.extra_args.push(argument.into());
        self
    }

    /// Hands out the CLI's own lines beside the events.
    pub fn raw_lines(mut self) -> Self {
        self.raw_lines = true;
        self
    }

    /// Hands out all that was said and done, before the last event.
    pub fn conversation(mut self) -> Self {
        self.conversation = true;
        self
    }

    /// One more warning for the outcome.
    pub fn notice(mut self, text: impl Into<String>) -> Self {
        self.notices.push(text.into());
        self
    }

    /// The project that the tokens of a warm run are counted for.
    pub fn usage_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.usage_dir = Some(dir.into());
        self
    }
}
