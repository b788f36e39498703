//! A conversation for people on a terminal: thoughts, tool cards, coloured diffs.

use std::fmt::Write;

use alhena_model::message::{Block, Content, Role, ToolResult};
use alhena_model::{Message, Timestamp};
use alhena_session::export::{Page, about};
use alhena_wire::session::shell_output;
use serde_json::Value;

use crate::style::{Colours, Harmless, Paint, number, one_line};

/// Lines of a tool's output that are shown, unless all are asked for.
const OUTPUT_LINES: usize = 8;
const DIFF_LINES: usize = 60;
const WIDTH: usize = 110;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    Usual,
    /// All output, all of each diff, and the thoughts whole.
    Full,
}

pub struct Pretty {
    colours: Colours,
    detail: Detail,
}

impl Pretty {
    pub fn new(colours: Colours, detail: Detail) -> Self {
        Self { colours, detail }
    }

    /// The whole page.
    pub fn page(&self, page: &Page<'_>) -> String {
        let mut out = String::new();
        let _infallible = writeln!(out, "{}", self.colours.paint(Paint::Cyan, one_line(&page.title, WIDTH)));
        for (name, fact) in &page.facts {
            let line = format!("{name:9} {}", one_line(fact, WIDTH));
            let _infallible = writeln!(out, "{}", self.colours.paint(Paint::Dim, line));
        }
        self.messages(page, "", &mut out);
        out
    }

    fn messages(&self, page: &Page<'_>, indent: &str, out: &mut String) {
        for message in page.messages {
            self.message(message, page, indent, out);
        }
    }

    /// One message.
    pub fn message(&self, message: &Message<'_>, page: &Page<'_>, indent: &str, out: &mut String) {
        let (paint, who) = match message.role {
            Role::User => (Paint::Cyan, "▌ you"),
            Role::Assistant => (Paint::Green, "▌ gemini"),
        };
        let _infallible = writeln!(
            out,
            "\n{indent}{} {}",
            self.colours.paint(paint, who),
            self.colours.paint(Paint::Dim, facts(message))
        );
        if let Content::Text(text) = &message.content {
            self.text(text, indent, out);
        }
        let mut shell = false;
        for block in in_order(message.content.blocks()) {
            match block {
                Block::Thinking { thinking } => self.thought(thinking, indent, out),
                Block::ToolUse { id, name, input } => {
                    self.call(name, input, indent, out);
                    shell = name == "Bash";
                    if let Some((_, child)) = page.children.iter().find(|(call, _)| call == id) {
                        self.messages(child, &format!("{indent}  │ "), out);
                    }
                }
                Block::ToolResult(result) => self.result(result, shell, indent, out),
                Block::Image { .. } => {
                    let _infallible =
                        writeln!(out, "{indent}  {}", self.colours.paint(Paint::Dim, "[image]"));
                }
                Block::Text { text } => self.text(text, indent, out),
            }
        }
    }

    fn text(&self, text: &str, indent: &str, out: &mut String) {
        for line in Harmless::default().clean(text.trim_end()).lines() {
            let _infallible = writeln!(out, "{}", format!("{indent}{line}").trim_end());
        }
    }

    fn thought(&self, text: &str, indent: &str, out: &mut String) {
        let text = match self.detail {
            Detail::Usual => one_line(text, WIDTH),
            Detail::Full => Harmless::default().clean(text.trim_end()),
        };
        for (at, line) in text.lines().enumerate() {
            let mark = if at == 0 { "∴" } else { " " };
            let _infallible =
                writeln!(out, "{indent}{}", self.colours.paint(Paint::Dim, format!("{mark} {line}")));
        }
    }

    fn call(&self, name: &str, input: &Value, indent: &str, out: &mut String) {
        let subject = about(input).map(|text| one_line(text, WIDTH)).unwrap_or_default();
        let mark = self.colours.paint(Paint::Cyan, "●");
        let line = format!("{indent}{mark} {} {subject}", one_line(name, 40));
        let _infallible = writeln!(out, "{}", line.trim_end());
    }

    fn result(&self, result: &ToolResult<'_>, shell: bool, indent: &str, out: &mut String) {
        let trouble = match result.exit_code {
            _ if result.cancelled => Some("cancelled".to_owned()),
            Some(code) if code != 0 => Some(format!("exit {code}")),
            _ if result.is_error => Some("failed".to_owned()),
            _ => None,
        };
        if let Some(trouble) = trouble {
            let _infallible = writeln!(out, "{indent}  {}", self.colours.paint(Paint::Red, trouble));
        }
        match &result.diff {
            Some(diff) => self.diff(diff, indent, out),
            None if shell => self.output(shell_output(&result.content), indent, out),
            None => self.output(&result.content, indent, out),
        }
    }

    fn output(&self, text: &str, indent: &str, out: &mut String) {
        let text = Harmless::default().clean(text.trim_end());
        let most = if self.detail == Detail::Full { usize::MAX } else { OUTPUT_LINES };
        for line in text.lines().take(most) {
            if line.trim().is_empty() {
                let _infallible = writeln!(out, "{}", indent.trim_end());
                continue;
            }
            let line = if self.detail == Detail::Full { line.to_owned() } else { cut(line) };
            let _infallible = writeln!(out, "{indent}  {}", self.colours.paint(Paint::Dim, line));
        }
        self.more(text.lines().count().saturating_sub(most), indent, out);
    }

    fn diff(&self, diff: &str, indent: &str, out: &mut String) {
        let clean = Harmless::default().clean(diff);
        let lines =
            || clean.lines().filter(|line| !line.starts_with("Index: ") && !line.starts_with("====="));
        let most = if self.detail == Detail::Full { usize::MAX } else { DIFF_LINES };
        for line in lines().take(most) {
            let paint = match line.as_bytes().first() {
                _ if line.starts_with("+++") || line.starts_with("---") => Some(Paint::Dim),
                Some(b'+') => Some(Paint::Green),
                Some(b'-') => Some(Paint::Red),
                Some(b'@') => Some(Paint::Cyan),
                _ => None,
            };
            let _infallible = match paint {
                Some(paint) => writeln!(out, "{indent}  {}", self.colours.paint(paint, line)),
                None => writeln!(out, "{indent}  {line}"),
            };
        }
        self.more(lines().count().saturating_sub(most), indent, out);
    }

    fn more(&self, lines: usize, indent: &str, out: &mut String) {
        if lines > 0 {
            let more = format!("… {lines} more lines (--full shows all)");
            let _infallible = writeln!(out, "{indent}  {}", self.colours.paint(Paint::Dim, more));
        }
    }
}

/// Thoughts, then what was said, then what was done: a model says what it will do before it calls a tool.
fn in_order<'m, 'a>(blocks: &'m [Block<'a>]) -> impl Iterator<Item = &'m Block<'a>> {
    let rank = |block: &&Block<'_>| match block {
        Block::Thinking { .. } => 0,
        Block::Text { .. } => 1,
        Block::ToolUse { .. } | Block::ToolResult(_) | Block::Image { .. } => 2,
    };
    (0..3).flat_map(move |wanted| blocks.iter().filter(move |block| rank(block) == wanted))
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or("")),
        None => line.to_owned(),
    }
}

fn facts(message: &Message<'_>) -> String {
    let mut facts = Vec::new();
    if let Some(millis) = message.timestamp {
        let time = Timestamp::from_millis(millis).to_string();
        facts.push(time.get(..19).unwrap_or(&time).replace('T', " "));
    }
    facts.extend(message.model.as_deref().map(|model| one_line(model, 40)));
    if let Some(usage) = &message.usage {
        facts.push(format!("{} tokens", number(usage.total_tokens)));
    }
    facts.join(" · ")
}
