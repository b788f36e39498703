use alhena_sys::files::symlink;

use super::*;

const PROMPT: &str = r#"{"id":"u","type":"user","content":"hi"}"#;

fn header(id: &str) -> String {
    format!(r#"{{"sessionId":"{id}","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z"}}"#)
}

/// The overlay's project and the user's.
struct Pair {
    _dir: tempfile::TempDir,
    from: PathBuf,
    to: PathBuf,
}

impl Pair {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("overlay"), dir.path().join("user"));
        fs::create_dir_all(from.join("chats")).unwrap();
        fs::create_dir_all(to.join("chats")).unwrap();
        Self { from, to, _dir: dir }
    }

    fn publish(&self, resumed: Option<&CopiedSession>, copied: &[CopiedFile]) -> Published {
        self.publish_after(false, resumed, copied)
    }

    fn publish_after(
        &self,
        stopped: bool,
        resumed: Option<&CopiedSession>,
        copied: &[CopiedFile],
    ) -> Published {
        let mut done = Published::default();
        PrivateProject { from: &self.from, to: &self.to, resumed, copied, stopped }
            .publish(&mut done)
            .unwrap();
        done
    }

    fn users(&self, name: &str) -> PathBuf {
        self.to.join("chats").join(name)
    }

    /// Every file of the user's project with its content.
    fn content(&self) -> Vec<(String, String)> {
        fn walk(dir: &Path, prefix: &str, all: &mut Vec<(String, String)>) {
            for name in files::names_in(dir).unwrap() {
                let path = dir.join(&name);
                if path.is_dir() {
                    walk(&path, &format!("{prefix}{name}/"), all);
                } else {
                    all.push((format!("{prefix}{name}"), fs::read_to_string(path).unwrap()));
                }
            }
        }
        let mut all = Vec::new();
        walk(&self.to, "", &mut all);
        all
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

/// The id of the only session.
fn one() -> Vec<String> {
    vec!["aaaaaaaa-1".into()]
}

/// A session that was copied in, and then written to by the CLI, which also left its stub.
fn resumed(pair: &Pair, before: &str, after: &str) -> CopiedSession {
    let name = "session-2026-01-01T00-00-aaaaaaaa.jsonl";
    write(&pair.users(name), before);
    let copy = "session-2001-01-01T00-00-aaaaaaaa.jsonl";
    write(&pair.from.join("chats").join(copy), after);
    write(&pair.from.join("chats/session-2026-01-01T00-05-aaaaaaaa.jsonl"), &header("aaaaaaaa-1"));
    CopiedSession {
        id: "aaaaaaaa-1".into(),
        original: pair.users(name),
        name: copy.into(),
        fingerprint: Fingerprint::of_bytes(before.as_bytes()),
    }
}

#[test]
fn a_new_session_goes_to_the_users_store_with_all_that_belongs_to_it() {
    let pair = Pair::new();
    let session = format!("{}\n{PROMPT}\n", header("aaaaaaaa-1"));
    let name = "session-2026-01-01T00-00-aaaaaaaa.jsonl";
    write(&pair.from.join("chats").join(name), &session);
    write(&pair.from.join("chats/aaaaaaaa-1/sub-1.jsonl"), "sub");
    write(&pair.from.join("tool-outputs/session-aaaaaaaa-1/t.txt"), "output");
    write(&pair.from.join("tool-outputs/session-sub-1/t.txt"), "sub output");
    write(&pair.from.join("tool-outputs/session-stranger/t.txt"), "not kept");
    write(&pair.from.join("aaaaaaaa-1/plans/p.md"), "plan");
    write(&pair.from.join("logs/session-aaaaaaaa-1.jsonl"), "log");
    write(&pair.from.join("memory/MEMORY.md"), "memory");
    write(&pair.from.join("checkpoint-tag.json"), "saved");
    write(&pair.from.join("logs.json"), "not kept");
    write(&pair.from.join("shell_history"), "not kept");
    write(&pair.from.join("checkpoints/c.json"), "not kept");
    let done = pair.publish(None, &[]);
    assert_eq!(
        done,
        Published { published: vec![pair.users(name)], sessions: one(), ..Published::default() }
    );
    let expected = [
        ("aaaaaaaa-1/plans/p.md", "plan"),
        ("chats/aaaaaaaa-1/sub-1.jsonl", "sub"),
        ("chats/session-2026-01-01T00-00-aaaaaaaa.jsonl", session.as_str()),
        ("checkpoint-tag.json", "saved"),
        ("logs/session-aaaaaaaa-1.jsonl", "log"),
        ("memory/MEMORY.md", "memory"),
        ("tool-outputs/session-aaaaaaaa-1/t.txt", "output"),
        ("tool-outputs/session-sub-1/t.txt", "sub output"),
    ];
    assert_eq!(pair.content(), pairs(expected));
    // Again, as after a crash: nothing is left to do.
    assert_eq!(pair.publish(None, &[]), Published::default());
    assert_eq!(pair.content(), pairs(expected));
}

#[test]
fn a_session_without_a_conversation_is_not_kept() {
    let pair = Pair::new();
    write(&pair.from.join("chats/session-2026-01-01T00-00-aaaaaaaa.jsonl"), &header("aaaaaaaa-1"));
    write(&pair.from.join("chats/aaaaaaaa-1/sub-1.jsonl"), "sub");
    write(&pair.from.join("tool-outputs/session-aaaaaaaa-1/t.txt"), "output");
    assert_eq!(pair.publish(None, &[]), Published::default());
    assert_eq!(pair.content(), []);
}

#[test]
fn a_damaged_session_is_a_warning() {
    let pair = Pair::new();
    write(&pair.from.join("chats/session-x.jsonl"), "\u{0}");
    let warnings = vec!["The session file session-x.jsonl is damaged and was not kept".to_owned()];
    assert_eq!(pair.publish(None, &[]), Published { warnings, ..Published::default() });
}

#[test]
fn a_continued_session_replaces_its_original_without_the_stub() {
    let pair = Pair::new();
    let before = format!("{}\n{PROMPT}\n", header("aaaaaaaa-1"));
    let after = format!("{before}{{\"id\":\"g\",\"type\":\"gemini\",\"content\":\"yes\"}}\n");
    let session = resumed(&pair, &before, &after);
    let done = pair.publish(Some(&session), &[]);
    assert_eq!(
        done,
        Published { published: vec![session.original.clone()], sessions: one(), ..Published::default() }
    );
    assert_eq!(pair.content(), pairs([("chats/session-2026-01-01T00-00-aaaaaaaa.jsonl", after.as_str())]));
}

#[test]
fn a_continued_session_that_did_not_change_is_left_alone() {
    let pair = Pair::new();
    let text = format!("{}\n{PROMPT}\n", header("aaaaaaaa-1"));
    let session = resumed(&pair, &text, &text);
    assert_eq!(pair.publish(Some(&session), &[]), Published { sessions: one(), ..Published::default() });
    assert_eq!(pair.content(), pairs([("chats/session-2026-01-01T00-00-aaaaaaaa.jsonl", text.as_str())]));
}

#[test]
fn if_the_original_changed_meanwhile_both_are_kept() {
    let pair = Pair::new();
    let before = format!("{}\n{PROMPT}\n", header("aaaaaaaa-1"));
    let after = format!("{before}{{\"id\":\"ours\",\"type\":\"user\",\"content\":\"ours\"}}\n");
    let session = resumed(&pair, &before, &after);
    let theirs = format!("{before}{{\"id\":\"theirs\",\"type\":\"user\",\"content\":\"theirs\"}}\n");
    write(&session.original, &theirs);
    write(&pair.users("session-2026-01-01T00-01-aaaaaaaa.jsonl"), "in the way");
    let ours = pair.users("session-2026-01-01T00-02-aaaaaaaa.jsonl");
    let expected = Published {
        published: vec![ours.clone()],
        sessions: one(),
        warnings: vec![format!(
            "The session aaaaaaaa-1 was changed by another program during the run; both versions are kept: {} and {}",
            session.original.display(),
            ours.display()
        )],
        kept_both: vec![KeptBoth { theirs: session.original.clone(), ours }],
    };
    assert_eq!(pair.publish(Some(&session), &[]), expected);
    assert_eq!(
        pair.content(),
        pairs([
            ("chats/session-2026-01-01T00-00-aaaaaaaa.jsonl", theirs.as_str()),
            ("chats/session-2026-01-01T00-01-aaaaaaaa.jsonl", "in the way"),
            ("chats/session-2026-01-01T00-02-aaaaaaaa.jsonl", after.as_str()),
        ])
    );
}

#[test]
fn runs_that_end_at_the_same_instant_with_one_session_are_all_kept() {
    let before = format!("{}\n{PROMPT}\n", header("aaaaaaaa-1"));
    for _ in 0..30 {
        let pairs: Vec<Pair> = (0..4).map(|_| Pair::new()).collect();
        let store = pairs[0].to.clone();
        let starts = std::sync::Barrier::new(pairs.len());
        std::thread::scope(|scope| {
            for (number, pair) in pairs.iter().enumerate() {
                let after = format!("{before}{}\n", PROMPT.replace("hi", &format!("version {number}")));
                let mut copied = resumed(pair, &before, &after);
                copied.original = store.join("chats/session-2026-01-01T00-00-aaaaaaaa.jsonl");
                let (store, starts) = (&store, &starts);
                scope.spawn(move || {
                    starts.wait();
                    let project = PrivateProject {
                        from: &pair.from,
                        to: store,
                        resumed: Some(&copied),
                        copied: &[],
                        stopped: false,
                    };
                    project.publish(&mut Published::default()).unwrap();
                });
            }
        });
        let kept: String = pairs[0].content().into_iter().map(|(_, text)| text).collect();
        for number in 0..pairs.len() {
            assert!(kept.contains(&format!("version {number}")), "version {number} is lost: {kept}");
        }
    }
}

#[test]
fn a_session_that_the_cli_deleted_stays_as_it_was() {
    let pair = Pair::new();
    let before = format!("{}\n{PROMPT}\n", header("aaaaaaaa-1"));
    let session = resumed(&pair, &before, &before);
    fs::remove_dir_all(pair.from.join("chats")).unwrap();
    let warnings =
        vec!["The CLI deleted the session aaaaaaaa-1 in this run; it was left as it was".to_owned()];
    let done = pair.publish(Some(&session), &[]);
    assert_eq!(done, Published { warnings, sessions: one(), ..Published::default() });
    assert_eq!(fs::read_to_string(&session.original).unwrap(), before);
}

#[test]
fn an_original_that_was_deleted_meanwhile_comes_back() {
    let pair = Pair::new();
    let before = format!("{}\n{PROMPT}\n", header("aaaaaaaa-1"));
    let session = resumed(&pair, &before, &before);
    fs::remove_file(&session.original).unwrap();
    let done = pair.publish(Some(&session), &[]);
    assert_eq!(
        done,
        Published { published: vec![session.original.clone()], sessions: one(), ..Published::default() }
    );
}

#[test]
fn a_session_of_an_older_release_is_continued_beside_its_original() {
    let pair = Pair::new();
    let old = format!("{{\n{},\"messages\":[{PROMPT}]}}", header("aaaaaaaa-1").trim_matches(['{', '}']));
    let original = pair.users("session-2026-01-01T00-00-aaaaaaaa.json");
    write(&original, &old);
    write(&pair.from.join("chats/session-2001-01-01T00-00-aaaaaaaa.json"), &old);
    let new = format!("{}\n{PROMPT}\n", header("aaaaaaaa-1"));
    write(&pair.from.join("chats/session-2001-01-01T00-00-aaaaaaaa.jsonl"), &new);
    let session = CopiedSession {
        id: "aaaaaaaa-1".into(),
        original: original.clone(),
        name: "session-2001-01-01T00-00-aaaaaaaa.json".into(),
        fingerprint: Fingerprint::of_bytes(old.as_bytes()),
    };
    let done = pair.publish(Some(&session), &[]);
    assert_eq!(
        done,
        Published {
            published: vec![original.with_extension("jsonl")],
            sessions: one(),
            ..Published::default()
        }
    );
    assert_eq!(
        pair.content(),
        pairs([
            ("chats/session-2026-01-01T00-00-aaaaaaaa.json", old.as_str()),
            ("chats/session-2026-01-01T00-00-aaaaaaaa.jsonl", new.as_str()),
        ])
    );
}

#[test]
fn two_sessions_that_share_a_name_are_both_kept() {
    let pair = Pair::new();
    let name = "session-2026-12-31T23-59-aaaaaaaa.jsonl";
    write(&pair.users(name), "theirs");
    write(&pair.from.join("chats").join(name), &format!("{}\n{PROMPT}\n", header("aaaaaaaa-1")));
    let done = pair.publish(None, &[]);
    assert_eq!(done.published, [pair.users("session-2027-01-01T00-00-aaaaaaaa.jsonl")]);
    assert_eq!(fs::read_to_string(pair.users(name)).unwrap(), "theirs");
}

#[test]
fn plans_and_memories_replace_what_they_were_made_from_and_nothing_else() {
    let pair = Pair::new();
    let copied: Vec<CopiedFile> = ["same.md", "ours.md", "both.md", "theirs.md"]
        .map(|name| Path::new("memory").join(name))
        .map(|path| CopiedFile { path, fingerprint: Fingerprint::of_bytes(b"old") })
        .into();
    for (name, ours, theirs) in [
        ("same", "old", "old"),
        ("ours", "ours", "old"),
        ("both", "ours", "theirs"),
        ("theirs", "old", "theirs"),
    ] {
        write(&pair.from.join(format!("memory/{name}.md")), ours);
        write(&pair.to.join(format!("memory/{name}.md")), theirs);
    }
    symlink(pair.to.join("memory/same.md"), pair.from.join("memory/link.md")).unwrap();
    let done = pair.publish(None, &copied);
    let memory = pair.to.join("memory");
    let (theirs, ours) = (memory.join("both.md"), memory.join("both-1.md"));
    let warning = format!("{} changed during the run; its version is {}", theirs.display(), ours.display());
    assert_eq!(done, Published { warnings: vec![warning], ..Published::default() });
    assert_eq!(
        pair.content(),
        pairs([
            ("memory/both-1.md", "ours"),
            ("memory/both.md", "theirs"),
            ("memory/ours.md", "ours"),
            ("memory/same.md", "old"),
            ("memory/theirs.md", "theirs"),
        ])
    );
}

const CONTEXT: &str = r#"{"$set":{"messages":[{"id":"c","type":"user","content":"<session_context>"}]}}"#;

// As 0.61.0 leaves it after ^C.
#[test]
fn what_the_cli_took_back_when_it_was_stopped_is_brought_back_and_only_then() {
    let name = "session-2026-01-01T00-00-aaaaaaaa.jsonl";
    let text = format!("{}\n{CONTEXT}\n{PROMPT}\n{CONTEXT}\n", header("aaaaaaaa-1"));
    for (stopped, kept) in [(true, true), (false, false)] {
        let pair = Pair::new();
        write(&pair.from.join("chats").join(name), &text);
        let done = pair.publish_after(stopped, None, &[]);
        assert_eq!(done.sessions, if kept { one() } else { Vec::new() }, "{stopped:?}");
        if kept {
            let published = fs::read_to_string(pair.users(name)).unwrap();
            assert!(published.starts_with(&text), "{published}");
            assert!(published.contains(r#""messages":[{"id":"c""#), "{published}");
            assert!(survey_at(&pair.users(name)).unwrap().has_conversation());
        }
    }
}

#[test]
fn what_was_taken_back_before_the_run_stays_taken_back() {
    let pair = Pair::new();
    let before = format!("{}\n{CONTEXT}\n{PROMPT}\n{CONTEXT}\n", header("aaaaaaaa-1"));
    let session = resumed(&pair, &before, &before);
    assert_eq!(pair.publish_after(true, Some(&session), &[]), Published::default());
    assert_eq!(fs::read_to_string(&session.original).unwrap(), before);
}
