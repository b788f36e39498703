//! The meter: it counts while a run goes on, and says whether the model may be asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use alhena_model::{Fact, Prices, Prompts, Timestamp, Tokens};
use alhena_sys::growth::Growth;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::aside::Aside;
use super::{Budget, Spent, calls_of_tool};
use crate::hooks::Asked;
use crate::prepare::RunError;
use crate::request::ResolvedRequest;
use crate::tail::SessionTail;

/// How long the counts of a call are waited for that are not in the session file when the next one is asked for. They always
/// were (0.61.0), but for calls that failed.
const PATIENCE: Duration = Duration::from_secs(1);
const AGAIN: Duration = Duration::from_millis(10);
/// How long the CLI's traces may take to name the model of a call that counts in dollars.
const PATIENCE_WITH_TRACES: Duration = Duration::from_secs(5);
/// The name of a model that nothing names.
const UNKNOWN: &str = "unknown";

/// Whether the model may be asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Permit {
    /// It may, with an answer of at most so many tokens.
    Granted { longest_answer: Option<u64> },
    /// It may not, and why.
    Refused(String),
}

/// Whether a tool that calls a model may run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolPermit {
    Granted,
    /// Not this time; the model is told why and may go on.
    Denied(String),
    /// The budget is used up.
    Refused(String),
}

/// Counts what a run spends.
#[derive(Debug)]
pub(crate) struct Meter {
    budget: Budget,
    prices: Prices,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    tail: Option<SessionTail>,
    /// Calls outside of conversations, where the CLI records them.
    aside: Option<Aside>,
    spent: Spent,
    /// Calls of conversations that were granted, those that the session file has told of, and those that it never did.
    granted: u64,
    told: u64,
    untold: u64,
    /// Calls outside of conversations.
    beside: u64,
    /// Tools that call models and have not ended, with the calls that each may make.
    tools: Vec<(String, u64)>,
    /// The CLI called a model by itself after a limit had been reached.
    overran: bool,
    /// The size of the last prompt.
    prompt: u64,
    /// What the last answer may have at most, and whether it had that.
    longest_answer: Option<u64>,
    cut: Option<u64>,
    warned: bool,
    news: Vec<String>,
    refused: Option<(String, Instant)>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("spent", &self.spent).finish_non_exhaustive()
    }
}

impl Meter {
    pub(crate) fn new(budget: Budget, prices: Prices) -> Self {
        Self { budget, prices, state: Mutex::default() }
    }

    /// The meter of a request that has limits. Those that make no sense, or cannot be kept, are refused.
    pub(crate) fn of(request: &ResolvedRequest) -> Result<Option<Arc<Self>>, RunError> {
        let (Some(budget), Some(prices)) = (Budget::of(request)?, &request.prices) else { return Ok(None) };
        Ok(Some(Arc::new(Self::new(budget, prices.clone()))))
    }

    /// Where the session files of the run will be.
    pub(crate) fn follow(&self, chats: PathBuf) {
        let tail = SessionTail::new(chats, Timestamp::now(), Growth::new()).with_sub_agents();
        self.state.lock().tail = Some(tail);
    }

    /// The limits.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Where the CLI records the answers of all calls, and traces their models. Only the first place counts.
    pub(crate) fn record(&self, responses: &Path, traces: Option<&Path>) {
        let mut state = self.state.lock();
        if state.aside.is_none() {
            state.aside = Aside::open(responses, traces).ok();
        }
    }

    /// A tool that calls a model wants to run. Several in one answer all ask before the first one runs (0.61.0), so that only
    /// one at a time is let through where it is not known what each will take.
    pub(crate) fn ask_for_tool(&self, tool: &str, session: Option<&str>) -> ToolPermit {
        let mut state = self.state.lock();
        if let Some((why, _)) = &state.refused {
            return ToolPermit::Refused(why.clone());
        }
        if let (Some(tail), Some(id)) = (&mut state.tail, session) {
            tail.session(id);
        }
        self.catch_up(&mut state);
        if let Some(why) = self.budget.exceeded_by(&state.spent) {
            state.refused = Some((why.clone(), Instant::now()));
            return ToolPermit::Refused(why);
        }
        let (by_tokens, by_dollars) = (self.budget.tokens.is_some(), self.budget.dollars.is_some());
        let counts = state.aside.as_ref();
        let countable = if by_dollars { counts.is_some_and(Aside::has_names) } else { counts.is_some() };
        if (by_tokens || by_dollars) && !countable {
            return ToolPermit::Denied(format!(
                "{tool} calls a model, and its tokens cannot be counted here, so it is denied while this run has a budget"
            ));
        }
        if (by_tokens || by_dollars) && !state.tools.is_empty() {
            return ToolPermit::Denied(format!(
                "this run has a budget, so that tools that call a model run one at a time: call {tool} again, with \
                 wait_for_previous if there are several"
            ));
        }
        let most = calls_of_tool(tool).unwrap_or(1);
        let reserved: u64 = state.tools.iter().map(|(_, calls)| calls).sum();
        if let Some(limit) = self.budget.calls
            && state.spent.calls.saturating_add(reserved).saturating_add(most) > limit
        {
            let (left, calls) = (
                limit.saturating_sub(state.spent.calls + reserved),
                if most == 1 { "call" } else { "calls" },
            );
            return ToolPermit::Denied(format!(
                "{tool} takes up to {most} model {calls}, and the budget has {left} left"
            ));
        }
        state.tools.push((tool.to_owned(), most));
        ToolPermit::Granted
    }

    /// A tool that was let through has ended.
    pub(crate) fn tool_ended(&self, tool: &str) {
        let mut state = self.state.lock();
        if let Some(at) = state.tools.iter().position(|(name, _)| name == tool) {
            state.tools.remove(at);
        }
    }

    /// The CLI wants to ask the model.
    pub(crate) fn ask(&self, asked: &Asked) -> Permit {
        let mut state = self.state.lock();
        if let Some((why, _)) = &state.refused {
            return Permit::Refused(why.clone());
        }
        let told = |pointer: &[&str]| {
            let mut value = asked.told.get(*pointer.first()?)?;
            for key in pointer.iter().skip(1) {
                value = value.get(key)?;
            }
            value.as_str()
        };
        if let (Some(tail), Some(id)) = (&mut state.tail, told(&["session_id"])) {
            tail.session(id);
        }
        // Tools have ended by now, also those that never ran. Sub-agents may be an exception.
        state.tools.clear();
        self.catch_up(&mut state);
        let model = told(&["llm_request", "model"]).unwrap_or_default();
        if self.budget.dollars.is_some() && !self.prices.models.contains_key(model) {
            state.spent.unpriced.get_or_insert_with(|| model.to_owned());
        }
        if let Some(why) = self.budget.exceeded_by(&state.spent) {
            state.refused = Some((why.clone(), Instant::now()));
            return Permit::Refused(why);
        }
        state.granted += 1;
        self.add_up(&mut state);
        let room = self.budget.room_for_answer(&state.spent, state.prompt, model, &self.prices);
        state.longest_answer = room;
        self.warn(&mut state);
        Permit::Granted { longest_answer: room }
    }

    /// Reads what the calls before took, and waits a moment for what should be there.
    fn catch_up(&self, state: &mut State) {
        let began = Instant::now();
        loop {
            self.read(state);
            let missing = state.granted.saturating_sub(state.told + state.untold);
            let nameless = state.aside.as_ref().is_some_and(Aside::is_incomplete);
            if missing > 0 && began.elapsed() >= PATIENCE {
                state.untold += missing;
            } else if missing == 0 && !nameless {
                return;
            } else if nameless && began.elapsed() >= PATIENCE_WITH_TRACES {
                return self.count_nameless(state);
            }
            std::thread::sleep(AGAIN);
        }
    }

    fn read(&self, state: &mut State) {
        if let Some(tail) = &mut state.tail {
            tail.catch_up();
            for fact in tail.news() {
                if let Fact::Usage { model, tokens, .. } | Fact::UsageAside { model, tokens } = fact {
                    state.told += 1;
                    state.prompt = tokens.prompt;
                    let answer = tokens.output.saturating_add(tokens.thoughts);
                    state.cut = state.longest_answer.filter(|most| answer >= *most);
                    self.count(state, Some(&model), &tokens);
                }
            }
        }
        for (model, tokens) in state.aside.as_mut().map(Aside::read).unwrap_or_default() {
            self.count_beside(state, Some(&model), &tokens);
        }
        // Only prices depend on the model.
        if self.budget.dollars.is_none() || state.aside.as_ref().is_some_and(|aside| !aside.has_names()) {
            self.count_nameless(state);
        }
    }

    /// Counts the calls whose model is not known. Without traces they are priced at the end, by the CLI's own sums.
    fn count_nameless(&self, state: &mut State) {
        let Some(aside) = &mut state.aside else { return };
        let model = aside.has_names().then_some(UNKNOWN);
        for tokens in aside.take_nameless() {
            self.count_beside(state, model, &tokens);
        }
    }

    /// Counts a call that the CLI was not asked about by itself. One after a limit was reached is a reason to stop it.
    fn count_beside(&self, state: &mut State, model: Option<&str>, tokens: &Tokens) {
        state.overran |= self.budget.exceeded_by(&state.spent).is_some();
        state.beside += 1;
        self.count(state, model, tokens);
    }

    fn count(&self, state: &mut State, model: Option<&str>, tokens: &Tokens) {
        let parts = [tokens.prompt, tokens.output, tokens.thoughts, tokens.tool];
        let total = match tokens.total {
            0 => parts.into_iter().fold(0, u64::saturating_add),
            total => total,
        };
        state.spent.tokens = state.spent.tokens.saturating_add(total);
        if let Some(model) = model.filter(|_| total > 0) {
            match self.prices.cost(model, tokens, Prompts::One, Timestamp::now()) {
                Some(cost) => state.spent.dollars += cost.amount,
                None => drop(state.spent.unpriced.get_or_insert_with(|| model.to_owned())),
            }
        }
        self.add_up(state);
    }

    /// A call that was made without asking counts as well.
    fn add_up(&self, state: &mut State) {
        state.spent.calls = state.granted.max(state.told).saturating_add(state.beside);
    }

    fn warn(&self, state: &mut State) {
        if state.warned {
            return;
        }
        if let Some(warning) = self.budget.nearly_used_by(&state.spent) {
            state.warned = true;
            state.news.push(warning);
        }
    }

    /// What people should know that they were not told yet. Nobody is waited for.
    pub(crate) fn news(&self) -> Vec<String> {
        let Some(mut state) = self.state.try_lock() else { return Vec::new() };
        // Files that were open once can be read to their end when they are gone.
        self.read(&mut state);
        std::mem::take(&mut state.news)
    }

    /// For how long the model has not been allowed to be asked. Nobody is waited for.
    pub(crate) fn refused_for(&self) -> Option<Duration> {
        let state = self.state.try_lock()?;
        state.refused.as_ref().map(|(_, since)| since.elapsed())
    }

    /// Whether the CLI goes on to call models although a limit is reached. Does not wait.
    pub(crate) fn is_overrun(&self) -> bool {
        self.state.try_lock().is_some_and(|state| state.overran)
    }

    /// Nobody asks any more: what people should know beside it, and why the budget ended the run, if it did. The CLI calls a
    /// call that was refused, and an answer that was cut, a success (0.61.0).
    pub(crate) fn settle(&self) -> (Vec<String>, Option<String>) {
        let mut state = self.state.lock();
        self.read(&mut state);
        self.count_nameless(&mut state);
        self.warn(&mut state);
        let Spent { tokens, dollars, calls, .. } = state.spent;
        let exceeded = self.budget.spending_limits().exceeded_by(tokens, dollars, calls);
        let cut = |most| format!("The budget is used up: the last answer was cut at {most} tokens");
        let why = state.refused.as_ref().map(|(why, _)| why.clone()).or_else(|| state.cut.map(cut));
        let why = why.or(exceeded);
        (std::mem::take(&mut state.news), why)
    }
}

impl Permit {
    /// Adds what the answer may have at most to what the CLI is told. It takes the four settings of this object together, so
    /// that the others have to stand beside it as they are.
    pub(crate) fn bound(&self, asked: &Asked, said: &mut Value) {
        let Permit::Granted { longest_answer: Some(most) } = self else { return };
        let config = asked.told.get("llm_request").and_then(|request| request.get("config"));
        let mut config: Map<String, Value> = config.and_then(Value::as_object).cloned().unwrap_or_default();
        let before = config.get("maxOutputTokens").and_then(Value::as_u64).unwrap_or(u64::MAX);
        config.insert("maxOutputTokens".to_owned(), json!(before.min(*most)));
        *said = json!({"hookSpecificOutput": {
            "hookEventName": "BeforeModel", "llm_request": {"config": config},
        }});
    }
}
