//! The session store of Gemini CLI on disk.

mod cache;
pub mod export;
pub mod file;
pub mod fingerprint;
pub mod follow;
pub mod in_use;
pub mod ledger;
mod lines;
pub mod listing;
pub mod load;
pub mod lockfile;
pub mod names;
mod plain_file;
pub mod project;
pub mod publish;
pub mod read;
pub mod registry;
pub mod repair;
pub mod resume;
mod scan;
pub mod search;
pub mod store;
pub mod survey;
mod threads;
pub mod usage;

pub use file::{Format, SessionFile, Stamp};
pub use load::Transcript;
pub use project::Project;
pub use store::{FindError, Scope, Session, SessionState, Store, Which};
pub use survey::{Ending, Survey};
