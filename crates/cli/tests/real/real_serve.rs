//! `alhena serve` on the real CLI, against the scripted API.

use crate::lab::Lab;
use crate::serve_client::Served;
use alhena_scripted::{After, Scenario, Turn};
use alhena_testbed::{Deadline, processes_with_env};
use serde_json::{Value, json};

const VERSION: &str = "0.61.0";
const MODEL: &str = "gemini-2.5-flash";

fn serve(lab: &Lab, args: &[&str]) -> Served {
    let mut env = lab.env.clone();
    env.set("GEMINI_CLI_PATH", &lab.gemini.path);
    Served::start(&env, &lab.workspace(), args)
}

/// Of all processes in the place only the server is left.
fn nothing_but_the_server(lab: &Lab, served: &Served) {
    let mark = format!("HOME={}", lab.home.path().display());
    let others =
        || processes_with_env(&mark).into_iter().filter(|pid| *pid != served.pid()).collect::<Vec<_>>();
    let deadline = Deadline::after(std::time::Duration::from_secs(30));
    let is_clean = deadline.wait_until(|| others().is_empty());
    let left: Vec<String> = others().into_iter().map(alhena_testbed::processes::command_line).collect();
    assert!(is_clean, "{left:#?}");
}

#[test]
fn a_run_goes_from_its_start_to_its_end_and_is_found_in_sessions_and_usage() {
    let scenario = Scenario::new()
        .turn(
            Turn::new()
                .text("I write it. ")
                .call("write_file", json!({"file_path": "note.txt", "content": "kingfisher\n"})),
        )
        .turn(Turn::say("The kingfisher is in note.txt."))
        .after(After::Repeat);
    let lab = Lab::real("serve-run", VERSION, scenario);
    let served = serve(&lab, &[]);
    let id =
        served.run(&json!({"prompt": "Write about a kingfisher", "model": MODEL, "approval": "auto-edit"}));
    let events = served.events(&id);
    let kinds: Vec<&str> = events.iter().map(|(_, event)| event["type"].as_str().unwrap()).collect();
    for kind in ["started", "prompt", "text", "tool_call", "tool_result", "file_change", "finished"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let run = served.get(&format!("/v1/runs/{id}"));
    assert_eq!(
        (run["status"].as_str(), run["outcome"]["files"][0]["verified"].as_bool()),
        (Some("success"), Some(true)),
        "{run:#}"
    );
    assert!(run["tokens"].as_u64().unwrap() > 0);
    assert_eq!(std::fs::read_to_string(lab.workspace().join("note.txt")).unwrap(), "kingfisher\n");
    nothing_but_the_server(&lab, &served);
    // The session that it made.
    let session = run["session_id"].as_str().unwrap();
    let dir = lab.workspace().display().to_string();
    let sessions = served.get(&format!("/v1/sessions?dir={dir}"));
    assert_eq!(sessions["sessions"][0]["id"], session);
    let found = served.get("/v1/sessions/search?q=kingfisher");
    assert_eq!(
        (found["total"].as_u64(), found["hits"][0]["session"]["id"].as_str()),
        (Some(1), Some(session))
    );
    assert!(!found["hits"][0]["snippets"].as_array().unwrap().is_empty());
    let shown = served.get(&format!("/v1/sessions/{session}?as=messages"));
    assert!(shown["messages"].to_string().contains("The kingfisher is in note.txt."));
    let shown = served.get(&format!("/v1/sessions/{}?as=events", session.get(..8).unwrap()));
    assert!(shown["events"].as_array().unwrap().iter().any(|event| event["type"] == "tool_call"));
    for (form, kind) in [
        ("markdown", "text/markdown; charset=utf-8"),
        ("html", "text/html; charset=utf-8"),
        ("json", "application/json"),
    ] {
        let exported = served.ask("GET", &format!("/v1/sessions/{session}/export?as={form}"), "");
        assert_eq!((exported.status, exported.header("content-type")), (200, Some(kind)));
        assert!(exported.header("content-disposition").unwrap().starts_with("attachment"));
        assert!(exported.body.contains("kingfisher"));
    }
    // What was used, as the command tells it.
    for by in ["day", "model", "folder"] {
        let told = served.get(&format!("/v1/usage?by={by}"));
        let name = if by == "folder" { "project" } else { by };
        let command = std::process::Command::new(crate::lab::ALHENA)
            .args(["sessions", "usage", "--json", "--by", name])
            .env_clear()
            .envs(lab.env.iter())
            .output()
            .unwrap();
        let mut wanted = serde_json::from_slice::<Value>(&command.stdout).unwrap();
        wanted["by"] = json!(by);
        assert_eq!(told, wanted);
        assert!(told["total"]["total"].as_u64().unwrap() > 0);
    }
    assert_eq!(served.ask("GET", "/v1/sessions/ffffffff", "").status, 404);
    assert_eq!(served.get("/v1/capabilities")["version"], VERSION);
    assert!(
        served.get("/v1/doctor").as_array().unwrap().iter().any(|finding| finding["what"] == "Gemini CLI")
    );
}

#[test]
fn a_run_that_is_cancelled_during_a_shell_command_leaves_nothing() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("run_shell_command", json!({"command": "echo begun > begun.txt; sleep 61.7"})))
        .after(After::Repeat);
    let lab = Lab::real("serve-cancel", VERSION, scenario);
    let served = serve(&lab, &[]);
    let id = served.run(&json!({"prompt": "go", "model": MODEL, "approval": "yolo"}));
    let begun = lab.workspace().join("begun.txt");
    assert!(Deadline::after(std::time::Duration::from_secs(90)).wait_until(|| begun.exists()));
    // The session of a run that goes on is there, too.
    let session = served.get(&format!("/v1/runs/{id}"))["session_id"].as_str().unwrap().to_owned();
    assert_eq!(served.get(&format!("/v1/sessions/{session}"))["session"]["id"], session);
    served.post(&format!("/v1/runs/{id}/cancel"), &json!({}));
    let last = served.events(&id).pop().unwrap().1;
    assert_eq!(last["outcome"]["status"], "cancelled");
    nothing_but_the_server(&lab, &served);
}

#[test]
fn in_a_conversation_one_tool_is_allowed_and_another_rejected() {
    let scenario = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "yes.txt", "content": "yes\n"})))
        .turn(Turn::new().call("run_shell_command", json!({"command": "echo no > no.txt"})))
        .turn(Turn::say("One of them."))
        .turn(Turn::say("And again."))
        .after(After::Repeat);
    let lab = Lab::real("serve-talk", VERSION, scenario);
    let mut served = serve(&lab, &["--max-approval", "auto-edit"]);
    let opened = served.post("/v1/conversations", &json!({"model": MODEL}));
    assert_eq!(opened.status, 201, "{}", opened.body);
    let path = opened.header("location").unwrap().to_owned();
    // Nobody has to wait until its agent is there.
    assert_eq!(served.post(&format!("{path}/prompt"), &json!({"text": "Do both"})).status, 202);
    let busy = served.post(&format!("{path}/prompt"), &json!({"text": "More"}));
    assert_eq!((busy.status, busy.kind().as_str()), (409, "conflict"));
    let mut events = served.follow(&format!("{path}/events"), &[]);
    let asked = events.kind("permission")["permission"].clone();
    assert_eq!(asked["tool"], "write_file");
    assert!(asked["diff"].as_str().unwrap().contains("+yes"), "{asked:#}");
    assert!(asked["path"].as_str().unwrap().ends_with("yes.txt"));
    let told = served.get(&path);
    assert_eq!((told["state"].as_str(), &told["permissions"][0]), (Some("waiting"), &asked));
    assert_eq!(served.get(&format!("{path}/permissions"))["permissions"][0], asked);
    let now = served.get("/v1/now")["items"][0].clone();
    assert_eq!((now["kind"].as_str(), now["state"].as_str()), (Some("conversation"), Some("waiting")));
    assert!(now["waiting"].as_str().unwrap().contains("yes.txt"));
    let answer =
        |id: &Value, body: Value| served.post(&format!("{path}/permissions/{}", id.as_str().unwrap()), &body);
    assert_eq!(answer(&asked["id"], json!({"decision": "allow"})).status, 200);
    assert_eq!(answer(&asked["id"], json!({"decision": "allow"})).status, 404, "it is answered once");
    assert_eq!(events.kind("permission_resolved")["decision"], "allow");
    let second = events.kind("permission")["permission"].clone();
    assert_eq!(second["command"], "echo no > no.txt");
    assert_eq!(answer(&second["id"], json!({"decision": "maybe"})).status, 400);
    assert_eq!(answer(&second["id"], json!({"decision": "reject", "reason": "Not today"})).status, 200);
    let over = events.kind("turn_finished");
    assert_eq!(over["turn"], 1);
    assert!(lab.workspace().join("yes.txt").exists() && !lab.workspace().join("no.txt").exists());
    let idle = served.until(&path, |told| told["state"] == "idle");
    assert!(idle["tokens"].as_u64().unwrap() > 0 && idle["session_id"].is_string());
    // Its session is there while it is open, by its id and by the beginning of it, and the same when it is closed.
    let session = idle["session_id"].as_str().unwrap().to_owned();
    let shown = || served.get(&format!("/v1/sessions/{session}?as=events"));
    let says = |text: &str| shown()["events"].to_string().contains(text);
    assert_eq!((shown()["session"]["id"].as_str(), says("One of them.")), (Some(session.as_str()), true));
    assert_eq!(served.get(&format!("/v1/sessions/{}", session.get(..8).unwrap()))["session"]["id"], session);
    let exported = served.ask("GET", &format!("/v1/sessions/{session}/export?as=markdown"), "");
    assert!(exported.status == 200 && exported.body.contains("One of them."), "{}", exported.body);
    // Modes above the limit are refused here too.
    let patch = |body: &Value| served.ask("PATCH", &path, &body.to_string());
    assert_eq!(patch(&json!({"mode": "yolo"})).status, 403);
    assert_eq!(patch(&json!({"mode": "auto-edit", "model": "gemini-2.5-pro"})).json()["mode"], "auto-edit");
    assert_eq!(served.post(&format!("{path}/prompt"), &json!({"text": "Once more"})).status, 202);
    assert_eq!(events.kind("turn_finished")["turn"], 2);
    let closed = served.ask("DELETE", &path, "");
    assert_eq!(
        (closed.status, closed.json()["state"].as_str().map(str::to_owned)),
        (200, Some("closed".to_owned()))
    );
    assert_eq!(events.kind("closed")["type"], "closed");
    assert!(says("One of them.") && says("And again."));
    assert!(events.next().is_none());
    nothing_but_the_server(&lab, &served);
    assert_eq!(served.post(&format!("{path}/prompt"), &json!({"text": "Still there?"})).status, 409);
    // Another one ends with the server.
    let path =
        served.post("/v1/conversations", &json!({"model": MODEL})).header("location").unwrap().to_owned();
    served.until(&path, |told| told["state"] == "idle");
    served.signal(rustix::process::Signal::TERM);
    assert_eq!(served.ended(), Some(0));
    nothing_but_the_server(&lab, &served);
}

#[test]
fn an_agent_in_a_terminal_is_seen_sent_to_and_ended() {
    let lab = Lab::real(
        "serve-terminal",
        VERSION,
        Scenario::new().turn(Turn::say("Heard you.")).after(After::Repeat),
    );
    let (served, _tmux) = fixer(&lab);
    let listed = served.get("/v1/terminals")["terminals"][0].clone();
    assert_eq!((listed["name"].as_str(), listed["dir"].as_str()), (Some("fixer"), lab.workspace().to_str()));
    assert_eq!(served.get("/v1/now")["items"][0]["kind"], "terminal");
    served.until("/v1/terminals/fixer", |told| told["status"] == "idle");
    let sent = served.post("/v1/terminals/fixer/send", &json!({"text": "Do you hear me?"}));
    assert_eq!(sent.status, 200, "{}", sent.body);
    served.until("/v1/terminals/fixer", |told| told["status"] == "completed");
    assert!(served.get("/v1/terminals/fixer/screen")["text"].as_str().unwrap().contains("Heard you."));
    let unasked = served.post("/v1/terminals/fixer/answer", &json!({"answer": "1"}));
    assert!(matches!(unasked.status, 400 | 409), "{}", unasked.body);
    assert_eq!(served.ask("GET", "/v1/terminals/nobody", "").status, 404);
    assert_eq!(served.ask("POST", "/v1/terminals/fixer/exit", "").status, 200);
    assert_eq!(served.get("/v1/terminals")["terminals"], json!([]));
}

#[test]
fn an_answer_to_a_question_that_was_seen_is_given_to_no_other() {
    let write =
        |name: &str| Turn::new().call("run_shell_command", json!({"command": format!("touch {name}")}));
    let scenario =
        Scenario::new().turn(write("one.txt")).turn(write("two.txt")).turn(Turn::say("Both are there."));
    let lab = Lab::real("serve-question", VERSION, scenario);
    let (served, _tmux) = fixer(&lab);
    served.until("/v1/terminals/fixer", |told| told["status"] == "idle");
    let sent = served.post("/v1/terminals/fixer/send", &json!({"text": "Make two files"}));
    assert_eq!(sent.status, 200, "{}", sent.body);
    // A dialog that is being drawn is another one a moment later.
    let asks = |what: &str| {
        let mut last = json!(null);
        let told = served.until("/v1/terminals/fixer", |told| {
            let asked = told["waiting_for"].clone();
            let has_it = asked["detail"].as_str().is_some_and(|detail| detail.contains(what));
            has_it && std::mem::replace(&mut last, asked.clone()) == asked
        });
        told["waiting_for"].clone()
    };
    let answer = |seen: &serde_json::Value| {
        served.post("/v1/terminals/fixer/answer", &json!({"answer": "1", "waiting_for": seen}))
    };
    let first = asks("touch one.txt");
    assert_eq!(answer(&first).status, 200);
    let second = asks("touch two.txt");
    // Whoever was slow meant the first.
    for late in [
        answer(&first),
        served.post("/v1/terminals/fixer/answer", &json!({"choose": ["1"], "waiting_for": first})),
    ] {
        assert_eq!((late.status, late.kind().as_str()), (409, "conflict"), "{}", late.body);
        assert!(late.json()["detail"].as_str().unwrap().contains("something else"), "{}", late.body);
    }
    assert!(lab.workspace().join("one.txt").exists() && !lab.workspace().join("two.txt").exists());
    assert_eq!(answer(&second).status, 200);
    served.until("/v1/terminals/fixer", |told| told["status"] == "completed");
    assert!(lab.workspace().join("two.txt").exists());
    assert_eq!(answer(&json!({"question": "What?"})).status, 409);
    assert_eq!(served.ask("POST", "/v1/terminals/fixer/exit", "").status, 200);
}

#[test]
fn a_terminal_is_not_used_above_the_limit_whatever_its_keyboard_or_an_answer_says() {
    let write = |name: &str| Turn::new().call("write_file", json!({"file_path": name, "content": "x\n"}));
    let touch =
        |name: &str| Turn::new().call("run_shell_command", json!({"command": format!("touch {name}")}));
    let scenario = Scenario::new()
        .turn(write("edit.txt"))
        .turn(touch("command.txt"))
        .turn(Turn::say("Both are there."))
        .turn(Turn::say("Heard you."))
        .after(After::Repeat);
    let lab = Lab::real("serve-limit", VERSION, scenario);
    let (served, tmux) = fixer_with(&lab, &["--max-approval", "default"]);
    let fixer = "/v1/terminals/fixer";
    let send = |text: &str| served.post(&format!("{fixer}/send"), &json!({"text": text}));
    let answer = |answer: &str| served.post(&format!("{fixer}/answer"), &json!({"answer": answer}));
    let refused = |reply: crate::serve_client::Reply, why: &str| {
        assert_eq!((reply.status, reply.kind().as_str()), (403, "forbidden"), "{}", reply.body);
        assert!(reply.body.contains(why), "{why}: {}", reply.body);
    };
    let shows = |words: &str| {
        served.until(&format!("{fixer}/screen"), |screen| screen["text"].as_str().unwrap().contains(words));
    };
    let asks = |what: &str| {
        served.until(fixer, |told| told["waiting_for"].to_string().contains(what));
    };
    served.until(fixer, |told| told["status"] == "idle");
    assert_eq!(send("Make two files").status, 200);
    // To allow an edit for the session is to accept all edits, and a command to allow it always.
    asks("edit.txt");
    for always in ["2", "allow for this session"] {
        refused(answer(always), "auto-edit");
    }
    assert_eq!(answer("allow once").status, 200);
    asks("command.txt");
    refused(answer("2"), "yolo");
    refused(served.post(&format!("{fixer}/answer"), &json!({"choose": ["2"]})), "yolo");
    assert!(!lab.workspace().join("command.txt").exists());
    assert_eq!(answer("1").status, 200);
    served.until(fixer, |told| told["status"] == "completed");
    assert!(lab.workspace().join("edit.txt").exists() && lab.workspace().join("command.txt").exists());
    // Somebody at its keyboard changes the mode.
    for (key, shown, mode) in [("C-y", "YOLO", "yolo"), ("BTab", "auto-accept edits", "auto-edit")] {
        tmux.press(key);
        shows(shown);
        refused(send("Go on"), mode);
        refused(served.ask("POST", &format!("{fixer}/exit"), ""), mode);
    }
    tmux.press("BTab");
    shows("plan ");
    assert_eq!(send("Do you hear me?").status, 200);
    served.until(fixer, |told| told["status"] == "completed");
    // Neither what the CLI would take for a command, nor what its keyboard would for a key, changes the mode.
    for text in ["/yolo", "!touch shell.txt", "\u{19}"] {
        let reply = send(text);
        assert!(matches!(reply.status, 200 | 400), "{text}: {}", reply.body);
        served.until(fixer, |told| told["status"] == "completed");
        shows("plan ");
    }
    assert!(!lab.workspace().join("shell.txt").exists());
    assert_eq!(served.ask("POST", &format!("{fixer}/exit"), "").status, 200);
}

#[test]
fn a_conversation_against_the_scripted_model_has_a_session_that_is_found_by_its_id() {
    let lab = Lab::real("serve-offline-session", VERSION, Scenario::new());
    let served = serve(&lab, &["--allow-programs"]);
    let opened = served.post("/v1/conversations", &json!({"offline": true, "gemini": lab.gemini.path}));
    assert_eq!(opened.status, 201, "{}", opened.body);
    let path = opened.header("location").unwrap().to_owned();
    let idle = served.until(&path, |told| told["state"] == "idle");
    let session = idle["session_id"].as_str().unwrap();
    let found = || served.get(&format!("/v1/sessions/{session}"))["session"]["id"].clone();
    assert_eq!(found(), session, "before the first prompt");
    assert_eq!(served.post(&format!("{path}/prompt"), &json!({"text": "Hello"})).status, 202);
    served.follow(&format!("{path}/events"), &[]).kind("turn_finished");
    assert_eq!(served.ask("DELETE", &path, "").status, 200);
    assert_eq!(found(), session, "after the end");
    // It is none of the user's.
    assert_eq!(served.get("/v1/sessions")["sessions"], json!([]));
}

/// The tmux server of a test, which ends with it.
struct Tmux(std::process::Command);

impl Tmux {
    /// Presses a key in the only pane, as a person there would.
    fn press(&self, key: &str) {
        let mut command = std::process::Command::new(self.0.get_program());
        command.envs(self.0.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let pressed = command.args(["-L", "alhena", "send-keys", "-t", "=alhena:", key]).output().unwrap();
        assert!(pressed.status.success(), "{}", String::from_utf8_lossy(&pressed.stderr));
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _gone_already = self.0.output();
    }
}

/// A server, and an agent in a terminal with the name `fixer`.
fn fixer(lab: &Lab) -> (Served, Tmux) {
    fixer_with(lab, &[])
}

/// The same with more arguments for the server.
fn fixer_with(lab: &Lab, args: &[&str]) -> (Served, Tmux) {
    let tmux = alhena_testbed::tools::tmux().unwrap();
    let mut env = lab.env.clone();
    env.set("TMUX_TMPDIR", lab.home.tmp());
    env.set("GEMINI_CLI_PATH", &lab.gemini.path);
    env.set("SHELL", "/bin/sh");
    let tmux = tmux.to_str().unwrap();
    let launched = std::process::Command::new(crate::lab::ALHENA)
        .args(["terminal", "--tmux", tmux, "launch", "--name", "fixer", "--model", MODEL])
        .env_clear()
        .envs(env.iter())
        .current_dir(lab.workspace())
        .output()
        .unwrap();
    assert!(launched.status.success(), "{}", String::from_utf8_lossy(&launched.stderr));
    let mut end = std::process::Command::new(tmux);
    end.env("TMUX_TMPDIR", lab.home.tmp()).args(["-L", "alhena", "kill-server"]);
    (Served::start(&env, &lab.workspace(), &[&["--tmux", tmux], args].concat()), Tmux(end))
}
