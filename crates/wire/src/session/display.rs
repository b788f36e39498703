//! `resultDisplay`: what the terminal shows of a tool's result, and the only place where diffs are kept.
//!
//! It has no tag. A string is a text, an array is the screen of a pseudo-terminal (interactive shell, 0.11 on), and an
//! object is told by its keys: `fileDiff`, `todos`, `isSubagentProgress`, or `summary` with a list (0.38 on; a string before).

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::payload::Payload;
use crate::object::{Decode, IntoOwned, Object, Via};
use crate::{Count, Named, Raw};

/// What the terminal shows of a tool's result.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultDisplay<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// The lines of a pseudo-terminal, each a list of runs.
    Ansi(Vec<Vec<AnsiToken<'a>>>),
    /// A file that was written or edited.
    FileDiff(Box<FileDiff<'a>>),
    /// A list of things to do.
    Todos(Box<Todos<'a>>),
    /// What a sub-agent did.
    Subagent(Box<SubagentProgress<'a>>),
    /// What was found: matches or files, with one line about them.
    Listing(Box<Listing<'a>>),
    /// An object of another form.
    Other(Named<'a, Raw<'a>>),
}

wire_object! {
    /// A run of characters with one style. Colours and styles are in `extra`.
    #[derive(Default)]
    pub struct AnsiToken<'a> {
        /// Upstream: the characters.
        "text" text: Option<Cow<'a, str>>,
    }
}

wire_object! {
    /// A file that was written or edited.
    #[derive(Default)]
    pub struct FileDiff<'a> {
        /// Upstream: a unified diff, or why there is none.
        "fileDiff" file_diff: Option<Cow<'a, str>>,
        /// Upstream: the last part of the path.
        "fileName" file_name: Option<Cow<'a, str>>,
        /// Upstream: the path; absolute in newer releases.
        "filePath" file_path: Option<Cow<'a, str>>,
        /// Upstream: the file before; `null` when it did not exist.
        "originalContent" original_content: Option<Cow<'a, str>>,
        /// Upstream: the file after.
        "newContent" new_content: Option<Cow<'a, str>>,
        /// Upstream: how much of it the model wrote, and how much a person changed.
        "diffStat" diff_stat: Option<DiffStat>,
        /// Upstream: whether the file is new.
        "isNewFile" is_new_file: Option<bool>,
    }
}

wire_object! {
    /// How much changed.
    #[derive(Default)]
    pub struct DiffStat {
        /// Upstream: lines added by the model.
        "model_added_lines" model_added_lines: Option<Count>,
        /// Upstream: lines removed by the model.
        "model_removed_lines" model_removed_lines: Option<Count>,
        /// Upstream: characters added by the model.
        "model_added_chars" model_added_chars: Option<Count>,
        /// Upstream: characters removed by the model.
        "model_removed_chars" model_removed_chars: Option<Count>,
        /// Upstream: lines added by a person.
        "user_added_lines" user_added_lines: Option<Count>,
        /// Upstream: lines removed by a person.
        "user_removed_lines" user_removed_lines: Option<Count>,
        /// Upstream: characters added by a person.
        "user_added_chars" user_added_chars: Option<Count>,
        /// Upstream: characters removed by a person.
        "user_removed_chars" user_removed_chars: Option<Count>,
    }
}

wire_object! {
    /// A list of things to do.
    #[derive(Default)]
    pub struct Todos<'a> {
        /// Upstream: the list.
        "todos" todos: Option<Vec<Todo<'a>>>,
    }
}

wire_object! {
    /// One thing to do.
    #[derive(Default)]
    pub struct Todo<'a> {
        /// Upstream: what.
        "description" description: Option<Cow<'a, str>>,
        /// Upstream: `pending`, `in_progress`, `completed`, `cancelled` or `blocked`.
        "status" status: Option<Cow<'a, str>>,
    }
}

wire_object! {
    /// What a sub-agent did.
    #[derive(Default)]
    pub struct SubagentProgress<'a> {
        /// Upstream: `true`.
        "isSubagentProgress" is_subagent_progress: Option<bool>,
        /// Upstream: which agent.
        "agentName" agent_name: Option<Cow<'a, str>>,
        /// Upstream: its last thoughts and tool calls.
        "recentActivity" recent_activity: Option<Vec<Activity<'a>>>,
        /// Upstream: `running`, `completed`, `error` or `cancelled`.
        "state" state: Option<Cow<'a, str>>,
        /// Upstream: what it answered.
        "result" result: Option<Payload<'a>>,
        /// Upstream: why it ended, such as `GOAL`.
        "terminateReason" terminate_reason: Option<Cow<'a, str>>,
    }
}

wire_object! {
    /// One thought or tool call of a sub-agent.
    #[derive(Default)]
    pub struct Activity<'a> {
        /// Upstream: its id.
        "id" id: Option<Cow<'a, str>>,
        /// Upstream: `thought` or `tool_call`.
        "type" kind: Option<Cow<'a, str>>,
        /// Upstream: the thought, or the tool's name.
        "content" content: Option<Cow<'a, str>>,
        /// Upstream: `running`, `completed`, `error` or `cancelled`.
        "status" status: Option<Cow<'a, str>>,
    }
}

wire_object! {
    /// What was found by `grep_search`, `list_directory` or `read_many_files`.
    #[derive(Default)]
    pub struct Listing<'a> {
        /// Upstream: one line about it.
        "summary" summary: Option<Cow<'a, str>>,
        /// Upstream: the lines that matched.
        "matches" matches: Option<Vec<GrepMatch<'a>>>,
        /// Upstream: the files.
        "files" files: Option<Vec<Cow<'a, str>>>,
    }
}

wire_object! {
    /// A line that matched.
    #[derive(Default)]
    pub struct GrepMatch<'a> {
        /// Upstream: where, relative to the directory searched.
        "filePath" file_path: Option<Cow<'a, str>>,
        /// Upstream: where, absolute.
        "absolutePath" absolute_path: Option<Cow<'a, str>>,
        /// Upstream: its number, from 1.
        "lineNumber" line_number: Option<Count>,
        /// Upstream: the line.
        "line" line: Option<Cow<'a, str>>,
    }
}

impl<'a> ResultDisplay<'a> {
    fn from_object(object: Named<'a, &'a RawValue>) -> Self {
        let fields = || object.iter().map(|(key, value)| (key, value.get()));
        let typed = if object.get("fileDiff").is_some() {
            Object::from_fields(fields()).map(|diff| ResultDisplay::FileDiff(Box::new(diff)))
        } else if object.get("todos").is_some() {
            Object::from_fields(fields()).map(|todos| ResultDisplay::Todos(Box::new(todos)))
        } else if object.get("isSubagentProgress").is_some() {
            Object::from_fields(fields()).map(|progress| ResultDisplay::Subagent(Box::new(progress)))
        } else if object.get("summary").is_some() {
            Object::from_fields(fields()).map(|listing| ResultDisplay::Listing(Box::new(listing)))
        } else {
            None
        };
        typed.unwrap_or_else(|| {
            ResultDisplay::Other(Named(
                object.0.into_iter().map(|(key, value)| (key, value.into())).collect(),
            ))
        })
    }
}

struct DisplayVisitor;

impl<'de> Visitor<'de> for DisplayVisitor {
    type Value = ResultDisplay<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, an array or an object")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(ResultDisplay::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(ResultDisplay::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut lines = Vec::new();
        while let Some(Via(line)) = seq.next_element()? {
            lines.push(line);
        }
        Ok(ResultDisplay::Ansi(lines))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((Via(key), value)) = map.next_entry()? {
            fields.push((key, value));
        }
        Ok(ResultDisplay::from_object(Named(fields)))
    }
}

impl<'de: 'a, 'a> Decode<'de> for ResultDisplay<'a> {
    fn decode<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DisplayVisitor)
    }

    fn lenient(text: &'de str) -> Option<Self> {
        let object = || crate::object::strict(text).ok().map(ResultDisplay::from_object);
        let word = || Decode::lenient(text).map(ResultDisplay::Text);
        Decode::lenient(text).map(ResultDisplay::Ansi).or_else(object).or_else(word)
    }
}

impl Serialize for ResultDisplay<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ResultDisplay::Text(text) => serializer.serialize_str(text),
            ResultDisplay::Ansi(lines) => lines.serialize(serializer),
            ResultDisplay::FileDiff(diff) => diff.serialize(serializer),
            ResultDisplay::Todos(todos) => todos.serialize(serializer),
            ResultDisplay::Subagent(progress) => progress.serialize(serializer),
            ResultDisplay::Listing(listing) => listing.serialize(serializer),
            ResultDisplay::Other(object) => object.serialize(serializer),
        }
    }
}

impl IntoOwned for ResultDisplay<'_> {
    type Owned = ResultDisplay<'static>;
    fn into_owned(self) -> ResultDisplay<'static> {
        match self {
            ResultDisplay::Text(text) => ResultDisplay::Text(IntoOwned::into_owned(text)),
            ResultDisplay::Ansi(lines) => ResultDisplay::Ansi(IntoOwned::into_owned(lines)),
            ResultDisplay::FileDiff(diff) => ResultDisplay::FileDiff(IntoOwned::into_owned(diff)),
            ResultDisplay::Todos(todos) => ResultDisplay::Todos(IntoOwned::into_owned(todos)),
            ResultDisplay::Subagent(progress) => ResultDisplay::Subagent(IntoOwned::into_owned(progress)),
            ResultDisplay::Listing(listing) => ResultDisplay::Listing(IntoOwned::into_owned(listing)),
            ResultDisplay::Other(object) => ResultDisplay::Other(IntoOwned::into_owned(object)),
        }
    }
}
