//! Takes known values out of text, in whatever form they stand there.
//!
//! A value is looked for as it is, and in what the text means when the escapes of JSON (of JSON inside JSON too) and of URLs
//! are taken away, so that no way of writing a character makes a difference. Its base64 forms are looked for as well, at all
//! three places that it can have in a longer text. A long value counts also in part: a beginning where the text is cut off
//! behind it, an end where it is cut off before.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;
use memchr::memchr;

/// So much of a long value gives it away.
const PART: usize = 8;
/// A value from here on is long: a part of it is no accident.
const LONG: usize = 16;
/// JSON in JSON in JSON.
const DEEPEST: usize = 3;

/// What is taken out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mask {
    finder: Option<AhoCorasick>,
    /// What each pattern of the finder stands for.
    patterns: Vec<(usize, Part)>,
    forms: Vec<Form>,
}

/// A value in one form.
#[derive(Clone, Debug)]
struct Form {
    bytes: Vec<u8>,
    /// What it is called.
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    /// The first bytes of it, and what follows as far as it agrees.
    Start,
    /// The last bytes of it.
    End,
}

impl Mask {
    /// For these names and values. Values of fewer than eight bytes count only as whole words.
    pub(crate) fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut forms: Vec<Form> = Vec::new();
        for (name, value) in values {
            for bytes in forms_of(&value) {
                if !forms.iter().any(|form| form.bytes == bytes) {
                    forms.push(Form { bytes, name: name.clone() });
                }
            }
        }
        let (mut texts, mut patterns) = (Vec::new(), Vec::new());
        for (at, form) in forms.iter().enumerate() {
            texts.push(form.bytes.as_slice());
            patterns.push((at, Part::Whole));
            if let (LONG.., Some(first), Some(last)) =
                (form.bytes.len(), form.bytes.first_chunk::<PART>(), form.bytes.last_chunk::<PART>())
            {
                texts.extend([&first[..], &last[..]]);
                patterns.extend([(at, Part::Start), (at, Part::End)]);
            }
        }
        let finder = if texts.is_empty() { None } else { AhoCorasick::new(&texts).ok() };
        Self { finder, patterns, forms }
    }

    /// The text without the values.
    pub(crate) fn hide<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        self.hide_as(text, &|name| format!("[{name}]"))
    }

    /// The text without the values, and with something of the caller's in the place of each.
    pub(crate) fn hide_as<'t>(&self, text: &'t [u8], written: &dyn Fn(&str) -> String) -> Cow<'t, [u8]> {
        let mut spans = self.spans(text);
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        let (mut out, mut done) = (Vec::with_capacity(text.len()), 0);
        for span in spans {
            if span.start >= done {
                out.extend_from_slice(text.get(done..span.start).unwrap_or_default());
                let name = self.forms.get(span.form).map_or("", |form| &form.name);
                // A number in JSON stays one.
                match is_number(text, &span) {
                    true => out.push(b'0'),
                    false => out.extend_from_slice(written(name).as_bytes()),
                }
            }
            done = done.max(span.end);
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// How much of a text can be let go of while its rest is still to come: no value begins before and ends behind it.
    pub(crate) fn settled(&self, text: &[u8], before: usize) -> usize {
        self.spans(text)
            .iter()
            .filter(|span| span.end > before)
            .map(|span| span.start)
            .fold(before, usize::min)
    }

    fn spans(&self, text: &[u8]) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut view = View::of(text);
        for _ in 0..=DEEPEST {
            self.look(&view, &mut spans);
            // A URL inside a URL is escaped twice.
            let mut url = Cow::Borrowed(&view);
            for _ in 0..2 {
                if memchr(b'%', &url.bytes).is_none() {
                    break;
                }
                url = Cow::Owned(url.decoded(b'%', percent));
                self.look(&url, &mut spans);
            }
            if memchr(b'\\', &view.bytes).is_none() {
                break;
            }
            view = view.decoded(b'\\', json);
        }
        spans
    }

    fn look(&self, view: &View<'_>, spans: &mut Vec<Span>) {
        let Some(finder) = &self.finder else { return };
        for found in finder.find_overlapping_iter(&*view.bytes) {
            let Some((at, part)) = self.patterns.get(found.pattern().as_usize()).copied() else { continue };
            let Some(form) = self.forms.get(at) else { continue };
            if let Some((start, end)) = form.extent(part, &view.bytes, found.start(), found.end()) {
                spans.push(Span { start: view.source(start), end: view.source(end), form: at });
            }
        }
    }
}

impl Form {
    /// How far the value goes that was found, if it counts.
    fn extent(&self, part: Part, text: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
        let before = text.get(..start)?;
        let after = text.get(end..)?;
        match part {
            Part::Whole if self.bytes.len() >= PART => Some((start, end)),
            Part::Whole => (!ends_in_word(before) && !begins_with_word(after)).then_some((start, end)),
            Part::Start => {
                let more = common(self.bytes.get(PART..)?.iter(), after.iter());
                (!begins_with_word(after.get(more..)?)).then_some((start, end + more))
            }
            Part::End => {
                let rest = self.bytes.get(..self.bytes.len() - PART)?;
                let more = common(rest.iter().rev(), before.iter().rev());
                (!ends_in_word(before.get(..start - more)?)).then_some((start - more, end))
            }
        }
    }
}

fn common<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn ends_in_word(text: &[u8]) -> bool {
    text.last().copied().is_some_and(is_word)
}

fn begins_with_word(text: &[u8]) -> bool {
    text.first().copied().is_some_and(is_word)
}

/// Where a value stands in the text.
struct Span {
    start: usize,
    end: usize,
    form: usize,
}

/// Whether digits stand where JSON has a number, and not in a string.
fn is_number(text: &[u8], span: &Span) -> bool {
    let (before, after) =
        (text.get(..span.start).unwrap_or_default(), text.get(span.end..).unwrap_or_default());
    text.get(span.start..span.end).is_some_and(|value| value.iter().all(u8::is_ascii_digit))
        && matches!(before.trim_ascii_end().last(), Some(b':' | b',' | b'['))
        && matches!(after.trim_ascii_start().first(), Some(b',' | b'}' | b']'))
}

/// A text as it is read by somebody who takes escapes away, and where its pieces come from.
#[derive(Clone)]
struct View<'t> {
    bytes: Cow<'t, [u8]>,
    /// Where a piece begins here and in the source, in order; empty when the text is the source itself.
    pieces: Vec<(usize, usize)>,
}

impl<'t> View<'t> {
    fn of(text: &'t [u8]) -> Self {
        Self { bytes: Cow::Borrowed(text), pieces: Vec::new() }
    }

    /// Where a byte comes from; where one does that is made of an escape, the escape begins.
    fn source(&self, at: usize) -> usize {
        let before = self.pieces.partition_point(|(start, _)| *start <= at);
        match before.checked_sub(1).and_then(|piece| self.pieces.get(piece)) {
            Some((start, source)) => source + (at - start),
            None => at,
        }
    }

    /// Takes one kind of escape away. `read` gets what follows the sign, and says how much of it belongs to the escape.
    fn decoded(&self, sign: u8, read: fn(&[u8], &mut Vec<u8>) -> Option<usize>) -> View<'static> {
        let mut view = View { bytes: Cow::Owned(Vec::new()), pieces: Vec::new() };
        let bytes = view.bytes.to_mut();
        bytes.reserve(self.bytes.len());
        let (mut at, mut from) = (0, 0);
        while let Some(found) = self.bytes.get(from..).and_then(|rest| memchr(sign, rest)) {
            let escape = from + found;
            let mut decoded = Vec::new();
            from = escape + 1;
            let Some(taken) = read(self.bytes.get(from..).unwrap_or_default(), &mut decoded) else {
                continue;
            };
            self.copy(at..escape, bytes, &mut view.pieces);
            view.pieces.push((bytes.len(), self.source(escape)));
            bytes.append(&mut decoded);
            from += taken;
            at = from;
        }
        self.copy(at..self.bytes.len(), bytes, &mut view.pieces);
        // The end has a source too.
        view.pieces.push((bytes.len(), self.source(self.bytes.len())));
        view
    }

    /// A run without escapes, with the pieces that it is made of.
    fn copy(&self, run: std::ops::Range<usize>, bytes: &mut Vec<u8>, pieces: &mut Vec<(usize, usize)>) {
        let within = self.pieces.partition_point(|(start, _)| *start <= run.start);
        pieces.push((bytes.len(), self.source(run.start)));
        let inner = self.pieces.iter().skip(within).take_while(|(start, _)| *start < run.end);
        pieces.extend(inner.map(|(start, source)| (bytes.len() + (start - run.start), *source)));
        bytes.extend_from_slice(self.bytes.get(run).unwrap_or_default());
    }
}

fn percent(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    out.push(u8::try_from(hex(rest.get(..2)?)?).ok()?);
    Some(2)
}

/// Text without the escapes of URLs.
pub(super) fn without_percent(text: &str) -> String {
    String::from_utf8_lossy(&View::of(text.as_bytes()).decoded(b'%', percent).bytes).into_owned()
}

fn json(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let byte = match rest.first()? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        other @ (b'"' | b'\\' | b'/') => *other,
        b'u' => return unicode(rest, out),
        _ => return None,
    };
    out.push(byte);
    Some(1)
}

/// `u00e9`, or two halves of a pair with an escape each.
fn unicode(rest: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let first = hex(rest.get(1..5)?)?;
    let second = rest.get(5..7).filter(|sign| sign == b"\\u").and_then(|_| hex(rest.get(7..11)?));
    let (c, taken) = match (first, second) {
        (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
            (char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (low - 0xdc00))?, 11)
        }
        _ => (char::from_u32(first)?, 5),
    };
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    Some(taken)
}

fn hex(digits: &[u8]) -> Option<u32> {
    let all = digits.iter().all(u8::is_ascii_hexdigit);
    u32::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| all)?, 16).ok()
}

/// The value, each long line of it, and what base64 makes of both.
fn forms_of(value: &str) -> Vec<Vec<u8>> {
    let lines = value.lines().map(str::trim).filter(|line| line.len() >= PART && *line != value);
    let mut forms = Vec::new();
    for text in std::iter::once(value).chain(lines) {
        forms.push(text.as_bytes().to_vec());
        // As forms write it, before the escapes of a URL.
        if text.contains(' ') {
            forms.push(text.replace(' ', "+").into_bytes());
        }
        if text.len() >= PART {
            forms.extend((0..3).flat_map(|shift| base64(text.as_bytes(), shift)));
        }
    }
    forms
}

/// What stands for the value in the base64 of a text in which it begins `shift` bytes into a group of three: only those
/// characters that no neighbour has a part in. In both alphabets.
fn base64(value: &[u8], shift: usize) -> [Vec<u8>; 2] {
    let encode = |alphabet: &[u8; 64]| {
        let bytes: Vec<u8> = std::iter::repeat_n(0, shift).chain(value.iter().copied()).collect();
        let mut out = Vec::new();
        for group in bytes.chunks(3) {
            let at = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            let whole = group.len() * 8 / 6;
            let letter = |place: usize| alphabet.get((bits >> (18 - 6 * place) & 63) as usize).copied();
            out.extend((0..whole).filter_map(letter));
        }
        out.drain(..(shift * 8).div_ceil(6));
        out
    };
    [encode(STANDARD), encode(URL_SAFE)]
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(mask: &Mask, text: &str) -> String {
        String::from_utf8(mask.hide(text.as_bytes()).into_owned()).unwrap()
    }

    const AWKWARD: &str = "p\"ä/ss\\wor\nd 🌍 with everything";

    fn hidden(value: &str, text: &str) -> String {
        seen(&Mask::new([("KEY".to_owned(), value.to_owned())]), text)
    }

    #[test]
    fn a_value_is_found_however_json_writes_it() {
        let once = serde_json::to_string(AWKWARD).unwrap();
        let twice = serde_json::to_string(&once).unwrap();
        let thrice = serde_json::to_string(&twice).unwrap();
        let escaped: String = AWKWARD.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
        for text in [AWKWARD.to_owned(), once.clone(), twice, thrice, once.replace('/', "\\/"), escaped] {
            let seen = hidden(AWKWARD, &format!("a {text} b"));
            assert!(
                seen.starts_with("a ") && seen.ends_with(" b") && seen.contains("[KEY]"),
                "{text}: {seen}"
            );
            assert!(!seen.contains("everything") && !seen.contains("u0065"), "{text}: {seen}");
        }
    }

    #[test]
    fn json_stays_json() {
        let text = serde_json::json!({ "a": AWKWARD, "b": [AWKWARD, 1] }).to_string();
        assert_eq!(hidden(AWKWARD, &text), r#"{"a":"[KEY]","b":["[KEY]",1]}"#);
        assert_eq!(hidden("12345678", r#"{"a":12345678,"b":"12345678"}"#), r#"{"a":0,"b":"[KEY]"}"#);
    }

    #[test]
    fn a_value_is_found_in_urls_and_in_base64() {
        let secret = "s3cr+t/värde!";
        assert_eq!(hidden(secret, "?k=s3cr%2Bt%2fv%C3%A4rde%21&x"), "?k=[KEY]&x");
        assert_eq!(hidden(secret, r#"{"u":"?k=s3cr%2Bt\/v%C3%A4rde!&x"}"#), r#"{"u":"?k=[KEY]&x"}"#);
        for (before, encoded) in
            [("", "czNjcit0L3bDpHJkZSE"), ("u:", "dTpzM2NyK3QvdsOkcmRlIQ"), ("x", "eHMzY3IrdC92w6RyZGUh")]
        {
            for text in [encoded.to_owned(), encoded.replace('+', "-").replace('/', "_")] {
                let seen = hidden(secret, &format!("Basic {text}=="));
                assert!(seen.contains("[KEY]") && seen.len() < 20, "{before}: {seen}");
            }
        }
    }

    #[test]
    fn lines_of_a_long_value_count_alone() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n-----END KEY-----\n";
        assert_eq!(hidden(key, "line kqhkiG9w0BAQEF."), "line [KEY].");
    }

    #[test]
    fn a_part_counts_where_the_text_is_cut_off() {
        let key = "AIzaSyD-abcdefghijklmnop";
        assert_eq!(hidden(key, "key AIzaSyD-abcd... [truncated]"), "key [KEY]... [truncated]");
        assert_eq!(hidden(key, "key AIzaSyD-ab"), "key [KEY]");
        assert_eq!(hidden(key, "...ghijklmnop end"), "...[KEY] end");
        // Another key of the same kind, and a word that begins alike.
        assert_eq!(hidden(key, "AIzaSyD-abx"), "AIzaSyD-abx");
        assert_eq!(hidden("correct-horse-battery", "correct-looking"), "correct-looking");
    }

    #[test]
    fn a_short_value_counts_as_a_whole_word_only() {
        assert_eq!(hidden("tiger", "tiger, tigers and \"tiger\""), "[KEY], tigers and \"[KEY]\"");
    }

    #[test]
    fn of_two_values_one_in_the_other_both_are_gone() {
        let mask = Mask::new([
            ("A".to_owned(), "longer-secret-value".to_owned()),
            ("B".to_owned(), "secret-value".to_owned()),
        ]);
        assert_eq!(seen(&mask, "longer-secret-value secret-value"), "[A] [B]");
    }

    #[test]
    fn without_values_nothing_is_touched() {
        assert!(matches!(Mask::default().hide(b"\\u0041 %41"), Cow::Borrowed(_)));
    }
}
