//! What happens in a session, as the updates that a client reads; and how a turn ended.

use std::collections::HashMap;

use alhena_model::judge::finish;
use alhena_model::{
    Event, EventKind, FailureKind, FileChange, Outcome, Prices, Source, Status, Timestamp, ToolError, Usage,
};
use alhena_wire::acp::{AgentMessage, Update};
use alhena_wire::rpc::Message;
use serde_json::{Value, json};

use super::Refusal;
use super::ask::Client;
use super::shown::{Shown, diff_content, hunks, printed, text_content};
use crate::with;

/// What all of Gemini CLI's models take at most.
const CONTEXT_WINDOW: u64 = 1 << 20;

/// The updates of one session.
#[derive(Debug)]
pub struct Updates {
    client: Client,
    dir: String,
    calls: HashMap<String, Shown>,
    prices: Option<Prices>,
    /// What was used in this session, as far as it is known.
    used: Usage,
}

/// Whether something happens now, or is told of a session that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The client has said the prompt itself.
    Now,
    /// It wants to be told that, too.
    Before,
}

impl Updates {
    /// For a session in this directory.
    pub fn new(client: Client, dir: &str) -> Self {
        let prices = Prices::shipped().ok();
        Self { client, dir: dir.to_owned(), calls: HashMap::new(), prices, used: Usage::default() }
    }

    /// A line of the agent's: what it shows of a call is kept for when that is told.
    pub fn line(&mut self, line: &[u8]) {
        let Ok(message) = Message::read(line) else { return };
        let (call, asked) = match AgentMessage::of(&message) {
            AgentMessage::Update { update: Update::Call(call), .. } => (call, false),
            AgentMessage::Asks { call, .. } => (call, true),
            _ => return,
        };
        let shown = self.calls.entry(call.id.clone()).or_default();
        shown.told(&call);
        shown.asked |= asked;
    }

    /// What follows from an event, each an update.
    pub fn event(&mut self, event: &Event, when: When) -> Vec<Value> {
        match &event.kind {
            EventKind::Prompt { text } if when == When::Before => vec![chunk("user_message_chunk", text)],
            EventKind::Text { delta } => vec![chunk("agent_message_chunk", delta)],
            EventKind::Thinking { subject, text } => {
                let heading = if subject.is_empty() { String::new() } else { format!("**{subject}**\n") };
                vec![chunk("agent_thought_chunk", &format!("{heading}{text}"))]
            }
            EventKind::ToolCall { id, name, class, input, .. } => {
                let shown = self.calls.entry(id.clone()).or_default();
                shown.called(name, *class, input);
                let status = if shown.asked { "pending" } else { "in_progress" };
                vec![self.announce(id, status)]
            }
            EventKind::ToolResult { id, name, ok, output, error, exit_code, cancelled } => {
                let mut out = Vec::new();
                if self.calls.get(id).is_none_or(|shown| !shown.announced) {
                    let shown = self.calls.entry(id.clone()).or_default();
                    shown.called(name, alhena_model::tool::class(name), &Value::Null);
                    out.push(self.announce(id, "in_progress"));
                }
                out.push(self.result(id, *ok, output.as_deref(), error.as_deref(), *exit_code, *cancelled));
                if let (true, "write_todos") = (*ok, name.as_str()) {
                    let input = self.calls.get(id).and_then(|shown| shown.input.as_ref());
                    out.extend(plan(input, output.as_deref()));
                }
                out
            }
            EventKind::FileChange(change) => self.change(change).into_iter().collect(),
            EventKind::Usage(call) => self.usage(&call.usage, event.source).into_iter().collect(),
            EventKind::Warning { message } => self.notice(message).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Something to know, for a client that shows notices.
    pub fn notice(&self, message: &str) -> Option<Value> {
        let notice = || json!({"sessionUpdate": "notice", "severity": "warning", "title": message});
        self.client.notices.then(notice)
    }

    fn announce(&mut self, id: &str, status: &str) -> Value {
        let shown = self.calls.entry(id.to_owned()).or_default();
        let kind =
            if std::mem::replace(&mut shown.announced, true) { "tool_call_update" } else { "tool_call" };
        update(kind, shown.fields(id, status))
    }

    /// What a client is asked about, with the complete arguments, and where that would be done if not in the session's directory.
    pub fn question(&self, id: &str, title: &str, input: &Value, elsewhere: Option<&str>) -> Value {
        let asked = match self.calls.get(id) {
            Some(shown) => shown.fields(id, "pending"),
            None => json!({"toolCallId": id, "title": title, "status": "pending"}),
        };
        let input = input.as_object().filter(|input| !input.is_empty()).cloned().map(Value::from);
        let mut asked = with(asked, [("rawInput", input)]);
        if let (Some(elsewhere), Some(Value::String(title))) = (elsewhere, asked.get_mut("title")) {
            title.push(' ');
            title.push_str(elsewhere);
        }
        asked
    }

    /// A call was allowed, and runs.
    pub fn runs(&self, id: &str) -> Value {
        update("tool_call_update", json!({"toolCallId": id, "status": "in_progress"}))
    }

    fn result(
        &self,
        id: &str,
        ok: bool,
        output: Option<&str>,
        error: Option<&ToolError>,
        exit_code: Option<i32>,
        cancelled: Option<bool>,
    ) -> Value {
        let shown = self.calls.get(id);
        let mut content = shown.filter(|_| ok).map(Shown::diff_content).unwrap_or_default();
        let is_command = shown.is_some_and(Shown::is_command);
        // A change speaks for itself.
        let output = output.filter(|output| !output.trim().is_empty() && content.is_empty());
        let failed = error.map(|error| error.message.as_str()).filter(|message| !message.is_empty());
        content.extend(
            failed.filter(|message| output.is_none_or(|output| !output.contains(message))).map(text_content),
        );
        content.extend(output.map(|output| match is_command {
            true => text_content(&printed(output)),
            false => text_content(output),
        }));
        let facts = [
            ("exitCode", exit_code.map(Value::from)),
            ("cancelled", cancelled.map(Value::from)),
            ("error", error.filter(|error| !error.kind.is_empty()).map(|error| error.kind.as_str().into())),
        ];
        let raw = Some(with(json!({}), facts)).filter(|raw| *raw != json!({}));
        let status = if ok { "completed" } else { "failed" };
        let fields = json!({"toolCallId": id, "status": status, "content": content});
        update("tool_call_update", with(fields, [("rawOutput", raw)]))
    }

    /// A change of which the agent itself showed nothing.
    fn change(&self, change: &FileChange) -> Option<Value> {
        let (id, diff) = (change.call_id.as_deref()?, change.diff.as_deref()?);
        if self.calls.get(id).is_none_or(Shown::has_diffs) {
            return None;
        }
        let path = match change.path.starts_with('/') {
            true => change.path.clone(),
            false => format!("{}/{}", self.dir.trim_end_matches('/'), change.path),
        };
        let content: Vec<Value> =
            hunks(diff).iter().map(|(before, after)| diff_content(&path, Some(before), after)).collect();
        let locations = json!([{ "path": path }]);
        let fields = json!({"toolCallId": id, "content": content, "locations": locations});
        (!content.is_empty()).then(|| update("tool_call_update", fields))
    }

    fn usage(&mut self, usage: &Usage, source: Source) -> Option<Value> {
        for (model, tokens) in &usage.models {
            self.used.add(model, tokens);
        }
        // A call beside the conversation says nothing about how full its context is.
        if usage.all.total == 0 || source == Source::Derived {
            return None;
        }
        let cost = self.prices.as_ref().and_then(|prices| prices.cost_of_sum(&self.used, Timestamp::now()));
        let fields = json!({
            "used": usage.all.total,
            "size": CONTEXT_WINDOW,
            "_meta": {"alhena": {"usage": usage}},
        });
        let cost = cost.map(|cost| json!({"amount": cost.amount, "currency": "USD"}));
        Some(update("usage_update", with(fields, [("cost", cost)])))
    }

    /// A turn is over: the answer to its prompt. Only what is known to be a success is called the end of a turn.
    pub fn end(&mut self, outcome: &Outcome) -> Result<Value, Refusal> {
        self.calls.clear();
        let limited = outcome.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::TurnLimit);
        let cut_off = outcome.finish_reason.as_deref() == Some(finish::MAX_TOKENS);
        let reason = match (&outcome.failure, outcome.status) {
            (_, Status::Cancelled) => "cancelled",
            (Some(failure), _) if cut_off && failure.kind == FailureKind::InvalidResponse => "max_tokens",
            (None, Status::Success) => "end_turn",
            (Some(_), _) if limited => "max_turn_requests",
            (Some(failure), _) => return Err(Refusal::from(failure)),
            (None, status) => {
                let message = format!("the turn did not end well ({status:?}), and why is not known");
                return Err(Refusal::of(alhena_wire::rpc::Fault::Internal, message, ""));
            }
        };
        let all = &outcome.usage.all;
        Ok(json!({
            "stopReason": reason,
            "usage": {
                "totalTokens": all.total,
                "inputTokens": all.prompt,
                "outputTokens": all.output,
                "thoughtTokens": all.thoughts,
                "cachedReadTokens": all.cached,
            },
            "_meta": {"alhena": {
                "usage": outcome.usage,
                "files": outcome.files.iter().map(|file| json!({
                    "path": file.path, "change": file.change, "verified": file.verified,
                })).collect::<Vec<_>>(),
                "warnings": outcome.warnings,
                "durationMs": outcome.duration_ms,
            }},
        }))
    }
}

/// A notification about a session.
pub fn notification(session: &str, update: &Value) -> Value {
    json!({"sessionId": session, "update": update})
}

fn update(kind: &str, fields: Value) -> Value {
    with(fields, [("sessionUpdate", Some(kind.into()))])
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

/// The mode was changed.
pub fn mode_changed(mode: &str) -> Value {
    json!({"sessionUpdate": "current_mode_update", "currentModeId": mode})
}

/// An option was changed by another way than as an option.
pub fn options_changed(options: &Value) -> Value {
    json!({"sessionUpdate": "config_option_update", "configOptions": options})
}

/// The plan that a call of `write_todos` made: from its arguments where they are known, else from what it says of the list, as over
/// ACP (0.61.0): `1. [in_progress] Read the file`.
fn plan(input: Option<&Value>, output: Option<&str>) -> Option<Value> {
    let todos = input.and_then(|input| input.get("todos")).and_then(Value::as_array);
    let entries: Vec<Value> = match (todos, output) {
        (Some(todos), _) => todos
            .iter()
            .filter_map(|item| todo(item.get("status")?.as_str()?, item.get("description")?.as_str()?))
            .collect(),
        (None, Some(output)) => output.lines().filter_map(listed).collect(),
        (None, None) => return None,
    };
    Some(json!({"sessionUpdate": "plan", "entries": entries}))
}

fn listed(line: &str) -> Option<Value> {
    let (number, rest) = line.split_once(". [")?;
    number.parse::<u32>().ok()?;
    let (status, text) = rest.split_once("] ")?;
    todo(status, text)
}

fn todo(status: &str, text: &str) -> Option<Value> {
    let status = match status {
        "completed" => "completed",
        "in_progress" => "in_progress",
        "cancelled" => return None,
        _ => "pending",
    };
    Some(json!({"content": text, "priority": "medium", "status": status}))
}
