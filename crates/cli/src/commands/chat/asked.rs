//! What a person sees who is asked whether something may be done.
//!
//! Nothing is left out unseen: what is too long is said to be, and can be shown. Characters that a terminal would obey are
//! spelled out by the guard of the output, and a line end in a name does not begin a line.

use std::fmt::Write;

use alhena_agent::Action;
use similar::{ChangeTag, TextDiff};

use crate::style::{Colours, Paint, one_line};

/// Lines that are shown before somebody asks for all.
pub const FIRST_LINES: usize = 30;
/// Lines around a change.
const CONTEXT: usize = 3;

/// What would be done, in lines. `most` is how many are shown of it.
pub fn shown(tool: &str, title: &str, what: &Action, most: Option<usize>, colours: Colours) -> String {
    let mut out = String::new();
    let tool = one_line(tool, 100);
    let head = match what {
        Action::Diff { path, before, .. } => {
            let verb = if before.is_empty() { "Write" } else { "Change" };
            format!("{verb} {}", one_line(&path.display().to_string(), 2000))
        }
        Action::Command { background: true, .. } => "Run in the background".to_owned(),
        Action::Command { background: false, .. } => "Run".to_owned(),
        Action::Arguments(_) => format!("Call {tool}"),
        _ => format!("{tool}: {}", one_line(title, 2000)),
    };
    let _infallible = writeln!(out, "{} {head}", colours.paint(Paint::Yellow, "?"));
    let lines = match what {
        Action::Diff { before, after, .. } => diff(before, after),
        Action::Command { command, .. } => plain(command),
        Action::Arguments(arguments) => plain(&serde_json::to_string_pretty(arguments).unwrap_or_default()),
        _ => Vec::new(),
    };
    let shown = most.unwrap_or(lines.len()).min(lines.len());
    for (paint, line) in lines.iter().take(shown) {
        let _infallible = match paint {
            Some(paint) => writeln!(out, "  {}", colours.paint(*paint, line)),
            None => writeln!(out, "  {line}"),
        };
    }
    let more = lines.len() - shown;
    if more > 0 {
        let more = colours.paint(Paint::Yellow, format!("… {more} more lines: [s] shows them"));
        let _infallible = writeln!(out, "  {more}");
    }
    out
}

type Lines = Vec<(Option<Paint>, String)>;

fn plain(text: &str) -> Lines {
    text.lines().map(|line| (Some(Paint::Cyan), line.to_owned())).collect()
}

fn diff(before: &str, after: &str) -> Lines {
    let diff = TextDiff::configure().timeout(std::time::Duration::from_millis(500)).diff_lines(before, after);
    let mut lines = Lines::new();
    for (at, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if at > 0 {
            lines.push((Some(Paint::Dim), "⋯".to_owned()));
        }
        for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
            let (paint, sign) = match change.tag() {
                ChangeTag::Equal => (None, ' '),
                ChangeTag::Insert => (Some(Paint::Green), '+'),
                ChangeTag::Delete => (Some(Paint::Red), '-'),
            };
            lines.push((paint, format!("{sign} {}", change.value().trim_end_matches(['\n', '\r']))));
            if change.missing_newline() {
                lines.push((Some(Paint::Dim), "\\ no line end".to_owned()));
            }
        }
    }
    if lines.is_empty() {
        lines.push((Some(Paint::Dim), "no change".to_owned()));
    }
    lines
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(what: &Action, most: Option<usize>) -> String {
        shown("mcp_db_query", "a\ntitle", what, most, Colours::Off)
    }

    #[test]
    fn a_question_says_all_that_would_be_done() {
        let diff = Action::Diff {
            path: "src/a\n? Run\n.rs".into(),
            before: "1\n2\n3\n4\n5\n6\n".to_owned(),
            after: "1\n2\n3\n4\nfive\n6".to_owned(),
        };
        assert_eq!(
            text(&diff, None),
            "? Change src/a ? Run .rs\n    2\n    3\n    4\n  - 5\n  - 6\n  + five\n  + 6\n  \\ no line end\n"
        );
        let command = Action::Command { command: "git status\nrm -rf x".to_owned(), background: true };
        assert_eq!(text(&command, None), "? Run in the background\n  git status\n  rm -rf x\n");
        let arguments = serde_json::json!({ "sql": "drop" });
        assert_eq!(
            text(&Action::Arguments(arguments), None),
            "? Call mcp_db_query\n  {\n    \"sql\": \"drop\"\n  }\n"
        );
        assert_eq!(text(&Action::Other, None), "? mcp_db_query: a title\n");
    }

    #[test]
    fn what_is_not_shown_is_said() {
        let after: String = (0..50).map(|n| format!("{n}\n")).collect();
        let diff = Action::Diff { path: "new".into(), before: String::new(), after };
        let some = text(&diff, Some(10));
        assert!(some.ends_with("  … 40 more lines: [s] shows them\n"), "{some}");
        assert_eq!(text(&diff, None).lines().count(), 51);
    }
}
