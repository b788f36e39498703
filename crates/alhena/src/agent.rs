//! Gemini CLI as a program: finding, installing and running it, and deciding what it may do.

pub use alhena_agent::dirs::Dirs;
pub use alhena_agent::env::Environment;
pub use alhena_agent::home::{HomeError, McpServer, NotAServer, Transport as McpTransport};
pub use alhena_agent::hooks::{Asked, Hooks, Moment, Verdict};
pub use alhena_agent::install::{InstallError, Installer, PINNED, Progress, install};
pub use alhena_agent::prices::NoPrices;
pub use alhena_agent::recording::{is_recording, play};
pub use alhena_agent::rules::{BadRule, Decision, Rules};
pub use alhena_agent::settings::SettingsError;
pub use alhena_agent::{
    About, AcpAgent, Action, Canceller, Closed, Finder, Item, NodeVersion, NotFound, OfferedModel, Opened,
    Place, Question, Tried, Unfit, VersionSource, Why,
};
