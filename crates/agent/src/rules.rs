//! What an agent may do, as rules that people write: `shell(git *)`, `edit(src/**)`, `mcp(db/query)`.
//!
//! Each rule allows, denies or wants to be asked. Which stands first does not matter: what one rule denies no other allows,
//! and what one wants to be asked about no other lets through. A rule that allows has to be certain that it means what the
//! agent is about to do; for one that denies or asks it is enough that it may. So what cannot be read for certain is never
//! let through by a rule.
//!
//! This decides and does nothing else. It looks at the disk only to follow links.

mod command;
mod file;
mod paths;
mod programs;
mod remembered;
mod shell;
mod tools;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use alhena_model::Hint;
use alhena_model::tool::{Class, Tool};

use self::command::{CommandPattern, Fit, Script, all_covered};
use self::paths::PathPattern;
use self::tools::Tools;
use crate::home::{SHELL, name_and_inside};

pub use self::remembered::Remembered;

/// What is to be decided: what a tool is about to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The tool's name, as Gemini CLI has it; or what people are shown in its place.
    pub tool: String,
    /// Whether that is its name. Whatever a rule denies by name may be meant otherwise.
    pub named: bool,
    /// What kind of tool it is.
    pub class: Class,
    /// The MCP server that it belongs to, where that is known: the tool's name alone does not say where the server's ends.
    pub server: Option<String>,
    /// Its name on that server: Gemini CLI shortens long names and replaces some characters.
    pub server_tool: Option<String>,
    /// What it is about to do.
    pub subject: Subject,
    /// The session's directory. Never taken from the text of a request.
    pub dir: PathBuf,
    /// Whether a command may run in another directory than that. Rules that name commands do not allow it there: the same path can be
    /// another program.
    pub elsewhere: bool,
}

impl Question {
    /// Whether it is certain that the tool runs no command: it is known, and is not the shell.
    fn runs_no_command(&self) -> bool {
        self.named && Tool::find(&self.tool).is_some_and(|tool| tool.name != SHELL)
    }
}

/// What a tool is about to do, as far as it is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Subject {
    /// Run this.
    Command(String),
    /// Read or write these files.
    Paths(Vec<PathBuf>),
    /// Something with these arguments.
    Arguments(serde_json::Value),
    /// Only this text is known.
    Text(String),
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// It may be done.
    Allow,
    /// Somebody has to be asked.
    Ask,
    /// It must not be done.
    Deny,
}

impl Decision {
    /// All of them, the strongest first.
    pub const ALL: [Decision; 3] = [Decision::Deny, Decision::Ask, Decision::Allow];

    /// Its name: of the option, and of the key in a file.
    pub fn name(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    text: String,
    tools: Tools,
    limit: Limit,
}

/// What of a tool's doings is meant.
#[derive(Clone, Debug)]
enum Limit {
    Nothing,
    Command(CommandPattern),
    Path(PathPattern),
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What is wrong with a rule, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRule {
    message: String,
    hint: String,
}

impl BadRule {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

impl fmt::Display for BadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BadRule {}

impl Hint for BadRule {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(self.hint.as_str().into())
    }
}

/// How rules look, for whoever wrote one that is none.
const EXAMPLES: &str =
    "Rules look like 'shell(git *)', 'edit(src/**)', 'read', 'mcp(SERVER/TOOL)' or 'write_file'.";

impl Rule {
    fn parse(text: &str) -> Result<Self, BadRule> {
        let text = text.trim();
        let bad = |why: String| BadRule::new(format!("{text:?} is no rule: {why}"), EXAMPLES);
        let (name, inside) =
            name_and_inside(text).map_err(|error| BadRule::new(error.to_string(), EXAMPLES))?;
        if inside.is_some_and(str::is_empty) {
            let hint = format!("Leave the parentheses away to mean all of it: {name:?}.");
            return Err(BadRule::new(
                format!("{text:?} is no rule: there is nothing between the parentheses"),
                hint,
            ));
        }
        // All of it, however that is said.
        let inside = inside.filter(|inside| !matches!(*inside, "*" | "**"));
        let (tools, inside) = Tools::named(name, inside).map_err(|(why, hint)| {
            BadRule::new(format!("{text:?} is no rule: {why}"), hint.unwrap_or_else(|| EXAMPLES.to_owned()))
        })?;
        let limit = match (inside, tools.class()) {
            (None, _) => Limit::Nothing,
            (Some(inside), Some(Class::Command)) => {
                Limit::Command(CommandPattern::parse(inside).map_err(bad)?)
            }
            (Some(inside), Some(Class::FileWrite | Class::FileRead)) => {
                Limit::Path(PathPattern::parse(inside).map_err(bad)?)
            }
            (Some(_), _) => {
                let hint = format!("Write {name:?}; only shell, edit, read and mcp can be limited.");
                return Err(BadRule::new(format!("{text:?} is no rule: {name} cannot be limited"), hint));
            }
        };
        Ok(Self { text: text.to_owned(), tools, limit })
    }

    /// Whether it means what the question is about, or may.
    fn might_mean(&self, question: &Question, script: Option<&Script>) -> Fit {
        let limit = match (&self.limit, &question.subject) {
            (Limit::Nothing, _) => Fit::Yes,
            (Limit::Command(pattern), _) => match script {
                Some(script) => pattern.might_mean(script),
                None if question.runs_no_command() => Fit::No,
                None => Fit::Maybe,
            },
            (Limit::Path(pattern), Subject::Paths(paths)) => {
                paths.iter().map(|path| pattern.might_mean(path, &question.dir)).max().unwrap_or(Fit::Maybe)
            }
            (Limit::Path(_), _) => Fit::Maybe,
        };
        limit.min(self.tools.fit(question))
    }

    /// Whether it certainly means all that the question is about. Commands are a matter of several rules together.
    fn covers(&self, question: &Question) -> bool {
        let limit = match (&self.limit, &question.subject) {
            (Limit::Nothing, _) => true,
            (Limit::Path(pattern), Subject::Paths(paths)) => {
                !paths.is_empty() && paths.iter().all(|path| pattern.covers(path, &question.dir))
            }
            (Limit::Command(_) | Limit::Path(_), _) => false,
        };
        limit && self.tools.fit(question) == Fit::Yes
    }
}

/// Whether all that a command does is to read files in this directory, or to say something about the system.
pub(crate) fn only_reads(command: &str, dir: &Path) -> bool {
    command::only_reads(&shell::read(command), dir)
}

/// Rules that together decide.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<(Decision, Rule)>,
}

/// What the rules say of a question.
#[derive(Clone, Debug)]
pub struct Ruling<'r> {
    /// What is to be done.
    pub decision: Decision,
    /// The rule that says so, or one of those that do so together.
    pub rule: &'r Rule,
    /// Why it is not certain that the rule applies.
    doubt: Option<String>,
}

impl fmt::Display for Ruling<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.decision {
            Decision::Allow => "allowed",
            Decision::Ask => "to be asked about",
            Decision::Deny => "denied",
        };
        write!(f, "{verb} by the rule {}", self.rule)?;
        match &self.doubt {
            Some(doubt) => write!(f, ", which may apply because {doubt}"),
            None => Ok(()),
        }
    }
}

impl Rules {
    /// Adds a rule.
    pub fn add(&mut self, decision: Decision, rule: &str) -> Result<(), BadRule> {
        let rule = Rule::parse(rule)?;
        if decision == Decision::Allow && rule.tools.are_ambiguous() {
            let message = format!("{:?} is no rule: {}", rule.text, tools::NO_END);
            return Err(BadRule::new(message, tools::NO_END_HINT));
        }
        self.rules.push((decision, rule));
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether anything is denied or to be asked about: the CLI has then to ask about all that it does, whatever the
    /// approval mode is.
    pub fn restrict(&self) -> bool {
        self.rules.iter().any(|(decision, _)| *decision != Decision::Allow)
    }

    /// The tools that the CLI has to ask about, as its policies name them: it lets some do as they like, by its own rules or
    /// by the user's, and a rule here would never be looked at.
    pub(crate) fn to_be_asked_about(&self) -> Vec<String> {
        let strict = self.rules.iter().filter(|(decision, _)| *decision != Decision::Allow);
        let mut names: Vec<String> = strict.flat_map(|(_, rule)| rule.tools.names()).collect();
        names.sort();
        names.dedup();
        names
    }

    fn of(&self, wanted: Decision) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |(decision, _)| *decision == wanted).map(|(_, rule)| rule)
    }

    /// What is to be done; nothing where no rule says anything.
    pub fn decide(&self, question: &Question) -> Option<Ruling<'_>> {
        let script = match &question.subject {
            Subject::Command(command) => Some(shell::read(command)),
            _ => None,
        };
        for decision in [Decision::Deny, Decision::Ask] {
            let fits = self.of(decision).map(|rule| (rule.might_mean(question, script.as_ref()), rule));
            if let Some((fit, rule)) = fits.filter(|(fit, _)| *fit != Fit::No).max_by_key(|(fit, _)| *fit) {
                let doubt =
                    (fit == Fit::Maybe).then(|| match script.as_ref().and_then(command::why_uncertain) {
                        Some(why) => why,
                        None => "it is not certain what would happen".to_owned(),
                    });
                return Some(Ruling { decision, rule, doubt });
            }
        }
        let allowed = |rule| Some(Ruling { decision: Decision::Allow, rule, doubt: None });
        if let Some(rule) = self.of(Decision::Allow).find(|rule| rule.covers(question)) {
            return allowed(rule);
        }
        let (mut patterns, mut first) = (Vec::new(), None);
        for rule in self.of(Decision::Allow).filter(|rule| rule.tools.fit(question) == Fit::Yes) {
            if let Limit::Command(pattern) = &rule.limit {
                patterns.push(pattern);
                first = first.or(Some(rule));
            }
        }
        match !question.elsewhere && all_covered(&script?, &patterns) {
            true => allowed(first?),
            false => None,
        }
    }
}

#[cfg(test)]
mod tests;
