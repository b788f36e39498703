//! `alhena batch` on the real CLI, against the scripted API.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::lab::{ALHENA, Lab};
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_testbed::{Deadline, Finished, processes_with_env, run_bounded};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(240);

/// Does what its prompt says: `write NAME`, `fail`, or anything else, which is said back.
fn model(request: &RecordedRequest) -> Turn {
    let prompt = request.prompt().unwrap_or_default();
    let has_acted = request.results_since_prompt().next().is_some();
    match prompt.split_once(' ') {
        Some(("write", name)) if !has_acted => {
            Turn::new().call("write_file", json!({"file_path": name, "content": format!("by {name}\n")}))
        }
        Some(("shell", command)) if !has_acted => {
            Turn::new().call("run_shell_command", json!({"command": command}))
        }
        _ if prompt == "fail" => Turn::status(400),
        _ => Turn::say(format!("heard {prompt}")),
    }
}

fn lab(name: &str) -> Lab {
    Lab::real(name, "0.61.0", Scenario::dynamic(model))
}

fn jobs(lab: &Lab, jobs: &[Value]) {
    lab.home.write("jobs.jsonl", jobs.iter().map(|job| format!("{job}\n")).collect::<String>()).unwrap();
}

fn batch(lab: &Lab, args: &[&str]) -> Finished {
    let mut command = Command::new(ALHENA);
    command.env_clear().envs(lab.env.iter()).current_dir(lab.workspace());
    command.args([
        "batch",
        "jobs.jsonl",
        "--into",
        "results.jsonl",
        "--set",
        "model=gemini-2.5-flash",
        "--set",
    ]);
    command.arg(format!("gemini={}", lab.gemini.path.display())).args(args);
    run_bounded(&mut command, LIMIT).unwrap()
}

fn results(lab: &Lab) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(lab.workspace().join("results.jsonl")).unwrap();
    let read = |line: &str| {
        let result: Value = serde_json::from_str(line).unwrap();
        (result["id"].as_str().unwrap().to_owned(), result)
    };
    text.lines().map(read).collect()
}

fn nothing_is_left(lab: &Lab) {
    let home = format!("ALHENA_HOME={}", lab.home.path().join("alhena").display());
    let deadline = Deadline::after(Duration::from_secs(30));
    assert!(deadline.wait_until(|| processes_with_env(&home).is_empty()), "{:?}", processes_with_env(&home));
    let places = std::fs::read_dir(lab.home.path().join("alhena/state/places")).into_iter().flatten();
    assert_eq!(
        places.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>(),
        Vec::<std::ffi::OsString>::new()
    );
}

/// `alhena sessions usage` has the tokens of all jobs, whether their sessions are kept or not.
fn usage_counts_all_jobs(lab: &Lab, scope: &[&str]) {
    let mut command = Command::new(ALHENA);
    command.env_clear().envs(lab.env.iter()).current_dir(lab.workspace());
    command.args(["sessions", "usage", "--by", "model", "--json"]).args(scope);
    let done = run_bounded(&mut command, LIMIT).unwrap();
    let usage: Value = serde_json::from_str(&done.stdout_text()).unwrap();
    let tokens = |result: &Value| result["outcome"]["usage"]["total"].as_u64().unwrap();
    let expected: u64 = results(lab).values().map(tokens).sum();
    assert!(expected > 0);
    assert_eq!(usage["total"]["total"], json!(expected), "{usage}");
    assert_eq!(usage["rows"]["gemini-2.5-flash"]["total"], json!(expected), "{usage}");
}

/// What a job was answered.
fn answered(result: &Value) -> &str {
    result["outcome"]["text"].as_str().unwrap_or_default()
}

fn git(dir: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(args).current_dir(dir).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@example.org");
    }
    let done = run_bounded(&mut command, Duration::from_secs(60)).unwrap();
    assert!(done.succeeded(), "git {args:?}: {}", done.stderr_text());
    done.stdout_text().trim().to_owned()
}

#[test]
fn real_cli_a_warm_batch_answers_each_job_and_tells_what_failed() {
    let lab = lab("warm");
    let mut all: Vec<Value> =
        (0..5).map(|number| json!({"id": format!("j{number}"), "prompt": format!("word{number}")})).collect();
    all.push(json!({"id": "bad", "prompt": "fail"}));
    jobs(&lab, &all);
    let done =
        batch(&lab, &["--jobs", "2", "--transport", "warm", "--retries", "0", "--summary", "page.html"]);
    assert_eq!(done.status.code(), Some(1), "{} {}", done.stdout_text(), done.stderr_text());
    assert!(done.stdout_text().starts_with("5 of 6 jobs succeeded, 1 failed\n"), "{}", done.stdout_text());
    let results = results(&lab);
    for number in 0..5 {
        let result = &results[&format!("j{number}")];
        assert_eq!(answered(result), format!("heard word{number}"), "{result}");
        assert_eq!((&result["attempt"], result.get("patch")), (&json!(1), None));
    }
    assert_eq!(results["bad"]["outcome"]["status"], "failed", "{}", results["bad"]);
    let page = std::fs::read_to_string(lab.workspace().join("page.html")).unwrap();
    assert!(page.contains("<td>bad</td>"), "{page}");
    usage_counts_all_jobs(&lab, &[]);
    nothing_is_left(&lab);
}

#[test]
fn real_cli_a_cold_batch_gives_the_same() {
    let lab = lab("cold");
    jobs(&lab, &[json!({"prompt": "one"}), json!({"prompt": "two", "transport": "acp"})]);
    let done = batch(&lab, &["--jobs", "2", "--transport", "cold"]);
    assert!(done.succeeded(), "{}", done.stderr_text());
    assert_eq!(results(&lab).values().map(answered).collect::<Vec<_>>(), ["heard one", "heard two"]);
    usage_counts_all_jobs(&lab, &[]);
    nothing_is_left(&lab);
}

#[test]
fn real_cli_jobs_in_copies_run_side_by_side_on_warm_processes_and_give_patches() {
    let lab = lab("copies");
    lab.home.write("app/old.txt", "old\n").unwrap();
    git(&lab.workspace().join("app"), &["init", "-q"]);
    let all: Vec<Value> = (0..4)
        .map(|number| {
            json!({"id": format!("j{number}"), "prompt": format!("write made-{number}.txt"), "dir": "app", "copy": true,
                "approval": "yolo", "trust": true})
        })
        .collect();
    jobs(&lab, &all);
    let done = batch(&lab, &["--jobs", "2", "--transport", "warm"]);
    assert!(done.succeeded(), "{} {}", done.stdout_text(), done.stderr_text());
    let app = lab.workspace().join("app");
    assert!(!app.join("made-0.txt").exists());
    for (id, result) in results(&lab) {
        let patch = result["patch"].as_str().unwrap();
        assert_eq!(patch.matches("diff --git").count(), 1, "{id}: {patch}");
        lab.home.write("patch", patch).unwrap();
        git(&app, &["apply", lab.workspace().join("patch").to_str().unwrap()]);
    }
    for number in 0..4 {
        let made = std::fs::read_to_string(app.join(format!("made-{number}.txt"))).unwrap();
        assert_eq!(made, format!("by made-{number}.txt\n"));
    }
    // What they used counts for the folder that was copied.
    usage_counts_all_jobs(&lab, &["--dir", "app"]);
    nothing_is_left(&lab);
}

#[test]
fn real_cli_jobs_in_places_that_are_made_alike_share_a_warm_session() {
    let lab = lab("alike");
    let repo = lab.workspace().join("repo");
    for (name, text) in [("a.txt", "a\n"), (".gitignore", "target\n"), ("GEMINI.md", "Be brief.\n")] {
        lab.home.write(format!("repo/{name}"), text).unwrap();
    }
    git(&repo, &["init", "-q", "-b", "main"]);
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "one"]);
    for (place, value) in [("copy", json!(true)), ("git", json!({"url": repo}))] {
        let dir = if place == "copy" { "repo" } else { "." };
        let job = |word: &str| json!({"id": word, "prompt": word, "dir": dir, place: value, "trust": true});
        jobs(&lab, &["alder", "birch", "cedar"].map(job));
        let _first_time = std::fs::remove_file(lab.workspace().join("results.jsonl"));
        let done = batch(&lab, &["--jobs", "1", "--transport", "warm"]);
        assert!(done.succeeded(), "{} {}", done.stdout_text(), done.stderr_text());
        let results = results(&lab);
        let mut sessions: Vec<&Value> =
            results.values().map(|result| &result["outcome"]["session_id"]).collect();
        sessions.dedup();
        assert_eq!(sessions.len(), 1, "{place}: {sessions:?}");
        for (word, result) in &results {
            assert_eq!((answered(result), &result["patch"]), (format!("heard {word}").as_str(), &json!("")));
        }
    }
    nothing_is_left(&lab);
}

#[test]
fn real_cli_jobs_in_checkouts_work_on_a_commit_and_give_patches() {
    let lab = lab("checkouts");
    lab.home.write("repo/src/a.txt", "a\n").unwrap();
    let repo = lab.workspace().join("repo");
    git(&repo, &["init", "-q", "-b", "main"]);
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "one"]);
    let commit = git(&repo, &["rev-parse", "HEAD"]);
    let url = format!("file://{}", repo.display());
    let job = |id: &str, prompt: &str, dir: &str| json!({"id": id, "prompt": prompt, "git": {"url": url, "ref": "main"}, "dir": dir, "approval": "yolo", "trust": true});
    jobs(
        &lab,
        &[
            job("write", "write b.txt", "src"),
            job("shell", "shell git log --format=%s > log.txt; rm src/a.txt", "."),
        ],
    );
    let done = batch(&lab, &["--jobs", "2"]);
    assert!(done.succeeded(), "{} {}", done.stdout_text(), done.stderr_text());
    let results = results(&lab);
    let patch = |id: &str| results[id]["patch"].as_str().unwrap();
    assert!(
        patch("write").starts_with("diff --git a/src/b.txt b/src/b.txt\nnew file mode 100644\n"),
        "{}",
        patch("write")
    );
    assert!(
        patch("shell").contains("+one\n") && patch("shell").contains("deleted file mode 100644"),
        "{}",
        patch("shell")
    );
    assert!(results.values().all(|result| result["commit"] == commit.as_str()));
    assert_eq!(git(&repo, &["status", "--porcelain"]), "");
    nothing_is_left(&lab);
}

#[test]
fn real_cli_when_the_api_says_to_wait_all_jobs_wait_so_long() {
    let limited = AtomicU32::new(0);
    let scenario =
        Scenario::dynamic(move |request: &RecordedRequest| match limited.fetch_add(1, Ordering::Relaxed) {
            0 => Turn::rate_limited(Duration::from_secs(3)),
            _ => model(request),
        });
    let lab = Lab::real("limited", "0.61.0", scenario);
    jobs(&lab, &["one", "two", "three"].map(|prompt| json!({"prompt": prompt, "max_attempts": 1})));
    let done = batch(&lab, &["--jobs", "1"]);
    assert!(done.succeeded(), "{} {}", done.stdout_text(), done.stderr_text());
    assert!(done.stderr_text().contains("the API's rate limit is reached"), "{}", done.stderr_text());
    let results = results(&lab);
    assert_eq!(
        (&results["1"]["attempt"], &results["1"]["earlier"][0]["kind"]),
        (&json!(2), &json!("rate_limited"))
    );
    nothing_is_left(&lab);
}
