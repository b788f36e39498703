//! Whether a tool may be used: by hooks, by rules, by the mode, and then by the program.

use alhena_agent::Permission;
use alhena_agent::rules::{self, Decision};
use alhena_hosts::claude::Mode;
use alhena_hosts::claude::hooks::{self, HookAnswer, HookEvent};
use alhena_hosts::claude::lines::{self, Interruption};
use alhena_hosts::claude::permission::{Question, Update, Verdict};
use alhena_model::tool::Class;
use serde_json::{Value, json};

use super::pending::{Purpose, Waiting};
use super::serve::{Serving, Stage};
use super::{start, withdraw, write};
use crate::commands::happening::Break;
use crate::output::say;

impl Serving {
    /// The agent wants to use a tool.
    pub fn asked(&mut self, permission: Permission) -> Result<(), Break> {
        let question = question(&permission);
        let input = json!({
            "tool_name": question.tool_name,
            "tool_input": question.input,
            "tool_use_id": question.tool_use_id,
        });
        let callbacks = self.hooks.of(HookEvent::PreToolUse, question.certain_name());
        let tool = self.pending.wait(Waiting { permission, question, said: Vec::new() });
        for callback in callbacks {
            self.call(HookEvent::PreToolUse, &callback, Purpose::PreToolUse(tool), &input)?;
        }
        self.decide(tool)
    }

    /// Decides on a tool, once all hooks have spoken.
    pub fn decide(&mut self, tool: u64) -> Result<(), Break> {
        if self.pending.hooks_before(tool) > 0 {
            return Ok(());
        }
        let Some(waiting) = self.pending.waiting(tool) else { return Ok(()) };
        match by_hooks(&waiting.said) {
            Some(Ok(())) => return self.allow(tool),
            Some(Err(why)) => return self.reject(tool, &why),
            None => {}
        }
        let (class, name) = (waiting.question.class, waiting.question.tool_name.clone());
        let asked_by_hook = waiting.said.iter().any(|said| said.decision == Some(hooks::Decision::Ask));
        let ruling = self
            .rules
            .decide(&rules::Question::from(waiting.permission.question()))
            .map(|ruling| (ruling.decision, ruling.to_string()));
        match ruling {
            Some((Decision::Deny, why)) => return self.reject(tool, &format!("{name} is {why}")),
            Some((Decision::Allow, _)) if !asked_by_hook => return self.allow(tool),
            _ => {}
        }
        let by_mode = match self.options.mode {
            Mode::BypassPermissions => true,
            Mode::AcceptEdits => class == Class::FileWrite || is_harmless(class),
            // Only hooks make Gemini CLI ask about these.
            Mode::Default | Mode::DontAsk | Mode::Plan => is_harmless(class),
        };
        if by_mode && !asked_by_hook {
            return self.allow(tool);
        }
        if self.options.mode == Mode::DontAsk || !self.options.asks || self.input_over {
            let mode = self.options.mode.name();
            let why =
                format!("{name} needs a permission, which nobody can give: the permission mode is {mode}");
            return self.reject(tool, &why);
        }
        let Some(waiting) = self.pending.waiting(tool) else { return Ok(()) };
        let request = waiting.question.request();
        let id = self.pending.ask(Purpose::Permission(tool));
        Ok(write(&lines::request(&id, &request))?)
    }

    /// The program has decided.
    pub fn decided(&mut self, tool: u64, answer: &Result<Value, String>) -> Result<(), Break> {
        let Some(waiting) = self.pending.waiting(tool) else { return Ok(()) };
        match Verdict::read(answer, &waiting.question.input) {
            Verdict::Allow(updates) => {
                for update in updates {
                    self.update(update)?;
                }
                self.allow(tool)
            }
            Verdict::Deny { message, interrupt } => {
                self.reject(tool, &message)?;
                if interrupt {
                    self.interrupt(Interruption::ByProgram);
                }
                Ok(())
            }
            Verdict::Impossible(why) => {
                self.notice(&why)?;
                self.reject(tool, &why)
            }
        }
    }

    fn update(&mut self, update: Update) -> Result<(), Break> {
        let done = match update {
            Update::Mode(mode) => self.set_mode(mode),
            Update::Allow(rule) => start::add_rule(&mut self.rules, Decision::Allow, &rule).map(drop),
            Update::Deny(rule) => start::add_rule(&mut self.rules, Decision::Deny, &rule).map(drop),
            Update::Impossible(why) => Err(why),
        };
        done.or_else(|why| self.notice(&why))
    }

    /// Something to know, for the program and for people.
    pub fn notice(&mut self, text: &str) -> Result<(), Break> {
        say(format_args!("warning: {text}"));
        Ok(write(&self.lines.notice(text))?)
    }

    fn allow(&mut self, tool: u64) -> Result<(), Break> {
        if let Some(waiting) = self.pending.decided(tool) {
            waiting.permission.allow_once();
        }
        Ok(())
    }

    fn reject(&mut self, tool: u64, why: &str) -> Result<(), Break> {
        if let Some(waiting) = self.pending.decided(tool) {
            self.lines.denied(&waiting.question);
            waiting.permission.reject(why);
        }
        Ok(())
    }

    /// No answer counts any more: the time for it is over, or the turn is.
    pub fn withdrawn(&mut self, call: &str) -> Result<(), Break> {
        let (asked, waiting) = self.pending.withdraw(call);
        withdraw(asked)?;
        if let Some(waiting) = waiting {
            self.lines.denied(&waiting.question);
        }
        Ok(())
    }

    /// Nobody is there any more who could answer: what waits is rejected.
    pub fn nobody_answers(&mut self) -> Result<(), Break> {
        let (_, waiting) = self.pending.give_up();
        for waiting in waiting {
            self.lines.denied(&waiting.question);
            waiting.permission.reject("The program has closed its end and cannot answer");
        }
        Ok(())
    }

    /// What was asked in this turn is of no use any more, but for hooks that look back.
    pub fn give_up(&mut self) -> Result<(), Break> {
        let looking_back = matches!(self.stage, Stage::Going(_));
        let (asked, waiting) = self.pending.give_up_all_but_hooks(looking_back);
        drop(waiting);
        Ok(withdraw(asked)?)
    }
}

/// What hooks say together: a denial is the strongest.
fn by_hooks(said: &[HookAnswer]) -> Option<Result<(), String>> {
    let denied = said.iter().find_map(|said| match (&said.decision, &said.impossible) {
        (Some(hooks::Decision::Deny(why)), _) | (_, Some(why)) => Some(why.clone()),
        _ => said.stop.clone(),
    });
    match denied {
        Some(why) => Some(Err(why)),
        None if said.iter().any(|said| said.decision == Some(hooks::Decision::Ask)) => None,
        None => said.iter().any(|said| said.decision == Some(hooks::Decision::Allow)).then_some(Ok(())),
    }
}

/// What Claude does without a question.
fn is_harmless(class: Class) -> bool {
    matches!(class, Class::FileRead | Class::Planning)
}

/// What the program is asked.
pub fn question(permission: &Permission) -> Question {
    let of = permission.server.as_deref().zip(permission.server_tool.as_deref());
    Question::new(&permission.call_id, &permission.tool, &permission.headline(), &permission.input)
        .of_tool(permission.named, of)
}
