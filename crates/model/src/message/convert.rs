//! From a record to a message.

use std::borrow::Cow;

use alhena_wire::session::{
    CallStatus, Content as Parts, FunctionCall, FunctionResponse, InlineData, MessageRecord, MessageType,
    Part, Payload, Piece, ResultDisplay, Thought, Tokens, ToolCallRecord, shell_end,
};
use alhena_wire::{Count, Raw};
use serde_json::Value;

use super::{
    Block, Content, ImageSource, Include, Message, MessageUsage, Original, Role, ToolName, ToolResult,
    is_said,
};
use crate::time::Timestamp;
use crate::tool;

/// Turns the records of a conversation into messages, one after the other.
///
/// After a resume the CLI rewrites earlier answers as parts (0.61.0): calls without results, and the results in a record of
/// their own, twice. Such a result is put behind its call.
#[derive(Debug, Default)]
pub struct Conversion<'a> {
    include: Include,
    messages: Vec<Message<'a>>,
    /// Calls without a result: the message and the call's id.
    open: Vec<(usize, Cow<'a, str>)>,
}

impl<'a> Conversion<'a> {
    /// For a conversation from its beginning.
    pub fn new(include: Include) -> Self {
        Self { include, messages: Vec::new(), open: Vec::new() }
    }

    /// Takes the next record.
    pub fn push(&mut self, mut record: MessageRecord<'a>, original: impl Into<Original<'a>>) {
        let said = is_said(&record);
        if !said && !self.open.is_empty() && record.kind == Some(MessageType::User) {
            self.answer(&mut record);
        }
        if said || self.include == Include::Everything {
            let message = message(record, original.into());
            if message.role == Role::Assistant {
                self.open.clear();
                let place = self.messages.len();
                self.open.extend(unanswered(&message).map(|id| (place, id)));
            }
            self.messages.push(message);
        }
    }

    /// Whether a call still has no result, so that a record in the user's name could have it.
    pub fn has_open_calls(&self) -> bool {
        !self.open.is_empty()
    }

    /// The messages.
    pub fn finish(self) -> Vec<Message<'a>> {
        self.messages
    }

    /// Gives open calls the results that a record in the user's name holds.
    fn answer(&mut self, record: &mut MessageRecord<'a>) {
        let Some(content) = record.content.take() else { return };
        for part in parts(content) {
            let Some(response) = part.function_response else { continue };
            let found = self.open.iter().position(|(_, id)| Some(id) == response.id.as_ref());
            let Some(found) = found else { continue };
            let (place, id) = self.open.swap_remove(found);
            if let Some(Content::Blocks(blocks)) =
                self.messages.get_mut(place).map(|message| &mut message.content)
            {
                put_behind_call(blocks, id, *response);
            }
        }
    }
}

fn unanswered<'a>(message: &Message<'a>) -> impl Iterator<Item = Cow<'a, str>> {
    let blocks = message.content.blocks();
    blocks.iter().enumerate().filter_map(move |(at, block)| match (block, blocks.get(at + 1)) {
        (Block::ToolUse { .. }, Some(Block::ToolResult(_))) => None,
        (Block::ToolUse { id, .. }, _) => Some(id.clone()),
        _ => None,
    })
}

fn put_behind_call<'a>(blocks: &mut Vec<Block<'a>>, call: Cow<'a, str>, response: FunctionResponse<'a>) {
    let at = blocks.iter().position(|block| matches!(block, Block::ToolUse { id, .. } if *id == call));
    let Some(at) = at else { return };
    let name = match response.name.as_deref() {
        Some(name) => name.to_owned(),
        None => String::new(),
    };
    let mut made = Vec::new();
    result(call, &name, None, vec![Found::Response(Box::new(response))], None, &mut made);
    blocks.splice(at + 1..at + 1, made);
}

/// One record as a message.
pub(super) fn message<'a>(record: MessageRecord<'a>, original: Original<'a>) -> Message<'a> {
    let mut blocks = Vec::new();
    let thoughts = record.thoughts.unwrap_or_default();
    let calls = record.tool_calls.unwrap_or_default();
    let has_thoughts = !thoughts.is_empty();
    blocks.extend(thoughts.into_iter().map(thinking));
    let mut said = Said::default();
    for piece in record.content.into_iter().flat_map(pieces) {
        said.add(piece, has_thoughts, &calls);
    }
    blocks.append(&mut said.thoughts);
    for call in calls {
        self::call(call, &mut blocks);
    }
    blocks.append(&mut said.calls);
    blocks.append(&mut said.images);
    let text = said.text;
    if !text.trim().is_empty() {
        blocks.push(Block::Text { text });
        return finish(
            record.id,
            record.kind,
            record.timestamp,
            Content::Blocks(blocks),
            record.model,
            record.tokens,
            original,
        );
    }
    let content = if blocks.is_empty() { Content::Text(text) } else { Content::Blocks(blocks) };
    finish(record.id, record.kind, record.timestamp, content, record.model, record.tokens, original)
}

fn finish<'a>(
    id: Option<Cow<'a, str>>,
    kind: Option<MessageType<'a>>,
    timestamp: Option<Cow<'a, str>>,
    content: Content<'a>,
    model: Option<Cow<'a, str>>,
    tokens: Option<Tokens>,
    original: Original<'a>,
) -> Message<'a> {
    Message {
        id: id.unwrap_or_default(),
        role: if kind == Some(MessageType::User) { Role::User } else { Role::Assistant },
        content,
        timestamp: timestamp.and_then(|text| Timestamp::parse(&text)).map(Timestamp::as_millis),
        tool: ToolName::Gemini,
        model,
        usage: tokens.map(|tokens| usage(&tokens)),
        original,
    }
}

fn usage(tokens: &Tokens) -> MessageUsage {
    let count = |count: Option<Count>| count.map(Count::get);
    MessageUsage {
        input_tokens: count(tokens.input).unwrap_or(0),
        output_tokens: count(tokens.output).unwrap_or(0),
        total_tokens: count(tokens.total).unwrap_or(0),
        cached_tokens: count(tokens.cached),
        thought_tokens: count(tokens.thoughts),
    }
}

// B-08
fn thinking(thought: Thought<'_>) -> Block<'_> {
    let (subject, description) =
        (thought.subject.unwrap_or_default(), thought.description.unwrap_or_default());
    Block::Thinking { thinking: Cow::Owned(format!("{subject}: {description}")) }
}

/// What the pieces of a content come to.
#[derive(Default)]
struct Said<'a> {
    text: Cow<'a, str>,
    thoughts: Vec<Block<'a>>,
    calls: Vec<Block<'a>>,
    images: Vec<Block<'a>>,
}

impl<'a> Said<'a> {
    fn add(&mut self, piece: Piece<'a>, has_thoughts: bool, calls: &[ToolCallRecord<'a>]) {
        let part = match piece {
            Piece::Text(text) => return self.add_text(text),
            Piece::Part(part) => *part,
        };
        let is_thought = part.is_thought();
        match part.text {
            // The same thoughts again, as the API wants them.
            Some(_) if is_thought && has_thoughts => {}
            Some(thinking) if is_thought => self.thoughts.push(Block::Thinking { thinking }),
            Some(text) => self.add_text(text),
            None => {}
        }
        if let Some(call) = part.function_call
            && !is_recorded(&call, calls)
        {
            let name = call.name.unwrap_or_default();
            let input = claude_input(&name, call.args.as_ref());
            self.calls.push(Block::ToolUse {
                id: call.id.unwrap_or_default(),
                name: claude_name(name),
                input,
            });
        }
        if let Some(image) = image(part.inline_data.map(|data| *data), part.file_data) {
            self.images.push(image);
        }
    }

    fn add_text(&mut self, text: Cow<'a, str>) {
        if self.text.is_empty() {
            self.text = text;
        } else {
            self.text.to_mut().push_str(&text);
        }
    }
}

/// Whether a call among the parts is one of the recorded calls, which know more.
fn is_recorded(call: &FunctionCall<'_>, calls: &[ToolCallRecord<'_>]) -> bool {
    calls.iter().any(|recorded| match &call.id {
        Some(id) => recorded.id.as_ref() == Some(id),
        None => recorded.name == call.name,
    })
}

fn image<'a>(
    inline: Option<InlineData<'a>>,
    file: Option<Box<alhena_wire::session::FileData<'a>>>,
) -> Option<Block<'a>> {
    let is_image =
        |kind: &Option<Cow<'_, str>>| kind.as_deref().is_some_and(|kind| kind.starts_with("image/"));
    if let Some(InlineData { mime_type: Some(media_type), data: Some(data), .. }) = inline {
        let image = is_image(&Some(Cow::Borrowed(&media_type)));
        return image.then_some(Block::Image { source: ImageSource::Base64 { media_type, data } });
    }
    let file = file.filter(|file| is_image(&file.mime_type))?;
    Some(Block::Image { source: ImageSource::Url { url: file.file_uri? } })
}

/// A recorded call: its use, and its result if there is one.
fn call<'a>(call: ToolCallRecord<'a>, blocks: &mut Vec<Block<'a>>) {
    let id = call.id.unwrap_or_default();
    let name = call.name.unwrap_or_default();
    let input = claude_input(&name, call.args.as_ref());
    blocks.push(Block::ToolUse { id: id.clone(), name: claude_name(name.clone()), input });
    let found = call.result.into_iter().flat_map(pieces).filter_map(Found::of).collect::<Vec<_>>();
    // B-13
    if !found.is_empty() {
        let diff = match call.result_display {
            Some(ResultDisplay::FileDiff(diff)) => diff.file_diff,
            _ => None,
        };
        result(id, &name, call.status, found, diff, blocks);
    }
}

/// A piece of a tool's result.
enum Found<'a> {
    Response(Box<FunctionResponse<'a>>),
    Text(Cow<'a, str>),
    Image(Block<'a>),
    Other,
}

impl<'a> Found<'a> {
    fn of(piece: Piece<'a>) -> Option<Self> {
        let part = match piece {
            Piece::Text(text) => return Some(Self::Text(text)),
            Piece::Part(part) => *part,
        };
        if let Some(response) = part.function_response {
            return Some(Self::Response(response));
        }
        if let Some(text) = part.text {
            return Some(Self::Text(text));
        }
        Some(image(part.inline_data.map(|data| *data), part.file_data).map_or(Self::Other, Self::Image))
    }
}

fn result<'a>(
    id: Cow<'a, str>,
    name: &str,
    status: Option<CallStatus<'a>>,
    found: Vec<Found<'a>>,
    diff: Option<Cow<'a, str>>,
    blocks: &mut Vec<Block<'a>>,
) {
    let (mut output, mut error, mut text) = (None, None, Cow::Borrowed(""));
    let mut images = Vec::new();
    let mut answered = false;
    for piece in found {
        match piece {
            // B-11: the first response counts.
            Found::Response(response) if !answered => {
                answered = true;
                if let Some(response) = response.response {
                    output = response.output.and_then(filled);
                    error = response.error.and_then(filled);
                }
                let media = response.parts.into_iter().flat_map(parts);
                images.extend(
                    media.filter_map(|part| image(part.inline_data.map(|data| *data), part.file_data)),
                );
            }
            Found::Text(piece) if text.is_empty() => text = piece,
            Found::Text(piece) => text.to_mut().push_str(&piece),
            Found::Image(image) => images.push(image),
            Found::Response(_) | Found::Other => {}
        }
    }
    let is_error = status == Some(CallStatus::Error) || error.is_some(); // B-12
    let cancelled = status == Some(CallStatus::Cancelled);
    let exit_code = match (name, cancelled, &output) {
        ("run_shell_command", false, Some(output)) => exit_code(output),
        _ => None,
    };
    let content = output.or(error).unwrap_or(if answered { Cow::Borrowed("") } else { text });
    blocks.push(Block::ToolResult(ToolResult {
        tool_use_id: id,
        content,
        is_error,
        diff,
        exit_code,
        cancelled,
    }));
    blocks.append(&mut images);
}

/// What JavaScript would take for something (B-11): no empty text, no null, no zero.
fn filled(payload: Payload<'_>) -> Option<Cow<'_, str>> {
    match payload {
        Payload::Text(text) => (!text.is_empty()).then_some(text),
        Payload::Value(Value::Null | Value::Bool(false)) => None,
        Payload::Value(Value::Number(number)) if number.as_f64() == Some(0.0) => None,
        Payload::Value(value) => Some(Cow::Owned(value.to_string())),
    }
}

/// The exit code of a shell command, as the model was told: 0 is never said, so a command that ran to its end and says
/// nothing else ended with it.
fn exit_code(output: &str) -> Option<i32> {
    let end = shell_end(output)?;
    let ended_well = end.process_group.is_some() && end.signal.is_none();
    end.exit_code.or(ended_well.then_some(0))
}

fn claude_name(name: Cow<'_, str>) -> Cow<'_, str> {
    match tool::claude_name(&name) {
        Cow::Borrowed(same) if same == name => name,
        other => Cow::Owned(other.into_owned()),
    }
}

fn claude_input(name: &str, args: Option<&Raw<'_>>) -> Value {
    let args =
        args.and_then(|args| args.decode().ok()).unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    tool::claude_input(name, &args)
}

fn pieces(content: Parts<'_>) -> impl Iterator<Item = Piece<'_>> {
    let (one, many) = match content {
        Parts::One(piece) => (Some(piece), Vec::new()),
        Parts::Many(pieces) => (None, pieces),
    };
    one.into_iter().chain(many)
}

fn parts(content: Parts<'_>) -> impl Iterator<Item = Part<'_>> {
    pieces(content).filter_map(|piece| match piece {
        Piece::Part(part) => Some(*part),
        Piece::Text(_) => None,
    })
}
