//! May a tool run? The options that a client is given, and what it answers.

use agent_client_protocol_schema::v1::{RequestPermissionOutcome, RequestPermissionResponse};
use serde::Deserialize;
use serde_json::{Value, json};

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_FOR_SESSION: &str = "allow_for_session";
const REJECT: &str = "reject";

/// What was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This once.
    AllowOnce,
    /// And the same again in this session. Alhena remembers that; Gemini CLI is never told.
    AllowForSession,
    /// Not, for this reason.
    Reject(String),
}

/// The parameters of the request.
pub fn request(session: &str, call: &Value) -> Value {
    json!({
        "sessionId": session,
        "toolCall": call,
        "options": [
            {"optionId": ALLOW_ONCE, "name": "Allow", "kind": "allow_once"},
            {"optionId": ALLOW_FOR_SESSION, "name": "Allow for this session", "kind": "allow_always"},
            {"optionId": REJECT, "name": "Reject", "kind": "reject_once"},
        ],
    })
}

impl Verdict {
    /// Reads the answer. What is not a clear yes is a no.
    pub fn read(answer: &Result<Value, Value>) -> Self {
        let answer = match answer {
            Ok(answer) => RequestPermissionResponse::deserialize(answer),
            Err(_) => return Self::Reject("The client could not ask anybody".to_owned()),
        };
        let chosen = match answer.map(|answer| answer.outcome) {
            Ok(RequestPermissionOutcome::Selected(selected)) => selected.option_id.to_string(),
            Ok(_) => return Self::Reject("The user did not answer".to_owned()),
            Err(_) => return Self::Reject("The client's answer could not be understood".to_owned()),
        };
        match chosen.as_str() {
            ALLOW_ONCE => Self::AllowOnce,
            ALLOW_FOR_SESSION => Self::AllowForSession,
            REJECT => Self::Reject("The user rejected it".to_owned()),
            _ => Self::Reject("The client chose what was not offered".to_owned()),
        }
    }
}
