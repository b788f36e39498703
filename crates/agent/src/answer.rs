//! Answers of a wanted shape: the model gets a tool to submit one, what it submits or says is checked, and what is wrong with
//! it is told to the model in the same session, for as often as the caller wants.
//!
//! The tool comes from an MCP server in this process. Two of the CLI's hooks do the rest: after the tool ran with a good answer
//! nothing more is asked of the model, and when the model ends its turn without one it is told to go on.

mod desk;
mod server;

pub(crate) use self::desk::{Desk, in_short};
pub(crate) use self::server::Server;
