//! Session files and single records for `alhena parse`: the same conversion, from anywhere.

use std::io;

use alhena_model::conversation::entry;
use alhena_model::message::in_claude_order;
use alhena_model::{Conversation, Include};
use alhena_wire::Raw;
use alhena_wire::session::{MessageRecord, Session};

use super::show::{print_events, print_unified, text};
use crate::commands::parse::Trouble;
use crate::output::{write, write_json};
use crate::views::Name;

/// What is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A whole session file, in either format.
    Session,
    /// A record of a session, or several: one per line, or in an array.
    Message,
}

/// Prints what was read as this view.
pub fn convert(bytes: &[u8], form: Form, view: Name) -> Result<(), Trouble> {
    match form {
        Form::Session => {
            let session = Session::read(bytes);
            if !session.log.has_header() && session.log.messages().is_empty() {
                return Err(invalid("this is no session of Gemini CLI").into());
            }
            print(Conversation::of_log(&session.log, Include::Said), view)
        }
        Form::Message => {
            let text = String::from_utf8_lossy(bytes);
            let records = records(&text).ok_or_else(|| invalid("this is no record of a session"))?;
            // Each on its own: whoever names a record wants to see it.
            let mut conversation = Conversation::default();
            for raw in &records {
                let record = MessageRecord::from_text(raw.get()).filter(says_something);
                let record = record.ok_or_else(|| invalid("this is no record of a session"))?;
                conversation.add(entry(record, raw.clone()));
            }
            print(conversation, view)
        }
    }
}

/// Whether an object is a message at all, and not a line of the stream or a setting.
fn says_something(record: &MessageRecord<'_>) -> bool {
    record.id.is_some()
        || record.content.is_some()
        || record.tool_calls.is_some()
        || record.thoughts.is_some()
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// The JSON objects in a text: one, an array of them, or one per line.
fn records(text: &str) -> Option<Vec<Raw<'_>>> {
    let whole = match Raw::from_text(text.trim()) {
        Some(raw) if text.trim_start().starts_with('[') => {
            let list: Vec<&serde_json::value::RawValue> = serde_json::from_str(text).ok()?;
            drop(raw);
            Some(list.into_iter().map(Raw::from).collect())
        }
        Some(raw) => Some(vec![raw]),
        None => text.lines().filter(|line| !line.trim().is_empty()).map(Raw::from_text).collect(),
    };
    whole.filter(|records: &Vec<Raw<'_>>| {
        !records.is_empty() && records.iter().all(|record| record.get().starts_with('{'))
    })
}

fn print(conversation: Conversation<'_>, view: Name) -> Result<(), Trouble> {
    let printed = match view {
        Name::Messages => write_json(|out| {
            serde_json::to_writer_pretty(&mut *out, &in_claude_order(conversation.into_messages()))?;
            out.write_all(b"\n")
        }),
        Name::AgentCliSdk => print_unified(&conversation.into_messages()),
        Name::Events => print_events(&conversation),
        Name::Text => write(|out| out.write_all(text(&conversation.into_messages()).as_bytes())),
        other => {
            let name = clap::ValueEnum::to_possible_value(&other).map(|value| value.get_name().to_owned());
            let why = format!(
                "a session says nothing about how a run ended, so it has no view {}",
                name.unwrap_or_default()
            );
            return Err(Trouble::Input(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{why}; messages, agent-cli-sdk, events and text it has"),
            )));
        }
    };
    printed.map_err(Trouble::Output)
}
