//! Whether a policy file that was asked for will be obeyed.
//!
//! 0.61.0 runs without a policy file that is missing, broken or not called `.toml`, without the rules in it that it finds
//! wrong, and without the keys that it does not know: what was to be denied is then allowed. So such a file is refused
//! before anything starts. What the CLI itself only warns of is a warning here too.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use alhena_model::Hint;
use serde::Deserialize;
use toml::{Spanned, Table};

use super::policy::{SHELL, ToolRule};

/// What is wrong with a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPolicy {
    /// The file or directory.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: Option<usize>,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for BadPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.message),
            None => write!(f, "{}: {}", self.path.display(), self.message),
        }
    }
}

impl std::error::Error for BadPolicy {}

impl Hint for BadPolicy {}

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Spanned<Rule>>,
    #[serde(default)]
    safety_checker: Vec<Spanned<SafetyChecker>>,
}

/// One rule as 0.61.0 takes it, old spellings included.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    tool_name: Names,
    decision: Spanned<String>,
    priority: Spanned<i64>,
    #[serde(default)]
    modes: Vec<Spanned<String>>,
    command_prefix: Option<Names>,
    command_regex: Option<String>,
    args_pattern: Option<String>,
    mcp_name: Option<String>,
    #[serde(rename = "subagent")]
    _subagent: Option<String>,
    #[serde(rename = "interactive")]
    _interactive: Option<bool>,
    #[serde(rename = "toolAnnotations")]
    _annotations: Option<Table>,
    #[serde(rename = "allowRedirection", alias = "allow_redirection")]
    _redirection: Option<bool>,
    #[serde(rename = "denyMessage", alias = "deny_message")]
    _message: Option<String>,
}

/// What judges a call that a rule has allowed. One that is wrong costs the whole file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SafetyChecker {
    tool_name: Names,
    checker: Checker,
    #[serde(default)]
    modes: Vec<Spanned<String>>,
    command_prefix: Option<Names>,
    command_regex: Option<String>,
    args_pattern: Option<String>,
    mcp_name: Option<String>,
    #[serde(rename = "priority")]
    _priority: Option<i64>,
    #[serde(rename = "toolAnnotations")]
    _annotations: Option<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Checker {
    #[serde(rename = "type")]
    kind: Spanned<String>,
    name: Spanned<String>,
    #[serde(rename = "required_context")]
    _context: Option<Vec<String>>,
    #[serde(rename = "config")]
    _config: Option<Table>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

impl Names {
    fn all(&self) -> &[String] {
        match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::Several(names) => names,
        }
    }

    /// Whether something is missing: none at all, or one without a letter.
    fn lack(&self) -> bool {
        self.all().is_empty() || self.all().iter().any(String::is_empty)
    }
}

const DECISIONS: [&str; 3] = ["allow", "deny", "ask_user"];
const MODES: [&str; 4] = ["default", "autoEdit", "yolo", "plan"];
const CHECKERS: [&str; 2] = ["in-process", "external"];
const IN_PROCESS: [&str; 2] = ["allowed-path", "conseca"];

/// A policy that the CLI will obey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedPolicy {
    /// The path for the CLI, which works elsewhere.
    pub path: PathBuf,
    /// What is doubtful: rules for tools that there may not be.
    pub warnings: Vec<String>,
}

/// Checks what `--policy` names: a file, or a directory of them.
pub fn check_policy(path: &Path) -> Result<CheckedPolicy, BadPolicy> {
    let bad = |message: String| BadPolicy { path: path.to_path_buf(), line: None, message };
    let found = path.canonicalize().map_err(|error| bad(error.to_string()))?;
    if found.to_string_lossy().contains(',') {
        return Err(bad("Gemini CLI takes the comma in its name for the start of another".to_owned()));
    }
    let is_toml = |file: &Path| file.to_string_lossy().ends_with(".toml");
    if !found.is_dir() {
        if !is_toml(&found) {
            return Err(bad("Gemini CLI reads only files whose name ends in .toml".to_owned()));
        }
        let warnings = check_file(&found)?;
        return Ok(CheckedPolicy { path: found, warnings });
    }
    let entries = fs::read_dir(&found).map_err(|error| bad(error.to_string()))?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|file| is_toml(file)).collect();
    files.sort();
    if files.is_empty() {
        return Err(bad("there is no .toml file in that directory".to_owned()));
    }
    let mut warnings = Vec::new();
    for file in files {
        if file.is_symlink() {
            let message = "Gemini CLI passes over a link in a directory of policies".to_owned();
            return Err(BadPolicy { path: file, line: None, message });
        }
        warnings.extend(check_file(&file)?);
    }
    Ok(CheckedPolicy { path: found, warnings })
}

fn check_file(path: &Path) -> Result<Vec<String>, BadPolicy> {
    let bad = |line, message: String| BadPolicy { path: path.to_path_buf(), line, message };
    let bytes = crate::settings::read_file(path).map_err(|error| bad(None, error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| bad(None, "not UTF-8 text".to_owned()))?;
    let line = |at: usize| Some(text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1);
    let file: File = toml::from_str(&text).map_err(|error| {
        let message = error.message().replace('\n', " ");
        bad(error.span().and_then(|span| line(span.start)), message)
    })?;
    if file.rule.is_empty() && file.safety_checker.is_empty() {
        return Err(bad(None, "there is no [[rule]] in it".to_owned()));
    }
    let one_of = |value: &Spanned<String>, what: &str, known: &[&str]| {
        let text = value.get_ref().as_str();
        match known.contains(&text) {
            true => Ok(()),
            false => {
                Err(bad(line(value.span().start), format!("{what} {text:?} is none of {}", known.join(", "))))
            }
        }
    };
    let mut warnings = Vec::new();
    let mut judge = |start: usize, condition: Condition<'_>| {
        let line = line(start);
        condition.check().map_err(|message| bad(line, message))?;
        let at = line.unwrap_or_default();
        warnings.extend(condition.doubts().map(|doubt| format!("{}:{at}: {doubt}", path.display())));
        Ok(())
    };
    for spanned in &file.rule {
        let rule = spanned.get_ref();
        one_of(&rule.decision, "decision", &DECISIONS)?;
        rule.modes.iter().try_for_each(|mode| one_of(mode, "mode", &MODES))?;
        if !(0..=999).contains(rule.priority.get_ref()) {
            let message = "priority is not between 0 and 999".to_owned();
            return Err(bad(line(rule.priority.span().start), message));
        }
        let Rule { tool_name, mcp_name, command_prefix, command_regex, args_pattern, .. } = rule;
        let condition = Condition { tool_name, mcp_name, command_prefix, command_regex, args_pattern };
        judge(spanned.span().start, condition)?;
    }
    for spanned in &file.safety_checker {
        let rule = spanned.get_ref();
        one_of(&rule.checker.kind, "checker type", &CHECKERS)?;
        if rule.checker.kind.get_ref() == "in-process" {
            one_of(&rule.checker.name, "checker", &IN_PROCESS)?;
        }
        rule.modes.iter().try_for_each(|mode| one_of(mode, "mode", &MODES))?;
        let SafetyChecker { tool_name, mcp_name, command_prefix, command_regex, args_pattern, .. } = rule;
        let condition = Condition { tool_name, mcp_name, command_prefix, command_regex, args_pattern };
        judge(spanned.span().start, condition)?;
    }
    Ok(warnings)
}

/// What calls a rule is about.
struct Condition<'a> {
    tool_name: &'a Names,
    mcp_name: &'a Option<String>,
    command_prefix: &'a Option<Names>,
    command_regex: &'a Option<String>,
    args_pattern: &'a Option<String>,
}

impl Condition<'_> {
    /// What 0.61.0 calls an error, and what would leave the rule without a call to match, or with all.
    fn check(&self) -> Result<(), String> {
        if self.tool_name.lack() {
            return Err("toolName is empty; \"*\" stands for every tool".to_owned());
        }
        let for_commands = self.command_prefix.is_some() || self.command_regex.is_some();
        if for_commands && !matches!(self.tool_name, Names::One(name) if name == SHELL) {
            return Err(format!(
                "commandPrefix and commandRegex go only with toolName = \"{SHELL}\", and not with a list"
            ));
        }
        if for_commands && self.args_pattern.is_some() {
            return Err("commandPrefix and commandRegex do not go together with argsPattern".to_owned());
        }
        if self.command_prefix.is_some() && self.command_regex.is_some() {
            return Err("commandPrefix and commandRegex do not go together".to_owned());
        }
        if self.command_prefix.as_ref().is_some_and(Names::lack) {
            return Err("commandPrefix is empty".to_owned());
        }
        // As the CLI puts it together, because it is the whole that it judges.
        let command = self.command_regex.as_ref().map(|regex| format!("\"command\":\"{regex}"));
        let patterns = [
            ("commandRegex", self.command_regex, command.as_ref()),
            ("argsPattern", self.args_pattern, self.args_pattern.as_ref()),
        ];
        for (name, written, whole) in patterns {
            let (Some(written), Some(whole)) = (written, whole) else { continue };
            if written.is_empty() {
                return Err(format!("{name} is empty"));
            }
            check_pattern(whole).map_err(|why| format!("{name} {written:?} {why}"))?;
        }
        let prefixes = self.command_prefix.iter().flat_map(Names::all);
        match prefixes.map(|prefix| prefix.len()).max().filter(|length| *length > LONGEST_PREFIX) {
            Some(_) => Err(format!("commandPrefix is longer than {LONGEST_PREFIX} bytes")),
            None => Ok(()),
        }
    }

    /// Names that no tool has; an extension may bring one.
    fn doubts(&self) -> impl Iterator<Item = String> {
        let names = self.tool_name.all().iter().filter(|_| self.mcp_name.is_none());
        names.filter_map(|name| {
            if name.contains("__") {
                return Some(format!(
                    "toolName {name:?} has no effect: Gemini CLI wants mcpName = \"SERVER\", or mcp_SERVER_TOOL"
                ));
            }
            let mistaken = name.parse::<ToolRule>().ok()?.mistaken()?;
            Some(format!("toolName {name:?} has no effect: {mistaken}"))
        })
    }
}

/// Well below what the CLI takes once it has written the prefix as a pattern, where one character may become four.
const LONGEST_PREFIX: usize = 500;
/// The longest pattern that 0.61.0 takes, in UTF-16 units.
const LONGEST_PATTERN: usize = 2048;
/// What 0.61.0 takes for a pattern that might take for ever, also where it would not: a group with something optional or
/// repeated in it, `(?:` included, that is itself optional or repeated.
const TOO_SLOW: &str = r"\([^)]*[*+?{].*\)[*+?{]";

/// Whether the CLI takes a regular expression of JavaScript's kind.
fn check_pattern(pattern: &str) -> Result<(), String> {
    regress::Regex::new(pattern).map_err(|error| format!("is no regular expression: {error}"))?;
    if pattern.encode_utf16().count() > LONGEST_PATTERN {
        return Err(format!("is longer than {LONGEST_PATTERN} characters"));
    }
    let slow = regress::Regex::new(TOO_SLOW).is_ok_and(|slow| slow.find(pattern).is_some());
    match slow {
        true => Err("has a repeated group that Gemini CLI takes for too slow, and drops".to_owned()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
