//! A session to a conversation in one pass, for files that are written in the plain way; nearly all are.
//!
//! Most bytes of a session are tool output that stands there twice or three times (0.61.0), and most records of a log are
//! written again later. Here only the last version of a record is decoded, and of that only what an entry is made of.
//! Whatever could make that differ from the CLI's own reading gives `None`, and the thorough way is taken.

use alhena_model::Include;
use alhena_model::conversation::{Conversation, Original, first_record, needed_parts_of};
use serde::de::IgnoredAny;

use crate::survey;

/// The conversation in a session file; `None` when it is not plain.
pub(crate) fn conversation(bytes: &[u8], include: Include) -> Option<Conversation<'_>> {
    let first = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty());
    if first == Some(b"{") { of_object(bytes, include) } else { of_lines(bytes, include) }
}

/// Of a log, as it is written from 0.39 on.
fn of_lines(bytes: &[u8], include: Include) -> Option<Conversation<'_>> {
    let text = |span: survey::Span| {
        let start = usize::try_from(span.offset).ok()?;
        let end = start.checked_add(usize::try_from(span.length).ok()?)?;
        std::str::from_utf8(bytes.get(start..end)?).ok()
    };
    let fold = survey::fold_lines(bytes);
    let (course, others) = fold.plain()?;
    for other in others {
        // What is not JSON does not count, and so has no place in the order either.
        serde_json::from_str::<IgnoredAny>(text(*other)?).ok()?;
    }
    let mut conversation = Conversation::new(include);
    for (span, said) in course {
        if said || include == Include::Everything || conversation.wants_results() {
            let record = text(span)?;
            conversation.push(needed_parts_of(record)?, Original::of_text(record));
        }
    }
    Some(conversation)
}

/// Of one object, as it was written up to 0.38.
fn of_object(bytes: &[u8], include: Include) -> Option<Conversation<'_>> {
    let mut rest = std::str::from_utf8(bytes).ok()?;
    let (mut messages, mut is_session) = (None, false);
    list(&mut rest, '{', '}', |rest| {
        let (key, after) = first::<String>(rest)?;
        *rest = after;
        take(rest, ':')?;
        is_session |= key == "sessionId";
        if key != "messages" || next(rest) != Some('[') {
            *rest = first::<IgnoredAny>(rest)?.1;
            return Some(());
        }
        let mut conversation = Conversation::new(include);
        list(rest, '[', ']', |rest| record(rest, &mut conversation))?;
        messages.replace(conversation).is_none().then_some(())
    })?;
    let whole = is_session && next(&mut rest).is_none();
    whole.then(|| messages.unwrap_or_default())
}

fn record<'a>(rest: &mut &'a str, conversation: &mut Conversation<'a>) -> Option<()> {
    if next(rest) != Some('{') {
        *rest = first::<IgnoredAny>(rest)?.1;
        return Some(());
    }
    let (record, after) = first_record(rest)?;
    let text = rest.get(..rest.len() - after.len())?;
    *rest = after;
    conversation.push(record, Original::of_text(text));
    Some(())
}

/// Goes through an object or an array; `each` has to take one item.
fn list<'a>(
    rest: &mut &'a str,
    open: char,
    close: char,
    mut each: impl FnMut(&mut &'a str) -> Option<()>,
) -> Option<()> {
    take(rest, open)?;
    if take(rest, close).is_some() {
        return Some(());
    }
    loop {
        each(rest)?;
        if take(rest, close).is_some() {
            return Some(());
        }
        take(rest, ',')?;
    }
}

/// The next character that is no white space; up to it.
fn next(rest: &mut &str) -> Option<char> {
    *rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
    rest.chars().next()
}

fn take(rest: &mut &str, sign: char) -> Option<()> {
    next(rest)?;
    *rest = rest.strip_prefix(sign)?;
    Some(())
}

/// The value that a text begins with, and the rest.
fn first<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Option<(T, &'a str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

#[cfg(test)]
mod tests;
