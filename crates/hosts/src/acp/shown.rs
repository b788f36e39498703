//! What is shown of a tool call: its title, its kind, its files and the change that it makes.

use alhena_model::tool::Class;
use alhena_wire::acp::{Call, FileDiff, ToolKind};
use serde_json::{Value, json};

use crate::with;

/// A call as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    name: String,
    class: Option<Class>,
    title: Option<String>,
    kind: Option<ToolKind>,
    paths: Vec<String>,
    diffs: Vec<FileDiff>,
    pub input: Option<Value>,
    /// Somebody has to allow it.
    pub asked: bool,
    /// The client knows of it.
    pub announced: bool,
}

impl Shown {
    /// What the agent itself shows of it.
    pub fn told(&mut self, call: &Call) {
        self.title = call.title.clone().filter(|title| !title.is_empty()).or(self.title.take());
        self.kind = call.kind.or(self.kind);
        if !call.paths.is_empty() {
            self.paths.clone_from(&call.paths);
        }
        if !call.diffs.is_empty() {
            self.diffs.clone_from(&call.diffs);
        }
    }

    /// What it turned out to be.
    pub fn called(&mut self, name: &str, class: Class, input: &Value) {
        self.name = name.to_owned();
        self.class = Some(class);
        self.input =
            Some(input.clone()).filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
    }

    pub fn is_command(&self) -> bool {
        self.class == Some(Class::Command)
    }

    pub fn has_diffs(&self) -> bool {
        !self.diffs.is_empty()
    }

    /// The call with all that is known, as an announcement or within a question.
    pub fn fields(&self, id: &str, status: &str) -> Value {
        let locations: Vec<Value> = self.paths.iter().map(|path| json!({ "path": path })).collect();
        let fields = json!({
            "toolCallId": id,
            "title": self.title(),
            "kind": self.kind(),
            "status": status,
            "content": self.diff_content(),
            "locations": locations,
        });
        let name = Some(self.name.as_str()).filter(|name| !name.is_empty()).map(Value::from);
        with(fields, [("name", name), ("rawInput", self.input.clone())])
    }

    /// Its changes as content.
    pub fn diff_content(&self) -> Vec<Value> {
        let content = |diff: &FileDiff| diff_content(&diff.path, Some(&diff.before), &diff.after);
        self.diffs.iter().map(content).collect()
    }

    fn title(&self) -> String {
        let argument = |name: &str| self.input.as_ref()?.get(name)?.as_str();
        let named = || {
            let what = ["command", "file_path", "path", "dir_path", "pattern", "query", "url", "prompt"];
            let what = what.into_iter().find_map(argument)?;
            Some(if self.is_command() { what.to_owned() } else { format!("{}: {what}", self.name) })
        };
        self.title.clone().or_else(named).unwrap_or_else(|| self.name.clone())
    }

    fn kind(&self) -> ToolKind {
        self.kind.unwrap_or(match self.class {
            Some(Class::Command) => ToolKind::Execute,
            Some(Class::FileRead) => ToolKind::Read,
            Some(Class::FileWrite) => ToolKind::Edit,
            Some(Class::SearchFetch) => ToolKind::Fetch,
            Some(Class::Planning | Class::Agent) => ToolKind::Think,
            Some(Class::AskUser | Class::Mcp | Class::Unknown) | None => ToolKind::Other,
        })
    }
}

/// A change of a file; nothing before it makes it a new one.
pub(super) fn diff_content(path: &str, before: Option<&str>, after: &str) -> Value {
    json!({"type": "diff", "path": path, "oldText": before.filter(|text| !text.is_empty()), "newText": after})
}

/// Text as content.
pub(super) fn text_content(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

/// What a command printed: as it stands, whatever signs of Markdown are in it.
pub(super) fn printed(text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for character in text.chars() {
        run = if character == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// The hunks of a unified diff, each as what was there and what is.
pub(super) fn hunks(diff: &str) -> Vec<(String, String)> {
    let mut hunks: Vec<(String, String)> = Vec::new();
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.push(Default::default());
            continue;
        }
        // What comes before the first hunk is about the file.
        let Some((before, after)) = hunks.last_mut() else { continue };
        let mut both = [(before, '-'), (after, '+')];
        for (side, sign) in &mut both {
            if let Some(text) = line.strip_prefix(*sign).or_else(|| line.strip_prefix(' ')) {
                side.push_str(text);
                side.push('\n');
            }
        }
    }
    hunks
}
