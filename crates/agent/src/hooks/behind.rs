//! Who decides after a tool ran, over ACP: there Gemini CLI runs no hook behind a tool (0.61.0).
//!
//! But it asks before the next model call, and by then its session file has the tool and what came of it. What the model is told
//! beside a result is told with that call and with all that follow in the same turn: the CLI does not keep it.

use std::path::PathBuf;

use alhena_model::{Fact, Timestamp};
use alhena_sys::growth::Growth;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::server::within;
use super::{Asked, Hooks, Moment, Verdict};
use crate::tail::SessionTail;

/// Asks about tools that ran.
#[derive(Default)]
pub(crate) struct Behind {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tail: Option<SessionTail>,
    contexts: Vec<String>,
}

impl std::fmt::Debug for Behind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Behind").finish_non_exhaustive()
    }
}

impl Behind {
    /// Where the session files will be.
    pub(crate) fn follow(&self, chats: PathBuf) {
        self.state.lock().tail = Some(SessionTail::new(chats, Timestamp::now(), Growth::new()).with_calls());
    }

    /// Another turn: what was told in the one before is not told again.
    pub(crate) fn begin_turn(&self) {
        self.state.lock().contexts.clear();
    }

    /// The model is about to be asked: those who decide are asked about each tool that ran since the last time. Why the turn has
    /// to end, if it does: a result that may not be shown can only be kept from the model by not asking it.
    pub(super) fn ask(&self, hooks: &Hooks, model: &Asked) -> Result<(), String> {
        let mut state = self.state.lock();
        for told in state.ran(model) {
            match within(hooks, Asked { moment: Moment::AfterTool, told }) {
                Verdict::Allow { context, .. } => state.contexts.extend(context),
                Verdict::Deny(why) | Verdict::Stop(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// What the model is to be told.
    pub(super) fn context(&self) -> Option<String> {
        let contexts = self.state.lock().contexts.join("\n");
        Some(contexts).filter(|contexts| !contexts.is_empty())
    }
}

impl State {
    /// What the CLI would say of the tools that ran since the last time.
    fn ran(&mut self, model: &Asked) -> Vec<Map<String, Value>> {
        let Some(tail) = &mut self.tail else { return Vec::new() };
        if let Some(id) = model.told.get("session_id").and_then(Value::as_str) {
            tail.session(id);
        }
        tail.catch_up();
        let mut ran = Vec::new();
        for fact in tail.news() {
            let Fact::Tool { fact, call: Some(call), .. } = fact else { continue };
            let Some(input) = call.input else { continue };
            let output = fact.output.as_deref().or(fact.error.as_deref()).unwrap_or_default();
            let shown = fact.shown.as_deref().unwrap_or(output);
            let result = match fact.error.as_deref() {
                Some(error) => json!({"llmContent": output, "returnDisplay": shown, "error": error}),
                None => json!({"llmContent": output, "returnDisplay": shown}),
            };
            let kept = ["session_id", "transcript_path", "cwd", "timestamp"].into_iter();
            let kept = kept.filter_map(|key| Some((key.to_owned(), model.told.get(key)?.clone())));
            let own = [
                ("hook_event_name", json!(Moment::AfterTool.event())),
                ("tool_name", json!(call.name)),
                ("tool_input", input),
                ("tool_response", result),
            ];
            ran.push(kept.chain(own.map(|(key, value)| (key.to_owned(), value))).collect());
        }
        ran
    }
}

/// Adds a message at the end of those that the model gets. The CLI takes all messages from a hook that gives any, so that those
/// that there are stand before it.
pub(super) fn add_context(context: &str, model: &Asked, said: &mut Value) {
    let messages = model.told.get("llm_request").and_then(|request| request.get("messages"));
    let mut messages = messages.and_then(Value::as_array).cloned().unwrap_or_default();
    messages.push(json!({"role": "user", "content": context}));
    // What is said to the CLI is an object, always.
    let Value::Object(said) = said else { return };
    let mut own = object(said.remove("hookSpecificOutput"));
    let mut request = object(own.remove("llm_request"));
    request.insert("messages".to_owned(), Value::Array(messages));
    own.insert("hookEventName".to_owned(), json!(Moment::BeforeModel.event()));
    own.insert("llm_request".to_owned(), Value::Object(request));
    said.insert("hookSpecificOutput".to_owned(), Value::Object(own));
}

fn object(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_stands_behind_all_messages_and_beside_what_else_is_said() {
        let told = json!({"llm_request": {"messages": [{"role": "user", "content": "go"}]}});
        let model = Asked { moment: Moment::BeforeModel, told: told.as_object().cloned().unwrap() };
        let config = json!({"maxOutputTokens": 5});
        let mut said = json!({"hookSpecificOutput": {"hookEventName": "BeforeModel", "llm_request": {"config": config}}});
        add_context("careful", &model, &mut said);
        let messages = json!([{"role": "user", "content": "go"}, {"role": "user", "content": "careful"}]);
        let request = json!({"config": config, "messages": messages});
        assert_eq!(
            said,
            json!({"hookSpecificOutput": {"hookEventName": "BeforeModel", "llm_request": request}})
        );
    }
}
