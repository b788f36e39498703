//! A question of an agent: may this be done?

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use alhena_model::tool::{self, Class};
use alhena_wire::acp::{Call, ToolKind, gemini};
use serde_json::Value;

use super::hotline::{Hotline, Order};

/// What an agent wants to do.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The call, as in its events.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// What kind of tool it is.
    pub class: Class,
    /// The MCP server that it belongs to, where that is known.
    pub server: Option<String>,
    /// What the agent calls it, for people.
    pub title: String,
    /// Where the session works. What the agent's text says of a directory is not taken from it: it is the process's.
    pub dir: PathBuf,
    /// The files that it is about.
    pub paths: Vec<PathBuf>,
    /// What would happen.
    pub action: Action,
    /// That a command runs in another directory than the session, in the agent's own words: `[in sub] (why)`.
    pub elsewhere: Option<String>,
    /// Whether `tool` is its name; a title otherwise.
    pub named: bool,
}

/// What would happen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// A file changes.
    Diff {
        /// The file.
        path: PathBuf,
        /// What it holds; empty when it is new.
        before: String,
        /// What it would hold.
        after: String,
    },
    /// A command runs.
    Command {
        /// The command.
        command: String,
        /// Whether it goes on beside the agent.
        background: bool,
    },
    /// A tool runs with these arguments.
    Arguments(Value),
    /// The title is all that is known.
    Other,
}

impl Question {
    pub(super) fn of(call: &Call, dir: &Path, is_gemini: bool) -> Self {
        let title = call.title.clone().unwrap_or_default();
        let name = call.name.as_deref().or_else(|| gemini::tool_name(&call.id).filter(|_| is_gemini));
        let tool = name.unwrap_or(title.as_str()).to_owned();
        let class = match tool::class(&tool) {
            // Of a tool that nobody knows its agent says what kind it is.
            Class::Unknown => call.kind.map_or(Class::Unknown, class_of),
            known => known,
        };
        let changed = call.diffs.iter().map(|diff| diff.path.as_str());
        let named = changed.chain(call.paths.iter().map(String::as_str));
        let mut paths: Vec<PathBuf> = named.map(|path| dir.join(path)).collect();
        paths.sort();
        paths.dedup();
        Self {
            call_id: call.id.clone(),
            paths,
            class,
            server: gemini::server(&title).filter(|_| is_gemini).map(str::to_owned),
            elsewhere: call
                .texts
                .iter()
                .find_map(|text| gemini::elsewhere(text).filter(|_| is_gemini))
                .map(str::to_owned),
            action: action(call, class, dir, is_gemini),
            named: name.is_some(),
            tool,
            title,
            dir: dir.to_owned(),
        }
    }

    /// What is asked, in a line for people: the title, and the directory where that is another than the session's.
    #[must_use]
    pub fn headline(&self) -> Cow<'_, str> {
        match &self.elsewhere {
            Some(elsewhere) => Cow::Owned(format!("{} {elsewhere}", self.title)),
            None => Cow::Borrowed(&self.title),
        }
    }
}

fn class_of(kind: ToolKind) -> Class {
    match kind {
        ToolKind::Execute => Class::Command,
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => Class::FileWrite,
        ToolKind::Read | ToolKind::Search => Class::FileRead,
        ToolKind::Fetch => Class::SearchFetch,
        _ => Class::Unknown,
    }
}

fn action(call: &Call, class: Class, dir: &Path, is_gemini: bool) -> Action {
    if let Some(diff) = call.diffs.first() {
        let path = dir.join(&diff.path);
        return Action::Diff { path, before: diff.before.clone(), after: diff.after.clone() };
    }
    if class == Class::Command || call.kind == Some(ToolKind::Execute) {
        let given = call.input.as_ref().and_then(|input| input.get("command")).and_then(Value::as_str);
        // Gemini CLI's title is the command; that of others is for people, and rules must not take it for one.
        let command = given.or_else(|| call.title.as_deref().filter(|_| is_gemini));
        if let Some(command) = command.map(str::to_owned) {
            let background = is_gemini && call.texts.iter().any(|text| gemini::is_background(text));
            return Action::Command { command, background };
        }
    }
    let arguments = || call.texts.first().and_then(|text| serde_json::from_str(text).ok());
    call.input.clone().or_else(arguments).filter(Value::is_object).map_or(Action::Other, Action::Arguments)
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    AllowOnce,
    AllowForConversation,
    Reject(String),
}

/// Why a question is not asked any more; empty as long as it is.
pub(super) type Withdrawn = Arc<OnceLock<String>>;

/// A question that waits for its answer. One that is dropped without an answer is rejected.
pub struct Permission {
    question: Question,
    number: u64,
    engine: Weak<Hotline>,
    withdrawn: Withdrawn,
    answered: bool,
}

impl Permission {
    pub(super) fn new(question: Question, number: u64, engine: Weak<Hotline>, withdrawn: Withdrawn) -> Self {
        Self { question, number, engine, withdrawn, answered: false }
    }

    pub(super) fn is(&self, number: u64) -> bool {
        self.number == number
    }

    /// What the agent wants to do.
    pub fn question(&self) -> &Question {
        &self.question
    }

    /// Why no answer counts any more: the time for it is over, or the turn is. The turn says so too, with a
    /// [`TurnItem::Withdrawn`](super::TurnItem::Withdrawn); this is for whoever waits for an answer and not for the turn.
    pub fn withdrawn(&self) -> Option<&str> {
        self.withdrawn.get().map(String::as_str)
    }

    /// It may, this once.
    pub fn allow_once(self) {
        self.decide(Decision::AllowOnce);
    }

    /// It may, and the same again in this conversation. Alhena remembers that; the CLI is never told, as it would tell others.
    ///
    /// The same is: this command as it stands, unless it runs elsewhere, any change of these files, any call of this tool of an MCP server.
    pub fn allow_for_conversation(self) {
        self.decide(Decision::AllowForConversation);
    }

    /// It may not.
    pub fn reject(self, reason: impl Into<String>) {
        self.decide(Decision::Reject(reason.into()));
    }

    fn decide(mut self, decision: Decision) {
        self.send(decision);
    }

    fn send(&mut self, decision: Decision) {
        self.answered = true;
        if let Some(engine) = self.engine.upgrade() {
            // One that is gone has rejected everything.
            let _over = engine.give(Order::Decide { question: self.number, decision });
        }
    }
}

impl std::ops::Deref for Permission {
    type Target = Question;

    fn deref(&self) -> &Question {
        &self.question
    }
}

impl Drop for Permission {
    fn drop(&mut self) {
        if !self.answered {
            self.send(Decision::Reject(NOBODY_ANSWERED.to_owned()));
        }
    }
}

impl fmt::Debug for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permission").field("question", &self.question).finish_non_exhaustive()
    }
}

/// Why a question was rejected that nobody took.
pub(super) const NOBODY_ANSWERED: &str = "Nobody answered whether it may be done";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_another_agent_calls_its_command_is_no_command_to_be_judged() {
        let call = |input: Option<Value>| Call {
            id: "1".to_owned(),
            title: Some("git status".to_owned()),
            kind: Some(ToolKind::Execute),
            input,
            ..Call::default()
        };
        let of = |input, is_gemini| {
            let question = Question::of(&call(input), Path::new("/p"), is_gemini);
            (question.class, question.action)
        };
        let command = |text: &str| Action::Command { command: text.to_owned(), background: false };
        assert_eq!(of(None, true), (Class::Command, command("git status")));
        assert_eq!(of(None, false), (Class::Command, Action::Other));
        assert_eq!(of(Some(json!({"command": "rm x"})), false), (Class::Command, command("rm x")));
    }
}
