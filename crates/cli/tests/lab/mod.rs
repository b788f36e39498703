//! A private place for runs: a home, a scripted API or a stand-in, and a keeper.
#![allow(dead_code)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use alhena_agent::env::Environment;
use alhena_agent::home::McpServer;
use alhena_agent::hooks::Hooks;
use alhena_agent::rules::Rules;
use alhena_agent::{
    Approval, Finder, Gemini, Item, OnRateLimit, ResolvedRequest, Resume, Run, Sandbox, SystemPrompt,
    Transport,
};
use alhena_model::{Event, Outcome, Prices};
use alhena_scripted::{Scenario, Server};
use alhena_testbed::{Hostile, PrivateHome, RealCli, Script, Trust, Watchdog};
use serde_json::Value;

/// The keeper, and the command line.
pub const ALHENA: &str = env!("CARGO_BIN_EXE_alhena");

/// An MCP server for Node with one tool, `shout`, that gives back its `word` in capitals.
pub const SHOUTING_SERVER: &str = r#"
    const answer = (id, result) => console.log(JSON.stringify({jsonrpc: "2.0", id, result}));
    require("readline").createInterface({input: process.stdin}).on("line", (line) => {
        const {id, method, params} = JSON.parse(line);
        if (method === "initialize") answer(id, {protocolVersion: params.protocolVersion,
            capabilities: {tools: {}}, serverInfo: {name: "echo", version: "1"}});
        else if (method === "tools/list") answer(id, {tools: [{name: "shout", description: "Shouts",
            inputSchema: {type: "object", properties: {word: {type: "string"}}}}]});
        else if (method === "tools/call") answer(id, {content: [{type: "text",
            text: params.arguments.word.toUpperCase()}]});
        else if (id !== undefined) answer(id, {});
    });"#;

pub struct Lab {
    pub home: PrivateHome,
    pub gemini: Gemini,
    pub env: Environment,
    pub server: Server,
    _watchdog: Watchdog,
}

impl Lab {
    /// The real CLI of this version, in a trusted folder, against this scenario.
    pub fn real(name: &str, version: &str, scenario: Scenario) -> Self {
        Self::real_for(name, version, scenario, Duration::from_secs(300))
    }

    /// The same for a test that may take longer than others.
    pub fn real_for(name: &str, version: &str, scenario: Scenario, limit: Duration) -> Self {
        let watchdog = Watchdog::new(name, limit);
        let cli = RealCli::get(version).unwrap();
        let home = PrivateHome::with(Trust::Trusted).unwrap();
        let server = Server::start().unwrap();
        let url = server.add("lab", scenario);
        Self::new(home, &cli.bin, &url, server, Vec::new(), watchdog)
    }

    /// The same in a folder that nobody trusts.
    pub fn untrusted(name: &str, version: &str, scenario: Scenario) -> Self {
        let mut lab = Self::real(name, version, scenario);
        let home = PrivateHome::with(Trust::Untrusted).unwrap();
        let url = lab.env.get("GOOGLE_GEMINI_BASE_URL").unwrap().to_string_lossy().into_owned();
        lab.env = environment(&home, &url, &[]);
        lab.home = home;
        lab
    }

    fn new(
        home: PrivateHome,
        cli: &Path,
        url: &str,
        server: Server,
        more: Vec<(OsString, OsString)>,
        watchdog: Watchdog,
    ) -> Self {
        let env = environment(&home, url, &more);
        let gemini = Finder::new().env(env.clone()).path(cli).find().unwrap();
        Self { home, gemini, env, server, _watchdog: watchdog }
    }

    pub fn workspace(&self) -> PathBuf {
        self.home.workspace()
    }

    /// A request in the workspace, with the model named so that no router is asked.
    pub fn request(&self, prompt: &str) -> ResolvedRequest {
        request(prompt).dir(self.workspace()).model("gemini-2.5-flash")
    }

    pub fn start(&self, request: ResolvedRequest) -> Run {
        self.gemini.start(request, &self.env).unwrap()
    }

    pub fn run(&self, request: ResolvedRequest) -> Arc<Outcome> {
        self.start(request).outcome_blocking()
    }

    pub fn run_with_events(&self, request: ResolvedRequest) -> (Vec<Event>, Arc<Outcome>) {
        let mut run = self.start(request);
        let events = all(&mut run);
        let outcome = run.outcome_blocking();
        (events, outcome)
    }

    /// `alhena run ...` as a person would type it.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(ALHENA);
        command.env_clear().envs(self.env.iter()).current_dir(self.workspace());
        command.arg("run").arg("--gemini").arg(&self.gemini.path).args(args);
        command
    }
}

/// Whether a warning says only that the machine is slow.
pub fn says_only_slow(warning: &str) -> bool {
    warning.starts_with("Gemini CLI did not exit after its result")
}

/// The warnings that say more than that.
pub fn warnings(outcome: &Outcome) -> Vec<String> {
    outcome.warnings.iter().filter(|warning| !says_only_slow(warning)).cloned().collect()
}

pub fn all(run: &mut Run) -> Vec<Event> {
    let mut events = Vec::new();
    while let Some(item) = run.next_item_blocking() {
        if let Item::Event(event) = item {
            events.push(event);
        }
    }
    events
}

/// A stand-in with a script, in a place of its own.
pub struct HostileLab {
    pub lab: Lab,
    pub hostile: Hostile,
}

impl HostileLab {
    pub fn new(name: &str, script: Script) -> Self {
        let watchdog = Watchdog::new(name, Duration::from_secs(240));
        let hostile = Hostile::new(script).unwrap();
        let home = PrivateHome::with(Trust::Trusted).unwrap();
        let server = Server::start().unwrap();
        let more = hostile.env().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let path = hostile.path().to_owned();
        let lab = Lab::new(home, &path, "http://127.0.0.1:9", server, more, watchdog);
        Self { lab, hostile }
    }

    pub fn run(&self) -> Arc<Outcome> {
        self.lab.run(self.lab.request("hello"))
    }
}

fn environment(home: &PrivateHome, url: &str, more: &[(OsString, OsString)]) -> Environment {
    let mut env: Environment = home.env(url).into_iter().collect();
    env.set("ALHENA_HOME", home.path().join("alhena"));
    env.set("ALHENA_KEEPER", ALHENA);
    for (name, value) in more {
        env.set(name.clone(), value.clone());
    }
    env
}

/// A request with nothing but a prompt.
pub fn request(prompt: &str) -> ResolvedRequest {
    ResolvedRequest { prompt: Some(prompt.into()), ..ResolvedRequest::default() }
}

/// Puts a request together in one expression.
pub trait Build: Sized {
    fn with(self, set: impl FnOnce(&mut ResolvedRequest)) -> Self;

    fn dir(self, dir: impl Into<PathBuf>) -> Self {
        self.with(|request| request.dir = Some(dir.into()))
    }

    fn model(self, model: impl Into<String>) -> Self {
        self.with(|request| request.model = Some(model.into()))
    }

    fn approval(self, approval: Approval) -> Self {
        self.with(|request| request.approval = approval)
    }

    fn transport(self, transport: Transport) -> Self {
        self.with(|request| request.transport = transport)
    }

    fn trust(self, trust: alhena_agent::Trust) -> Self {
        self.with(|request| request.trust = trust)
    }

    fn sandbox(self, sandbox: Sandbox) -> Self {
        self.with(|request| request.sandbox = sandbox)
    }

    fn include_dir(self, dir: impl Into<PathBuf>) -> Self {
        self.with(|request| request.include_dirs.push(dir.into()))
    }

    fn allow_tool(self, tool: &str) -> Self {
        self.with(|request| request.allow_tools.push(tool.to_owned()))
    }

    fn rules(self, rules: Rules) -> Self {
        self.with(|request| request.rules = rules)
    }

    fn hooks(self, hooks: Hooks) -> Self {
        self.with(|request| request.hooks = Some(hooks))
    }

    fn permission_timeout(self, limit: Duration) -> Self {
        self.with(|request| request.permission_timeout = Some(limit))
    }

    fn schema(self, schema: Value) -> Self {
        self.with(|request| request.schema = Some(schema))
    }

    fn schema_attempts(self, more: u32) -> Self {
        self.with(|request| request.schema_attempts = more)
    }

    fn mcp_server(self, server: McpServer) -> Self {
        self.with(|request| request.mcp_servers.push(server))
    }

    fn system_prompt(self, prompt: SystemPrompt) -> Self {
        self.with(|request| request.system_prompt = Some(prompt))
    }

    fn env(self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.with(|request| request.env.push((name.into(), value.into())))
    }

    fn resume(self, resume: Resume) -> Self {
        self.with(|request| request.resume = Some(resume))
    }

    fn session_id(self, id: impl Into<String>) -> Self {
        self.with(|request| request.session_id = Some(id.into()))
    }

    fn timeout(self, limit: Duration) -> Self {
        self.with(|request| request.timeout = Some(limit))
    }

    fn stall_timeout(self, limit: Duration) -> Self {
        self.with(|request| request.stall_timeout = Some(limit))
    }

    fn max_turns(self, turns: u32) -> Self {
        self.with(|request| request.max_turns = Some(turns))
    }

    fn max_attempts(self, attempts: u32) -> Self {
        self.with(|request| request.max_attempts = Some(attempts))
    }

    fn max_tokens(self, tokens: u64) -> Self {
        self.with(|request| request.max_tokens = Some(tokens))
    }

    fn max_cost(self, dollars: f64) -> Self {
        self.with(|request| request.max_cost = Some(dollars))
    }

    fn max_calls(self, calls: u64) -> Self {
        self.with(|request| request.max_calls = Some(calls))
    }

    fn on_rate_limit(self, what: OnRateLimit) -> Self {
        self.with(|request| request.on_rate_limit = what)
    }

    fn prices(self, prices: Prices) -> Self {
        self.with(|request| request.prices = Some(prices))
    }

    fn record(self, dir: impl Into<PathBuf>) -> Self {
        self.with(|request| request.record = Some(dir.into()))
    }

    fn extra_arg(self, argument: impl Into<OsString>) -> Self {
        self.with(|request| request.extra_args.push(argument.into()))
    }

    fn raw_lines(self) -> Self {
        self.with(|request| request.raw_lines = true)
    }

    fn conversation(self) -> Self {
        self.with(|request| request.conversation = true)
    }
}

impl Build for ResolvedRequest {
    fn with(mut self, set: impl FnOnce(&mut ResolvedRequest)) -> Self {
        set(&mut self);
        self
    }
}
