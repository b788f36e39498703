//! What came of a batch as one HTML page: figures, plots and what failed. No script, nothing loaded, readable in the dark.

mod plot;

use std::fmt::Write;

use alhena_model::{Status, Timestamp};
use alhena_wire::display::is_unsafe;

use self::plot::{Bar, bars, histogram};
use super::{Summary, kind_name, percentile, results_by_id, status_name};
use crate::journal::Entry;
use crate::schedule::Ended;

/// What a browser may do with the page, whatever the text in it says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("page.css");
/// So many jobs that failed, and that took longest, are named.
const MOST_FAILED: usize = 500;
const MOST_SLOW: usize = 10;

/// What is said above it.
#[derive(Clone, Debug)]
pub struct About<'a> {
    /// Where the jobs came from.
    pub jobs: &'a str,
    /// Where the results are.
    pub results: &'a str,
}

/// The page of a batch that is over, or was interrupted.
pub fn html(ended: &Ended, about: &About<'_>) -> String {
    let results: Vec<(&str, &Entry)> = results_by_id(ended).collect();
    page(&Summary::of(ended), &results, about, Timestamp::now())
}

fn page(summary: &Summary, results: &[(&str, &Entry)], about: &About<'_>, now: Timestamp) -> String {
    let title = format!("Batch: {}", about.jobs);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{1}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{1}</h1>\n",
        escape(POLICY),
        escape(&title)
    );
    head(summary, about, now, &mut out);
    out.push_str("</header>\n<main>\n");
    match results.is_empty() {
        true => out.push_str("<p class=\"none\">No job has a result yet, so there is nothing to show.</p>\n"),
        false => {
            plots(summary, results, &mut out);
            tables(results, &mut out);
        }
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn head(summary: &Summary, about: &About<'_>, now: Timestamp, out: &mut String) {
    let is_whole = summary.left == 0 && summary.stopped.is_none() && summary.jobs > 0;
    let (class, words) = match (is_whole, summary.failed + summary.refused, &summary.stopped) {
        (true, 0, _) => ("good", "every job succeeded".to_owned()),
        (true, _, _) => ("bad", "every job has a result, and not every one succeeded".to_owned()),
        (false, _, Some(why)) => ("bad", format!("stopped: {why}")),
        (false, _, None) => ("bad", "not every job has a result".to_owned()),
    };
    let _infallible = writeln!(out, "<p class=\"state {class}\">{}</p>\n<dl>", escape(&words));
    let some = |millis: Option<u64>| millis.map_or_else(|| "none yet".to_owned(), time);
    let cost = match summary.spent.unpriced {
        true => format!("{}, or more: not every model has a price", dollars(summary.spent.cost_usd)),
        false => dollars(summary.spent.cost_usd),
    };
    let facts = [
        ("jobs", number(summary.jobs)),
        ("succeeded", number(summary.succeeded)),
        ("failed", number(summary.failed)),
        ("without a result", number(summary.left)),
        ("lines that were no jobs", number(summary.refused)),
        ("repeated attempts, in this start", number(summary.repeated)),
        ("tokens", number(summary.spent.tokens)),
        ("cost", cost),
        ("half took no longer than (p50)", some(summary.p50_ms)),
        ("19 of 20 took no longer than (p95)", some(summary.p95_ms)),
        ("this start took", time(summary.elapsed_ms)),
        ("results", about.results.to_owned()),
        ("written", now.to_string()),
    ];
    let told = facts.iter().filter(|(name, value)| value != "0" || !name.contains([' ', ',']));
    for (name, value) in told {
        let _infallible = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
    }
    out.push_str("</dl>\n");
}

fn plots(summary: &Summary, results: &[(&str, &Entry)], out: &mut String) {
    let begun = || results.iter().filter(|(_, entry)| entry.attempt > 0);
    let times: Vec<f64> = begun().map(|(_, entry)| entry.duration_ms as f64).collect();
    let marks: Vec<(f64, String)> = [("p50", summary.p50_ms), ("p95", summary.p95_ms)]
        .into_iter()
        .filter_map(|(name, at)| Some((at? as f64, format!("{name} {}", time(at?)))))
        .collect();
    out.push_str("<div class=\"plots\">\n");
    let shown = |value: f64| time(value as u64);
    figure("How long jobs took", &histogram(&times, &marks, &shown, "took"), "the last attempt of each", out);
    let tokens: Vec<f64> = begun().map(|(_, entry)| entry.spent.tokens as f64).collect();
    let half = |values: &[f64], shown: &dyn Fn(f64) -> String| {
        let mut sorted: Vec<u64> = values.iter().map(|value| *value as u64).collect();
        sorted.sort_unstable();
        percentile(&sorted, 50)
            .map(|at| (at as f64, format!("p50 {}", shown(at as f64))))
            .into_iter()
            .collect::<Vec<_>>()
    };
    let shown = |value: f64| short(value);
    let marks = half(&tokens, &shown);
    figure("Tokens", &histogram(&tokens, &marks, &shown, "used"), "all attempts of each job", out);
    costs(results, out);
    let statuses = [("bad", &summary.by_kind)];
    let rows: Vec<Bar> = statuses
        .iter()
        .flat_map(|(class, counts)| counts.iter().map(|(name, count)| Bar { name, count: *count, class }))
        .collect();
    match rows.is_empty() {
        true => figure("Failures by kind", "<p class=\"none\">None.</p>", "", out),
        false => figure("Failures by kind", &bars(&rows), "of the jobs that did not succeed", out),
    }
    out.push_str("</div>\n");
}

fn costs(results: &[(&str, &Entry)], out: &mut String) {
    let priced: Vec<f64> = results
        .iter()
        .filter(|(_, entry)| entry.attempt > 0 && !entry.spent.unpriced)
        .map(|(_, entry)| entry.spent.cost_usd)
        .collect();
    let unpriced = results.iter().filter(|(_, entry)| entry.spent.unpriced).count();
    let below = match unpriced {
        0 => "US dollars, all attempts of each job".to_owned(),
        count => format!("US dollars, all attempts of each job; {count} without a known price are left out"),
    };
    match priced.is_empty() {
        true => figure("Cost", "<p class=\"none\">No job has a known price.</p>", &below, out),
        false => figure("Cost", &histogram(&priced, &[], &dollars, "cost"), &below, out),
    }
}

fn figure(title: &str, inside: &str, below: &str, out: &mut String) {
    let _infallible = writeln!(out, "<figure>\n<h2>{}</h2>\n{inside}", escape(title));
    if !below.is_empty() {
        let _infallible = writeln!(out, "<figcaption>{}</figcaption>", escape(below));
    }
    out.push_str("</figure>\n");
}

fn tables(results: &[(&str, &Entry)], out: &mut String) {
    let failed: Vec<_> = results.iter().filter(|(_, entry)| entry.status != Status::Success).collect();
    if !failed.is_empty() {
        table("What failed", failed.iter().take(MOST_FAILED).copied(), out);
        if failed.len() > MOST_FAILED {
            let _infallible = writeln!(out, "<p>and {} more</p>", failed.len() - MOST_FAILED);
        }
    }
    let mut slow: Vec<_> = results.iter().collect();
    slow.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.duration_ms));
    table("What took longest", slow.into_iter().take(MOST_SLOW), out);
}

fn table<'a>(title: &str, rows: impl Iterator<Item = &'a (&'a str, &'a Entry)>, out: &mut String) {
    let _infallible = writeln!(
        out,
        "<h2>{}</h2>\n<table>\n<tr><th>job</th><th>how it ended</th><th>attempts</th><th>took</th><th>tokens</th><th>cost</th></tr>",
        escape(title)
    );
    for (id, entry) in rows {
        let how = entry.kind.map_or_else(|| status_name(entry.status).to_owned(), kind_name);
        let cost = if entry.spent.unpriced { "unknown".to_owned() } else { dollars(entry.spent.cost_usd) };
        let _infallible = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(id),
            escape(&how),
            entry.attempt,
            time(entry.duration_ms),
            number(entry.spent.tokens),
            cost
        );
    }
    out.push_str("</table>\n");
}

/// Text that means nothing to a browser, and turns nothing round.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ if is_unsafe(character) => safe.push('\u{fffd}'),
            _ => safe.push(character),
        }
    }
    safe
}

fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn short(value: f64) -> String {
    match value {
        1_000_000.0.. => format!("{:.1}M", value / 1e6),
        1_000.0.. => format!("{:.1}k", value / 1e3),
        _ => format!("{value:.0}"),
    }
}

fn time(millis: u64) -> String {
    let seconds = millis / 1000;
    match millis {
        0..1000 => format!("{millis} ms"),
        1000..60_000 => format!("{:.1} s", millis as f64 / 1000.0),
        60_000..3_600_000 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn dollars(amount: f64) -> String {
    match amount {
        0.0 => "$0".to_owned(),
        amount if amount < 0.01 => format!("${amount:.5}"),
        amount => format!("${amount:.2}"),
    }
}

#[cfg(test)]
mod tests;
