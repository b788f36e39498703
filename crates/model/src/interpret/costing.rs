//! What the calls of a run cost, one by one where the session file tells of them.

use std::collections::BTreeMap;

use crate::outcome::Outcome;
use crate::prices::{Cost, Prices, Prompts};
use crate::time::Timestamp;
use crate::usage::{Tokens, Usage};

#[derive(Default)]
pub(super) struct Costing {
    prices: Option<Prices>,
    for_good: bool,
    /// What those calls cost that were told one by one, by model.
    by_call: BTreeMap<String, Cost>,
    calls: u64,
}

impl Costing {
    /// Takes these prices, unless others are there for good.
    pub(super) fn take(&mut self, prices: Prices) {
        if !self.for_good {
            self.prices = Some(prices);
        }
    }

    pub(super) fn take_for_good(&mut self, prices: Prices) {
        self.take(prices);
        self.for_good = true;
    }

    /// One call; what it cost in dollars, where that is known.
    pub(super) fn call(&mut self, model: &str, tokens: &Tokens, at: Timestamp) -> Option<f64> {
        self.calls += 1;
        let prices = self.prices.as_ref().filter(|prices| prices.in_dollars())?;
        let cost = prices.cost(model, tokens, Prompts::One, at)?;
        self.by_call.entry(model.to_owned()).or_default().add(cost);
        Some(cost.amount)
    }

    /// Puts what is known at the end into the outcome: `by_call` are the tokens of the calls that were told one by one, and
    /// what the outcome has beyond them are those of routers and the like.
    pub(super) fn settle(&self, by_call: &Usage, turns: u64, at: Timestamp, outcome: &mut Outcome) {
        let measured = outcome.statistics.as_ref().map_or(0, |statistics| {
            statistics.models.values().map(|model| model.all.requests).fold(0, u64::saturating_add)
        });
        outcome.model_calls = measured.max(self.calls).max(turns).max(outcome.model_calls);
        let cost = self.total(by_call, &outcome.usage, at);
        outcome.cost_usd = cost.map(|cost| cost.amount);
        outcome.cost_is_lower_bound = cost.is_some_and(|cost| cost.lower_bound);
        outcome.usage.cost_usd = outcome.cost_usd;
    }

    fn total(&self, by_call: &Usage, usage: &Usage, at: Timestamp) -> Option<Cost> {
        let prices = self.prices.as_ref().filter(|prices| prices.in_dollars())?;
        let mut used = usage.models.iter().filter(|(_, tokens)| tokens.total > 0).peekable();
        used.peek()?;
        let mut total = Cost::default();
        for (name, tokens) in used {
            let known = by_call.models.get(name).copied().unwrap_or_default();
            let rest = tokens.without(&known);
            total.add(self.by_call.get(name).copied().unwrap_or_default());
            total.add(prices.cost(name, &rest, Prompts::Summed, at)?);
        }
        Some(total)
    }
}
