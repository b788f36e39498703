//! The `usage` events of a run: one for each call of a model, which add up to the usage of the outcome.

use super::Interpreter;
use crate::conversation::usage_of;
use crate::event::{CallUsage, Event, EventKind, Source};
use crate::usage::{Tokens, Usage};

#[derive(Default)]
pub(super) struct UsageTold {
    calls: u64,
    sum: Usage,
    cost_usd: f64,
}

impl Interpreter {
    /// Tells the tokens of one call, and what they cost.
    pub(super) fn tell_call(
        &mut self,
        source: Source,
        model: Option<&str>,
        tokens: Tokens,
        cost: Option<f64>,
        out: &mut Vec<Event>,
    ) {
        let usage = usage_of(model, tokens, cost);
        self.told.calls += 1;
        self.told.cost_usd += cost.unwrap_or(0.0);
        for (model, tokens) in &usage.models {
            self.told.sum.add(model, tokens);
        }
        let call = Some(self.told.calls);
        self.emit(source, EventKind::Usage(CallUsage { call, usage }), out);
    }

    /// Tells the tokens that no source attributes to a single call: those of a stream without its session file, for example.
    pub(super) fn tell_rest_of_usage(&mut self, out: &mut Vec<Event>) {
        let (all, told) = (&self.outcome.usage, &self.told.sum);
        let of_model = |(name, tokens): (&String, &Tokens)| {
            let rest = tokens.without(&told.models.get(name).copied().unwrap_or_default());
            (rest != Tokens::default()).then(|| (name.clone(), rest))
        };
        let usage = Usage {
            all: all.all.without(&told.all),
            models: all.models.iter().filter_map(of_model).collect(),
            cost_usd: all.cost_usd.map(|cost| (cost - self.told.cost_usd).max(0.0)),
        };
        if usage.all != Tokens::default() {
            self.emit(Source::Derived, EventKind::Usage(CallUsage { call: None, usage }), out);
        }
    }
}
