//! `alhena detect`

use alhena_testbed::{Hostile, Script};
use insta::assert_snapshot;
use serde_json::json;

use crate::common::Desk;

#[test]
fn a_path_that_is_not_there_is_said() {
    assert_snapshot!(Desk::new().alhena(&["detect", "--gemini", "/nowhere/gemini"]), @r#"
    ---- stderr ----
    error: Gemini CLI was not found
      /nowhere/gemini does not exist
    hint: Give --gemini the path of a Gemini CLI that can be started, or leave it out to have one looked for.
    [exit 3]
    "#);
    let seen = Desk::new().alhena(&["detect", "--gemini", "/nowhere/gemini", "--json"]);
    assert_eq!((seen.code(), &seen.json()["found"]), (Some(3), &json!(false)));
}

#[test]
fn the_cli_on_the_path_is_found_with_its_version() {
    let hostile = Hostile::new(Script::normal()).unwrap();
    let mut desk = Desk::new();
    for (name, value) in hostile.env() {
        desk = desk.env(&name, value);
    }
    std::os::unix::fs::symlink(hostile.path(), desk.root().join("bin/gemini")).unwrap();
    assert_snapshot!(desk.alhena(&["detect"]), @r#"
    [DESK]/bin/gemini 0.61.0 (path)
    [exit 0]
    "#);
    let seen = desk.alhena(&["detect", "--json"]).json();
    assert_eq!([&seen["version"], &seen["place"]], [&json!("0.61.0"), &json!("path")]);
    let all = desk.alhena(&["detect", "--all", "--json"]).json();
    assert_eq!(all["found"][0]["path"], seen["path"]);
}

#[test]
fn a_program_that_is_no_gemini_cli_is_told_from_one() {
    let desk = Desk::new();
    let other = desk.program("gemini", "#!/bin/sh\necho 'GIMP 3.0'\n");
    assert_snapshot!(desk.alhena(&["detect", "--gemini", other.to_str().unwrap()]), @r#"
    ---- stderr ----
    error: Gemini CLI was not found
      [DESK]/bin/gemini does not tell its version: exit status: 0 (GIMP 3.0)
    hint: Give --gemini the path of a Gemini CLI that can be started, or leave it out to have one looked for.
    [exit 3]
    "#);
}

#[test]
fn a_useless_place_for_temporary_files_is_not_called_a_missing_cli() {
    let elsewhere = Desk::new();
    let file = elsewhere.write("file", "");
    let desk = Desk::new().env("TMPDIR", &file);
    let gemini = desk.program("gemini", "#!/bin/sh\necho 0.61.0\n");
    let gemini = gemini.to_str().unwrap();
    assert_eq!(desk.alhena(&["detect", "--gemini", gemini]).code(), Some(0));
    let seen = desk.alhena(&["run", "--gemini", gemini, "--as", "outcome", "hi"]);
    assert_eq!(seen.json()["failure"]["kind"], "config", "{seen}");
    assert!(seen.stderr.contains(file.to_str().unwrap()), "{seen}");
}
