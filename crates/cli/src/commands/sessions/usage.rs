//! `alhena sessions usage`.

use std::path::PathBuf;
use std::process::ExitCode;

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_session::Scope;
use alhena_session::usage::{self, Row, UsageTable, day};
use clap::ValueEnum;

use super::list::short;
use super::{folder, store};
use crate::command_error::{CommandError, Done};
use crate::commands::options::{Given, OfPrices};
use crate::output::{Stream, print, print_json, say};
use crate::style::{Colours, Paint, one_line};

/// Add up tokens and cost, by day, model or project.
///
/// Everything that a session records counts, also what was cancelled, taken back or dropped, and sub-agents. Runs on warm processes,
/// such as the jobs of a batch, keep no session and count as well. Gemini CLI does not
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
    prices: Given<OfPrices>,
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

pub fn execute(args: &Args) -> Done {
    let since = match args.since.as_deref().map(day) {
        Some(None) => return Err(CommandError::usage("--since wants a day", "Such as 2026-11-01.")),
        other => other.flatten(),
    };
    let prices = args.prices.read()?;
    let store = store()?;
    let scope = args.dir.as_ref().map_or(Ok(Scope::All), |dir| folder(&store, dir))?;
    let sessions = store.list(&scope).map_err(CommandError::of_store)?;
    let unkept = match Dirs::of(&Environment::of_process()) {
        Some(dirs) => dirs.ledger().list(&store, &scope).map_err(|error| CommandError::failed(error, ""))?,
        None => Vec::new(),
    };
    let by = match args.by {
        By::Day => usage::By::Day,
        By::Model => usage::By::Model,
        By::Project => usage::By::Project,
    };
    let used = UsageTable::of(&sessions, &unkept, by, since.as_deref(), &prices);
    if args.json {
        return Ok(print_json(&used));
    }
    if used.rows.is_empty() {
        say("Nothing was spent.");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(print(table(&used, Colours::of(Stream::Out)).trim_end()))
}

/// Rows with a bar each, and the sum.
fn table(used: &UsageTable, colours: Colours) -> String {
    let UsageTable { rows, total, currency, dated, .. } = used;
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
            money(row, currency),
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
        let note =
            format!("Without the cost of {}: the prices of {} do not name them.\n", models.join(", "), dated);
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
    use alhena_model::{Prices, Tokens};
    use alhena_session::survey::Spent;

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
