//! Runs: from their start to their end, and for whoever comes later.

use std::os::unix::fs::PermissionsExt;

use alhena_model::Setting;
use alhena_testbed::{Deadline, Script, Step, processes_with_env};
use serde_json::json;

use super::{alhena, goes_on, says, serve};
use crate::cli::settings::BAD;
use crate::lab::HostileLab;
use crate::serve_client::Served;

#[test]
fn a_run_is_told_from_its_start_to_its_end_and_kept() {
    let place = says("whole-run", "Hello there");
    let served = serve(&place, &[]);
    let started = served.post("/v1/runs", &json!({"prompt": "Say hello", "model": "gemini-2.5-flash"}));
    assert_eq!(started.status, 201);
    let run = started.json();
    let path = started.header("location").unwrap().to_owned();
    assert_eq!(path, format!("/v1/runs/{}", run["id"].as_str().unwrap()));
    assert_eq!(
        (run["prompt"].as_str(), run["model"].as_str()),
        (Some("Say hello"), Some("gemini-2.5-flash"))
    );
    let events = served.events(run["id"].as_str().unwrap());
    let numbers: Vec<u64> = events.iter().map(|(id, _)| *id).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>(), "each has its number");
    assert!(events.iter().all(|(id, event)| event["seq"] == json!(id)));
    let last = &events.last().unwrap().1;
    assert_eq!(
        (last["type"].as_str(), last["outcome"]["status"].as_str()),
        (Some("finished"), Some("success"))
    );
    // Whoever saw the last event can ask for everything at once.
    let told = served.get(&path);
    assert_eq!((told["state"].as_str(), told["status"].as_str()), (Some("finished"), Some("success")));
    assert_eq!(told["outcome"], last["outcome"]);
    assert_eq!(served.get(&format!("{path}/outcome")), last["outcome"]);
    assert_eq!(served.get("/v1/runs?state=finished&limit=5")["runs"].as_array().unwrap().len(), 1);
    assert_eq!(served.get("/v1/runs?state=running")["runs"], json!([]));
    let recording = served.ask("GET", &format!("{path}/recording"), "");
    assert_eq!((recording.status, recording.header("content-type")), (200, Some("application/x-tar")));
    // It is one that `alhena parse` reads.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("it.tar"), &recording.bytes).unwrap();
    let unpacked = std::process::Command::new("tar").args(["-xf", "it.tar"]).current_dir(dir.path()).status();
    assert!(unpacked.unwrap().success());
    let inside = dir.path().join(format!("alhena-{}", run["id"].as_str().unwrap()));
    let parsed = alhena(&place, &["parse", "--as", "outcome", inside.to_str().unwrap()]);
    let parsed: serde_json::Value = serde_json::from_slice(&parsed.stdout).unwrap();
    assert_eq!(parsed["status"], "success");
}

#[test]
fn whoever_was_cut_off_goes_on_behind_the_last_event() {
    let place = says("cut-off", "Hello");
    let served = serve(&place, &[]);
    let id = served.run(&json!({"prompt": "go"}));
    let all = served.events(&id);
    let path = format!("/v1/runs/{id}/events");
    let rest: Vec<_> = served.follow(&path, &[("Last-Event-ID", "1")]).collect();
    assert_eq!(rest, all[2..]);
    // Whoever has all of what is over need not come back; an EventSource does, unless it is told so.
    let last = all.last().unwrap().0;
    let again = |id: u64| served.follow(&path, &[("Last-Event-ID", &id.to_string())]).status;
    assert_eq!((again(last), again(last + 1), again(last - 1)), (204, 204, 200));
    assert_eq!(served.follow(&format!("{path}?after={last}"), &[]).status, 200, "it may come back with less");
    let rest: Vec<_> = served.follow(&format!("{path}?after=0"), &[]).collect();
    assert_eq!(rest, all[1..]);
    let lines = served.ask_with("GET", &path, &[("Accept", "application/jsonl")], "");
    assert_eq!(lines.header("content-type"), Some("application/jsonl"));
    let lines: Vec<serde_json::Value> =
        lines.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, all.into_iter().map(|(_, event)| event).collect::<Vec<_>>());
    assert_eq!(served.follow(&path, &[("Last-Event-ID", "many")]).status, 400);
}

#[test]
fn a_run_that_is_cancelled_leaves_no_process() {
    let place = goes_on("cancelled");
    let served = serve(&place, &[]);
    let id = served.run(&json!({"prompt": "go"}));
    let mut events = served.follow(&format!("/v1/runs/{id}/events"), &[]);
    events.kind("text");
    assert_eq!(served.ask("GET", &format!("/v1/runs/{id}/outcome"), "").status, 409);
    assert_eq!(served.ask("GET", &format!("/v1/runs/{id}/recording"), "").status, 409);
    let now = served.get("/v1/now");
    assert_eq!(
        (now["items"][0]["kind"].as_str(), now["items"][0]["id"].as_str()),
        (Some("run"), Some(id.as_str()))
    );
    assert_eq!(served.post(&format!("/v1/runs/{id}/cancel"), &json!({})).status, 202);
    assert_eq!(events.kind("finished")["outcome"]["status"], "cancelled");
    nothing_but_the_server(&place, served.pid());
    assert_eq!(served.get("/v1/now")["items"], json!([]));
    // Whoever does not want to follow gets what there is, and the end.
    let snapshots: Vec<_> = served.follow("/v1/now/events?follow=false", &[]).collect();
    assert_eq!(snapshots, [(0, served.get("/v1/now"))]);
    assert_eq!(served.post(&format!("/v1/runs/{id}/cancel"), &json!({})).status, 202, "twice does no harm");
}

/// Of all processes in the place only the server is left.
pub fn nothing_but_the_server(place: &HostileLab, server: u32) {
    let mark = format!("HOME={}", place.lab.home.path().display());
    let others = || processes_with_env(&mark).into_iter().filter(|pid| *pid != server).collect::<Vec<_>>();
    let deadline = Deadline::after(std::time::Duration::from_secs(30));
    assert!(deadline.wait_until(|| others().is_empty()), "{:?}", others());
}

#[test]
fn the_same_key_is_the_same_run_and_another_request_under_it_is_refused() {
    let place = says("keys", "Hello");
    let served = serve(&place, &[]);
    let start =
        |key: &str, body: &str| served.ask_with("POST", "/v1/runs", &[("Idempotency-Key", key)], body);
    let first = start("k1", r#"{"prompt": "go", "model": "m"}"#);
    let again = start("k1", r#"{ "model": "m", "prompt": "go" }"#);
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(
        (first.header("idempotent-replayed"), again.header("idempotent-replayed")),
        (None, Some("true"))
    );
    let other = start("k1", r#"{"prompt": "stop"}"#);
    assert_eq!((other.status, other.kind().as_str()), (409, "conflict"));
    assert_ne!(start("k2", r#"{"prompt": "go", "model": "m"}"#).json()["id"], first.json()["id"]);
    for wrong in [&"k".repeat(201), "", "two words", "a\tb", "ü"] {
        assert_eq!(start(wrong, r#"{"prompt": "go"}"#).status, 400, "{wrong:?}");
    }
}

#[test]
fn a_run_that_cannot_begin_is_a_run_that_failed() {
    let place = says("not-begun", "Hello");
    let mut env = place.lab.env.clone();
    env.set("GEMINI_CLI_PATH", "/nowhere/gemini");
    let served = super::Served::start(&env, &place.lab.workspace(), &[]);
    let id = served.run(&json!({"prompt": "go"}));
    let events = served.events(&id);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].1["outcome"]["failure"]["kind"], "not_installed");
    let run = served.get(&format!("/v1/runs/{id}"));
    assert_eq!(
        (run["state"].as_str(), run["failure"]["kind"].as_str()),
        (Some("finished"), Some("not_installed"))
    );
    assert_eq!(served.ask("GET", &format!("/v1/runs/{id}/recording"), "").status, 404);
}

#[test]
fn a_root_and_a_highest_mode_hold_for_what_a_request_asks() {
    let place = says("root", "Hello");
    let root = place.lab.workspace();
    std::fs::create_dir(root.join("app")).unwrap();
    std::os::unix::fs::symlink("/", root.join("out")).unwrap();
    let served = serve(
        &place,
        &["--root", root.to_str().unwrap(), "--max-approval", "auto-edit", "--allow-env", "GREETING"],
    );
    let me = served.get("/v1/me");
    assert_eq!((me["root"].as_str(), me["max_approval"].as_str()), (root.to_str(), Some("auto-edit")));
    assert_eq!(me["approvals"], json!(["plan", "default", "auto-edit"]));
    for (name, value) in [
        ("dir", json!("/")),
        ("dir", json!("..")),
        ("dir", json!("out")),
        ("include_dir", json!(["/etc"])),
        ("prompt_file", json!("/etc/passwd")),
        ("schema", json!("out/etc/passwd")),
        ("approval", json!("yolo")),
        ("allow_tool", json!("run_shell_command")),
        ("env", json!({"PATH": "/tmp"})),
        ("hook", json!("before-tool=id")),
    ] {
        let mut options = json!({"prompt": "go"});
        if name == "prompt_file" {
            options = json!({});
        }
        options[name] = value.clone();
        let reply = served.post("/v1/runs", &options);
        assert_eq!((reply.status, reply.kind().as_str()), (403, "forbidden"), "{name}: {value}");
    }
    let id = served
        .run(&json!({"prompt": "go", "dir": "app", "approval": "auto-edit", "env": {"GREETING": "hi"}}));
    assert_eq!(served.events(&id).last().unwrap().1["outcome"]["status"], "success");
    let starts = place.hostile.starts().unwrap();
    let start = starts.last().unwrap();
    assert_eq!(
        (start.cwd.as_str(), start.env["GREETING"].as_str()),
        (root.join("app").to_str().unwrap(), "hi")
    );
    // A file's default counts no more than a request.
    let config = place.lab.home.path().join("alhena/config.toml");
    std::fs::write(config, "approval = \"yolo\"\n").unwrap();
    let id = served.run(&json!({"prompt": "go"}));
    assert_eq!(served.events(&id).last().unwrap().1["outcome"]["status"], "success");
    assert_eq!(served.get(&format!("/v1/runs/{id}"))["approval"], "auto-edit");
    let argv = place.hostile.starts().unwrap().last().unwrap().argv.join(" ");
    assert!(argv.contains("auto_edit") && !argv.contains("yolo"), "{argv}");
}

#[test]
fn under_the_lowest_limit_a_run_is_one_that_plans_and_no_file_is_replaced() {
    let place = says("lowest", "Hello");
    let notes = place.lab.workspace().join("notes.txt");
    std::fs::write(&notes, "mine").unwrap();
    let served = serve(&place, &["--max-approval", "plan"]);
    let id = served.run(&json!({"prompt": "go"}));
    assert_eq!(served.events(&id).last().unwrap().1["outcome"]["status"], "success");
    assert_eq!(served.get(&format!("/v1/runs/{id}"))["approval"], "plan");
    let over = json!({"prompt": "go", "cassette": "notes.txt", "cassette_mode": "record"});
    let reply = served.post("/v1/runs", &over);
    assert_eq!((reply.status, reply.kind().as_str()), (403, "forbidden"), "{}", reply.body);
    // Where edits may be made neither.
    drop(served);
    let served = serve(&place, &["--max-approval", "auto-edit"]);
    let id = served.run(&over);
    let outcome = served.events(&id).pop().unwrap().1["outcome"].clone();
    assert_eq!(outcome["failure"]["kind"], "input", "{outcome}");
    assert!(outcome["failure"]["message"].as_str().unwrap().contains("not a cassette"), "{outcome}");
    assert!(!outcome["failure"]["hint"].as_str().unwrap().contains("--"), "{outcome}");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "mine");
}

/// A CLI that asks the API once and says what it answered.
const ASKS_THE_API: &str = r#"#!/bin/bash
case " $* " in *" --version "*) echo 0.61.0; exit ;; esac
at=${GOOGLE_GEMINI_BASE_URL#http://}; at=${at%%/*}
exec 3<>"/dev/tcp/${at%:*}/${at#*:}"
printf 'POST /v1beta/models/m:streamGenerateContent HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}' "$at" >&3
answer=$(timeout 30 grep -a -m 1 -o 'said:.*' <&3 | tr -d '\r"\\')
echo '{"type":"init","session_id":"s","model":"m"}'
echo '{"type":"message","role":"user","content":"go"}'
echo "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"$answer\",\"delta\":true}"
echo '{"type":"result","status":"success","stats":{}}'
"#;

/// Replay substitutes no variable of the server, whoever edited the cassette.
#[test]
fn an_edited_cassette_gets_no_secret_of_the_server_over_http_in_plan_mode() {
    const SECRETS: [(&str, &str); 2] = [
        ("GEMINI_API_KEY", "AIzaSy-0123456789-abcdef"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"),
    ];
    let mut place = says("cassette-secrets", "not started");
    let cli = place.lab.home.path().join("asks");
    std::fs::write(&cli, ASKS_THE_API).unwrap();
    std::fs::set_permissions(&cli, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (name, value) in SECRETS {
        place.lab.env.set(name, value);
    }
    place.lab.env.set("GEMINI_CLI_PATH", &cli);
    let wanted = "said: [[secret:GEMINI_API_KEY]] [[secret:AWS_SECRET_ACCESS_KEY]] [[secret:key]]";
    let cassette = json!({"cassette": 1, "upstream": "https://x", "interactions": [{
        "request": {"method": "POST", "path": "/v1beta/models/m:streamGenerateContent", "body": {}},
        "response": {"status": 200, "headers": {"content-type": "text/plain"}, "chunks": [format!("{wanted}\n")]},
    }]});
    std::fs::write(place.lab.workspace().join("talk.json"), cassette.to_string()).unwrap();
    let served = Served::start(&place.lab.env, &place.lab.workspace(), &["--max-approval", "plan"]);
    let id = served.run(&json!({"prompt": "go", "cassette": "talk.json", "cassette_mode": "replay"}));
    let events = served.events(&id);
    assert_eq!(served.get(&format!("/v1/runs/{id}"))["approval"], "plan");
    let outcome = &events.last().unwrap().1["outcome"];
    assert_eq!((&outcome["status"], &outcome["text"]), (&json!("success"), &json!(wanted)), "{outcome}");
    let recording = served.ask("GET", &format!("/v1/runs/{id}/recording"), "").bytes;
    let told = format!("{events:?}{}", String::from_utf8_lossy(&recording));
    assert!(SECRETS.iter().all(|(_, value)| !told.contains(value)), "{told}");
}

#[test]
fn what_is_said_of_a_run_names_fields_and_what_others_say_is_left_as_it_is() {
    let line = |value: serde_json::Value| Step::Line(value.to_string());
    let steps = [
        Step::Init,
        Step::User,
        line(json!({"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t", "parameters": {}})),
        line(json!({"type": "tool_result", "tool_id": "t", "status": "error",
            "error": {"type": "tool_not_registered", "message": "not found; try --approval yolo"}})),
        Step::Error { severity: "warning".to_owned(), message: "the CLI says --model".to_owned() },
        Step::Text("use --approval yolo".to_owned()),
        Step::Result,
    ];
    let place = HostileLab::new("fields", Script::new(steps));
    let served = serve(&place, &[]);
    let id = served.run(&json!({"prompt": "go with --approval"}));
    let events = served.events(&id);
    let all = |kind: &str| -> Vec<&serde_json::Value> {
        events.iter().map(|(_, event)| event).filter(|event| event["type"] == kind).collect()
    };
    let warnings: Vec<&str> = all("warning").iter().map(|event| event["message"].as_str().unwrap()).collect();
    let ours = "The model asked for run_shell_command, which was not offered to it; `approval` yolo offers it, unless it is denied";
    assert!(warnings.contains(&ours) && warnings.contains(&"the CLI says --model"), "{warnings:#?}");
    assert_eq!(all("text")[0]["delta"], "use --approval yolo");
    assert_eq!(all("tool_result")[0]["error"]["message"], "not found; try --approval yolo");
    let outcome = &all("finished")[0]["outcome"];
    assert_eq!(outcome["warnings"], json!(warnings), "the same words at the end");
}

#[test]
fn errors_over_http_name_the_field_with_the_bad_value() {
    let place = says("bad-settings", "Hello");
    let full = place.lab.workspace().join("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("file"), "").unwrap();
    std::fs::write(place.lab.workspace().join("bad.json"), "[1]").unwrap();
    let served = serve(&place, &["--max-approval", "yolo", "--allow-programs"]);
    for (setting, value, _) in BAD {
        let mut options = json!({setting.name(): value});
        if *setting != Setting::PromptFile {
            options["prompt"] = json!("hello");
        }
        let reply = served.post("/v1/runs", &options);
        let told = match reply.status {
            201 => {
                let failure = served.events(reply.json()["id"].as_str().unwrap()).pop().unwrap().1["outcome"]
                    ["failure"]
                    .clone();
                format!("{} {}", failure["message"], failure["hint"])
            }
            _ => reply.body.clone(),
        };
        let flag = format!("--{}", setting.name().replace('_', "-"));
        assert!(told.contains(setting.name()) && !told.contains(&flag), "{setting}: {told}");
    }
}
