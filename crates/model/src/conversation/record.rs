//! Filled from the records of a session.

use std::borrow::Cow;

use alhena_wire::session::{
    CallStatus, Content as Parts, FileDiff, FunctionCall, FunctionResponse, InlineData, Log, MessageRecord,
    MessageType, Part, Payload, Piece, ResultDisplay, Tokens as Counts, ToolCallRecord, shell_end,
};
use alhena_wire::{Count, Raw};
use serde_json::Value;

use super::bunch::Bunch;
use super::{Entry, EntryTokens, Original, Thought, ToolEnd, ToolRun, events};
use crate::event::Event;
use crate::message::{ImageSource, Include, Message, Role, is_said};
use crate::time::Timestamp;
use crate::tool::{self, Class};
use crate::usage::Tokens;

/// A conversation, as far as it is known.
///
/// After a resume the CLI rewrites earlier answers as parts (0.61.0): calls without results, and the results in a record of
/// their own, twice. Each such result is joined to its call. `Bunch` describes the records of a session over ACP.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversation<'a> {
    include: Include,
    pub(super) entries: Vec<Entry<'a>>,
    answers_at: usize,
    /// Its calls that have no result: their places among its runs.
    open: Vec<usize>,
    pub(super) bunch: Bunch,
}

impl<'a> Conversation<'a> {
    /// From its beginning.
    pub fn new(include: Include) -> Self {
        Self { include, ..Self::default() }
    }

    /// All that a log holds.
    pub fn of_log(log: &'a Log<'_>, include: Include) -> Self {
        let mut conversation = Self::new(include);
        for stored in log.messages() {
            conversation.push(stored.decode(), stored.raw().clone());
        }
        conversation
    }

    /// Takes the next record.
    pub fn push(&mut self, mut record: MessageRecord<'a>, original: impl Into<Original<'a>>) {
        let said = is_said(&record);
        if !said && record.kind == Some(MessageType::User) {
            if !self.open.is_empty() {
                self.answer(&mut record);
            } else if self.may_place_calls() {
                self.place_calls(&record);
            }
        }
        if said || self.include == Include::Everything {
            self.add_recorded(entry(record, original));
        }
    }

    /// Takes the next entry.
    pub fn add(&mut self, entry: Entry<'a>) {
        if entry.role == Role::Assistant {
            let open = entry.runs.iter().enumerate().filter(|(_, run)| run.end.is_none());
            self.open = open.map(|(at, _)| at).collect();
            self.answers_at = self.entries.len();
        }
        self.entries.push(entry);
    }

    /// Whether a record of tool results in the user's name says something about the calls before it.
    pub fn wants_results(&self) -> bool {
        !self.open.is_empty() || self.may_place_calls()
    }

    /// What was said and done, in order.
    pub fn entries(&self) -> &[Entry<'a>] {
        &self.entries
    }

    /// The same, to keep.
    pub fn into_entries(self) -> Vec<Entry<'a>> {
        self.entries
    }

    /// As messages (B-43).
    pub fn into_messages(self) -> Vec<Message<'a>> {
        self.entries.into_iter().map(Message::from).collect()
    }

    /// As the events that a run of it would have given, but for how that ended.
    pub fn events(&self) -> Vec<Event> {
        events(&self.entries)
    }

    /// Gives open calls the results that a record in the user's name holds.
    fn answer(&mut self, record: &mut MessageRecord<'a>) {
        let Some(entry) = self.entries.get_mut(self.answers_at) else { return };
        let Some(content) = record.content.take() else { return };
        for part in parts(content) {
            let Some(response) = part.function_response else { continue };
            let is_asked = |at: &usize| entry.runs.get(*at).map(|run| &run.id) == response.id.as_ref();
            let Some(found) = self.open.iter().position(is_asked) else { continue };
            let at = self.open.swap_remove(found);
            if let Some(run) = entry.runs.get_mut(at) {
                let found = vec![Found::Response(response)];
                run.end = Some(Box::new(end(&run.name, None, found, None)));
            }
        }
    }
}

/// One record on its own.
pub fn entry<'a>(record: MessageRecord<'a>, original: impl Into<Original<'a>>) -> Entry<'a> {
    let calls = record.tool_calls.unwrap_or_default();
    let mut thoughts: Vec<Thought<'a>> = record.thoughts.into_iter().flatten().map(Thought::from).collect();
    let has_thoughts = !thoughts.is_empty();
    let mut said = EntryParts::default();
    for piece in record.content.into_iter().flat_map(pieces) {
        said.add(piece, has_thoughts, &calls);
    }
    thoughts.append(&mut said.thoughts);
    let mut runs: Vec<ToolRun<'a>> = calls.into_iter().map(run).collect();
    runs.append(&mut said.calls);
    Entry {
        id: record.id.unwrap_or_default(),
        role: if record.kind == Some(MessageType::User) { Role::User } else { Role::Assistant },
        at: record.timestamp.and_then(|text| Timestamp::parse(&text)),
        model: record.model,
        tokens: record.tokens.as_ref().map(EntryTokens::from),
        thoughts,
        text: said.text,
        runs,
        images: said.images,
        original: original.into(),
    }
}

impl From<&Counts> for EntryTokens {
    fn from(counts: &Counts) -> Self {
        let count = |count: Option<Count>| count.map_or(0, Count::get);
        let known = Tokens {
            prompt: count(counts.input),
            cached: count(counts.cached),
            output: count(counts.output),
            thoughts: count(counts.thoughts),
            tool: count(counts.tool),
            total: count(counts.total),
        };
        Self {
            count: known,
            knows_cached: counts.cached.is_some(),
            knows_thoughts: counts.thoughts.is_some(),
        }
    }
}

impl<'a> From<alhena_wire::session::Thought<'a>> for Thought<'a> {
    fn from(thought: alhena_wire::session::Thought<'a>) -> Self {
        Self {
            subject: Some(thought.subject.unwrap_or_default()),
            text: thought.description.unwrap_or_default(),
        }
    }
}

/// What the pieces of a content come to.
#[derive(Default)]
struct EntryParts<'a> {
    text: Cow<'a, str>,
    thoughts: Vec<Thought<'a>>,
    calls: Vec<ToolRun<'a>>,
    images: Vec<ImageSource<'a>>,
}

impl<'a> EntryParts<'a> {
    fn add(&mut self, piece: Piece<'a>, has_thoughts: bool, calls: &[ToolCallRecord<'a>]) {
        let part = match piece {
            Piece::Text(text) => return self.add_text(text),
            Piece::Part(part) => *part,
        };
        let is_thought = part.is_thought();
        match part.text {
            // The same thoughts again, as the API wants them.
            Some(_) if is_thought && has_thoughts => {}
            Some(text) if is_thought => self.thoughts.push(Thought { subject: None, text }),
            Some(text) => self.add_text(text),
            None => {}
        }
        if let Some(call) = part.function_call
            && !is_recorded(&call, calls)
        {
            self.calls.push(ToolRun {
                id: call.id.unwrap_or_default(),
                name: call.name.unwrap_or_default(),
                input: input(call.args.as_ref()),
                agent: None,
                end: None,
            });
        }
        self.images.extend(image(part.inline_data.map(|data| *data), part.file_data));
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
) -> Option<ImageSource<'a>> {
    let is_image =
        |kind: &Option<Cow<'_, str>>| kind.as_deref().is_some_and(|kind| kind.starts_with("image/"));
    if let Some(InlineData { mime_type: Some(media_type), data: Some(data), .. }) = inline {
        let image = is_image(&Some(Cow::Borrowed(&media_type)));
        return image.then_some(ImageSource::Base64 { media_type, data });
    }
    let file = file.filter(|file| is_image(&file.mime_type))?;
    Some(ImageSource::Url { url: file.file_uri? })
}

/// A recorded call, with its result if there is one (B-13).
fn run(mut call: ToolCallRecord<'_>) -> ToolRun<'_> {
    let has_result = call.result.as_ref().is_some_and(|result| !result.pieces().is_empty());
    let end = has_result.then(|| Box::new(ended(&mut call)));
    let input = input(call.args.as_ref());
    let (id, name) = (call.id.unwrap_or_default(), call.name.unwrap_or_default());
    ToolRun { id, name, input, agent: call.agent_id, end }
}

pub(crate) fn ended<'a>(call: &mut ToolCallRecord<'a>) -> ToolEnd<'a> {
    let found = call.take_own_result().into_iter().map(Found::of).collect();
    let diff = match call.result_display.take() {
        Some(ResultDisplay::FileDiff(diff)) => Some(*diff),
        _ => None,
    };
    end(call.name.as_deref().unwrap_or(""), call.status.as_ref(), found, diff)
}

/// What a record of the user's side answers to calls: the id, the tool, and how it ended.
pub(crate) fn answers(message: MessageRecord<'_>) -> Vec<(String, String, ToolEnd<'_>)> {
    let found = message.content.into_iter().flat_map(pieces).map(Found::of);
    let responses = found.filter_map(|found| match found {
        Found::Response(response) => Some(response),
        _ => None,
    });
    responses
        .filter_map(|response| {
            let id = response.id.as_deref()?.to_owned();
            let name = response.name.as_deref().unwrap_or("").to_owned();
            let end = end(&name, None, vec![Found::Response(response)], None);
            Some((id, name, end))
        })
        .collect()
}

enum Found<'a> {
    Response(Box<FunctionResponse<'a>>),
    Text(Cow<'a, str>),
    Image(ImageSource<'a>),
    Other,
}

impl<'a> Found<'a> {
    fn of(piece: Piece<'a>) -> Self {
        let part = match piece {
            Piece::Text(text) => return Self::Text(text),
            Piece::Part(part) => *part,
        };
        if let Some(response) = part.function_response {
            return Self::Response(response);
        }
        if let Some(text) = part.text {
            return Self::Text(text);
        }
        image(part.inline_data.map(|data| *data), part.file_data).map_or(Self::Other, Self::Image)
    }
}

fn end<'a>(
    name: &str,
    status: Option<&CallStatus<'_>>,
    found: Vec<Found<'a>>,
    diff: Option<FileDiff<'a>>,
) -> ToolEnd<'a> {
    let mut end = ToolEnd::default();
    let (mut text, mut answered) = (None::<Cow<'a, str>>, false);
    for piece in found {
        match piece {
            // B-11: the first response counts.
            Found::Response(response) if !answered => {
                answered = true;
                if let Some(response) = response.response {
                    end.output = response.output.and_then(told);
                    end.error = response.error.and_then(told).filter(|error| !error.is_empty());
                }
                let media = response.parts.into_iter().flat_map(parts);
                end.images.extend(
                    media.filter_map(|part| image(part.inline_data.map(|data| *data), part.file_data)),
                );
            }
            Found::Text(piece) => match &mut text {
                Some(text) => text.to_mut().push_str(&piece),
                None => text = Some(piece),
            },
            Found::Image(image) => end.images.push(image),
            Found::Response(_) | Found::Other => {}
        }
    }
    if !answered {
        end.output = text;
    }
    end.failed = status == Some(&CallStatus::Error) && end.error.is_none();
    end.cancelled = status == Some(&CallStatus::Cancelled);
    if tool::class(name) == Class::Command {
        // One that ran tells its output, however it ended.
        end.refused = end.error.is_some() && end.output.is_none();
        let told = end.output.as_deref().filter(|_| !end.cancelled && name == "run_shell_command");
        if let Some(report) = told.and_then(shell_end) {
            end.killed = report.exit_code.is_none() && report.signal.is_some();
            // 0 is never said: a command that ran to its end and says nothing else ended with it.
            let ended_well = report.process_group.is_some() && !end.killed;
            end.exit_code = report.exit_code.or(ended_well.then_some(0));
        }
    }
    if let Some(diff) = diff {
        let before = diff.original_content.unwrap_or_default();
        end.created = Some(diff.is_new_file.unwrap_or(before.is_empty()));
        (end.before, end.after, end.diff) = (Some(before), diff.new_content, diff.file_diff);
    }
    end
}

/// What JavaScript would take for something (B-11): no null, no zero. An empty text is known to be empty.
fn told(payload: Payload<'_>) -> Option<Cow<'_, str>> {
    match payload {
        Payload::Text(text) => Some(text),
        Payload::Value(Value::Null | Value::Bool(false)) => None,
        Payload::Value(Value::Number(number)) if number.as_f64() == Some(0.0) => None,
        Payload::Value(value) => Some(Cow::Owned(value.to_string())),
    }
}

fn input(args: Option<&Raw<'_>>) -> Value {
    args.and_then(|args| args.decode().ok()).unwrap_or_else(|| Value::Object(serde_json::Map::new()))
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
