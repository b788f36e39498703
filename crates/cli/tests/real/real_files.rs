//! Files that runs of the real CLI change: what the outcome says of each.

use crate::lab::{Build, Lab};
use alhena_agent::Approval;
use alhena_model::{Change, Outcome, Status};
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::versions;
use serde_json::{Value, json};

fn replace(file: &str, old: &str, new: &str) -> Turn {
    let input = json!({"file_path": file, "instruction": "i", "old_string": old, "new_string": new});
    Turn::new().call("replace", input)
}

fn write(file: &str, content: &str) -> Turn {
    Turn::new().call("write_file", json!({"file_path": file, "content": content}))
}

fn hunks(outcome: &Outcome, path: &str) -> String {
    let file = outcome.files.iter().find(|file| file.path.ends_with(path)).unwrap();
    let diff = file.diff.as_deref().unwrap();
    diff.get(diff.find("@@").unwrap_or(0)..).unwrap().to_owned()
}

#[test]
fn real_cli_the_diff_of_a_file_is_from_its_first_state_to_its_last() {
    let scenario = || {
        Scenario::new()
            .turn(replace("a.txt", "one", "1"))
            .turn(replace("a.txt", "three", "3"))
            // Fails: there is no such text.
            .turn(replace("a.txt", "nowhere", "x"))
            .turn(write("new.txt", "first\n"))
            .turn(write("new.txt", "first\nsecond\n"))
            .turn(Turn::say("Done."))
    };
    for version in versions() {
        let lab = Lab::real("edits", &version, scenario());
        std::fs::write(lab.workspace().join("a.txt"), "one\ntwo\nthree\n").unwrap();
        let outcome = lab.run(lab.request("go").approval(Approval::Yolo));
        assert_eq!(outcome.status, Status::Success, "{version} {:?}", outcome.failure);
        assert_eq!(hunks(&outcome, "a.txt"), "@@ -1,3 +1,3 @@\n-one\n+1\n two\n-three\n+3\n", "{version}");
        assert_eq!(hunks(&outcome, "new.txt"), "@@ -0,0 +1,2 @@\n+first\n+second\n", "{version}");
        let changes: Vec<Change> = outcome.files.iter().map(|file| file.change).collect();
        assert_eq!(changes, [Change::Modified, Change::Created], "{version}");
        let header = outcome.files[0].diff.as_deref().unwrap();
        assert!(header.contains("--- a.txt"), "{version} {header}");
    }
}

#[test]
fn real_cli_the_json_view_counts_as_the_cli_does() {
    let scenario = || {
        Scenario::new()
            .turn(replace("a.txt", "one", "1"))
            .turn(replace("a.txt", "1", "uno\neins"))
            .turn(Turn::say("Done."))
    };
    let lab = Lab::real("lines", "0.61.0", scenario());
    let fresh = || std::fs::write(lab.workspace().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    fresh();
    let model = ["--model", "gemini-2.5-flash"];
    let mut ours = lab.command(&["--as", "json", "--approval", "yolo", "go"]);
    let ours: Value = serde_json::from_slice(&ours.args(model).output().unwrap().stdout).unwrap();
    fresh();
    let url = lab.server.add("again", scenario());
    let mut theirs = std::process::Command::new(&lab.gemini.path);
    theirs.args(["--output-format", "json", "--yolo", "--prompt", "go"]).args(model);
    theirs.env_clear().envs(lab.env.iter()).current_dir(lab.workspace());
    let theirs = theirs.env("GOOGLE_GEMINI_BASE_URL", url).output().unwrap();
    let theirs: Value = serde_json::from_slice(&theirs.stdout).unwrap();
    assert_eq!(ours["stats"]["files"], theirs["stats"]["files"]);
    assert_eq!(ours["stats"]["files"], json!({"totalLinesAdded": 3, "totalLinesRemoved": 2}));
    assert_eq!(without_times(&ours["stats"]), without_times(&theirs["stats"]));
}

/// The same with every duration, which differs from run to run, as 0.
fn without_times(stats: &Value) -> Value {
    match stats {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| {
                let is_time = name.ends_with("Ms");
                assert!(!is_time || value.as_u64().is_some(), "{name}: {value}");
                (name.clone(), if is_time { json!(0) } else { without_times(value) })
            })
            .collect(),
        other => other.clone(),
    }
}

#[test]
fn real_cli_runs_at_the_same_time_do_not_take_each_others_files_for_theirs() {
    let shell = |command: &str| Turn::new().call("run_shell_command", json!({"command": command}));
    let wait_for = |file: &str| shell(&format!("until [ -e {file} ]; do sleep 0.1; done"));
    let one = Scenario::new()
        .turn(write("one.txt", "1\n"))
        .turn(wait_for("two.txt"))
        .turn(shell("echo 3 > three.txt"))
        .turn(wait_for("over"))
        .turn(Turn::say("Done."));
    let two = Scenario::new()
        .turn(wait_for("one.txt"))
        .turn(write("two.txt", "2\n"))
        .turn(wait_for("three.txt"))
        .turn(Turn::say("Done."));
    let lab = Lab::real("neighbours", "0.61.0", one);
    std::fs::write(lab.workspace().join(".gitignore"), "over\n").unwrap();
    let mut other = lab.env.clone();
    other.set("GOOGLE_GEMINI_BASE_URL", lab.server.add("other", two));
    let request = || lab.request("go").approval(Approval::Yolo);
    let longer = lab.start(request());
    let shorter = lab.gemini.start(request(), &other).unwrap().outcome_blocking();
    std::fs::write(lab.workspace().join("over"), "").unwrap();
    let longer = longer.outcome_blocking();
    let files = |outcome: &Outcome| {
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
        let said = outcome.warnings.iter().any(|warning| warning.contains("Another run worked"));
        assert!(said, "{:?}", outcome.warnings);
        let files = outcome.files.iter().filter(|file| !file.path.contains(".gitignore"));
        files.map(|file| (file.path.clone(), file.claimed, file.verified)).collect::<Vec<_>>()
    };
    // Nobody says who made the third: it changed during both.
    let file = |name: &str, claimed| (name.to_owned(), claimed, true);
    assert_eq!(files(&longer), [file("one.txt", true), file("three.txt", false)]);
    assert_eq!(files(&shorter), [file("two.txt", true), file("three.txt", false)]);
}
