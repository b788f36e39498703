//! `alhena run --resume` with a session that is not there.

use alhena_testbed::Script;

use super::run::desk_with;
use super::sessions::with_session_of_nope;

#[test]
fn a_session_of_another_folder_is_told_with_that_folder() {
    let (desk, _hostile) = desk_with(Script::normal());
    with_session_of_nope(&desk);
    let seen = desk.alhena(&["run", "--trust", "--resume", "12345678", "go on"]);
    let hint = "hint: That is a session of another folder: run it there, with -C /nope";
    assert!(seen.stderr.contains(hint), "{seen}");
    assert_eq!(seen.code(), Some(2), "{seen}");
}

#[test]
fn a_session_that_nobody_has_is_told_with_where_the_ids_are() {
    let (desk, _hostile) = desk_with(Script::normal());
    let seen = desk.alhena(&["run", "--trust", "--resume", "zzzz", "go on"]);
    assert!(seen.stderr.contains("error: no session zzzz in the project"), "{seen}");
    assert!(seen.stderr.contains("hint: `alhena sessions list` shows those of this folder"), "{seen}");
    assert_eq!(seen.code(), Some(2), "{seen}");
    let outcome = desk.alhena(&["run", "--trust", "--resume", "zzzz", "--as", "outcome", "go on"]);
    assert_eq!((outcome.code(), &outcome.json()["failure"]["kind"]), (Some(2), &serde_json::json!("input")));
    let seen = desk.alhena(&["run", "--trust", "--resume=", "go on"]);
    assert!(
        seen.stderr.starts_with("error: --resume needs the id of a session, and it is empty\n"),
        "{seen}"
    );
    let seen = desk.alhena(&["run", "--trust", "--resume", "Explain"]);
    assert!(
        seen.stderr.starts_with(
            "error: the prompt is empty: \"Explain\" behind --resume was taken for the session\n"
        ),
        "{seen}"
    );
}

#[test]
fn a_session_that_nobody_has_fails_a_job_of_a_batch_before_anything_runs() {
    let (desk, hostile) = desk_with(Script::normal());
    desk.write(
        "jobs.jsonl",
        "{\"id\": \"a\", \"prompt\": \"go on\", \"resume\": \"zzzz\", \"trust\": true}\n",
    );
    let seen = desk.alhena(&["batch", "jobs.jsonl", "--into", "results.jsonl"]);
    assert_eq!(seen.code(), Some(1), "{seen}");
    let result = std::fs::read_to_string(desk.work().join("results.jsonl")).unwrap();
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    let failure = &result["outcome"]["failure"];
    assert_eq!(failure["kind"], "input", "{result}");
    let message = failure["message"].as_str().unwrap();
    assert!(message.starts_with("no session zzzz in the project"), "{result}");
    // It is no use to try again.
    assert_eq!(result["attempt"], 1, "{result}");
    let starts = hostile.starts().unwrap();
    assert!(starts.iter().all(|start| start.argv.contains(&"--version".to_owned())), "{starts:?}");
}
