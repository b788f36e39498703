//! The environment of an agent that runs.
//!
//! Gemini CLI 0.61.0 takes everything that looks like a secret, API keys too, out of the environment of the MCP servers that
//! it starts. A server that launches further agents needs what the agent itself was given.

use alhena_agent::env::Environment;
use alhena_sys::processes;

use crate::terminal::Terminal;

impl Terminal {
    /// What the CLI in this terminal was given. None when it does not run, and where the system does not tell.
    #[must_use]
    pub fn environment(&self) -> Option<Environment> {
        let cli = self.record().ok()?.cli.filter(|cli| cli.alive())?;
        Some(processes::environment(cli.pid)?.into_iter().collect())
    }
}
