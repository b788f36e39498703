//! Statistics of a turn over ACP, where the CLI's telemetry comes too late: it is written 5 s behind, and a process that goes on is
//! not waited for (0.61.0).
//!
//! A call of a model is what the session file counts; it took from the prompt, or from the last result of a tool, to the model's
//! last word. Calls that failed and were made again are not told there, and how long those of sub-agents took is not either.

use std::collections::HashMap;

use crate::statistics::Statistics;
use crate::time::Timestamp;
use crate::usage::Tokens;

/// So many calls of tools are timed at once; a model can make calls without end.
const MOST_OPEN: usize = 1000;

/// What was seen of models and tools, and when.
#[derive(Default)]
pub(super) struct Stopwatch {
    statistics: Statistics,
    since: Timestamp,
    spoke: Option<Timestamp>,
    tools: HashMap<String, Timed>,
}

struct Timed {
    since: Timestamp,
    /// None when nobody was asked, as in the telemetry of an agent that speaks ACP (0.61.0).
    decision: Option<&'static str>,
}

impl Stopwatch {
    pub(super) fn since(now: Timestamp) -> Self {
        Self { since: now, ..Self::default() }
    }

    pub(super) fn model_speaks(&mut self, now: Timestamp) {
        self.spoke = Some(now);
    }

    /// The session file has counted a call of the model.
    pub(super) fn answer(&mut self, model: &str, tokens: Tokens, now: Timestamp) {
        let ended = self.spoke.take().unwrap_or(now);
        let took = between(self.since, ended);
        self.statistics.call(model, Some("main"), took, Ok(tokens));
        self.since = self.since.max(ended);
    }

    pub(super) fn answer_of_sub_agent(&mut self, model: &str, tokens: Tokens) {
        self.statistics.call(model, Some("subagent"), 0, Ok(tokens));
    }

    pub(super) fn tool_begins(&mut self, id: &str, now: Timestamp) {
        if self.tools.len() < MOST_OPEN {
            self.tools.insert(id.to_owned(), Timed { since: now, decision: None });
        }
    }

    /// Somebody was asked; the time until then is not the tool's.
    pub(super) fn decided(&mut self, id: &str, rejected: bool, now: Timestamp) {
        if let Some(timed) = self.tools.get_mut(id) {
            *timed = Timed { since: now, decision: Some(if rejected { "reject" } else { "accept" }) };
        }
    }

    pub(super) fn tool_ends(&mut self, id: &str, name: &str, now: Timestamp) {
        self.since = self.since.max(now);
        if let Some(timed) = self.tools.remove(id).filter(|_| !name.is_empty()) {
            self.statistics.tool(name, between(timed.since, now), timed.decision);
        }
    }

    pub(super) fn finish(self) -> Option<Statistics> {
        Some(self.statistics).filter(|statistics| !statistics.is_empty())
    }
}

fn between(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.as_millis().saturating_sub(start.as_millis())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_model_is_timed_from_what_it_was_told_to_its_last_word_and_a_tool_without_the_question() {
        let mut watch = Stopwatch::since(at(100));
        let tokens = Tokens { prompt: 3, total: 3, ..Tokens::default() };
        watch.model_speaks(at(150));
        watch.tool_begins("a", at(160));
        watch.answer("m", tokens, at(170));
        watch.decided("a", false, at(300));
        watch.tool_ends("a", "write_file", at(320));
        watch.tool_begins("b", at(400));
        watch.decided("b", true, at(410));
        watch.model_speaks(at(400));
        watch.answer("m", tokens, at(500));
        watch.tool_ends("b", "write_file", at(410));
        watch.answer_of_sub_agent("n", tokens);
        let statistics = watch.finish().unwrap();
        let main = &statistics.models["m"].roles["main"];
        assert_eq!((main.requests, main.latency_ms, main.tokens.prompt), (2, 50 + 80, 6));
        assert_eq!(statistics.models["n"].roles["subagent"].requests, 1);
        let tool = &statistics.tools["write_file"];
        assert_eq!((tool.duration_ms, tool.decisions["accept"], tool.decisions["reject"]), (20, 1, 1));
    }

    #[test]
    fn a_turn_in_which_nothing_was_seen_has_no_statistics() {
        let mut watch = Stopwatch::since(at(1));
        watch.tool_ends("never began", "x", at(2));
        assert_eq!(watch.finish(), None);
    }
}
