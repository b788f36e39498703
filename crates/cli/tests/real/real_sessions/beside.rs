//! A run while the user's own interactive CLI works in the same project.

use std::process::Command;
use std::time::Duration;

use alhena_agent::Approval;
use alhena_model::{EventKind, Status};
use alhena_scripted::{After, Scenario, Turn};
use alhena_testbed::{Deadline, tools};
use serde_json::{Value, json};

use super::printed;
use crate::lab::{Build, Lab};

/// tmux with a server of its own, gone when this is dropped.
struct Tmux<'a> {
    lab: &'a Lab,
    socket: String,
}

impl Tmux<'_> {
    fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new(tools::tmux().unwrap());
        command.env_clear().envs(self.lab.env.iter()).env("TERM", "xterm-256color");
        command.args(["-f", "/dev/null", "-S", &self.socket]).args(args).current_dir(self.lab.workspace());
        let done = alhena_testbed::run_bounded(&mut command, Duration::from_secs(30)).unwrap();
        done.stdout_text()
    }

    fn screen_shows(&self, text: &str) -> bool {
        self.run(&["capture-pane", "-p", "-t", "user"]).contains(text)
    }

    fn wait_for(&self, text: &str) {
        let came = Deadline::after(Duration::from_secs(90)).wait_until(|| self.screen_shows(text));
        assert!(came, "{text:?} never came: {}", self.run(&["capture-pane", "-p", "-t", "user"]));
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        // The CLI outlives the terminal that it was in.
        for pid in self.run(&["list-panes", "-a", "-F", "#{pane_pid}"]).lines() {
            pid.trim().parse().into_iter().for_each(alhena_testbed::processes::kill_tree);
        }
        self.run(&["kill-server"]);
    }
}

fn sessions(lab: &Lab) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&printed(lab, &["sessions", "list", "--json"])).unwrap();
    listed.as_array().unwrap().clone()
}

#[test]
fn real_cli_a_run_beside_the_users_own_cli_is_complete_and_neither_session_is_lost() {
    let scenario = Scenario::new()
        .turn(Turn::new().thought("Plan", "think").text("Working. ").calls([
            ("write_file", json!({"file_path": "own.txt", "content": "x\n"})),
            ("run_shell_command", json!({"command": "sleep 1; exit 7"})),
        ]))
        .turn(Turn::say("Done."))
        .after(After::Repeat);
    let lab = Lab::real("beside", "0.61.0", scenario);
    let url = lab.env.get("GOOGLE_GEMINI_BASE_URL").unwrap().to_string_lossy().into_owned();
    let socket = lab.home.tmp().join("tmux").to_str().unwrap().to_owned();
    let tmux = Tmux { lab: &lab, socket };
    let gemini = lab.gemini.path.to_str().unwrap();
    let start = format!("GOOGLE_GEMINI_BASE_URL={url}/user '{gemini}' --yolo --model gemini-2.5-flash");
    tmux.run(&["new-session", "-d", "-s", "user", "-x", "120", "-y", "40", &start]);
    tmux.wait_for("Type your message");
    // By what is said: the turn before may still ask for something.
    let heard = |text: &str| {
        let requests = lab.server.requests("lab");
        let mut users = requests.iter().filter(|request| request.run == "user" || request.run == "/user");
        users.any(|request| request.raw_body.contains(text))
    };
    let say = |text: &str| {
        tmux.run(&["set-buffer", text]);
        tmux.run(&["paste-buffer", "-p", "-t", "user"]);
        tmux.wait_for(text);
        // Right after a paste the CLI takes Enter for a part of it.
        let sent = Deadline::after(Duration::from_secs(60)).wait_until(|| {
            std::thread::sleep(Duration::from_secs(1));
            heard(text) || {
                tmux.run(&["send-keys", "-t", "user", "Enter"]);
                false
            }
        });
        assert!(sent, "{}", tmux.run(&["capture-pane", "-p", "-t", "user"]));
    };
    say("the user asks first");
    tmux.wait_for("Done.");
    let mut own = Vec::new();
    for number in 0..2 {
        let mut request = lab.request(&format!("run {number}")).approval(Approval::Yolo);
        request = request.env("GOOGLE_GEMINI_BASE_URL", format!("{url}/run-{number}"));
        let (events, outcome) = lab.run_with_events(request);
        assert_eq!(outcome.status, Status::Success, "{:?}", outcome.failure);
        assert_eq!(outcome.commands[0].exit_code, Some(7), "{:?}", outcome.warnings);
        assert!(events.iter().any(|event| matches!(event.kind, EventKind::Thinking { .. })));
        own.push(outcome.session_id.clone().unwrap());
        // The user goes on meanwhile.
        say(&format!("the user goes on {number}"));
    }
    let asked = |session: &Value| session["prompts"].as_u64().unwrap();
    let all = || sessions(&lab);
    let came = Deadline::after(Duration::from_secs(60)).wait_until(|| {
        all().iter().any(|session| session["title"] == json!("the user asks first") && asked(session) == 3)
    });
    assert!(came, "{:?}", all());
    let listed = all();
    assert_eq!(listed.len(), 3, "{listed:?}");
    for id in &own {
        let found = listed.iter().find(|session| session["id"] == json!(id)).unwrap();
        assert_eq!((asked(found), &found["state"]), (1, &json!("answered")), "{found}");
    }
}
