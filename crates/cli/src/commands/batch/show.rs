//! What a person sees of a batch: on a terminal a line for each job that runs and one for all, elsewhere a line now and then.

use std::time::{Duration, Instant};

use alhena_batch::progress::{Board, News, Observer, Phase, Progress, Running};
use alhena_batch::result::Spent;
use alhena_batch::schedule::Ended;
use alhena_batch::summary::Summary;

use crate::output::{Stream, progress, progress_over, say};
use crate::style::{Colours, Paint, age, columns, dollars, duration, fitting, number, one_line, short};

/// How often a terminal is drawn, and a line is said elsewhere.
const DRAWN: Duration = Duration::from_millis(100);
const SAID: Duration = Duration::from_secs(10);
/// No more jobs than this have a line.
const MOST_LINES: usize = 16;

/// Shows a batch on stderr.
pub struct Show {
    quiet: bool,
    live: bool,
    colours: Colours,
    last: Instant,
}

impl Show {
    pub fn new(quiet: bool) -> Self {
        let live = !quiet && Stream::Err.is_terminal();
        Self { quiet, live, colours: Colours::of(Stream::Err), last: Instant::now() }
    }

    /// Takes away what was only shown.
    pub fn end(&self) {
        if self.live {
            progress_over();
        }
    }

    /// Says what is worth a line of its own; whether something was said.
    fn tell(&self, news: &News) -> bool {
        match news {
            // A line that was no job was told as refused.
            News::Done { attempt: 0, .. } => return false,
            News::Done { id, status, message, .. } if *status != alhena_model::Status::Success => {
                let (id, message) = (one_line(id, 60), one_line(message, 200));
                say(format_args!("{} {id}: {message}", self.colours.paint(Paint::Red, "failed")));
            }
            News::Repeats { id, attempt, message } => {
                let (id, message) = (one_line(id, 60), one_line(message, 200));
                let sign = self.colours.paint(Paint::Yellow, "again");
                say(format_args!("{sign} {id}: attempt {attempt} failed: {message}"));
            }
            News::Held { ms } => {
                let sign = self.colours.paint(Paint::Yellow, "waiting");
                say(format_args!("{sign} {}: the API's rate limit is reached", duration(*ms)));
            }
            News::Refused { line, message, hint } => {
                let sign = self.colours.paint(Paint::Red, "refused");
                say(format_args!("{sign} line {line}: {}", one_line(&format!("{message}. {hint}"), 300)));
            }
            News::Drains { why } => {
                say(format_args!("{}: no more jobs begin; those that run finish.", one_line(why, 300)));
            }
            _ => return false,
        }
        true
    }

    fn draw(&mut self, board: &Board) {
        self.last = Instant::now();
        let now = board.progress();
        if !self.live {
            say(line(&now));
            return;
        }
        let width = columns().saturating_sub(1);
        let mut lines: Vec<String> =
            now.running.iter().take(MOST_LINES).map(|job| at_work(job, width)).collect();
        if now.running.len() > MOST_LINES {
            lines.push(fitting(&format!("  and {} more", now.running.len() - MOST_LINES), width));
        }
        let mut drawn: Vec<String> =
            lines.into_iter().map(|line| self.colours.paint(Paint::Dim, line).to_string()).collect();
        drawn.push(fitting(&line(&now), width));
        progress(drawn.join("\n"));
    }
}

impl Observer for Show {
    fn news(&mut self, news: &News, board: &Board) {
        if self.quiet {
            return;
        }
        let said = self.tell(news);
        let every = if self.live { DRAWN } else { SAID };
        // What is said on a terminal takes away what is shown.
        if self.last.elapsed() >= every || self.live && said {
            self.draw(board);
        }
    }
}

fn at_work(job: &Running, width: usize) -> String {
    let again = if job.attempt > 1 { format!(" (attempt {})", job.attempt) } else { String::new() };
    let id = one_line(&job.id, 30);
    fitting(&format!("  {:>4} {id}{again}: {}", age(job.for_ms as i64), one_line(&job.doing, 200)), width)
}

/// How far it is, in one line.
fn line(now: &Progress) -> String {
    let done = now.succeeded + now.failed;
    let mut parts = vec![match now.jobs {
        Some(jobs) => format!("{done}/{jobs} done"),
        None => format!("{done} of {} so far done", now.known),
    }];
    parts.push(format!("{} failed", now.failed));
    parts.push(format!("{} running", now.running.len()));
    if now.queued > 0 {
        parts.push(format!("{} in the queue", now.queued));
    }
    if now.refused > 0 {
        parts.push(format!("{} lines refused", now.refused));
    }
    parts.extend(now.per_minute.map(|rate| match rate {
        0.0..10.0 => format!("{rate:.1}/min"),
        _ => format!("{rate:.0}/min"),
    }));
    parts.extend(now.left_ms.map(|left| format!("{} left", age(left as i64))));
    parts.push(used(&now.spent));
    parts.extend(now.held_ms.map(|held| format!("rate limit: goes on in {}", age(held as i64 + 999))));
    match now.phase {
        Phase::Going => {}
        Phase::Draining => parts.push("no more begin".to_owned()),
        Phase::Stopping => parts.push("stopping".to_owned()),
    }
    parts.join(" · ")
}

fn used(spent: &Spent) -> String {
    let more = if spent.unpriced { ", or more" } else { "" };
    format!("{} tokens · {}{more}", short(spent.tokens), dollars(spent.cost_usd))
}

/// What came of it, for people.
pub fn summary(summary: &Summary, ended: &Ended) -> String {
    let results = ended.journal.path();
    let mut lines = vec![format!(
        "{} of {} jobs succeeded, {} failed{}",
        number(summary.succeeded),
        number(summary.jobs),
        number(summary.failed),
        match summary.left {
            0 => String::new(),
            left => format!(", {} not done", number(left)),
        }
    )];
    for (kind, count) in &summary.by_kind {
        lines.push(format!("  {kind}: {}", number(*count)));
    }
    if summary.refused > 0 {
        lines.push(format!("{} lines were no jobs", number(summary.refused)));
    }
    if let (Some(p50), Some(p95)) = (summary.p50_ms, summary.p95_ms) {
        lines.push(format!("a job took {} (p50), {} (p95)", duration(p50), duration(p95)));
    }
    let more = if summary.spent.unpriced { ", or more: not every model has a price" } else { "" };
    lines.push(format!("{} tokens, {}{more}", number(summary.spent.tokens), dollars(summary.spent.cost_usd)));
    match summary.left == 0 && summary.here == 0 {
        true => lines.push(format!("all of it was done before: {}", results.display())),
        false => lines.push(format!("in {}: {}", duration(summary.elapsed_ms), results.display())),
    }
    if let Some(stopped) = &summary.stopped {
        let more = match summary.left == 0 && ended.supply.is_complete() {
            true => "no job was left",
            false => "the same command goes on from here",
        };
        lines.push(format!("stopped: {stopped}; {more}"));
    }
    lines.join("\n")
}
