//! Allow and deny lists as a policy file.
//!
//! Since 0.30 the CLI takes policy files by `--policy`, which then *replace* the user's own in `.gemini/policies` (0.61.0).
//! The flag can be given several times, so the user's are given again. Headless, a tool that is denied without conditions
//! is not even offered to the model; one that is allowed for some arguments is, and other arguments are refused.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use alhena_model::Hint;
use alhena_model::tool::{self, TOOLS, Tool};
use serde_json::{Map, Value};

use alhena_wire::acp::gemini;

use super::settings::written_out;

pub(crate) const SHELL: &str = "run_shell_command";

/// Where our rules stand among the user's own, 0 to 999: a denial is never overruled, and an allowance is worth what the
/// CLI's own `--allowed-tools` is worth.
const DENY: u32 = 999;
/// What is to be asked about is not allowed by anybody.
const ASK: u32 = 998;
const ALLOW: u32 = 300;
/// A shell that is allowed for some commands is denied for the rest, also where everything is allowed (yolo); but a rule
/// of the user's own may allow more.
const REST: u32 = 0;

/// What the CLI matches a pattern with is a JSON object.
const ANY_ARGUMENTS: &str = r"\{";
/// Arguments of a shell with text that the CLI reads in another way than bash (0.61.0): `$`, backticks, backslashes, control
/// characters, here-documents, comments. Its prefixes of commands hold for other text only.
const NOT_PLAIN: &str = r##"\$|\x60|\\\\|\\[bfru]|<<|([ ;&|]|\\[nt])#|"command":"#"##;
const NOT_PLAIN_MESSAGE: &str = "Only plain commands can be checked: no $, backticks, backslashes, comments or here-documents, also in the description.";
/// Arguments of a shell that runs in another folder, where a path is another program.
const ELSEWHERE: &str = r#""dir_path":"#;
const ELSEWHERE_MESSAGE: &str = "Commands are allowed only in the folder of the run: leave out dir_path.";

/// A tool, or a part of one: `NAME`, `run_shell_command(PREFIX)`, `mcp_SERVER_TOOL`, `SERVER__TOOL`, and as Claude
/// writes it `mcp__SERVER__TOOL`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToolRule {
    server: Option<String>,
    tool: String,
    prefix: Option<String>,
    /// The name as it was given.
    written: String,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotARule(String);

impl fmt::Display for NotARule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotARule {}

impl Hint for NotARule {}

impl ToolRule {
    /// Whether none of these MCP servers can be the one that the rule names.
    #[must_use]
    pub fn names_none_of<'a>(&self, mut servers: impl Iterator<Item = &'a str>) -> bool {
        match (&self.server, self.tool.strip_prefix("mcp_")) {
            (Some(named), _) => {
                let readings = self.readings();
                let is = |server| readings.iter().any(|rule| rule.server.as_deref() == Some(server));
                !named.contains('*') && !servers.any(is)
            }
            (None, Some(rest)) if !rest.starts_with('*') => {
                !servers.any(|server| rest.strip_prefix(server).is_some_and(|tool| tool.starts_with('_')))
            }
            (None, _) => false,
        }
    }

    /// A rule for a tool, of a server or of none.
    fn of(server: Option<&str>, tool: &str) -> Self {
        Self {
            server: server.map(str::to_owned),
            tool: tool.to_owned(),
            prefix: None,
            written: tool.to_owned(),
        }
    }

    /// The rules that it can mean, more than one where it does not say where the server's name ends.
    fn readings(&self) -> Vec<Self> {
        let own = self.server.is_none().then(|| self.clone());
        let of_servers = tool::mcp_readings(&self.written).into_iter();
        own.into_iter().chain(of_servers.map(|(server, tool)| Self::of(Some(server), tool))).collect()
    }

    /// The rules that deny every possible meaning. A name in Claude's form, `mcp__a__b`, can also be the name that Gemini CLI itself gives a
    /// tool, or contain a server's name with underscores.
    fn denials(&self) -> Vec<Self> {
        let mut rules = self.readings();
        if self.server.is_some() && self.written.starts_with("mcp__") && !self.written.contains('*') {
            rules.push(Self::of(None, &self.written));
            rules.extend(tool::divisions(&self.written).into_iter().map(|(s, tool)| Self::of(Some(s), tool)));
        }
        rules
    }

    /// Whether it does not say where the server's name ends, so that it allows nothing.
    pub(crate) fn is_ambiguous(&self) -> bool {
        self.server.is_some() && self.readings().len() > 1
    }

    /// The server of which it means all tools.
    fn whole_server(&self) -> Option<&str> {
        match &self.server {
            Some(server) => Some(server.as_str()).filter(|_| self.tool == "*"),
            None => self.tool.strip_prefix("mcp_")?.strip_suffix("_*"),
        }
    }

    /// The rule by the name under which the CLI registers the tool, if that is another than its policies take it for: it shortens long
    /// names and replaces characters (0.61.0).
    fn registered(&self) -> Option<Self> {
        let whole = match &self.server {
            Some(server) => format!("mcp_{server}_{}", self.tool),
            None => self.tool.clone(),
        };
        let tool = match &self.server {
            Some(server) => gemini::mcp_name(server, &self.tool),
            None => gemini::registered_name(&self.tool),
        };
        let is_other = whole.starts_with("mcp_") && !whole.contains('*') && tool != whole;
        is_other.then(|| Self::of(None, &tool))
    }

    /// Whether it is about several tools in a way that the CLI's policies cannot express: they take a star for every tool, for all tools of
    /// all servers, and for all of one server, whose name they compare with the beginning of whole names, where it can be shortened (0.61.0).
    pub(crate) fn is_beyond_policies(&self) -> bool {
        self.readings().iter().any(|rule| {
            match (rule.server.as_deref(), rule.tool.as_str(), rule.whole_server()) {
                (None, "*" | "mcp_*", _) | (Some("*"), "*", _) => false,
                (_, _, Some(server)) => {
                    let whole = gemini::mcp_name(server, &"x".repeat(60));
                    server.contains('*') || !whole.starts_with(&format!("mcp_{server}_"))
                }
                (server, tool, None) => {
                    tool.contains('*') || server.is_some_and(|server| server.contains('*'))
                }
            }
        })
    }

    /// Whether it is about a call of this tool, with this command if it is a shell; several commands are not, nor is one that runs
    /// elsewhere. Of a tool of an MCP server both names have to be known where it names both.
    pub(crate) fn covers(
        &self,
        tool: &str,
        of: Option<(&str, &str)>,
        command: Option<&str>,
        elsewhere: bool,
    ) -> bool {
        let is_tool = match (&self.server, self.whole_server()) {
            (_, Some(server)) => {
                of.is_some_and(|(asked, _)| server == "*" || asked == server) && !self.is_ambiguous()
            }
            (Some(server), None) => of == Some((server, &self.tool)) && !self.is_ambiguous(),
            (None, None) => self.tool == tool || self.tool == "*" || (self.tool == "mcp_*" && of.is_some()),
        };
        let is_command = match (&self.prefix, command) {
            (None, _) => true,
            (Some(prefix), Some(command)) => {
                let rest = command.strip_prefix(prefix.as_str());
                let ends = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
                ends && !elsewhere
                    && !command.contains([';', '&', '|', '$', '`', '(', ')', '<', '>', '\n', '\\'])
            }
            (Some(_), None) => false,
        };
        is_tool && is_command
    }

    /// The tool that was probably meant, if no release of the CLI has one of this name: the rule would never apply. What
    /// could be an MCP server's, a discovered one or a pattern is not judged.
    #[must_use]
    pub fn mistaken(&self) -> Option<Mistaken> {
        let name = self.tool.as_str();
        let foreign = name.contains('*') || name.starts_with("mcp_") || name.starts_with(DISCOVERED);
        if self.server.is_some() || foreign || Tool::find(name).is_some() {
            return None;
        }
        Some(Mistaken::of(name))
    }
}

/// What the names of tools begin with that a project's own command brings.
pub(crate) const DISCOVERED: &str = "discovered_tool_";

impl Mistaken {
    /// For a name that no tool has.
    pub(crate) fn of(name: &str) -> Self {
        let known = TOOLS.iter().flat_map(|tool| std::iter::once(tool.name).chain(tool.claude));
        let close = |known: &str| strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase());
        let nearest = known.map(|known| (close(known), known)).max_by(|one, other| one.0.total_cmp(&other.0));
        let nearest = nearest.filter(|(closeness, _)| *closeness > 0.8).map(|(_, known)| known);
        // People know Claude's names too.
        let meant =
            nearest.and_then(|name| TOOLS.iter().find(|tool| tool.name == name || tool.claude == Some(name)));
        Mistaken { name: name.to_owned(), meant: meant.map(|tool| tool.name) }
    }
}

/// A name that no tool of the CLI has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistaken {
    /// The name.
    pub name: String,
    /// The tool that was probably meant.
    pub meant: Option<&'static str>,
}

impl fmt::Display for Mistaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gemini CLI has no tool called {:?}", self.name)?;
        match self.meant {
            Some(meant) => write!(f, "; did you mean {meant}?"),
            None => f.write_str(", unless an extension brings it"),
        }
    }
}

/// `NAME` or `NAME(INSIDE)`, as every rule is written.
pub(crate) fn name_and_inside(text: &str) -> Result<(&str, Option<&str>), NotARule> {
    let text = text.trim();
    let (name, inside) = match text.split_once('(') {
        None => (text, None),
        Some((name, rest)) => {
            let inside = rest.strip_suffix(')');
            let inside = inside.ok_or_else(|| NotARule(format!("{text:?} has no closing parenthesis")))?;
            (name.trim(), Some(inside.trim()))
        }
    };
    match name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        true => Err(NotARule(format!("{text:?} is not the name of a tool"))),
        false => Ok((name, inside)),
    }
}

impl FromStr for ToolRule {
    type Err = NotARule;

    fn from_str(text: &str) -> Result<Self, NotARule> {
        let (name, prefix) = name_and_inside(text)?;
        let name = if name == "ShellTool" { SHELL } else { name };
        // `git:*` and `git *` are how other programs say that anything may follow.
        let prefix =
            prefix.map(|prefix| prefix.strip_suffix('*').unwrap_or(prefix).trim_end_matches([':', ' ']));
        let prefix = prefix.filter(|prefix| !prefix.is_empty()).map(str::to_owned);
        if prefix.is_some() && name != SHELL {
            let text = text.trim();
            return Err(NotARule(format!("{text:?}: only {SHELL} can be limited to commands")));
        }
        // `mcp_` and one underscore is how the CLI's own names begin.
        let is_whole = name.starts_with("mcp_") && !name.starts_with("mcp__");
        let (server, tool) = match tool::mcp_readings(name).first() {
            Some((server, tool)) if !is_whole => (Some((*server).to_owned()), *tool),
            _ => (None, name),
        };
        Ok(Self { server, tool: tool.to_owned(), prefix, written: name.to_owned() })
    }
}

impl fmt::Display for ToolRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(server) = &self.server {
            write!(f, "{server}__")?;
        }
        f.write_str(&self.tool)?;
        match &self.prefix {
            Some(prefix) => write!(f, "({prefix})"),
            None => Ok(()),
        }
    }
}

/// The text of a policy file for these rules, in the CLI's own format. Deterministic, so that it can be part of a test.
#[must_use]
pub fn policy_text(allow: &[ToolRule], deny: &[ToolRule], ask: &[ToolRule], shell: Shell) -> String {
    let mut text = "# Written by Alhena for one run.\n".to_owned();
    if allow.iter().chain(deny).any(|rule| rule.prefix.is_some()) {
        push_pattern(&mut text, NOT_PLAIN, "deny", DENY);
        text.push_str(&format!("deny_message = {}\n", quoted(NOT_PLAIN_MESSAGE)));
    }
    let all_meant = |rule: &ToolRule| {
        rule.denials().into_iter().flat_map(|rule| [rule.registered(), Some(rule)]).flatten()
    };
    for rule in deny.iter().flat_map(all_meant) {
        push_rule(&mut text, &rule, "deny", DENY);
    }
    for rule in ask {
        if rule.server.is_none() && rule.tool == "*" {
            push_rule(&mut text, &ToolRule { tool: SHELL.to_owned(), ..rule.clone() }, "ask_user", ASK);
        }
        for rule in all_meant(rule) {
            push_rule(&mut text, &rule, "ask_user", ASK);
        }
    }
    for rule in allow {
        push_rule(&mut text, rule, "allow", ALLOW);
    }
    let mut allowed = allow.iter().filter(|rule| rule.server.is_none() && rule.tool == SHELL).peekable();
    if allowed.peek().is_some() && allowed.all(|rule| rule.prefix.is_some()) {
        push_pattern(&mut text, ELSEWHERE, "deny", ALLOW + 1);
        text.push_str(&format!("deny_message = {}\n", quoted(ELSEWHERE_MESSAGE)));
        push_rule(&mut text, &ToolRule::of(None, SHELL), "deny", REST);
    } else if shell == Shell::Asks {
        push_pattern(&mut text, ANY_ARGUMENTS, "ask_user", REST);
        text.push_str("modes = [\"default\", \"autoEdit\"]\n");
    }
    text
}

/// Whether the CLI asks about every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// It asks about those that it does not take for safe.
    Judges,
    /// It asks about all, unless a rule of the user's own decides. What it takes for safe can run anything (0.61.0).
    Asks,
}

/// A rule for the shell with these arguments.
fn push_pattern(text: &mut String, pattern: &str, decision: &str, priority: u32) {
    text.push_str(&format!(
        "\n[[rule]]\ntoolName = {}\nargsPattern = {}\ndecision = {}\npriority = {priority}\n",
        quoted(SHELL),
        quoted(pattern),
        quoted(decision)
    ));
}

fn push_rule(text: &mut String, rule: &ToolRule, decision: &str, priority: u32) {
    text.push_str("\n[[rule]]\n");
    let mut line = |key: &str, value: String| text.push_str(&format!("{key} = {value}\n"));
    line("toolName", quoted(&rule.tool));
    if let Some(server) = &rule.server {
        line("mcpName", quoted(server));
    }
    if let Some(prefix) = &rule.prefix {
        line("commandPrefix", quoted(prefix));
    } else if decision == "ask_user" && rule.tool == SHELL {
        // Of a rule without a pattern the CLI excepts `cat`, `ls` and other commands that it holds for safe (0.61.0).
        line("argsPattern", quoted(ANY_ARGUMENTS));
    }
    line("decision", quoted(decision));
    line("priority", priority.to_string());
    if decision == "allow" && rule.tool == SHELL && rule.prefix.is_none() {
        // Whoever may run anything may also redirect; without this the CLI would ask, and headless that is a refusal.
        line("allowRedirection", "true".to_owned());
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What to give to `--policy`, one flag each: our file first, then the user's own, which the flag would replace.
///
/// `explicit` are paths that were asked for; they replace the user's own, as they do for the CLI. A path with a comma must
/// not be given, because the CLI takes it for two.
#[must_use]
pub fn policy_paths(
    ours: &Path,
    explicit: &[PathBuf],
    user_home: &Path,
    user_settings: &Map<String, Value>,
) -> Vec<PathBuf> {
    let mut paths = vec![ours.to_owned()];
    if !explicit.is_empty() {
        paths.extend_from_slice(explicit);
        return paths;
    }
    let chosen = user_settings.get("policyPaths").and_then(Value::as_array);
    let chosen: Vec<_> = chosen.into_iter().flatten().filter_map(Value::as_str).collect();
    if chosen.is_empty() {
        paths.push(user_home.join(".gemini/policies"));
    }
    paths.extend(
        chosen.into_iter().map(|path| written_out(path, user_home).map_or(path.into(), PathBuf::from)),
    );
    paths
}

#[cfg(test)]
mod tests;
