//! The hosts' contracts as pure views over the model.
//!
//! Five programs drive Gemini CLI, each with its own option names, result shapes and texts. What they share is in
//! `alhena-model`; what each of them expects beyond that is here, one module per host, without any I/O. A view only
//! renders: whatever it says was decided by the model's verdict, so that no host can be told another truth.
//!
//! | Module | Host | What it gives |
//! |---|---|---|
//! | [`aiwf`] | a workflow engine in Python | response, files, exact error texts, metadata, config checks |
//! | [`agent_cli_sdk`] | an agent SDK in TypeScript | `ExecuteResult`, permission modes, capabilities |
//! | [`openase`] | a ticket runner in Go | JSON lines for chat and for tickets |
//! | [`promptfoo`] | an evaluator in JavaScript | `ProviderResponse`, config checks, cost |
//! | [`claude`] | programs on the Claude Agent SDK | its arguments, lines and control protocol |
//! | [`acp`] | editors that speak the Agent Client Protocol | its requests, updates and questions |
//! | [`native`] | everybody who parses the CLI itself | the CLI's own three formats, made truthful |
//! | [`streamed`] | everybody who shows a conversation while it is held | messages as they grow |
//! | [`dialect`] | everybody who writes the CLI's command line | any host's arguments, understood |

pub mod acp;
pub mod agent_cli_sdk;
pub mod aiwf;
pub mod claude;
pub mod dialect;
pub mod native;
pub mod openase;
pub mod promptfoo;
#[cfg(feature = "schema")]
pub mod schema;
pub mod streamed;

mod failed_run;
mod python;
#[cfg(test)]
mod samples;

use serde_json::Value;

/// The object with more fields, as far as they are known.
fn with<const N: usize>(mut object: Value, more: [(&str, Option<Value>); N]) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    object
}
