//! The SDK's `UnifiedMessage`, as it is shipped: usage in camel case, a time that is always a number, images that are always in
//! the message, arguments that are always an object.
//!
//! Six tools have Claude's names. All others keep the CLI's name and arguments (B-29, B-36), which Claude-shaped messages of the
//! model do not have any more and the record in `_original` does.

use alhena_model::message::{Block, Content, ImageSource, Message, MessageUsage, ToolResult};
use serde_json::{Map, Value, json};

use crate::with;

/// A message as the SDK's types have it.
pub fn unified(message: &Message<'_>) -> serde_json::Result<Value> {
    let mut unified = Map::new();
    let mut put = |key: &str, value: Value| drop(unified.insert(key.to_owned(), value));
    put("id", json!(message.id));
    put("role", json!(message.role));
    put(
        "content",
        match &message.content {
            Content::Text(text) => json!(text),
            Content::Blocks(blocks) => Value::Array(blocks.iter().map(block).collect::<Result<_, _>>()?),
        },
    );
    put("timestamp", json!(message.timestamp.unwrap_or_default()));
    put("tool", json!(message.tool));
    if let Some(model) = &message.model {
        put("model", json!(model));
    }
    if let Some(spent) = &message.usage {
        put("usage", usage(spent));
    }
    put("_original", serde_json::to_value(&message.original)?);
    keep_other_tools(&mut unified);
    Ok(Value::Object(unified))
}

fn block(block: &Block<'_>) -> serde_json::Result<Value> {
    match block {
        Block::ToolUse { id, name, input } if !input.is_object() => {
            Ok(json!({ "type": "tool_use", "id": id, "name": name, "input": { "input": input } }))
        }
        Block::Image { source: ImageSource::Url { url } } => {
            Ok(json!({ "type": "text", "text": format!("[image: {url}]") }))
        }
        // B-12
        Block::ToolResult(result) => serde_json::to_value(Block::ToolResult(ToolResult {
            is_error: result.reported_error,
            ..result.clone()
        })),
        block => serde_json::to_value(block),
    }
}

fn usage(spent: &MessageUsage) -> Value {
    let usage = json!({
        "inputTokens": spent.input_tokens,
        "outputTokens": spent.output_tokens,
        "totalTokens": spent.total_tokens,
    });
    let more = [("cacheReadTokens", spent.cached_tokens), ("thoughtTokens", spent.thought_tokens)];
    with(usage, more.map(|(name, tokens)| (name, tokens.map(Value::from))))
}

/// The six tools (B-23 to B-28), by the CLI's names.
const RENAMED: [&str; 6] =
    ["read_file", "write_file", "replace", "list_directory", "run_shell_command", "google_web_search"];

/// Gives every other tool call of a message its own name and arguments back.
fn keep_other_tools(message: &mut Map<String, Value>) {
    let Some(record) = message.remove("_original") else { return };
    if let Some(Value::Array(blocks)) = message.get_mut("content") {
        blocks.iter_mut().for_each(|block| keep(block, &record));
    }
    message.insert("_original".to_owned(), record);
}

fn keep(block: &mut Value, record: &Value) {
    let Value::Object(block) = block else { return };
    if block.get("type").and_then(Value::as_str) != Some("tool_use") {
        return;
    }
    let Some(id) = block.get("id") else { return };
    let Some(call) = calls(record).find(|call| call.get("id").unwrap_or(&json!("")) == id) else { return };
    let Some(name) = call.get("name").and_then(Value::as_str) else { return };
    if RENAMED.contains(&name) {
        return;
    }
    block.insert("name".to_owned(), json!(name));
    // A record without arguments may be the one of a call whose arguments are known from elsewhere.
    if let Some(Value::Object(arguments)) = call.get("args").filter(|args| **args != json!({})) {
        block.insert("input".to_owned(), json!(arguments));
    }
}

/// Returns the calls of a record: those of `toolCalls`, and those among the parts of the content, as after a resume.
fn calls(record: &Value) -> impl Iterator<Item = &Value> {
    let list = |key| record.get(key).and_then(Value::as_array).into_iter().flatten();
    let part = record.get("content").filter(|content| content.is_object());
    list("toolCalls").chain(list("content").chain(part).filter_map(|part| part.get("functionCall")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alhena_model::message::message;
    use alhena_wire::Raw;
    use alhena_wire::session::MessageRecord;

    fn of(record: &str) -> Value {
        let raw = Raw::from_text(record).unwrap();
        unified(&message(MessageRecord::from_text(record).unwrap(), raw)).unwrap()
    }

    // B-21
    #[test]
    fn a_message_has_the_shipped_types() {
        let record = r#"{"id":"1","timestamp":"2026-11-15T17:49:10.600Z","type":"gemini","content":"Done","model":"m",
            "toolCalls":[{"id":"t","name":"replace","args":{"file_path":"a","old_string":"x","new_string":"y","instruction":"i"}}],
            "tokens":{"input":3,"output":2,"cached":1,"thoughts":4,"tool":0,"total":9}}"#;
        let original: Value = serde_json::from_str(record).unwrap();
        assert_eq!(
            of(record),
            json!({"id": "1", "role": "assistant", "timestamp": 1_794_764_950_600_i64, "tool": "gemini", "model": "m",
                "content": [
                    {"type": "tool_use", "id": "t", "name": "Edit",
                     "input": {"file_path": "a", "old_string": "x", "new_string": "y"}},
                    {"type": "text", "text": "Done"},
                ],
                "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 9, "cacheReadTokens": 1, "thoughtTokens": 4},
                "_original": original})
        );
    }

    #[test]
    fn what_the_types_have_no_place_for_is_said_in_them() {
        let message = of(
            r#"{"id":"1","type":"user","content":[{"fileData":{"mimeType":"image/png","fileUri":"gs://b/a.png"}}]}"#,
        );
        assert_eq!(message.get("timestamp"), Some(&json!(0)));
        assert_eq!(message.get("content"), Some(&json!([{"type": "text", "text": "[image: gs://b/a.png]"}])));
    }

    // B-12
    #[test]
    fn a_command_that_failed_is_no_error_to_the_cli_and_so_none_to_this_host() {
        let result = |response: &str| {
            let record = format!(
                r#"{{"id": "g", "timestamp": "2026-11-15T17:49:14.000Z", "type": "gemini", "content": "", "toolCalls": [{{"id": "c", "name": "run_shell_command", "args": {{"command": "false"}}, "status": "success", "result": [{{"functionResponse": {{"id": "c", "name": "run_shell_command", "response": {response}}}}}]}}]}}"#
            );
            of(&record)["content"][1].take()
        };
        let failed = result(r#"{"output": "Output: x\nExit Code: 2"}"#);
        assert_eq!((&failed["is_error"], &failed["exit_code"]), (&json!(false), &json!(2)), "{failed}");
        assert_eq!(result(r#"{"error": "no"}"#)["is_error"], json!(true));
    }

    fn tool_use(record: &Value) -> Value {
        let message = of(&record.to_string());
        assert_eq!(message.get("_original"), Some(record));
        let blocks = message.get("content").and_then(Value::as_array).unwrap();
        blocks.iter().find(|block| block.get("type") == Some(&json!("tool_use"))).unwrap().clone()
    }

    // B-23 to B-36
    #[test]
    fn only_six_tools_have_claudes_names_and_arguments() {
        let glob = json!({"pattern": "*.rs", "dir_path": "src"});
        let todos = json!({"todos": [{"description": "x", "status": "pending"}]});
        let query = json!({"query": "q"});
        let list = json!({"pattern": "*", "path": "."});
        let path = json!({"file_path": "/a"});
        for (name, args, shown, input) in [
            ("read_file", json!({"absolute_path": "/a"}), "Read", path),
            ("list_directory", json!({"dir_path": "."}), "Glob", list),
            ("google_web_search", query.clone(), "WebSearch", query.clone()),
            ("glob", glob.clone(), "glob", glob),
            ("write_todos", todos.clone(), "write_todos", todos),
            ("search_file_content", query.clone(), "search_file_content", query.clone()),
            ("mcp_files_read_all", query.clone(), "mcp_files_read_all", query),
        ] {
            let expected = json!({"type": "tool_use", "id": "t", "name": shown, "input": input});
            let call = json!({"id": "t", "name": name, "args": args});
            let recorded = json!({"id": "1", "type": "gemini", "content": "", "toolCalls": [call]});
            assert_eq!(tool_use(&recorded), expected);
            let resumed = json!({"id": "1", "type": "gemini", "content": [{"functionCall": call}]});
            assert_eq!(tool_use(&resumed), expected);
            let alone = json!({"id": "1", "type": "gemini", "content": {"functionCall": call}});
            assert_eq!(tool_use(&alone), expected);
        }
    }

    #[test]
    fn a_call_without_an_id_or_arguments_keeps_its_name() {
        let record = json!({"id": "1", "type": "gemini", "content": [{"functionCall": {"name": "glob"}}]});
        let expected = json!({"type": "tool_use", "id": "", "name": "glob", "input": {}});
        assert_eq!(tool_use(&record), expected);
    }
}
