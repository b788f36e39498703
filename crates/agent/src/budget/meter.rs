//! The meter: it counts while a run goes on, and says whether the model may be asked.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use alhena_model::{Fact, Prices, Prompts, Timestamp, Tokens};
use alhena_sys::growth::Growth;
use serde_json::{Map, Value, json};

use super::{Budget, Spent};
use crate::hooks::Asked;
use crate::prepare::RunError;
use crate::request::Request;
use crate::tail::SessionTail;

/// How long the counts of a call are waited for that are not in the session file when the next one is asked for. They always
/// were (0.61.0), but for calls that failed.
const PATIENCE: Duration = Duration::from_millis(300);
const AGAIN: Duration = Duration::from_millis(10);

/// Whether the model may be asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Permit {
    /// It may, with an answer of at most so many tokens.
    Granted { longest_answer: Option<u64> },
    /// It may not, and why.
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
    spent: Spent,
    /// Calls of which the session file has told, and calls of which it never did.
    told: u64,
    untold: u64,
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
    pub(crate) fn of(request: &Request) -> Result<Option<Arc<Self>>, RunError> {
        let (Some(budget), Some(prices)) = (Budget::of(request)?, &request.prices) else { return Ok(None) };
        Ok(Some(Arc::new(Self::new(budget, prices.clone()))))
    }

    /// Where the session files of the run will be.
    pub(crate) fn follow(&self, chats: PathBuf) {
        let tail = SessionTail::new(chats, Timestamp::now(), Growth::new()).with_sub_agents();
        self.state().tail = Some(tail);
    }

    /// The CLI wants to ask the model.
    pub(crate) fn ask(&self, asked: &Asked) -> Permit {
        let mut state = self.state();
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
        self.catch_up(&mut state);
        let model = told(&["llm_request", "model"]).unwrap_or_default();
        if self.budget.dollars.is_some() && !self.prices.models.contains_key(model) {
            state.spent.unpriced.get_or_insert_with(|| model.to_owned());
        }
        if let Some(why) = self.budget.exceeded_by(&state.spent) {
            state.refused = Some((why.clone(), Instant::now()));
            return Permit::Refused(why);
        }
        state.spent.calls += 1;
        let room = self.budget.room_for_answer(&state.spent, state.prompt, model, &self.prices);
        state.longest_answer = room;
        self.warn(&mut state);
        Permit::Granted { longest_answer: room }
    }

    /// Reads what the calls before took, and waits a moment for what should be there.
    fn catch_up(&self, state: &mut State) {
        let until = Instant::now() + PATIENCE;
        loop {
            self.read(state);
            let missing = state.spent.calls.saturating_sub(state.told + state.untold);
            if missing == 0 {
                return;
            }
            if Instant::now() >= until {
                state.untold += missing;
                return;
            }
            std::thread::sleep(AGAIN);
        }
    }

    fn read(&self, state: &mut State) {
        let Some(tail) = &mut state.tail else { return };
        tail.catch_up();
        for fact in tail.news() {
            if let Fact::Usage { model, tokens, .. } | Fact::UsageAside { model, tokens } = fact {
                self.count(state, &model, &tokens);
            }
        }
    }

    fn count(&self, state: &mut State, model: &str, tokens: &Tokens) {
        let parts = [tokens.prompt, tokens.output, tokens.thoughts, tokens.tool];
        let total = match tokens.total {
            0 => parts.into_iter().fold(0, u64::saturating_add),
            total => total,
        };
        state.told += 1;
        state.prompt = tokens.prompt;
        state.spent.tokens = state.spent.tokens.saturating_add(total);
        match self.prices.cost(model, tokens, Prompts::One, Timestamp::now()) {
            Some(cost) => state.spent.dollars += cost.amount,
            None if total > 0 => drop(state.spent.unpriced.get_or_insert_with(|| model.to_owned())),
            None => {}
        }
        let answer = tokens.output.saturating_add(tokens.thoughts);
        state.cut = state.longest_answer.filter(|most| answer >= *most);
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
        let Ok(mut state) = self.state.try_lock() else { return Vec::new() };
        // Files that were open once can be read to their end when they are gone.
        self.read(&mut state);
        std::mem::take(&mut state.news)
    }

    /// For how long the model has not been allowed to be asked. Nobody is waited for.
    pub(crate) fn refused_for(&self) -> Option<Duration> {
        let state = self.state.try_lock().ok()?;
        state.refused.as_ref().map(|(_, since)| since.elapsed())
    }

    /// Nobody asks any more: what people should know beside it, and why the budget ended the run, if it did. The CLI calls a
    /// call that was refused, and an answer that was cut, a success (0.61.0).
    pub(crate) fn settle(&self) -> (Vec<String>, Option<String>) {
        let mut state = self.state();
        self.read(&mut state);
        self.warn(&mut state);
        let cut = |most| format!("The budget is used up: the last answer was cut at {most} tokens");
        let why = state.refused.as_ref().map(|(why, _)| why.clone()).or_else(|| state.cut.map(cut));
        (std::mem::take(&mut state.news), why)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
