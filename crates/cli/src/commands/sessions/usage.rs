//! `alhena sessions usage`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use alhena::model::{Prices, Prompts, Timestamp, Tokens, Usage};
use alhena::session::survey::{LARGE, Spent};
use alhena::session::{Scope, Session};
use clap::ValueEnum;
use serde::Serialize;

use super::list::short;
use super::{folder, store};
use crate::command_error::{CommandError, Done};
use crate::output::{Stream, print, print_json, say};
use crate::prices::PriceFile;
use crate::style::{Colours, Paint, one_line};

/// Add up tokens and cost, by day, model or project.
///
/// Everything that a session records counts, also what was cancelled, taken back or dropped, and sub-agents. Gemini CLI does not
/// record the calls beside the conversation: its model router (when no model is named), summaries and web searches. Days are UTC. Prices come
/// from a dated file; ALHENA_PRICES or --prices names another one. A model that it does not name has no cost, and a sum with
/// such a model in it says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena sessions usage
  alhena sessions usage --by model --since 2026-11-01
  alhena sessions usage --json -C .")]
pub struct Args {
    /// What to add up by.
    #[arg(long, value_enum, default_value = "day")]
    by: By,
    /// Only the sessions of this folder; all when not given.
    #[arg(long, short = 'C', value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only from this day on, such as 2026-11-01.
    #[arg(long, value_name = "DAY")]
    since: Option<String>,
    #[command(flatten)]
    prices: PriceFile,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What to add up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// The day, in UTC.
    Day,
    /// The model.
    Model,
    /// The folder.
    Project,
}

/// One line of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Row {
    #[serde(flatten)]
    tokens: Tokens,
    answers: u64,
    /// What is known of the cost; none when none of it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    /// Models without a price: the cost is more than it says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unpriced: Vec<String>,
    /// Whether a price depends on the size of single prompts in a way that is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
}

#[derive(Serialize)]
struct Json<'a> {
    by: &'static str,
    currency: &'a str,
    prices: &'a str,
    rows: &'a BTreeMap<String, Row>,
    total: &'a Row,
}

pub fn execute(args: &Args) -> Done {
    let since = match args.since.as_deref().map(day) {
        Some(None) => return Err(CommandError::usage("--since wants a day", "Such as 2026-11-01.")),
        other => other.flatten(),
    };
    let prices = args.prices.read()?;
    let store = store()?;
    let scope = args.dir.as_ref().map_or(Ok(Scope::All), |dir| folder(&store, dir))?;
    let sessions = store.list(&scope).map_err(CommandError::of_store)?;
    let (rows, total) = add_up(&sessions, args.by, since.as_deref(), &prices);
    if args.json {
        let by = match args.by {
            By::Day => "day",
            By::Model => "model",
            By::Project => "project",
        };
        return Ok(print_json(&Json {
            by,
            currency: &prices.currency,
            prices: &prices.date,
            rows: &rows,
            total: &total,
        }));
    }
    if rows.is_empty() {
        say("Nothing was spent.");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(print(table(&rows, &total, &prices, Colours::of(Stream::Out)).trim_end()))
}

/// A day as the records write it.
fn day(text: &str) -> Option<String> {
    Timestamp::parse(&format!("{text}T00:00:00Z")).map(|_| text.to_owned())
}

fn add_up(
    sessions: &[Session],
    by: By,
    since: Option<&str>,
    prices: &Prices,
) -> (BTreeMap<String, Row>, Row) {
    let (mut rows, mut total) = (BTreeMap::new(), Row::default());
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
    (rows, total)
}

fn project(session: &Session) -> String {
    match &session.file.project.root {
        Some(root) => root.display().to_string(),
        None => session.file.project.name.clone(),
    }
}

impl Row {
    fn add(&mut self, spent: &Spent, prices: &Prices) {
        let mut sum = Usage::of_models([("", self.tokens)]);
        sum.add("", &spent.tokens);
        self.tokens = sum.all;
        self.answers += spent.answers;
        let at = Timestamp::parse(&format!("{}T12:00:00Z", spent.day)).unwrap_or_else(Timestamp::now);
        let prompts = if spent.large { Prompts::Above(LARGE) } else { Prompts::UpTo(LARGE) };
        match prices.cost(&spent.model, &spent.tokens, prompts, at) {
            Some(cost) => {
                *self.cost.get_or_insert(0.0) += cost.amount;
                self.at_least |= cost.lower_bound;
            }
            None if self.unpriced.contains(&spent.model) => {}
            None => self.unpriced.push(spent.model.clone()),
        }
    }
}

/// Rows with a bar each, and the sum.
fn table(rows: &BTreeMap<String, Row>, total: &Row, prices: &Prices, colours: Colours) -> String {
    const BAR: u64 = 30;
    let name = |key: &str| one_line(key, 40);
    let width = rows.keys().map(|key| name(key).chars().count()).max().unwrap_or(0).max(5);
    let most = rows.values().map(|row| row.tokens.total).max().unwrap_or(0).max(1);
    let line = |key: &str, row: &Row, bar: String| {
        format!(
            "{:width$}  {:>8}  {:>8} in  {:>8} cached  {:>8} out  {:>8} thoughts  {:>10}  {}\n",
            name(key),
            short(row.tokens.total),
            short(row.tokens.prompt),
            short(row.tokens.cached),
            short(row.tokens.output),
            short(row.tokens.thoughts),
            money(row, &prices.currency),
            colours.paint(Paint::Cyan, bar),
        )
    };
    let mut text = String::new();
    for (key, row) in rows {
        text.push_str(&line(key, row, bar(row.tokens.total * BAR * 8 / most)));
    }
    text.push_str(&line("total", total, String::new()));
    if !total.unpriced.is_empty() {
        let models: Vec<String> = total.unpriced.iter().map(|model| one_line(model, 40)).collect();
        let note = format!(
            "Without the cost of {}: the prices of {} do not name them.\n",
            models.join(", "),
            prices.date
        );
        text.push_str(&colours.paint(Paint::Yellow, note).to_string());
    }
    text
}

fn money(row: &Row, currency: &str) -> String {
    let Some(cost) = row.cost else {
        return if row.unpriced.is_empty() { String::new() } else { "?".to_owned() };
    };
    let more = if row.at_least || !row.unpriced.is_empty() { "≥ " } else { "" };
    // A sum that rounds to nothing is not nothing.
    let tiny = cost > 0.0 && cost < 0.005;
    let (below, cost) = if tiny { ("<", 0.01) } else { ("", cost) };
    match currency {
        "USD" => format!("{more}{below}${cost:.2}"),
        other => format!("{more}{below}{cost:.2} {other}"),
    }
}

/// A bar of so many eighths.
fn bar(eighths: u64) -> String {
    let parts = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let mut bar = "█".repeat(usize::try_from(eighths / 8).unwrap_or(0));
    bar.extend(usize::try_from(eighths % 8).ok().and_then(|rest| parts.get(rest.checked_sub(1)?)));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(model: &str, large: bool, prompt: u64, output: u64) -> Spent {
        let tokens = Tokens { prompt, output, total: prompt + output, ..Tokens::default() };
        Spent { day: "2026-11-15".into(), model: model.into(), large, answers: 1, tokens }
    }

    fn row(all: &[Spent]) -> Row {
        let prices = Prices::shipped().unwrap();
        let mut row = Row::default();
        all.iter().for_each(|spent| row.add(spent, &prices));
        row
    }

    #[test]
    fn large_prompts_cost_more_where_the_price_says_so() {
        assert_eq!(row(&[spent("gemini-2.5-pro", false, 1_000_000, 0)]).cost, Some(1.25));
        assert_eq!(row(&[spent("gemini-2.5-pro", true, 1_000_000, 0)]).cost, Some(2.5));
    }

    #[test]
    fn a_model_without_a_price_is_said_to_be_missing() {
        let some = row(&[spent("gemini-2.5-flash", false, 1_000_000, 0), spent("mystery", false, 5, 5)]);
        assert_eq!(
            (some.cost, some.unpriced.clone(), some.tokens.total),
            (Some(0.3), vec!["mystery".into()], 1_000_010)
        );
        assert_eq!(money(&some, "USD"), "≥ $0.30");
        assert_eq!(money(&row(&[spent("gemini-2.5-flash", false, 5, 5)]), "USD"), "<$0.01");
        let none = row(&[spent("mystery", false, 5, 5)]);
        assert_eq!((none.cost, money(&none, "USD")), (None, "?".into()));
    }

    #[test]
    fn bars_are_drawn_in_eighths() {
        assert_eq!([bar(0), bar(3), bar(8), bar(17)], ["", "▍", "█", "██▏"]);
    }
}
