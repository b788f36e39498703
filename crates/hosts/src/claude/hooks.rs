//! Hooks of the program: which there are, and what they say.

use regex::Regex;
use serde_json::Value;

/// When a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// Before a tool that asks first.
    PreToolUse,
    /// After a tool that worked.
    PostToolUse,
    /// After a tool that failed.
    PostToolUseFailure,
    /// Before a prompt goes to the model.
    UserPromptSubmit,
    /// At the end of a turn.
    Stop,
}

impl HookEvent {
    const ALL: [HookEvent; 5] = [
        HookEvent::PreToolUse,
        HookEvent::PostToolUse,
        HookEvent::PostToolUseFailure,
        HookEvent::UserPromptSubmit,
        HookEvent::Stop,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            HookEvent::PreToolUse => "PreToolUse",
            HookEvent::PostToolUse => "PostToolUse",
            HookEvent::PostToolUseFailure => "PostToolUseFailure",
            HookEvent::UserPromptSubmit => "UserPromptSubmit",
            HookEvent::Stop => "Stop",
        }
    }
}

/// All hooks of a program.
#[derive(Clone, Debug, Default)]
pub struct Hooks(Vec<Hook>);

#[derive(Clone, Debug)]
struct Hook {
    event: HookEvent,
    matcher: Option<Regex>,
    callbacks: Vec<String>,
}

impl Hooks {
    /// Reads what the program says at the beginning. A hook that would never be called is an error.
    pub fn read(hooks: &Value) -> Result<Self, String> {
        let fields = match hooks {
            Value::Null => return Ok(Self::default()),
            Value::Object(fields) => fields,
            _ => return Err("the hooks are not an object".to_owned()),
        };
        let mut read = Vec::new();
        for (name, matchers) in fields {
            let matchers = matchers.as_array().map(Vec::as_slice).unwrap_or_default();
            if matchers.is_empty() {
                continue;
            }
            let event = HookEvent::ALL.into_iter().find(|event| event.name() == name).ok_or_else(|| {
                let known: Vec<&str> = HookEvent::ALL.into_iter().map(HookEvent::name).collect();
                format!(
                    "hooks for {name} would never be called: nothing in Gemini CLI tells of it; there are {}",
                    known.join(", ")
                )
            })?;
            for one in matchers {
                read.push(Hook { event, matcher: matcher(one)?, callbacks: callbacks(one) });
            }
        }
        Ok(Self(read))
    }

    /// Whether there are any for an event.
    pub fn any(&self, event: HookEvent) -> bool {
        self.0.iter().any(|hook| hook.event == event)
    }

    /// Those to call, in order. What is not about a tool has no name.
    pub fn of(&self, event: HookEvent, tool: Option<&str>) -> Vec<String> {
        let meant = |hook: &&Hook| match (&hook.matcher, tool) {
            (Some(matcher), Some(tool)) => matcher.is_match(tool),
            _ => true,
        };
        self.0
            .iter()
            .filter(|hook| hook.event == event)
            .filter(meant)
            .flat_map(|hook| hook.callbacks.iter().cloned())
            .collect()
    }
}

fn callbacks(matcher: &Value) -> Vec<String> {
    let ids = matcher.get("hookCallbackIds").and_then(Value::as_array).into_iter().flatten();
    ids.filter_map(|id| id.as_str().map(str::to_owned)).collect()
}

/// Names are meant as a whole; anything else is looked for, as in JavaScript.
fn matcher(of: &Value) -> Result<Option<Regex>, String> {
    let text = match of.get("matcher").and_then(Value::as_str) {
        None | Some("" | "*") => return Ok(None),
        Some(text) => text,
    };
    let plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-| ".contains(letter));
    let pattern = match plain {
        true => {
            let names: Vec<String> = text.split('|').map(|name| regex::escape(name.trim())).collect();
            format!("^(?:{})$", names.join("|"))
        }
        false => text.to_owned(),
    };
    Regex::new(&pattern).map(Some).map_err(|_| format!("the matcher {text:?} of a hook is no pattern"))
}

/// What a hook wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookAnswer {
    /// On a tool that is about to be used.
    pub decision: Option<Decision>,
    /// The turn is to end, and why.
    pub stop: Option<String>,
    /// What happened is not to stand, and why: a prompt, the end of a turn, a tool's result.
    pub block: Option<String>,
    /// What to tell the model.
    pub context: Option<String>,
    /// What it wants that cannot be done.
    pub impossible: Option<String>,
}

/// A hook's decision on a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may be used.
    Allow,
    /// It must not, and why.
    Deny(String),
    /// Whoever decides otherwise decides.
    Ask,
}

impl HookAnswer {
    /// Reads the answer of a hook. One that failed decides nothing, except before a tool: there it denies.
    pub fn read(event: HookEvent, answer: &Result<Value, String>) -> Self {
        let output = match answer {
            Ok(output) => output,
            Err(error) => {
                let why = format!("the hook for {} failed: {error}", event.name());
                return match event {
                    HookEvent::PreToolUse => {
                        HookAnswer { decision: Some(Decision::Deny(why)), ..HookAnswer::default() }
                    }
                    HookEvent::UserPromptSubmit => HookAnswer { block: Some(why), ..HookAnswer::default() },
                    _ => HookAnswer { stop: Some(why), ..HookAnswer::default() },
                };
            }
        };
        let specific = output.get("hookSpecificOutput").unwrap_or(&Value::Null);
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let reason =
            || text(output, "reason").unwrap_or_else(|| format!("blocked by a hook for {}", event.name()));
        let mut said = HookAnswer { context: text(specific, "additionalContext"), ..HookAnswer::default() };
        if output.get("async").and_then(Value::as_bool) == Some(true) {
            said.impossible = Some("a hook cannot answer later".to_owned());
        }
        if output.get("continue").and_then(Value::as_bool) == Some(false) {
            said.stop = Some(text(output, "stopReason").unwrap_or_else(|| "stopped by a hook".to_owned()));
        }
        match (event, text(output, "decision").as_deref()) {
            (HookEvent::PreToolUse, Some("approve")) => said.decision = Some(Decision::Allow),
            (HookEvent::PreToolUse, Some("block")) => said.decision = Some(Decision::Deny(reason())),
            (_, Some("block")) => said.block = Some(reason()),
            _ => {}
        }
        if event == HookEvent::PreToolUse {
            let why = || text(specific, "permissionDecisionReason").unwrap_or_else(reason);
            match text(specific, "permissionDecision").as_deref() {
                Some("allow") => said.decision = Some(Decision::Allow),
                Some("deny") => said.decision = Some(Decision::Deny(why())),
                Some("ask") => said.decision = Some(Decision::Ask),
                Some(other) => said.impossible = Some(format!("there is no decision {other:?} here")),
                None => {}
            }
        }
        for (key, what) in [
            (
                "updatedInput",
                "the arguments of a tool cannot be changed: Gemini CLI runs what the model asked for",
            ),
            ("updatedToolOutput", "the result of a tool cannot be changed: the model has it already"),
            ("updatedMCPToolOutput", "the result of a tool cannot be changed: the model has it already"),
        ] {
            if specific.get(key).is_some_and(|value| !value.is_null()) {
                said.impossible = Some(what.to_owned());
            }
        }
        said
    }
}
