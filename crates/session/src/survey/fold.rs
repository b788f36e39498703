//! The CLI's fold of records, with only what a list needs in each.

use std::collections::{BTreeMap, HashMap};

use alhena_model::Tokens;
use serde::de::IgnoredAny;

use super::record::{
    Header, Look, Record, Speaker, SurveyedMessage, header, message_at, messages, millis, read, shorten,
    title,
};
use super::{Ending, LARGE, Outline, Remembered, Span, Spent, Survey};
use crate::lines::Line;
use crate::scan::text;

/// One message as it stands now.
#[derive(Clone, Debug)]
struct FoldedMessage {
    speaker: Speaker,
    has_text: bool,
    has_calls: bool,
    tokens: Option<Tokens>,
    model: Option<usize>,
    /// Which day, as it is written.
    day: Option<[u8; 10]>,
    title: Option<String>,
    span: Span,
    /// The version that says most, when a later one says less.
    best: Option<Span>,
    /// Its place in the conversation while it is in there.
    at: usize,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Kept,
    /// Taken back by a person, or replaced by a summary.
    Gone,
    /// Dropped by a checkpoint that put nothing in its place.
    Dropped,
}

#[derive(Default)]
pub(crate) struct Fold {
    /// Where the bytes at hand are in memory, and where in the file.
    base: (usize, u64),
    survey: Survey,
    has_project: bool,
    summary: Option<String>,
    models: Vec<String>,
    /// Every message ever seen, also those that are no longer in the conversation.
    entries: Vec<FoldedMessage>,
    places: HashMap<Vec<u8>, usize>,
    /// The conversation: places in `entries`.
    order: Vec<usize>,
    /// Where in the conversation the first title is.
    titled: Option<usize>,
    /// What has to be JSON for the rest to be true: versions of messages that others came after, what came after them if
    /// nobody said it, headers, checkpoints and rewinds.
    proviso: Vec<Span>,
    odd: bool,
    /// Where the checkpoint stands that took something back, while nothing was said after it.
    rolled_back: Option<u64>,
}

impl Fold {
    pub(super) fn has_header(&self) -> bool {
        self.survey.id.is_some() && self.has_project
    }

    /// One line. The last one may have no line end; then it counts when it is whole.
    pub(crate) fn line(&mut self, line: Line<'_>) {
        if !line.ended && serde_json::from_slice::<IgnoredAny>(line.bytes).is_err() {
            return;
        }
        self.base = (line.bytes.as_ptr().addr(), line.offset);
        match read(line.bytes) {
            Some(Record::Rewind(id, odd)) => {
                self.rolled_back = None;
                self.odd |= odd;
                self.proviso.push(self.span(line.bytes));
                let target = self.places.get(id).and_then(|place| self.entries.get(*place));
                self.proviso.extend(target.map(|entry| entry.span));
                self.rewind(id);
            }
            Some(Record::Message(seen)) => {
                self.odd |= seen.odd || !line.bytes.starts_with(b"{") || !line.bytes.ends_with(b"}");
                self.message(&seen);
            }
            Some(Record::Set(header)) => {
                self.odd |= header.odd;
                let names = header.session_id.is_some() || header.project_hash.is_some();
                if names || header.messages.is_some() {
                    self.proviso.push(self.span(line.bytes));
                }
                if let Some(list) = header.messages {
                    self.checkpoint(list, line.offset);
                }
                self.header(&header);
            }
            Some(Record::Header(header)) => {
                self.odd |= header.odd || header.messages.is_some();
                self.proviso.push(self.span(line.bytes));
                self.header(&header);
                let named = messages(header.messages.unwrap_or_default()).filter(|seen| !seen.id.is_empty());
                named.for_each(|seen| self.message(&seen));
            }
            None => self.odd |= !line.bytes.trim_ascii().is_empty(),
        }
    }

    /// The plain course of a log, if this was one: each message in its last version, and whether somebody said it; and
    /// what else has to be JSON for that to be true. `None` when only decoding everything can tell.
    pub(crate) fn plain(&self) -> Option<(impl Iterator<Item = (Span, bool)>, &[Span])> {
        let course = self.order.iter().filter_map(|place| self.entries.get(*place));
        let course = course.map(|entry| (entry.span, entry.speaker != Speaker::Machine));
        (self.has_header() && !self.odd).then_some((course, &self.proviso))
    }

    /// One object that holds everything, perhaps cut off.
    pub(super) fn whole(&mut self, object: &[u8]) {
        self.base = (object.as_ptr().addr(), 0);
        let header = header(object, |keys| {
            keys.enter(b'[')?;
            while keys.item().is_some() {
                match keys.peek()? {
                    b'{' => {
                        let seen = message_at(keys, Look::AtAll)?;
                        self.add(&seen);
                    }
                    _ => drop(keys.value()?),
                }
            }
            keys.take(b']')
        });
        if let Some(header) = header {
            self.header(&header);
        }
    }

    fn span(&self, record: &[u8]) -> Span {
        let (start, offset) = self.base;
        let place = record.as_ptr().addr().saturating_sub(start) as u64;
        Span { offset: offset + place, length: record.len() as u64 }
    }

    /// Where what was said stands.
    pub(super) fn outline(&self) -> Outline {
        let said = |entry: &&FoldedMessage| entry.speaker != Speaker::Machine;
        let kept = self.order.iter().filter_map(|place| self.entries.get(*place));
        let ever = || self.entries.iter().filter(|entry| entry.standing != Standing::Gone);
        let best = |entry: &FoldedMessage| entry.best.unwrap_or(entry.span);
        let history = ever()
            .filter(said)
            .map(|entry| Remembered { span: best(entry), dropped: entry.standing == Standing::Dropped });
        Outline {
            said: kept.filter(said).map(|entry| entry.span).collect(),
            history: history.collect(),
            records: ever().map(best).collect(),
        }
    }

    fn header(&mut self, header: &Header<'_>) {
        let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if let Some(id) = header.session_id {
            self.survey.id = Some(word(id));
        }
        self.has_project |= header.project_hash.is_some();
        if let Some(kind) = header.kind {
            self.survey.subagent = kind == b"subagent";
        }
        self.survey.started = header.start_time.and_then(millis).or(self.survey.started);
        self.survey.updated = header.last_updated.and_then(millis).or(self.survey.updated);
        if let Some(summary) = header.summary.and_then(text) {
            self.summary = shorten(summary.trim());
        }
    }

    fn message(&mut self, seen: &SurveyedMessage<'_>) {
        self.rolled_back = None;
        match self.places.get(seen.id).copied() {
            Some(place) => {
                let entry = self.entry(seen);
                if let Some(known) = self.entries.get_mut(place) {
                    let was = std::mem::replace(known, entry);
                    self.proviso.push(was.span);
                    if known.speaker == Speaker::Machine {
                        self.proviso.push(known.span);
                    }
                    known.title = known.title.take().or(was.title);
                    known.at = was.at;
                    if was.standing != Standing::Kept {
                        known.at = self.order.len();
                        self.order.push(place);
                    }
                    if known.title.is_some() && self.titled.is_none_or(|at| at > known.at) {
                        self.titled = Some(known.at);
                    }
                    // A resume in the same minute writes a message again without its tokens and tool calls.
                    if known.tokens.is_none() && was.tokens.is_some() {
                        known.best = was.best.or(Some(was.span));
                        (known.tokens, known.model, known.day) = (was.tokens, was.model, was.day);
                    }
                }
            }
            None => self.add(seen),
        }
    }

    fn add(&mut self, seen: &SurveyedMessage<'_>) {
        let entry = self.entry(seen);
        self.places.insert(seen.id.to_vec(), self.entries.len());
        if entry.title.is_some() {
            self.titled.get_or_insert(entry.at);
        }
        self.order.push(self.entries.len());
        self.entries.push(entry);
    }

    fn entry(&mut self, seen: &SurveyedMessage<'_>) -> FoldedMessage {
        let model = seen.model.map(|model| {
            let known = self.models.iter().position(|known| known.as_bytes() == model);
            known.unwrap_or_else(|| {
                self.models.push(String::from_utf8_lossy(model).into_owned());
                self.models.len() - 1
            })
        });
        FoldedMessage {
            speaker: seen.speaker,
            has_text: seen.has_text,
            has_calls: seen.has_calls,
            tokens: seen.tokens,
            model,
            day: seen.time.and_then(|time| time.first_chunk().copied()).filter(|_| seen.tokens.is_some()),
            title: seen.said.filter(|_| self.titled.is_none()).and_then(title),
            span: self.span(seen.record),
            best: None,
            at: self.order.len(),
            standing: Standing::Kept,
        }
    }

    /// Drops the message and all after it; all of them when it is not there.
    fn rewind(&mut self, id: &[u8]) {
        let place = self.places.get(id).and_then(|place| self.entries.get(*place));
        let from = place.filter(|entry| entry.standing == Standing::Kept).map_or(0, |entry| entry.at);
        self.titled = self.titled.filter(|at| *at < from);
        for place in self.order.drain(from..) {
            if let Some(entry) = self.entries.get_mut(place) {
                entry.standing = Standing::Gone;
            }
        }
    }

    fn checkpoint(&mut self, list: &[u8], offset: u64) {
        let rolled_back = self.rolled_back;
        let before = std::mem::take(&mut self.order);
        self.titled = None;
        for place in &before {
            if let Some(entry) = self.entries.get_mut(*place) {
                entry.standing = Standing::Dropped;
            }
        }
        let known = self.entries.len();
        for seen in messages(list) {
            self.odd |= seen.odd || seen.id.is_empty();
            if !seen.id.is_empty() {
                self.message(&seen);
            }
        }
        // A summary in the place of old messages is the CLI's compression and no loss.
        let says_something_new = self
            .entries
            .get(known..)
            .unwrap_or_default()
            .iter()
            .any(|entry| entry.speaker != Speaker::Machine);
        if says_something_new {
            for place in before {
                if let Some(entry) = self.entries.get_mut(place)
                    && entry.standing == Standing::Dropped
                {
                    entry.standing = Standing::Gone;
                }
            }
            return;
        }
        let dropped = |place: &usize| {
            let entry = self.entries.get(*place);
            entry
                .is_some_and(|entry| entry.standing == Standing::Dropped && entry.speaker != Speaker::Machine)
        };
        self.rolled_back = match before.iter().any(dropped) {
            true => Some(offset),
            // The same conversation once more.
            false => rolled_back.filter(|_| before == self.order),
        };
    }

    /// Where the checkpoint begins that took back what was said last, if the log ends with one. A summary in the place of
    /// what it took is none.
    pub(crate) fn rolled_back(&self) -> Option<u64> {
        self.rolled_back
    }

    /// The conversation with what nobody said, each message in the version that says most.
    pub(crate) fn standing(&self) -> impl Iterator<Item = Span> {
        let kept = self.order.iter().filter_map(|place| self.entries.get(*place));
        kept.map(|entry| entry.best.unwrap_or(entry.span))
    }

    pub(super) fn end(mut self) -> Survey {
        let said = |entry: &&FoldedMessage| entry.speaker != Speaker::Machine;
        let mut ending = Ending::Empty;
        let (mut count, mut prompts, mut first) = (0, 0, None);
        for entry in self.order.iter().filter_map(|place| self.entries.get(*place)).filter(said) {
            count += 1;
            prompts += u64::from(entry.speaker == Speaker::Person);
            first = first.or(entry.title.as_deref());
            ending = match entry.speaker {
                Speaker::Model if entry.has_text && !entry.has_calls => Ending::Answered,
                _ => Ending::Open,
            };
        }
        let dropped = self.entries.iter().filter(said).filter(|entry| entry.standing == Standing::Dropped);
        let stripped = self
            .order
            .iter()
            .filter_map(|place| self.entries.get(*place))
            .filter(|entry| entry.best.is_some());
        self.survey.lost = dropped.count() as u64 + stripped.count() as u64;
        // What was dropped still says what the session was about.
        let dropped_title = || {
            let mut dropped = self.entries.iter().filter(|entry| entry.standing == Standing::Dropped);
            dropped.find_map(|entry| entry.title.clone())
        };
        self.survey.title = self.summary.take().or_else(|| first.map(str::to_owned)).or_else(dropped_title);
        self.survey.header = self.survey.id.is_some() && self.has_project;
        let spent = self.spent();
        Survey { messages: count, prompts, spent, ending, ..self.survey }
    }

    /// What all answers took: those that were taken back or dropped have been paid for, too.
    fn spent(&self) -> Vec<Spent> {
        type Kind = (Option<[u8; 10]>, Option<usize>, bool);
        let mut sums: BTreeMap<Kind, (u64, Tokens)> = BTreeMap::new();
        for entry in &self.entries {
            let Some(tokens) = &entry.tokens else { continue };
            let (answers, sum) = sums.entry((entry.day, entry.model, tokens.prompt > LARGE)).or_default();
            *answers += 1;
            *sum = add(sum, tokens);
        }
        let spent = sums.into_iter().map(|((day, model, large), (answers, tokens))| Spent {
            day: day.map(|day| String::from_utf8_lossy(&day).into_owned()).unwrap_or_default(),
            model: model
                .and_then(|model| self.models.get(model))
                .map_or_else(|| "unknown".to_owned(), String::clone),
            large,
            answers,
            tokens,
        });
        spent.collect()
    }
}

fn add(one: &Tokens, other: &Tokens) -> Tokens {
    Tokens {
        prompt: one.prompt.saturating_add(other.prompt),
        cached: one.cached.saturating_add(other.cached),
        output: one.output.saturating_add(other.output),
        thoughts: one.thoughts.saturating_add(other.thoughts),
        tool: one.tool.saturating_add(other.tool),
        total: one.total.saturating_add(other.total),
    }
}
