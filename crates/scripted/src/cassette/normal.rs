//! The common form of a request, in which what differs from run to run without a meaning is the same.

mod table;

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::Asked;

/// What must not be written down, for whoever knows more of it than the keys of a request.
pub trait Secrecy: Send + Sync {
    /// A text with [`secret`] in the place of each.
    fn hide(&self, text: &str) -> String;
    /// One that knows the keys of a request as well.
    fn with_keys(&self, keys: &[String]) -> Arc<dyn Secrecy>;
}

/// What stands in the place of a secret. In a comparison any text fits it: others have others, or none.
pub fn secret(name: &str) -> String {
    format!("{SECRET}{name}]]")
}

pub(super) const SECRET: &str = "[[secret:";

/// What is shorter is no key, but a word that stands everywhere.
const SHORTEST_KEY: usize = 16;

/// The keys of a request and nothing else, as they are.
#[derive(Default)]
struct Keys(Vec<String>);

impl Secrecy for Keys {
    fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, key| text.replace(key.as_str(), &secret("key")))
    }

    fn with_keys(&self, keys: &[String]) -> Arc<dyn Secrecy> {
        Arc::new(Keys(keys.iter().filter(|key| key.len() >= SHORTEST_KEY).cloned().collect()))
    }
}

/// How a request is brought into the common form, and an answer out of it.
#[derive(Clone)]
pub struct Normal {
    /// The name of a place and where it is, the longest first.
    places: Vec<(String, String)>,
    /// What requests have told so far, for those that tell nothing.
    told: Arc<Mutex<Vec<(&'static str, String)>>>,
    secrecy: Arc<dyn Secrecy>,
}

impl Default for Normal {
    fn default() -> Self {
        Normal { places: Vec::new(), told: Arc::default(), secrecy: Arc::new(Keys::default()) }
    }
}

impl std::fmt::Debug for Normal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Normal").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Normal {
    /// Without places, and with no secrets but the keys of requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// A directory that is elsewhere in every run; `[[name]]` stands for it in the file.
    pub fn place(mut self, name: &str, path: &Path) -> Self {
        let path = path.to_string_lossy().trim_end_matches('/').to_owned();
        if path.len() > 1 && !self.places.iter().any(|(_, known)| *known == path) {
            self.add(name, path);
        }
        self
    }

    fn add(&mut self, name: &str, path: String) {
        self.places.push((format!("[[{name}]]"), path));
        self.places.sort_by_key(|(_, path)| std::cmp::Reverse(path.len()));
    }

    /// Takes secrets out of everything that is written.
    pub fn secrecy(mut self, secrecy: impl Secrecy + 'static) -> Self {
        self.secrecy = Arc::new(secrecy);
        self
    }

    /// The same for one request and its answer: where it says that things are, and without its keys.
    pub(crate) fn of_request(&self, body: &Value, keys: &[String]) -> Self {
        let mut fresh: Vec<(&'static str, String)> = Vec::new();
        each_of(body, &mut |text| {
            for (name, path) in table::told(text) {
                if !fresh.iter().any(|(told, _)| *told == name) {
                    fresh.push((name, path.to_owned()));
                }
            }
        });
        let mut normal = self.clone();
        normal.secrecy = self.secrecy.with_keys(keys);
        let mut known = self.told.lock();
        known.retain(|(name, _)| !fresh.iter().any(|(told, _)| told == name));
        known.extend(fresh);
        for (name, path) in known.iter() {
            let called = format!("[[{name}]]");
            normal.places.retain(|(name, known)| *name != called && known != path);
            normal.add(name, path.clone());
        }
        normal
    }

    /// What was written in the common form once, in that of today.
    pub(crate) fn again(&self, asked: &Asked) -> Asked {
        Asked { method: asked.method.clone(), path: self.text(&asked.path), body: self.value(&asked.body) }
    }

    /// A text of a request in the common form.
    pub(crate) fn text(&self, text: &str) -> String {
        table::common(self.answer(text))
    }

    /// A value of a request in the common form.
    pub(crate) fn value(&self, value: &Value) -> Value {
        each_text(&tools_in_order(value), &|text| self.text(text))
    }

    /// A text of an answer as it is written: its ids and times mean something, its places and secrets do not.
    pub(crate) fn answer(&self, text: &str) -> String {
        let hidden = self.secrecy.hide(text);
        self.places.iter().fold(hidden, |text, (name, path)| replace_path(&text, path, name))
    }

    #[cfg(feature = "record")]
    pub(crate) fn answer_value(&self, value: &Value) -> Value {
        each_text(value, &|text| self.answer(text))
    }

    /// Returns a text of an answer with the directories of this machine in it. Secrets stay `[[secret:NAME]]`: an
    /// edited cassette could otherwise ask for any of them.
    pub(crate) fn here(&self, text: &str) -> String {
        self.places.iter().fold(text.to_owned(), |text, (name, path)| text.replace(name, path))
    }

    pub(crate) fn here_value(&self, value: &Value) -> Value {
        each_text(value, &|text| self.here(text))
    }
}

/// A request with its tools in order. Those whose descriptions depend on the machine are known by their names alone.
fn tools_in_order(body: &Value) -> Value {
    let name = |tool: &Value| tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut body = body.clone();
    let groups = body.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten();
    for declared in groups.filter_map(|group| group.get_mut("functionDeclarations")?.as_array_mut()) {
        declared.sort_by_key(name);
        for tool in declared.iter_mut().filter(|tool| table::depends_on_the_machine(&name(tool))) {
            tool.as_object_mut().into_iter().for_each(|tool| tool.retain(|field, _| field == "name"));
        }
    }
    body
}

fn each_of(value: &Value, look: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => look(text),
        Value::Array(items) => items.iter().for_each(|item| each_of(item, look)),
        Value::Object(fields) => fields.values().for_each(|field| each_of(field, look)),
        _ => {}
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
    fn the_order_of_tools_and_what_is_installed_beside_make_no_difference() {
        let body = |names: [&str; 2], about: &str| {
            let tools =
                names.map(|name| json!({"name": name, "description": if name == "b" { "b" } else { about }}));
            Normal::new().value(&json!({"tools": [{"functionDeclarations": tools}]}))
        };
        assert_eq!(body(["b", "grep_search"], "with ripgrep"), body(["grep_search", "b"], "without"));
        assert_eq!(body(["b", "activate_skill"], "'x', 'y'"), body(["b", "activate_skill"], "'y', 'x'"));
        assert_ne!(body(["b", "glob"], "one"), body(["b", "glob"], "other"));
    }

    #[test]
    fn an_answer_keeps_its_ids_and_finds_its_places_again() {
        let there = Normal::new()
            .place("dir", Path::new("/there"))
            .of_request(&json!({}), &["sesame-open-yourself".to_owned()]);
        let here = Normal::new().place("dir", Path::new("/here"));
        let id = "d4b879cd-3489-417d-b79d-2c0f10adc9f1";
        let answer = json!({"args": {"file_path": "/there/a", "id": id, "said": "sesame-open-yourself"}});
        let written = there.answer_value(&answer);
        assert_eq!(written, json!({"args": {"file_path": "[[dir]]/a", "id": id, "said": "[[secret:key]]"}}));
        let sent =
            here.of_request(&json!({}), &["another-key-of-this-machine".to_owned()]).here_value(&written);
        assert_eq!(sent["args"]["file_path"], "/here/a");
        assert_eq!(sent["args"]["said"], "[[secret:key]]");
    }
}
