//! How a run ended: the one object that everything else is a view of.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::failure::{Failure, FailureKind};
use crate::statistics::Statistics;
use crate::usage::Usage;

/// The result of a run. Never an error for what the agent did: a failed run is an outcome with a [`Failure`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The verdict.
    pub status: Status,
    /// All text of the model and the text after its last tool result.
    pub text: Text,
    /// The session's id, if the CLI got as far as one.
    pub session_id: Option<String>,
    /// The models that answered; the one asked for when no statistics came.
    pub models: Vec<String>,
    /// Files that changed.
    pub files: Vec<FileRecord>,
    /// Shell commands that ran.
    pub commands: Vec<CommandRun>,
    /// Tokens.
    pub usage: Usage,
    /// What it cost in US dollars by the table of prices; none when the price of a model that was used is not known.
    pub cost_usd: Option<f64>,
    /// Whether it may have cost more: some models cost more for large prompts, and of some calls only sums are known.
    pub cost_is_lower_bound: bool,
    /// How often a model was called, as far as is known: by the CLI's telemetry, which counts failed calls and the model
    /// router's too, by the answers in the session file, or by the turns in the stream.
    pub model_calls: u64,
    /// What the CLI measured; none without its telemetry. Of a prompt in a conversation or in a pool, whose telemetry comes too late,
    /// what was seen of it: calls that were answered, with the time until the model's last word, and tools.
    pub statistics: Option<Statistics>,
    /// The answer, valid against the schema that the request had.
    pub data: Option<Value>,
    /// How many tool calls the model made.
    pub tool_calls: u64,
    /// How long it took.
    pub duration_ms: u64,
    /// What to know beside the verdict.
    pub warnings: Vec<String>,
    /// Lines that were no events.
    pub malformed: Malformed,
    /// The process's exit code; none when a signal ended it or when it is not known.
    pub exit_code: Option<i32>,
    /// What went wrong; present exactly when `status` is not success.
    pub failure: Option<Failure>,
    /// Why the model's last complete answer ended, in the API's own word: `STOP`, `MAX_TOKENS`, `SAFETY`. None if it is not
    /// known, or if the API gave no reason.
    pub finish_reason: Option<String>,
    /// The CLI's own word on how it went, where it said one, for hosts that tell it from the verdict. Not in the JSON.
    pub reported: Option<Reported>,
}

/// The status in the CLI's own `result` or report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reported {
    /// It worked.
    Success,
    /// It failed.
    Error,
}

/// The verdict on a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It did what it was asked as far as can be known.
    Success,
    /// It ended by itself and did not succeed.
    #[default]
    Failed,
    /// Somebody stopped it.
    Cancelled,
    /// Its time was up.
    Timeout,
    /// It fell silent and was stopped.
    Stalled,
}

/// A file that changed during the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileRecord {
    /// As the tool or the scan named it.
    pub path: String,
    /// What became of it.
    pub change: Change,
    /// The tool that claims it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether a tool of the run says that it wrote the file. False: it changed during the run, by it or by others.
    pub claimed: bool,
    /// Whether the disk agrees.
    pub verified: bool,
    /// The change as a unified diff, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was not there before.
    Created,
    /// It was there before.
    Modified,
    /// It is gone.
    Deleted,
}

/// A shell command that the agent ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandRun {
    /// The call's id.
    pub call_id: String,
    /// The command line.
    pub command: String,
    /// Its exit code, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What it printed, cut at 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Output that was no event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Malformed {
    /// How many lines.
    pub lines: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Malformed {
    /// Counts more.
    pub fn add(&mut self, more: Malformed) {
        self.lines = self.lines.saturating_add(more.lines);
        self.bytes = self.bytes.saturating_add(more.bytes);
    }
}

/// The model's text, collected up to a limit.
///
/// The final text is a part of the whole and is not stored twice unless the whole was cut before it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    all: String,
    tail: Tail,
    truncated: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tail {
    /// The final text starts here in the whole.
    From(usize),
    /// The whole was full before the final text began.
    Own(String),
}

impl Default for Tail {
    fn default() -> Self {
        Tail::From(0)
    }
}

impl Text {
    /// At most so much of the text, and of the final text, is kept.
    pub const LIMIT: usize = 8 << 20;

    /// A text that is known as a whole.
    pub fn whole(all: impl Into<String>) -> Self {
        let mut text = Text::default();
        text.push(&all.into());
        text
    }

    /// Everything the model said, in order.
    pub fn all(&self) -> &str {
        &self.all
    }

    /// What it said after its last tool result.
    pub fn last(&self) -> &str {
        match &self.tail {
            Tail::From(start) => self.all.get(*start..).unwrap_or(""),
            Tail::Own(text) => text,
        }
    }

    /// Whether anything had to be left out.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Appends a piece.
    pub fn push(&mut self, piece: &str) {
        let fitted = append(&mut self.all, piece);
        self.truncated |= !fitted;
        if let Tail::Own(tail) = &mut self.tail {
            append(tail, piece);
        }
    }

    /// A tool result came: what follows is the final text, unless another one comes.
    pub fn start_over(&mut self) {
        self.tail = if self.truncated { Tail::Own(String::new()) } else { Tail::From(self.all.len()) };
    }
}

/// Appends what fits, in whole characters, growing in steps instead of doubling: at the limit half of a doubled
/// buffer would be unused memory.
fn append(text: &mut String, piece: &str) -> bool {
    let room = Text::LIMIT.saturating_sub(text.len());
    let fitting =
        if piece.len() <= room { piece } else { piece.get(..piece.floor_char_boundary(room)).unwrap_or("") };
    if text.capacity() - text.len() < fitting.len() {
        text.reserve_exact(fitting.len().max((text.len() / 4).clamp(64, 1 << 20)));
    }
    text.push_str(fitting);
    fitting.len() == piece.len()
}

impl Status {
    /// The verdict on a run that failed in this way.
    pub fn of(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Timeout => Status::Timeout,
            FailureKind::Stalled => Status::Stalled,
            FailureKind::Cancelled => Status::Cancelled,
            _ => Status::Failed,
        }
    }
}

impl Outcome {
    /// The outcome of a run that never began.
    pub fn not_begun(failure: Failure) -> Self {
        Self { status: Status::of(failure.kind), failure: Some(failure), ..Self::default() }
    }

    /// The answer as a value of a type, if the run has one.
    pub fn data_as<T: DeserializeOwned>(&self) -> Option<Result<T, serde_json::Error>> {
        self.data.as_ref().map(T::deserialize)
    }

    /// Whether the run succeeded.
    pub fn is_success(&self) -> bool {
        self.status == Status::Success
    }

    /// The exit code of `alhena` for this outcome.
    pub fn exit_status(&self) -> u8 {
        match (&self.status, &self.failure) {
            (Status::Success, _) => 0,
            (Status::Cancelled, _) => 130,
            (Status::Timeout | Status::Stalled, _) => 124,
            (Status::Failed, Some(failure)) => failure.kind.exit_status(),
            (Status::Failed, None) => 1,
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Outcome {
    fn schema_name() -> Cow<'static, str> {
        "Outcome".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Shape::json_schema(generator)
    }
}

/// How a run ended.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Shape<'a> {
    status: Status,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    final_text: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    text_truncated: bool,
    session_id: Option<Cow<'a, str>>,
    models: Cow<'a, [String]>,
    files: Cow<'a, [FileRecord]>,
    commands: Cow<'a, [CommandRun]>,
    usage: Cow<'a, Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cost_is_lower_bound: bool,
    #[serde(default)]
    model_calls: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    statistics: Option<Cow<'a, Statistics>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, Value>>,
    tool_calls: u64,
    duration_ms: u64,
    warnings: Cow<'a, [String]>,
    malformed: Malformed,
    exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Cow<'a, Failure>>,
    /// Why the model's last complete answer ended, in the API's own word: `STOP`, `MAX_TOKENS`, `SAFETY`; null if it is not
    /// known. Only `STOP` is normal.
    #[serde(default)]
    finish_reason: Option<Cow<'a, str>>,
}

/// A null that is there is data, too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'static, Value>>, D::Error> {
    Value::deserialize(deserializer).map(|value| Some(Cow::Owned(value)))
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use Cow::Borrowed;
        Shape {
            status: self.status,
            text: Borrowed(self.text.all()),
            final_text: Borrowed(self.text.last()),
            text_truncated: self.text.truncated(),
            session_id: self.session_id.as_deref().map(Borrowed),
            models: Borrowed(&self.models),
            files: Borrowed(&self.files),
            commands: Borrowed(&self.commands),
            usage: Borrowed(&self.usage),
            cost_usd: self.cost_usd,
            cost_is_lower_bound: self.cost_is_lower_bound,
            model_calls: self.model_calls,
            statistics: self.statistics.as_ref().map(Borrowed),
            data: self.data.as_ref().map(Borrowed),
            tool_calls: self.tool_calls,
            duration_ms: self.duration_ms,
            warnings: Borrowed(&self.warnings),
            malformed: self.malformed,
            exit_code: self.exit_code,
            failure: self.failure.as_ref().map(Borrowed),
            finish_reason: self.finish_reason.as_deref().map(Borrowed),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let shape = Shape::deserialize(deserializer)?;
        let tail = if shape.text.ends_with(shape.final_text.as_ref()) {
            Tail::From(shape.text.len() - shape.final_text.len())
        } else {
            Tail::Own(shape.final_text.into_owned())
        };
        Ok(Outcome {
            status: shape.status,
            text: Text { all: shape.text.into_owned(), tail, truncated: shape.text_truncated },
            session_id: shape.session_id.map(Cow::into_owned),
            models: shape.models.into_owned(),
            files: shape.files.into_owned(),
            commands: shape.commands.into_owned(),
            usage: shape.usage.into_owned(),
            cost_usd: shape.cost_usd,
            cost_is_lower_bound: shape.cost_is_lower_bound,
            model_calls: shape.model_calls,
            statistics: shape.statistics.map(Cow::into_owned),
            data: shape.data.map(Cow::into_owned),
            tool_calls: shape.tool_calls,
            duration_ms: shape.duration_ms,
            warnings: shape.warnings.into_owned(),
            malformed: shape.malformed,
            exit_code: shape.exit_code,
            failure: shape.failure.map(Cow::into_owned),
            finish_reason: shape.finish_reason.map(Cow::into_owned),
            reported: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_text_is_what_follows_the_last_tool_result() {
        let mut text = Text::default();
        text.push("Reading. ");
        text.start_over();
        text.push("Done.");
        assert_eq!((text.all(), text.last(), text.truncated()), ("Reading. Done.", "Done.", false));
    }

    #[test]
    fn text_is_cut_at_the_limit_in_whole_characters_and_says_so() {
        let mut text = Text::default();
        text.push(&"x".repeat(Text::LIMIT - 1));
        text.push("é and more");
        assert_eq!(text.all().len(), Text::LIMIT - 1);
        assert!(text.truncated());
    }

    #[test]
    fn the_final_text_survives_a_whole_that_was_cut() {
        let mut text = Text::default();
        text.push(&"x".repeat(Text::LIMIT + 1));
        text.start_over();
        text.push("the answer");
        assert_eq!(text.last(), "the answer");
        assert_eq!(text.all().len(), Text::LIMIT);
    }

    #[test]
    fn the_exit_code_follows_from_the_verdict() {
        let exit = |status, kind: Option<FailureKind>| {
            let failure = kind.map(|kind| Failure::new(kind, ""));
            Outcome { status, failure, ..Outcome::default() }.exit_status()
        };
        let cases = [
            (Status::Success, None, 0),
            (Status::Failed, None, 1),
            (Status::Failed, Some(FailureKind::Auth), 4),
            (Status::Failed, Some(FailureKind::TurnLimit), 7),
            (Status::Timeout, Some(FailureKind::Timeout), 124),
            (Status::Stalled, Some(FailureKind::Stalled), 124),
            (Status::Cancelled, Some(FailureKind::Cancelled), 130),
        ];
        for (status, kind, code) in cases {
            assert_eq!(exit(status, kind), code, "{status:?} {kind:?}");
        }
    }

    #[test]
    fn a_final_text_that_is_no_part_of_the_whole_survives_json() {
        let mut text = Text::default();
        text.push(&"x".repeat(Text::LIMIT + 1));
        text.start_over();
        text.push("the answer");
        let outcome = Outcome { text, ..Outcome::default() };
        let json = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), outcome);
    }

    #[test]
    fn an_outcome_survives_json() {
        let mut text = Text::whole("first ");
        text.start_over();
        text.push("last");
        let (session_id, data) = (Some("s".into()), Some(Value::Null));
        let outcome = Outcome { text, session_id, data, exit_code: Some(1), ..Outcome::default() };
        let json = serde_json::to_string(&outcome).unwrap();
        assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), outcome);
    }
}
