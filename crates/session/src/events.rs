//! A conversation as the events that a run of it would have given.
//!
//! The stream of Gemini CLI (0.61.0) drops thoughts, diffs, exit codes and tokens per answer; a session has them, so these
//! events are richer than those of the stream. How the process ended is nowhere in a session, so there is no `finished`.

use alhena_model::event::{FileChange, ToolError};
use alhena_model::message::{Block, Content, Role, ToolResult};
use alhena_model::tool::{self, Class};
use alhena_model::{Change, Event, EventKind, Message, Source, Timestamp, Tokens, Usage};
use alhena_wire::session::{MessageRecord, ToolCallRecord, shell_output};
use serde_json::Value;

/// The events of a conversation.
pub fn events(messages: &[Message<'_>]) -> Vec<Event> {
    let mut stream = Stream { events: Vec::new(), at: Timestamp::default() };
    for message in messages {
        stream.message(message);
    }
    stream.events
}

struct Stream {
    events: Vec<Event>,
    at: Timestamp,
}

impl Stream {
    fn push(&mut self, source: Source, kind: EventKind) {
        self.events.push(Event { seq: self.events.len() as u64, at: self.at, source, kind });
    }

    fn message(&mut self, message: &Message<'_>) {
        if let Some(millis) = message.timestamp {
            self.at = Timestamp::from_millis(millis);
        }
        let record = MessageRecord::from_text(message.original.get()).unwrap_or_default();
        let calls = record.tool_calls.unwrap_or_default();
        if let Content::Text(text) = &message.content {
            self.text(message.role, text);
        }
        // A model speaks first and then calls tools; messages have their text last, as Claude's hosts expect it.
        let is_tool = |block: &&Block<'_>| matches!(block, Block::ToolUse { .. } | Block::ToolResult(_));
        let blocks = message.content.blocks();
        let said_first = blocks.iter().filter(|block| !is_tool(block)).chain(blocks.iter().filter(is_tool));
        for block in said_first {
            match block {
                Block::Thinking { thinking } => self.thinking(thinking),
                Block::ToolUse { id, name, input } => self.call(id, name, input, &calls),
                Block::ToolResult(result) => self.result(result, message.content.blocks(), &calls),
                Block::Image { .. } => {}
                Block::Text { text } => self.text(message.role, text),
            }
        }
        if let Some(usage) = &message.usage {
            let tokens = Tokens {
                prompt: usage.input_tokens,
                cached: usage.cached_tokens.unwrap_or(0),
                output: usage.output_tokens,
                thoughts: usage.thought_tokens.unwrap_or(0),
                tool: 0,
                total: usage.total_tokens,
            };
            let model = message.model.as_deref().unwrap_or("unknown");
            self.push(Source::Session, EventKind::Usage(Usage::of_models([(model, tokens)])));
        }
    }

    fn text(&mut self, role: Role, text: &str) {
        if text.is_empty() {
            return;
        }
        let text = text.to_owned();
        self.push(
            Source::Session,
            match role {
                Role::User => EventKind::Prompt { text },
                Role::Assistant => EventKind::Text { delta: text },
            },
        );
    }

    fn thinking(&mut self, thinking: &str) {
        let (subject, text) = thinking.split_once(": ").unwrap_or(("", thinking));
        self.push(
            Source::Session,
            EventKind::Thinking { subject: subject.to_owned(), text: text.to_owned() },
        );
    }

    fn call(&mut self, id: &str, claude_name: &str, input: &Value, calls: &[ToolCallRecord<'_>]) {
        let recorded = recorded(calls, id);
        let name = recorded.and_then(|call| call.name.as_deref()).unwrap_or(claude_name).to_owned();
        let args = recorded.and_then(|call| call.args.as_ref()).and_then(|args| args.decode().ok());
        self.push(
            Source::Session,
            EventKind::ToolCall {
                id: id.to_owned(),
                class: tool::class(&name),
                claude_name: claude_name.to_owned(),
                input: Box::new(args.unwrap_or_else(|| input.clone())),
                name,
            },
        );
    }

    fn result(&mut self, result: &ToolResult<'_>, blocks: &[Block<'_>], calls: &[ToolCallRecord<'_>]) {
        let recorded = recorded(calls, &result.tool_use_id);
        let call = blocks.iter().find_map(|block| match block {
            Block::ToolUse { id, name, input } if *id == result.tool_use_id => Some((&**name, input)),
            _ => None,
        });
        let claude_name = call.map_or("", |(name, _)| name);
        let name = recorded.and_then(|call| call.name.as_deref()).unwrap_or(claude_name).to_owned();
        let failed = result.is_error || result.cancelled || result.exit_code.is_some_and(|code| code != 0);
        let class = if name == claude_name { class_of_claude(claude_name) } else { tool::class(&name) };
        // The stream of a run does not have what the CLI writes around it for the model either.
        let printed = if class == Class::Command { shell_output(&result.content) } else { &result.content };
        let content = || Some(printed.to_owned()).filter(|text| !text.is_empty());
        let error = result.is_error.then(|| ToolError {
            kind: if result.cancelled { "cancelled" } else { "error" }.to_owned(),
            message: result.content.to_string(),
        });
        self.push(
            Source::Session,
            EventKind::ToolResult {
                id: result.tool_use_id.to_string(),
                name: name.clone(),
                ok: !failed,
                output: content(),
                error: error.map(Box::new),
                exit_code: result.exit_code,
                cancelled: result.cancelled.then_some(true),
            },
        );
        let argument = |key: &str| call.and_then(|(_, input)| input.get(key)?.as_str()).map(str::to_owned);
        match class {
            Class::Command if !result.cancelled => {
                if let Some(command) = argument("command") {
                    let call_id = result.tool_use_id.to_string();
                    let kind = EventKind::Command {
                        call_id,
                        command,
                        output: content(),
                        exit_code: result.exit_code,
                    };
                    self.push(Source::Derived, kind);
                }
            }
            Class::FileWrite if !failed => {
                if let Some(path) = argument("file_path") {
                    self.push(Source::Derived, EventKind::FileChange(change(path, name, result)));
                }
            }
            _ => {}
        }
    }
}

fn change(path: String, tool: String, result: &ToolResult<'_>) -> FileChange {
    // A diff from nothing is a new file.
    let is_new = result.diff.as_deref().is_some_and(|diff| diff.contains("\n@@ -0,0 "));
    FileChange {
        path,
        change: if is_new { Change::Created } else { Change::Modified },
        tool: Some(tool),
        call_id: Some(result.tool_use_id.to_string()),
        diff: result.diff.as_ref().map(ToString::to_string),
        verified: false,
    }
}

fn recorded<'c, 'a>(calls: &'c [ToolCallRecord<'a>], id: &str) -> Option<&'c ToolCallRecord<'a>> {
    calls.iter().find(|call| call.id.as_deref() == Some(id))
}

/// After a resume only Claude's name of a tool is at hand.
fn class_of_claude(name: &str) -> Class {
    tool::TOOLS.iter().find(|tool| tool.claude == Some(name)).map_or(Class::Unknown, |tool| tool.class)
}
