//! The agent SDK `agent-cli-sdk` (TypeScript): the result of an execution, and what the tool can do.
//!
//! The SDK never throws for what an agent did: failures and timeouts come back as a result with `success: false`. Gemini CLI
//! 0.61.0 exits 0 after some failures, so `success` is the outcome's, and `exitCode` is never 0 without it.

mod unified;

use alhena_model::Outcome;
use serde::Serialize;
use serde_json::{Value, json};

pub use unified::unified;

use crate::native::exit_code;

/// What `execute` resolves to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExecuteResult {
    /// Whether the run succeeded.
    pub success: bool,
    /// The CLI's exit code, or the one that it should have had.
    pub exit_code: u8,
    /// The session, to resume by; empty when there was none.
    pub session_id: String,
    /// How long it took, in milliseconds.
    pub duration: u64,
    /// The conversation, Claude-shaped.
    pub messages: Value,
    /// The model's answer: the value that fits the schema, its text, or the JSON in it when that was asked for and found.
    pub data: Value,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The outcome as this host wants it, with the messages of the same run, each made by [`unified()`].
pub fn view(outcome: &Outcome, messages: Value) -> ExecuteResult {
    ExecuteResult {
        success: outcome.is_success(),
        exit_code: exit_code(outcome),
        session_id: outcome.session_id.clone().unwrap_or_default(),
        duration: outcome.duration_ms,
        messages,
        data: outcome.data.clone().unwrap_or_else(|| outcome.text.last().into()),
        error: outcome.failure.as_ref().map(|failure| failure.message.clone()),
    }
}

/// What the tool can do, and where it is.
pub fn capabilities(cli_path: Option<&str>) -> Value {
    json!({
        "supportsSlashCommands": false,
        "supportsModels": true,
        "models": [
            {"id": "gemini-2.5-pro", "name": "Gemini 2.5 Pro"},
            {"id": "gemini-2.5-flash", "name": "Gemini 2.5 Flash"},
        ],
        "supportsWebSearch": true,
        "supportsThinking": true,
        "installed": cli_path.is_some(),
        "cliPath": cli_path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alhena_model::{Failure, FailureKind, Status};

    fn outcome(text: &str) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.status = Status::Success;
        outcome.text = alhena_model::outcome::Text::whole(text);
        outcome.session_id = Some("s-1".to_owned());
        outcome.duration_ms = 1200;
        outcome.exit_code = Some(0);
        outcome
    }

    // B-55
    #[test]
    fn a_success_has_messages_and_the_text() {
        let messages = json!([{"id": "1", "role": "user", "content": "Say hello"}]);
        assert_eq!(
            serde_json::to_value(view(&outcome("Hello"), messages.clone())).unwrap(),
            json!({"success": true, "exitCode": 0, "sessionId": "s-1", "duration": 1200, "messages": messages, "data": "Hello"})
        );
    }

    #[test]
    fn a_failure_is_a_result_and_its_exit_code_is_not_0() {
        let mut failed = outcome("");
        failed.status = Status::Failed;
        failed.session_id = None;
        failed.failure = Some(Failure::new(FailureKind::InvalidResponse, "The model gave no answer"));
        assert_eq!(
            serde_json::to_value(view(&failed, json!([]))).unwrap(),
            json!({"success": false, "exitCode": 1, "sessionId": "", "duration": 1200, "messages": [], "data": "",
                   "error": "The model gave no answer"})
        );
    }

    // B-56, B-57
    #[test]
    fn capabilities_are_the_documents_and_say_where_the_cli_is() {
        let expected = |installed: bool, path: Value| {
            json!({
                "supportsSlashCommands": false, "supportsModels": true,
                "models": [{"id": "gemini-2.5-pro", "name": "Gemini 2.5 Pro"}, {"id": "gemini-2.5-flash", "name": "Gemini 2.5 Flash"}],
                "supportsWebSearch": true, "supportsThinking": true, "installed": installed, "cliPath": path,
            })
        };
        assert_eq!(
            capabilities(Some("/usr/local/bin/gemini")),
            expected(true, json!("/usr/local/bin/gemini"))
        );
        assert_eq!(capabilities(None), expected(false, Value::Null));
    }
}
