//! `--cassette`: what is refused before anything starts.

use insta::assert_snapshot;

use crate::common::Desk;

#[test]
fn what_cannot_be_recorded_or_played_back_is_refused_before_the_start() {
    let desk = Desk::new();
    assert_snapshot!(desk.alhena(&["run", "--cassette", "talk.json", "hi"]), @r"
    ---- stderr ----
    error: recording needs a key, and GEMINI_API_KEY is not set
    hint: Set it; the key is not written into the cassette. Playing back needs none.
    [exit 2]
    ");
    assert_snapshot!(desk.alhena(&["run", "--cassette", "talk.json", "--cassette-mode", "replay", "hi"]), @r"
    ---- stderr ----
    error: talk.json: No such file or directory (os error 2)
    hint: Record it first: --cassette-mode record.
    [exit 2]
    ");
    desk.write("talk.json", "{\"turns\": []}");
    assert_snapshot!(desk.alhena(&["mock", "--cassette", "talk.json"]), @r"
    ---- stderr ----
    error: talk.json: not a cassette: unknown field `turns`, expected one of `cassette`, `upstream`, `interactions` at line 1 column 8
    hint: Give a file that --cassette has recorded.
    [exit 2]
    ");
    let both = desk.alhena(&["run", "--offline", "--cassette", "talk.json", "hi"]);
    assert!(both.code() == Some(2) && both.stderr.contains("cannot be used with"), "{both}");
    let both = desk.alhena(&["mock", "tour", "--cassette", "talk.json"]);
    assert!(both.code() == Some(2) && both.stderr.contains("cannot be used with"), "{both}");
}

#[test]
fn a_login_that_cannot_be_redirected_is_refused() {
    let with_key = || Desk::new().env("GEMINI_API_KEY", "some-key-of-somebody");
    let desk = with_key().env("GOOGLE_GENAI_USE_VERTEXAI", "true");
    let refused = desk.alhena(&["run", "--cassette", "talk.json", "hi"]);
    assert!(refused.stderr.contains("a sign-in by vertex-ai cannot be recorded"), "{refused}");
    assert_eq!(refused.code(), Some(2), "{refused}");

    let desk = with_key();
    desk.write(
        "../home/.gemini/settings.json",
        r#"{"security": {"auth": {"selectedType": "oauth-personal"}}}"#,
    );
    let refused = desk.alhena(&["mock", "--cassette", "talk.json"]);
    assert!(refused.stderr.contains("a sign-in by oauth-personal cannot be recorded"), "{refused}");
    assert!(!desk.work().join("talk.json").exists());

    // A folder that is trusted has a say in it, also when nothing is recorded.
    let desk = Desk::new();
    desk.write("talk.json", r#"{"cassette": 1, "upstream": "https://x", "interactions": []}"#);
    desk.write(".gemini/settings.json", r#"{"security": {"auth": {"selectedType": "vertex-ai"}}}"#);
    let refused = desk.alhena(&["run", "--trust=settings", "--cassette", "talk.json", "hi"]);
    assert!(refused.stderr.contains("the settings of this folder sign in by vertex-ai"), "{refused}");
    let not_found = desk.alhena(&["run", "--trust", "--cassette", "talk.json", "hi"]);
    assert_eq!(not_found.code(), Some(3), "{not_found}");

    let desk = with_key();
    let refused = desk.alhena(&["run", "--cassette", "missing/talk.json", "hi"]);
    assert!(
        refused.code() == Some(2) && refused.stderr.contains("missing/talk.json: No such file"),
        "{refused}"
    );
    let desk = with_key().env("GOOGLE_GEMINI_BASE_URL", "ftp://x");
    let refused = desk.alhena(&["run", "--cassette", "talk.json", "hi"]);
    assert!(refused.stderr.contains("ftp://x is no address of an API"), "{refused}");
}
