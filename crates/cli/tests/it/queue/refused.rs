//! What may not travel, and what a worker does not let in.

use alhena_batch::queue::{Batch, Label};
use serde_json::{Value, json};

use super::{fleet, queue};
use crate::fleet::LONG;

#[test]
fn what_may_not_travel_is_told_by_line_before_anything_runs() {
    let fleet = fleet("told by line");
    fleet.write(
        "jobs.jsonl",
        r#"{"prompt": "a", "gemini": "/bin/sh"}
{"prompt": "b", "env": {"GEMINI_API_KEY": "mine"}, "mcp_server": "x=sh"}
{"prompt": "c", "dir": "/etc"}
{"prompt": "d", "dir": "../up", "trust": "settings"}
{"prompt": "e", "modle": "x"}
{"prompt_file": "nowhere.txt"}
{"prompt": "g", "schema": "nowhere.json"}
{"prompt": "h", "git": {"url": "ext::sh -c id"}}
{"prompt": "i", "copy": true, "dir": "nowhere"}
{"prompt": "fine", "dir": "not/here", "approval": "yolo"}
"#,
    );
    let urls = fleet.urls();
    let ended = fleet.run(&["batch", "jobs.jsonl", "--into", "results.jsonl", "--nats", &urls]);
    assert_eq!(ended.code(), Some(2));
    insta::assert_snapshot!(ended.stderr, @r#"
    error: nothing was run:
      jobs.jsonl:1: `gemini` cannot travel to a worker: the worker chooses which programs run on it. Leave it out.
      jobs.jsonl:2: `env` cannot travel to a worker: a worker has its own environment, with its own key. Leave it out.
      jobs.jsonl:2: `mcp_server` cannot travel to a worker: the worker chooses which programs run on it. Leave it out.
      jobs.jsonl:3: `dir` has to be a relative path, below the worker's root. Give such a path, or let the folder travel with "copy": true.
      jobs.jsonl:4: `dir` has to be a relative path, below the worker's root. Give such a path, or let the folder travel with "copy": true.
      jobs.jsonl:4: `trust` travels to a worker only as true or false. Write true.
      jobs.jsonl:5: there is no option `modle`. Did you mean `model`?
      jobs.jsonl:6: nowhere.txt: No such file or directory (os error 2). Give a file that can be read.
      jobs.jsonl:7: `schema`: nowhere.json: No such file or directory (os error 2). Give a file with a JSON schema, or the schema itself, such as {"type": "object"}.
      jobs.jsonl:8: git: ext::sh -c id is no address of a repository. Write {"url": "https://...", "ref": "main"}.
      jobs.jsonl:9: `dir`: nowhere is not a directory. Give a directory that exists.
    hint: `alhena help batch` says what a job can be.
    "#);
    assert!(!fleet.path("here/results.jsonl").exists());
}

#[test]
fn a_worker_refuses_what_it_does_not_allow_with_a_result_that_says_so() {
    let fleet = fleet("refuses");
    std::os::unix::fs::symlink("/etc", fleet.path("root/way-out")).unwrap();
    fleet.write(
        "jobs.jsonl",
        r#"{"id": "yolo", "prompt": "a", "approval": "yolo"}
{"id": "allow", "prompt": "a", "allow": ["shell(*)"]}
{"id": "edit", "prompt": "a", "approval": "auto-edit"}
{"id": "out", "prompt": "a", "dir": "way-out"}
{"id": "nowhere", "prompt": "a", "dir": "nowhere"}
"#,
    );
    let worker = fleet.worker("w1", &["--max-approval", "auto-edit"]);
    let ended = fleet.submit(&[]).finish(LONG);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let all = fleet.results();
    let failure = |id: &str| all[id]["outcome"]["failure"].clone();
    for (id, message, hint) in [
        (
            "yolo",
            "the worker refuses it: `approval` yolo is more than this worker allows, which is auto-edit",
            "Ask for less, or start a worker that allows yolo.",
        ),
        (
            "allow",
            "the worker refuses it: `allow` lets the model do what this worker does not allow",
            "Leave it out, or start a worker that allows yolo.",
        ),
        (
            "out",
            "the worker refuses it: `dir` \"way-out\" leads out of the worker's root",
            "Give a directory that is below the worker's root.",
        ),
    ] {
        let failure = failure(id);
        assert_eq!(failure, json!({"kind": "input", "message": message, "hint": hint}));
        assert_eq!(all[id]["attempt"], 1);
    }
    assert_eq!(all["edit"]["outcome"]["status"], "success");
    assert_eq!(failure("nowhere")["kind"], "input");
    worker.leave();
    fleet.nothing_is_left();
}

/// Whoever can put something into the queue need not use `alhena batch` for it.
#[test]
fn a_letter_that_was_written_by_hand_gets_no_further() {
    let fleet = fleet("by hand");
    let queue = queue(&fleet);
    let batch = "b".parse().unwrap();
    queue.announce(&batch, &Batch::new(4, "")).unwrap();
    let touched = fleet.path("touched");
    let evil = format!("touch {}", touched.display());
    let letter = |options: Value| {
        json!({"version": 3, "id": "x", "line": 1, "mark": "00112233445566778899aabbccddeeff",
            "options": options, "place": {"kind": "dir"}})
        .to_string()
    };
    let letters = [
        letter(json!({"prompt": "p", "hook": [format!("before-model={evil}")]})),
        letter(json!({"prompt": "p", "gemini": "/bin/sh", "args": ["-c", evil]})),
        letter(json!({"prompt": "p", "env": {"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1"}})),
        letter(json!({"prompt_file": "/etc/passwd"})),
    ];
    for (number, letter) in letters.iter().enumerate() {
        queue.put(&batch, &number.to_string(), 1, &Label::any(), letter.as_bytes()).unwrap();
    }
    // What cannot be read is answered, too: somebody may wait for it.
    let lost = json!({"batch": "b", "job": "lost", "attempt": 1, "object": "job.b.gone"});
    fleet.put_by_hand(&[("alhena.jobs.any.b.lost.1".to_owned(), format!("{lost}\n"))]);
    queue.put(&batch, "none@0a", 1, &Label::any(), b"{\"no\": \"letter\"}").unwrap();
    queue.put(&batch, "new@0b", 1, &Label::any(), b"{\"version\": 99, \"job\": {}}").unwrap();
    let worker = fleet.worker("w1", &["--max-approval", "yolo", "--idle-exit", "15s"]).finish(LONG);
    assert_eq!(worker.code(), Some(0), "{worker:?}");
    let mut gathering = queue.gather(&batch);
    let mut unread = Vec::new();
    for _ in 0..letters.len() + 3 {
        let gathered = gathering.next(LONG).unwrap().unwrap();
        let answer: Value = serde_json::from_slice(&gathered.payload).unwrap();
        let result = &answer["attempt"]["result"];
        let failure = &result["outcome"]["failure"];
        assert_eq!(failure["kind"], "input", "{answer}");
        let is_lost = result["id"] == "lost";
        let begin =
            if is_lost { "what the job says cannot be had: the file" } else { "the worker refuses it: " };
        assert!(failure["message"].as_str().unwrap().starts_with(begin), "{answer}");
        unread.extend(
            (result["id"] != "x").then(|| {
                [&result["id"], &result["job"], &failure["message"]].map(Value::to_string).join(" ")
            }),
        );
    }
    unread.sort();
    assert!(
        unread[0].starts_with("\"3\" \"\" \"the worker refuses it: it is no job: missing field `prompt`")
    );
    assert!(unread[3].starts_with("\"none\" \"0a\" \"the worker refuses it: it is no job: "), "{unread:?}");
    assert_eq!(
        unread[2],
        "\"new\" \"0b\" \"the worker refuses it: it was written by another release of alhena\""
    );
    assert!(gathering.next(std::time::Duration::from_millis(300)).unwrap().is_none());
    assert!(!touched.exists());
    fleet.nothing_is_left();
}

/// Whoever asks for results hears what is missing; so does whoever submitted them.
#[test]
fn a_result_that_cannot_be_had_is_told_and_the_others_are_there() {
    let fleet = fleet("missing results");
    let urls = fleet.urls();
    fleet.write("jobs.jsonl", &super::jobs(2));
    let worker = fleet.worker("w1", &[]);
    assert_eq!(fleet.submit(&["--name", "b"]).finish(LONG).code(), Some(0));
    let all = ["batch", "results", "b", "--nats", &urls];
    let there = fleet.run(&all);
    assert_eq!((there.code(), there.stdout.lines().count()), (Some(0), 2), "{there:?}");
    let put = |subject: &str, head: Value, payload: &str| {
        fleet.put_by_hand(&[(format!("alhena.results.b.{subject}"), format!("{head}\n{payload}"))]);
    };
    put("gone.1", json!({"batch": "b", "job": "gone", "attempt": 1, "object": "result.b.gone"}), "");
    put("none.1", json!({"batch": "b", "job": "none", "attempt": 1}), "{}");
    put("odd.1", json!({"batch": "other", "job": "odd", "attempt": 1}), "{}");
    let some = fleet.run(&all);
    assert_eq!((some.code(), &some.stdout), (Some(1), &there.stdout), "{some:?}");
    insta::assert_snapshot!(some.stderr, @r#"
    error: not all results of batch b can be had:
      alhena.results.b.odd.1: a message in the queue is not Alhena's: its head does not fit its subject
      gone (attempt 1): the file "result.b.gone" of the queue is gone
      none (attempt 1): missing field `version` at line 1 column 2
    hint: The others were printed. Whoever submitted it has them done again with --again failed.
    "#);
    // The submitter passes over what is none, and goes on.
    std::fs::remove_file(fleet.path("here/results.jsonl")).unwrap();
    fleet.write("jobs.jsonl", &super::jobs(3));
    let again =
        fleet.run(&["batch", "jobs.jsonl", "--into", "results.jsonl", "--nats", &urls, "--name", "b"]);
    assert_eq!((again.code(), fleet.results().len()), (Some(0), 3), "{again:?}");
    worker.leave();
    fleet.nothing_is_left();
}

/// A job that brings its own CLI says nothing of the worker's.
#[test]
fn a_job_that_is_offline_fails_by_itself_where_there_is_no_node() {
    let fleet = fleet("no node");
    // What the stand-in needs, and no Node.
    let tools = fleet.path("tools");
    std::fs::create_dir(&tools).unwrap();
    for tool in ["sh", "cat", "sleep", "mkdir"] {
        let path = ["/usr/bin", "/bin"].map(|dir| std::path::Path::new(dir).join(tool));
        let path = path.iter().find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(path, tools.join(tool)).unwrap();
    }
    let fleet = fleet.env([("PATH".to_owned(), tools.display().to_string())]);
    fleet.write(
        "jobs.jsonl",
        "{\"id\": \"offline\", \"prompt\": \"a\", \"offline\": true}\n{\"id\": \"own\", \"prompt\": \"b\"}\n",
    );
    let worker = fleet.worker("w1", &["--jobs", "1"]);
    let ended = fleet.submit(&[]).finish(LONG);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let all = fleet.results();
    assert_eq!(all["offline"]["outcome"]["failure"]["kind"], "not_installed", "{}", all["offline"]);
    assert_eq!(all["own"]["outcome"]["status"], "success", "{}", all["own"]);
    assert_eq!(worker.leave().code(), Some(0));
    fleet.nothing_is_left();
}
