//! One answer of the model: the steps it is sent in, how it ends, and which requests it is for.
//!
//! Gemini CLI (0.61.0) shows every SSE chunk as one `message` delta, asks again when a stream ends without a finish
//! reason, and counts the tokens of the last `usageMetadata` it saw. So each of these can be scripted on its own.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::RecordedRequest;
use crate::step::{self, Call, Step};

/// One answer of the model.
///
/// ```
/// use alhena_scripted::Turn;
/// use serde_json::json;
///
/// let turn = Turn::new()
///     .thought("Planning", "A file is needed.")
///     .text("Writing it. ")
///     .call("write_file", json!({"file_path": "a.txt", "content": "hi\n"}));
/// # let _ = turn;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Turn {
    /// Only for requests like this; without it, for any request.
    pub when: Option<When>,
    /// How many requests this turn answers before it is used up; 1 when not given.
    pub times: Option<u32>,
    /// Never used up: a rule that answers every request it matches.
    pub always: bool,
    /// Seconds to wait before anything is sent, not even the headers.
    #[serde(deserialize_with = "seconds")]
    #[cfg_attr(feature = "schema", schemars(with = "f64"))]
    pub delay: Duration,
    /// Never answer at all: the request is read, and no header is sent.
    pub hang: bool,
    /// Close the connection without an answer.
    pub drop: bool,
    /// Reset the connection (RST) without an answer.
    pub reset: bool,
    /// The HTTP status; anything but 200 sends an error instead of the steps.
    pub status: Option<u16>,
    /// The `error` object of an HTTP error, with its `details`; made up from the status when not given.
    pub error: Option<Value>,
    /// The `Retry-After` header, in seconds.
    pub retry_after: Option<u64>,
    /// Further response headers.
    pub headers: BTreeMap<String, String>,
    /// What is sent, in order.
    pub steps: Vec<Step>,
    /// The finish reason: `"STOP"` when not given; `null` ends the stream without one.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub finish: Finish,
    /// The token counts of the last chunk; what is not given is made up. `null` sends none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Usage>"))]
    pub usage: Tokens,
    /// A whole `GenerateContentResponse`, instead of steps.
    pub raw: Option<Value>,
}

/// How a turn ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Finish {
    /// `STOP`.
    #[default]
    Stop,
    /// Another reason: `MAX_TOKENS`, `SAFETY`, `MALFORMED_FUNCTION_CALL` and so on.
    Other(String),
    /// The stream ends without a reason, as after a lost connection. Gemini CLI asks again, up to three times.
    Missing,
}

impl Finish {
    /// The reason as it is sent.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Finish::Stop => Some("STOP"),
            Finish::Other(reason) => Some(reason),
            Finish::Missing => None,
        }
    }
}

impl<'de> Deserialize<'de> for Finish {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Option::<String>::deserialize(deserializer)? {
            None => Finish::Missing,
            Some(reason) if reason == "STOP" => Finish::Stop,
            Some(reason) => Finish::Other(reason),
        })
    }
}

/// Token counts, under the API's own names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the prompt, including the cached ones; 100 when not given.
    pub prompt_token_count: Option<u64>,
    /// Tokens of the answer; a quarter of its characters, and five for a call, when not given.
    pub candidates_token_count: Option<u64>,
    /// Tokens of the thoughts; a quarter of their characters when not given.
    pub thoughts_token_count: Option<u64>,
    /// How many of the prompt's tokens came from the cache.
    pub cached_content_token_count: Option<u64>,
    /// Tokens of tool definitions and results.
    pub tool_use_prompt_token_count: Option<u64>,
    /// The sum; prompt, answer and thoughts when not given.
    pub total_token_count: Option<u64>,
}

/// Whether a turn reports its token counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// With these, and made up ones where none is given.
    Counted(Usage),
    /// Not at all.
    Missing,
}

impl Default for Tokens {
    fn default() -> Self {
        Tokens::Counted(Usage::default())
    }
}

impl<'de> Deserialize<'de> for Tokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<Usage>::deserialize(deserializer)?.map_or(Tokens::Missing, Tokens::Counted))
    }
}

impl Turn {
    /// An empty turn, which finishes with `STOP`.
    pub fn new() -> Self {
        Turn::default()
    }

    /// A turn that says this and stops.
    pub fn say(text: impl Into<String>) -> Self {
        Turn::new().text(text)
    }

    /// A turn that is this `GenerateContentResponse`, whole.
    pub fn response(raw: Value) -> Self {
        Turn { raw: Some(raw), ..Turn::default() }
    }

    /// A turn that fails with this HTTP status and the API's usual words for it.
    pub fn status(status: u16) -> Self {
        Turn { status: Some(status), ..Turn::default() }
    }

    /// A turn that fails with this HTTP status and this `error` object.
    pub fn error(status: u16, error: Value) -> Self {
        Turn { status: Some(status), error: Some(error), ..Turn::default() }
    }

    /// A 429 that asks to wait (`google.rpc.RetryInfo`), as for requests per minute.
    pub fn rate_limited(delay: Duration) -> Self {
        Turn::error(429, crate::answer::rate_limit(delay))
    }

    /// A 429 for a daily quota (`google.rpc.QuotaFailure`), which Gemini CLI does not try again.
    pub fn daily_quota() -> Self {
        Turn::error(429, crate::answer::daily_quota())
    }

    /// Adds a chunk of text.
    pub fn text(self, text: impl Into<String>) -> Self {
        self.step(Step::Text(text.into()))
    }

    /// Adds a text in chunks of `size` characters, `pause` apart.
    pub fn chunks(self, text: impl Into<String>, size: usize, pause: Duration) -> Self {
        self.step(Step::Chunks { text: text.into(), size: size.max(1), pause })
    }

    /// Adds a thought with its subject.
    pub fn thought(self, subject: &str, text: &str) -> Self {
        self.step(Step::Thought(format!("**{subject}**\n{text}")))
    }

    /// Adds a function call without an id.
    pub fn call(self, name: impl Into<String>, args: Value) -> Self {
        self.step(Step::Calls(vec![Call { name: name.into(), args, id: None }]))
    }

    /// Adds parallel function calls, all in one chunk.
    pub fn calls<N: Into<String>>(self, calls: impl IntoIterator<Item = (N, Value)>) -> Self {
        let calls = calls.into_iter().map(|(name, args)| Call { name: name.into(), args, id: None });
        let calls = calls.collect();
        self.step(Step::Calls(calls))
    }

    /// Adds a pause.
    pub fn sleep(self, pause: Duration) -> Self {
        self.step(Step::Sleep(pause))
    }

    /// Adds a place where the stream waits for [`Server::release`](crate::Server::release).
    pub fn gate(self, label: impl Into<String>) -> Self {
        self.step(Step::Gate(label.into()))
    }

    /// Hangs for ever: at this point of the stream.
    pub fn hang(self) -> Self {
        self.step(Step::Hang)
    }

    /// Hangs for ever before the headers.
    pub fn hang_before_headers(mut self) -> Self {
        self.hang = true;
        self
    }

    /// Closes the connection at this point of the stream.
    pub fn drop_connection(self) -> Self {
        self.step(Step::Drop)
    }

    /// Resets the connection (RST) at this point of the stream.
    pub fn reset(self) -> Self {
        self.step(Step::Reset)
    }

    /// Writes these bytes into the stream as they are.
    pub fn raw(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(Step::Raw(bytes.into()))
    }

    /// Adds an event whose JSON is cut short.
    pub fn malformed(self) -> Self {
        self.raw(&b"data: {\"candidates\": [{\"content\":\r\n\r\n"[..])
    }

    /// Adds a step.
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Sets the finish reason.
    pub fn finish(mut self, reason: &str) -> Self {
        self.finish = if reason == "STOP" { Finish::Stop } else { Finish::Other(reason.to_owned()) };
        self
    }

    /// Ends the stream without a finish reason.
    pub fn without_finish(mut self) -> Self {
        self.finish = Finish::Missing;
        self
    }

    /// Sets token counts.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = Tokens::Counted(usage);
        self
    }

    /// Waits before the headers.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Adds the `Retry-After` header, in seconds.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Adds a response header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// Answers only requests like this.
    pub fn when(mut self, when: When) -> Self {
        self.when = Some(when);
        self
    }

    /// Answers this many requests.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Answers every request it matches.
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    step::duration(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
}

/// A pattern for requests; all that is given must hold.
///
/// ```
/// use alhena_scripted::{Turn, When};
///
/// let turn = Turn::say("The file is written.").when(When::new().response_of("write_file"));
/// # let _ = turn;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The model's name contains this; `a|b` for one of several.
    pub model: Option<String>,
    /// The last text of the user contains this.
    pub prompt: Option<String>,
    /// The text of any content contains this.
    pub text: Option<String>,
    /// The request brings the result of this tool (in its last content).
    pub response_of: Option<String>,
    /// The request offers this tool.
    pub offers: Option<String>,
    /// The request is the n-th of its run, from 1; requests of the same kind are counted.
    pub request: Option<usize>,
    /// The body, as it was sent, contains this.
    pub body: Option<String>,
}

impl When {
    /// Matches every request.
    pub fn new() -> Self {
        When::default()
    }

    /// Only when the model's name contains this; `a|b` for one of several.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Only when the last text of the user contains this.
    pub fn prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt = Some(text.into());
        self
    }

    /// Only when the text of any content contains this.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Only when the request brings the result of this tool.
    pub fn response_of(mut self, tool: impl Into<String>) -> Self {
        self.response_of = Some(tool.into());
        self
    }

    /// Only when the request offers this tool.
    pub fn offers(mut self, tool: impl Into<String>) -> Self {
        self.offers = Some(tool.into());
        self
    }

    /// Only for the n-th request of the run, from 1.
    pub fn request(mut self, number: usize) -> Self {
        self.request = Some(number);
        self
    }

    /// Only when the body, as it was sent, contains this.
    pub fn body(mut self, text: impl Into<String>) -> Self {
        self.body = Some(text.into());
        self
    }

    /// Whether this request is meant.
    pub fn matches(&self, request: &RecordedRequest) -> bool {
        let holds = |wanted: &Option<String>, test: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(test);
        holds(&self.model, &|names| names.split('|').any(|name| request.model.contains(name)))
            && holds(&self.prompt, &|text| request.prompt().is_some_and(|prompt| prompt.contains(text)))
            && holds(&self.text, &|text| request.texts().any(|each| each.contains(text)))
            && holds(&self.response_of, &|tool| request.responses().any(|(name, _)| name == tool))
            && holds(&self.offers, &|tool| request.tools().any(|name| name == tool))
            && holds(&self.body, &|text| request.raw_body.contains(text))
            && self.request.is_none_or(|number| number == request.number)
    }
}
