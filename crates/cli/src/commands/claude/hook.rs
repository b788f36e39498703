//! Hooks of the program: called, and heeded.

use alhena_hosts::claude::hooks::{HookAnswer, HookEvent};
use alhena_hosts::claude::lines::{self, Interruption};
use serde_json::{Value, json};

use super::pending::Purpose;
use super::serve::{Break, Serving};
use super::write;

impl Serving {
    /// Calls the hooks of an event.
    pub fn call_hooks(&mut self, event: HookEvent, tool: Option<&str>, input: &Value) -> Result<(), Break> {
        for callback in self.hooks.of(event, tool) {
            self.call(event, &callback, Purpose::Hook(event), input)?;
        }
        Ok(())
    }

    /// Calls one hook. Where nobody can answer it has failed.
    pub fn call(
        &mut self,
        event: HookEvent,
        callback: &str,
        purpose: Purpose,
        input: &Value,
    ) -> Result<(), Break> {
        if self.input_over {
            let said = HookAnswer::read(event, &Err("the program has closed its end".to_owned()));
            return self.heed(&purpose, event, said);
        }
        let mut whole = json!({
            "session_id": self.lines.head.session_id,
            "transcript_path": "",
            "cwd": self.lines.head.cwd,
            "permission_mode": self.lines.head.mode.name(),
            "hook_event_name": event.name(),
        });
        if let (Some(whole), Some(input)) = (whole.as_object_mut(), input.as_object()) {
            whole.extend(input.clone());
        }
        let mut request = json!({"subtype": "hook_callback", "callback_id": callback, "input": whole});
        if let (Some(request), Some(id)) = (request.as_object_mut(), input.get("tool_use_id")) {
            request.insert("tool_use_id".to_owned(), id.clone());
        }
        let id = self.pending.ask(purpose);
        Ok(write(&lines::request(&id, &request))?)
    }

    /// A tool has ended.
    pub fn after_tool(
        &mut self,
        id: &str,
        ok: bool,
        output: Option<&str>,
        error: Option<&str>,
    ) -> Result<(), Break> {
        let Some((name, input)) = self.lines.call(id).cloned() else { return Ok(()) };
        let told = json!({"tool_name": name, "tool_input": input, "tool_use_id": id});
        let (event, key, value) = match ok {
            true => (HookEvent::PostToolUse, "tool_response", output.unwrap_or_default()),
            false => (HookEvent::PostToolUseFailure, "error", error.or(output).unwrap_or("it failed")),
        };
        let mut whole = told;
        if let Some(fields) = whole.as_object_mut() {
            fields.insert(key.to_owned(), value.into());
        }
        self.call_hooks(event, Some(&name), &whole)
    }

    /// The program answers something that it was asked; what nobody asked is nothing.
    pub fn answered(&mut self, id: &str, answer: &Result<Value, String>) -> Result<(), Break> {
        match self.pending.answered(id) {
            None => Ok(()),
            Some(Purpose::Permission(tool)) => self.decided(tool, answer),
            Some(purpose @ Purpose::PreToolUse(_)) => {
                let said = HookAnswer::read(HookEvent::PreToolUse, answer);
                self.heed(&purpose, HookEvent::PreToolUse, said)
            }
            Some(Purpose::Hook(event)) => {
                let said = HookAnswer::read(event, answer);
                self.heed(&Purpose::Hook(event), event, said)
            }
        }
    }

    fn heed(&mut self, purpose: &Purpose, event: HookEvent, said: HookAnswer) -> Result<(), Break> {
        if let Some(why) = &said.stop {
            self.interrupt(Interruption::ByHook(why.clone()));
        }
        if let Some(why) = &said.impossible {
            self.notice(&format!("a hook for {} asks for too much: {why}", event.name()))?;
        }
        match (purpose, event) {
            (Purpose::PreToolUse(tool), _) => {
                if said.context.is_some() {
                    self.notice(
                        "a hook before a tool cannot tell the model anything: what it says is left out",
                    )?;
                }
                if let Some(waiting) = self.pending.waiting(*tool) {
                    waiting.said.push(said);
                }
                self.decide(*tool)
            }
            (_, HookEvent::UserPromptSubmit) => {
                self.context.extend(said.context);
                if let Some(why) = said.block {
                    self.ended.get_or_insert(Interruption::ByHook(why));
                }
                Ok(())
            }
            (_, HookEvent::Stop) => {
                self.goes_on.extend(said.block.into_iter().chain(said.context));
                Ok(())
            }
            _ => {
                // The model has the result and is at work on it: it cannot be told before the turn is over.
                if let Some(why) = said.block {
                    self.interrupt(Interruption::ByHook(format!(
                        "a hook does not accept what a tool did: {why}"
                    )));
                }
                if said.context.is_some() {
                    self.notice(
                        "a hook after a tool cannot tell the model anything: what it says is left out",
                    )?;
                }
                Ok(())
            }
        }
    }
}
