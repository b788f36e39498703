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
    error: --cassette: talk.json: No such file or directory (os error 2)
    hint: Record it first: --cassette-mode record.
    [exit 2]
    ");
    desk.write("talk.json", "{\"turns\": []}");
    assert_snapshot!(desk.alhena(&["mock", "--cassette", "talk.json"]), @r"
    ---- stderr ----
    error: --cassette: talk.json: not a cassette: unknown field `turns`, expected one of `cassette`, `upstream`, `client`, `incomplete`, `interactions` at line 1 column 8
    hint: Give a file that --cassette has recorded, or the name of a new one: nothing else is replaced.
    [exit 2]
    ");
    for command in [&["run", "hi"][..], &["mock"]] {
        let over =
            desk.alhena(&[command, &["--cassette", "talk.json", "--cassette-mode", "record"]].concat());
        assert!(over.code() == Some(2) && over.stderr.contains("talk.json: not a cassette"), "{over}");
    }
    assert_eq!(std::fs::read_to_string(desk.work().join("talk.json")).unwrap(), "{\"turns\": []}");
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

/// A cassette whose only turn the API refused.
const FAILED: &str = r#"{"cassette": 1, "upstream": "https://x", "interactions": [{
    "request": {"method": "POST", "path": "/v1beta/models/m:streamGenerateContent?alt=sse", "body": {}},
    "response": {"status": 429, "headers": {"content-type": "application/json"},
        "json": {"error": {"code": 429, "message": "Quota exceeded.\nPlease wait", "status": "RESOURCE_EXHAUSTED"}}}}]}"#;

#[test]
fn what_ended_with_an_error_of_the_api_is_recorded_anew_unless_it_is_to_be_played_back() {
    let desk = Desk::new();
    desk.write("talk.json", FAILED);
    assert_snapshot!(desk.alhena(&["run", "--cassette", "talk.json", "hi"]), @r"
    ---- stderr ----
    error: talk.json ends with an error of the API (429 Quota exceeded.); to record it anew, recording needs a key, and GEMINI_API_KEY is not set
    hint: Set it; the key is not written into the cassette. Playing back needs none. --cassette-mode replay plays the error back.
    [exit 2]
    ");
    let with_env = desk.alhena(&["mock", "--env", "--cassette", "talk.json"]);
    assert!(with_env.stderr.contains("talk.json ends with an error of the API"), "{with_env}");
    assert_eq!(std::fs::read_to_string(desk.work().join("talk.json")).unwrap(), FAILED);
}

#[test]
fn what_is_no_cassette_is_refused_and_left_alone() {
    let desk = Desk::new().env("GEMINI_API_KEY", "some-key-of-somebody-0");
    let good = FAILED.replace("429", "200");
    let refused = |args: &[&str], why: &str| {
        for command in [&["run"][..], &["mock"], &["mock", "--env"]] {
            let rest = if command == ["run"] { &["hi"][..] } else { &[] };
            let seen = desk.alhena(&[command, &["--cassette"], args, rest].concat());
            assert!(
                matches!(seen.code(), Some(1 | 2)) && seen.stderr.contains(why),
                "{command:?} {args:?}: {seen}"
            );
            assert!(seen.stderr.contains("hint: "), "{seen}");
        }
    };
    std::fs::create_dir(desk.work().join("dir")).unwrap();
    for mode in ["auto", "replay", "record"] {
        refused(&["dir", "--cassette-mode", mode], "dir: it is not a regular file");
        refused(&["/dev/null", "--cassette-mode", mode], "/dev/null: it is not a regular file");
    }
    for (text, why) in [
        (good.get(..200).unwrap(), "not a cassette: EOF while parsing"),
        ("", "not a cassette: EOF while parsing"),
        (&good.replace("\"cassette\": 1", "\"cassette\": 7"), "it has the form 7, and this release knows 1"),
        (&good.replace("\"upstream\"", "\"upstraem\""), "unknown field `upstraem`"),
        (&good.replace("200,", "\"200\","), "invalid type: string \"200\", expected u16"),
        (&good.replace("\"json\":", "\"jsno\":"), "talk.json: not a cassette: "),
    ] {
        desk.write("talk.json", text);
        refused(&["talk.json"], why);
        refused(&["talk.json", "--cassette-mode", "replay"], why);
        assert_eq!(std::fs::read_to_string(desk.work().join("talk.json")).unwrap(), text);
    }
    // It is not read for that.
    desk.write("talk.json", &good);
    let file = std::fs::File::options().write(true).open(desk.work().join("talk.json")).unwrap();
    file.set_len(100 << 30).unwrap();
    refused(&["talk.json"], "not a cassette: it is larger than 64 MB");
    desk.write("talk.json", [0xff, 0xfe, 0x00]);
    refused(&["talk.json"], "not a cassette");
}
