//! The tool table: what each tool of Gemini CLI is, what Claude calls it, and how its arguments are named.
//!
//! Names come from an exact list, never by resemblance (C-20): the CLI renames tools and arguments between releases
//! (`search_file_content` became `grep_search` in 0.28, `absolute_path` became `file_path` in 0.14), and all of them
//! still stand in old session files.

mod claude;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What kind of thing a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Runs a shell command, or looks after one.
    Command,
    /// Reads files or looks for them.
    FileRead,
    /// Writes files.
    FileWrite,
    /// Asks the user.
    AskUser,
    /// Searches or fetches from the web.
    SearchFetch,
    /// Plans, notes and other bookkeeping of the agent.
    Planning,
    /// Hands work to another agent.
    Agent,
    /// A tool of an MCP server.
    Mcp,
    /// Anything else.
    Unknown,
}

impl Class {
    /// Whether a tool of this class can change files.
    pub fn may_change_files(self) -> bool {
        match self {
            Class::Command | Class::FileWrite | Class::Agent | Class::Mcp | Class::Unknown => true,
            Class::FileRead | Class::AskUser | Class::SearchFetch | Class::Planning => false,
        }
    }
}

/// One tool that is known by name.
#[derive(Debug)]
pub struct Tool {
    /// Its name today.
    pub name: &'static str,
    /// Names it had before.
    pub aliases: &'static [&'static str],
    /// What kind of tool it is.
    pub class: Class,
    /// What Claude calls it, where it has such a tool.
    pub claude: Option<&'static str>,
    /// How its arguments are called there.
    arguments: fn(&Map<String, Value>) -> Map<String, Value>,
    /// Where it is to be met.
    pub seen: &'static str,
}

macro_rules! tools {
    ($($name:literal $([$($alias:literal),+])? $class:ident $($claude:literal $arguments:ident)? : $seen:literal;)+) => {
        &[$(Tool {
            name: $name,
            aliases: &[$($($alias),+)?],
            class: Class::$class,
            claude: tools!(@claude $($claude)?),
            arguments: tools!(@arguments $($arguments)?),
            seen: $seen,
        }),+]
    };
    (@claude) => { None };
    (@claude $claude:literal) => { Some($claude) };
    (@arguments) => { Map::clone };
    (@arguments $arguments:ident) => { claude::$arguments };
}

/// Every tool that is known by name. C-20 to C-26 and what came since.
pub const TOOLS: &[Tool] = tools! {
    "run_shell_command" Command "Bash" bash: "all releases";
    "list_background_processes" Command: "since 0.36";
    "read_background_output" Command "BashOutput" bash_output: "since 0.36";
    "read_file" FileRead "Read" read: "all releases; absolute_path before 0.14";
    "read_many_files" FileRead: "offered to the model until 0.2x; now only behind @paths";
    "list_directory" FileRead "Glob" list: "all releases; path before 0.14";
    "glob" FileRead "Glob" glob: "all releases";
    "grep_search" ["search_file_content"] FileRead "Grep" grep: "grep_search since 0.28";
    "list_mcp_resources" FileRead "ListMcpResourcesTool" mcp_resources: "since 0.34";
    "read_mcp_resource" FileRead "ReadMcpResourceTool" mcp_resource: "since 0.34";
    "replace" FileWrite "Edit" edit: "all releases";
    "write_file" FileWrite "Write" write: "all releases";
    "ask_user" AskUser "AskUserQuestion" ask: "interactive only";
    "google_web_search" SearchFetch "WebSearch" same: "all releases";
    "web_fetch" SearchFetch "WebFetch" fetch: "all releases";
    "write_todos" Planning "TodoWrite" todos: "not with Gemini 3 models";
    "enter_plan_mode" Planning "EnterPlanMode" same: "since 0.26";
    "exit_plan_mode" Planning "ExitPlanMode" plan: "since 0.26";
    "complete_task" Planning: "inside sub-agents";
    "save_memory" Planning: "removed in 0.44";
    "activate_skill" Planning "Skill" skill: "since 0.26";
    "get_internal_docs" Planning: "inside the cli_help agent";
    "update_topic" Planning: "since 0.37";
    "tracker_create_task" Planning: "experimental";
    "tracker_update_task" Planning: "experimental";
    "tracker_get_task" Planning: "experimental";
    "tracker_list_tasks" Planning: "experimental";
    "tracker_add_dependency" Planning: "experimental";
    "tracker_visualize" Planning: "experimental";
    "invoke_agent" ["delegate_to_agent"] Agent "Task" task: "since 0.39; one tool per agent before";
};

impl Tool {
    /// The tool of that name, old names included.
    pub fn find(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name || tool.aliases.contains(&name))
    }
}

/// What kind of tool the name belongs to.
pub fn class(name: &str) -> Class {
    match Tool::find(name) {
        Some(tool) => tool.class,
        // Gemini CLI calls the tool `do` of a server `mcp` `mcp_do`.
        None if name.strip_prefix("mcp_").is_some_and(|rest| !rest.is_empty()) || mcp(name).is_some() => {
            Class::Mcp
        }
        None => Class::Unknown,
    }
}

/// What Claude calls the tool; names that it does not have stay as they are (B-29).
pub fn claude_name(name: &str) -> Cow<'_, str> {
    match Tool::find(name) {
        Some(tool) => Cow::Borrowed(tool.claude.unwrap_or(name)),
        None => match mcp(name) {
            Some((server, tool)) => Cow::Owned(format!("mcp__{server}__{tool}")),
            None => Cow::Borrowed(name),
        },
    }
}

/// The arguments as Claude's tool of that name takes them; those of other tools stay as they are (B-36).
pub fn claude_input(name: &str, input: &Value) -> Value {
    match (Tool::find(name), input) {
        (Some(tool), Value::Object(arguments)) => Value::Object((tool.arguments)(arguments)),
        _ => input.clone(),
    }
}

/// The arguments as Claude's tool takes them, together with all those that it does not have: whoever permits a call has to see
/// everything that it does, such as the directory of a command.
pub fn claude_input_in_full(name: &str, input: &Value) -> Value {
    let mut claude = claude_input(name, input);
    let (Some(arguments), Some(full)) = (input.as_object(), claude.as_object_mut()) else { return claude };
    for (argument, value) in arguments {
        let mut others = arguments.clone();
        others.shift_remove(argument);
        let is_used = claude_input(name, &Value::Object(others)) != claude_input(name, input);
        let own = match argument.as_str() {
            "allow_multiple" => "replace_all",
            "is_background" => "run_in_background",
            other => other,
        };
        if !is_used && !full.contains_key(own) {
            full.insert(own.to_owned(), value.clone());
        }
    }
    claude
}

/// Server and tool of an MCP tool's name: `mcp_server_tool` since 0.34, `server__tool` before.
///
/// A server's name with an underscore in it is ambiguous; the first one divides, as in the CLI. Nothing may be allowed by this.
pub fn mcp(name: &str) -> Option<(&str, &str)> {
    let (server, tool) = match name.strip_prefix("mcp_") {
        Some(rest) => match rest.strip_prefix('_') {
            Some(claude_style) => claude_style.split_once("__")?,
            None => rest.split_once('_')?,
        },
        // Discovered by a project's own command, and of no server.
        None if name.starts_with("discovered_tool_") => return None,
        None => name.split_once("__")?,
    };
    (!server.is_empty() && !tool.is_empty()).then_some((server, tool))
}

/// Every server and tool that `SERVER__TOOL` or `mcp__SERVER__TOOL` can mean: both names can have two underscores in them.
pub fn mcp_readings(name: &str) -> Vec<(&str, &str)> {
    divisions(name.strip_prefix("mcp__").filter(|rest| rest.contains("__")).unwrap_or(name))
}

/// Every way to divide a name at two underscores.
pub fn divisions(name: &str) -> Vec<(&str, &str)> {
    let divided = name.char_indices().filter_map(|(at, _)| {
        let (server, rest) = name.split_at(at);
        Some((server, rest.strip_prefix("__")?))
    });
    divided.filter(|(server, tool)| !server.is_empty() && !tool.is_empty()).collect()
}

/// The file that a call of a writing tool names.
pub fn written_path(name: &str, input: &Value) -> Option<String> {
    if class(name) != Class::FileWrite {
        return None;
    }
    let path = ["file_path", "absolute_path", "path"].iter().find_map(|key| input.get(key)?.as_str())?;
    Some(path.to_owned())
}

#[cfg(test)]
mod tests;
