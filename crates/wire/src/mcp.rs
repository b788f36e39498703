//! What MCP adds to JSON-RPC, as far as a server with tools needs it.

use serde_json::{Map, Value, json};

/// Begins the conversation.
pub const INITIALIZE: &str = "initialize";
/// Asks whether anybody is there.
pub const PING: &str = "ping";
/// Asks for the tools.
pub const LIST: &str = "tools/list";
/// Asks a tool to run.
pub const CALL: &str = "tools/call";

/// The revisions of the protocol in which tools are what they are here, the newest first.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The answer to [`INITIALIZE`]; instructions are for the model.
pub fn about(params: &Value, instructions: &str) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let revision = REVISIONS.into_iter().find(|revision| wanted == Some(revision));
    let mut about = json!({
        "protocolVersion": revision.or(REVISIONS.first().copied()),
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "alhena", "version": env!("CARGO_PKG_VERSION")},
    });
    if let Some(about) = about.as_object_mut().filter(|_| !instructions.is_empty()) {
        about.insert("instructions".to_owned(), json!(instructions));
    }
    about
}

/// Which tool is called, and with what.
pub fn call(params: &mut Value) -> Result<(String, Map<String, Value>), &'static str> {
    let arguments = match params.get_mut("arguments").map(Value::take) {
        Some(Value::Object(arguments)) => Some(arguments),
        None | Some(Value::Null) => Some(Map::new()),
        Some(_) => None,
    };
    match (params.get("name").and_then(Value::as_str), arguments) {
        (Some(name), Some(arguments)) => Ok((name.to_owned(), arguments)),
        _ => Err("A call has a name, and arguments by name"),
    }
}

/// The result of a call, with the structured content of a text that is JSON. Gemini CLI 0.61.0 makes it of the text where there
/// is none, and then refuses whatever is no object: a worker's answer `42`, too.
pub fn result(done: Result<String, String>) -> Value {
    let failed = done.is_err();
    let text = done.unwrap_or_else(|text| text);
    let structured = serde_json::from_str::<Value>(&text).ok();
    let content = json!([{"type": "text", "text": &text}]);
    match structured {
        None => json!({"content": content, "isError": failed}),
        Some(value) => {
            let object = if value.is_object() { value } else { json!({"text": text}) };
            json!({"content": content, "structuredContent": object, "isError": failed})
        }
    }
}
