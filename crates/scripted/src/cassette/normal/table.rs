//! What differs from run to run without a meaning: the one table of it, and the places that a request itself tells of.
//!
//! Seen with Gemini CLI 0.61.0. What is written down is brought into the common form again when it is read, so that a
//! row that is added here holds for the cassettes that are there.

use std::sync::LazyLock;

use regex::Regex;

/// What stands in the place of what differs.
const TABLE: &[(&str, &str)] = &[
    // The directory for temporary files that Alhena gives a run, and names that `mktemp` makes there.
    (r#"[^\s`'"()<>]*/alhena-[0-9]+-[A-Za-z0-9]{6}\b"#, "[[run]]"),
    (r"(\[\[(?:tmp|run)\]\]/)tmp\.[A-Za-z0-9]{6,}", "$1[[file]]"),
    // The CLI's own files, and what it calls the folder there; the model is told of them.
    (r#"[^\s`'"()]*/\.gemini/tmp/[^/\s`'"()]+"#, "[[gemini]]/tmp/[[folder]]"),
    (r#"[^\s`'"()]*/\.gemini/"#, "[[gemini]]/"),
    (r"\[\[temporary\]\]", "[[gemini]]/tmp/[[folder]]"),
    // Of the context that begins a session.
    (r"Today's date is [^\n]*", "Today's date is [[date]]"),
    (r"My operating system is: [^\n]*", "My operating system is: [[system]]"),
    // The cassette itself may be one of the files.
    (
        r"(?s)- \*\*Directory Structure:\*\*.*?</session_context>",
        "- **Directory Structure:** [[files]]\n</session_context>",
    ),
    // Of results of tools.
    (r"(PGID|PIDs?): [0-9][0-9, ]*", "$1: [[process]]"),
    (r"(\[\S+ (?:\(root-commit\) )?)[0-9a-f]{7,40}\]", "$1[[commit]]]"),
    // Ids of calls, which the CLI makes of the tool's name and the time.
    (r"\b\w+_[0-9]{13}_[0-9a-f]+\b", "[[call]]"),
    (r"\b[\w-]+-[0-9]{13}-[0-9a-f]+\b", "[[call]]"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "[[id]]"),
    // Times as programs write them: for programs, in a log, by `date`, by `ls -l`.
    (
        r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z| ?[+-][0-9]{2}:?[0-9]{2})?",
        "[[time]]",
    ),
    (
        r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +(?:[A-Z][a-z]{2} +[0-9]{1,2}|[0-9]{1,2} +[A-Z][a-z]{2}(?: +[0-9]{4})?) +[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?: +[AP]M)?(?: +[A-Z]{2,5}\b| +[+-][0-9]{4}\b)?(?: +[0-9]{4}\b)?",
        "[[time]]",
    ),
    (
        r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +[0-9]{1,2} +(?:[0-9]{2}:[0-9]{2}|[0-9]{4})\b",
        "[[time]]",
    ),
    (r"\b1[0-9]{12}\b", "[[time]]"),
    // How long something took. Whole seconds are left alone: people ask for them.
    (r"\b[0-9]+m[0-9]+\.[0-9]+s\b", "[[duration]]"),
    (r"\b[0-9]+\.[0-9]+ ?(?:s|ms|µs|secs?|seconds)\b", "[[duration]]"),
    (r"\([0-9]+ ?ms\)", "([[duration]])"),
];

/// Places that a request tells of, and what they are called. In an answer to it they are these places, whoever asks.
const TOLD: &[(&str, &str)] = &[
    (r"(?m)^- \*\*Workspace Directories:\*\*\n  - (/.+)$", "dir"),
    (r"(?m)^The project's temporary directory is: (/.+)$", "temporary"),
    // Where the CLI is installed: the model is told where its skills are.
    (r"<location>(/[^<]+)/builtin/[^/<]+/SKILL\.md</location>", "gemini-cli"),
    (r#"(/[^\s`'"()<>]*/alhena-[0-9]+-[A-Za-z0-9]{6})\b"#, "run"),
];

/// A tool whose description depends on what else is there: ripgrep, and which skill was read first.
const DEPENDS_ON_THE_MACHINE: &[&str] = &["activate_skill", "grep_search"];

/// Lists in whatever order files were read, which is another one on a busy machine.
const UNORDERED: &[&str] = &["(?s)<skill>.*?</skill>", "(?s)<subagent>.*?</subagent>"];

type Compiled = Vec<(Regex, &'static str)>;

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| compiled(TABLE));
static COMPILED_UNORDERED: LazyLock<Vec<Regex>> =
    LazyLock::new(|| UNORDERED.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect());
static COMPILED_TOLD: LazyLock<Compiled> = LazyLock::new(|| compiled(TOLD));

fn compiled(table: &[(&str, &'static str)]) -> Compiled {
    table.iter().filter_map(|(pattern, name)| Some((Regex::new(pattern).ok()?, *name))).collect()
}

/// A text in the common form.
pub(super) fn common(text: String) -> String {
    let text = COMPILED_UNORDERED.iter().fold(text, ordered);
    COMPILED.iter().fold(text, |text, (pattern, name)| match pattern.is_match(&text) {
        true => pattern.replace_all(&text, *name).into_owned(),
        false => text,
    })
}

/// A text with what the pattern finds in it in order.
fn ordered(text: String, pattern: &Regex) -> String {
    let mut entries: Vec<&str> = pattern.find_iter(&text).map(|found| found.as_str()).collect();
    if entries.is_sorted() {
        return text;
    }
    entries.sort_unstable();
    let mut entries = entries.into_iter();
    pattern.replace_all(&text, |_: &regex::Captures<'_>| entries.next().unwrap_or_default()).into_owned()
}

/// The places that a text tells of: their names, and where they are.
pub(super) fn told(text: &str) -> impl Iterator<Item = (&'static str, &str)> {
    COMPILED_TOLD.iter().filter_map(|(pattern, name)| {
        let path = pattern.captures(text)?.get(1)?.as_str().trim_end_matches('/');
        (!path.is_empty() && !path.contains("[[")).then_some((*name, path))
    })
}

/// Whether the description of a tool says more of the machine than of the request.
pub(super) fn depends_on_the_machine(tool: &str) -> bool {
    DEPENDS_ON_THE_MACHINE.contains(&tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_of_the_tables_is_one() {
        assert_eq!((COMPILED.len(), COMPILED_TOLD.len()), (TABLE.len(), TOLD.len()));
        assert_eq!(COMPILED_UNORDERED.len(), UNORDERED.len());
    }

    #[test]
    fn skills_have_an_order_whichever_was_read_first() {
        let skill = |name: &str| format!("  <skill>\n    <name>{name}</name>\n  </skill>\n");
        let both =
            |one, other| format!("<available_skills>\n{}{}</available_skills>", skill(one), skill(other));
        assert_eq!(common(both("b", "a")), both("a", "b"));
        assert_eq!(common(both("a", "b")), both("a", "b"));
    }

    #[test]
    fn what_is_in_the_common_form_stays_in_it() {
        for (text, expected) in [
            ("Ran 3 tests in 0.004s", "Ran 3 tests in [[duration]]"),
            ("ok (12 ms)\nreal\t0m1.204s", "ok ([[duration]])\nreal\t[[duration]]"),
            ("[main (root-commit) 1f2e3d4] First", "[main (root-commit) [[commit]]] First"),
            ("-rw-r--r-- 1 u u 5 Nov 17 06:31 a", "-rw-r--r-- 1 u u 5 [[time]] a"),
            ("Tue Nov 17 06:31:12 UTC 2026; Tue, 17 Nov 2026 06:31:12 GMT.", "[[time]]; [[time]]."),
            ("2026-11-17 06:31:12,123 INFO", "[[time]] INFO"),
            ("/tmp/alhena-8124-m0e4uE/x and /a b/alhena-1-abcdef", "[[run]]/x and /a [[run]]"),
            ("[[tmp]]/tmp.Ab12Cd34Ef", "[[tmp]]/[[file]]"),
            ("Wait 5s, then 10 seconds; 3.14 is pi", "Wait 5s, then 10 seconds; 3.14 is pi"),
        ] {
            let once = common(text.to_owned());
            assert_eq!(once, expected);
            assert_eq!(common(once.clone()), once);
        }
    }

    #[test]
    fn a_request_tells_where_things_are() {
        let context = "The project's temporary directory is: /home/a b/.gemini/tmp/x\n- **Workspace Directories:**\n  - \
                       /srv/a b\n  - /srv/c\n- **Directory Structure:**";
        assert_eq!(
            told(context).collect::<Vec<_>>(),
            [("dir", "/srv/a b"), ("temporary", "/home/a b/.gemini/tmp/x")]
        );
        let skills = "<location>/opt/x y/bundle/builtin/skill-creator/SKILL.md</location>";
        assert_eq!(told(skills).collect::<Vec<_>>(), [("gemini-cli", "/opt/x y/bundle")]);
        assert_eq!(told("- **Workspace Directories:**\n  - [[dir]]\n").count(), 0);
    }
}
