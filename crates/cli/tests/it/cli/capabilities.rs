//! `alhena capabilities`

use insta::assert_snapshot;
use serde_json::json;

use crate::common::Desk;

#[test]
fn a_version_can_be_asked_for_without_having_it() {
    let desk = Desk::new();
    let seen = desk.alhena(&["capabilities", "--version", "0.38.2"]);
    assert_eq!(seen.code(), Some(0));
    let (yes, no): (Vec<&str>, Vec<&str>) = seen
        .stdout
        .lines()
        .filter(|line| line.starts_with("  yes  ") || line.starts_with("  no   "))
        .partition(|line| line.starts_with("  yes"));
    assert!(yes.iter().any(|line| line.contains("policy")), "{seen}");
    assert!(no.iter().any(|line| line.contains("jsonl-sessions")), "{seen}");
    assert!(no.iter().any(|line| line.contains("skip-trust")), "{seen}");
    let json = desk.alhena(&["capabilities", "--version", "0.38.2", "--json"]).json();
    let features = json["features"].as_object().unwrap();
    assert_eq!(json["version"], json!("0.38.2"));
    assert_eq!(features.values().filter(|has| **has == json!(true)).count(), yes.len());
    assert_eq!(features.len(), yes.len() + no.len());
}

#[test]
fn what_is_no_version_is_refused() {
    assert_snapshot!(Desk::new().alhena(&["capabilities", "--version", "newest"]), @r#"
    ---- stderr ----
    error: "newest" is no version
    hint: Write it as 0.61.0.
    [exit 2]
    "#);
}

#[test]
fn without_a_cli_the_exit_code_says_so() {
    assert_snapshot!(Desk::new().alhena(&["capabilities", "--gemini", "/nowhere/gemini"]), @r#"
    ---- stderr ----
    error: Gemini CLI was not found
      /nowhere/gemini does not exist
    hint: Give --gemini the path of a Gemini CLI that can be started, or leave it out to have one looked for.
    [exit 3]
    "#);
}
