//! The common form of a request: what differs from run to run without a meaning, in one table.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde_json::Value;

/// What stands in the place of what differs. Seen with Gemini CLI 0.61.0.
const TABLE: &[(&str, &str)] = &[
    // The CLI's own files, and what it calls the folder there; the model is told of them.
    (r#"[^\s`'"()]*/\.gemini/tmp/[^/\s`'"()]+"#, "[[gemini]]/tmp/[[folder]]"),
    (r#"[^\s`'"()]*/\.gemini/"#, "[[gemini]]/"),
    // Of the context that begins a session.
    (r"Today's date is [^\n]*", "Today's date is [[date]]"),
    (r"My operating system is: [^\n]*", "My operating system is: [[system]]"),
    (r"The project's temporary directory is: [^\n]*", "The project's temporary directory is: [[temporary]]"),
    // The cassette itself may be one of the files.
    (
        r"(?s)- \*\*Directory Structure:\*\*.*?</session_context>",
        "- **Directory Structure:** [[files]]\n</session_context>",
    ),
    // Of results of tools.
    (r"(PGID|PIDs?): [0-9][0-9, ]*", "$1: [[process]]"),
    // Ids of calls, which the CLI makes of the tool's name and the time.
    (r"\b\w+_[0-9]{13}_[0-9a-f]+\b", "[[call]]"),
    (r"\b[\w-]+-[0-9]{13}-[0-9a-f]+\b", "[[call]]"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "[[id]]"),
    (
        r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:?[0-9]{2})",
        "[[time]]",
    ),
    (r"\b1[0-9]{12}\b", "[[time]]"),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    TABLE.iter().filter_map(|(pattern, name)| Some((Regex::new(pattern).ok()?, *name))).collect()
});

type Hide = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// How a request is brought into the common form, and an answer out of it.
#[derive(Clone, Default)]
pub struct Normal {
    /// The name of a place and where it is, the longest first.
    places: Vec<(String, String)>,
    hide: Option<Hide>,
}

impl std::fmt::Debug for Normal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Normal").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Normal {
    /// Without places and secrets.
    pub fn new() -> Self {
        Self::default()
    }

    /// A directory that is elsewhere in every run; `[[name]]` stands for it in the file.
    pub fn place(mut self, name: &str, path: &Path) -> Self {
        let path = path.to_string_lossy().trim_end_matches('/').to_owned();
        if path.len() > 1 && !self.places.iter().any(|(_, known)| *known == path) {
            self.places.push((format!("[[{name}]]"), path));
            self.places.sort_by_key(|(_, path)| std::cmp::Reverse(path.len()));
        }
        self
    }

    /// Takes secrets out of everything that is written.
    pub fn hide(mut self, hide: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.hide = Some(Arc::new(hide));
        self
    }

    /// A text of a request in the common form.
    pub(crate) fn text(&self, text: &str) -> String {
        COMPILED.iter().fold(self.answer(text), |text, (pattern, name)| match pattern.is_match(&text) {
            true => pattern.replace_all(&text, *name).into_owned(),
            false => text,
        })
    }

    /// A value of a request in the common form.
    pub(crate) fn value(&self, value: &Value) -> Value {
        each_text(value, &|text| self.text(text))
    }

    /// A text of an answer as it is written: its ids and times mean something, its places and secrets do not.
    pub(crate) fn answer(&self, text: &str) -> String {
        let hidden = self.hide.as_ref().map_or_else(|| text.to_owned(), |hide| hide(text));
        self.places.iter().fold(hidden, |text, (name, path)| replace_path(&text, path, name))
    }

    #[cfg(feature = "record")]
    pub(crate) fn answer_value(&self, value: &Value) -> Value {
        each_text(value, &|text| self.answer(text))
    }

    /// A text of an answer as it is sent here.
    pub(crate) fn here(&self, text: &str) -> String {
        self.places.iter().fold(text.to_owned(), |text, (name, path)| text.replace(name, path))
    }

    pub(crate) fn here_value(&self, value: &Value) -> Value {
        each_text(value, &|text| self.here(text))
    }
}

fn each_text(value: &Value, change: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(text)),
        Value::Array(items) => items.iter().map(|item| each_text(item, change)).collect(),
        Value::Object(fields) => {
            let changed = fields.iter().map(|(name, value)| (change(name), each_text(value, change)));
            Value::Object(changed.collect())
        }
        other => other.clone(),
    }
}

/// Replaces a path, and not the beginning of another one's name.
fn replace_path(text: &str, path: &str, name: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(path) {
        let goes_on = after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
        out.push_str(before);
        // `/tmp` is no place of its own in `.gemini/tmp`.
        let is_part = out.ends_with(|c: char| c.is_alphanumeric() || "_-.]".contains(c));
        out.push_str(if goes_on || is_part { path } else { name });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_pattern_of_the_table_is_one() {
        assert_eq!(COMPILED.len(), TABLE.len());
    }

    #[test]
    fn times_ids_and_paths_have_a_common_form_and_words_stay() {
        let normal =
            Normal::new().place("home", Path::new("/home/u")).place("dir", Path::new("/home/u/work/"));
        let said = |text: &str| normal.text(text);
        assert_eq!(
            said("/home/u/work/a.txt and /home/u/workshop/b"),
            "[[dir]]/a.txt and [[home]]/workshop/b"
        );
        assert_eq!(said("/home/user"), "/home/user");
        let temporary = Normal::new().place("tmp", Path::new("/tmp"));
        assert_eq!(temporary.text("src/tmp/x.txt in /tmp/y"), "src/tmp/x.txt in [[tmp]]/y");
        assert_eq!(
            temporary.text("/x/homes/7e52/0/.gemini/tmp/w/M.md"),
            temporary.text("/x/homes/4619/0/.gemini/tmp/w/M.md")
        );
        assert_eq!(said("run_shell_command__run_shell_command_1794800327104_0"), "[[call]]");
        assert_eq!(
            said("at 2026-11-16T03:38:47.061Z by d4b879cd-3489-417d-b79d-2c0f10adc9f1"),
            "at [[time]] by [[id]]"
        );
        assert_eq!(
            said("Output: x\nProcess Group PGID: 5951\n"),
            "Output: x\nProcess Group PGID: [[process]]\n"
        );
        assert_eq!(said("Fix issue 1794, not 1795 of write_file"), "Fix issue 1794, not 1795 of write_file");
        assert_eq!(
            said("(`/x/homes/7e52/0/.gemini/tmp/work/memory/M.md`)"),
            said("(`/y/.gemini/tmp/work-2/memory/M.md`)")
        );
        let context = "<session_context>\nToday's date is Monday (x).\nMy operating system is: linux\n- **Directory \
                       Structure:**\n\n/home/u/work/\n├───a\n\n</session_context>";
        let other =
            context.replace("Monday", "Tuesday").replace("├───a", "├───a\n├───b").replace("linux", "darwin");
        assert_eq!(said(context), said(&other));
    }

    #[test]
    fn an_answer_keeps_its_ids_and_finds_its_places_again() {
        let there =
            Normal::new().place("dir", Path::new("/there")).hide(|text| text.replace("sesame", "[secret]"));
        let here = Normal::new().place("dir", Path::new("/here"));
        let id = "d4b879cd-3489-417d-b79d-2c0f10adc9f1";
        let answer = json!({"args": {"file_path": "/there/a", "id": id, "said": "sesame"}});
        let written = there.answer_value(&answer);
        assert_eq!(written, json!({"args": {"file_path": "[[dir]]/a", "id": id, "said": "[secret]"}}));
        assert_eq!(here.here_value(&written)["args"]["file_path"], "/here/a");
    }
}
