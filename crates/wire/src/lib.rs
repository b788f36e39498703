//! What Gemini CLI writes, exactly, with its own field names.
//!
//! Every type here belongs to the *upstream* layer: a field holds what the CLI wrote and nothing that Alhena concluded
//! from it. All values are parsed first and judged elsewhere. Releases differ, so what was ever absent in one of them is
//! an `Option`. What no release had yet is skipped if it is a field, and kept in [`stream::Unknown`] if it is an event. Nothing
//! is written back from these types: whoever passes a line or a record on passes on its text.
//!
//! | Module | What it reads |
//! |---|---|
//! | [`frame`] | bytes into lines |
//! | [`display`] | which characters of foreign text are unsafe to show |
//! | [`stream`] | one line of `--output-format stream-json` |
//! | [`report`] | the object of `--output-format json`, also among noise and on stderr |
//! | [`session`] | session files, and the conversation they add up to |
//! | [`rpc`] | JSON-RPC on lines, as MCP servers and agents speak it |
//! | [`acp`] | the Agent Client Protocol, as agents speak it |
//! | [`responses`] | one line of `--record-responses` |
//! | [`exit`] | what an exit code of the CLI means |
//! | [`release`] | which release has which feature |

#[macro_use]
mod macros;
mod object;
mod raw;
mod value;

pub mod acp;
pub mod display;
pub mod exit;
pub mod frame;
pub mod mcp;
pub mod release;
pub mod report;
pub mod responses;
pub mod rpc;
#[cfg(feature = "schema")]
pub mod schema;
pub mod session;
pub mod stream;

pub use raw::{Raw, from_slice, without_lone_surrogates};
pub use value::{Count, Named};
