//! The session store of Gemini CLI on disk.

pub mod file;
pub mod project;
mod scan;
pub mod survey;
