//! Finds, prepares, launches, follows and stops Gemini CLI.

mod changes {
    use std::path::{Path, PathBuf};
    use std::time::{Duration, SystemTime};
    pub struct State(Option<std::fs::Metadata>);
    impl State {
        pub fn changed_since(&self, since: SystemTime) -> bool { self.0.as_ref().is_some_and(|m| m.modified().is_ok_and(|t| t >= since)) }
        pub fn created_since(&self, since: SystemTime) -> bool { self.0.as_ref().is_some_and(|m| m.created().is_ok_and(|t| t >= since)) }
    }
    pub fn verify(path: &Path) -> State { State(std::fs::metadata(path).ok()) }
    pub fn scan_start() -> SystemTime { SystemTime::now() - Duration::from_millis(20) }
    #[derive(Default)]
    pub struct Found { pub created: Vec<PathBuf>, pub modified: Vec<PathBuf>, pub deleted: Vec<PathBuf>, pub truncated: bool }
    pub fn scan(_: &Path, _: SystemTime) -> Found { Found::default() }
}
pub mod dirs;
mod disk;
mod engine;
mod follow;
mod prepare;
pub mod recording;
mod request;
mod run;
mod start;
pub mod supervise;
pub mod env;
pub mod facts;
mod find;
pub mod install;
pub mod home;
pub mod settings;

pub use find::{
    DROP_IN_MARK, FastStart, Finder, Gemini, NodeVersion, NotFound, PACKAGE, Place, Tried, VersionSource, Why,
};
pub use prepare::RunError;
pub use request::{Approval, Prompt, PromptBy, Request, Resume, Sandbox, SystemPrompt, Trust};
pub use run::{About, Item, Run, Stopper};
