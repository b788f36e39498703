//! A private place for terminals: a home, a scripted API, a tmux server.

use crate::lab::Build;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use alhena_agent::Approval;
use alhena_agent::env::Environment;
use alhena_scripted::{Scenario, Server};
use alhena_terminal::screen::{Reading, Status};
use alhena_terminal::{Force, Launch, Options, Terminal, Terminals, Until};
use alhena_testbed::processes::{command_line, descendants};
use alhena_testbed::{
    Deadline, PrivateHome, RealCli, Trust, Watchdog, processes_with_env, run_bounded, tools,
};
use serde_json::Value;

pub const ALHENA: &str = env!("CARGO_BIN_EXE_alhena");
/// Long enough for anything on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

static COUNT: AtomicU32 = AtomicU32::new(0);

pub struct Place {
    pub home: PrivateHome,
    pub api: Server,
    pub env: Environment,
    pub terminals: Terminals,
    pub gemini: PathBuf,
    pub tmux: PathBuf,
    pub server: String,
    _watchdog: Watchdog,
}

impl Place {
    pub fn new(name: &str, scenario: Scenario) -> Self {
        Self::with(name, scenario, Trust::Trusted)
    }

    pub fn with(name: &str, scenario: Scenario, trust: Trust) -> Self {
        let watchdog = Watchdog::new(name, Duration::from_secs(240));
        let home = PrivateHome::with(trust).unwrap();
        let api = Server::start().unwrap();
        let url = api.add("api", scenario);
        let mut env: Environment = home.env(&url).into_iter().collect();
        env.set("ALHENA_HOME", home.path().join("alhena")).set("ALHENA_KEEPER", ALHENA).remove("NO_COLOR");
        // A shell that every machine has, without anybody's start files.
        env.set("SHELL", "/bin/sh");
        // tmux leaves its socket behind; there it goes with the home.
        env.set("TMUX_TMPDIR", home.tmp());
        let server = format!("alhena-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let tmux = tools::tmux().unwrap();
        let gemini = RealCli::get("0.61.0").unwrap().bin;
        let terminals = open(&env, &tmux, &server);
        Self { home, api, env, terminals, gemini, tmux, server, _watchdog: watchdog }
    }

    /// For longer, on whatever tmux is wanted.
    pub fn soak(name: &str, scenario: Scenario, time: Duration) -> Self {
        let mut place = Self::new(name, scenario);
        place._watchdog = Watchdog::new(name, time + Duration::from_secs(240));
        if let Some(tmux) = std::env::var_os("ALHENA_SOAK_TMUX") {
            place.tmux = tmux.into();
            place.terminals = place.again();
        }
        place
    }

    /// As another process would see it.
    pub fn again(&self) -> Terminals {
        open(&self.env, &self.tmux, &self.server)
    }

    /// The same with another environment.
    pub fn with_env(&self, env: &Environment) -> Terminals {
        open(env, &self.tmux, &self.server)
    }

    pub fn work(&self) -> PathBuf {
        self.home.workspace()
    }

    /// What to launch, with the model named so that no router is asked.
    pub fn wanted(&self, prompt: &str) -> Launch {
        let request = crate::lab::request(prompt).dir(self.work()).model("gemini-2.5-flash");
        let gemini = Some(self.gemini.clone());
        Launch { request, gemini, timeout: LONG, ..Launch::default() }
    }

    pub fn launch(&self) -> Terminal {
        self.terminals.launch(self.wanted("")).unwrap()
    }

    pub fn launch_yolo(&self) -> Terminal {
        let mut wanted = self.wanted("");
        wanted.request = wanted.request.approval(Approval::Yolo);
        self.terminals.launch(wanted).unwrap()
    }

    /// Runs a command of tmux on the test's server.
    pub fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new(&self.tmux);
        command.env("TMUX_TMPDIR", self.home.tmp()).args(["-u", "-L", &self.server]).args(args);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The pane of a terminal that is alone on its server.
    pub fn pane_of(&self, terminal: &Terminal) -> String {
        let panes = self.tmux(&["list-panes", "-s", "-t", "alhena", "-F", "#{@alhena-id} #{pane_id}"]);
        let own = panes.lines().find_map(|line| line.strip_prefix(terminal.id()));
        own.unwrap().trim().to_owned()
    }

    /// Everything that the pane and its history show.
    pub fn capture(&self, terminal: &Terminal) -> String {
        self.tmux(&["capture-pane", "-p", "-S", "-", "-t", &self.pane_of(terminal)])
    }

    /// The text of the last prompt that the API was sent, without what the CLI adds to the first.
    pub fn last_prompt(&self) -> String {
        let requests = self.api.requests("api");
        let asked = requests.iter().rev().find(|request| request.action == "streamGenerateContent").unwrap();
        let prompt = asked.prompt().unwrap();
        prompt.rsplit("</session_context>").next().unwrap().to_owned()
    }

    /// No process with the test's home in its environment is left, except the tmux server, its shells and us.
    pub fn nothing_left(&self) {
        let server: Option<u32> = self.tmux(&["display-message", "-p", "#{pid}"]).trim().parse().ok();
        let mut spared: Vec<u32> = server.into_iter().collect();
        for shell in self.tmux(&["list-panes", "-a", "-F", "#{pane_pid}"]).lines() {
            spared.extend(shell.parse::<u32>().ok());
        }
        let mark = format!("HOME={}", self.home.path().display());
        // The watcher lives as long as its server.
        let watcher = server.map(|_| format!("--server {}", self.server));
        let is_ours = |pid: &u32| {
            let line = command_line(*pid);
            let watches = watcher.as_ref().is_some_and(|watcher| line.contains(watcher));
            !spared.contains(pid)
                && !watches
                && !line.contains(&format!("-L {}", self.server))
                && !line.is_empty()
        };
        let left = || processes_with_env(&mark).into_iter().filter(is_ours).collect::<Vec<_>>();
        let clean = Deadline::after(Duration::from_secs(20)).wait_until(|| left().is_empty());
        let lines: Vec<String> = left().into_iter().map(command_line).collect();
        assert!(clean, "{lines:#?}");
        for shell in spared.iter().skip(1) {
            assert_eq!(descendants(*shell).into_iter().map(command_line).collect::<Vec<_>>(), [""; 0]);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for terminal in self.terminals.list().unwrap_or_default() {
            let _gone = terminal.kill();
        }
        self.tmux(&["kill-server"]);
    }
}

fn open(env: &Environment, tmux: &Path, server: &str) -> Terminals {
    let options = Options {
        server: server.to_owned(),
        tmux: Some(tmux.to_owned()),
        state: None,
        environment: env.clone(),
    };
    Terminals::open(options).unwrap()
}

/// Sends, and waits for the end of the turn.
pub fn ask(terminal: &Terminal, text: &str) -> Reading {
    terminal.send(text, Force::OnlyWhenReady).unwrap();
    terminal.wait(Until::Settled, LONG).unwrap()
}

/// Sends, and gives the answer.
pub fn answer(terminal: &Terminal, text: &str) -> String {
    let reading = ask(terminal, text);
    assert_eq!(reading.status, Status::Completed, "{reading:?}");
    terminal.last_answer().unwrap().text
}

/// A command as people type it.
pub fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new(ALHENA);
    command.env_clear().envs(place.env.iter()).current_dir(place.work());
    command.args(["terminal", "--server", &place.server, "--tmux", place.tmux.to_str().unwrap()]).args(args);
    command
}

/// What comes of one: its exit code, what it printed, what it said.
pub fn type_in(place: &Place, args: &[&str]) -> (i32, String, String) {
    let done = run_bounded(&mut command(place, args), Duration::from_secs(120)).unwrap();
    (done.status.code().unwrap(), done.stdout_text(), done.stderr_text())
}

/// A command as programs call it.
pub fn json_of(place: &Place, args: &[&str]) -> (i32, Value) {
    let (code, out, err) = type_in(place, &[args, &["--json"]].concat());
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}")))
}
