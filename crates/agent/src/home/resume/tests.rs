use alhena_session::resume;

use super::*;

#[test]
fn the_copy_has_the_name_of_another_minute() {
    let users = tempfile::tempdir().unwrap();
    let own = tempfile::tempdir().unwrap();
    let chats = users.path().join("chats");
    fs::create_dir_all(&chats).unwrap();
    let path = chats.join("session-2026-01-01T00-01-aaaaaaaa.jsonl");
    let header = r#"{"sessionId":"aaaaaaaa-1","projectHash":"h","startTime":"2026-01-01T00:01:00.000Z"}"#;
    fs::write(&path, format!("{header}\n{{\"id\":\"u\",\"type\":\"user\",\"content\":\"hi\"}}\n")).unwrap();
    fs::create_dir_all(users.path().join("aaaaaaaa-1/plans")).unwrap();
    fs::write(users.path().join("aaaaaaaa-1/plans/p.md"), "plan").unwrap();
    fs::create_dir_all(users.path().join("tool-outputs/session-aaaaaaaa-1")).unwrap();
    fs::write(users.path().join("tool-outputs/session-aaaaaaaa-1/out.txt"), "output").unwrap();

    let stored = resume::find(&[chats], &resume::Resume::Id("aaaaaaaa-1".to_owned())).unwrap().unwrap();
    let mut copied = Vec::new();
    let session = copy_in(&stored, users.path(), own.path(), &mut copied).unwrap();
    let expected = CopiedSession {
        id: "aaaaaaaa-1".into(),
        original: path.clone(),
        name: "session-2001-01-01T00-00-aaaaaaaa.jsonl".into(),
        fingerprint: Fingerprint::of(&path).unwrap().unwrap(),
    };
    assert_eq!(session, expected);
    let plan =
        CopiedFile { path: "aaaaaaaa-1/plans/p.md".into(), fingerprint: Fingerprint::of_bytes(b"plan") };
    assert_eq!(copied, [plan]);
    assert_eq!(fs::read(own.path().join("chats").join(expected.name)).unwrap(), fs::read(&path).unwrap());
    assert!(files::is_plain_file(&own.path().join("aaaaaaaa-1/plans/p.md")));
    let output = own.path().join("tool-outputs/session-aaaaaaaa-1/out.txt");
    assert_eq!(fs::read_link(output).unwrap(), users.path().join("tool-outputs/session-aaaaaaaa-1/out.txt"));
}
