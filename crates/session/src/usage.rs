//! What sessions used, added up by day, model or folder.

use std::collections::BTreeMap;

use alhena_model::{Prices, Prompts, Timestamp, Tokens, Usage};
use serde::Serialize;

use crate::Session;
use crate::ledger::Entry;
use crate::survey::{LARGE, Spent};

/// What to add up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The day, in UTC.
    Day,
    /// The model.
    Model,
    /// The folder.
    Project,
}

impl By {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            By::Day => "day",
            By::Model => "model",
            By::Project => "project",
        }
    }
}

/// The figures of one day, model or folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Tokens.
    #[serde(flatten)]
    pub tokens: Tokens,
    /// How many answers.
    pub answers: u64,
    /// What is known of the cost; none when none of it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Models without a price: the cost is more than it says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unpriced: Vec<String>,
    /// Whether a price depends on the size of single prompts in a way that is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct UsageTable {
    /// What the rows are.
    pub by: &'static str,
    /// In which the cost is.
    pub currency: String,
    /// The date of the prices.
    #[serde(rename = "prices")]
    pub dated: String,
    /// By day, model or folder.
    pub rows: BTreeMap<String, Row>,
    /// All together.
    pub total: Row,
}

impl UsageTable {
    /// Adds up what sessions used, and runs whose sessions are not kept, from a day on if one is given.
    pub fn of(sessions: &[Session], unkept: &[Entry], by: By, since: Option<&str>, prices: &Prices) -> Self {
        let (mut rows, mut total) = (BTreeMap::new(), Row::default());
        for entry in unkept.iter().filter(|entry| since.is_none_or(|since| *entry.day() >= *since)) {
            let key = match by {
                By::Day => entry.day(),
                By::Model => entry.model.clone(),
                By::Project => entry.project.display().to_string(),
            };
            rows.entry(key).or_insert_with(Row::default).add_entry(entry, prices);
            total.add_entry(entry, prices);
        }
        for session in sessions {
            for one in std::iter::once(session).chain(&session.children) {
                let wanted = |spent: &&Spent| since.is_none_or(|since| spent.day.as_str() >= since);
                for spent in one.survey.spent.iter().filter(wanted) {
                    let key = match by {
                        By::Day if spent.day.is_empty() => "unknown".to_owned(),
                        By::Day => spent.day.clone(),
                        By::Model => spent.model.clone(),
                        By::Project => project(one),
                    };
                    rows.entry(key).or_insert_with(Row::default).add(spent, prices);
                    total.add(spent, prices);
                }
            }
        }
        let (currency, dated) = (prices.currency.clone(), prices.date.clone());
        Self { by: by.name(), currency, dated, rows, total }
    }
}

/// A day as the records write it; none for what is no day.
pub fn day(text: &str) -> Option<String> {
    Timestamp::parse(&format!("{text}T00:00:00Z")).map(|_| text.to_owned())
}

fn project(session: &Session) -> String {
    match &session.file.project.root {
        Some(root) => root.display().to_string(),
        None => session.file.project.name.clone(),
    }
}

impl Row {
    /// Adds what was used on one day by one model.
    pub fn add(&mut self, spent: &Spent, prices: &Prices) {
        self.answers += spent.answers;
        let at = Timestamp::parse(&format!("{}T12:00:00Z", spent.day)).unwrap_or_else(Timestamp::now);
        let prompts = if spent.large { Prompts::Above(LARGE) } else { Prompts::UpTo(LARGE) };
        self.add_tokens(&spent.model, &spent.tokens, prompts, at, prices);
    }

    /// Adds what a run without a session used.
    fn add_entry(&mut self, entry: &Entry, prices: &Prices) {
        self.answers += entry.calls;
        let prompts = if entry.calls == 1 { Prompts::One } else { Prompts::Summed };
        self.add_tokens(&entry.model, &entry.tokens, prompts, entry.at, prices);
    }

    fn add_tokens(&mut self, model: &str, tokens: &Tokens, prompts: Prompts, at: Timestamp, prices: &Prices) {
        let mut sum = Usage::of_models([("", self.tokens)]);
        sum.add("", tokens);
        self.tokens = sum.all;
        match prices.cost(model, tokens, prompts, at) {
            Some(cost) => {
                *self.cost.get_or_insert(0.0) += cost.amount;
                self.at_least |= cost.lower_bound;
            }
            None if self.unpriced.iter().any(|known| known == model) => {}
            None => self.unpriced.push(model.to_owned()),
        }
    }
}
