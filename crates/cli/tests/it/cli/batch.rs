//! `alhena batch`, as far as nothing runs.

use crate::common::Desk;

const JOBS: &str = r#"{"id": "a", "prompt": "one"}
{"id": "b", "prompt": "two", "approval": "yes"}
{"id": "a", "prompt": "three"}
{"prompt": "four",
{"prompt": "five", "modle": "x", "schema": "nowhere.json", "as": "text"}
{"dir": "nowhere", "prompt": "six"}

{"prompt": "seven", "schema": {"type": "strin"}}
{"id": "h", "copy": true, "git": {"url": "x"}, "prompt": "eight"}
{"id": "i"}
{"prompt": "eleven", "schema": "nowhere.json"}
"#;

#[test]
fn all_that_is_wrong_with_jobs_is_told_by_line_before_anything_runs() {
    let desk = Desk::new();
    desk.write("jobs.jsonl", JOBS);
    insta::assert_snapshot!(desk.alhena(&["batch", "jobs.jsonl", "--into", "results.jsonl"]), @r#"
    ---- stderr ----
    error: nothing was run:
      jobs.jsonl:2: `approval`: "yes" is none of default, auto-edit, yolo, plan
      jobs.jsonl:3: id "a" is that of line 1, too. Give every job an id of its own.
      jobs.jsonl:4: not a job: EOF while parsing a value at column 18. A job is one JSON object on one line, such as {"prompt": "Say hi"}.
      jobs.jsonl:5: there is no option `modle`. Did you mean `model`?
      jobs.jsonl:5: there is no option `as`. Did you mean `ask`?
      jobs.jsonl:6: `dir`: nowhere is not a directory. Give a directory that exists.
      jobs.jsonl:8: `schema`: /type: "strin" is not valid under any of the schemas listed in the 'anyOf' keyword. Give a file with a JSON schema, or the schema itself, such as {"type": "object"}.
      jobs.jsonl:9: copy and git cannot be given together. Leave one of them out.
      jobs.jsonl:10: there is no prompt. Give a prompt or a `prompt_file`.
      jobs.jsonl:11: `schema`: nowhere.json: No such file or directory (os error 2). Give a file with a JSON schema, or the schema itself, such as {"type": "object"}.
    hint: `alhena help batch` says what a job can be.
    [exit 2]
    "#);
    assert!(!desk.work().join("results.jsonl").exists());
}

#[test]
fn what_is_wrong_with_defaults_tables_and_templates_is_told() {
    let desk = Desk::new();
    desk.write("jobs.csv", "file,modle\r\na.rs,x\r\n");
    desk.write("jobs.jsonl", "{\"prompt\": \"a\"}\n");
    desk.write("none.jsonl", "\n\n");
    let batch = |args: &[&str]| {
        let mut all = vec!["batch", "--into", "results.jsonl"];
        all.extend(args);
        desk.alhena(&all).to_string()
    };
    insta::assert_snapshot!(batch(&["jobs.csv", "--template", "Review {file}"]), @r"
    ---- stderr ----
    error: nothing was run:
      jobs.csv:1: the column modle is neither an option nor in the template. The first row has the names of options; use a template for others.
    hint: `alhena help batch` says what a job can be.
    [exit 2]
    ");
    insta::assert_snapshot!(batch(&["jobs.csv", "--template", "Review {nope} of {modle}, {nope}"]), @r"
    ---- stderr ----
    error: nothing was run:
      jobs.csv:1: the column file is neither an option nor in the template. The first row has the names of options; use a template for others.
      jobs.csv:1: the template needs nope, and there is no such column. The columns are file, modle.
    hint: `alhena help batch` says what a job can be.
    [exit 2]
    ");
    insta::assert_snapshot!(batch(&["jobs.csv", "--template", "Review {file"]), @r"
    ---- stderr ----
    error: the template has no field in {file
    hint: Write {name} for a field, {{ and }} for braces.
    [exit 2]
    ");
    insta::assert_snapshot!(batch(&["jobs.jsonl", "--set", "trust"]), @r"
    ---- stderr ----
    error: --set trust has no value
    hint: Write --set NAME=VALUE.
    [exit 2]
    ");
    insta::assert_snapshot!(batch(&["jobs.jsonl", "--set", "truts=true", "--set", "output=x"]), @r"
    ---- stderr ----
    error: nothing was run:
      jobs.jsonl:1: there is no option `truts`. Did you mean `trust`?
      jobs.jsonl:1: there is no option `output`. Did you mean `outputs`?
    hint: `alhena help batch` says what a job can be.
    [exit 2]
    ");
    insta::assert_snapshot!(batch(&["none.jsonl"]), @r#"
    ---- stderr ----
    error: there are no jobs in none.jsonl
    hint: A job is one JSON object on one line, such as {"prompt": "Say hi"}.
    [exit 2]
    "#);
    insta::assert_snapshot!(batch(&["nowhere.jsonl"]), @r"
    ---- stderr ----
    error: nowhere.jsonl: No such file or directory (os error 2)
    hint: Give a file with jobs, or `-` for stdin.
    [exit 2]
    ");
    assert!(!desk.work().join("results.jsonl").exists());
}

#[test]
fn a_limit_that_is_none_and_a_directory_of_jobs_are_refused_before_anything() {
    let desk = Desk::new();
    desk.write("jobs.jsonl", "{\"prompt\": \"a\"}\n");
    for amount in ["nan", "inf", "-1", "0", "1e999", "much"] {
        let limit = format!("--max-cost={amount}");
        let refused = desk.alhena(&["batch", "jobs.jsonl", "--into", "results.jsonl", &limit]);
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.to_string().contains("more than 0"), "{refused}");
    }
    insta::assert_snapshot!(desk.alhena(&["batch", ".", "--into", "results.jsonl"]), @r"
    ---- stderr ----
    error: .: is a directory
    hint: Give a file with jobs, or `-` for stdin.
    [exit 2]
    ");
    assert!(!desk.work().join("results.jsonl").exists());
}

#[test]
fn a_file_that_holds_something_else_is_refused_and_stays_as_it_is() {
    let desk = Desk::new();
    desk.write("jobs.jsonl", "{\"prompt\": \"a\"}\n");
    let notes = desk.write("notes.txt", "Buy milk");
    insta::assert_snapshot!(desk.alhena(&["batch", "jobs.jsonl", "--into", "notes.txt"]), @r"
    ---- stderr ----
    error: notes.txt: line 1 is not the result of a job: it is none that was begun
    hint: Give --into another file; this one was not touched.
    [exit 2]
    ");
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "Buy milk");
    insta::assert_snapshot!(desk.alhena(&["batch", "jobs.jsonl", "--into", "jobs.jsonl"]), @r"
    ---- stderr ----
    error: jobs.jsonl: line 1 is not the result of a job: missing field `id`
    hint: Give --into another file; this one was not touched.
    [exit 2]
    ");
    insta::assert_snapshot!(desk.alhena(&["batch", "jobs.jsonl", "--into", "."]), @r"
    ---- stderr ----
    error: .: Is a directory (os error 21)
    hint: Give --into a file that can be written to.
    [exit 2]
    ");
    insta::assert_snapshot!(desk.alhena(&["batch", "jobs.jsonl", "--into", "no/where"]), @r"
    ---- stderr ----
    error: no/where: No such file or directory (os error 2)
    hint: Give --into a file that can be written to.
    [exit 2]
    ");
}
