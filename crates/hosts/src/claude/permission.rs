//! A question about a tool, and what is answered.

use alhena_model::tool::{self, Class};
use serde_json::{Value, json};

use super::Mode;
use crate::with;

/// What the program is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The call.
    pub tool_use_id: String,
    /// The tool, as Claude calls it.
    pub tool_name: String,
    /// All of its arguments, by the names that Claude's tool has for them where it has any.
    pub input: Value,
    /// For people.
    pub title: String,
    /// What kind of tool it is.
    pub class: Class,
    /// Whether `tool_name` is certain to be what the tool is called, everywhere.
    certain: bool,
}

impl Question {
    /// A call of a tool of Gemini CLI's.
    pub fn new(call_id: &str, tool: &str, title: &str, arguments: &Value) -> Self {
        Self {
            tool_use_id: call_id.to_owned(),
            tool_name: tool::claude_name(tool).into_owned(),
            input: tool::claude_input_in_full(tool, arguments),
            title: title.to_owned(),
            class: tool::class(tool),
            certain: tool::class(tool) != Class::Mcp,
        }
    }

    /// The question with what is known of its tool: whether that is its name, and its server and name there. A tool without a name may be
    /// any tool.
    #[must_use]
    pub fn of_tool(mut self, named: bool, of: Option<(&str, &str)>) -> Self {
        if let Some((server, tool)) = of {
            let name = format!("mcp__{server}__{tool}");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            // Messages have the name that the CLI uses, and Claude replaces characters in it.
            self.certain = name == self.tool_name && name.chars().all(is_plain);
            self.tool_name = name;
        }
        if !named {
            (self.class, self.certain) = (Class::Unknown, false);
        }
        self
    }

    /// The name by which hooks for some tools are chosen; without one all of them have to be asked.
    #[must_use]
    pub fn certain_name(&self) -> Option<&str> {
        self.certain.then_some(self.tool_name.as_str())
    }

    /// The request.
    pub fn request(&self) -> Value {
        json!({
            "subtype": "can_use_tool",
            "tool_name": self.tool_name,
            "input": self.input,
            "permission_suggestions": self.suggestions(),
            "tool_use_id": self.tool_use_id,
            "title": self.title,
        })
    }

    /// What would keep the program from being asked the same again.
    fn suggestions(&self) -> Value {
        if self.class == Class::FileWrite {
            return json!([{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]);
        }
        let command = self.input.get("command").and_then(Value::as_str);
        let content = command.filter(|_| self.class == Class::Command);
        let rule = with(json!({"toolName": self.tool_name}), [("ruleContent", content.map(Value::from))]);
        json!([{"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"}])
    }
}

/// What the program decided.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It may be used; and what else is to change.
    Allow(Vec<Update>),
    /// It must not, and what the model is told.
    Deny {
        /// Why.
        message: String,
        /// Whether the turn is to end.
        interrupt: bool,
    },
    /// The program wants something that cannot be done, so that the tool is not used.
    Impossible(String),
}

/// What the program wants to be different from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update {
    /// Another mode.
    Mode(Mode),
    /// A rule that allows, such as `Bash(git status)`.
    Allow(String),
    /// A rule that denies.
    Deny(String),
    /// Something that cannot be done.
    Impossible(String),
}

impl Verdict {
    /// Reads the answer to a question with these arguments.
    pub fn read(answer: &Result<Value, String>, asked: &Value) -> Self {
        let deny = |message: String| Verdict::Deny { message, interrupt: false };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return deny(format!("The program could not decide: {error}")),
        };
        match answer.get("behavior").and_then(Value::as_str) {
            Some("allow") => match answer.get("updatedInput") {
                Some(changed) if !changed.is_null() && changed != asked => Verdict::Impossible(
                    "the arguments of a tool cannot be changed: Gemini CLI runs what the model asked for"
                        .to_owned(),
                ),
                _ => {
                    let updates = answer.get("updatedPermissions").and_then(Value::as_array);
                    Verdict::Allow(updates.into_iter().flatten().flat_map(Update::read).collect())
                }
            },
            Some("deny") => Verdict::Deny {
                message: answer
                    .get("message")
                    .and_then(Value::as_str)
                    .filter(|message| !message.trim().is_empty())
                    .unwrap_or("The program denied it")
                    .to_owned(),
                interrupt: answer.get("interrupt").and_then(Value::as_bool).unwrap_or_default(),
            },
            _ => deny("The program's answer says neither allow nor deny".to_owned()),
        }
    }
}

impl Update {
    fn read(update: &Value) -> Vec<Self> {
        let text = |key: &str| update.get(key).and_then(Value::as_str).unwrap_or_default();
        let rules = || {
            let rules = update.get("rules").and_then(Value::as_array).into_iter().flatten();
            rules.filter_map(|rule| {
                let tool = rule.get("toolName")?.as_str()?;
                Some(match rule.get("ruleContent").and_then(Value::as_str) {
                    Some(content) => format!("{tool}({content})"),
                    None => tool.to_owned(),
                })
            })
        };
        match (text("type"), text("behavior")) {
            ("setMode", _) => {
                vec![Mode::named(text("mode")).map_or_else(Update::Impossible, Update::Mode)]
            }
            ("addRules", "allow") => rules().map(Update::Allow).collect(),
            ("addRules", "deny") => rules().map(Update::Deny).collect(),
            (kind, _) => vec![Update::Impossible(format!("permissions cannot be changed by {kind:?} here"))],
        }
    }
}
