//! A message is an entry as Claude would write it.

use std::borrow::Cow;

use super::{Entry, EntryTokens, Thought, ToolEnd, ToolRun};
use crate::message::{Block, Content, Message, MessageUsage, ToolName, ToolResult};
use crate::time::Timestamp;
use crate::tool;

impl<'a> From<Entry<'a>> for Message<'a> {
    fn from(entry: Entry<'a>) -> Self {
        let Entry { id, role, at, model, tokens, thoughts, text, runs, images, original } = entry;
        let mut blocks = Vec::new();
        blocks.extend(thoughts.into_iter().map(thinking));
        for run in runs {
            self::run(run, &mut blocks);
        }
        blocks.extend(images.into_iter().map(|source| Block::Image { source }));
        let content = match text.trim().is_empty() {
            true if blocks.is_empty() => Content::Text(text),
            true => Content::Blocks(blocks),
            false => {
                blocks.push(Block::Text { text });
                Content::Blocks(blocks)
            }
        };
        Message {
            id,
            role,
            content,
            timestamp: at.map(Timestamp::as_millis),
            tool: ToolName::Gemini,
            model,
            usage: tokens.map(MessageUsage::from),
            original,
        }
    }
}

impl From<EntryTokens> for MessageUsage {
    fn from(tokens: EntryTokens) -> Self {
        let EntryTokens { count, knows_cached, knows_thoughts } = tokens;
        Self {
            input_tokens: count.prompt,
            output_tokens: count.output,
            total_tokens: count.total,
            cached_tokens: knows_cached.then_some(count.cached),
            thought_tokens: knows_thoughts.then_some(count.thoughts),
        }
    }
}

// B-08
fn thinking(thought: Thought<'_>) -> Block<'_> {
    let thinking = match thought.subject {
        Some(subject) => Cow::Owned(format!("{subject}: {}", thought.text)),
        None => thought.text,
    };
    Block::Thinking { thinking }
}

/// A call, and its result if there is one.
fn run<'a>(run: ToolRun<'a>, blocks: &mut Vec<Block<'a>>) {
    let ToolRun { id, name, input, end, .. } = run;
    let input = tool::claude_input(&name, &input);
    let Some(end) = end else {
        return blocks.push(Block::ToolUse { id, name: claude_name(name), input });
    };
    blocks.push(Block::ToolUse { id: id.clone(), name: claude_name(name), input });
    let (is_error, reported_error) = (!end.is_ok(), end.is_error());
    let ToolEnd { output, shown, error, exit_code, cancelled, diff, images, .. } = *end;
    let filled = |text: &Cow<'_, str>| !text.is_empty();
    // B-11: what the model was told; where nobody knows that, what a person is shown.
    let content = output.filter(filled).or(error).or(shown).unwrap_or_default();
    blocks.push(Block::ToolResult(ToolResult {
        tool_use_id: id,
        content,
        is_error,
        reported_error,
        diff,
        exit_code,
        cancelled,
    }));
    blocks.extend(images.into_iter().map(|source| Block::Image { source }));
}

fn claude_name(name: Cow<'_, str>) -> Cow<'_, str> {
    match tool::claude_name(&name) {
        Cow::Borrowed(same) if same == name => name,
        other => Cow::Owned(other.into_owned()),
    }
}
