//! What is submitted is done, and known from anywhere.

use serde_json::{Value, json};

use super::{fleet, jobs};
use crate::fleet::{results, text};

#[test]
fn jobs_are_done_by_workers_and_their_results_are_in_the_journal_and_had_from_anywhere() {
    let fleet = fleet("jobs are done");
    fleet.write("jobs.jsonl", &jobs(12));
    let workers = [fleet.worker("w1", &["--jobs", "2"]), fleet.worker("w2", &["--jobs", "1"])];
    let ended = fleet.submit(&["--json", "--ordered"]).finish(crate::fleet::LONG);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((summary["jobs"].as_u64(), summary["succeeded"].as_u64()), (Some(12), Some(12)));
    let all = fleet.results();
    for job in 0..12 {
        let result = &all[&format!("j{job}")];
        assert_eq!(text(result), format!("heard marker-{job}-end"));
        assert_eq!(result["attempt"], 1);
    }
    let lines = std::fs::read_to_string(fleet.path("here/results.jsonl")).unwrap();
    let ids: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, (0..12).map(|job| format!("j{job}")).collect::<Vec<_>>());

    // By its name, which was said, from anywhere.
    let name = ended.stderr.lines().find_map(|line| line.strip_prefix("batch ")?.split(' ').next()).unwrap();
    assert!(name.starts_with("results-"), "{name}");
    let urls = fleet.urls();
    let mut status = Value::Null;
    // A worker says that it is done with the last one when the result is there.
    let is_empty = || {
        let told = fleet.run(&["batch", "status", name, "--nats", &urls, "--json"]);
        status = serde_json::from_str(&told.stdout).unwrap();
        status["progress"]["open"] == 0
    };
    assert!(alhena_testbed::Deadline::after(crate::fleet::LONG).wait_until(is_empty));
    assert_eq!(status["name"], name);
    assert_eq!(
        status["progress"],
        json!({"jobs": 12, "results": 12, "open": 0, "dead": 0, "cancelled": false, "finished": true})
    );
    let list = fleet.run(&["batch", "status", "--nats", &urls]);
    assert_eq!(list.stdout, format!("{name}: 12 jobs, 12 results, 0 in the queue or at work, finished\n"));
    let there = results(&fleet.run(&["batch", "results", name, "--nats", &urls]).stdout);
    assert_eq!(there.keys().collect::<Vec<_>>(), all.keys().collect::<Vec<_>>());
    for (id, result) in &there {
        assert_eq!((text(result), &result["job"]), (text(&all[id]), &all[id]["job"]));
    }

    // The same command again has nothing to do; without its results it is done anew.
    let again = fleet.submit(&["--json"]).finish(crate::fleet::LONG);
    assert_eq!(again.code(), Some(0), "{again:?}");
    std::fs::remove_file(fleet.path("here/results.jsonl")).unwrap();
    let anew = fleet.submit(&[]).finish(crate::fleet::LONG);
    assert_eq!((anew.code(), fleet.results().len()), (Some(0), 12), "{anew:?}");
    let began: usize = workers.iter().map(|worker| worker.stdout().matches("\"began\"").count()).sum();
    assert_eq!(began, 24);
    let forgotten = fleet.run(&["batch", "forget", name, "--nats", &urls]);
    assert_eq!(forgotten.stdout, format!("{name}: forgotten\n"));
    assert_eq!(fleet.run(&["batch", "status", name, "--nats", &urls]).code(), Some(1));
    for worker in workers {
        assert_eq!(worker.leave().code(), Some(0));
    }
    fleet.nothing_is_left();
}

#[test]
fn a_submitter_that_was_killed_comes_back_and_finds_what_was_done_meanwhile() {
    let fleet = fleet("comes back");
    fleet.write("jobs.jsonl", &jobs(6));
    let mut gone = fleet.submit(&[]);
    gone.says("batch results-");
    let urls = fleet.urls();
    let in_queue = || {
        let status = fleet.run(&["batch", "status", "--nats", &urls, "--json"]);
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        status[0]["progress"]["open"].as_u64()
    };
    while in_queue() != Some(6) {
        assert!(gone.has_ended().is_none(), "{}", gone.stderr());
    }
    gone.kill();
    // Nobody is there who submitted them.
    let worker = fleet.worker("w1", &["--idle-exit", "15s"]).finish(crate::fleet::LONG);
    assert_eq!(worker.stdout.matches("\"success\"").count(), 6, "{worker:?}");
    assert_eq!(fleet.count_results(), 0);
    let back = fleet.submit(&[]).finish(crate::fleet::LONG);
    assert_eq!((back.code(), fleet.results().len()), (Some(0), 6), "{back:?}");
    fleet.nothing_is_left();
}

#[test]
fn prompts_instructions_and_schemas_in_files_travel_as_what_they_say() {
    let fleet = fleet("files travel");
    fleet.write("prompt.txt", "from a file of the submitter");
    fleet.write("instructions.txt", "Be brief.");
    fleet.write("list.json", r#"{"type": "array"}"#);
    fleet.write("object.json", r#"{"type": "object"}"#);
    fleet.write(
        "jobs.jsonl",
        r#"{"id": "p", "prompt_file": "prompt.txt"}
{"id": "i", "prompt": "told", "system_prompt_file": "instructions.txt", "system_prompt_mode": "replace"}
{"id": "s", "prompt": "[1]", "schema": "list.json"}
{"id": "n", "prompt": "[2]", "schema": "object.json"}
{"id": "d", "prompt": "where", "dir": "app"}
{"id": "r", "prompt": "where"}
{"id": "k", "prompt": "key"}
"#,
    );
    let worker = fleet.worker("w1", &[]);
    // Nothing of it is there where the worker is, and the submitter's own key is another one.
    let ended = fleet.submit(&[]).finish(crate::fleet::LONG);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let all = fleet.results();
    assert_eq!(text(&all["p"]), "heard from a file of the submitter");
    assert_eq!(text(&all["i"]), "heard told Be brief.");
    assert_eq!(all["s"]["outcome"]["data"], json!([1]), "{}", all["s"]);
    assert_eq!(all["n"]["outcome"]["failure"]["kind"], "schema", "{}", all["n"]);
    assert_eq!(text(&all["d"]), format!("heard where {}", fleet.path("root/app").display()));
    assert_eq!(text(&all["r"]), format!("heard where {}", fleet.path("root").display()));
    assert_eq!(text(&all["k"]), "heard key of-home-w1");
    assert_eq!(all["k"]["worker"], "w1");
    worker.leave();
    fleet.nothing_is_left();
}

#[test]
fn jobs_with_a_label_go_to_workers_that_have_it() {
    let fleet = fleet("labels");
    fleet.write("jobs.jsonl", &jobs(3));
    let plain = fleet.worker("w1", &[]);
    let mut submitted = fleet.submit(&["--label", "gpu"]);
    submitted.says("batch results-");
    let special = fleet.worker("w2", &["--label", "gpu"]);
    assert_eq!(submitted.finish(crate::fleet::LONG).code(), Some(0));
    assert_eq!(plain.leave().stdout.matches("\"began\"").count(), 0);
    assert_eq!(special.leave().stdout.matches("\"began\"").count(), 3);
    fleet.nothing_is_left();
}

#[test]
fn what_may_pass_is_repeated_as_another_attempt_and_what_failed_is_done_again_when_asked() {
    let fleet = fleet("again");
    fleet.write(
        "jobs.jsonl",
        "{\"id\": \"f\", \"prompt\": \"fail\"}\n{\"id\": \"g\", \"prompt\": \"good\"}\n",
    );
    let worker = fleet.worker("w1", &[]);
    let first = fleet.submit(&["--retries", "1"]).finish(crate::fleet::LONG);
    assert_eq!(first.code(), Some(1), "{first:?}");
    let attempts = fleet.results()["f"]["attempt"].as_u64().unwrap();
    let second = fleet.submit(&["--retries", "0", "--again", "failed"]).finish(crate::fleet::LONG);
    assert_eq!(second.code(), Some(1), "{second:?}");
    let all = fleet.results();
    assert_eq!(all["f"]["attempt"].as_u64().unwrap(), attempts + 1);
    assert_eq!((all["g"]["attempt"].as_u64(), all.len()), (Some(1), 2));
    // Whoever asks for them from elsewhere has the same, the attempts before included.
    let name =
        second.stderr.lines().find_map(|line| line.trim_start().strip_prefix("batch ")?.split(' ').next());
    let asked = fleet.run(&["batch", "results", name.unwrap(), "--nats", &fleet.urls()]);
    let lines = asked.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let failed = lines.into_iter().find(|result| result["id"] == "f").unwrap();
    assert_eq!(failed["attempt"], all["f"]["attempt"], "{asked:?}");
    assert_eq!(failed["earlier"].as_array().unwrap().len() as u64, attempts, "{failed}");
    let began = worker.leave().stdout.matches("\"began\"").count();
    assert_eq!(began as u64, attempts + 2);
    fleet.nothing_is_left();
}

#[test]
fn a_file_of_jobs_may_be_called_as_a_command() {
    let fleet = fleet("called status");
    fleet.write("status", &jobs(1));
    let urls = fleet.urls();
    let worker = fleet.worker("w1", &[]);
    let ended =
        fleet.run(&["batch", "./status", "--into", "results.jsonl", "--nats", &urls, "--name", "mine"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.contains("batch mine at"), "{ended:?}");
    let status = fleet.run(&["batch", "status", "mine", "--nats", &urls]);
    assert_eq!(status.stdout, "mine: 1 jobs, 1 results, 0 in the queue or at work, finished\n");
    worker.leave();
}

/// A folder and a repository travel, and what changed in them comes back; the worker keeps nothing.
#[test]
fn folders_and_repositories_travel_and_come_back_as_patches() {
    let fleet = fleet("patches");
    fleet.write("app/given.txt", "from the submitter\n");
    fleet.write("app/.git/config", "[core]\n");
    let pipe = std::process::Command::new("mkfifo").arg(fleet.path("here/app/pipe")).status().unwrap();
    assert!(pipe.success());
    fleet.write(
        "jobs.jsonl",
        r#"{"id": "copy", "prompt": "write", "copy": true, "dir": "app", "outputs": ["out", "nothing.txt"]}
{"id": "again", "prompt": "write", "copy": true, "dir": "app"}
{"id": "git", "prompt": "write", "git": {"url": "repo", "ref": "main"}, "outputs": "out/*.txt"}
{"id": "out", "prompt": "write", "git": {"url": "../here/app"}}
"#,
    );
    let repo = fleet.path("root/repo");
    std::fs::create_dir_all(&repo).unwrap();
    std::fs::write(repo.join("given.txt"), "from the repository\n").unwrap();
    let git = |dir: &std::path::Path, args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(dir).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(args);
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&repo, &["init", "-q", "-b", "main"]);
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "-q", "-m", "one"]);
    let ended = fleet.submit(&[]).finish(crate::fleet::LONG);
    assert_eq!(ended.code(), Some(2), "{ended:?}");
    let lines = std::fs::read_to_string(fleet.path("here/jobs.jsonl")).unwrap();
    fleet.write("jobs.jsonl", &lines.lines().take(3).map(|line| format!("{line}\n")).collect::<String>());
    let worker = fleet.worker("w1", &["--jobs", "2"]);
    let ended = fleet.submit(&[]).finish(crate::fleet::LONG);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let all = fleet.results();
    for (id, content) in [("copy", "submitter"), ("again", "submitter"), ("git", "repository")] {
        let patch = all[id]["patch"].as_str().unwrap_or_else(|| panic!("{}", all[id]));
        assert!(patch.contains(&format!("+from the {content}\n")), "{id}: {patch}");
        let place = tempfile::tempdir().unwrap();
        git(place.path(), &["init", "-q"]);
        std::fs::write(place.path().join("patch"), patch).unwrap();
        git(place.path(), &["apply", "patch"]);
        let made = std::fs::read_to_string(place.path().join("made.txt")).unwrap();
        assert_eq!(made, format!("from the {content}\n"));
    }
    // What no copy has is left out of this one, too, and told.
    let missing = "pipe was left out of the copy: it is neither a file nor a directory nor a link";
    for id in ["copy", "again"] {
        let warnings = all[id]["outcome"]["warnings"].as_array().cloned().unwrap_or_default();
        assert!(warnings.iter().any(|warning| warning == missing), "{warnings:?}");
    }
    // What git ignores comes back when it is named, and what is not there is told.
    let built = serde_json::json!({"path": "out/built.txt", "text": "built\n"});
    let bytes = serde_json::json!({"path": "out/bytes", "base64": "/w=="});
    assert_eq!(all["copy"]["outputs"], serde_json::json!([built, bytes]));
    assert_eq!(all["git"]["outputs"], serde_json::json!([built]));
    assert!(all["again"].get("outputs").is_none());
    let told = all["copy"]["outcome"]["warnings"].to_string();
    assert!(told.contains("outputs: there is no file \\\"nothing.txt\\\""), "{told}");
    assert_eq!(all["git"]["commit"].as_str().map(str::len), Some(40));
    assert_eq!(worker.leave().code(), Some(0));
    assert!(!fleet.path("here/app/made.txt").exists() && !repo.join("made.txt").exists());
    let left = alhena_testbed::tools::files_under(&fleet.path("home-w1/alhena/cache/workers"));
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
    fleet.nothing_is_left();
}

#[test]
fn what_the_api_tells_one_worker_all_keep_to_and_the_job_is_done_then() {
    let fleet = fleet("limited");
    fleet.write("jobs.jsonl", "{\"id\": \"l\", \"prompt\": \"limited\"}\n");
    // Before, because the limit lasts twenty seconds.
    let address = alhena_batch::queue::Address::of(Some(&fleet.urls()), |_| None).unwrap();
    let queue =
        alhena_batch::queue::Queue::connect(&address, alhena_batch::queue::Layout::default()).unwrap();
    let mut worker = fleet.worker("w1", &[]);
    let submitted = fleet.submit(&[]);
    worker.says("\"rate_limited\"");
    let held = queue.held("shared default").unwrap();
    assert!(held.is_some_and(|held| held <= std::time::Duration::from_secs(20)), "{held:?}");
    assert_eq!(queue.held("other default").unwrap(), None);
    let ended = submitted.finish(crate::fleet::LONG);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let result = &fleet.results()["l"];
    assert_eq!(
        (&result["attempt"], &result["earlier"][0]["kind"]),
        (&2.into(), &"rate_limited".into()),
        "{result}"
    );
    worker.leave();
    fleet.nothing_is_left();
}

#[test]
fn every_job_has_a_result_although_the_server_lost_its_storage() {
    let mut fleet = fleet("storage-lost");
    let job = |job: u32| {
        format!("{{\"id\": \"j{job}\", \"prompt\": \"held {job}\", \"copy\": true, \"dir\": \"app\"}}\n")
    };
    fleet.write("jobs.jsonl", &(0..6).map(job).collect::<String>());
    fleet.write("app/given.txt", "given");
    let mut worker = fleet.worker("w1", &["--jobs", "1"]);
    let mut batch = fleet.submit(&[]);
    worker.says("\"began\"");
    batch.says("1 running");
    fleet.servers[0].lose_storage().unwrap();
    // Not the one that somebody works on.
    batch.says("5 jobs had vanished from the queue and are put into it again");
    fleet.let_go();
    let ended = batch.finish(crate::fleet::LONG);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.stderr.contains("NATS lost what it had stored"), "{}", ended.stderr);
    let results = fleet.results();
    assert_eq!(results.len(), 6);
    for (id, result) in &results {
        assert_eq!(
            (&result["outcome"]["status"], &result["attempt"]),
            (&"success".into(), &1.into()),
            "{id}"
        );
    }
    let worker = worker.leave();
    assert_eq!(worker.code(), Some(0));
    assert!(worker.stdout.contains("NATS lost what it had stored"), "{worker:?}");
    fleet.nothing_is_left();
}

#[test]
fn a_worker_says_that_it_waits_for_a_rate_limit_and_how_long() {
    let fleet = fleet("says-it-waits");
    fleet.write("jobs.jsonl", &super::jobs(1));
    let address = alhena_batch::queue::Address::of(Some(&fleet.urls()), |_| None).unwrap();
    let queue =
        alhena_batch::queue::Queue::connect(&address, alhena_batch::queue::Layout::default()).unwrap();
    // As a machine would whose clock is years ahead.
    fleet.put_by_hand(&[("$KV.alhena-limits.model.shared-default".to_owned(), "99999999999999".to_owned())]);
    let mut worker = fleet.worker("w1", &[]);
    let mut submitted = fleet.submit(&[]);
    worker.says("waits 300 s for the rate limit of");
    // The next one who is told something replaces it, and whoever looks then goes on.
    queue.hold("shared default", std::time::Duration::from_secs(1)).unwrap();
    let held = queue.held("shared default").unwrap();
    assert!(held.is_none_or(|held| held <= std::time::Duration::from_secs(1)), "{held:?}");
    submitted.kill();
    worker.kill();
    fleet.nothing_is_left();
}
