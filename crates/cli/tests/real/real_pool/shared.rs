//! What sessions of one process would share, looked for where they do share one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alhena_agent::{Approval, Finder, Pool, PoolOptions, ResolvedRequest};
use alhena_model::Status;
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_testbed::Deadline;
use serde_json::json;

use super::{VERSION, agents, asked, lab, nothing_is_left, pool, run, start};
use crate::lab::{Build, Lab};

/// Prompts in two folders by turns, on one process at a time: whoever shares it comes right behind. What the API got of each.
fn by_turns(lab: &Lab, settle: impl Fn(&Path, &str)) -> Vec<(&'static str, Arc<RecordedRequest>)> {
    let pool = pool(1);
    let mut got = Vec::new();
    for (name, word) in [("first", "alder"), ("second", "birch"), ("first", "cedar"), ("second", "elm")] {
        let dir = lab.workspace().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        settle(&dir, name);
        let outcome = run(lab, &pool, lab.request(word).dir(dir));
        assert_eq!(outcome.text.all(), format!("heard {word}"), "{:?}", outcome.failure);
        got.push((name, asked(lab).pop().unwrap()));
    }
    pool.close_blocking();
    nothing_is_left(lab);
    got
}

#[test]
fn real_cli_a_folders_env_does_not_reach_a_prompt_in_another() {
    let lab = lab("env");
    let got = by_turns(&lab, |dir, name| {
        let variable = format!("GEMINI_CLI_CUSTOM_HEADERS=X-Word: env-of-{name}\n");
        std::fs::write(dir.join(".env"), variable).unwrap();
    });
    for (name, request) in got {
        let word = request.headers.get("x-word").map(String::as_str);
        assert_eq!(word, Some(format!("env-of-{name}").as_str()));
    }
}

#[test]
fn real_cli_the_name_of_a_folders_context_file_does_not_reach_a_prompt_in_another() {
    let lab = lab("context");
    let got = by_turns(&lab, |dir, name| {
        std::fs::create_dir_all(dir.join(".gemini")).unwrap();
        let settings = json!({"context": {"fileName": format!("{name}.md")}});
        std::fs::write(dir.join(".gemini/settings.json"), settings.to_string()).unwrap();
        for other in ["first", "second"] {
            std::fs::write(dir.join(format!("{other}.md")), format!("memory-{other}-in-{name}")).unwrap();
        }
    });
    for (name, request) in got {
        let told =
            ["first", "second"].map(|other| request.raw_body.contains(&format!("memory-{other}-in-{name}")));
        assert_eq!(told, ["first", "second"].map(|other| other == name), "{name}");
    }
}

/// Speaks as Gemini CLI does, opens sessions when it may, and notes when it is asked for two at once.
const SLOW_TO_OPEN: &str = r#"#!/usr/bin/env node
const fs = require("fs"), say = (message) => console.log(JSON.stringify({jsonrpc: "2.0", ...message}));
let opening = 0, sessions = 0;
require("readline").createInterface({input: process.stdin}).on("line", (line) => {
    const {id, method, params} = JSON.parse(line);
    if (method === "initialize") say({id, result: {protocolVersion: 1, agentInfo: {name: "gemini-cli", version: "0.61.0"}}});
    else if (method === "session/new") {
        fs.appendFileSync(process.env.NOTES, opening++ ? "two at once\n" : "one\n");
        const open = () => {
            if (!fs.existsSync(process.env.MAY_OPEN)) return setTimeout(open, 10);
            opening--;
            say({id, result: {sessionId: `session-${++sessions}`}});
        };
        open();
    } else if (method === "session/prompt") {
        const update = {sessionUpdate: "agent_message_chunk", content: {type: "text", text: "Hi."}};
        say({method: "session/update", params: {sessionId: params.sessionId, update}});
        say({id, result: {stopReason: "end_turn"}});
    } else if (id !== undefined) say({id, result: {}});
});
"#;

/// The limit of its heap is an argument of the process; what its tools start has Node's own limits.
#[test]
fn real_cli_the_limit_of_a_processs_heap_is_not_that_of_its_tools() {
    let scenario = Scenario::dynamic(|request: &RecordedRequest| match request.responses().next() {
        None => Turn::new().call("run_shell_command", json!({"command": "echo \"[$NODE_OPTIONS]\""})),
        Some(_) => Turn::say("done"),
    });
    let lab = Lab::real("heap", VERSION, scenario);
    let pool = Pool::new(PoolOptions::default().processes(1).heap_mb(333)).unwrap();
    let outcome = run(&lab, &pool, lab.request("go").approval(Approval::Yolo));
    assert_eq!(outcome.commands[0].output.as_deref().map(str::trim), Some("[]"), "{outcome:?}");
    let process = agents(&lab);
    assert_eq!(process.len(), 1);
    let line = std::fs::read(format!("/proc/{}/cmdline", process[0])).unwrap();
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    assert!(words.contains(&&b"--max-old-space-size=333"[..]), "{}", String::from_utf8_lossy(&line));
}

#[test]
fn a_process_is_asked_for_one_session_at_a_time() {
    let mut lab = lab("one at a time");
    let package = lab.home.path().join("stand-in");
    std::fs::create_dir_all(&package).unwrap();
    let manifest = json!({"name": "@google/gemini-cli", "version": "0.61.0", "bin": {"gemini": "gemini.js"}});
    std::fs::write(package.join("package.json"), manifest.to_string()).unwrap();
    let entry = package.join("gemini.js");
    std::fs::write(&entry, SLOW_TO_OPEN).unwrap();
    std::fs::set_permissions(&entry, std::fs::Permissions::from_mode(0o755)).unwrap();
    let notes = lab.home.path().join("notes");
    let may_open = lab.home.path().join("may-open");
    lab.env.set("NOTES", &notes);
    lab.env.set("MAY_OPEN", &may_open);
    lab.gemini = Finder::new().env(lab.env.clone()).path(&entry).find().unwrap();

    let pool = pool(1);
    let noted = || std::fs::read_to_string(&notes).unwrap_or_default();
    let inside = |name: &str| -> ResolvedRequest {
        let dir = lab.workspace().join(name);
        std::fs::create_dir_all(&dir).unwrap();
        lab.request("hi").dir(dir)
    };
    let first = start(&lab, &pool, inside("first"));
    let is_opening = || noted().lines().count() == 1;
    assert!(Deadline::after(Duration::from_secs(60)).wait_until(is_opening));
    first.stop();
    assert_eq!(first.outcome_blocking().status, Status::Cancelled);
    let second = start(&lab, &pool, inside("second"));
    // Time to ask for its session while the first is not there yet, for one who would.
    std::thread::sleep(Duration::from_secs(1));
    std::fs::write(&may_open, "").unwrap();
    let outcome = second.outcome_blocking();
    assert_eq!((outcome.status, outcome.text.all()), (Status::Success, "Hi."), "{:?}", outcome.failure);
    assert_eq!(noted(), "one\none\n");
    pool.close_blocking();
    nothing_is_left(&lab);
}
