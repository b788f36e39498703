//! What is asked for by options, wherever they were given, before anything is looked for or started.

use std::path::PathBuf;

use alhena::agent::{AcpAgent, Transport};
use alhena::{Approval, Request, RunError};

use super::options::{Args, Way, request};
use crate::cassette::CassetteArgs;
use crate::config::Config;
use crate::signals::Interrupts;
use crate::views::Name;

pub struct Asked {
    pub request: Request,
    pub who: Who,
    /// What was said of how it is talked to; the request has the default otherwise.
    pub transport: Option<Transport>,
    /// The scripted model instead of the API; with a file, that scenario.
    pub offline: Option<Option<PathBuf>>,
    pub cassette: CassetteArgs,
    /// What was said of it; the request has the default otherwise.
    pub approval: Option<Approval>,
}

/// Who is to do it.
pub enum Who {
    /// Gemini CLI; the one that was named, if any.
    Gemini(Option<PathBuf>),
    Other(AcpAgent),
}

/// Where text may come from that belongs to the prompt, beside the options.
#[derive(Clone, Copy)]
pub enum Beside<'a> {
    Stdin(&'a Interrupts),
    Nothing,
}

/// What the options ask for; where they say nothing, what the files say.
pub fn asked(mut args: Args, view: Name, mut config: Config, beside: Beside<'_>) -> Result<Asked, RunError> {
    let who = match args.agent_command.take() {
        None => Who::Gemini(args.agent.gemini.clone()),
        Some(command) => {
            let agent = AcpAgent::new(&command)?;
            if matches!(args.transport, Some(Way::Headless)) {
                return Err(RunError::Usage {
                    message: format!(
                        "{} speaks ACP, and --transport headless is for Gemini CLI",
                        agent.name()
                    ),
                    hint: "Leave out --transport.".to_owned(),
                });
            }
            args.transport = Some(Way::Acp);
            config = config.for_other_agents();
            Who::Other(agent)
        }
    };
    args.agent.fill(&config);
    let (offline, cassette, approval) = (args.offline.clone(), args.cassette.clone(), args.agent.approval);
    let transport = args.transport.map(Transport::from);
    let request = request(args, view, &config, beside)?;
    request.check()?;
    Ok(Asked { request, who, transport, offline, cassette, approval })
}
