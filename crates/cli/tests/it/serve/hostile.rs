//! Clients that mean no good, or do everything at once.

use std::collections::HashSet;

use alhena_testbed::{Deadline, Script, Step};
use serde_json::{Value, json};

use super::talks::{open, quick};
use super::{goes_on, says, serve};
use crate::lab::HostileLab;
use crate::serve_client::Served;

/// So many at once.
const MANY: usize = 20;

fn all_at_once<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..MANY)
            .map(|number| {
                scope.spawn({
                    let work = &work;
                    move || work(number)
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

fn start(served: &Served, path: &str, key: &str, options: &Value) -> crate::serve_client::Reply {
    served.ask_with("POST", path, &[("Idempotency-Key", key)], &options.to_string())
}

#[test]
fn a_key_that_many_send_at_once_begins_one_run_and_one_conversation() {
    let (place, agent) = quick("one-key");
    let served = serve(&place, &["--allow-programs", "--max-runs", "1", "--max-conversations", "1"]);
    for (path, options) in
        [("/v1/runs", json!({"prompt": "go"})), ("/v1/conversations", json!({"agent_command": agent}))]
    {
        let replies = all_at_once(|_| start(&served, path, "same", &options));
        assert!(replies.iter().all(|reply| reply.status == 201), "{replies:?}");
        let ids: HashSet<String> = replies.iter().map(|reply| reply.json()["id"].to_string()).collect();
        assert_eq!(ids.len(), 1);
        let new = replies.iter().filter(|reply| reply.header("idempotent-replayed").is_none()).count();
        assert_eq!(new, 1, "all others are told that it was there");
    }
}

#[test]
fn the_same_request_finds_its_run_also_where_it_could_not_begin_any_more() {
    let place = says("folder-gone", "Hello");
    let served = serve(&place, &[]);
    let folder = place.lab.workspace().join("app");
    std::fs::create_dir(&folder).unwrap();
    let options = json!({"prompt": "go", "dir": "app"});
    let first = start(&served, "/v1/runs", "k", &options).json()["id"].clone();
    served.events(first.as_str().unwrap());
    std::fs::remove_dir(&folder).unwrap();
    let again = start(&served, "/v1/runs", "k", &options);
    assert_eq!((again.status, &again.json()["id"]), (201, &first), "{}", again.body);
    assert_eq!(start(&served, "/v1/runs", "other", &options).status, 400);
}

#[test]
fn whoever_says_to_have_more_than_there_is_gets_nothing_and_holds_up_nobody() {
    let place = says("beyond", "Hello");
    let served = serve(&place, &[]);
    let id = served.run(&json!({"prompt": "go"}));
    let count = served.events(&id).len();
    let path = format!("/v1/runs/{id}/events");
    for last in [count.to_string(), "1000000".to_owned(), "9".repeat(18)] {
        let mut events = served.follow(&path, &[("Last-Event-ID", &last)]);
        assert_eq!((events.status, events.next()), (204, None), "{last}");
    }
    for wrong in ["-1", "+1", "1000000000000000000", "18446744073709551616", "1.5", "0x1", "1 2", "\u{661}"] {
        assert_eq!(served.follow(&path, &[("Last-Event-ID", wrong)]).status, 400, "{wrong}");
    }
    for wrong in ["-1", "9223372036854775808", "x", ""] {
        let status = served.follow(&format!("{path}?after={wrong}"), &[("Last-Event-ID", "0")]).status;
        assert_eq!(status, 400, "{wrong}");
    }
}

#[test]
fn prompts_cancels_and_closes_at_once_leave_a_conversation_that_is_whole_and_closed() {
    let (place, agent) = quick("all-at-once");
    let served = serve(&place, &["--allow-programs", "--max-conversations", "100"]);
    for round in 0..5 {
        let path = open(&served, &agent);
        if round % 2 == 0 {
            served.until(&path, |view| view["state"] == "idle");
        }
        let statuses = all_at_once(|number| match number % 4 {
            0 | 1 => {
                let text = if number % 8 == 0 { "please ask" } else { "go" };
                served.post(&format!("{path}/prompt"), &json!({"text": text})).status
            }
            2 => served.post(&format!("{path}/cancel"), &json!({})).status,
            _ if number > MANY / 2 => served.ask("DELETE", &path, "").status,
            _ => served.ask("PATCH", &path, "{\"mode\": \"plan\"}").status,
        });
        assert!(statuses.iter().all(|status| matches!(status, 200 | 202 | 409)), "{statuses:?}");
        let view = served.get(&path);
        assert_eq!((view["state"].as_str(), &view["permissions"]), (Some("closed"), &json!([])), "{view}");
        let events: Vec<(u64, Value)> = served.follow(&format!("{path}/events"), &[]).collect();
        assert!(
            events.iter().enumerate().all(|(at, (id, event))| *id == at as u64 && event["seq"] == json!(at))
        );
        let count = |kind: &str| events.iter().filter(|(_, event)| event["type"] == kind).count() as u64;
        assert_eq!((count("closed"), events.last().unwrap().1["type"].as_str()), (1, Some("closed")));
        assert_eq!(view["turns"], json!(count("turn_finished")), "each turn has its end: {events:#?}");
        assert_eq!(count("permission"), count("permission_resolved"), "{events:#?}");
    }
    super::runs::nothing_but_the_server(&place, served.pid());
}

#[test]
fn whoever_heard_that_a_conversation_is_closed_finds_it_closed() {
    let (place, agent) = quick("closed-heard");
    let served = serve(&place, &["--allow-programs"]);
    for _ in 0..5 {
        let path = open(&served, &agent);
        let mut events = served.follow(&format!("{path}/events"), &[]);
        std::thread::scope(|scope| {
            scope.spawn(|| served.ask("DELETE", &path, ""));
            events.kind("closed");
            assert_eq!(served.get(&path)["state"], "closed");
        });
    }
}

#[test]
fn a_list_is_not_taken_for_an_object() {
    let (place, agent) = quick("lists");
    let served = serve(&place, &["--allow-programs"]);
    let path = open(&served, &agent);
    for (method, path, body) in [
        ("PATCH", path.clone(), "[null, null]"),
        ("PATCH", path.clone(), " [\"plan\", null]"),
        ("POST", format!("{path}/prompt"), "[\"go\"]"),
        ("POST", format!("{path}/permissions/1"), "[\"allow\", null]"),
        ("POST", "/v1/terminals/x/send".to_owned(), "[\"go\", true]"),
        ("POST", "/v1/runs".to_owned(), "[]"),
    ] {
        let reply = served.ask(method, &path, body);
        assert_eq!((reply.status, reply.kind().as_str()), (400, "input"), "{method} {path} {body}");
    }
    assert_eq!(served.get(&path)["turns"], 0);
}

#[test]
fn a_prompt_of_a_megabyte_is_a_prompt() {
    let (place, agent) = quick("large-prompt");
    let served = serve(&place, &["--allow-programs"]);
    let text = "ü".repeat(500_000);
    let id = served.run(&json!({"prompt": text}));
    assert_eq!(served.events(&id).last().unwrap().1["outcome"]["status"], "success");
    let told = served.get("/v1/runs").to_string().len();
    assert!(told < 20_000, "a list has no more than the beginning: {told} bytes");
    let path = open(&served, &agent);
    let mut events = served.follow(&format!("{path}/events"), &[]);
    assert_eq!(served.post(&format!("{path}/prompt"), &json!({"text": text})).status, 202);
    assert_eq!(events.kind("turn_finished")["outcome"]["status"], "success");
    assert!(served.get(&path).to_string().len() < 20_000);
}

#[test]
fn what_no_program_can_be_given_is_refused() {
    let place = says("zero-byte", "Hello");
    let served = serve(&place, &["--allow-env", "A"]);
    for options in [
        json!({"prompt": "a\u{0}b"}),
        json!({"prompt": "go", "model": "a\u{0}b"}),
        json!({"prompt": "go", "dir": "a\u{0}b"}),
        json!({"prompt": "go", "env": {"A": "a\u{0}b"}}),
    ] {
        let reply = served.post("/v1/runs", &options);
        if reply.status == 201 {
            let outcome =
                served.events(reply.json()["id"].as_str().unwrap()).pop().unwrap().1["outcome"].clone();
            let kind = outcome["failure"]["kind"].as_str();
            assert!(outcome["status"] == "success" || kind == Some("input"), "{options}: {outcome:#}");
        } else {
            assert_eq!((reply.status, reply.kind().as_str()), (400, "input"), "{options}");
        }
    }
    assert_eq!(served.get("/v1/me")["access"], "full");
}

#[test]
fn a_root_holds_also_when_folders_become_links_after_the_start() {
    let place = says("swapped", "Hello");
    let root = place.lab.workspace().join("root");
    let outside = place.lab.workspace().join("outside");
    for dir in [&root, &root.join("app"), &outside, &outside.join("app")] {
        std::fs::create_dir(dir).unwrap();
    }
    std::fs::write(root.join("prompt.txt"), "go").unwrap();
    std::fs::write(outside.join("secret.txt"), "secret").unwrap();
    let served = serve(&place, &["--root", root.to_str().unwrap()]);
    let status = |options: Value| {
        let reply = served.post("/v1/runs", &options);
        if reply.status == 201 {
            served.events(reply.json()["id"].as_str().unwrap());
        }
        reply.status
    };
    assert_eq!(status(json!({"prompt": "go", "dir": "app"})), 201);
    assert_eq!(status(json!({"prompt_file": "prompt.txt"})), 201);
    std::fs::remove_dir(root.join("app")).unwrap();
    std::os::unix::fs::symlink(&outside, root.join("app")).unwrap();
    std::fs::remove_file(root.join("prompt.txt")).unwrap();
    std::os::unix::fs::symlink(outside.join("secret.txt"), root.join("prompt.txt")).unwrap();
    assert_eq!(status(json!({"prompt": "go", "dir": "app"})), 403);
    assert_eq!(status(json!({"prompt_file": "prompt.txt"})), 403);
    assert_eq!(status(json!({"prompt": "go", "include_dir": ["app"]})), 403);
    // The root itself.
    std::fs::rename(&root, place.lab.workspace().join("moved")).unwrap();
    std::os::unix::fs::symlink(&outside, &root).unwrap();
    assert_eq!(status(json!({"prompt": "go", "dir": "app"})), 403);
    assert_ne!(status(json!({"prompt": "go"})), 500);
    let starts = place.hostile.starts().unwrap();
    assert!(starts.iter().all(|start| !start.cwd.contains("outside")), "{starts:?}");
}

#[test]
fn many_who_cancel_one_run_stop_it_once() {
    let place = goes_on("cancels");
    let served = serve(&place, &[]);
    let id = served.run(&json!({"prompt": "go"}));
    let mut events = served.follow(&format!("/v1/runs/{id}/events"), &[]);
    events.kind("text");
    let statuses = all_at_once(|_| served.post(&format!("/v1/runs/{id}/cancel"), &json!({})).status);
    assert!(statuses.iter().all(|status| *status == 202), "{statuses:?}");
    let rest: Vec<Value> = events.map(|(_, event)| event).collect();
    assert_eq!(rest.iter().filter(|event| event["type"] == "finished").count(), 1);
    assert_eq!(rest.last().unwrap()["outcome"]["status"], "cancelled");
    super::runs::nothing_but_the_server(&place, served.pid());
}

#[test]
fn whoever_asks_for_recordings_and_takes_none_holds_up_nobody() {
    let steps = [Step::Init, Step::User, Step::Deltas(16 << 20), Step::Result];
    let place = HostileLab::new("not-taken", Script::new(steps));
    let served = serve(&place, &[]);
    let id = served.run(&json!({"prompt": "go"}));
    served.until(&format!("/v1/runs/{id}"), |run| run["state"] == "finished");
    let path = format!("/v1/runs/{id}/recording");
    let ask = || served.follow(&path, &[]);
    let mut waiting = Vec::new();
    let refused = loop {
        let one = ask();
        match one.status {
            200 if waiting.len() < 100 => waiting.push(one),
            status => break status,
        }
    };
    assert_eq!((refused, waiting.len()), (429, 16));
    assert_eq!(served.get("/v1/now")["items"], json!([]), "others are served meanwhile");
    assert_eq!(served.get("/v1/sessions")["sessions"], json!([]));
    // There is room again when one is read, or given up.
    waiting.pop();
    let deadline = Deadline::after(std::time::Duration::from_secs(60));
    assert!(deadline.wait_until(|| ask().status == 200));
}

#[test]
fn many_who_ask_at_once_what_the_cli_can_do_have_it_started_once() {
    use std::os::unix::fs::PermissionsExt;
    let place = says("asked-at-once", "hi");
    let (cli, starts) = (place.lab.workspace().join("gemini"), place.lab.workspace().join("starts"));
    std::fs::write(&cli, format!("#!/bin/sh\necho one >> {}\nsleep 0.2\necho 0.61.0\n", starts.display()))
        .unwrap();
    std::fs::set_permissions(&cli, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut env = place.lab.env.clone();
    env.set("GEMINI_CLI_PATH", &cli);
    let served = Served::start(&env, &place.lab.workspace(), &[]);
    assert!(all_at_once(|_| served.get("/v1/capabilities")["version"] == "0.61.0").into_iter().all(|so| so));
    assert_eq!(std::fs::read_to_string(&starts).unwrap().lines().count(), 1);
}

#[test]
fn a_name_that_is_far_too_long_is_not_found_and_never_the_servers_fault() {
    let place = says("long-names", "Hello");
    let served = serve(&place, &[]);
    for length in [65, 256, 3000, 10_000] {
        let long = "a".repeat(length);
        let found = [
            ("GET", "runs", ""),
            ("GET", "runs", "/events"),
            ("GET", "runs", "/outcome"),
            ("GET", "runs", "/recording"),
            ("POST", "runs", "/cancel"),
            ("GET", "conversations", ""),
            ("DELETE", "conversations", ""),
            ("GET", "conversations", "/events"),
            ("GET", "conversations", "/permissions"),
            ("POST", "conversations", "/cancel"),
            ("GET", "sessions", ""),
            ("GET", "sessions", "/export"),
            ("GET", "batches", ""),
            ("GET", "batches", "/results"),
        ];
        for (method, kind, what) in found {
            let reply = served.ask(method, &format!("/v1/{kind}/{long}{what}"), "");
            assert_eq!(
                (reply.status, reply.kind().as_str()),
                (404, "not_found"),
                "{kind} {length}: {}",
                reply.body
            );
        }
        // Without tmux nobody knows.
        for (method, what) in [("GET", ""), ("GET", "/screen"), ("POST", "/exit")] {
            let reply = served.ask(method, &format!("/v1/terminals/{long}{what}"), "");
            assert!(matches!(reply.status, 404 | 503), "{length}: {}", reply.body);
        }
        for query in [
            "sessions?dir=/",
            "sessions/search?q=hello&dir=/",
            "sessions/search?q=",
            "usage?dir=/",
            "usage?since=",
        ] {
            let reply = served.ask("GET", &format!("/v1/{query}{long}"), "");
            assert!(matches!(reply.status, 200 | 400), "{query} {length}: {} {}", reply.status, reply.body);
        }
        let reply = served.post("/v1/runs", &json!({"prompt": "go", "dir": format!("/{long}")}));
        assert_eq!(reply.status, 400, "{length}: {}", reply.body);
        let reply = served.post("/v1/runs", &json!({"prompt": "go", "resume": long}));
        assert!(matches!(reply.status, 201 | 400), "{length}: {}", reply.body);
    }
}
