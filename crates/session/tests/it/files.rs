//! Whole files: sessions that the real CLI recorded, cut, growing, vanishing and huge.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use alhena_model::Include;
use alhena_model::message::{Block, Content, Message, Role};
use alhena_session::{Scope, Store, Transcript};
use proptest::prelude::*;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "json" || end == "jsonl") {
            found.push(path);
        }
    }
}

fn recorded() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files_below(&data(), &mut found);
    found.sort();
    found
}

/// The one session of a case.
fn session(release: &str, case: &str) -> Transcript {
    let mut found = Vec::new();
    files_below(&data().join(release).join(case), &mut found);
    assert_eq!(found.len(), 1, "{found:?}");
    Transcript::read(&found[0]).unwrap()
}

/// Who says what, in a few words.
fn outline(messages: &[Message<'_>]) -> Vec<String> {
    let block = |block: &Block<'_>| match block {
        Block::Thinking { .. } => "thinking".to_owned(),
        Block::ToolUse { name, .. } => name.to_string(),
        Block::ToolResult(result) if result.cancelled => "cancelled".to_owned(),
        Block::ToolResult(result) if result.is_error => "error".to_owned(),
        Block::ToolResult(_) => "result".to_owned(),
        Block::Image { .. } => "image".to_owned(),
        Block::Text { .. } => "text".to_owned(),
    };
    let line = |message: &Message<'_>| {
        let who = if message.role == Role::User { "user:" } else { "assistant:" };
        let blocks = match &message.content {
            Content::Text(text) => vec![format!("{text:?}")],
            Content::Blocks(blocks) => blocks.iter().map(block).collect(),
        };
        std::iter::once(who.to_owned()).chain(blocks).collect::<Vec<_>>().join(" ")
    };
    messages.iter().map(line).collect()
}

// B-43, B-62
#[test]
fn a_full_session_has_three_messages_of_which_the_second_reads_a_file() {
    let read = session("0.38.2", "plain");
    let messages = read.messages(Include::Said);
    assert_eq!(outline(&messages), ["user: text", "assistant: Read result", "assistant: text"]);
    let Block::ToolUse { input, .. } = &messages[1].content.blocks()[0] else { panic!("{messages:?}") };
    assert_eq!(input, &serde_json::json!({"file_path": "main.py"}));
}

#[test]
fn what_a_person_took_back_is_not_in_the_conversation_any_more() {
    let read = session("0.61.0", "rewind");
    assert!(read.bytes().windows(9).any(|bytes| bytes == b"$rewindTo"));
    let text = |message: &Message<'_>| match message.content.blocks() {
        [Block::Text { text }] => text.to_string(),
        other => panic!("{other:?}"),
    };
    let said: Vec<String> = read.messages(Include::Said).iter().map(text).collect();
    assert_eq!(said, ["first prompt", "First answer.", "second promptthird prompt", "Third answer."]);
    // It was taken back on purpose, so it is no loss that could be repaired.
    let history = read.history();
    assert_eq!((history.conversation.clone().into_messages().len(), history.dropped), (4, 0));
}

/// What the scripted model did in each of them is told in the README beside the files.
const SIX: &str = "\
plain
user: text
assistant: Read result
assistant: text

tools
user: text
assistant: thinking Read result text
assistant: thinking thinking Write result Edit result
assistant: Bash error Bash result
assistant: Glob result Glob result Grep result
assistant: Edit error no_such_tool error Read error
assistant: TodoWrite result WebSearch result
assistant: thinking text

fixtures
user: text
assistant: thinking Read result
assistant: thinking thinking Write result
assistant: thinking Edit result
assistant: thinking Bash error
assistant: thinking WebSearch result
assistant: thinking Glob result
assistant: thinking Read error
assistant: thinking Glob result
assistant: thinking thinking text

image
user: image text
assistant: Read result image
assistant: text

cancelled
user: text
assistant: Bash cancelled text

resume_later
user: text
assistant: thinking Read result
assistant: text
user: text
assistant: text
";

// B-60, B-63, B-64, B-65
#[test]
fn six_full_sessions_become_messages() {
    let of = |case: &str| outline(&session("0.38.2", case).messages(Include::Said)).join("\n");
    let cases = ["plain", "tools", "fixtures", "image", "cancelled", "resume_later"];
    let told: Vec<String> = cases.map(|case| format!("{case}\n{}\n", of(case))).to_vec();
    assert_eq!(told.join("\n"), SIX);
}

#[test]
fn every_release_that_was_recorded_tells_the_same_conversation() {
    // 0.30 puts turns without text into one message.
    let blocks = |release: &str, case: &str| {
        let said = outline(&session(release, case).messages(Include::Said)).join(" ");
        said.replace("assistant: ", "")
    };
    for case in ["plain", "tools", "slash"] {
        let expected = blocks("0.38.2", case);
        for release in ["0.30.1", "0.39.1", "0.44.0", "0.61.0"] {
            let told = blocks(release, case);
            assert_eq!(told, expected, "{case} {release}");
        }
    }
}

/// What a cut file may still say of a conversation: its first messages, the last of them perhaps in an earlier version.
fn assert_prefix(part: &[Message<'_>], whole: &[Message<'_>], what: &dyn std::fmt::Debug) {
    let ids = |list: &[Message<'_>]| list.iter().map(|message| message.id.to_string()).collect::<Vec<_>>();
    let (part_ids, whole_ids) = (ids(part), ids(whole));
    assert!(whole_ids.starts_with(&part_ids), "{what:?}: {part_ids:?} of {whole_ids:?}");
    let sure = part.len().saturating_sub(1);
    for (cut, full) in part[..sure].iter().zip(whole) {
        assert_eq!(cut.original.get(), full.original.get(), "{what:?}");
    }
}

#[test]
fn a_file_cut_at_any_byte_gives_a_prefix_of_the_whole() {
    // Those in which nothing is ever taken back.
    let plain = ["plain", "tools", "image", "slash", "denied", "fixtures"];
    let in_order = |path: &PathBuf| {
        let case = path.iter().rev().nth(1).unwrap().to_str().unwrap();
        plain.contains(&case)
            && ["0.38.2", "0.39.1", "0.61.0"].iter().any(|release| path.starts_with(data().join(release)))
    };
    for path in recorded().into_iter().filter(in_order) {
        let bytes = fs::read(&path).unwrap();
        let whole = Transcript::from_bytes(bytes.clone());
        let whole = whole.messages(Include::Said);
        // Every byte of small files and of the seams of large ones.
        let seams = memchr_all(&bytes, b'\n');
        let every = if bytes.len() < 2_500 { bytes.len() } else { 0 };
        let ends = (0..every).chain(seams.iter().flat_map(|at| *at..(at + 2).min(bytes.len())));
        let ends = ends.chain((0..bytes.len()).step_by(bytes.len() / 41 + 1));
        for end in ends {
            let part = Transcript::from_bytes(bytes[..end].to_vec());
            assert_prefix(&part.messages(Include::Said), &whole, &(&path, end));
        }
    }
}

fn memchr_all(bytes: &[u8], wanted: u8) -> Vec<usize> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == wanted).map(|(at, _)| at).collect()
}

/// A store with one project.
struct Place {
    home: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { home: tempfile::tempdir().unwrap() };
        fs::create_dir_all(place.chats()).unwrap();
        place
    }

    fn chats(&self) -> PathBuf {
        self.home.path().join(".gemini/tmp/project/chats")
    }

    fn store(&self) -> Store {
        Store::of_home(self.home.path()).with_cache(self.home.path().join("cache"))
    }

    fn file(&self, number: usize) -> PathBuf {
        self.chats().join(format!("session-2026-11-15T20-29-{number:08x}.jsonl"))
    }
}

#[test]
fn files_that_vanish_and_appear_while_they_are_listed_and_searched_are_no_errors() {
    let place = Place::new();
    let text = fs::read(data().join("0.61.0/plain/session-2026-11-15T20-29-3e9f236b.jsonl")).unwrap();
    let text = String::from_utf8(text).unwrap();
    let with_id = |number: usize| text.replace("3e9f236b", &format!("{number:08x}"));
    // These stay.
    for number in 0..20 {
        fs::write(place.file(number), with_id(number)).unwrap();
    }
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                let number = 100 + round % 40;
                match round / 40 % 2 {
                    0 => fs::write(place.file(number), with_id(number)).unwrap(),
                    _ => fs::remove_file(place.file(number)).unwrap(),
                }
                round += 1;
            }
        });
        let query = alhena_session::search::Query::new(["main"]).unwrap();
        for _ in 0..15 {
            let store = place.store();
            let listed = store.list(&Scope::All).unwrap();
            let stay = listed.iter().filter(|session| session.id.starts_with("000000")).count();
            assert!(stay >= 20, "{stay}");
            let found = store.search(&Scope::All, &query, 100).unwrap();
            assert!(found.total >= 20, "{}", found.total);
            for session in &listed {
                if let Ok(read) = Transcript::read(&session.file.path) {
                    assert!(read.messages(Include::Said).len() <= 3);
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_file_that_grows_while_it_is_read_gives_what_is_there() {
    let place = Place::new();
    let whole = fs::read(data().join("0.61.0/tools/session-2026-11-15T20-30-bb938a8d.jsonl")).unwrap();
    let expected = Transcript::from_bytes(whole.clone());
    let expected = expected.messages(Include::Said);
    let path = place.file(1);
    fs::write(&path, b"").unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = File::options().append(true).open(&path).unwrap();
            for piece in whole.chunks(97) {
                file.write_all(piece).unwrap();
                thread::yield_now();
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut buffer = Vec::new();
        let mut most = 0;
        loop {
            let last = done.load(Ordering::Relaxed);
            let read = Transcript::read_into(&path, buffer).unwrap();
            let messages = read.messages(Include::Said);
            assert_prefix(&messages, &expected, &"growing");
            assert!(messages.len() >= most);
            most = messages.len();
            if last {
                assert_eq!(messages, expected);
                break;
            }
            drop(messages);
            buffer = read.into_buffer();
        }
    });
}

#[test]
fn a_huge_session_is_listed_searched_and_read() {
    let place = Place::new();
    let path = place.file(7);
    let mut file = std::io::BufWriter::new(File::create(&path).unwrap());
    writeln!(
        file,
        r#"{{"sessionId":"00000007-0","projectHash":"p","startTime":"2026-11-15T20:29:00.000Z"}}"#
    )
    .unwrap();
    writeln!(file, r#"{{"id":"u","timestamp":"2026-11-15T20:29:00.000Z","type":"user","content":[{{"text":"Hello needle"}}]}}"#).unwrap();
    // One line of 60 MB, and 20,000 small ones.
    let output = "lorem ipsum ".repeat(5 << 20);
    writeln!(
        file,
        r#"{{"id":"g","timestamp":"2026-11-15T20:29:01.000Z","type":"gemini","content":"Big","toolCalls":[{{"id":"c","name":"read_file","args":{{}},"status":"success","result":[{{"functionResponse":{{"id":"c","name":"read_file","response":{{"output":"{output}"}}}}}}]}}]}}"#
    )
    .unwrap();
    for number in 0..20_000 {
        writeln!(file, r#"{{"id":"m{number}","timestamp":"2026-11-15T20:29:02.000Z","type":"gemini","content":"word {number}"}}"#).unwrap();
    }
    file.flush().unwrap();
    drop(file);
    let store = place.store();
    let listed = store.list(&Scope::All).unwrap();
    assert_eq!((listed.len(), listed[0].survey.messages), (1, 20_002));
    let query = alhena_session::search::Query::new(["needle"]).unwrap();
    let found = store.search(&Scope::All, &query, 10).unwrap();
    assert_eq!((found.total, found.hits[0].snippets[0].text.as_str()), (1, "Hello needle"));
    let read = Transcript::read(&path).unwrap();
    let messages = read.messages(Include::Said);
    assert_eq!(messages.len(), 20_002);
    let Block::ToolResult(result) = &messages[1].content.blocks()[1] else { panic!() };
    assert_eq!(result.content.len(), output.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_a_file_that_can_be_listed_shown_and_searched(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        text in "[{}\\[\\]\",:0-9a-z$\\\\\n ]{0,200}",
    ) {
        let place = Place::new();
        fs::write(place.file(1), &bytes).unwrap();
        fs::write(place.file(2), &text).unwrap();
        let store = place.store();
        for session in store.list(&Scope::All).unwrap() {
            let read = Transcript::read(&session.file.path).unwrap();
            serde_json::to_string(&read.messages(Include::Everything)).unwrap();
            serde_json::to_string(&read.history().conversation.into_messages()).unwrap();
        }
        let query = alhena_session::search::Query::new(["a"]).unwrap();
        store.search(&Scope::All, &query, 10).unwrap();
    }
}
