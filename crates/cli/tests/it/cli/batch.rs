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
    desk.transcript(
        r#"
        $ batch jobs.jsonl --into results.jsonl
        error: nothing was run:
          jobs.jsonl:2: `approval`: "yes" is none of default, auto-edit, yolo, plan
          jobs.jsonl:3: id "a" is that of line 1, too. Give every job an id of its own.
          jobs.jsonl:4: not a job: EOF while parsing a value at column 18. A job is one JSON object on one line, such as {"prompt": "Say hi"}.
          jobs.jsonl:5: there is no option `modle`. Did you mean `model`?
          jobs.jsonl:5: there is no option `as`. Did you mean `ask`?
          jobs.jsonl:6: `dir`: nowhere is not a directory. Give a directory that exists.
          jobs.jsonl:8: `schema`: /type: "strin" is not valid under any of the schemas listed in the 'anyOf' keyword. Give a file with a JSON schema, or the schema itself, such as {"type": "object"}.
          jobs.jsonl:9: copy and git cannot be given together. Leave one of them out.
          jobs.jsonl:10: there is no prompt. Give a prompt, or a prompt_file.
          jobs.jsonl:11: `schema`: nowhere.json: No such file or directory (os error 2). Give a file with a JSON schema, or the schema itself, such as {"type": "object"}.
        hint: `alhena help batch` says what a job can be.
        "#,
    );
    assert!(!desk.work().join("results.jsonl").exists());
}

#[test]
fn what_is_wrong_with_the_command_and_its_files_is_told_and_nothing_is_touched() {
    let desk = Desk::new();
    desk.write("jobs.csv", "file,modle\r\na.rs,x\r\n");
    desk.write("jobs.jsonl", "{\"prompt\": \"a\"}\n");
    desk.write("none.jsonl", "\n\n");
    let notes = desk.write("notes.txt", "Buy milk");
    desk.transcript(
        r#"
        $ batch --into results.jsonl jobs.csv --template 'Review {file}'
        error: nothing was run:
          jobs.csv:1: the column modle is neither an option nor in the template. The first row has the names of options; use a template for others.
        hint: `alhena help batch` says what a job can be.
        $ batch --into results.jsonl jobs.csv --template 'Review {nope} of {modle}, {nope}'
        error: nothing was run:
          jobs.csv:1: the column file is neither an option nor in the template. The first row has the names of options; use a template for others.
          jobs.csv:1: the template needs nope, and there is no such column. The columns are file, modle.
        hint: `alhena help batch` says what a job can be.
        $ batch --into results.jsonl jobs.csv --template 'Review {file'
        error: the template has no field in {file
        hint: Write {name} for a field, {{ and }} for braces.
        $ batch --into results.jsonl jobs.jsonl --set trust
        error: --set trust has no value
        hint: Write --set NAME=VALUE.
        $ batch --into results.jsonl jobs.jsonl --set truts=true --set output=x
        error: nothing was run:
          jobs.jsonl:1: there is no option `truts`. Did you mean `trust`?
          jobs.jsonl:1: there is no option `output`. Did you mean `outputs`?
        hint: `alhena help batch` says what a job can be.
        $ batch --into results.jsonl none.jsonl
        error: there are no jobs in none.jsonl
        hint: A job is one JSON object on one line, such as {"prompt": "Say hi"}.
        $ batch --into results.jsonl nowhere.jsonl
        error: nowhere.jsonl: No such file or directory (os error 2)
        hint: Give a file with jobs, or `-` for stdin.
        $ batch . --into results.jsonl
        error: .: is a directory
        hint: Give a file with jobs, or `-` for stdin.
        $ batch jobs.jsonl --into notes.txt
        error: notes.txt: line 1 is not the result of a job: it is none that was begun
        hint: Give --into another file; this one was not touched.
        $ batch jobs.jsonl --into jobs.jsonl
        error: jobs.jsonl: line 1 is not the result of a job: missing field `id`
        hint: Give --into another file; this one was not touched.
        $ batch jobs.jsonl --into .
        error: .: Is a directory (os error 21)
        hint: Give --into a file that can be written to.
        $ batch jobs.jsonl --into no/where
        error: no/where: No such file or directory (os error 2)
        hint: Give --into a file that can be written to.
        "#,
    );
    for amount in ["nan", "inf", "-1", "0", "1e999", "much"] {
        let limit = format!("--max-cost={amount}");
        let refused = desk.alhena(&["batch", "jobs.jsonl", "--into", "results.jsonl", &limit]);
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.to_string().contains("more than 0"), "{refused}");
    }
    assert!(!desk.work().join("results.jsonl").exists());
    assert_eq!(std::fs::read_to_string(notes).unwrap(), "Buy milk");
}
