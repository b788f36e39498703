use super::*;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn store(&self) -> Store {
        Store::at(self.dir.path().join(".gemini")).with_cache(self.dir.path().join("cache"))
    }

    fn chats(&self) -> PathBuf {
        let chats = self.dir.path().join(".gemini/tmp/app/chats");
        fs::create_dir_all(&chats).unwrap();
        chats
    }

    fn write(&self, id: &str, prompts: &[&str]) {
        let mut text = json!({"sessionId": id, "projectHash": "h", "startTime": "2026-11-15T18:07:00.000Z",
            "lastUpdated": "2026-11-15T18:07:00.000Z"})
        .to_string()
            + "\n";
        for (at, prompt) in prompts.iter().enumerate() {
            let record: Value = json!({"id": format!("{id}-{at}"), "timestamp": "2026-11-15T18:07:00.000Z", "type": "user",
                "content": [{"text": prompt}]});
            text += &format!("{record}\n");
        }
        fs::write(self.chats().join(format!("session-2026-11-15T18-07-{id}.jsonl")), text).unwrap();
    }

    fn ids(&self, words: &[&str]) -> Vec<String> {
        self.ids_in(&self.store(), words)
    }

    fn ids_in(&self, store: &Store, words: &[&str]) -> Vec<String> {
        let found = store.search(&Scope::All, &Query::new(words).unwrap(), 10).unwrap();
        assert_eq!(found.total, found.hits.len());
        found.hits.into_iter().map(|hit| hit.session.id).collect()
    }
}

#[test]
fn all_words_have_to_be_in_a_session_and_phrases_in_a_row() {
    let home = Home::new();
    home.write("aaaaaaaa", &["The quick brown fox", "jumps"]);
    home.write("bbbbbbbb", &["brown quick", "fox"]);
    home.write("cccccccc", &["nothing of that"]);
    let mut both = home.ids(&["quick", "FOX"]);
    both.sort();
    assert_eq!(both, ["aaaaaaaa", "bbbbbbbb"]);
    assert_eq!(home.ids(&["quick brown"]), ["aaaaaaaa"]);
    assert_eq!(home.ids(&["quick brown", "jumps"]), ["aaaaaaaa"]);
    assert_eq!(home.ids(&["brown fox jumps"]), [] as [&str; 0]);
    assert_eq!(home.ids(&["elephant"]), [] as [&str; 0]);
}

#[test]
fn the_better_session_comes_first_and_says_where() {
    let home = Home::new();
    home.write(
        "aaaaaaaa",
        &["lots of other words around one rust here and many more of them to make it long", "x"],
    );
    home.write("bbbbbbbb", &["rust rust", "rust"]);
    let found = home.store().search(&Scope::All, &Query::new(["rust"]).unwrap(), 10).unwrap();
    assert_eq!(
        found.hits.iter().map(|hit| hit.session.id.as_str()).collect::<Vec<_>>(),
        ["bbbbbbbb", "aaaaaaaa"]
    );
    assert_eq!(found.hits[0].messages, 2);
    let snippet = &found.hits[1].snippets[0];
    assert_eq!((snippet.message.as_str(), snippet.place), ("aaaaaaaa-0", MatchedIn::Prompt));
    assert_eq!(snippet.text.get(snippet.marks[0].clone()), Some("rust"));
}

#[test]
fn files_that_change_appear_and_vanish_are_found_as_they_are() {
    let home = Home::new();
    home.write("aaaaaaaa", &["apple"]);
    assert_eq!(home.ids(&["apple"]), ["aaaaaaaa"]);
    home.write("aaaaaaaa", &["apple", "pear"]);
    home.write("bbbbbbbb", &["plum"]);
    assert_eq!(home.ids(&["pear"]), ["aaaaaaaa"]);
    assert_eq!(home.ids(&["plum"]), ["bbbbbbbb"]);
    home.write("aaaaaaaa", &["cherry!"]);
    assert_eq!(home.ids(&["apple"]), [] as [&str; 0]);
    assert_eq!(home.ids(&["cherry"]), ["aaaaaaaa"]);
    fs::remove_file(home.chats().join("session-2026-11-15T18-07-bbbbbbbb.jsonl")).unwrap();
    assert_eq!(home.ids(&["plum"]), [] as [&str; 0]);
}

#[test]
fn no_place_of_its_own_is_needed() {
    let home = Home::new();
    home.write("aaaaaaaa", &["apple pie"]);
    let bare = Store::at(home.dir.path().join(".gemini"));
    assert_eq!(home.ids_in(&bare, &["apple pie"]), ["aaaaaaaa"]);
    let unwritable = bare.with_cache("/proc/nowhere");
    assert_eq!(home.ids_in(&unwritable, &["apple"]), ["aaaaaaaa"]);
    assert_eq!(home.ids_in(&unwritable, &["pear"]), [] as [&str; 0]);
}

#[test]
fn many_processes_at_once_find_the_same() {
    let home = Home::new();
    for n in 0..20 {
        home.write(&format!("{n:08}"), &["common", &format!("word{n}")]);
    }
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let found = home.store().search(&Scope::All, &Query::new(["common"]).unwrap(), 100).unwrap();
                assert_eq!(found.total, 20);
            });
        }
    });
}

#[test]
fn regular_expressions_are_looked_for_in_decoded_text() {
    let home = Home::new();
    home.write("aaaaaaaa", &["error: \"no such\nfile\" E0425", "E0001 again"]);
    home.write("bbbbbbbb", &["nothing"]);
    let regex = Regex::new(r#"E\d{4}|such\nfile""#).unwrap();
    let found = home.store().search_regex(&Scope::All, &regex, 10).unwrap();
    assert_eq!((found.total, found.hits[0].messages), (1, 2));
    assert_eq!(found.hits[0].snippets[0].text, "error: \"no such file\" E0425");
    assert_eq!(found.hits[0].snippets[0].marks.len(), 2);
}
