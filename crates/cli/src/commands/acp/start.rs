//! From the options and what an editor asks for to a conversation.

use alhena_agent::env::Environment;
use alhena_agent::home::McpServer;
use alhena_agent::{Approval, Gemini, ResolvedRequest, Resume, RunError, RunExtras, Talk, Trust, Whom};
use alhena_hosts::acp::Refusal;
use alhena_hosts::acp::ask::SessionSetup;
use alhena_model::Failure;
use alhena_wire::rpc::Fault;
use serde_json::{Map, Value};

use super::Args;
use crate::config::Config;
use crate::offline::{self, Offline};
use crate::output::say;
use crate::signals::Interrupts;

/// Begins conversations.
pub struct Starter {
    /// What the options say of every session.
    base: ResolvedRequest,
    approval: Option<Approval>,
    trust: Option<Trust>,
    no_config: bool,
    pub environment: Environment,
    /// The CLI, or why there is none: an editor is told so when it wants a session.
    gemini: Result<Gemini, Failure>,
}

impl Starter {
    pub fn new(args: Args, interrupts: &Interrupts) -> Result<(Self, Option<Offline>), RunError> {
        let mut environment = Environment::of_process();
        let options = args.given.options;
        let (approval, trust, no_config) = (options.approval, options.trust, options.no_config);
        // What it shows of its calls is shown to the editor.
        let extras = RunExtras { raw_lines: true, ..RunExtras::of(environment.clone()) };
        let mut base = ResolvedRequest::of(None, &options, extras)?;
        // Whoever names an agent to an editor expects it to run; what a folder brings along still needs the user's word.
        base.trust = trust.unwrap_or(Trust::Run);
        let offline = offline::prepare(&options, &mut base, &mut environment)?;
        if offline.is_some() {
            say(format_args!("{}.", offline::NOTICE));
        }
        let gemini = match (options.gemini, offline.is_some()) {
            (None, true) => crate::commands::install::fetched(None, &environment, false),
            (path, _) => crate::commands::run::find(path, &mut base, &environment, false, interrupts),
        };
        base.began = None;
        let gemini = gemini.map_err(RunError::into_failure);
        Ok((Self { base, approval, trust, no_config, environment, gemini }, offline))
    }

    /// Begins a conversation. Its mode and its model, where one was asked for, are given back.
    pub fn begin(
        &self,
        place: SessionSetup,
        resume: Option<String>,
    ) -> Result<(Talk, Approval, Option<String>), Refusal> {
        let gemini = self.gemini.as_ref().map_err(Refusal::from)?.clone();
        let request = self.request(place, resume)?;
        let (approval, model) = (request.approval, request.model.clone());
        let talk = Talk::begin(Whom::Gemini(gemini), request, self.environment.clone()).map_err(refusal)?;
        Ok((talk, approval, model))
    }

    fn request(&self, place: SessionSetup, resume: Option<String>) -> Result<ResolvedRequest, Refusal> {
        for dir in std::iter::once(&place.dir).chain(&place.more_dirs) {
            if !dir.is_dir() {
                let message = format!("{:?} is not a directory", dir.to_string_lossy());
                return Err(Refusal::of(Fault::Params, message, "Give a directory that exists."));
            }
        }
        let config =
            Config::of_run(&place.dir, self.trust, self.no_config, &self.environment).map_err(refusal)?;
        let mut request = self.base.clone();
        request.notices.extend(config.notice());
        request.model = request.model.or(config.options.model);
        request.approval = self.approval.or(config.options.approval).unwrap_or_default();
        request.trust = self.trust.or(config.options.trust).unwrap_or(request.trust);
        let servers = Map::from_iter([("mcpServers".to_owned(), Value::Object(place.servers))]);
        let servers = McpServer::from_json(servers)
            .map_err(|error| Refusal::of(Fault::Params, error.to_string(), ""))?;
        request.mcp_servers.extend(servers);
        request.include_dirs.extend(place.more_dirs);
        request.dir = Some(place.dir);
        request.resume = resume.map(Resume::Id);
        Ok(request)
    }
}

/// Why there is no conversation, as an editor is told it.
pub fn refusal(error: RunError) -> Refusal {
    Refusal::from(&error.into_failure())
}
