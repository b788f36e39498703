//! The session store of Gemini CLI on disk.

mod cache;
pub mod events;
pub mod export;
pub mod file;
pub mod follow;
mod lines;
pub mod load;
pub mod open;
pub mod project;
mod quick;
mod read;
pub mod repair;
mod scan;
pub mod search;
pub mod store;
pub mod survey;
mod threads;

pub use file::{Format, SessionFile, Stamp};
pub use load::Transcript;
pub use project::Project;
pub use store::{FindError, Scope, Session, SessionState, Store, Which};
pub use survey::{Ending, Survey};
