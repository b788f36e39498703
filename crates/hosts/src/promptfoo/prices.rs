//! What a run cost, where the price file names its models.
//!
//! Prices change, so they are data: one dated file that says where each figure comes from and that a user can replace. Some
//! models cost more per token from a certain size of prompt on. That size is per request, and Gemini CLI 0.61.0 only reports
//! sums, so from there on the cost is a lower bound, and says so.

use std::collections::BTreeMap;

use alhena_model::{Timestamp, Tokens, Usage};
use serde::{Deserialize, Serialize};

/// A price file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prices {
    /// When the figures were collected.
    pub date: String,
    /// The currency of all figures.
    pub currency: String,
    /// The figures are for so many tokens.
    pub per_tokens: u64,
    /// By the model's name.
    pub models: BTreeMap<String, Price>,
}

/// The price of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// The usual rates.
    #[serde(flatten)]
    pub rates: Rates,
    /// Other rates for large prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<Above>,
    /// A discount that ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,
    /// Where the figures come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What tokens cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Tokens sent.
    pub input: f64,
    /// Tokens sent that came from the cache; as much as others when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Tokens of answers and thoughts.
    pub output: f64,
}

/// Rates for a request with more prompt tokens than this.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Above {
    /// So many.
    pub prompt: u64,
    /// The rates.
    #[serde(flatten)]
    pub rates: Rates,
}

/// A discount.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Promotion {
    /// The first day without it, `2027-01-01`.
    pub until: String,
    /// All rates are multiplied by this.
    pub factor: f64,
}

/// What a run cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// In the file's currency.
    pub amount: f64,
    /// Whether it may have been more: nobody knows how large the single requests were.
    pub lower_bound: bool,
}

impl Prices {
    /// The file that comes with Alhena.
    pub fn shipped() -> Result<Self, serde_json::Error> {
        Self::read(include_str!("../../data/prices.json"))
    }

    /// Reads a price file.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// What a run cost that was over at this time. Nothing if a model that was used is not named: a part is no price.
    pub fn cost(&self, usage: &Usage, at: Timestamp) -> Option<Cost> {
        let mut cost = Cost { amount: 0.0, lower_bound: false };
        let mut used = usage.models.iter().filter(|(_, tokens)| tokens.total > 0).peekable();
        used.peek()?;
        for (name, tokens) in used {
            let price = self.models.get(name)?;
            cost.amount += price.of(tokens, at) / self.per_tokens.max(1) as f64;
            cost.lower_bound |= price.above.is_some_and(|above| tokens.prompt > above.prompt);
        }
        Some(cost)
    }
}

impl Price {
    fn of(&self, tokens: &Tokens, at: Timestamp) -> f64 {
        let promoted = self.promotion.as_ref().filter(|promotion| at.to_string() < promotion.until);
        self.rates.of(tokens) * promoted.map_or(1.0, |promotion| promotion.factor)
    }
}

impl Rates {
    fn of(&self, tokens: &Tokens) -> f64 {
        let fresh = tokens.prompt.saturating_sub(tokens.cached).saturating_add(tokens.tool);
        let output = tokens.output.saturating_add(tokens.thoughts);
        fresh as f64 * self.input
            + tokens.cached as f64 * self.cached.unwrap_or(self.input)
            + output as f64 * self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(prompt: u64, cached: u64, output: u64, thoughts: u64) -> Tokens {
        Tokens { prompt, cached, output, thoughts, tool: 0, total: prompt + output + thoughts }
    }

    fn cost(models: &[(&str, Tokens)], at: &str) -> Option<Cost> {
        let usage = Usage::of_models(models.iter().copied());
        Prices::shipped().unwrap().cost(&usage, Timestamp::parse(at).unwrap())
    }

    const TODAY: &str = "2026-11-15T20:00:00.000Z";

    fn exactly(amount: f64) -> Option<Cost> {
        Some(Cost { amount, lower_bound: false })
    }

    #[test]
    fn cached_tokens_are_cheaper_and_thoughts_cost_as_output() {
        // (1000000 - 400000) * 0.3 + 400000 * 0.03 + (10000 + 90000) * 2.5, per million
        assert_eq!(
            cost(&[("gemini-2.5-flash", tokens(1_000_000, 400_000, 10_000, 90_000))], TODAY),
            exactly(0.442)
        );
    }

    #[test]
    fn several_models_add_up_and_idle_ones_cost_nothing() {
        let used = [
            ("gemini-2.5-flash", tokens(1_000_000, 0, 0, 0)),
            ("gemini-2.5-flash-lite", tokens(0, 0, 1_000_000, 0)),
            ("never-priced", Tokens::default()),
        ];
        assert_eq!(cost(&used, TODAY), exactly(0.7));
    }

    #[test]
    fn a_model_without_a_price_makes_the_whole_unknown() {
        assert_eq!(
            cost(&[("gemini-2.5-flash", tokens(1, 0, 1, 0)), ("mystery", tokens(1, 0, 1, 0))], TODAY),
            None
        );
        assert_eq!(cost(&[], TODAY), None);
    }

    #[test]
    fn large_prompts_make_a_lower_bound() {
        assert_eq!(
            cost(&[("gemini-2.5-pro", tokens(400_000, 0, 0, 0))], TODAY),
            Some(Cost { amount: 0.5, lower_bound: true })
        );
        assert_eq!(cost(&[("gemini-2.5-pro", tokens(200_000, 0, 0, 0))], TODAY), exactly(0.25));
    }

    #[test]
    fn a_promotion_ends_on_its_day() {
        let used = [("gemini-3.8-flash", tokens(1_000_000, 0, 0, 0))];
        assert_eq!(cost(&used, "2026-12-31T23:59:59.999Z"), exactly(0.75));
        assert_eq!(cost(&used, "2027-01-01T00:00:00.000Z"), exactly(1.5));
    }

    #[test]
    fn every_price_says_where_it_comes_from_and_the_file_has_a_date() {
        let prices = Prices::shipped().unwrap();
        assert_eq!(
            (prices.date.as_str(), prices.currency.as_str(), prices.per_tokens),
            ("2026-11-15", "USD", 1_000_000)
        );
        for (name, price) in &prices.models {
            assert!(price.source.is_some(), "{name}");
            assert!(price.rates.cached.is_some_and(|cached| cached < price.rates.input), "{name}");
        }
    }
}
