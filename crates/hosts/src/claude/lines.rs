//! The lines that the program reads: what happens in a turn as `assistant` and `user` messages, and its `result`.
//!
//! Claude writes one `assistant` line for each block of an answer, under one message id; so does this. Text comes in pieces
//! and is written as a whole when something else follows; the pieces themselves only on request.

mod fit;
mod uuid;

use std::collections::HashMap;

use alhena_model::judge::finish;
use alhena_model::tool::{TOOLS, claude_input};
use alhena_model::{Event, EventKind, FailureKind, Outcome, Prices, Timestamp, Tokens, Usage};
use serde_json::{Map, Value, json};

use self::fit::{cut, pieces};
use self::uuid::Uuids;
use super::permission::Question;
use super::{Mode, VERSION};
use crate::with;

/// What all of Gemini CLI's models take and give at most.
const CONTEXT_WINDOW: u64 = 1 << 20;
const MAX_OUTPUT_TOKENS: u64 = 1 << 16;

/// Answers a request of the program.
pub fn answer(id: &str, response: &Value) -> Value {
    json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": id, "response": response},
    })
}

/// Refuses one.
pub fn refusal(id: &str, error: &str) -> Value {
    json!({"type": "control_response", "response": {"subtype": "error", "request_id": id, "error": error}})
}

/// Asks the program something.
pub fn request(id: &str, request: &Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

/// Does not want the answer any more.
pub fn withdrawal(id: &str) -> Value {
    json!({"type": "control_cancel_request", "request_id": id})
}

/// The answer to the request to initialize.
pub fn initialized(pid: u32) -> Value {
    json!({
        "commands": [],
        "agents": [],
        "output_style": "default",
        "available_output_styles": ["default"],
        "models": [],
        "account": {},
        "pid": pid,
        "hooks_applied": true,
        "hook_on_failure_supported": true,
        "claude_code_version": VERSION,
    })
}

/// What is said at the head of every turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// The session, once it is known.
    pub session_id: String,
    /// The model, as it was asked for.
    pub model: String,
    /// The mode.
    pub mode: Mode,
    /// Where the session works.
    pub cwd: String,
    /// The MCP servers that it was given.
    pub mcp_servers: Vec<String>,
    /// Tools of Gemini CLI's that are not there.
    pub denied_tools: Vec<&'static str>,
}

/// The lines of a conversation.
#[derive(Debug)]
pub struct Lines {
    /// What is said at the head of every turn.
    pub head: Head,
    partial: bool,
    uuids: Uuids,
    prices: Option<Prices>,
    turns: u64,
    turn: Turn,
    /// What the turns that are over used.
    used: Usage,
}

/// What is known of the turn that goes on.
#[derive(Debug, Default)]
struct Turn {
    /// How often the model was asked, so far.
    rounds: u64,
    /// Whether it is giving an answer.
    answering: bool,
    blocks: usize,
    /// The text that was not written yet.
    text: String,
    calls: HashMap<String, (String, Value)>,
    denials: Vec<Value>,
    /// What was used, and how long it took, until it was sent on.
    before: Usage,
    before_ms: u64,
}

/// Why a turn ended that would have gone on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// The program interrupted it.
    ByProgram,
    /// A hook ended it, or wanted what cannot be done.
    ByHook(String),
}

impl Lines {
    /// Those of a new conversation, which costs as much as these prices say. The seed makes its ids unlike those of others.
    pub fn new(head: Head, partial: bool, seed: u64, prices: Option<Prices>) -> Self {
        Self {
            head,
            partial,
            uuids: Uuids::new(seed),
            prices,
            turns: 0,
            turn: Turn::default(),
            used: Usage::default(),
        }
    }

    /// A turn begins.
    pub fn begin(&mut self) -> Value {
        self.turns += 1;
        self.turn = Turn::default();
        let mut tools: Vec<&str> = TOOLS
            .iter()
            .filter(|tool| !self.head.denied_tools.contains(&tool.name))
            .map(|tool| tool.claude.unwrap_or(tool.name))
            .collect();
        tools.dedup();
        let servers: Vec<Value> =
            self.head.mcp_servers.iter().map(|name| json!({"name": name, "status": "pending"})).collect();
        let body = json!({
            "subtype": "init",
            "cwd": self.head.cwd,
            "tools": tools,
            "mcp_servers": servers,
            "model": self.head.model,
            "permissionMode": self.head.mode.name(),
            "slash_commands": [],
            "skills": [],
            "plugins": [],
            "apiKeySource": "none",
            "output_style": "default",
            "claude_code_version": VERSION,
        });
        self.line("system", body)
    }

    /// Something for people, beside the conversation.
    pub fn notice(&mut self, message: &str) -> Value {
        let body = json!({"subtype": "informational", "level": "warning", "content": cut(message)});
        self.line("system", body)
    }

    /// What an event says.
    pub fn event(&mut self, event: &Event) -> Vec<Value> {
        let mut out = Vec::new();
        match &event.kind {
            EventKind::Text { delta } => {
                self.answer(&mut out);
                if self.turn.text.is_empty() {
                    self.part(&mut out, |at| json!({"type": "content_block_start", "index": at, "content_block": {"type": "text", "text": ""}}));
                }
                self.part(&mut out, |at| json!({"type": "content_block_delta", "index": at, "delta": {"type": "text_delta", "text": delta}}));
                self.turn.text.push_str(delta);
            }
            EventKind::Thinking { subject, text } => {
                self.flush(&mut out);
                let thought = match (subject.is_empty(), text.is_empty()) {
                    (true, _) => text.clone(),
                    (false, true) => subject.clone(),
                    (false, false) => format!("{subject}: {text}"),
                };
                self.answer(&mut out);
                self.part(&mut out, |at| json!({"type": "content_block_start", "index": at, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}));
                self.part(&mut out, |at| json!({"type": "content_block_delta", "index": at, "delta": {"type": "thinking_delta", "thinking": thought}}));
                self.block(&mut out, json!({"type": "thinking", "thinking": cut(&thought), "signature": ""}));
            }
            EventKind::ToolCall { id, name, claude_name, input, .. } => {
                self.flush(&mut out);
                self.answer(&mut out);
                let input = claude_input(name, input);
                self.part(&mut out, |at| json!({"type": "content_block_start", "index": at, "content_block": {"type": "tool_use", "id": id, "name": claude_name, "input": {}}}));
                self.part(&mut out, |at| json!({"type": "content_block_delta", "index": at, "delta": {"type": "input_json_delta", "partial_json": input.to_string()}}));
                self.block(
                    &mut out,
                    json!({"type": "tool_use", "id": id, "name": claude_name, "input": input}),
                );
                self.turn.calls.insert(id.clone(), (claude_name.clone(), input));
            }
            EventKind::ToolResult { id, ok, output, error, exit_code, .. } => {
                self.flush(&mut out);
                self.end_answer(&mut out, "tool_use");
                let mut content = match (output, error) {
                    (Some(output), _) if !output.is_empty() => output.clone(),
                    (_, Some(error)) => error.message.clone(),
                    _ => String::new(),
                };
                if let Some(code) = exit_code.filter(|code| *code != 0) {
                    content = format!("Exit code {code}\n{content}");
                }
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": cut(&content), "is_error": !ok});
                let body =
                    json!({"message": {"role": "user", "content": [result]}, "parent_tool_use_id": null});
                out.push(self.line("user", body));
            }
            EventKind::Warning { message } | EventKind::Error { message } => {
                self.flush(&mut out);
                out.push(self.notice(message));
            }
            _ => {}
        }
        out
    }

    /// Remembers that a tool was not allowed.
    pub fn denied(&mut self, question: &Question) {
        self.turn.denials.push(json!({
            "tool_name": question.tool_name,
            "tool_use_id": question.tool_use_id,
            "tool_input": question.input,
        }));
    }

    /// The name and arguments of a call of this turn, as the program was told them.
    pub fn call(&self, id: &str) -> Option<&(String, Value)> {
        self.turn.calls.get(id)
    }

    fn price(&self, used: &Usage) -> Option<f64> {
        match used.all.total {
            0 => Some(0.0),
            _ => Some(self.prices.as_ref()?.cost_of_sum(used, Timestamp::now())?.amount),
        }
    }

    /// The agent has ended, but the turn goes on: what it used until now counts.
    pub fn goes_on(&mut self, outcome: &Outcome) {
        self.turn.before_ms += outcome.duration_ms;
        for (model, tokens) in &outcome.usage.models {
            self.turn.before.add(model, tokens);
        }
    }

    /// A turn is over: what was not said yet, and its result.
    pub fn end(&mut self, outcome: &Outcome, ended: Option<&Interruption>) -> Vec<Value> {
        let mut out = Vec::new();
        self.flush(&mut out);
        let finished = stop_reason(outcome);
        self.end_answer(&mut out, finished.unwrap_or("end_turn"));
        self.goes_on(outcome);
        let turn = std::mem::take(&mut self.turn.before);
        for (model, tokens) in &turn.models {
            self.used.add(model, tokens);
        }
        let (cost, used) = (self.price(&self.used), std::mem::take(&mut self.used));
        if cost.is_none() {
            let notice = self.notice("what this cost is not known: a model has no price; it is given as 0");
            out.push(notice);
        }
        let models: Map<String, Value> =
            used.models.iter().map(|(name, tokens)| (name.clone(), self.model_usage(name, tokens))).collect();
        self.used = used;
        let (subtype, error) = verdict(outcome, ended);
        let body = json!({
            "subtype": subtype,
            "duration_ms": self.turn.before_ms,
            "duration_api_ms": self.turn.before_ms,
            "is_error": error.is_some(),
            "num_turns": self.turn.rounds.max(1),
            "stop_reason": if error.is_some() { finished } else { Some("end_turn") },
            "total_cost_usd": cost.unwrap_or_default(),
            "usage": usage(&turn.all),
            "modelUsage": models,
            "permission_denials": std::mem::take(&mut self.turn.denials),
            "result_index": self.turns.saturating_sub(1),
        });
        let success = error.is_none();
        let end = [
            ("structured_output", outcome.data.clone().filter(|_| success)),
            ("result", success.then(|| cut(outcome.text.last()).into())),
            ("errors", error.map(|error| json!([error]))),
        ];
        out.push(self.line("result", with(body, end)));
        out
    }

    fn model_usage(&self, name: &str, tokens: &Tokens) -> Value {
        let cost = self.price(&Usage::of_models([(name, *tokens)]));
        json!({
            "inputTokens": fresh(tokens),
            "outputTokens": tokens.output.saturating_add(tokens.thoughts),
            "cacheReadInputTokens": tokens.cached,
            "cacheCreationInputTokens": 0,
            "webSearchRequests": 0,
            "costUSD": cost.unwrap_or_default(),
            "contextWindow": CONTEXT_WINDOW,
            "maxOutputTokens": MAX_OUTPUT_TOKENS,
        })
    }

    /// The model begins an answer, unless it is giving one.
    fn answer(&mut self, out: &mut Vec<Value>) {
        if self.turn.answering {
            return;
        }
        self.turn.rounds += 1;
        self.turn.answering = true;
        self.turn.blocks = 0;
        let message = self.message(json!([]), None);
        self.part(out, |_| json!({"type": "message_start", "message": message}));
    }

    fn end_answer(&mut self, out: &mut Vec<Value>, reason: &str) {
        if std::mem::take(&mut self.turn.answering) {
            self.part(out, |_| json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": usage(&Tokens::default())}));
            self.part(out, |_| json!({"type": "message_stop"}));
        }
    }

    /// Writes the text that came in pieces.
    fn flush(&mut self, out: &mut Vec<Value>) {
        let text = std::mem::take(&mut self.turn.text);
        if text.is_empty() {
            return;
        }
        let mut left = pieces(&text).peekable();
        while let Some(piece) = left.next() {
            let block = json!({"type": "text", "text": piece});
            match left.peek() {
                Some(_) => self.assistant(out, block),
                None => self.block(out, block),
            }
        }
    }

    /// A block that is complete.
    fn block(&mut self, out: &mut Vec<Value>, block: Value) {
        self.part(out, |at| json!({"type": "content_block_stop", "index": at}));
        self.assistant(out, block);
        self.turn.blocks += 1;
    }

    fn assistant(&mut self, out: &mut Vec<Value>, block: Value) {
        let message = self.message(json!([block]), None);
        let line = self.line("assistant", json!({"message": message, "parent_tool_use_id": null}));
        out.push(line);
    }

    fn message(&self, content: Value, stop_reason: Option<&str>) -> Value {
        json!({
            "id": format!("msg_{}_{}", self.turns, self.turn.rounds),
            "type": "message",
            "role": "assistant",
            "model": self.head.model,
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": null,
            "usage": usage(&Tokens::default()),
        })
    }

    /// A piece of an answer, for whoever wants them.
    fn part(&mut self, out: &mut Vec<Value>, event: impl FnOnce(usize) -> Value) {
        if self.partial {
            let body = json!({"event": event(self.turn.blocks), "parent_tool_use_id": null});
            let line = self.line("stream_event", body);
            out.push(line);
        }
    }

    fn line(&mut self, kind: &str, body: Value) -> Value {
        let (session, uuid) = (self.head.session_id.as_str(), self.uuids.next());
        let head = [("type", kind.into()), ("session_id", session.into()), ("uuid", uuid.into())];
        with(body, head.map(|(name, value)| (name, Some(value))))
    }
}

/// Tokens that were sent and did not come from the cache: Claude counts the others apart.
fn fresh(tokens: &Tokens) -> u64 {
    tokens.prompt.saturating_sub(tokens.cached).saturating_add(tokens.tool)
}

fn usage(tokens: &Tokens) -> Value {
    json!({
        "input_tokens": fresh(tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": tokens.cached,
        "output_tokens": tokens.output.saturating_add(tokens.thoughts),
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
    })
}

/// Claude's word for an answer that is not complete.
fn stop_reason(outcome: &Outcome) -> Option<&'static str> {
    match outcome.finish_reason.as_deref()? {
        finish::MAX_TOKENS => Some("max_tokens"),
        reason if finish::is_filter(reason) => Some("refusal"),
        _ => None,
    }
}

/// What the result is called, and what went wrong.
fn verdict(outcome: &Outcome, ended: Option<&Interruption>) -> (&'static str, Option<String>) {
    let failed = "error_during_execution";
    match ended {
        Some(Interruption::ByHook(why)) => return (failed, Some(why.clone())),
        Some(Interruption::ByProgram) if !outcome.is_success() => {
            return (failed, Some("interrupted".to_owned()));
        }
        Some(Interruption::ByProgram) | None => {}
    }
    if outcome.is_success() {
        return ("success", None);
    }
    let kind = outcome.failure.as_ref().map(|failure| failure.kind);
    let message = outcome.failure.as_ref().map_or("the turn failed", |failure| failure.message.as_str());
    let name = match kind {
        Some(FailureKind::TurnLimit) => "error_max_turns",
        Some(FailureKind::Budget) => "error_max_budget_usd",
        Some(FailureKind::Schema) => "error_max_structured_output_retries",
        _ => failed,
    };
    (name, Some(cut(message).into_owned()))
}
