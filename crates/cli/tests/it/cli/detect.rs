//! `alhena detect`

use alhena_testbed::Script;
use insta::assert_snapshot;
use serde_json::json;

use super::run::desk_with;
use crate::common::Desk;

#[test]
fn the_cli_on_the_path_is_found_with_its_version() {
    let (desk, _hostile) = desk_with(Script::normal());
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
