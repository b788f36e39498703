//! The fold against a simple model of what the CLI does, for any log; and files cut anywhere.

use alhena_wire::session::{Change, Log, MessageRecord, Session, parse_record, shell_end};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// `loadConversationRecord` of the CLI, as plainly as possible.
#[derive(Default, Debug, PartialEq)]
struct Model {
    metadata: Map<String, Value>,
    messages: Vec<(String, Value)>,
}

impl Model {
    fn push(&mut self, line: &str) {
        let Ok(record) = serde_json::from_str::<Value>(line) else { return };
        if let Some(to) = record["$rewindTo"].as_str() {
            let from = self.messages.iter().position(|(id, _)| id == to).unwrap_or(0);
            self.messages.truncate(from);
        } else if record["id"].is_string() {
            self.set(&record);
        } else if record["$set"].is_object() {
            let set = record["$set"].as_object().unwrap();
            if let Some(messages) = set.get("messages").and_then(Value::as_array) {
                self.messages.clear();
                messages.iter().for_each(|message| self.set(message));
            }
            self.merge(set);
        } else if record["sessionId"].is_string() && record["projectHash"].is_string() {
            let messages = record["messages"].as_array().cloned().unwrap_or_default();
            messages.iter().for_each(|message| self.set(message));
            self.merge(record.as_object().unwrap());
        }
    }

    fn set(&mut self, message: &Value) {
        let Some(id) = message["id"].as_str() else { return };
        match self.messages.iter_mut().find(|(known, _)| known == id) {
            Some((_, old)) => *old = message.clone(),
            None => self.messages.push((id.to_owned(), message.clone())),
        }
    }

    fn merge(&mut self, fields: &Map<String, Value>) {
        self.metadata
            .extend(fields.iter().filter(|(key, _)| *key != "messages").map(|(k, v)| (k.clone(), v.clone())));
    }

    /// Without metadata that no type has a field for, or that is no text as it should be.
    fn what_is_read(mut self) -> Self {
        self.metadata.retain(|key, value| value.is_string() && READ.contains(&key.as_str()));
        self
    }

    fn of(log: &Log<'_>) -> Self {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let metadata = log.metadata();
        let kind = metadata.kind.as_ref().map(|kind| kind.as_str().into());
        let said =
            [metadata.session_id, metadata.project_hash, metadata.last_updated, metadata.summary, kind];
        let said = READ
            .into_iter()
            .zip(said)
            .filter_map(|(key, text)| Some((key.to_owned(), text?.into_owned().into())));
        Model {
            metadata: said.collect(),
            messages: log.messages().iter().map(|m| (m.id().to_owned(), value(m.raw().get()))).collect(),
        }
    }
}

/// The metadata that these tests write and that has a field.
const READ: [&str; 5] = ["sessionId", "projectHash", "lastUpdated", "summary", "kind"];

fn message() -> impl Strategy<Value = Value> {
    let id = prop_oneof![Just("a"), Just("b"), Just("c"), Just("d"), Just("e\"\\é")];
    let content = prop_oneof![
        ".{0,6}".prop_map(Value::from),
        ".{0,6}".prop_map(|text| json!([{"text": text}])),
        Just(Value::Null),
        any::<u8>().prop_map(Value::from),
    ];
    (id, content, any::<bool>()).prop_map(|(id, content, id_first)| {
        if id_first { json!({"id": id, "content": content}) } else { json!({"content": content, "id": id}) }
    })
}

fn metadata() -> impl Strategy<Value = Value> {
    let value = prop_oneof![".{0,4}".prop_map(Value::from), any::<u8>().prop_map(Value::from)];
    let key = prop_oneof![
        Just("lastUpdated"),
        Just("summary"),
        Just("kind"),
        Just("directories"),
        Just("new"),
        Just("sessionId")
    ];
    vec((key, value), 0..3).prop_map(|fields| {
        Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    })
}

fn metadata_with_messages() -> impl Strategy<Value = Value> {
    let entry = prop_oneof![5 => message(), 1 => Just(json!({"no": "id"})), 1 => Just(json!(3))];
    (metadata(), vec(entry, 0..4)).prop_map(|(mut fields, messages)| {
        fields["messages"] = Value::from(messages);
        fields
    })
}

/// One line of a log: the CLI's records, and what damage makes of them.
fn line() -> impl Strategy<Value = String> {
    let header = |mut fields: Value| {
        fields["sessionId"] = "s".into();
        fields["projectHash"] = "p".into();
        fields.to_string()
    };
    prop_oneof![
        8 => message().prop_map(|message| message.to_string()),
        3 => metadata().prop_map(|set| json!({"$set": set}).to_string()),
        2 => metadata_with_messages().prop_map(|set| json!({"$set": set}).to_string()),
        1 => metadata().prop_map(header),
        1 => metadata_with_messages().prop_map(header),
        2 => prop_oneof![Just("a"), Just("b"), Just("x")].prop_map(|id| json!({"$rewindTo": id}).to_string()),
        1 => message().prop_map(|message| message.to_string() + "{\"id\":\"torn"),
        // Half a record with a whole one behind it: what a crash and a later append leave.
        2 => (message(), message()).prop_map(|(half, whole)| {
            let half = half.to_string();
            let cut = half.char_indices().map(|(at, _)| at).nth(half.chars().count() * 2 / 3).unwrap();
            half.split_at(cut).0.to_owned() + &whole.to_string()
        }),
        1 => Just(String::from(r#"{"id":"a" garbage}"#)),
        1 => Just(String::from("garbage")),
        1 => Just(String::from(" ")),
        1 => Just(String::from("[1]")),
    ]
}

fn utf8_prefix(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap(),
    }
}

proptest! {
    #[test]
    fn any_interleaving_folds_like_the_cli(lines in vec(line(), 0..30)) {
        let mut model = Model::default();
        lines.iter().for_each(|line| model.push(line));
        let mut log = Log::new();
        lines.iter().for_each(|line| _ = log.push_line(line.as_bytes()));
        prop_assert_eq!(Model::of(&log), model.what_is_read());
    }

    #[test]
    fn file_follower_and_log_agree(lines in vec(line(), 0..30)) {
        let file = lines.join("\n") + "\n";
        let mut follower: Log<'static> = Log::new();
        lines.iter().for_each(|line| _ = follower.push_copy(line.as_bytes()));
        let session = Session::read(file.as_bytes());
        prop_assume!(session.format == alhena_wire::session::Format::Lines);
        prop_assert_eq!(Model::of(&session.log), Model::of(&follower));
        prop_assert_eq!(session.log.unreadable(), follower.unreadable());
    }

    #[test]
    fn changes_are_enough_to_keep_up(lines in vec(line(), 0..30)) {
        // A reader that looks only where the log says something changed sees the same messages.
        let mut log: Log<'static> = Log::new();
        let mut seen: Vec<String> = Vec::new();
        for line in &lines {
            let change = log.push_copy(line.as_bytes());
            let raw = |place: usize| log.messages()[place].raw().get().to_owned();
            match change {
                Change::Added(place) => {
                    prop_assert_eq!(place, seen.len());
                    seen.push(raw(place));
                }
                Change::Replaced(place) => seen[place] = raw(place),
                Change::Removed(from) => seen.truncate(from),
                Change::Everything => seen = (0..log.messages().len()).map(raw).collect(),
                Change::Nothing | Change::Metadata | Change::Unreadable => {}
            }
        }
        let now: Vec<_> = log.messages().iter().map(|message| message.raw().get().to_owned()).collect();
        prop_assert_eq!(seen, now);
    }

    #[test]
    fn file_cut_anywhere_gives_a_prefix(lines in vec(line(), 1..15), cut in any::<prop::sample::Index>()) {
        let file = lines.join("\n") + "\n";
        let bytes = &file.as_bytes()[..cut.index(file.len() + 1)];
        let session = Session::read(bytes);
        prop_assume!(session.format == alhena_wire::session::Format::Lines);
        let mut model = Model::default();
        let mut whole = bytes.split_inclusive(|byte| *byte == b'\n').peekable();
        while let Some(line) = whole.next() {
            if whole.peek().is_some() || line.ends_with(b"\n") || session.complete {
                model.push(utf8_prefix(line));
            }
        }
        prop_assert_eq!(Model::of(&session.log), model.what_is_read());
    }

    #[test]
    fn no_bytes_panic(bytes in vec(any::<u8>(), 0..300), text in "[{}\\[\\]\",:0-9a-zA-Z$\\\\\n ]{0,120}") {
        for input in [&bytes[..], text.as_bytes()] {
            _ = parse_record(input);
            for message in Session::read(input).log.messages() {
                message.decode();
            }
        }
        MessageRecord::from_text(&text);
        shell_end(&text);
    }
}
