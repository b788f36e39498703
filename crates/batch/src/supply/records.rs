//! Bytes into records: lines of JSON, or rows of a table, each with where it stands.

use std::io::{self, BufRead};

use alhena_model::{Setting, SettingError};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::table::{self, State};
use crate::job::{FIELDS, Fields};

/// No record is larger, in bytes.
pub const LARGEST: usize = 64 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How jobs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A JSON object a line.
    Lines,
    /// A header and rows, with this between fields.
    Table(u8),
}

/// A piece of the input that is one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The line on which it begins, from 1.
    pub line: u64,
    /// The byte at which it begins.
    pub offset: u64,
    /// All of it, with its line end.
    pub bytes: Vec<u8>,
}

/// Cuts an input into records. Blank lines are none.
pub struct Records<R> {
    input: R,
    format: Format,
    line: u64,
    offset: u64,
}

impl<R: BufRead> Records<R> {
    /// Begins with an input.
    pub fn new(input: R, format: Format) -> Self {
        Self { input, format, line: 1, offset: 0 }
    }

    /// The next record; none at the end. One that is too large is given with its beginning.
    pub fn next(&mut self) -> io::Result<Option<Record>> {
        loop {
            let (line, offset) = (self.line, self.offset);
            let Some(mut bytes) = self.piece()? else { return Ok(None) };
            if offset == 0 && bytes.starts_with(BYTE_ORDER_MARK) {
                bytes.drain(..BYTE_ORDER_MARK.len());
                if !bytes.iter().all(u8::is_ascii_whitespace) {
                    let offset = BYTE_ORDER_MARK.len() as u64;
                    return Ok(Some(Record { line, offset, bytes }));
                }
            }
            if !bytes.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(Record { line, offset, bytes }));
            }
        }
    }

    /// Everything to the end of a line, or of a row.
    fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        let (mut piece, mut state) = (Vec::new(), State::Start);
        loop {
            let buffer = match self.input.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            if buffer.is_empty() {
                return Ok(Some(piece).filter(|piece| !piece.is_empty()));
            }
            let mut ends_at = None;
            for (at, &byte) in buffer.iter().enumerate() {
                self.line += u64::from(byte == b'\n');
                if let Format::Table(separator) = self.format {
                    // The mark at the very start belongs to no field.
                    let in_mark = self.offset + (at as u64) < 3 && BYTE_ORDER_MARK.contains(&byte);
                    state = if in_mark { State::Start } else { state.after(byte, separator) };
                }
                if byte == b'\n' && state != State::Quoted {
                    ends_at = Some(at);
                    break;
                }
            }
            let taken = ends_at.map_or(buffer.len(), |at| at + 1);
            let room = (LARGEST + 1).saturating_sub(piece.len());
            piece.extend(buffer.iter().take(taken.min(room)));
            self.input.consume(taken);
            self.offset += taken as u64;
            if ends_at.is_some() {
                return Ok(Some(piece));
            }
        }
    }
}

/// What a record says, field by field.
pub struct Parser {
    format: Format,
    header: Vec<String>,
}

impl Parser {
    /// For records without a header.
    pub fn of_lines() -> Self {
        Self { format: Format::Lines, header: Vec::new() }
    }

    /// For rows below this one.
    pub fn of_table(
        separator: u8,
        header: &[u8],
        template: Option<&super::Template>,
    ) -> Result<Self, Vec<SettingError>> {
        let header = table::fields(header, separator).map_err(|fault| vec![fault])?;
        let header: Vec<String> = header.iter().map(|name| name.trim().to_owned()).collect();
        let mut faults = Vec::new();
        for (at, name) in header.iter().enumerate() {
            let known = Setting::named(name).is_some()
                || FIELDS.iter().any(|(field, _)| field == name)
                || template.is_some_and(|template| template.uses(name));
            if header.iter().take(at).any(|other| other == name) {
                faults.push(SettingError::new(
                    format!("the column {name} is there twice"),
                    "Leave one of them out.",
                ));
            } else if name.is_empty() {
                faults.push(SettingError::new(
                    format!("column {} has no name", at + 1),
                    "The first row has the names.",
                ));
            } else if !known {
                let message = format!("the column {name} is neither an option nor in the template");
                faults.push(SettingError::new(
                    message,
                    "The first row has the names of options; use a template for others.",
                ));
            }
        }
        let needed = template.into_iter().flat_map(super::Template::fields);
        for (at, name) in needed.clone().enumerate() {
            if !header.iter().any(|column| column == name)
                && !needed.clone().take(at).any(|other| other == name)
            {
                let columns = header.join(", ");
                let message = format!("the template needs {name}, and there is no such column");
                faults.push(SettingError::new(message, format!("The columns are {columns}.")));
            }
        }
        match faults.is_empty() {
            true => Ok(Self { format: Format::Table(separator), header }),
            false => Err(faults),
        }
    }

    /// The fields of a record.
    pub fn parse(&self, record: &[u8]) -> Result<Fields, SettingError> {
        if record.len() > LARGEST {
            let hint = match self.format {
                Format::Lines => "Put the prompt into a file: prompt_file.",
                Format::Table(_) => "Is a quote not closed?",
            };
            return Err(SettingError::new(format!("it is larger than {} MB", LARGEST >> 20), hint));
        }
        let Format::Table(separator) = self.format else { return object(record) };
        let fields = table::fields(record, separator)?;
        if fields.len() != self.header.len() {
            let (there, wanted) = (fields.len(), self.header.len());
            let message = format!("there are {there} fields, and the first row has {wanted}");
            return Err(SettingError::new(message, "Put fields with separators or line ends into quotes."));
        }
        let filled = self.header.iter().zip(fields).filter(|(_, text)| !text.is_empty());
        Ok(filled.map(|(name, text)| (name.clone(), value_of_text(name, &text))).collect())
    }
}

/// What a text means as the value of a field.
pub fn value_of_text(name: &str, text: &str) -> Value {
    match (name, text) {
        ("copy" | "shared", "true") => Value::Bool(true),
        ("copy" | "shared", "false") => Value::Bool(false),
        ("git" | "outputs", _) => {
            serde_json::from_str(text).unwrap_or_else(|_no_json| Value::String(text.to_owned()))
        }
        _ => Setting::named(name).map_or_else(|| text.into(), |setting| setting.value_of_text(text)),
    }
}

fn object(line: &[u8]) -> Result<Fields, SettingError> {
    let hint = "A job is one JSON object on one line, such as {\"prompt\": \"Say hi\"}.";
    let text = std::str::from_utf8(line).map_err(|_| SettingError::new("it is not UTF-8 text", hint))?;
    let fields: Unique = serde_json::from_str(text.trim()).map_err(|error| {
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        let place = Some(error.column()).filter(|column| *column > 0);
        let place = place.map(|column| format!(" at column {column}")).unwrap_or_default();
        SettingError::new(format!("not a job: {what}{place}"), hint)
    })?;
    Ok(fields.0)
}

/// An object in which no name is there twice: of two values one would be lost without a word.
struct Unique(Fields);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Unique;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
                let mut fields = Map::new();
                while let Some(name) = map.next_key::<String>()? {
                    if fields.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("{name} is there twice")));
                    }
                    fields.insert(name, map.next_value()?);
                }
                Ok(Unique(fields))
            }
        }
        deserializer.deserialize_map(Each)
    }
}
