//! promptfoo (JavaScript): one object per call, a `ProviderResponse`.
//!
//! Its plan runs the CLI with `--output-format json` and reads `stats.models` and `error` from standard output. Gemini CLI
//! 0.61.0 leaves standard output empty when a run fails, so what the plan would never see (the reason) is put where it looks.

use alhena_model::judge::{finish, without_noise};
use alhena_model::{Approval, Event, EventKind, Failure, FailureKind, Outcome};
use serde::Serialize;
use serde_json::Value;

use crate::failed_run::{FailedRun, reason_first};
use crate::native::{JsonReport, error_message, error_type};

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProviderResponse {
    /// The model's answer after its last tool result, or the value that fits the schema; absent when the call failed. Of an
    /// answer that was cut off it is the part that came, and `finishReason` says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why the answer ended, in promptfoo's words: `stop`, `length`, `content_filter`, or another of the API's in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// Why the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Tokens; absent when the CLI gave no statistics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_usage: Option<TokenUsage>,
    /// In dollars, where the price file names every model that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The session, to resume by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// What happened on the way.
    pub metadata: Metadata,
    /// The CLI's json report as text.
    pub raw: String,
}

/// Tokens as promptfoo counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Tokens sent, over all models.
    pub prompt: u64,
    /// Tokens of answers, without thoughts.
    pub completion: u64,
    /// All tokens.
    pub total: u64,
    /// Those of the prompt that came from the API's cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// What the tokens beside the answer's were for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_details: Option<CompletionDetails>,
}

/// Tokens of an answer that are not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CompletionDetails {
    /// Thoughts.
    pub reasoning: u64,
}

/// What happened on the way, for assertions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The session, as beside it: assertions see only this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Every tool call, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Files that changed.
    pub files: Vec<alhena_model::FileRecord>,
    /// Shell commands that ran.
    pub commands: Vec<alhena_model::CommandRun>,
    /// The models that answered.
    pub models: Vec<String>,
    /// How long the run took.
    pub duration_ms: u64,
    /// The CLI's exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What to know beside the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Present when `cost` is only what it was at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_is_lower_bound: Option<bool>,
    /// What went wrong, in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<alhena_model::Failure>,
}

/// One tool call, in the shape of promptfoo's own agent providers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// Ties call and result together.
    pub id: String,
    /// The CLI's name of the tool.
    pub name: String,
    /// Its arguments; `null` when they were too large to keep.
    pub input: Value,
    /// What it printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Whether it failed. A call without a result did not.
    pub is_error: bool,
}

/// So many calls are kept, and so much of what they carry.
const MOST_CALLS: usize = 1000;
const MOST_BYTES: usize = 4 << 20;
const MOST_OUTPUT: usize = 64 << 10;
/// How much of the text on standard output an error quotes.
const MOST_STDOUT: usize = 8 << 10;

/// Collects what the response tells of a run.
#[derive(Clone, Debug, Default)]
pub struct View {
    report: JsonReport,
    calls: Vec<ToolCall>,
    kept: usize,
    /// The lines on standard output that are no known events.
    stdout: String,
}

impl View {
    /// An event of the run.
    pub fn event(&mut self, event: &Event) {
        self.report.event(event);
        match &event.kind {
            EventKind::ToolCall { id, name, input, .. } if self.calls.len() < MOST_CALLS => {
                let size = input.to_string().len();
                let fits = self.kept.saturating_add(size) <= MOST_BYTES;
                self.kept += if fits { size } else { 0 };
                let input = if fits { (**input).clone() } else { Value::Null };
                self.calls.push(ToolCall {
                    id: id.clone(),
                    name: name.clone(),
                    input,
                    output: None,
                    is_error: false,
                });
            }
            EventKind::ToolResult { id, ok, output, error, .. } => {
                // Results follow their calls closely; from the end the search is short.
                let Some(call) = self.calls.iter_mut().rev().find(|call| call.id == *id) else { return };
                call.is_error = !ok;
                let output = output.as_deref().or(error.as_ref().map(|error| error.message.as_str()));
                let room = MOST_BYTES.saturating_sub(self.kept).min(MOST_OUTPUT);
                let kept = output.and_then(|output| output.get(..output.floor_char_boundary(room)));
                self.kept += kept.map_or(0, str::len);
                call.output = kept.map(str::to_owned);
            }
            EventKind::Malformed { sample, .. } => self.quote(sample),
            EventKind::Unknown { raw } if self.stdout.len() < MOST_STDOUT => self.quote(&raw.to_string()),
            _ => {}
        }
    }

    /// Keeps a line of standard output that is no known event.
    fn quote(&mut self, line: &str) {
        let room = MOST_STDOUT.saturating_sub(self.stdout.len());
        if room > 0 {
            self.stdout.push_str(line.get(..line.floor_char_boundary(room)).unwrap_or_default());
            self.stdout.push('\n');
        }
    }

    /// The response to a call. `stderr` is the CLI's standard error where the caller knows better than the outcome.
    pub fn response(self, outcome: &Outcome, stderr: Option<&str>) -> ProviderResponse {
        let error = error_text(outcome, stderr, &self.stdout).filter(|_| !is_partial(outcome));
        ProviderResponse {
            finish_reason: outcome.finish_reason.as_deref().map(finish_reason),
            output: error
                .is_none()
                .then(|| outcome.data.clone().unwrap_or_else(|| Value::from(outcome.text.last()))),
            error,
            token_usage: token_usage(outcome),
            cost: outcome.cost_usd,
            session_id: outcome.session_id.clone(),
            raw: self.report.report(outcome).to_string(),
            metadata: Metadata {
                session_id: outcome.session_id.clone(),
                tool_calls: self.calls,
                files: outcome.files.clone(),
                commands: outcome.commands.clone(),
                models: outcome.models.clone(),
                duration_ms: outcome.duration_ms,
                exit_code: outcome.exit_code,
                warnings: outcome.warnings.clone(),
                cost_is_lower_bound: outcome.cost_is_lower_bound.then_some(true),
                failure: outcome.failure.clone(),
            },
        }
    }
}

/// Whether the outcome is a part of an answer. promptfoo's own providers give it as output with its finish reason.
fn is_partial(outcome: &Outcome) -> bool {
    let cut_off =
        |failure: &Failure| failure.kind == FailureKind::InvalidResponse && failure.reported.is_none();
    outcome.failure.as_ref().is_some_and(cut_off)
        && outcome.finish_reason.as_deref().is_some_and(|reason| !finish::is_normal(reason))
        && !outcome.text.last().trim().is_empty()
}

fn finish_reason(reason: &str) -> String {
    match reason {
        finish::MAX_TOKENS => "length".to_owned(),
        reason if finish::is_filter(reason) => "content_filter".to_owned(),
        other => other.to_lowercase(),
    }
}

/// E-32: without models there is no usage.
fn token_usage(outcome: &Outcome) -> Option<TokenUsage> {
    let usage = &outcome.usage;
    let sum = |count: fn(&alhena_model::Tokens) -> u64| {
        usage.models.values().map(count).fold(0u64, u64::saturating_add)
    };
    (!usage.models.is_empty()).then(|| TokenUsage {
        prompt: sum(|tokens| tokens.prompt),
        completion: sum(|tokens| tokens.output),
        total: sum(|tokens| tokens.total),
        cached: Some(sum(|tokens| tokens.cached)).filter(|cached| *cached > 0),
        completion_details: Some(CompletionDetails { reasoning: sum(|tokens| tokens.thoughts) })
            .filter(|details| details.reasoning > 0),
    })
}

/// E-33 for an error that the CLI reported and still exited 0, E-26 within E-27 for any other exit code, E-27 for the rest.
fn error_text(outcome: &Outcome, stderr: Option<&str>, stdout: &str) -> Option<String> {
    let run = FailedRun::of(outcome, stderr)?;
    let failure = outcome.failure.as_ref();
    let message = failure.map_or("", |failure| failure.message.as_str());
    if let FailedRun::Exited { code, said } = run
        && code != 0
    {
        let reported = failure.is_some_and(|failure| failure.reported.is_some());
        let silent = !reported && without_noise(said).trim().is_empty();
        let said = reason_first(said, message);
        let quoted =
            [if silent { stdout } else { "" }, &said].into_iter().find(|text| !text.trim().is_empty());
        return Some(exit_error(code, quoted.unwrap_or(message)));
    }
    let reported = outcome.failure.as_ref().filter(|failure| {
        !matches!(run, FailedRun::NotInstalled)
            && outcome.status == alhena_model::Status::Failed
            && (failure.reported.is_some() || failure.kind == FailureKind::InvalidResponse)
    });
    Some(match reported {
        Some(failure) => format!("{}: {}", error_type(failure), error_message(failure)),
        None => format!("Gemini CLI error: {message}"),
    })
}

/// E-26 within E-27.
fn exit_error(code: i32, said: &str) -> String {
    format!("Gemini CLI error: Exit code {code}: {said}")
}

/// The approval modes of the plan (E-14).
const APPROVAL_MODES: [&str; 3] = ["suggest", "auto_edit", "full_auto"];

/// What the value of an option has to be.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Switch,
    List,
    Object,
    Mode,
    Sandbox,
    Timeout,
    /// The adapter checks it.
    Any,
}

/// Every option that is understood: the plan's first, then what came since.
const OPTIONS: [(&str, Kind); 21] = [
    ("apiKey", Kind::Text),
    ("googleCloudProject", Kind::Text),
    ("useVertexAI", Kind::Switch),
    ("model", Kind::Text),
    ("working_dir", Kind::Text),
    ("include_directories", Kind::List),
    ("approval_mode", Kind::Mode),
    ("yolo", Kind::Switch),
    ("sandbox", Kind::Sandbox),
    ("mcp_settings_path", Kind::Text),
    ("mcp_servers", Kind::Object),
    ("disable_tools", Kind::List),
    ("allow_tools", Kind::List),
    ("timeout_ms", Kind::Timeout),
    ("session_id", Kind::Text),
    ("resume", Kind::Text),
    ("system_prompt", Kind::Any),
    ("max_turns", Kind::Any),
    ("schema", Kind::Any),
    ("cache", Kind::Any),
    ("gemini_path", Kind::Any),
];

/// Checks a configuration; gives its warnings, or what is wrong with it.
pub fn validate(config: &Value) -> Result<Vec<String>, String> {
    let fields = match config {
        Value::Null => return Ok(Vec::new()), // E-03
        Value::Object(fields) => fields,
        _ => return Err("config must be an object".to_owned()),
    };
    for (key, kind) in OPTIONS {
        if let Some(value) = fields.get(key).filter(|value| !value.is_null())
            && let Err(wanted) = kind.check(value)
        {
            return Err(format!("{key} must be {wanted}, got: {value}"));
        }
    }
    let unknown = fields.keys().filter(|key| !OPTIONS.iter().any(|(known, _)| known == key));
    Ok(unknown.map(|key| format!("unknown option {key} is ignored")).collect())
}

impl Kind {
    fn check(self, value: &Value) -> Result<(), String> {
        let (good, wanted) = match (self, value) {
            (Kind::Mode, Value::String(name)) if name.parse::<Approval>().is_err() => {
                return Err(format!("one of {}", APPROVAL_MODES.join(", ")));
            }
            (Kind::Text | Kind::Mode, value) => (value.is_string(), "a string"),
            (Kind::Switch, value) => (value.is_boolean(), "true or false"),
            (Kind::List, value) => {
                let is_list = value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
                (is_list, "a list of strings")
            }
            (Kind::Object, value) => (value.is_object(), "an object"),
            (Kind::Sandbox, value) => {
                let is_engine = value.as_str().is_some_and(|engine| !engine.is_empty());
                (is_engine || value.is_boolean(), "docker, podman or false")
            }
            (Kind::Timeout, value) => (value.as_f64().is_some_and(|ms| ms > 0.0), "a number > 0"),
            (Kind::Any, _) => (true, ""),
        };
        if good { Ok(()) } else { Err(wanted.to_owned()) }
    }
}

#[cfg(test)]
mod tests;
