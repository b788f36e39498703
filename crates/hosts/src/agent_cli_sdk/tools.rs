//! The six tools that agent-cli-sdk shows under Claude's names. All others keep the CLI's name and arguments (B-29, B-36), which
//! Claude-shaped messages of the model do not have any more and the record in `_original` does.

use serde_json::{Map, Value, json};

/// The tools of B-23 to B-28, by the CLI's names.
const RENAMED: [&str; 6] =
    ["read_file", "write_file", "replace", "list_directory", "run_shell_command", "google_web_search"];

/// Gives every other tool call of a message its own name and arguments back.
pub(super) fn keep_other_tools(message: &mut Map<String, Value>) {
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
    use super::super::unified::tests::of;
    use super::*;

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
