//! Events for tests.

use alhena_model::{Event, EventKind, Source, Timestamp, ToolError, tool};
use serde_json::Value;

pub fn event(kind: EventKind) -> Event {
    let at = Timestamp::parse("2026-11-15T17:49:10.600Z").unwrap();
    Event { seq: 0, at, source: Source::Stream, kind }
}

pub fn call(id: &str, name: &str, input: Value) -> EventKind {
    EventKind::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        class: tool::class(name),
        claude_name: tool::claude_name(name).into_owned(),
        input: Box::new(input),
    }
}

pub fn result(id: &str, name: &str, ok: bool, output: Option<&str>, error: Option<&str>) -> EventKind {
    let error = error.map(|message| ToolError { kind: "failed".to_owned(), message: message.to_owned() });
    EventKind::ToolResult {
        id: id.to_owned(),
        name: name.to_owned(),
        ok,
        output: output.map(str::to_owned),
        error: error.map(Box::new),
        exit_code: None,
        cancelled: None,
    }
}
