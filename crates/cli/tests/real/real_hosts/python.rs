//! The Python package `alhena`, and the types of all that is written in Python.

use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::{python, run_bounded};
use serde_json::json;

use super::place::{Place, conversation, failing_tools};

fn scenarios() -> Vec<(&'static str, Scenario)> {
    let write = json!({"file_path": "b.txt", "content": "made\n"});
    vec![
        ("files", Scenario::new().turn(Turn::new().call("write_file", write)).turn(Turn::say("Done."))),
        ("blocked", Scenario::new().turn(Turn::new().finish("SAFETY").always())),
        ("failing", failing_tools()),
        ("talk", conversation()),
        ("alone", conversation()),
        ("hang", Scenario::new().turn(Turn::new().text("Thinking").hang().always())),
    ]
}

#[test]
fn the_python_package_keeps_its_contract() {
    let place = Place::new("python", scenarios());
    let done = place
        .run(&mut place.python("packages/python", &["-m", "unittest", "discover", "-s", "tests", "-t", "."]));
    let said = done.stderr_text();
    assert!(!said.contains("skipped"), "{said}");
    let asked = place.requests("files");
    assert_eq!(asked[0].prompt(), Some("- write\n- the file"));
    place.assert_nothing_left();
}

#[test]
fn all_python_has_strict_types() {
    for package in [python::ALHENA, python::AIWF, python::CAO] {
        let scratch = tempfile::tempdir().unwrap();
        let mut mypy = package.strict_types(scratch.path()).unwrap();
        let done = run_bounded(&mut mypy, Duration::from_secs(300)).unwrap();
        assert!(done.succeeded(), "{package:?}: {}{}", done.stdout_text(), done.stderr_text());
    }
}
