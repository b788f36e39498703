//! Reads a prompt: is a file asked for, of what kind, and about what?
//!
//! A prompt may be any text of any size; with Gemini CLI's stdin it is a document with the request at its end. So only
//! its last paragraph and its beginning are read.

use super::compose::{self, Genre};

/// How much of each end of a prompt is read.
const READ: usize = 2000;
const EXCERPT: usize = 60;

#[derive(Debug, PartialEq)]
pub(super) enum Asked {
    /// To write a file.
    File(FileTask),
    /// To fix or test something.
    Repair,
    /// Anything else.
    Anything,
}

#[derive(Debug, PartialEq)]
pub(super) struct FileTask {
    pub(super) path: String,
    pub(super) kind: Genre,
    pub(super) topic: String,
    pub(super) content: String,
}

#[derive(Debug, PartialEq)]
pub(super) struct Lookup {
    pub(super) directory: String,
    pub(super) entry: String,
}

impl FileTask {
    /// Where to look, from the outside in, to know whether the file is there.
    pub(super) fn places(&self) -> Vec<Lookup> {
        if self.path.starts_with('/') {
            let (directory, entry) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
            let directory = if directory.is_empty() { "/" } else { directory };
            return vec![Lookup { directory: directory.to_owned(), entry: entry.to_owned() }];
        }
        let mut directory = String::new();
        let mut places = Vec::new();
        for entry in self.path.split('/').filter(|entry| !entry.is_empty() && *entry != ".") {
            let shown = if directory.is_empty() { ".".to_owned() } else { directory.clone() };
            places.push(Lookup { directory: shown, entry: entry.to_owned() });
            if !directory.is_empty() {
                directory.push('/');
            }
            directory.push_str(entry);
        }
        places
    }

    /// The path for a shell. Names with quotes are never taken from a prompt.
    pub(super) fn quoted_path(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
        if self.path.chars().all(plain) { self.path.clone() } else { format!("'{}'", self.path) }
    }
}

pub(super) fn read(prompt: &str) -> Asked {
    let parts = parts_to_read(prompt);
    for part in &parts {
        let words = words(part);
        if !asks_to_write(&words) {
            continue;
        }
        if let Some((index, path)) = file_word(&words) {
            let kind = Genre::of(&path, &part.to_lowercase());
            let topic = topic(&words, index).unwrap_or_else(|| topic_of_name(&path));
            let content = compose::content(&path, kind, &topic);
            return Asked::File(FileTask { path, kind, topic, content });
        }
    }
    let asks_repair = |part: &String| words(part).iter().any(|word| word.is_one_of(REPAIR));
    if parts.iter().any(asks_repair) { Asked::Repair } else { Asked::Anything }
}

const REPAIR: &str = "fix test tests bug debug failing repair refactor broken crash lint build";
const LOOK: &str = "\
    explain read summarize summarise what why how describe review show translate delete remove \
    open run find rename edit";
const WRITE: &str = "\
    write create make generate save put add store compose draft schreibe schreib erstelle \
    escribe crea écris crée scrivi escreva напиши";

/// Whether a file named in these words is to be written, and not only spoken of. In a language that is not known here
/// it is taken to be; the file is looked for before it is written.
fn asks_to_write(words: &[Word]) -> bool {
    let any = |list: &str| words.iter().any(|word| word.is_one_of(list));
    any(WRITE) || !(any(REPAIR) || any(LOOK))
}

pub(super) fn excerpt(prompt: &str) -> String {
    let line: String = prompt.chars().take(READ).map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= EXCERPT {
        return line;
    }
    let cut: String = line.chars().take(EXCERPT).collect();
    format!("{}…", cut.trim_end())
}

fn parts_to_read(prompt: &str) -> Vec<String> {
    let prompt = prompt.trim();
    if prompt.len() <= READ {
        return vec![prompt.to_owned()];
    }
    let last: Vec<char> = prompt.chars().rev().take(READ).collect();
    let last: String = last.into_iter().rev().collect();
    let last = last.rsplit("\n\n").next().unwrap_or_default().to_owned();
    vec![last, prompt.chars().take(READ).collect()]
}

/// A word without the punctuation around it.
#[derive(Debug)]
struct Word {
    text: String,
    /// Whether it stood in quotes or backticks.
    quoted: bool,
    /// Whether a sentence or clause ends with it.
    ends: bool,
}

impl Word {
    fn is_one_of(&self, list: &str) -> bool {
        let text = self.text.to_lowercase();
        list.split_whitespace().any(|word| word == text)
    }
}

fn words(text: &str) -> Vec<Word> {
    const QUOTES: [char; 10] = ['"', '\'', '`', '“', '”', '«', '»', '‘', '’', '„'];
    const AROUND: [char; 13] = ['(', ')', '[', ']', '<', '>', '{', '}', ',', ';', ':', '!', '?'];
    let strip = |c: char| QUOTES.contains(&c) || AROUND.contains(&c) || matches!(c, '。' | '、' | '，' | '*');
    let each = text.split_whitespace().map(|raw| {
        let text = raw.trim_matches(strip).trim_end_matches('.').trim_matches(strip);
        let ends = raw.ends_with(['.', ',', ';', ':', '!', '?', '。']);
        Word { text: text.to_owned(), quoted: raw.contains(QUOTES), ends }
    });
    each.filter(|word| !word.text.is_empty()).collect()
}

/// Words that stand before the name of a file to be written, in a few languages.
const INTO: &str = "\
    into in to as called named file create write make save nach datei namens en dans fichier \
    archivo nel em arquivo в файл generate";

/// The word that names the file to be written, and the name.
fn file_word(words: &[Word]) -> Option<(usize, String)> {
    let mut best: Option<((bool, bool, bool), usize, &str)> = None;
    for (index, word) in words.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| words.get(before));
        let introduced = before.is_some_and(|before| before.is_one_of(INTO));
        // Languages without spaces write on directly after the name.
        let runs = word.text.split(|c: char| !c.is_ascii()).filter(|run| run.len() < word.text.len());
        let names = std::iter::once(word.text.as_str()).chain(runs);
        let hinted = introduced || word.quoted;
        let Some((name, known)) = names.filter_map(|name| Some((name, is_file_name(name, hinted)?))).next()
        else {
            continue;
        };
        let rank = (introduced, known, word.quoted);
        if best.is_none_or(|(best, ..)| rank > best) {
            best = Some((rank, index, name));
        }
    }
    best.map(|(_, index, name)| (index, name.to_owned()))
}

/// Whether a word is the name of a file, and if so whether its ending is a well-known one.
fn is_file_name(word: &str, hinted: bool) -> Option<bool> {
    const PRODUCTS: [&str; 9] =
        ["node.js", "vue.js", "next.js", "react.js", "three.js", "express.js", "d3.js", "nuxt.js", "asp.net"];
    let plain = |c: char| c.is_alphanumeric() || "._-/+".contains(c);
    let name = word.rsplit('/').next().unwrap_or(word);
    let lower = word.to_lowercase();
    if word.chars().count() > 120
        || !word.chars().all(plain)
        || word.split('/').any(|part| part == "..")
        || word.starts_with(['-', '+'])
        || PRODUCTS.contains(&lower.as_str())
        || lower.starts_with("www.")
    {
        return None;
    }
    if ["Makefile", "Dockerfile", "README", "LICENSE"].contains(&name) {
        return Some(true);
    }
    let (stem, ending) = name.rsplit_once('.')?;
    let is_ending = (1..=10).contains(&ending.len()) && ending.chars().all(|c| c.is_ascii_alphanumeric());
    let is_number = ending.chars().all(|c| c.is_ascii_digit());
    if stem.is_empty() || !is_ending || is_number || lower.contains("//") {
        return None;
    }
    let known = compose::is_known_ending(&ending.to_lowercase());
    // An unknown ending needs a word before it that speaks of a file, and more of a name than in `e.g.`.
    (known || (hinted && stem.chars().count() > 1)).then_some(known)
}

/// What the text is to be about: the words after `about`, up to the file or the end of the clause.
fn topic(words: &[Word], file: usize) -> Option<String> {
    const ABOUT: &str = "about on of über sobre sur su о об regarding describing";
    const BOUND: &str = "and with put";
    let about = ABOUT
        .split(' ')
        .find_map(|wanted| words.iter().position(|word| word.text.to_lowercase() == wanted))?;
    let mut topic: Vec<String> = Vec::new();
    for (index, word) in words.iter().enumerate().skip(about + 1).take(6) {
        if index == file || (!topic.is_empty() && (word.is_one_of(INTO) || word.is_one_of(BOUND))) {
            break;
        }
        topic.push(compose::harmless(&word.text));
        if word.ends {
            break;
        }
    }
    let topic = topic.join(" ").trim().to_owned();
    (!topic.is_empty()).then_some(topic)
}

fn topic_of_name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
    let topic = compose::harmless(&stem.replace(['-', '_', '+'], " "));
    let topic = topic.trim().to_owned();
    if topic.is_empty() { "nothing in particular".to_owned() } else { topic }
}

#[cfg(test)]
mod tests {
    use super::{Asked, FileTask, excerpt, read};
    use crate::tour::compose::Genre;

    fn file(prompt: &str) -> Option<(String, Genre, String)> {
        match read(prompt) {
            Asked::File(FileTask { path, kind, topic, .. }) => Some((path, kind, topic)),
            Asked::Repair | Asked::Anything => None,
        }
    }

    #[test]
    fn the_file_its_kind_and_its_topic_are_found() {
        let prompts = [
            ("Write a haiku about rivers into haiku.txt", "haiku.txt", Genre::Haiku, "rivers"),
            (
                "write a poem about the old sea in `notes/poem.md`.",
                "notes/poem.md",
                Genre::Poem,
                "the old sea",
            ),
            ("Create hello.py", "hello.py", Genre::Program, "hello"),
            ("Make a list of good books and save it as \"books.md\"", "books.md", Genre::List, "good books"),
            ("Read a.txt and write a summary to b.txt", "b.txt", Genre::Note, "b"),
            ("put the settings into config.json, please", "config.json", Genre::Data, "config"),
            ("Schreibe ein Gedicht über Flüsse nach gedicht.txt", "gedicht.txt", Genre::Poem, "Flüsse"),
            ("川についての俳句をhaiku.txtに書いて", "haiku.txt", Genre::Haiku, "haiku"),
            ("haiku.txt に川の俳句を書いて", "haiku.txt", Genre::Haiku, "haiku"),
            ("Напиши хайку о реках в файл стих.txt", "стих.txt", Genre::Haiku, "реках"),
            ("Generate page.html about cats!", "page.html", Genre::Page, "cats"),
            ("Write ./src/main.rs", "./src/main.rs", Genre::Program, "main"),
            (
                "Write a test for the parser into test_parser.py",
                "test_parser.py",
                Genre::Program,
                "test parser",
            ),
            ("write the plan into plan.v2", "plan.v2", Genre::Note, "plan"),
            ("create a Makefile", "Makefile", Genre::Note, "Makefile"),
        ];
        for (prompt, path, kind, topic) in prompts {
            assert_eq!(file(prompt), Some((path.to_owned(), kind, topic.to_owned())), "{prompt}");
        }
    }

    #[test]
    fn what_only_looks_like_a_file_is_none() {
        let prompts = [
            "Write about Node.js",
            "write to me@example.com",
            "Write a page like https://example.com/index.html",
            "Write, e.g. something",
            "Write version 1.2 of it",
            "Create ../escape.txt",
            "Create a/../../escape.txt",
            "Write '; rm -rf /'.txt",
            "Write --flag.txt",
            "explain main.rs",
            "fix the bug in app.py",
        ];
        for prompt in prompts {
            assert_eq!(file(prompt), None, "{prompt}");
        }
    }

    #[test]
    fn a_request_at_the_end_of_a_long_document_is_found() {
        let document = "int main() { open(\"other.txt\"); }\n".repeat(1000);
        let found = file(&format!("{document}\n\nWrite a summary into summary.md"));
        assert_eq!(found.map(|(path, ..)| path), Some("summary.md".to_owned()));
        let found = file(&format!("Write a summary into summary.md\n\n{document}\n\nThat is all."));
        assert_eq!(found.map(|(path, ..)| path), Some("summary.md".to_owned()));
    }

    #[test]
    fn names_are_quoted_for_the_shell_where_needed() {
        let quoted = |prompt: &str| match read(prompt) {
            Asked::File(task) => task.quoted_path(),
            other => panic!("{other:?}"),
        };
        assert_eq!(quoted("write a-b/d.txt"), "a-b/d.txt");
        assert_eq!(quoted("write стих.txt"), "'стих.txt'");
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt("a\n\tb \u{7}c"), "a b c");
        assert_eq!(excerpt(&"ü".repeat(100)), format!("{}…", "ü".repeat(60)));
    }

    proptest::proptest! {
        #[test]
        fn no_prompt_breaks_out(prompt in r#"(\PC|[ \n./'"`;$()~*?-]|write|into|\.txt|\.\./){0,60}"#) {
            if let Asked::File(task) = read(&prompt) {
                let inside = |part: &str| part != "..";
                proptest::prop_assert!(task.path.split('/').all(inside));
                proptest::prop_assert!(!task.path.starts_with('-'));
                proptest::prop_assert!(!task.path.contains(|c: char| c.is_whitespace() || "'\"`$;&|<>\\".contains(c)));
                proptest::prop_assert!(!task.content.is_empty());
            }
        }
    }
}
