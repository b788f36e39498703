//! A server, a browser that is let in, and what a person does with both.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use alhena_scripted::Scenario;
use alhena_testbed::browser::Browser;
use alhena_testbed::{Deadline, HeldPort, processes, processes_with_env, tools, versions};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::lab::{ALHENA, Lab};

/// The model, so that no router is asked.
pub const MODEL: &str = "gemini-2.5-flash";

pub struct Place {
    pub browser: Browser,
    pub served: Served,
    port: HeldPort,
    pub tmux: PathBuf,
    pub tmux_server: String,
    pub lab: Lab,
}

/// `alhena serve` and its address.
pub struct Served {
    child: Child,
    /// `http://127.0.0.1:PORT/?token=...`, as it was printed.
    pub address: String,
    /// The same with a token that may only watch.
    pub for_watching: String,
}

impl Served {
    fn start(mut command: Command, port: u16, tmux: &Path, tmux_server: &str) -> Self {
        let port = port.to_string();
        command.args(["serve", "--quiet", "--read-token", "--port", &port, "--tmux-server", tmux_server]);
        command.arg("--tmux").arg(tmux);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line.trim().to_owned()
        };
        let (address, for_watching) = (line(), line());
        assert!(address.starts_with("http://127.0.0.1:"), "{address:?}");
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        Self { child, address, for_watching }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn origin(&self) -> &str {
        self.address.split_once("/?").map_or(self.address.as_str(), |(origin, _)| origin)
    }

    fn stop(&mut self) {
        let _gone = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Deadline::after(Duration::from_secs(30));
        if !deadline.wait_until(|| self.child.try_wait().unwrap().is_some()) {
            processes::kill_tree(self.child.id());
            let _gone = self.child.wait();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Alhena in the workspace; the CLI that it finds is the first on PATH.
fn command(lab: &Lab) -> Command {
    let mut command = Command::new(ALHENA);
    command.env_clear().envs(lab.env.iter()).current_dir(lab.workspace());
    let first = lab.gemini.path.parent().unwrap().to_path_buf();
    let path = std::env::split_paths(lab.env.get("PATH").unwrap()).collect::<Vec<PathBuf>>();
    command.env("PATH", std::env::join_paths([first].into_iter().chain(path)).unwrap());
    command
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut tmux = Command::new(&self.tmux);
        tmux.env("TMUX_TMPDIR", self.lab.home.tmp()).args(["-L", &self.tmux_server, "kill-server"]);
        let _there_may_be_none = tmux.output();
    }
}

impl Place {
    pub fn new(name: &str, scenario: Scenario) -> Self {
        let version = versions().into_iter().next().unwrap();
        Self::in_lab(name, Lab::real(name, &version, scenario))
    }

    /// The same in a folder that nobody trusts.
    pub fn untrusted(name: &str, scenario: Scenario) -> Self {
        let version = versions().into_iter().next().unwrap();
        Self::in_lab(name, Lab::untrusted(name, &version, scenario))
    }

    fn in_lab(name: &str, mut lab: Lab) -> Self {
        // tmux leaves its socket behind; there it goes with the home. The shell is one that every machine has.
        lab.env.set("TMUX_TMPDIR", lab.home.tmp()).set("SHELL", "/bin/sh");
        let tmux = tools::tmux().unwrap();
        let tmux_server = format!("alhena-page-{}-{name}", std::process::id());
        let port = HeldPort::new().unwrap();
        let served = Served::start(command(&lab), port.number, &tmux, &tmux_server);
        let mut browser = Browser::start().unwrap();
        browser.open(&served.address).unwrap();
        let mut place = Self { browser, served, port, tmux, tmux_server, lab };
        place.sees("html[data-link=live] main h1");
        place
    }

    /// The server ends.
    pub fn end_server(&mut self) {
        self.served.stop();
    }

    /// Another one begins at the same address.
    pub fn start_server_again(&mut self) {
        self.served = Served::start(command(&self.lab), self.port.number, &self.tmux, &self.tmux_server);
    }

    /// A command of Alhena in the workspace, which finds the CLI of the test.
    pub fn alhena(&self, args: &[&str]) -> Command {
        let mut command = command(&self.lab);
        command.args(args);
        command
    }

    /// Goes to a view, as a link does.
    pub fn go(&mut self, view: &str) {
        self.browser.ask(&format!("location.hash = {}", json!(view))).unwrap();
        let name = view.trim_start_matches("#/").split(['/', '?']).next().unwrap().to_owned();
        self.sees(&format!(".view[data-view={name}]"));
    }

    pub fn sees(&mut self, selector: &str) {
        self.browser.wait_to_see(selector).unwrap();
    }

    pub fn waits(&mut self, condition: &str) {
        self.browser.wait_for(condition).unwrap();
    }

    pub fn asks(&mut self, expression: &str) -> Value {
        self.browser.ask(expression).unwrap()
    }

    /// The texts of all elements that a selector finds.
    pub fn texts(&mut self, selector: &str) -> Vec<String> {
        let found = self.asks(&format!(
            "[...document.querySelectorAll({})].map((node) => node.textContent.trim())",
            json!(selector)
        ));
        serde_json::from_value(found).unwrap()
    }

    /// Starts a run by the form, and waits until it is shown.
    pub fn starts(&mut self, prompt: &str, approval: &str) {
        self.go("#/start");
        self.browser.fill("#start-prompt", prompt).unwrap();
        self.fills_the_rest(approval);
        self.browser.click("#go").unwrap();
        self.sees(".view[data-view=run][data-state]");
    }

    pub fn fills_the_rest(&mut self, approval: &str) {
        let dir = self.lab.workspace().display().to_string();
        self.browser.fill("#start-dir", &dir).unwrap();
        self.browser.fill("#start-model", MODEL).unwrap();
        self.asks(&format!("document.querySelector('#start-approval').value = {}", json!(approval)));
        assert_eq!(self.asks("document.querySelector('#start-approval').value"), json!(approval));
    }

    /// Waits until the run that is shown has ended so.
    pub fn ends(&mut self, status: &str) {
        self.waits(
            "['success', 'failed', 'cancelled', 'timeout', 'stalled'].includes(\
             document.querySelector('.view[data-view=run]')?.dataset.state)",
        );
        let shown = self.asks("document.querySelector('main').innerText");
        let state = self.asks("document.querySelector('.view').dataset.state");
        assert_eq!(state, json!(status), "{}", shown.as_str().unwrap());
    }

    /// Nothing that the page may not do happened, and it asked for nothing elsewhere.
    pub fn is_harmless(&mut self) {
        assert_eq!(self.browser.complaints(), Vec::<String>::new());
        let origin = self.served.origin().to_owned();
        let foreign = self.browser.requested().into_iter();
        let foreign: Vec<String> =
            foreign.filter(|url| !url.starts_with(&origin) && !url.starts_with("blob:")).collect();
        assert_eq!(foreign, Vec::<String>::new());
    }

    /// No process of any run or command lives; the server does.
    pub fn no_agent_is_left(&self) {
        let mark = format!("HOME={}", self.lab.home.path().display());
        let others = || {
            let all =
                processes_with_env(&mark).into_iter().filter(|process| *process != self.served.child.id());
            all.map(processes::command_line).collect::<Vec<String>>()
        };
        let deadline = Deadline::after(Duration::from_secs(30));
        assert!(deadline.wait_until(|| others().is_empty()), "{:#?}", others());
    }
}
