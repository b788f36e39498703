//! One step of an answer, and how a scenario file writes it: `{"text": "Hello"}`, `{"sleep": 0.5}`, `{"hang": true}`.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// One thing that happens while a turn is sent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "StepJson")]
#[non_exhaustive]
pub enum Step {
    /// A chunk of text. `${TURN}` becomes the number of the turn.
    Text(String),
    /// A text cut into chunks of `size` characters, `pause` apart.
    Chunks {
        /// The whole text.
        text: String,
        /// Characters in a chunk.
        size: usize,
        /// The time between two chunks.
        pause: Duration,
    },
    /// A thought, as `**Subject**\ntext`.
    Thought(String),
    /// One or more function calls in one chunk.
    Calls(Vec<Call>),
    /// Nothing for a while.
    Sleep(Duration),
    /// Nothing until [`Server::release`](crate::Server::release) is called with this label.
    Gate(String),
    /// Nothing for ever.
    Hang,
    /// The connection is closed in the middle of the stream.
    Drop,
    /// The connection is reset (RST) in the middle of the stream.
    Reset,
    /// Bytes written into the stream as they are; for malformed events.
    Raw(Vec<u8>),
    /// A whole `GenerateContentResponse` as one event.
    Chunk(Value),
}

impl Step {
    /// The name of this kind of step, as in a scenario file.
    pub fn kind(&self) -> &'static str {
        match self {
            Step::Text(_) => "text",
            Step::Chunks { .. } => "chunks",
            Step::Thought(_) => "thought",
            Step::Calls(calls) if calls.len() == 1 => "call",
            Step::Calls(_) => "calls",
            Step::Sleep(_) => "sleep",
            Step::Gate(_) => "gate",
            Step::Hang => "hang",
            Step::Drop => "drop",
            Step::Reset => "reset",
            Step::Raw(_) => "raw",
            Step::Chunk(_) => "chunk",
        }
    }
}

/// A function call of the model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// Its arguments.
    #[serde(default = "no_arguments")]
    pub args: Value,
    /// The id; the real API sends none, and Gemini CLI then makes one up.
    #[serde(default)]
    pub id: Option<String>,
}

/// The form of a step in a scenario file: an object with one key.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum StepJson {
    /// A chunk of text; `${TURN}` in it becomes the number of the request.
    Text(String),
    /// A text in pieces.
    Chunks(ChunksJson),
    /// A thought, as `**Subject**\ntext`.
    Thought(String),
    /// A function call.
    Call(Call),
    /// Parallel function calls, in one chunk.
    Calls(Vec<Call>),
    /// Nothing for so many seconds.
    Sleep(f64),
    /// Nothing for so many milliseconds.
    SleepMs(u64),
    /// Nothing until the gate of this label is opened.
    Gate(String),
    /// Nothing for ever.
    Hang(bool),
    /// The connection is closed here.
    Drop(bool),
    /// The connection is reset (RST) here.
    Reset(bool),
    /// Bytes of the stream, as they are.
    Raw(String),
    /// Bytes of the stream, in hexadecimal.
    Hex(String),
    /// A whole `GenerateContentResponse` as one event.
    Chunk(Value),
}

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct ChunksJson {
    /// The whole text.
    text: String,
    /// Characters in a piece, at least 1.
    size: usize,
    /// Milliseconds between two pieces.
    #[serde(default)]
    pause_ms: u64,
}

impl TryFrom<StepJson> for Step {
    type Error = String;

    fn try_from(json: StepJson) -> Result<Self, String> {
        let only_true = |given: bool, step: Step, name: &str| {
            if given {
                Ok(step)
            } else {
                Err(format!("`{name}` can only be true; leave the step out instead"))
            }
        };
        match json {
            StepJson::Text(text) => Ok(Step::Text(text)),
            StepJson::Chunks(ChunksJson { size: 0, .. }) => Err("`size` must be at least 1".to_owned()),
            StepJson::Chunks(ChunksJson { text, size, pause_ms }) => {
                Ok(Step::Chunks { text, size, pause: Duration::from_millis(pause_ms) })
            }
            StepJson::Thought(text) => Ok(Step::Thought(text)),
            StepJson::Call(call) => Ok(Step::Calls(vec![call])),
            StepJson::Calls(calls) => Ok(Step::Calls(calls)),
            StepJson::Sleep(given) => Ok(Step::Sleep(duration(given)?)),
            StepJson::SleepMs(ms) => Ok(Step::Sleep(Duration::from_millis(ms))),
            StepJson::Gate(label) => Ok(Step::Gate(label)),
            StepJson::Hang(given) => only_true(given, Step::Hang, "hang"),
            StepJson::Drop(given) => only_true(given, Step::Drop, "drop"),
            StepJson::Reset(given) => only_true(given, Step::Reset, "reset"),
            StepJson::Raw(text) => Ok(Step::Raw(text.into_bytes())),
            StepJson::Hex(text) => Ok(Step::Raw(bytes_of_hex(&text)?)),
            StepJson::Chunk(value) => Ok(Step::Chunk(value)),
        }
    }
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

pub(crate) fn duration(seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{seconds} is not a number of seconds to wait"))
}

fn bytes_of_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u32>> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0);
    let digits = digits.ok_or("`hex` must be pairs of hexadecimal digits")?;
    Ok(digits
        .chunks_exact(2)
        .filter_map(|pair| u8::try_from(pair.iter().fold(0, |sum, digit| sum * 16 + digit)).ok())
        .collect())
}
