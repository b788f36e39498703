//! What a program gives a run beside its prompt and its options.

use std::path::PathBuf;
use std::time::Instant;

use alhena_model::Prices;

use crate::env::Environment;
use crate::home::McpServer;
use crate::hooks::Hooks;

/// What [`RunOptions`](alhena_model::RunOptions) cannot hold because it is not data, or because only one program can mean it.
///
/// ```
/// # use alhena_agent::RunExtras;
/// let extras = RunExtras { raw_lines: true, ..RunExtras::default() };
/// ```
#[derive(Clone, Debug)]
pub struct RunExtras {
    /// The environment of the CLI, in which its home and its programs are looked up; that of this process by default.
    pub environment: Environment,
    /// Decides before a tool runs, after it ran, or before the model is asked. The commands of `hook` are asked first.
    pub hooks: Option<Hooks>,
    /// MCP servers beside those of `mcp_server`.
    pub mcp_servers: Vec<McpServer>,
    /// What models cost, instead of the file that `prices` names.
    pub prices: Option<Prices>,
    /// Fails the run when no process can supervise it, instead of a warning: see [`keeper`](crate::keeper).
    pub require_keeper: bool,
    /// The beginning of the time that `timeout` limits, if it was before the start.
    pub began: Option<Instant>,
    /// Warnings for the outcome.
    pub notices: Vec<String>,
    /// Hands out the CLI's own lines beside the events.
    pub raw_lines: bool,
    /// Hands out all that was said and done before the last event; it is held in memory until then.
    pub conversation: bool,
    /// The project that the tokens of a warm run are counted for, if it works in a copy of that; `dir` by default.
    pub usage_dir: Option<PathBuf>,
    /// Most bytes that the CLI may write to standard output; 4 GiB by default.
    pub max_output: Option<u64>,
    /// Most bytes that it may write to standard error; 256 MiB by default.
    pub max_stderr: Option<u64>,
}

impl RunExtras {
    /// Nothing but an environment.
    pub fn of(environment: Environment) -> Self {
        Self {
            environment,
            hooks: None,
            mcp_servers: Vec::new(),
            prices: None,
            require_keeper: false,
            began: None,
            notices: Vec::new(),
            raw_lines: false,
            conversation: false,
            usage_dir: None,
            max_output: None,
            max_stderr: None,
        }
    }
}

impl Default for RunExtras {
    fn default() -> Self {
        Self::of(Environment::of_process())
    }
}
