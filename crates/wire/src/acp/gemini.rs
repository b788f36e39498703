//! What Gemini CLI does in its own way over ACP (0.61.0).

use serde_json::{Map, Value, json};

use crate::rpc::{self, Id};

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

/// How the names of tools begin that can have two underscores in them: those of MCP servers, and those that a project's own command
/// brings.
const OPEN_NAMES: [&str; 2] = ["mcp_", "discovered_tool_"];

/// The names that the tool of a call can have, by the call's id. The id is the name, two underscores, and an id that the API or the
/// CLI chose; up to 0.42 it was `name-1794800293263-0`. The chosen id can have two underscores in it, and so can some names.
fn possible_names(call_id: &str) -> Vec<&str> {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let old = || {
        let (rest, count) = call_id.rsplit_once('-')?;
        let (name, time) = rest.rsplit_once('-')?;
        (is_number(count) && is_number(time)).then_some(name)
    };
    let prefixed = call_id.char_indices().filter_map(|(at, _)| {
        let (name, rest) = call_id.split_at(at);
        (!name.is_empty() && rest.starts_with("__")).then_some(name)
    });
    let names: Vec<&str> = prefixed.chain(old().filter(|name| !name.is_empty())).collect();
    match names.first() {
        Some(first) if !OPEN_NAMES.iter().any(|prefix| first.starts_with(prefix)) => vec![first],
        _ => names,
    }
}

/// The tool's name in the id of a call, where that is certain.
pub fn certain_tool_name(call_id: &str) -> Option<&str> {
    match possible_names(call_id).as_slice() {
        [only] => Some(only),
        _ => None,
    }
}

/// The tool's name in the id of a call, as far as it can be told. Where nothing depends on it.
pub fn tool_name(call_id: &str) -> Option<&str> {
    let names = possible_names(call_id);
    // Without an id of the API the CLI repeats the name: `name__name_1794800293263_0`.
    let repeated = names.iter().find(|name| {
        let rest = call_id.strip_prefix(**name).and_then(|rest| rest.strip_prefix("__"));
        rest.and_then(|rest| rest.strip_prefix(**name)).is_some_and(|rest| rest.starts_with('_'))
    });
    repeated.or(names.last()).copied()
}

/// A tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpTool {
    /// Its whole name.
    pub name: String,
    /// The server's name.
    pub server: String,
    /// Its name on the server, which the whole name can have shortened or with other characters.
    pub tool: String,
}

/// The MCP tool of a call, where all that is known of the call agrees: its title, `do_it (srv MCP Server)`, its id, and its arguments.
///
/// The title alone proves nothing: of a shell command it is the command, and of a tool with an argument `command` it is that (0.61.0).
pub fn mcp_tool(call_id: &str, title: &str, texts: &[String]) -> Option<McpTool> {
    let titled = title.strip_suffix(" MCP Server)")?;
    if !call_id.starts_with("mcp_") || !texts.first().is_some_and(|text| has_no_command(text)) {
        return None;
    }
    let tools = titled.match_indices(" (").filter_map(|(at, between)| {
        let (tool, server) = (titled.get(..at)?, titled.get(at + between.len()..)?);
        let name = mcp_name(server, tool);
        let is_it = call_id.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with("__"));
        is_it.then(|| McpTool { name, server: server.to_owned(), tool: tool.to_owned() })
    });
    match tools.collect::<Vec<_>>().as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    }
}

/// Whether the arguments of a call, as people are shown them, have none that is called `command`. More than 500 characters of them are
/// left out, and the first five names are told.
fn has_no_command(text: &str) -> bool {
    if let Ok(Value::Object(arguments)) = crate::from_slice(text.as_bytes()) {
        return !arguments.contains_key("command");
    }
    let names = text.strip_prefix("[Payload omitted due to length with parameters: ");
    names
        .and_then(|names| names.strip_suffix(']'))
        .is_some_and(|names| !names.ends_with(", ...") && !names.split(", ").any(|name| name == "command"))
}

/// The whole name that the CLI gives to a tool of a server (0.61.0).
pub fn mcp_name(server: &str, tool: &str) -> String {
    registered_name(&format!("{server}_{tool}"))
}

/// The name under which the CLI registers an MCP tool of this name, with or without `mcp_` in front (0.61.0).
pub fn registered_name(name: &str) -> String {
    let name = if name.starts_with("mcp_") { name } else { &format!("mcp_{name}") };
    let name = plain(name);
    match (name.get(..30), name.len().checked_sub(30).and_then(|from| name.get(from..))) {
        (Some(start), Some(end)) if name.len() > LONGEST_NAME => format!("{start}...{end}"),
        _ => name,
    }
}

/// A name with the characters that the CLI leaves in it; it replaces each unit of UTF-16 of the others (0.61.0).
pub fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    name.chars().map(|c| if is_plain(c) { c.to_string() } else { "_".repeat(c.len_utf16()) }).collect()
}

const LONGEST_NAME: usize = 63;

/// Whether the CLI may have left out the middle of a name: since 0.34 it puts `...` there, and before `___`.
pub fn may_be_shortened(name: &str) -> bool {
    name.len() == LONGEST_NAME && (name.get(30..33) == Some("...") || name.get(28..31) == Some("___"))
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

/// Whether this is the text beside a shell command. A question that has it has the command as its title; before 0.38 both were in the
/// title, and could not be told apart.
pub fn is_beside_command(text: &str) -> bool {
    text.starts_with("[in ") || text.starts_with("[current working directory ")
}

/// The answer to a question that says no and why. The protocol has no place for a reason. But if the client fails to answer, the
/// tool does not run, and the model is told the error: as plain text only if the error is a string and not an object (0.10.0 to
/// 0.61.0).
pub fn rejection(id: &Id, reason: &str) -> Vec<u8> {
    let error = format!("The user rejected this call, and it did not run. Reason: {reason}");
    rpc::line(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// Whether a reason reaches the model. Of a file that a prompt names, outside of the folder, the CLI only says that it was denied.
pub fn takes_reason(call: &str) -> bool {
    !call.starts_with("resolve-prompt-")
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

    #[test]
    fn a_rejection_is_a_string_in_the_place_of_an_error() {
        let line = rejection(&Id::from(7), "not on \"main\"");
        let told = r#"{"error":"The user rejected this call, and it did not run. Reason: not on \"main\"","id":7,"jsonrpc":"2.0"}"#;
        assert_eq!(
            serde_json::from_slice::<Value>(&line).unwrap(),
            serde_json::from_str::<Value>(told).unwrap()
        );
        assert!(line.ends_with(b"\n") && takes_reason("call-1") && !takes_reason("resolve-prompt-/etc/x-1"));
    }
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
            ("mcp_a__b-1794800293263-0", Some("mcp_a__b")),
            ("write_file__8f__2b0", Some("write_file")),
            ("run_shell_command__x__y_1", Some("run_shell_command")),
            ("run_shell_command__mcp_srv_t__mcp_srv_t_1_0", Some("run_shell_command")),
            ("call_1", None),
            ("__", None),
            ("", None),
            ("ä__ä_1", Some("ä")),
        ] {
            assert_eq!(tool_name(id), name, "{id}");
        }
    }

    #[test]
    fn a_name_is_certain_where_no_other_fits_the_id() {
        for (id, name) in [
            ("write_file__8f__2b0", Some("write_file")),
            ("run_shell_command___", Some("run_shell_command")),
            ("mcp_srv_do_it__mcp_srv_do_it_1794798016159_0", Some("mcp_srv_do_it")),
            ("mcp_srv_do_it__8f2b0", Some("mcp_srv_do_it")),
            ("mcp_srv_x__y__mcp_srv_x__y_17_0", None),
            ("mcp_srv_x___y", None),
            ("mcp_srv_x-17-0", Some("mcp_srv_x")),
            ("mcp_srv_x__y-17-0", None),
            ("discovered_tool_a__b__c", None),
            ("call_1", None),
            ("__", None),
        ] {
            assert_eq!(certain_tool_name(id), name, "{id}");
        }
    }

    #[test]
    fn an_mcp_tool_is_known_where_title_id_and_arguments_agree() {
        let server = |id: &str, title: &str, arguments: &str| {
            mcp_tool(id, title, &[arguments.to_owned()]).map(|tool| tool.server)
        };
        let srv = Some("srv".to_owned());
        assert_eq!(server("mcp_srv_do_it__8f2b0", "do_it (srv MCP Server)", "{}"), srv);
        assert_eq!(server("mcp_srv_do__it__8f__2b0", "do__it (srv MCP Server)", "{\"a\":1}"), srv);
        assert_eq!(server("mcp_my_srv_t__1", "t (my srv MCP Server)", "{}"), Some("my srv".to_owned()));
        let omitted = "[Payload omitted due to length with parameters: a, b]";
        assert_eq!(server("mcp_srv_do_it__1", "do_it (srv MCP Server)", omitted), srv);
        assert_eq!(server("mcp_srv_do_it__1", "do_it (srv MCP Server)", r#"{"a":"half \ud83d"}"#), srv);
        let command = r#"{"a":"half \ud83d","command":"x"}"#;
        assert_eq!(server("mcp_srv_do_it__1", "do_it (srv MCP Server)", command), None);
        let long = "x".repeat(80);
        let name = format!("mcp_srv_{}...{}", "x".repeat(22), "x".repeat(30));
        assert_eq!(server(&format!("{name}__1"), &format!("{long} (srv MCP Server)"), "{}"), srv);
        for (id, title, arguments) in [
            // A shell command.
            ("run_shell_command__1", "touch M # (srv MCP Server)", "[current working directory /p]"),
            // A tool of another server with an argument that becomes its title.
            ("mcp_srv_do_it__1", "do_it (srv MCP Server)", r#"{"command": "do_it (srv MCP Server)"}"#),
            (
                "mcp_srv_do_it__1",
                "do_it (srv MCP Server)",
                "[Payload omitted due to length with parameters: x, command]",
            ),
            (
                "mcp_srv_do_it__1",
                "do_it (srv MCP Server)",
                "[Payload omitted due to length with parameters: a, b, c, d, e, ...]",
            ),
            ("mcp_other_do_it__1", "do_it (srv MCP Server)", "{}"),
            ("mcp_srv_do_it_more__1", "do_it (srv MCP Server)", "{}"),
            ("web_fetch__1", "x (srv MCP Server)", "{}"),
        ] {
            assert_eq!(server(id, title, arguments), None, "{id} {title} {arguments}");
        }
        assert_eq!(mcp_tool("mcp_srv_do_it__1", "do_it (srv MCP Server)", &[]), None);
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
