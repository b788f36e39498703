use super::*;
use crate::store::{Scope, Store};
use std::time::{Duration, SystemTime};

/// A store with recorded sessions in it, as old as they need to be.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn with(case: &str) -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        let chats = home.chats();
        fs::create_dir_all(&chats).unwrap();
        fs::write(chats.parent().unwrap().join(".project_root"), "/home/dev/work").unwrap();
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(case);
        for name in names_in(&from).unwrap() {
            fs::copy(from.join(&name), chats.join(&name)).unwrap();
        }
        home.age();
        home
    }

    fn chats(&self) -> PathBuf {
        self.dir.path().join(".gemini/tmp/work/chats")
    }

    fn age(&self) {
        for name in names_in(&self.chats()).unwrap() {
            let file = File::options().write(true).open(self.chats().join(name)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
        }
    }

    fn session(&self) -> Session {
        let mut all = Store::at(self.dir.path().join(".gemini")).list(&Scope::All).unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    fn repair(&self) -> Result<Vec<PathBuf>, NotRepaired> {
        apply(&plan(&self.session()).unwrap(), &self.dir.path().join("backups"), Caution::Full)
    }
}

// 06c_loss: a stub makes the CLI delete the session.
#[test]
fn a_stub_is_moved_away_and_the_session_stays_as_it_is() {
    let home = Home::with("0.61.0/stub");
    let session = home.session();
    assert_eq!(session.state(), SessionState::Endangered);
    let before = fs::read(&session.file.path).unwrap();
    let stub = home.chats().join("session-2026-11-15T20-45-cccccccc.jsonl");
    assert_eq!(plan(&session).unwrap().steps, [Step::MoveAway { path: stub.clone() }]);
    let stub_bytes = fs::read(&stub).unwrap();
    let kept = home.repair().unwrap();
    assert!(!stub.exists());
    assert_eq!(fs::read(&kept[0]).unwrap(), stub_bytes);
    assert_eq!(fs::read(&home.session().file.path).unwrap(), before);
    assert_eq!(home.session().state(), SessionState::Answered);
    assert_eq!(plan(&home.session()), None);
}

// Recorded with 0.61.0, and not yet with 0.44.0: ^C during a tool ends with a checkpoint that holds nothing.
#[test]
fn a_cancelled_conversation_comes_back() {
    assert_eq!(Home::with("0.44.0/cancelled").session().state(), SessionState::Open);
    let home = Home::with("0.61.0/cancelled");
    let session = home.session();
    assert_eq!((session.state(), session.survey.messages), (SessionState::Lost, 0));
    let before = fs::read(&session.file.path).unwrap();
    let kept = home.repair().unwrap();
    assert_eq!(fs::read(&kept[0]).unwrap(), before);
    let after = home.session();
    let title = after.survey.title.as_deref();
    assert_eq!((after.state(), after.survey.messages, title), (SessionState::Open, 2, Some("Wait a while")));
    assert!(fs::read(&after.file.path).unwrap().starts_with(&before));
}

// 07_acp_load_same_minute, E.5 (c): tool calls, thoughts and tokens of earlier messages are lost.
#[test]
fn a_resume_in_the_same_minute_gets_its_details_back() {
    let home = Home::with("0.61.0/resume_same_minute");
    let before = home.session();
    assert_eq!((before.state(), before.survey.lost), (SessionState::Lost, 2));
    home.repair().unwrap();
    let after = home.session();
    assert_eq!((after.state(), after.survey.messages), (SessionState::Answered, before.survey.messages));
    let transcript = Transcript::read(&after.file.path).unwrap();
    let session = transcript.session();
    let made = alhena_model::message::messages(&session.log, alhena_model::Include::Said);
    assert!(
        made.iter()
            .all(|message| message.role == alhena_model::message::Role::User || message.usage.is_some())
    );
}

// 12_acp_young_session_deleted: the file comes back without its header.
#[test]
fn a_file_without_a_header_gets_one() {
    let home = Home::with("0.61.0/plain");
    let path = home.session().file.path;
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.split_inclusive('\n').skip(2).collect::<String>()).unwrap();
    home.age();
    let session = home.session();
    assert_eq!((session.state(), session.id.as_str()), (SessionState::Headless, "3e9f236b"));
    home.repair().unwrap();
    let after = home.session();
    assert_eq!((after.state(), after.survey.messages), (SessionState::Answered, session.survey.messages));
    assert!(after.id.starts_with("3e9f236b-") && after.id.len() == 36, "{}", after.id);
    assert!(fs::read_to_string(&path).unwrap().contains(&project_hash(Path::new("/home/dev/work"))));
}

#[test]
fn the_whole_id_is_taken_from_what_else_there_is() {
    let home = Home::with("0.61.0/plain");
    let path = home.session().file.path;
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.split_inclusive('\n').skip(2).collect::<String>()).unwrap();
    fs::create_dir_all(
        home.chats().parent().unwrap().join("tool-outputs/session-3e9f236b-1111-4222-8333-444444444444"),
    )
    .unwrap();
    home.age();
    assert_eq!(whole_id(&home.session()), "3e9f236b-1111-4222-8333-444444444444");
}

#[test]
fn a_session_that_may_be_in_use_or_has_changed_is_left_alone() {
    let home = Home::with("0.61.0/cancelled");
    let planned = plan(&home.session()).unwrap();
    let backups = home.dir.path().join("backups");
    let path = home.session().file.path;
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text).unwrap();
    assert!(matches!(apply(&planned, &backups, Caution::Full), Err(NotRepaired::InUse(Use::Recent))));
    home.age();
    assert!(matches!(apply(&planned, &backups, Caution::Full), Err(NotRepaired::Changed)));
    assert_eq!(fs::read(&path).unwrap(), text);
    assert!(!backups.exists());
}

#[test]
fn what_is_well_needs_no_repair() {
    for case in ["0.61.0/tools", "0.61.0/plain", "0.61.0/slash", "0.38.2/cancelled", "0.30.1/tools"] {
        assert_eq!(plan(&Home::with(case).session()), None, "{case}");
    }
}

const HEADER: &str = r#"{"sessionId":"s-1","projectHash":"h"}"#;
const CONTEXT: &str =
    r#"{"$set":{"messages":[{"id":"c","type":"user","content":[{"text":"<session_context>"}]}]}}"#;
const PROMPT: &str = r#"{"id":"u","type":"user","content":[{"text":"hi"}]}"#;
const ANSWER: &str = r#"{"id":"g","type":"gemini","content":"","toolCalls":[{"id":"t","name":"x"}]}"#;

/// What undoing a stop makes of a log: what was done, and the ids of its conversation.
fn undone(lines: &[&str], since: usize) -> (bool, Vec<String>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(file.path(), text.concat()).unwrap();
    let since = text.iter().take(since).map(|line| line.len() as u64).sum();
    let undone = undo_stop(file.path(), since).unwrap();
    assert!(!undo_stop(file.path(), since).unwrap(), "it is done once");
    let transcript = Transcript::read(file.path()).unwrap();
    let log = transcript.session().log;
    (undone, log.messages().iter().map(|stored| stored.decode().id.unwrap().into_owned()).collect())
}

// As recorded with 0.61.0: ^C writes the checkpoint of the start once more.
#[test]
fn a_stop_that_rolled_the_conversation_back_is_undone() {
    let (done, ids) = undone(&[HEADER, CONTEXT, PROMPT, ANSWER, CONTEXT], 0);
    assert_eq!((done, ids), (true, vec!["c".into(), "u".into(), "g".into()]));
    let metadata = r#"{"$set":{"lastUpdated":"2026-01-01T00:00:00.000Z"}}"#;
    let (done, ids) = undone(&[HEADER, CONTEXT, PROMPT, CONTEXT, metadata, CONTEXT], 0);
    assert_eq!((done, ids), (true, vec!["c".into(), "u".into()]));
}

#[test]
fn what_a_person_took_back_a_summary_and_older_rollbacks_are_not_undone() {
    let rewind = r#"{"$rewindTo":"u"}"#;
    let summary = r#"{"$set":{"messages":[{"id":"new","type":"user","content":[{"text":"so far"}]}]}}"#;
    let next = r#"{"id":"u2","type":"user","content":[{"text":"again"}]}"#;
    for (lines, since, expected) in [
        (&[HEADER, CONTEXT][..], 0, &["c"][..]),
        (&[HEADER, CONTEXT, PROMPT, ANSWER], 0, &["c", "u", "g"]),
        (&[HEADER, CONTEXT, PROMPT, ANSWER, rewind], 0, &["c"]),
        (&[HEADER, CONTEXT, PROMPT, ANSWER, summary], 0, &["new"]),
        (&[HEADER, CONTEXT, PROMPT, CONTEXT, next], 0, &["c", "u2"]),
        (&[HEADER, CONTEXT, PROMPT, CONTEXT, rewind], 0, &[]),
        (&[HEADER, CONTEXT, PROMPT, CONTEXT], 4, &["c"]),
    ] {
        let (done, ids) = undone(lines, since);
        assert_eq!(
            (done, ids.as_slice()),
            (false, expected.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>().as_slice()),
            "{lines:#?}"
        );
    }
}
