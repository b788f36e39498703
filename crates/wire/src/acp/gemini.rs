//! What Gemini CLI does in its own way over ACP (0.61.0).

use serde_json::{Map, Value};

/// What a change of mode says as if the model had said it.
const MODE_UPDATE: &str = "[MODE_UPDATE] ";
const MODES: [&str; 4] = ["default", "autoEdit", "yolo", "plan"];

/// Whether a text of the "model" only tells that the mode changed.
pub fn is_mode_update(text: &str) -> bool {
    text.strip_prefix(MODE_UPDATE).is_some_and(|mode| MODES.contains(&mode.trim_end()))
}

/// Whether a text of the "user" is the CLI's own, who tells the model that it repeats itself. Once more, and the turn is stopped.
pub fn is_loop_feedback(text: &str) -> bool {
    text.starts_with("System: Potential loop detected.")
}

/// Whether an agent is Gemini CLI, by its answer to the first word.
pub fn is_it(initialized: &Value) -> bool {
    initialized.pointer("/agentInfo/name").and_then(Value::as_str) == Some("gemini-cli")
}

/// The tool's name in the id of a call: `name__name_1794800293263_0`, `name__` and the API's own id where the API gives one, and
/// `name-1794800293263-0` up to 0.38.
pub fn tool_name(call_id: &str) -> Option<&str> {
    let old = || {
        let (name, rest) = call_id.split_once('-')?;
        rest.starts_with(|c: char| c.is_ascii_digit()).then_some(name)
    };
    let doubled = call_id.match_indices("__").find_map(|(at, between)| {
        let (name, rest) = (call_id.get(..at)?, call_id.get(at + between.len()..)?);
        rest.strip_prefix(name)?.starts_with('_').then_some(name)
    });
    let of_api = || call_id.rsplit_once("__").map(|(name, _)| name);
    doubled.or_else(of_api).or_else(old).filter(|name| !name.is_empty())
}

/// The MCP server of a tool, by what people are shown: `do_it (srv MCP Server)`.
pub fn server(title: &str) -> Option<&str> {
    let (_, server) = title.strip_suffix(" MCP Server)")?.rsplit_once('(')?;
    Some(server)
}

/// Heading and text of a thought: `**Heading**\ntext`.
pub fn thought(text: &str) -> (&str, &str) {
    let headed = text.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    headed.map_or(("", text), |(subject, text)| (subject.trim(), text.trim_start()))
}

/// Whether a shell command runs in the background, by what stands beside it: `[current working directory /p] (why) [background]`. What
/// the model says of it comes before that.
pub fn is_background(text: &str) -> bool {
    is_beside_command(text) && text.ends_with(" [background]")
}

/// Where a shell command runs, if not where the session works: `in sub`, with all that is said beside it. Where the name of the folder
/// ends cannot be told for certain, as the model chooses it and the words behind it.
pub fn elsewhere(text: &str) -> Option<&str> {
    text.starts_with("[in ").then_some(text)
}

fn is_beside_command(text: &str) -> bool {
    text.starts_with("[in ") || text.starts_with("[current working directory ")
}

/// The answer to a question that says no and why. There is no place for a reason, but of an option that it does not know it tells
/// the model which one that was, and does nothing.
pub fn rejection(reason: &str) -> String {
    format!("The user rejected this, it did not run. Reason: {reason}")
}

/// The tokens of one model in `_meta.quota`: without cached ones, thoughts and what sub-agents took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The model.
    pub model: String,
    /// Of the prompts.
    pub input: u64,
    /// Of the answers.
    pub output: u64,
}

/// What the end of a turn says of tokens.
pub fn quota(meta: &Map<String, Value>) -> Vec<Quota> {
    let used = meta.get("quota").and_then(|quota| quota.get("model_usage")).and_then(Value::as_array);
    let number = |value: &Value, name: &str| {
        let count = value.get("token_count").and_then(|tokens| tokens.get(name));
        count.and_then(Value::as_u64).unwrap_or(0)
    };
    let read = |value: &Value| {
        let model = value.get("model")?.as_str()?.to_owned();
        Some(Quota { model, input: number(value, "input_tokens"), output: number(value, "output_tokens") })
    };
    used.into_iter().flatten().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_name_of_a_tool_stands_in_the_id_of_its_call() {
        for (id, name) in [
            ("run_shell_command__run_shell_command_1794800293263_0", Some("run_shell_command")),
            ("mcp_srv_do_it__mcp_srv_do_it_1794798016159_0", Some("mcp_srv_do_it")),
            ("mcp_a__b__mcp_a__b_1794798016159_0", Some("mcp_a__b")),
            ("read_file-1794800293263-0", Some("read_file")),
            ("write_file__8f2b0", Some("write_file")),
            ("mcp_a__b__call_7", Some("mcp_a__b")),
            ("call_1", None),
            ("__", None),
            ("", None),
            ("ä__ä_1", Some("ä")),
        ] {
            assert_eq!(tool_name(id), name, "{id}");
        }
    }

    #[test]
    fn a_mode_update_is_no_answer_and_a_thought_has_a_heading() {
        assert!(is_mode_update("[MODE_UPDATE] yolo") && is_mode_update("[MODE_UPDATE] plan\n"));
        assert!(!is_mode_update("[MODE_UPDATE] is a text") && !is_mode_update("yolo"));
        assert_eq!(thought("**Plan**\nrun it"), ("Plan", "run it"));
        assert_eq!(thought("just so"), ("", "just so"));
        assert_eq!(thought("**open"), ("", "**open"));
    }

    #[test]
    fn tokens_are_read_and_what_is_none_is_nothing() {
        let meta = json!({"quota": {"model_usage": [
            {"model": "m", "token_count": {"input_tokens": 200, "output_tokens": 14}}, {"model": 1}, null,
        ]}});
        let read = quota(meta.as_object().unwrap());
        assert_eq!(read, [Quota { model: "m".to_owned(), input: 200, output: 14 }]);
        assert_eq!(quota(&Map::new()), []);
    }
}
