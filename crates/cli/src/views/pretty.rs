//! For people: streamed text, one line per tool, a summary of each changed file, and a closing summary.
//!
//! Gemini CLI writes a turn's thoughts down when the turn is over (0.61.0), after its text has been streamed. On a
//! terminal text is shown as it comes, and such a thought is marked as an earlier one; elsewhere nobody waits, and the
//! text of a turn is held until its thoughts are known.

mod spinner;

use std::collections::HashSet;
use std::io::{self, Write};

use alhena_model::tool::Class;
use alhena_model::{Change, FileChange, Source};
use alhena_model::{Event, EventKind, Outcome, Status};

use self::spinner::Spinner;
use super::{Claims, Target, View};
use crate::command_error::words_of;
use crate::style::{Colours, Harmless, Paint, dollars, duration, number, one_line, with_flags};

/// Lines of a diff that are shown.
const DIFF_LINES: usize = 12;
/// The longest line of foreign words. The terminal wraps it; cut is only what nobody would read.
const LONGEST: usize = 2000;
/// What a tool said is a reminder of it, not all of it.
const SAID: usize = 200;
/// How much text is held for a thought.
const HELD: usize = 1 << 20;
/// What is shown of a thought that is folded.
const FOLDED: usize = 72;

pub struct Pretty {
    target: Target,
    quiet: bool,
    thoughts: Thoughts,
    claims: Claims,
    harmless: Harmless,
    spinner: Spinner,
    in_line: bool,
    /// Text of this turn that waits for a thought; only where nobody watches.
    held: String,
    /// Whether text of this turn has been shown.
    spoke: bool,
    open: Vec<Call>,
    /// Warnings in Alhena's own words.
    own_warnings: HashSet<String>,
}

/// How much of a thought is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoughts {
    Whole,
    /// What it is about.
    Folded,
}

/// A tool that runs.
struct Call {
    id: String,
    class: Class,
    what: String,
}

impl Pretty {
    pub fn new(target: Target, quiet: bool, claims: Claims) -> Self {
        let spinner = Spinner::start(if quiet { Colours::Off } else { target.colours });
        Self {
            target,
            quiet,
            thoughts: Thoughts::Whole,
            claims,
            harmless: Harmless::default(),
            spinner,
            in_line: false,
            held: String::new(),
            spoke: false,
            open: Vec::new(),
            own_warnings: HashSet::new(),
        }
    }

    /// One turn of a conversation: thoughts are folded, and who answers is said elsewhere.
    pub fn of_turn() -> Self {
        let mut pretty = Self::new(Target::stdout(), false, Claims::Checked);
        pretty.thoughts = Thoughts::Folded;
        pretty
    }

    /// Makes room for something else on the terminal.
    pub fn pause(&mut self) -> io::Result<()> {
        self.spinner.hide();
        self.release()?;
        self.end_line()?;
        self.target.out.flush()
    }

    /// The end of a turn, in a line if all is well: files and commands have been shown as they came.
    pub fn end_turn(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.pause()?;
        let colours = self.target.colours;
        let (paint, word) = word_for(outcome.status);
        let paint = if outcome.is_success() { Paint::Dim } else { paint };
        let facts = format!("{word} · {}", facts(outcome).join(" · "));
        writeln!(self.target.out, "{}", colours.paint(paint, facts))?;
        // Whoever cancelled it knows.
        if outcome.status != Status::Cancelled {
            self.complaints(outcome)?;
        }
        self.target.out.flush()
    }

    fn line(&mut self, paint: Paint, mark: &str, text: &str) -> io::Result<()> {
        self.end_line()?;
        let mark = self.target.colours.paint(paint, mark);
        writeln!(self.target.out, "{mark} {text}")?;
        self.target.out.flush()
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_line) {
            self.target.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn text(&mut self, delta: &str) -> io::Result<()> {
        let text = self.harmless.clean(delta);
        match self.target.terminal {
            true => self.show(&text),
            false => {
                self.held.push_str(&text);
                if self.held.len() > HELD { self.release() } else { Ok(()) }
            }
        }
    }

    /// Shows the text that was held.
    fn release(&mut self) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.show(&held)
    }

    fn show(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.spoke = true;
        self.target.out.write_all(text.as_bytes())?;
        self.in_line = !text.ends_with('\n');
        self.target.out.flush()
    }

    fn thinking(&mut self, subject: &str, text: &str) -> io::Result<()> {
        let when = if self.spoke { "earlier: " } else { "" };
        let words = match self.thoughts {
            Thoughts::Whole => one_line(&format!("{when}{subject}: {text}"), LONGEST),
            Thoughts::Folded => one_line(if subject.is_empty() { text } else { subject }, FOLDED),
        };
        let words = self.target.colours.paint(Paint::Dim, words).to_string();
        self.line(Paint::Dim, "∴", &words)
    }

    fn tool_ended(
        &mut self,
        id: &str,
        name: &str,
        ok: bool,
        said: Option<&str>,
        exit_code: Option<i32>,
    ) -> io::Result<()> {
        self.release()?;
        self.spoke = false;
        let call = self.open.iter().position(|call| call.id == id).map(|at| self.open.remove(at));
        let call = call.unwrap_or_else(|| Call {
            id: id.to_owned(),
            class: Class::Unknown,
            what: one_line(name, LONGEST),
        });
        let (paint, mark) = if ok { (Paint::Green, "✓") } else { (Paint::Red, "✗") };
        let code =
            exit_code.filter(|code| *code != 0).map(|code| format!(" (exit {code})")).unwrap_or_default();
        // The change of the file says better what a tool says that wrote it.
        let said = said.filter(|_| !(ok && call.class == Class::FileWrite));
        let said = said.map(|said| one_line(said, SAID)).filter(|said| !said.is_empty());
        let said =
            said.map(|said| format!(" {}", self.target.colours.paint(Paint::Dim, format!("→ {said}"))));
        self.line(paint, mark, &format!("{}{code}{}", call.what, said.unwrap_or_default()))
    }

    fn file(&mut self, change: &FileChange) -> io::Result<()> {
        let colours = self.target.colours;
        let (paint, mark) = mark_of(change.change);
        let (added, removed) = change.diff.as_deref().map(count).unwrap_or_default();
        let mut text = one_line(&change.path, LONGEST);
        if change.diff.is_some() {
            let (added, removed) = (format!("+{added}"), format!("-{removed}"));
            text.push_str(&format!(
                " {} {}",
                colours.paint(Paint::Green, added),
                colours.paint(Paint::Red, removed)
            ));
        }
        if !change.verified && self.claims == Claims::Checked {
            text.push_str(&format!(" {}", colours.paint(Paint::Yellow, "(not on disk)")));
        }
        self.line(paint, &format!("  {mark}"), &text)?;
        self.diff(change.diff.as_deref().unwrap_or(""))
    }

    fn diff(&mut self, diff: &str) -> io::Result<()> {
        let colours = self.target.colours;
        let changed: Vec<&str> = diff.lines().filter(|line| is_change(line)).collect();
        for line in changed.iter().take(DIFF_LINES) {
            let paint = if line.starts_with('+') { Paint::Green } else { Paint::Red };
            let line = Harmless::default().clean(line);
            let line: String = line.chars().take(LONGEST).collect();
            writeln!(self.target.out, "      {}", colours.paint(paint, line))?;
        }
        if changed.len() > DIFF_LINES {
            let more = format!("… {} more lines", changed.len() - DIFF_LINES);
            writeln!(self.target.out, "      {}", colours.paint(Paint::Dim, more))?;
        }
        self.target.out.flush()
    }

    fn summary(&mut self, outcome: &Outcome) -> io::Result<()> {
        let colours = self.target.colours;
        self.end_line()?;
        writeln!(self.target.out)?;
        if let Some(data) = &outcome.data {
            writeln!(self.target.out, "{}", Harmless::default().clean(&format!("{data:#}")))?;
        }
        let (paint, word) = word_for(outcome.status);
        writeln!(self.target.out, "{} {}", colours.paint(paint, word), facts(outcome).join(" · "))?;
        for file in &outcome.files {
            let (paint, mark) = mark_of(file.change);
            let note = match (file.claimed, file.verified, self.claims) {
                (true, true, _) | (true, false, Claims::Unchecked) => "",
                (true, false, Claims::Checked) => "  claimed, but not on disk",
                (false, _, _) => "  changed during the run",
            };
            let path = one_line(&file.path, LONGEST);
            writeln!(
                self.target.out,
                "  {} {path}{}",
                colours.paint(paint, mark),
                colours.paint(Paint::Dim, note)
            )?;
        }
        self.complaints(outcome)?;
        if let Some(session) = &outcome.session_id {
            let session = one_line(session, LONGEST);
            writeln!(self.target.out, "  {}", colours.paint(Paint::Dim, format!("session {session}")))?;
        }
        self.target.out.flush()
    }
}

impl Pretty {
    fn complaints(&mut self, outcome: &Outcome) -> io::Result<()> {
        let colours = self.target.colours;
        for warning in &outcome.warnings {
            let own = self.own_warnings.contains(warning);
            let warning = one_line(&if own { with_flags(warning) } else { warning.clone() }, 300);
            writeln!(self.target.out, "  {} {warning}", colours.paint(Paint::Yellow, "!"))?;
        }
        if let Some(failure) = &outcome.failure {
            writeln!(self.target.out, "{} {}", colours.paint(Paint::Red, "error:"), words_of(failure))?;
            let hint = with_flags(&failure.hint);
            writeln!(self.target.out, "{} {hint}", colours.paint(Paint::Cyan, "hint:"))?;
        }
        Ok(())
    }
}

fn word_for(status: Status) -> (Paint, &'static str) {
    match status {
        Status::Success => (Paint::Green, "done"),
        Status::Failed => (Paint::Red, "failed"),
        Status::Cancelled => (Paint::Yellow, "cancelled"),
        Status::Timeout => (Paint::Red, "timeout"),
        Status::Stalled => (Paint::Red, "stalled"),
    }
}

/// What it took.
fn facts(outcome: &Outcome) -> Vec<String> {
    let tokens = &outcome.usage.all;
    let mut facts = vec![duration(outcome.duration_ms)];
    if tokens.total > 0 {
        let thoughts = match tokens.thoughts {
            0 => String::new(),
            thoughts => format!(", {} thoughts", number(thoughts)),
        };
        facts.push(format!(
            "{} tokens ({} in, {} out{thoughts})",
            number(tokens.total),
            number(tokens.prompt),
            number(tokens.output)
        ));
    }
    if let Some(cost) = outcome.cost_usd {
        let at_least = if outcome.cost_is_lower_bound { "≥ " } else { "" };
        facts.push(format!("{at_least}{}", dollars(cost)));
    }
    if outcome.tool_calls > 0 {
        let calls = if outcome.tool_calls == 1 { "call" } else { "calls" };
        facts.push(format!("{} tool {calls}", outcome.tool_calls));
    }
    facts.extend(outcome.models.iter().map(|model| one_line(model, LONGEST)));
    facts
}

impl View for Pretty {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.spinner.hide();
        let written = match &event.kind {
            EventKind::Started { model, .. } if !self.quiet => {
                let model = one_line(model, LONGEST);
                self.line(
                    Paint::Dim,
                    "·",
                    &self.target.colours.paint(Paint::Dim, format!("Gemini CLI, model {model}")).to_string(),
                )
            }
            EventKind::Warning { message } if event.source == Source::Derived => {
                self.own_warnings.insert(message.clone());
                Ok(())
            }
            EventKind::Text { delta } => self.text(delta),
            EventKind::Thinking { subject, text } => self.thinking(subject, text),
            EventKind::ToolCall { id, name, class, input, .. } => {
                let what = describe(name, *class, input);
                self.open.push(Call { id: id.clone(), class: *class, what });
                // So that there is room to say that it runs.
                self.end_line().and_then(|()| self.target.out.flush())
            }
            EventKind::ToolResult { id, name, ok, output, error, exit_code, .. } => {
                let said = error.as_ref().map(|error| error.message.as_str()).or(output.as_deref());
                self.tool_ended(id, name, *ok, said, *exit_code)
            }
            EventKind::FileChange(change) => self.file(change),
            EventKind::Malformed { sample, bytes } if !self.quiet => {
                let text = one_line(&format!("{bytes} bytes that are no event: {sample}"), LONGEST);
                self.line(Paint::Yellow, "?", &text)
            }
            // The session's account of a turn is complete.
            EventKind::Usage { .. } if event.source == Source::Session => self.release(),
            EventKind::Finished { .. } => self.release(),
            _ => Ok(()),
        };
        let waiting = match &event.kind {
            EventKind::Finished { .. } => None,
            // Perhaps it says why nothing else comes; all of them stand at the end.
            EventKind::Warning { message } => Some(one_line(message, LONGEST)),
            _ => Some(self.open.last().map_or("thinking".to_owned(), |call| call.what.clone())),
        };
        if let Some(waiting) = waiting.filter(|_| !self.in_line) {
            self.spinner.show(waiting);
        }
        written
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.spinner.hide();
        self.release()?;
        self.summary(outcome)
    }
}

/// One line that says what a call is about.
fn describe(name: &str, class: Class, input: &serde_json::Value) -> String {
    let text = |key: &str| input.get(key).and_then(serde_json::Value::as_str);
    let what = match class {
        Class::Command => text("command"),
        Class::FileRead | Class::FileWrite => {
            ["file_path", "absolute_path", "dir_path", "path", "pattern"].iter().find_map(|key| text(key))
        }
        Class::SearchFetch => text("query").or(text("prompt")).or(text("url")),
        Class::Agent => text("agent_name"),
        Class::AskUser | Class::Planning | Class::Mcp | Class::Unknown => {
            ["title", "summary", "reason", "name"].iter().find_map(|key| text(key))
        }
    };
    one_line(&format!("{} {}", verb(name, class), what.unwrap_or("")), LONGEST).trim_end().to_owned()
}

fn verb(name: &str, class: Class) -> &str {
    match (name, class) {
        ("run_shell_command", _) => "$",
        ("read_file", _) => "read",
        ("write_file", _) => "write",
        ("replace", _) => "edit",
        ("list_directory", _) => "list",
        ("glob", _) => "find",
        ("grep_search" | "search_file_content", _) => "search",
        ("google_web_search", _) => "web search",
        ("web_fetch", _) => "fetch",
        ("invoke_agent", _) => "agent",
        _ => name,
    }
}

fn mark_of(change: Change) -> (Paint, &'static str) {
    match change {
        Change::Created => (Paint::Green, "+"),
        Change::Modified => (Paint::Yellow, "~"),
        Change::Deleted => (Paint::Red, "-"),
    }
}

fn is_change(line: &str) -> bool {
    (line.starts_with('+') && !line.starts_with("+++")) || (line.starts_with('-') && !line.starts_with("---"))
}

fn count(diff: &str) -> (usize, usize) {
    let added = diff.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++")).count();
    let removed = diff.lines().filter(|line| line.starts_with('-') && !line.starts_with("---")).count();
    (added, removed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
