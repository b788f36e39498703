//! Where jobs come from, and what is done again.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use alhena_testbed::script::Ending;
use alhena_testbed::{Deadline, Step};
use serde_json::json;

use super::{Desk, steps};

#[test]
fn jobs_on_stdin_are_done_while_it_is_still_being_written() {
    let desk = Desk::new("stdin");
    let mut command = desk.command("-", &["--quiet"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for count in 1..=3 {
        writeln!(stdin, "{}", json!({"id": format!("job {count}"), "prompt": format!("number {count}")}))
            .unwrap();
        let deadline = Deadline::after(Duration::from_secs(60));
        assert!(deadline.wait_until(|| desk.results().len() == count), "{:?}", desk.results());
    }
    writeln!(stdin, "{{\"prompt\": \"four\", \"modle\": \"x\"}}\n{{broken").unwrap();
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let statuses: Vec<(String, String)> = desk.statuses().into_iter().collect();
    let expected = [
        ("4", "failed"),
        ("job 1", "success"),
        ("job 2", "success"),
        ("job 3", "success"),
        ("line 5", "failed"),
    ];
    assert_eq!(statuses, expected.map(|(id, status)| (id.to_owned(), status.to_owned())));
    assert_eq!(desk.prompts(), ["number 1", "number 2", "number 3"]);
    desk.nothing_is_left();
}

#[test]
fn tables_templates_and_defaults_make_jobs() {
    let desk = Desk::new("table");
    desk.write("files.csv", "id,file,model\r\na,\"src/a b.rs\",\r\nb,\"quote \"\"x\"\"\",gemini-2.5-pro\r\n");
    let defaults = "--set model=gemini-2.5-flash --set timeout=1m --jobs 1".split(' ');
    let args: Vec<&str> = ["--template", "Review {file} {{now}}"].into_iter().chain(defaults).collect();
    let done = desk.batch("files.csv", &args);
    assert!(done.succeeded(), "{}", done.stderr_text());
    assert_eq!(desk.prompts(), ["Review src/a b.rs {now}", "Review quote \"x\" {now}"]);
    let starts = desk.hostile.hostile.starts().unwrap();
    let words = starts.iter().flat_map(|start| &start.argv);
    let models: Vec<&str> = words.filter_map(|word| word.strip_prefix("--model=")).collect();
    assert_eq!(models, ["gemini-2.5-flash", "gemini-2.5-pro"]);
    // The second row is the third line.
    desk.write("files.tsv", "file\tmodel\na\n");
    let wrong = desk.batch("files.tsv", &["--template", "{file}"]);
    assert!(
        wrong.stderr_text().contains("files.tsv:2: there are 1 fields, and the first row has 2"),
        "{}",
        wrong.stderr_text()
    );
}

#[test]
fn the_same_command_goes_on_and_does_again_what_it_is_told() {
    let desk = Desk::new("again");
    let failing =
        steps("fails", [Step::Init, Step::User, Step::ResultError("no".into()), Step::End(Ending::Exit(1))]);
    let good = json!({"prompt": "good"});
    desk.jobs(&[good.clone(), failing]);
    let first = desk.batch("jobs.jsonl", &["--retries", "0"]);
    assert_eq!(first.status.code(), Some(1), "{}", first.stderr_text());
    assert!(first.stdout_text().starts_with("1 of 2 jobs succeeded, 1 failed\n"), "{}", first.stdout_text());
    assert!(
        first.stdout_text().contains("(p50)") && first.stdout_text().contains("(p95)"),
        "{}",
        first.stdout_text()
    );
    // Nothing is done twice.
    assert_eq!(desk.batch("jobs.jsonl", &["--retries", "0"]).status.code(), Some(1));
    assert_eq!(desk.prompts().len(), 2);
    assert_eq!(desk.batch("jobs.jsonl", &["--again", "failed", "--retries", "0"]).status.code(), Some(1));
    assert_eq!(desk.prompts()[2..], ["fails"]);
    // Another job than the one that the result is of.
    desk.jobs(&[good, json!({"prompt": "better"})]);
    let refused = desk.batch("jobs.jsonl", &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        refused.stderr_text().contains("has the results of jobs that are others now: \"2\""),
        "{}",
        refused.stderr_text()
    );
    let again = desk.batch("jobs.jsonl", &["--again", "changed", "--json"]);
    assert!(again.succeeded(), "{}", again.stderr_text());
    let summary: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(
        (&summary["succeeded"], &summary["jobs"], &summary["left"]),
        (&json!(2), &json!(2), &json!(0))
    );
    assert_eq!(desk.prompts()[3..], ["better"]);
    let attempts: Vec<_> =
        desk.results().iter().map(|result| (result["id"].clone(), result["attempt"].clone())).collect();
    assert_eq!(attempts, [(json!("1"), json!(1)), (json!("2"), json!(3))]);
    desk.nothing_is_left();
}
