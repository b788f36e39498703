//! What a client says to an agent, as lines with their ends.

use serde_json::{Value, json};

use crate::rpc::{Id, answer, notification, request};

/// The first word. This client offers neither files nor terminals: the agent does everything itself.
pub fn initialize(id: &Id, name: &str, version: &str) -> Vec<u8> {
    let files = json!({"readTextFile": false, "writeTextFile": false});
    let params = json!({
        "protocolVersion": 1,
        "clientCapabilities": {"fs": files, "terminal": false},
        "clientInfo": {"name": name, "version": version},
    });
    request(id, "initialize", &params)
}

/// A new session in a directory.
pub fn new_session(id: &Id, dir: &str, servers: &Value) -> Vec<u8> {
    request(id, "session/new", &json!({"cwd": dir, "mcpServers": servers}))
}

/// A session that was there before.
pub fn load_session(id: &Id, session: &str, dir: &str, servers: &Value) -> Vec<u8> {
    request(id, "session/load", &json!({"sessionId": session, "cwd": dir, "mcpServers": servers}))
}

/// A prompt, in one piece or several.
pub fn prompt(id: &Id, session: &str, texts: &[&str]) -> Vec<u8> {
    let prompt: Value = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    request(id, "session/prompt", &json!({"sessionId": session, "prompt": prompt}))
}

/// The turn is to end now.
pub fn cancel(session: &str) -> Vec<u8> {
    notification("session/cancel", &json!({"sessionId": session}))
}

/// What the agent may do without asking.
pub fn set_mode(id: &Id, session: &str, mode: &str) -> Vec<u8> {
    request(id, "session/set_mode", &json!({"sessionId": session, "modeId": mode}))
}

/// Which model.
pub fn set_model(id: &Id, session: &str, model: &str) -> Vec<u8> {
    request(id, "session/set_model", &json!({"sessionId": session, "modelId": model}))
}

/// The answer to a question: one of its options.
pub fn choose(id: &Id, option: &str) -> Vec<u8> {
    answer(id, &json!({"outcome": {"outcome": "selected", "optionId": option}}))
}

/// The answer to a question of a turn that was cancelled.
pub fn cancelled(id: &Id) -> Vec<u8> {
    answer(id, &json!({"outcome": {"outcome": "cancelled"}}))
}
