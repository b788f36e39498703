//! The end of a run: what is left to settle, the verdict, and the last event.

use std::sync::Arc;

use super::Interpreter;
use crate::event::{Event, EventKind, Source};
use crate::failure::{Failure, FailureKind};
use crate::judge::{self, End, Exit, Finish, Stop, Stopped, finish};
use crate::options::Setting;
use crate::outcome::{Outcome, Text};

impl Interpreter {
    pub(super) fn end(&mut self, end: &End, out: &mut Vec<Event>) -> Arc<Outcome> {
        self.announce_held(out);
        self.tell_of_failure(out);
        if let (Some(Stopped { why: Stop::NoExit, .. }), true) = (self.facts.stop, self.has_result()) {
            self.warn("Gemini CLI did not exit after its result and was stopped", out);
        }
        if self.outcome.text.truncated() {
            self.warn(format!("The text is longer than {} bytes and was cut", Text::LIMIT), out);
        }
        self.settle_quota();
        self.settle_statistics();
        let by_call = self.joined.usage.clone();
        self.settle_aside();
        let joined = std::mem::take(&mut self.joined);
        joined.settle(&mut self.outcome);
        // Over ACP the tools of one answer run one after the other, and each result looks like the end of a turn.
        let turns = if self.acp.is_some() { 0 } else { self.open.turns() };
        let turns = turns + u64::from(self.facts.answered);
        self.costing.settle(&by_call, turns, self.now, &mut self.outcome);
        self.tell_rest_of_usage(out);
        self.check_limits();
        let (status, failure) = judge::verdict(&self.facts, end);
        self.outcome.status = status;
        self.outcome.failure = failure.map(|failure| self.in_the_agents_name(failure));
        self.outcome.reported = self.facts.reported();
        self.outcome.finish_reason = self.facts.finish.reason();
        self.say_how_to_go_on();
        if self.ended_on_a_tool() {
            self.warn("The model said nothing after its last tool result", out);
        }
        let unknown = self.finish_unavailable && self.facts.finish == Finish::Unknown;
        if unknown && self.outcome.is_success() {
            self.warn(finish::UNAVAILABLE, out);
        }
        self.outcome.exit_code = match end.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::Unknown => None,
        };
        if self.outcome.models.is_empty() {
            self.outcome.models.extend(self.asked_model.take());
        }
        let elapsed =
            self.first.map(|first| self.now.as_millis().saturating_sub(first.as_millis()).max(0) as u64);
        self.outcome.duration_ms =
            end.duration_ms.or(self.stats_duration.filter(|ms| *ms > 0)).or(elapsed).unwrap_or(0);
        self.over = true;
        let outcome = Arc::new(std::mem::take(&mut self.outcome));
        self.emit(Source::Derived, EventKind::Finished { outcome: outcome.clone() }, out);
        outcome
    }

    /// A run that exceeded a limit is a failure, even if no call was refused.
    fn check_limits(&mut self) {
        let Outcome { usage, cost_usd, model_calls, .. } = &self.outcome;
        let exceeded = self.limits.exceeded_by(usage.all.total, cost_usd.unwrap_or_default(), *model_calls);
        self.facts.over_budget = self.facts.over_budget.take().or(exceeded);
    }

    /// A failure of an agent that is not Gemini CLI. What to do about Gemini CLI does not help there.
    fn in_the_agents_name(&self, mut failure: Failure) -> Failure {
        if let Some(name) = &self.agent {
            failure.message = failure.message.replace("Gemini CLI", name);
            if failure.hint.to_lowercase().contains("gemini") {
                failure.hint.clear();
            }
        }
        failure
    }

    /// A run that was cut short can be gone on with, unless its session is lost: the hint says how.
    fn say_how_to_go_on(&mut self) {
        if self.session_lost {
            return;
        }
        let (Some(failure), Some(session)) = (&mut self.outcome.failure, &self.outcome.session_id) else {
            return;
        };
        let plain = session.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let cut_short = matches!(
            failure.kind,
            FailureKind::TurnLimit
                | FailureKind::Budget
                | FailureKind::Cancelled
                | FailureKind::Timeout
                | FailureKind::DiskFull
        );
        if cut_short && plain && !session.is_empty() {
            failure.hint.push_str(&format!(" To go on with this session: {}={session}", Setting::Resume));
        }
    }

    /// A success with no last word, and nothing that explains it: the context was full, or a hook stopped the agent.
    fn ended_on_a_tool(&self) -> bool {
        let outcome = &self.outcome;
        self.facts.tool_came_back
            && outcome.data.is_none()
            && outcome.is_success()
            && outcome.warnings.is_empty()
            && outcome.text.last().trim().is_empty()
    }
}
