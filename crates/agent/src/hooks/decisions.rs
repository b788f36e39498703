//! The decisions that were given, for the check that each tool that ran, and each model call, had one.
//!
//! Gemini CLI takes a hook whose shell was killed for consent (0.61.0). It tells hooks no id of a call, so that calls are compared by
//! tool and arguments. The calls are those of the stream, and of the session files for sub-agents.

use std::collections::HashMap;
use std::sync::Arc;

use alhena_model::hook::UNASKED;
use alhena_model::{Event, EventKind, Fact};
use parking_lot::Mutex;
use serde_json::Value;

use super::{Asked, Moment};
use crate::request::Transport;

/// Errors of calls that end before the CLI asks anybody.
const BEFORE_HOOKS: [&str; 2] = ["invalid_tool_params", "tool_not_registered"];

/// The decisions of one process of the CLI that were not compared yet.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// When decisions are expected.
    moments: Vec<Moment>,
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    before: Vec<BeforeTool>,
    after: HashMap<String, u64>,
    models: u64,
    called: u64,
}

#[derive(Debug)]
struct BeforeTool {
    tool: String,
    input: Value,
    allowed: bool,
}

impl Decisions {
    pub(super) fn expected_at(moments: Vec<Moment>) -> Self {
        Self { moments, given: Mutex::default() }
    }

    /// A decision is given. It has to be noted before the CLI gets it.
    pub(super) fn note(&self, asked: &Asked, allowed: bool) {
        let mut given = self.given.lock();
        let tool = asked.tool().to_owned();
        match asked.moment {
            Moment::BeforeTool => {
                given.before.push(BeforeTool { tool, input: asked.input().clone(), allowed })
            }
            Moment::AfterTool => *given.after.entry(tool).or_default() += 1,
            Moment::BeforeModel => given.models += u64::from(allowed),
        }
    }

    /// Checks a call that has ended against the decisions, and returns what is wrong.
    fn check_tool(&self, tool: &str, input: &Value, ran: Ran, compare: Compare) -> Option<String> {
        let mut given = self.given.lock();
        let mut wrong = None;
        if self.moments.contains(&Moment::BeforeTool) {
            let fits = |decided: &BeforeTool| decided.tool == tool && decided.input == *input;
            // Of equal calls that succeeded as many have to be allowed.
            let exact = |decided: &BeforeTool| fits(decided) && decided.allowed == (ran == Ran::Well);
            let named = |decided: &BeforeTool| decided.tool == tool && compare == Compare::Names;
            let at = given.before.iter().position(exact);
            let at = at.or_else(|| given.before.iter().position(fits));
            let at = at.or_else(|| given.before.iter().position(named));
            let allowed = at.map(|at| given.before.remove(at).allowed);
            wrong = match (allowed, ran) {
                (None, _) => Some(format!("Gemini CLI ran {tool} without a decision of the hook")),
                (Some(false), Ran::Well) => {
                    Some(format!("Gemini CLI ran {tool} although a hook had denied it"))
                }
                (Some(_), _) => None,
            };
        }
        if self.moments.contains(&Moment::AfterTool) && ran == Ran::Well {
            match given.after.get_mut(tool).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => {
                    let shown = format!(
                        "Gemini CLI gave the result of {tool} to the model without a decision of the hook"
                    );
                    wrong = wrong.or(Some(shown));
                }
            }
        }
        wrong
    }

    /// Checks a model call that has ended against the number of decisions, and returns what is wrong.
    fn check_model(&self) -> Option<String> {
        if !self.moments.contains(&Moment::BeforeModel) {
            return None;
        }
        let mut given = self.given.lock();
        given.called += 1;
        (given.called > given.models)
            .then(|| "Gemini CLI called a model without a decision of the hook".to_owned())
    }
}

/// Which parts of a call have to equal those of its decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    /// The tool: a hook of the user's own may have changed the arguments before Alhena was asked.
    Names,
    Everything,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ran {
    Well,
    Failed,
}

/// Compares what a run does with the decisions that were given.
#[derive(Debug)]
pub(crate) struct Audit {
    decisions: Arc<Decisions>,
    transport: Transport,
    /// Where sub-agents call tools as well, one call's decision must not stand for another's.
    compare: Compare,
    /// Calls without a result.
    open: HashMap<String, (String, Value)>,
    wrong: Option<String>,
}

impl Audit {
    pub(crate) fn of(decisions: &Arc<Decisions>, transport: Transport) -> Self {
        let (decisions, compare) = (Arc::clone(decisions), Compare::Names);
        Self { decisions, transport, compare, open: HashMap::new(), wrong: None }
    }

    /// Looks at an event. Over ACP only the tools of sub-agents have hooks (0.61.0).
    pub(crate) fn event(&mut self, event: &Event) {
        match &event.kind {
            _ if self.transport == Transport::Acp => {}
            EventKind::ToolCall { id, name, input, .. } => {
                self.open.insert(id.clone(), (name.clone(), (**input).clone()));
            }
            EventKind::ToolResult { id, error, cancelled, .. } => {
                let Some((tool, input)) = self.open.remove(id) else { return };
                let kind = error.as_ref().map(|error| error.kind.as_str());
                if *cancelled == Some(true) || kind.is_some_and(|kind| BEFORE_HOOKS.contains(&kind)) {
                    return;
                }
                let ran = if kind.is_some() { Ran::Failed } else { Ran::Well };
                let compare = self.compare;
                self.found(|decisions| decisions.check_tool(&tool, &input, ran, compare));
            }
            _ => {}
        }
    }

    /// Looks at what a session file tells, of a sub-agent for example.
    pub(crate) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Usage { .. } => self.found(Decisions::check_model),
            Fact::UsageAside { .. } => {
                self.compare = Compare::Everything;
                self.found(Decisions::check_model);
            }
            _ => {}
        }
    }

    /// Looks at a call of a sub-agent. Of one that failed it is not known whether the CLI came to ask.
    pub(crate) fn call_of_sub_agent(&mut self, tool: &str, input: &Value) {
        self.compare = Compare::Everything;
        self.found(|decisions| decisions.check_tool(tool, input, Ran::Well, Compare::Everything));
    }

    fn found(&mut self, check: impl FnOnce(&Decisions) -> Option<String>) {
        if let Some(wrong) = check(&self.decisions) {
            self.wrong.get_or_insert(format!("{UNASKED}{wrong}"));
        }
    }

    /// Returns why the run has to end; once.
    pub(crate) fn wrong(&mut self) -> Option<String> {
        self.wrong.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(moment: Moment, tool: &str, input: Value) -> Asked {
        let told = json!({"tool_name": tool, "tool_input": input});
        Asked { moment, told: told.as_object().cloned().unwrap() }
    }

    fn audit(moments: &[Moment]) -> (Arc<Decisions>, Audit) {
        let decisions = Arc::new(Decisions::expected_at(moments.to_vec()));
        (Arc::clone(&decisions), Audit::of(&decisions, Transport::Headless))
    }

    fn event(kind: Value) -> Event {
        let mut event = json!({"seq": 1, "at": "2026-11-17T03:00:00Z", "source": "stream"});
        event.as_object_mut().unwrap().extend(kind.as_object().cloned().unwrap());
        serde_json::from_value(event).unwrap()
    }

    fn runs(audit: &mut Audit, id: &str, input: Value, error: Option<&str>) -> Option<String> {
        audit.event(&event(json!({
            "type": "tool_call", "id": id, "name": "write_file", "class": "file_write", "claude_name": "Write", "input": input,
        })));
        let mut result =
            json!({"type": "tool_result", "id": id, "name": "write_file", "ok": error.is_none()});
        if let Some(kind) = error {
            result["error"] = json!({"type": kind, "message": "x"});
        }
        audit.event(&event(result));
        audit.wrong()
    }

    #[test]
    fn a_tool_that_ran_needs_a_decision_of_its_own_that_allowed_it() {
        let (decisions, mut audit) = audit(&[Moment::BeforeTool]);
        let (a, b) = (json!({"file_path": "a"}), json!({"file_path": "b"}));
        decisions.note(&asked(Moment::BeforeTool, "write_file", a.clone()), true);
        decisions.note(&asked(Moment::BeforeTool, "write_file", b.clone()), false);
        decisions.note(&asked(Moment::BeforeTool, "write_file", b.clone()), false);
        assert_eq!(runs(&mut audit, "1", a.clone(), None), None);
        assert_eq!(runs(&mut audit, "2", b.clone(), Some("execution_failed")), None);
        let denied = runs(&mut audit, "3", b.clone(), None).unwrap();
        assert_eq!(denied, format!("{UNASKED}Gemini CLI ran write_file although a hook had denied it"));
        let again = runs(&mut audit, "4", a.clone(), None).unwrap();
        assert_eq!(again, format!("{UNASKED}Gemini CLI ran write_file without a decision of the hook"));
        assert!(runs(&mut audit, "5", a.clone(), Some("execution_failed")).is_some());
        for kind in BEFORE_HOOKS {
            assert_eq!(runs(&mut audit, "6", a.clone(), Some(kind)), None);
        }
    }

    #[test]
    fn other_arguments_are_those_of_another_call_where_sub_agents_call_tools_too() {
        let (decisions, mut audit) = audit(&[Moment::BeforeTool]);
        let (a, b) = (json!({"file_path": "a"}), json!({"file_path": "b"}));
        decisions.note(&asked(Moment::BeforeTool, "write_file", a.clone()), true);
        assert_eq!(runs(&mut audit, "1", b.clone(), None), None);
        decisions.note(&asked(Moment::BeforeTool, "write_file", a.clone()), true);
        decisions.note(&asked(Moment::BeforeTool, "write_file", a.clone()), true);
        audit.call_of_sub_agent("write_file", &a);
        assert_eq!(audit.wrong(), None);
        assert!(runs(&mut audit, "2", b, None).is_some());
    }

    #[test]
    fn results_and_model_calls_need_a_decision_where_one_is_expected() {
        let (decisions, mut audit) = audit(&[Moment::AfterTool, Moment::BeforeModel]);
        decisions.note(&asked(Moment::AfterTool, "write_file", json!({})), true);
        decisions.note(&asked(Moment::BeforeModel, "", Value::Null), true);
        let call = Fact::UsageAside { model: "m".to_owned(), tokens: Default::default() };
        audit.fact(&call);
        assert_eq!((audit.wrong(), runs(&mut audit, "1", json!({}), None)), (None, None));
        audit.fact(&call);
        assert!(audit.wrong().unwrap().contains("called a model"));
        assert!(runs(&mut audit, "2", json!({}), None).unwrap().contains("gave the result of write_file"));
    }
}
