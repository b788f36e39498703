//! What the program was asked and has not answered.

use std::collections::HashMap;

use alhena_agent::Permission;
use alhena_hosts::claude::hooks::{HookAnswer, HookEvent};
use alhena_hosts::claude::permission::Question;

/// A tool that waits for a decision.
pub struct Waiting {
    pub permission: Permission,
    pub question: Question,
    /// What hooks have said of it.
    pub said: Vec<HookAnswer>,
}

/// What a request of ours is for.
pub enum Purpose {
    /// May this tool be used?
    Permission(u64),
    /// A hook before this tool.
    PreToolUse(u64),
    /// A hook before the prompt, after a tool, or at the end.
    Hook(HookEvent),
}

#[derive(Default)]
pub struct Pending {
    requests: u64,
    purposes: HashMap<String, Purpose>,
    tools: u64,
    waiting: HashMap<u64, Waiting>,
}

impl Pending {
    /// A request with this purpose: its id.
    pub fn ask(&mut self, purpose: Purpose) -> String {
        self.requests += 1;
        let id = format!("alhena-{}", self.requests);
        self.purposes.insert(id.clone(), purpose);
        id
    }

    /// What an answer is for; nothing where nobody asked.
    pub fn answered(&mut self, id: &str) -> Option<Purpose> {
        self.purposes.remove(id)
    }

    /// A tool waits from now on.
    pub fn wait(&mut self, waiting: Waiting) -> u64 {
        self.tools += 1;
        self.waiting.insert(self.tools, waiting);
        self.tools
    }

    pub fn waiting(&mut self, tool: u64) -> Option<&mut Waiting> {
        self.waiting.get_mut(&tool)
    }

    pub fn decided(&mut self, tool: u64) -> Option<Waiting> {
        self.waiting.remove(&tool)
    }

    /// No answer counts any more for this call: what was asked about it, and the tool.
    pub fn withdraw(&mut self, call: &str) -> (Vec<String>, Option<Waiting>) {
        let of_call = |(_, waiting): &(&u64, &Waiting)| waiting.permission.call_id == call;
        let Some(tool) = self.waiting.iter().find(of_call).map(|(tool, _)| *tool) else {
            return (Vec::new(), None);
        };
        let (gone, kept) = std::mem::take(&mut self.purposes).into_iter().partition(|(_, purpose)| {
            matches!(purpose, Purpose::Permission(of) | Purpose::PreToolUse(of) if *of == tool)
        });
        self.purposes = kept;
        let gone: HashMap<String, Purpose> = gone;
        (gone.into_keys().collect(), self.waiting.remove(&tool))
    }

    /// How many hooks of this kind have not answered.
    pub fn hooks(&self, event: HookEvent) -> usize {
        self.purposes.values().filter(|purpose| matches!(purpose, Purpose::Hook(of) if *of == event)).count()
    }

    /// How many hooks before this tool have not answered.
    pub fn hooks_before(&self, tool: u64) -> usize {
        self.purposes
            .values()
            .filter(|purpose| matches!(purpose, Purpose::PreToolUse(of) if *of == tool))
            .count()
    }

    /// The turn is over: what was asked about it, and the tools that wait. Hooks that look back at it may still speak.
    pub fn give_up_all_but_hooks(&mut self, keep_hooks: bool) -> (Vec<String>, Vec<Waiting>) {
        let gone = |purpose: &Purpose| !(keep_hooks && matches!(purpose, Purpose::Hook(_)));
        let asked: Vec<String> =
            self.purposes.iter().filter(|(_, purpose)| gone(purpose)).map(|(id, _)| id.clone()).collect();
        self.purposes.retain(|_, purpose| !gone(purpose));
        (asked, self.waiting.drain().map(|(_, waiting)| waiting).collect())
    }

    /// Nobody can answer: all that was asked, and the tools that wait for it.
    pub fn give_up(&mut self) -> (Vec<String>, Vec<Waiting>) {
        let asked = self.purposes.drain().map(|(id, _)| id).collect();
        (asked, self.waiting.drain().map(|(_, waiting)| waiting).collect())
    }
}
