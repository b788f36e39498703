//! What is asked for, and whether a text has it.

use std::ops::Range;

use super::words::{list, words};

/// More different words than this are not looked for.
const MOST_WORDS: usize = 64;

/// A search: every phrase has to be there. A phrase is one word, or several in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    phrases: Vec<Vec<usize>>,
    words: Vec<Vec<u8>>,
}

impl Query {
    /// From arguments: each is a word, or a phrase when it has several words (`"no such file"`, `run_shell_command`).
    /// `None` when there is no word in them.
    pub fn new<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> Option<Self> {
        let mut query = Self { phrases: Vec::new(), words: Vec::new() };
        for argument in arguments {
            let mut phrase = Vec::new();
            for word in list(argument.as_ref()) {
                let known = query.words.iter().position(|known| *known == word);
                if known.is_none() && query.words.len() == MOST_WORDS {
                    break;
                }
                phrase.push(known.unwrap_or_else(|| {
                    query.words.push(word);
                    query.words.len() - 1
                }));
            }
            if !phrase.is_empty() && query.phrases.len() < MOST_WORDS {
                query.phrases.push(phrase);
            }
        }
        (!query.phrases.is_empty()).then_some(query)
    }

    /// The different words.
    pub(super) fn words(&self) -> &[Vec<u8>] {
        &self.words
    }

    /// All phrases.
    pub(super) fn all(&self) -> u64 {
        u64::MAX >> (64 - self.phrases.len().min(64))
    }

    /// Where the phrases are in a text, each with its number. Adds to how often each word is there, by its number. Gives how
    /// many words the text has.
    pub(super) fn matches(
        &self,
        text: &str,
        found: &mut Vec<(usize, Range<usize>)>,
        times: &mut Vec<(usize, u32)>,
    ) -> usize {
        found.clear();
        let mut count = 0;
        let mut seen: Vec<(Option<usize>, Range<usize>)> = Vec::new();
        let mut buffer = Vec::new();
        let longest = self.phrases.iter().map(Vec::len).max().unwrap_or(1);
        words(text, &mut buffer, |word, place| {
            count += 1;
            let number = self.words.iter().position(|known| known == word);
            if seen.len() == longest {
                seen.remove(0);
            }
            seen.push((number, place));
            let Some(number) = number else { return };
            match times.iter_mut().find(|(word, _)| *word == number) {
                Some((_, times)) => *times = times.saturating_add(1),
                None => times.push((number, 1)),
            }
            for (at, phrase) in self.phrases.iter().enumerate() {
                let Some(tail) = seen.len().checked_sub(phrase.len()).and_then(|start| seen.get(start..))
                else {
                    continue;
                };
                if tail.iter().zip(phrase).all(|((seen, _), wanted)| *seen == Some(*wanted))
                    && let (Some((_, first)), Some((_, last))) = (tail.first(), tail.last())
                {
                    found.push((at, first.start..last.end));
                }
            }
        });
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(query: &[&str], text: &str) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        Query::new(query).unwrap().matches(text, &mut found, &mut Vec::new());
        found.into_iter().map(|(at, range)| (at, text.get(range).unwrap().to_owned())).collect()
    }

    #[test]
    fn words_and_phrases_are_found_where_they_are() {
        let text = "The Foo_bar foo, bar; FOO baz 日本語";
        assert_eq!(places(&["foo"], text), [(0, "Foo".into()), (0, "foo".into()), (0, "FOO".into())]);
        assert_eq!(places(&["foo bar"], text), [(0, "Foo_bar".into()), (0, "foo, bar".into())]);
        assert_eq!(places(&["baz", "the"], text), [(1, "The".into()), (0, "baz".into())]);
        assert_eq!(places(&["本語"], text), [(0, "本語".into())]);
        assert_eq!(places(&["nothing"], text), []);
    }

    #[test]
    fn nothing_to_look_for_is_no_query() {
        assert_eq!(Query::new(["", " ;- "]), None);
    }

    #[test]
    fn a_message_can_have_a_phrase_only_if_it_has_its_words() {
        let query = Query::new(["a b", "c"]).unwrap();
        assert_eq!(query.all(), 0b11);
    }
}
