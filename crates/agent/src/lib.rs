//! Finds, prepares, launches, follows and stops Gemini CLI.

mod account;
mod acp;
mod answer;
mod budget;
#[doc(hidden)]
pub mod changes;
pub mod dirs;
mod disk;
mod engine;
pub mod env;
pub mod facts;
mod find;
mod finish;
mod follow;
pub mod home;
pub mod hooks;
pub mod install;
mod interactive;
pub mod keeper;
mod listener;
mod neighbours;
mod pool;
mod prepare;
pub mod prices;
#[doc(hidden)]
pub mod programs;
mod rate_limit;
pub mod recording;
mod request;
mod retries;
pub mod rules;
mod run;
#[doc(hidden)]
pub mod run_dir;
pub mod settings;
mod start;
#[doc(hidden)]
pub mod supervise;
mod tail;
mod telemetry;
mod ward;

pub use acp::{
    AcpAgent, Action, Canceller, Closed, Conversation, OfferedModel, Opened, Permission, Question, Talk,
    Turn, TurnItem, Whom,
};
pub use alhena_sys::files::exposed::{Exposed, ExposedBy};
pub use find::{
    DROP_IN_MARK, FastStart, Finder, Gemini, NodeVersion, NotFound, PACKAGE, Place, Tried, VersionSource, Why,
};
pub use interactive::Interactive;
pub use pool::{Pool, PoolOptions, Unfit};
pub use prepare::RunError;
pub use rate_limit::OnRateLimit;
pub use request::{
    Approval, Prompt, PromptBy, ResolvedRequest, Resume, RunExtras, Sandbox, SystemPrompt, Transport, Trust,
    directory, read_schema,
};
pub use run::{About, Item, Run, Stopper};
