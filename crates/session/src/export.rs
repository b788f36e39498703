//! A session as one file that opens anywhere: HTML or Markdown.
//!
//! Everything in a session is foreign text: prompts, answers, and whatever tools printed. Nothing of it may run, load or
//! reach out of the page, whoever opens it. Gemini CLI's answers are Markdown (0.61.0), and are shown as such.

mod html;
mod markdown;
mod safe;

use std::borrow::Cow;

use alhena_model::message::Block;
use alhena_model::{Message, Timestamp, Usage};
use alhena_wire::session::shell_output;
use serde_json::Value;

pub use html::html;
pub use markdown::markdown;

/// What is exported.
#[derive(Debug)]
pub struct Page<'a> {
    /// What the session is about.
    pub title: String,
    /// Facts about it, each with its name.
    pub facts: Vec<(&'static str, String)>,
    /// What was said.
    pub messages: &'a [Message<'a>],
    /// Its sub-agents, by the id of the call that started them.
    pub children: Vec<(String, Page<'a>)>,
}

impl<'a> Page<'a> {
    /// A page with the usual facts.
    pub fn new(session: &crate::Session, messages: &'a [Message<'a>]) -> Self {
        let survey = &session.survey;
        let time = |millis: Option<i64>| millis.map(|millis| Timestamp::from_millis(millis).to_string());
        let folder = session.file.project.root.as_ref().map(|root| root.display().to_string());
        let usage = survey.usage();
        let models: Vec<&str> = usage.models.keys().map(String::as_str).collect();
        let facts = [
            ("Session", Some(session.id.clone())),
            ("Project", folder),
            ("Started", time(survey.started)),
            ("Updated", time(survey.updated)),
            ("Messages", Some(messages.len().to_string())),
            ("Models", Some(models.join(", "))),
            ("Tokens", tokens(&usage)),
        ];
        let facts =
            facts.into_iter().filter_map(|(name, fact)| Some((name, fact.filter(|fact| !fact.is_empty())?)));
        let title = survey.title.clone().unwrap_or_else(|| session.id.clone());
        Self { title, facts: facts.collect(), messages, children: Vec::new() }
    }

    fn child(&self, call: &str) -> Option<&Page<'a>> {
        self.children.iter().find(|(id, _)| id == call).map(|(_, page)| page)
    }
}

fn tokens(usage: &Usage) -> Option<String> {
    let all = &usage.all;
    (all.total > 0).then(|| {
        format!(
            "{} ({} in, {} of them cached; {} out, {} thoughts)",
            all.total, all.prompt, all.cached, all.output, all.thoughts
        )
    })
}

/// What a tool call is about, in a few words: its file, its command, its pattern.
pub fn about(input: &Value) -> Option<&str> {
    const TELLING: [&str; 9] =
        ["command", "file_path", "pattern", "query", "url", "path", "prompt", "description", "skill"];
    TELLING.iter().find_map(|key| input.get(key)?.as_str())
}

/// A call and what belongs to it.
struct Card<'m> {
    id: &'m str,
    name: &'m str,
    input: &'m Value,
    result: Option<&'m alhena_model::message::ToolResult<'m>>,
}

/// A message in the order in which it is shown.
enum Item<'m> {
    Thought(&'m str),
    Call(Card<'m>),
    Image(&'m alhena_model::message::ImageSource<'m>),
    Text(&'m str),
}

/// Thoughts, then what was said, then what was done: a model says what it will do before it calls a tool.
fn items<'m>(message: &'m Message<'m>) -> Vec<Item<'m>> {
    let mut items: Vec<Item<'m>> = Vec::new();
    let mut said = Vec::new();
    for block in message.content.blocks() {
        match block {
            Block::Thinking { thinking } => items.push(Item::Thought(thinking)),
            Block::ToolUse { id, name, input } => {
                items.push(Item::Call(Card { id, name, input, result: None }));
            }
            Block::ToolResult(result) => {
                let call = items.iter_mut().rev().find_map(|item| match item {
                    Item::Call(card) if card.id == result.tool_use_id => Some(card),
                    _ => None,
                });
                if let Some(card) = call {
                    card.result = Some(result);
                }
            }
            Block::Image { source } => items.push(Item::Image(source)),
            Block::Text { text } => said.push(Item::Text(text)),
        }
    }
    let thoughts = items.iter().take_while(|item| matches!(item, Item::Thought(_))).count();
    items.splice(thoughts..thoughts, said);
    items
}

impl Card<'_> {
    /// How it ended, if not well.
    fn trouble(&self) -> Option<Cow<'static, str>> {
        let result = self.result?;
        match result.exit_code {
            _ if result.cancelled => Some(Cow::Borrowed("cancelled")),
            Some(code) if code != 0 => Some(Cow::Owned(format!("exit {code}"))),
            _ if result.is_error => Some(Cow::Borrowed("failed")),
            _ => None,
        }
    }

    /// The arguments that the title does not say already, each with its name.
    fn arguments(&self) -> Vec<(&str, Cow<'_, str>)> {
        let shown = about(self.input);
        let Value::Object(arguments) = self.input else { return Vec::new() };
        let rest =
            arguments.iter().filter(|(_, value)| shown.is_none_or(|shown| value.as_str() != Some(shown)));
        rest.map(|(name, value)| {
            let text = match value {
                Value::String(text) => Cow::Borrowed(text.as_str()),
                other => Cow::Owned(other.to_string()),
            };
            (name.as_str(), text)
        })
        .collect()
    }

    /// What it gave back, for people.
    fn printed(&self) -> Option<&str> {
        let result = self.result?;
        let text = if self.name == "Bash" { shell_output(&result.content) } else { &*result.content };
        (!text.is_empty()).then_some(text)
    }

    /// Whether the diff says it all: then contents and arguments would say it again.
    fn diff(&self) -> Option<&str> {
        self.result?.diff.as_deref()
    }
}

#[cfg(test)]
mod tests;
