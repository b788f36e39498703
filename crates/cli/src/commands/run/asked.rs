//! A prompt with its options, wherever they were given, before anything is looked for or started.

use std::path::PathBuf;

use alhena::agent::env::Environment;
use alhena::agent::{AcpAgent, Prompt, Transport};
use alhena::model::RunOptions;
use alhena::{Request, RunError};

use crate::config::Config;

pub struct Asked {
    pub request: Request,
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
            Some(Transport::Headless) => Err(RunError::Usage {
                message: format!("{} speaks ACP, and `transport` headless is for Gemini CLI", agent.name()),
                hint: "Leave out `transport`.".to_owned(),
            }),
            _ => Ok(Who::Other(agent)),
        }
    }
}

/// The request that the options ask for; where they say nothing, the files with defaults count.
pub fn asked(prompt: Prompt, mut options: RunOptions, config: &Config) -> Result<Asked, RunError> {
    let who = Who::of(&options)?;
    config.fill(&mut options);
    if let Who::Other(_) = who {
        options.transport = Some(Transport::Acp);
    }
    let mut request = Request::of(prompt, &options, &Environment::of_process())?;
    request.notices.extend(config.notice());
    request.check()?;
    Ok(Asked { request, who, options })
}
