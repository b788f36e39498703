//! Edits of JSON with comments that leave everything else as it is, byte for byte.
//!
//! Gemini CLI 0.61.0 allows comments in its settings, and people write them. So a file is never written anew from its
//! values: one member is put in, replaced or taken out as text. Taking out what was put in gives the same bytes again.

use std::ops::Range;

use alhena_agent::settings::{Problem, parse, without_comments};
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value};

#[derive(Clone, Debug)]
pub(super) struct Document {
    text: String,
    /// The same with a blank for every byte of a comment: strictly JSON, with the same places.
    blank: String,
}

#[derive(Debug)]
pub(super) enum NotEdited {
    Text(Problem),
    NotAnObject(String),
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    key: Range<usize>,
    value: Range<usize>,
}

/// An object: where its first byte after `{` is, and its members.
struct Object {
    inside: usize,
    members: Vec<Member>,
}

impl Object {
    /// Of several with the same name the last counts, as in JavaScript.
    fn position(&self, name: &str) -> Option<usize> {
        self.members.iter().rposition(|member| member.name == name)
    }

    fn member(&self, name: &str) -> Option<&Member> {
        self.position(name).and_then(|at| self.members.get(at))
    }
}

impl Document {
    pub(super) fn new(text: String) -> Result<Self, NotEdited> {
        if !parse(&text).map_err(NotEdited::Text)?.is_object() {
            return Err(NotEdited::Text(Problem::NotAnObject));
        }
        let blank = without_comments(&text).into_owned();
        Ok(Self { text, blank })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text of an entry: the value of a key in the object that is the value of another.
    pub(super) fn entry(&self, outer: &str, name: &str) -> Option<&str> {
        let range = self.inner(outer)?.member(name)?.value.clone();
        self.text.get(range)
    }

    pub(super) fn entry_value(&self, outer: &str, name: &str) -> Option<Value> {
        parse(self.entry(outer, name)?).ok()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.root().member(name).is_some()
    }

    /// Whether there is nothing in it, not even a comment.
    pub(super) fn is_bare(&self) -> bool {
        self.root().members.is_empty() && self.text == self.blank
    }

    pub(super) fn set_text(&mut self, outer: &str, name: &str, raw: &str) -> Result<(), NotEdited> {
        let root = self.root();
        let Some(holder) = root.member(outer) else {
            let (line, step) = (self.line_start(&root), self.step(&root));
            let inner = format!("{line}{step}");
            let object = match line.is_empty() {
                true => format!("{{{}: {}}}", quoted(name), indented(raw, "")),
                false => format!("{{{inner}{}: {}{line}}}", quoted(name), indented(raw, &inner)),
            };
            return self.insert(&root, outer, &object);
        };
        let Some(object) = self.object(holder.value.start) else {
            return Err(NotEdited::NotAnObject(outer.to_owned()));
        };
        match object.member(name) {
            Some(member) => self.replace(member.value.clone(), raw),
            None => {
                let raw = indented(raw, &self.line_start(&object));
                self.insert(&object, name, &raw)
            }
        }
    }

    pub(super) fn set(&mut self, outer: &str, name: &str, value: &Value) -> Result<(), NotEdited> {
        let existing = self.inner(outer).and_then(|object| object.member(name).cloned());
        let raw = format!("{value:#}");
        match existing {
            // In place of another, its lines begin where those of the other did.
            Some(member) => {
                let line = self.line_of(member.key.start);
                self.set_text(outer, name, &indented(&raw, &line))
            }
            None => self.set_text(outer, name, &raw),
        }
    }

    pub(super) fn remove(&mut self, outer: &str, name: &str) -> Result<(), NotEdited> {
        match self.inner(outer) {
            Some(object) => self.take_out(&object, name),
            None => Ok(()),
        }
    }

    pub(super) fn remove_if_empty(&mut self, outer: &str) -> Result<(), NotEdited> {
        match self.inner(outer) {
            Some(object) if object.members.is_empty() => self.take_out(&self.root(), outer),
            _ => Ok(()),
        }
    }

    fn root(&self) -> Object {
        let start = self.blank.find('{').unwrap_or_default();
        self.object(start).unwrap_or(Object { inside: start, members: Vec::new() })
    }

    fn inner(&self, outer: &str) -> Option<Object> {
        self.object(self.root().member(outer)?.value.start)
    }

    fn object(&self, start: usize) -> Option<Object> {
        let bytes = self.blank.as_bytes();
        if bytes.get(start) != Some(&b'{') {
            return None;
        }
        let mut members = Vec::new();
        let mut at = skip_blank(bytes, start + 1);
        while bytes.get(at) == Some(&b'"') {
            let key = at..value_end(&self.blank, at);
            let colon = skip_blank(bytes, key.end);
            let value = skip_blank(bytes, colon + 1);
            let value = value..value_end(&self.blank, value);
            let name = self.blank.get(key.clone()).and_then(|key| serde_json::from_str(key).ok());
            at = skip_blank(bytes, value.end);
            if bytes.get(at) == Some(&b',') {
                at = skip_blank(bytes, at + 1);
            }
            members.push(Member { name: name.unwrap_or_default(), key, value });
        }
        Some(Object { inside: start + 1, members })
    }

    /// In front of the first member, where no comment can lose what it speaks of by a comma.
    fn insert(&mut self, object: &Object, name: &str, raw: &str) -> Result<(), NotEdited> {
        let line = self.line_start(object);
        let member = format!("{}: {raw}", quoted(name));
        match object.members.first() {
            Some(first) => {
                let between = if line.is_empty() { " " } else { line.as_str() };
                self.replace(first.key.start..first.key.start, &format!("{member},{between}"))
            }
            None => self.replace(object.inside..object.inside, &format!("{line}{member}")),
        }
    }

    fn take_out(&mut self, object: &Object, name: &str) -> Result<(), NotEdited> {
        let Some(at) = object.position(name) else { return Ok(()) };
        let previous = at.checked_sub(1).and_then(|at| object.members.get(at));
        let (Some(member), next) = (object.members.get(at), object.members.get(at + 1)) else {
            return Ok(());
        };
        let comma = |from: usize| skip_blank(self.blank.as_bytes(), from);
        match (previous, next) {
            (_, Some(next)) => {
                let between = member.value.end..next.key.start;
                let end = match self.text.get(between.clone()) == self.blank.get(between) {
                    true => next.key.start,
                    false => comma(member.value.end) + 1,
                };
                self.replace(member.key.start..end, "")
            }
            (Some(previous), None) => {
                let comma = comma(previous.value.end);
                let start = self.back_over_blank(member.key.start).max(comma + 1);
                let kept = self.text.get(comma + 1..start).unwrap_or_default().to_owned();
                self.replace(comma..member.value.end, &kept)
            }
            (None, None) => {
                let start = self.back_over_blank(member.key.start);
                let start = if start == object.inside { start } else { member.key.start };
                self.replace(start..member.value.end, "")
            }
        }
    }

    fn replace(&mut self, range: Range<usize>, with: &str) -> Result<(), NotEdited> {
        let mut text = self.text.clone();
        text.replace_range(range, with);
        *self = Self::new(text)?;
        Ok(())
    }

    fn back_over_blank(&self, from: usize) -> usize {
        let bytes = self.text.as_bytes().get(..from).unwrap_or_default();
        bytes.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |at| at + 1)
    }

    /// What begins the line of a new member: a line end and the indent, or nothing where all is in one line.
    fn line_start(&self, object: &Object) -> String {
        match object.members.first() {
            Some(first) => self.line_of(first.key.start),
            None => {
                let end = skip_blank(self.blank.as_bytes(), object.inside);
                let inside = self.blank.get(object.inside..end).unwrap_or_default();
                match inside.contains('\n') {
                    true => format!("{}{}", self.line_of(end), "  "),
                    false => String::new(),
                }
            }
        }
    }

    /// The line end and the blanks before a place; nothing if something else is before it in its line.
    fn line_of(&self, place: usize) -> String {
        let before = self.text.get(..place).unwrap_or_default();
        let kept = before.trim_end_matches([' ', '\t']);
        let indent = before.get(kept.len()..).unwrap_or_default();
        match kept {
            _ if kept.ends_with("\r\n") => format!("\r\n{indent}"),
            _ if kept.ends_with('\n') => format!("\n{indent}"),
            _ => String::new(),
        }
    }

    /// How much deeper a level is: as the members of the outermost object.
    fn step(&self, root: &Object) -> String {
        let line = self.line_start(root);
        let indent = line.trim_start_matches(['\r', '\n']);
        if indent.is_empty() { "  ".to_owned() } else { indent.to_owned() }
    }
}

/// A value's text with its further lines moved to where a member's line begins.
fn indented(raw: &str, line: &str) -> String {
    if line.is_empty() {
        // In one line with its neighbours, a value that comes as lines would stand out; compact it.
        return parse(raw).map_or_else(|_| raw.to_owned(), |value| value.to_string());
    }
    raw.replace("\r\n", "\n").replace('\n', line)
}

fn quoted(name: &str) -> String {
    Value::String(name.to_owned()).to_string()
}

fn skip_blank(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Behind the value that begins at a place.
fn value_end(text: &str, from: usize) -> usize {
    let value = Deserializer::from_str(text.get(from..).unwrap_or_default());
    let mut values = value.into_iter::<IgnoredAny>();
    let _ends_the_text = values.next();
    from + values.byte_offset()
}

#[cfg(test)]
mod tests;
