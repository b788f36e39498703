//! The Agent Client Protocol, version 1, from the agent's side: for editors that talk to Gemini CLI through Alhena.
//!
//! What a client asks is read with the types of the protocol's own crate; what it is told is made here and, in the tests, read
//! with the same types.
//!
//! | Module | What it has |
//! |---|---|
//! | [`ask`] | the requests of a client |
//! | [`say`] | the answers to them |
//! | [`updates`] | what happens in a turn, or happened in an earlier one, as updates of a session |
//! | [`permission`] | the question whether a tool may run, and its answer |

pub mod ask;
pub mod permission;
pub mod say;
mod shown;
pub mod updates;

#[cfg(test)]
mod tests;

use alhena_model::{Failure, FailureKind};
use alhena_wire::rpc::Fault;
use serde_json::{Value, json};

use crate::with;

/// The protocol's own number for "sign in first".
const SIGN_IN: i64 = -32000;
/// The protocol's own number for something that is not there.
const NOT_THERE: i64 = -32002;

/// An error that answers a request: what is wrong, and in its data the kind of failure and what to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The number, of JSON-RPC or of the protocol.
    pub code: i64,
    /// What is wrong, for people.
    pub message: String,
    /// `kind`, `hint`, and what else is known.
    pub data: Value,
}

impl Refusal {
    /// A request that makes no sense.
    pub fn of(fault: Fault, message: impl Into<String>, hint: &str) -> Self {
        let data = if hint.is_empty() { json!({}) } else { json!({ "hint": hint }) };
        Self { code: i64::from(fault as i32), message: message.into(), data }
    }

    /// Nobody knows this session.
    pub fn no_session(id: &str) -> Self {
        let hint = "session/list names the sessions that can be loaded, session/new begins one.";
        Self {
            code: NOT_THERE,
            message: format!("there is no session {id:?}"),
            data: json!({"hint": hint, "sessionId": id}),
        }
    }
}

impl From<&Failure> for Refusal {
    fn from(failure: &Failure) -> Self {
        let code = match failure.kind {
            FailureKind::Auth => SIGN_IN,
            FailureKind::Input => i64::from(Fault::Params as i32),
            _ => i64::from(Fault::Internal as i32),
        };
        let more = [
            ("httpStatus", failure.http_status.map(Value::from)),
            ("retryAfterMs", failure.retry_after_ms.map(Value::from)),
        ];
        let data = with(json!({"kind": failure.kind, "hint": failure.hint}), more);
        Self { code, message: failure.message.clone(), data }
    }
}
