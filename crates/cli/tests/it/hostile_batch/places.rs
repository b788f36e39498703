//! Places of their own, through the binary.

use alhena_testbed::Step;
use serde_json::json;

use super::{Desk, steps};

#[test]
fn a_job_with_a_copy_gives_a_patch_and_leaves_the_original_alone() {
    let desk = Desk::new("copy");
    desk.write("dir/old.txt", "old\n");
    let mut jobs = Vec::new();
    for number in 0..3 {
        let mut job = steps("makes a file", [Step::Touch(format!("made-{number}")), Step::Normal]);
        job["dir"] = json!("dir");
        job["copy"] = json!(true);
        job["approval"] = json!("yolo");
        job["trust"] = json!(true);
        job["outputs"] = json!(["made-*", "old.txt"]);
        jobs.push(job);
    }
    desk.jobs(&jobs);
    let done = desk.batch("jobs.jsonl", &["--jobs", "3"]);
    assert!(done.succeeded(), "{}", done.stderr_text());
    for result in desk.results() {
        assert_eq!(result["outputs"].as_array().map(Vec::len), Some(2), "{result}");
        assert_eq!(result["outputs"][1], json!({"path": "old.txt", "text": "old\n"}));
    }
    let mut made: Vec<String> =
        desk.results().iter().map(|result| result["patch"].as_str().unwrap().to_owned()).collect();
    made.sort();
    for (number, patch) in made.iter().enumerate() {
        assert!(
            patch.starts_with(&format!("diff --git a/made-{number} b/made-{number}\nnew file mode 100644\n")),
            "{patch}"
        );
        assert_eq!(patch.matches("diff --git").count(), 1, "{patch}");
    }
    let names: Vec<_> =
        std::fs::read_dir(desk.work().join("dir")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["old.txt"]);
    desk.nothing_is_left();
}

#[test]
fn without_git_jobs_with_places_are_refused_by_line_before_anything_runs() {
    let desk = Desk::new("no git");
    desk.jobs(&[json!({"prompt": "a"}), json!({"prompt": "b", "copy": true})]);
    let mut command = desk.command("jobs.jsonl", &[]);
    command.env("PATH", desk.work());
    let done = alhena_testbed::run_bounded(&mut command, super::LIMIT).unwrap();
    let said = done.stderr_text();
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("jobs.jsonl:2: there is no program git on PATH"), "{said}");
    assert!(desk.prompts().is_empty() && !desk.work().join("results.jsonl").exists());
}
