//! The Python package `alhena`, and the types of all that is written in Python.

use std::process::Command;

use alhena::scripted::{Scenario, Turn};
use alhena_testbed::{cache, tools};
use serde_json::json;

use crate::place::Place;

fn scenarios() -> Vec<(&'static str, Scenario)> {
    let write = json!({"file_path": "b.txt", "content": "made\n"});
    vec![
        ("files", Scenario::new().turn(Turn::new().call("write_file", write)).turn(Turn::say("Done."))),
        ("blocked", Scenario::new().turn(Turn::new().finish("SAFETY").always())),
        ("hang", Scenario::new().turn(Turn::new().text("Thinking").hang().always())),
    ]
}

#[test]
fn the_python_package_keeps_its_contract() {
    let place = Place::new("python", scenarios());
    let done =
        place.run(&mut place.python("packages/python", &["-m", "unittest", "discover", "-s", "tests"]));
    let said = done.stderr_text();
    assert!(!said.contains("skipped"), "{said}");
    let asked = place.requests("files");
    assert_eq!(asked[0].prompt(), Some("- write\n- the file"));
    place.assert_nothing_left();
}

#[test]
fn all_python_has_strict_types() {
    let root = cache::workspace();
    for (package, parts) in [
        ("packages/python", &["src", "tests", "examples"][..]),
        ("hosts/aiwf", &["src", "tests/test_provider.py", "tests/in_engine.py", "example.py"]),
    ] {
        let path = [root.join(package).join("src"), root.join("packages/python/src")];
        let mut mypy = Command::new("python3");
        mypy.args(["-m", "mypy", "--strict", "--cache-dir=/dev/null"])
            .args(parts)
            .current_dir(root.join(package))
            .env("MYPYPATH", std::env::join_paths(path).unwrap())
            .env("PYTHONPATH", tools::python_tools().unwrap());
        let done = alhena_testbed::run_bounded(&mut mypy, std::time::Duration::from_secs(300)).unwrap();
        assert!(done.succeeded(), "{package}: {}{}", done.stdout_text(), done.stderr_text());
    }
}
