//! A prompt with its options, wherever they were given, before anything is looked for or started.

use std::path::PathBuf;

use alhena_agent::{AcpAgent, Prompt, RunExtras, Transport};
use alhena_agent::{ResolvedRequest, RunError};
use alhena_model::RunOptions;

use crate::config::Config;

pub struct Asked {
    pub request: ResolvedRequest,
    pub who: Who,
    /// With the defaults of files.
    pub options: RunOptions,
}

/// The agent that does it.
pub enum Who {
    /// Gemini CLI; the one that was named, if any.
    Gemini(Option<PathBuf>),
    Other(AcpAgent),
}

impl Who {
    /// The agent that the options name.
    pub fn of(options: &RunOptions) -> Result<Self, RunError> {
        let Some(command) = &options.agent_command else { return Ok(Who::Gemini(options.gemini.clone())) };
        let agent = AcpAgent::new(command)?;
        match options.transport {
            Some(Transport::Headless) => Err(RunError::usage(
                format!("{} speaks ACP, and `transport` headless is for Gemini CLI", agent.name()),
                "Leave out `transport`.",
            )),
            _ => Ok(Who::Other(agent)),
        }
    }
}

/// The request that the options ask for; where they say nothing, the files with defaults count.
pub fn asked(
    prompt: impl Into<Option<Prompt>>,
    mut options: RunOptions,
    config: &Config,
) -> Result<Asked, RunError> {
    config.fill(&mut options);
    let who = Who::of(&options)?;
    if let Who::Other(_) = who {
        options.transport = Some(Transport::Acp);
    }
    let notices = config.notice().into_iter().collect();
    let request = ResolvedRequest::of(prompt, &options, RunExtras { notices, ..RunExtras::default() })?;
    request.check()?;
    Ok(Asked { request, who, options })
}
