//! `alhena capabilities`

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
