//! What a run may spend: tokens, dollars, model calls.
//!
//! Gemini CLI asks before each model call of a conversation (a BeforeModel hook), and before each tool that calls a model itself (a
//! BeforeTool hook, over ACP a permission request). Calls that it makes by itself, such as its router's, it only records
//! (0.61.0). By the time it asks, earlier calls are in its session files and in `--record-responses`. It reports a run that was
//! refused a call as a success; the meter and the interpreter judge it.

mod aside;
mod meter;

use alhena_model::{Prices, Setting, SpendingLimits, Timestamp};

pub(crate) use self::meter::{Meter, Permit, ToolPermit};
use crate::prepare::RunError;
use crate::rate_limit::OnRateLimit;
use crate::request::ResolvedRequest;

/// So much of a budget is used when people are told.
const WARN_AT: f64 = 0.8;

/// The limits of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Budget {
    pub tokens: Option<u64>,
    pub dollars: Option<f64>,
    pub calls: Option<u64>,
}

/// What was spent so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spent {
    pub tokens: u64,
    pub dollars: f64,
    pub calls: u64,
    /// A model that answered and has no price.
    pub unpriced: Option<String>,
}

/// Names that Gemini CLI makes another name of: which one is only known at the first call.
const ALIASES: [&str; 4] = ["auto", "pro", "flash", "flash-lite"];

/// Tools that call a model themselves, and how often one call of the tool does at most (0.61.0). A failed `web_fetch` asks again.
const MODEL_TOOLS: &[(&str, u64)] = &[("google_web_search", 1), ("web_fetch", 2)];

/// Whether a request has a budget.
pub(crate) fn is_wanted(request: &ResolvedRequest) -> bool {
    request.max_tokens.is_some() || request.max_cost.is_some() || request.max_calls.is_some()
}

/// Returns the names of the tools that call a model themselves.
pub(crate) fn model_tools() -> impl Iterator<Item = &'static str> {
    MODEL_TOOLS.iter().map(|(name, _)| *name)
}

/// Returns how many model calls one call of this tool makes at most.
pub(crate) fn calls_of_tool(tool: &str) -> Option<u64> {
    MODEL_TOOLS.iter().find(|(name, _)| *name == tool).map(|(_, calls)| *calls)
}

impl Budget {
    /// The limits of a request, if it has any. What makes no sense, or cannot be kept, is refused.
    pub(crate) fn of(request: &ResolvedRequest) -> Result<Option<Self>, RunError> {
        let budget = Self::limits(request)?;
        if budget == Self::default() {
            return Ok(None);
        }
        let prices = request.prices.as_ref();
        if let (Some(_), Some(prices)) = (budget.dollars, prices) {
            let other = match &request.on_rate_limit {
                OnRateLimit::Model(model) => Some(model.as_str()),
                OnRateLimit::Fail | OnRateLimit::Wait(_) => None,
            };
            check_prices(prices, request.model.as_deref().into_iter().chain(other))?;
        }
        Ok(Some(budget))
    }

    /// The limits of a request; one of nothing is none that was meant.
    pub(crate) fn limits(request: &ResolvedRequest) -> Result<Self, RunError> {
        let nothing = |setting: Setting| {
            RunError::usage(format!("{setting} has to be more than 0"), "Leave it out for no limit.")
        };
        match (Self { tokens: request.max_tokens, dollars: request.max_cost, calls: request.max_calls }) {
            Self { tokens: Some(0), .. } => Err(nothing(Setting::MaxTokens)),
            Self { calls: Some(0), .. } => Err(nothing(Setting::MaxCalls)),
            Self { dollars: Some(dollars), .. } if !(dollars.is_finite() && dollars > 0.0) => {
                Err(nothing(Setting::MaxCost))
            }
            budget => Ok(budget),
        }
    }

    /// Returns the limits for the interpreter.
    pub(crate) fn spending_limits(&self) -> SpendingLimits {
        let Self { tokens, dollars, calls } = *self;
        SpendingLimits { tokens, dollars, calls }
    }

    /// Why nothing more may be spent.
    pub(crate) fn exceeded_by(&self, spent: &Spent) -> Option<String> {
        if let (Some(_), Some(model)) = (self.dollars, &spent.unpriced) {
            return Some(no_price(model));
        }
        self.shares(spent)
            .into_iter()
            .flatten()
            .find(|share| share.part >= 1.0)
            .map(|share| format!("The budget is used up: {}", share.words))
    }

    /// What people should know before it is used up.
    pub(crate) fn nearly_used_by(&self, spent: &Spent) -> Option<String> {
        let nearly = |share: &Share| share.part >= WARN_AT;
        let share = self.shares(spent).into_iter().flatten().find(nearly)?;
        Some(format!("{} % of the budget is used: {}", (share.part * 100.0).floor(), share.words))
    }

    fn shares(&self, spent: &Spent) -> [Option<Share>; 3] {
        let of = |spent: u64, limit: u64, what: &str| Share {
            part: if spent >= limit {
                1.0_f64.max(spent as f64 / limit as f64)
            } else {
                spent as f64 / limit as f64
            },
            words: format!("{spent} of {limit} {what}"),
        };
        [
            self.tokens.map(|limit| of(spent.tokens, limit, "tokens")),
            self.dollars.map(|limit| Share {
                part: spent.dollars / limit,
                words: format!("${:.6} of ${limit}", spent.dollars),
            }),
            self.calls.map(|limit| of(spent.calls, limit, "model calls")),
        ]
    }

    /// How many tokens the next answer may have, if its prompt is as large as the last one's. None where there is no need
    /// to say it.
    pub(crate) fn room_for_answer(
        &self,
        spent: &Spent,
        prompt: u64,
        model: &str,
        prices: &Prices,
    ) -> Option<u64> {
        let by_tokens = self.tokens.map(|limit| limit.saturating_sub(spent.tokens).saturating_sub(prompt));
        let by_dollars = self.dollars.and_then(|limit| {
            let asked = alhena_model::Tokens { prompt, total: prompt, ..Default::default() };
            let one_more = alhena_model::Tokens { output: 1, ..asked };
            let cost = |tokens| {
                let cost = prices.cost(model, &tokens, alhena_model::Prompts::One, Timestamp::now());
                cost.map(|cost| cost.amount)
            };
            let (asked, one_more) = (cost(asked)?, cost(one_more)?);
            let room = (limit - spent.dollars - asked) / (one_more - asked);
            room.is_finite().then_some(room.max(0.0) as u64)
        });
        let room = by_tokens.into_iter().chain(by_dollars).min()?;
        (room < LONGEST_ANSWER).then_some(room.max(SHORTEST_ANSWER))
    }
}

/// What all of Gemini CLI's models give at most.
const LONGEST_ANSWER: u64 = 1 << 16;
/// An answer that is cut before its first word is asked for again (0.61.0), and thoughts count.
const SHORTEST_ANSWER: u64 = 1 << 10;

struct Share {
    part: f64,
    words: String,
}

fn check_prices<'m>(prices: &Prices, models: impl IntoIterator<Item = &'m str>) -> Result<(), RunError> {
    if !prices.in_dollars() {
        return Err(RunError::usage(
            format!("{} is in US dollars, and the prices are in {}", Setting::MaxCost, prices.currency),
            "Give `prices` in USD, or use `max_tokens`.",
        ));
    }
    let resolved_later = |model: &str| ALIASES.contains(&model) || model.starts_with("auto-");
    let unknown = |model: &&str| !resolved_later(model) && !prices.models.contains_key(*model);
    match models.into_iter().find(unknown) {
        Some(model) => Err(RunError::usage(no_price(model), NO_PRICE_HINT)),
        None => Ok(()),
    }
}

/// What to do where a price is missing.
const NO_PRICE_HINT: &str = "Name the model in a file for `prices`, or use `max_tokens` or `max_calls`.";

fn no_price(model: &str) -> String {
    format!("{} cannot be kept: the price of {model:?} is not known", Setting::MaxCost)
}

#[cfg(test)]
mod tests;
