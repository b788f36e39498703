//! `-C` with a directory that is not there.

use crate::common::Desk;

const REFUSED: &str = "error: --dir: /nope is not a directory\nhint: Give a directory that exists.\n";

/// A session of a folder that is gone.
pub fn with_session_of_nope(desk: &Desk) {
    let project = desk.home().join(".gemini/tmp/gone");
    std::fs::create_dir_all(project.join("chats")).unwrap();
    std::fs::write(project.join(".project_root"), "/nope").unwrap();
    let header = r#"{"sessionId":"12345678-0000-4000-8000-000000000000","projectHash":"x","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","kind":"main"}"#;
    let said = r#"{"id":"m1","timestamp":"2026-01-01T00:00:01.000Z","type":"user","content":"Hello there"}"#;
    std::fs::write(
        project.join("chats/session-2026-01-01T00-00-12345678.jsonl"),
        format!("{header}\n{said}\n"),
    )
    .unwrap();
}

#[test]
fn a_directory_that_is_not_there_is_refused_by_every_command_with_the_same_words() {
    let desk = Desk::new();
    for command in [
        &["run", "-C", "/nope", "hello"][..],
        &["doctor", "-C", "/nope"],
        &["detect", "-C", "/nope"],
        &["sessions", "list", "-C", "/nope"],
        &["sessions", "show", "-C", "/nope"],
        &["sessions", "export", "--every", "-C", "/nope"],
        &["sessions", "repair", "-C", "/nope"],
        &["sessions", "follow", "-C", "/nope"],
        &["sessions", "search", "-C", "/nope", "word"],
        &["sessions", "usage", "-C", "/nope"],
    ] {
        let seen = desk.alhena(command);
        assert_eq!((seen.stderr.as_str(), seen.code()), (REFUSED, Some(2)), "{command:?}");
    }
}

#[test]
fn the_sessions_of_a_folder_that_is_gone_can_still_be_listed() {
    let desk = Desk::new();
    with_session_of_nope(&desk);
    let seen = desk.alhena(&["sessions", "list", "-C", "/nope"]);
    assert!(seen.stdout.contains("12345678") && seen.code() == Some(0), "{seen}");
}
