//! The command line of `claude`, as the SDKs write it: `--model NAME` from Python, `--model=NAME` from JavaScript.
//!
//! Each option has a row that says what becomes of it. What would be lost without a word is refused: a limit that nobody
//! keeps or a rule that nobody follows is worse than a program that does not start.

use std::fmt;

use alhena_model::tool::TOOLS;

use super::Mode;

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Invocation {
    /// A conversation over stdin and stdout.
    Serve(Box<Options>),
    /// The version.
    Version,
    /// The help.
    Help,
}

/// What a conversation is to be like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The model, as it was named.
    pub model: Option<String>,
    /// What may be done without asking.
    pub mode: Mode,
    /// Whether the program wants to be asked about tools.
    pub asks: bool,
    /// What to tell the model instead of its own system prompt.
    pub system_prompt: Option<String>,
    /// What to tell it beside.
    pub append_system_prompt: Option<String>,
    /// A file that holds the system prompt.
    pub system_prompt_file: Option<String>,
    /// Rules for what needs no asking, such as `Bash(git:*)`.
    pub allowed: Vec<String>,
    /// Rules for what must not be done.
    pub disallowed: Vec<String>,
    /// The only tools that are to be there, by Claude's names.
    pub tools: Option<Vec<String>>,
    /// How many turns the model may take.
    pub max_turns: Option<u32>,
    /// How much a conversation may cost.
    pub max_budget_usd: Option<f64>,
    /// More directories that the model may use.
    pub add_dirs: Vec<String>,
    /// MCP servers: JSON, or the path of a file of it.
    pub mcp_configs: Vec<String>,
    /// Whether pieces of answers are wanted as they come.
    pub partial: bool,
    /// A session to go on with: an id, or an empty text for the latest.
    pub resume: Option<String>,
    /// The JSON schema that every answer has to fit.
    pub json_schema: Option<String>,
}

/// Why a command line is refused, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// What becomes of an option.
#[derive(Clone, Copy)]
pub enum Fate {
    /// It means this.
    Means(fn(&mut Options, &str)),
    /// It means this, if the value is one of its own.
    Checked(fn(&mut Options, &str) -> Result<(), String>),
    /// It changes nothing here, and why.
    Nothing(&'static str),
    /// It cannot be done, and why.
    Refused(&'static str),
}

/// A row of the table.
pub struct Row {
    /// Every way to write it, without dashes.
    pub names: &'static [&'static str],
    /// Whether a value belongs to it.
    pub value: bool,
    /// What becomes of it.
    pub fate: Fate,
}

const fn row(names: &'static [&'static str], value: bool, fate: Fate) -> Row {
    Row { names, value, fate }
}

use Fate::{Checked, Means, Nothing, Refused};

const SETTINGS: &str = "these are Claude's settings, and may have rules that would not be followed";

/// Every option that the SDKs write.
pub const TABLE: &[Row] = &[
    row(&["output-format"], true, Checked(|_, value| only("stream-json", value))),
    row(&["input-format"], true, Checked(|_, value| only("stream-json", value))),
    row(&["json-schema"], true, Means(|to, value| to.json_schema = Some(value.to_owned()))),
    row(&["model"], true, Means(|to, value| to.model = Some(value.to_owned()))),
    row(&["permission-mode"], true, Checked(|to, value| Mode::named(value).map(|mode| to.mode = mode))),
    row(&["dangerously-skip-permissions"], false, Means(|to, _| to.mode = Mode::BypassPermissions)),
    row(
        &["permission-prompt-tool"],
        true,
        Checked(|to, value| only("stdio", value).map(|()| to.asks = true)),
    ),
    row(&["system-prompt"], true, Means(|to, value| to.system_prompt = Some(value.to_owned()))),
    row(&["append-system-prompt"], true, Means(|to, value| to.append_system_prompt = Some(value.to_owned()))),
    row(&["system-prompt-file"], true, Means(|to, value| to.system_prompt_file = Some(value.to_owned()))),
    row(&["allowedTools", "allowed-tools"], true, Means(|to, value| to.allowed.extend(rules(value)))),
    row(
        &["disallowedTools", "disallowed-tools"],
        true,
        Means(|to, value| to.disallowed.extend(rules(value))),
    ),
    row(
        &["tools"],
        true,
        Checked(|to, value| {
            to.tools = (value != "default").then(|| rules(value));
            match to.tools.iter().flatten().find(|name| gemini_names(name).is_empty()) {
                Some(name) => Err(format!("Gemini CLI has no tool that does what {name} does")),
                None => Ok(()),
            }
        }),
    ),
    row(&["max-turns"], true, Checked(|to, value| number(value).map(|turns| to.max_turns = Some(turns)))),
    row(
        &["max-budget-usd"],
        true,
        Checked(|to, value| {
            let budget: f64 = number(value)?;
            if !(budget.is_finite() && budget > 0.0) {
                return Err(format!("{value:?} is no budget"));
            }
            to.max_budget_usd = Some(budget);
            Ok(())
        }),
    ),
    row(&["add-dir"], true, Means(|to, value| to.add_dirs.push(value.to_owned()))),
    row(&["mcp-config"], true, Means(|to, value| to.mcp_configs.push(value.to_owned()))),
    row(&["include-partial-messages"], false, Means(|to, _| to.partial = true)),
    row(&["resume", "r"], true, Means(|to, value| to.resume = Some(value.to_owned()))),
    row(&["continue", "c"], false, Means(|to, _| to.resume = Some("".to_owned()))),
    row(&["print", "p"], false, Nothing("there is no other way here")),
    row(&["verbose"], false, Nothing("every line is written anyway")),
    row(&["setting-sources"], true, Nothing("these are Claude's settings; Gemini CLI has its own")),
    row(
        &["allow-dangerously-skip-permissions"],
        false,
        Nothing("it only permits a mode, which is asked for apart"),
    ),
    row(&["await-initialize"], false, Nothing("it is waited for anyway")),
    row(&["betas"], true, Nothing("they are of Anthropic's API")),
    row(&["fallback-model"], true, Nothing("Gemini CLI has its own way when a model is busy")),
    row(&["thinking"], true, Nothing("Gemini's models decide that themselves")),
    row(&["max-thinking-tokens"], true, Nothing("Gemini's models decide that themselves")),
    row(&["thinking-display"], true, Nothing("thoughts are shown as Gemini CLI shows them")),
    row(&["effort"], true, Nothing("Gemini's models decide that themselves")),
    row(&["debug", "d"], false, Nothing("the log is asked for by ALHENA_LOG")),
    row(&["debug-to-stderr"], false, Nothing("the log is asked for by ALHENA_LOG")),
    row(&["debug-file"], true, Nothing("the log is asked for by ALHENA_LOG")),
    row(&["settings"], true, Refused(SETTINGS)),
    row(&["managed-settings"], true, Refused(SETTINGS)),
    row(&["managed-settings-in-initialize"], false, Refused(SETTINGS)),
    row(
        &["strict-mcp-config"],
        false,
        Refused("Gemini CLI also starts the MCP servers of the user's settings"),
    ),
    row(&["task-budget"], true, Refused("nobody counts the tokens of a task")),
    row(&["session-id"], true, Refused("Gemini CLI names its sessions itself")),
    row(&["fork-session"], false, Refused("Gemini CLI goes on with a session, and does not copy it")),
    row(&["resume-session-at"], true, Refused("Gemini CLI goes on at the end of a session")),
    row(&["resume-drops-turn"], true, Refused("Gemini CLI goes on at the end of a session")),
    row(&["no-session-persistence"], false, Refused("Gemini CLI keeps every session")),
    row(&["session-mirror"], false, Refused("there is no transcript of Claude's to mirror")),
    row(&["include-hook-events"], false, Refused("hooks run, but no lines tell of them")),
    row(&["replay-user-messages"], false, Refused("what the program says is not said back to it")),
    row(&["plugin-dir"], true, Refused("plugins of Claude's do not run in Gemini CLI")),
    row(&["plugin-dir-no-mcp"], true, Refused("plugins of Claude's do not run in Gemini CLI")),
    row(&["agent"], true, Refused("agents of Claude's do not run in Gemini CLI")),
    row(&["agents"], true, Refused("agents of Claude's do not run in Gemini CLI")),
    row(&["channels"], true, Refused("there are none here")),
    row(&["permission-prompts"], true, Refused("only --permission-prompt-tool stdio is understood")),
    row(
        &["project-config-root"],
        true,
        Refused("the configuration is Gemini CLI's, of the current directory"),
    ),
    row(&["sdk-url"], true, Refused("only stdin and stdout are spoken over")),
];

impl Invocation {
    /// Reads a command line, without the command's name.
    pub fn read(arguments: &[String]) -> Result<Self, Refusal> {
        let mut options = Options::default();
        let mut left = arguments.iter();
        while let Some(argument) = left.next() {
            let written = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
            let Some(written) = written.filter(|name| !name.is_empty()) else {
                return Err(refusal(
                    format!("{argument:?} is not understood: prompts come over stdin, as lines of JSON"),
                    "Programs on the Claude Agent SDK write them; for a prompt of your own use `alhena run`.",
                ));
            };
            let (name, given) = match written.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (written, None),
            };
            match name {
                "version" | "v" => return Ok(Invocation::Version),
                "help" | "h" => return Ok(Invocation::Help),
                _ => {}
            }
            let Some(row) = TABLE.iter().find(|row| row.names.contains(&name)) else {
                return Err(refusal(format!("there is no option --{name} here"), HINT));
            };
            let value = match (row.value, given) {
                (_, Some(given)) => given,
                (false, None) => "",
                (true, None) => match left.next() {
                    Some(value) => value,
                    None => return Err(refusal(format!("--{name} needs a value"), HINT)),
                },
            };
            match row.fate {
                Means(take) => take(&mut options, value),
                Checked(take) => {
                    take(&mut options, value).map_err(|why| refusal(format!("--{name}: {why}"), HINT))?
                }
                Nothing(_) => {}
                Refused(why) => {
                    return Err(refusal(format!("--{name} cannot be done with Gemini CLI: {why}"), HINT));
                }
            }
        }
        Ok(Invocation::Serve(Box::new(options)))
    }
}

const HINT: &str = "`alhena claude --help` says which options of `claude` are understood.";

fn refusal(message: String, hint: &str) -> Refusal {
    Refusal { message, hint: hint.to_owned() }
}

fn only(wanted: &str, value: &str) -> Result<(), String> {
    if value == wanted { Ok(()) } else { Err(format!("only {wanted} is understood, and not {value:?}")) }
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{value:?} is not a number"))
}

/// Rules that stand between commas or white space; those inside parentheses belong to the rule.
fn rules(text: &str) -> Vec<String> {
    let (mut rules, mut rule, mut depth) = (Vec::new(), String::new(), 0_usize);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (letter == ',' || letter.is_whitespace()) {
            rules.push(std::mem::take(&mut rule));
        } else {
            rule.push(letter);
        }
    }
    rules.push(rule);
    rules.retain(|rule| !rule.is_empty());
    rules
}

/// The tools of Gemini CLI that Claude calls so.
pub fn gemini_names(claude: &str) -> Vec<&'static str> {
    TOOLS
        .iter()
        .filter(|tool| tool.claude == Some(claude) || tool.name == claude)
        .map(|tool| tool.name)
        .collect()
}

impl Options {
    /// The tools of Gemini CLI that are not to be there at all.
    pub fn denied_tools(&self) -> Vec<&'static str> {
        let kept = |name: &str| {
            self.tools
                .as_ref()
                .is_none_or(|wanted| wanted.iter().any(|claude| gemini_names(claude).contains(&name)))
        };
        let denied = |name: &str| self.disallowed.iter().any(|claude| gemini_names(claude).contains(&name));
        TOOLS.iter().map(|tool| tool.name).filter(|name| !kept(name) || denied(name)).collect()
    }
}
