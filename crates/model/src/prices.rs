//! What calls of models cost, by one dated table.
//!
//! Prices change, so they are data: a file that says where each figure comes from and that a user can replace. Some models
//! cost more per token from a certain size of prompt on. That size is of one call; where only sums are known, the cost is a
//! lower bound from there on, and says so.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::usage::{Tokens, Usage};

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

/// What calls cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// In the table's currency.
    pub amount: f64,
    /// Whether it may have been more: nobody knows how large the single prompts were.
    pub lower_bound: bool,
}

impl Cost {
    /// Adds what other calls cost.
    pub fn add(&mut self, other: Cost) {
        self.amount += other.amount;
        self.lower_bound |= other.lower_bound;
    }
}

/// What is known of the size of the prompts that tokens were counted of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// It is one call, and its prompt is in the count.
    One,
    /// There were several calls, and only their sum is known.
    Summed,
    /// None had more tokens than this.
    UpTo(u64),
    /// All had more tokens than this.
    Above(u64),
}

impl Prices {
    /// The currency of what is called `cost_usd`.
    pub const DOLLARS: &'static str = "USD";

    /// The table that comes with Alhena.
    pub fn shipped() -> Result<Self, serde_json::Error> {
        Self::read(include_str!("../data/prices.json"))
    }

    /// Reads a price file.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let prices: Self = serde_json::from_str(text)?;
        let refused = |why: String| Err(serde::de::Error::custom(why));
        if prices.per_tokens == 0 {
            return refused("per_tokens has to be more than 0".to_owned());
        }
        for (model, price) in &prices.models {
            let above = price.above.map(|above| above.rates);
            let rates = std::iter::once(price.rates).chain(above);
            let figures = rates.flat_map(|rates| [Some(rates.input), rates.cached, Some(rates.output)]);
            let factor = price.promotion.as_ref().map(|promotion| promotion.factor);
            // Beyond that nobody can add up.
            if figures.flatten().chain(factor).any(|figure| !(0.0..=1e9).contains(&figure)) {
                return refused(format!(
                    "{model:?} has a price that is negative, or none that anybody could pay"
                ));
            }
        }
        Ok(prices)
    }

    /// Whether the figures are dollars.
    pub fn in_dollars(&self) -> bool {
        self.currency == Self::DOLLARS
    }

    /// What these tokens of one model cost at this time; nothing if the table does not name it.
    pub fn cost(&self, model: &str, tokens: &Tokens, prompts: Prompts, at: Timestamp) -> Option<Cost> {
        let price = self.models.get(model)?;
        let (rates, lower_bound) = price.rates(tokens, prompts);
        let promoted = price.promotion.as_ref().filter(|promotion| at.to_string() < promotion.until);
        let factor = promoted.map_or(1.0, |promotion| promotion.factor);
        Some(Cost { amount: rates.of(tokens) * factor / self.per_tokens.max(1) as f64, lower_bound })
    }

    /// What a run cost of which only sums are known. Nothing if a model that was used is not named: a part is no price.
    pub fn cost_of_sum(&self, usage: &Usage, at: Timestamp) -> Option<Cost> {
        let mut cost = Cost::default();
        let mut used = usage.models.iter().filter(|(_, tokens)| tokens.total > 0).peekable();
        used.peek()?;
        for (name, tokens) in used {
            cost.add(self.cost(name, tokens, Prompts::Summed, at)?);
        }
        Some(cost)
    }
}

impl Price {
    /// The rates for such prompts, and whether others may have counted.
    fn rates(&self, tokens: &Tokens, prompts: Prompts) -> (&Rates, bool) {
        let Some(above) = &self.above else { return (&self.rates, false) };
        match prompts {
            Prompts::One if tokens.prompt > above.prompt => (&above.rates, false),
            Prompts::One => (&self.rates, false),
            Prompts::Summed => (&self.rates, tokens.prompt > above.prompt),
            Prompts::UpTo(most) => (&self.rates, most > above.prompt),
            Prompts::Above(least) if least >= above.prompt => (&above.rates, false),
            Prompts::Above(_) => (&self.rates, true),
        }
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
mod tests;
