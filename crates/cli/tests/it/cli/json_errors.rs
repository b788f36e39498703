//! What goes wrong, for those who asked for JSON

use insta::assert_snapshot;

use crate::common::Desk;

#[test]
fn every_command_that_prints_json_says_so_in_json() {
    let desk = Desk::new();
    desk.write("bad.json", "{");
    let commands: &[(&[&str], i32)] = &[
        (&["detect", "--gemini", "/nowhere/gemini"], 3),
        (&["capabilities", "--gemini", "/nowhere/gemini"], 3),
        (&["capabilities", "--version", "many"], 2),
        (&["doctor", "-C", "/nope"], 2),
        (&["install", "many"], 2),
        (&["sessions", "search", "!"], 2),
        (&["sessions", "usage", "--since", "soon"], 2),
        (&["sessions", "usage", "--prices", "bad.json"], 2),
        (&["sessions", "repair", "zzz"], 1),
        (&["sessions", "list", "--nonsense"], 2),
        (&["terminal", "status", "nobody"], 2),
    ];
    for (command, code) in commands {
        let seen = desk.alhena(&[*command, &["--json"]].concat());
        let error = &seen.json()["error"];
        assert!(error["message"].is_string() && error["hint"].is_string(), "{command:?}: {seen}");
        assert_eq!(seen.stderr, "", "{command:?}");
        assert!(seen.code().is_some_and(|seen| seen != 0), "{command:?}: {seen}");
        if command[0] != "terminal" {
            assert_eq!(seen.code(), Some(*code), "{command:?}: {seen}");
        }
    }
    assert_snapshot!(desk.alhena(&["doctor", "-C", "/nope", "--json"]), @r#"
    {
      "error": {
        "message": "`dir`: /nope is not a directory",
        "hint": "Give a directory that exists."
      }
    }
    [exit 2]
    "#);
}

#[test]
fn words_stay_words_without_json() {
    let seen = Desk::new().alhena(&["doctor", "-C", "/nope"]);
    assert_eq!((seen.stdout.as_str(), seen.stderr.starts_with("error: ")), ("", true));
}
