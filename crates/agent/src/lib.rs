//! Finds, prepares, launches, follows and stops Gemini CLI.

pub mod dirs;
pub mod env;
pub mod facts;
mod find;
pub mod home;
pub mod settings;

pub use find::{
    DROP_IN_MARK, FastStart, Finder, Gemini, NodeVersion, NotFound, PACKAGE, Place, Tried, VersionSource, Why,
};
