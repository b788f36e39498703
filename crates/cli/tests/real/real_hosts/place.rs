//! Where an adapter runs: a home in which nobody has trusted anything, the real CLI, several scenarios at once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use alhena_scripted::{RecordedRequest, Scenario, Server, Turn};
use alhena_testbed::{
    Deadline, Finished, PrivateHome, RealCli, Trust, Watchdog, cache, processes_with_env, run_bounded,
};
use serde_json::json;

pub const ALHENA: &str = env!("CARGO_BIN_EXE_alhena");
const VERSION: &str = "0.61.0";
/// No program of a test takes longer.
const LIMIT: Duration = Duration::from_secs(600);

/// A failing command, a tool that nobody allowed and one that goes wrong, in one turn and then in turns of their own.
pub fn failing_tools() -> Scenario {
    let shell = json!({"command": "echo ran; echo broken >&2; exit 3", "description": "fail"});
    let refused = json!({"file_path": "made.txt", "content": "never\n"});
    let wrong = json!({"file_path": "missing.txt"});
    let calls = [("run_shell_command", shell), ("write_file", refused), ("read_file", wrong)];
    let together =
        calls.iter().fold(Turn::new().text("All. "), |turn, (tool, input)| turn.call(*tool, input.clone()));
    let alone = calls.iter().map(|(tool, input)| Turn::new().call(*tool, input.clone()));
    alone.fold(Scenario::new().turn(together), Scenario::turn).turn(Turn::say("None of it worked."))
}

/// A conversation: a file that may be written, a command that may not, a turn that hangs, and one that goes on after it.
pub fn conversation() -> Scenario {
    let write = |path: &str| Turn::new().call("write_file", json!({"file_path": path, "content": "made\n"}));
    Scenario::new()
        .turn(write("b.txt"))
        .turn(Turn::say("Written."))
        .turn(Turn::new().call("run_shell_command", json!({"command": "touch never"})))
        .turn(Turn::say("Then not."))
        .turn(Turn::new().text("Thinking").hang())
        .turn(write("c.txt"))
        .turn(Turn::say("Back."))
}

pub struct Place {
    pub home: PrivateHome,
    pub server: Server,
    pub cli: RealCli,
    urls: BTreeMap<&'static str, String>,
    mark: String,
    _watchdog: Watchdog,
}

impl Place {
    pub fn new(name: &str, scenarios: impl IntoIterator<Item = (&'static str, Scenario)>) -> Self {
        let server = Server::start().unwrap();
        let urls = scenarios.into_iter().map(|(name, scenario)| (name, server.add(name, scenario))).collect();
        Self {
            home: PrivateHome::with(Trust::Untrusted).unwrap(),
            cli: RealCli::get(VERSION).unwrap(),
            urls,
            mark: format!("ALHENA_TEST_MARK={name}-{}", std::process::id()),
            server,
            _watchdog: Watchdog::new(name, LIMIT + Duration::from_secs(60)),
        }
    }

    /// A program in the host's directory, with everything that adapters and their tests look for in the environment.
    pub fn command(&self, host: &str, program: impl Into<PathBuf>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program.into());
        let (mark, value) = self.mark.split_once('=').unwrap();
        command
            .args(arguments)
            .current_dir(cache::workspace().join("hosts").join(host))
            .env_clear()
            .envs(self.home.env(self.urls.values().next().map_or("http://127.0.0.1:9", String::as_str)))
            .env(mark, value)
            .env("ALHENA_BIN", ALHENA)
            .env("ALHENA_HOME", self.home.path().join("alhena"))
            .env("GEMINI_CLI_PATH", &self.cli.bin)
            .env("ALHENA_TEST_SCENARIOS", serde_json::to_string(&self.urls).unwrap())
            .env("ALHENA_TEST_WORK", self.home.workspace());
        command
    }

    /// Python in a package's directory, with that package and what it is built on.
    pub fn python(&self, package: &str, arguments: &[&str]) -> Command {
        let directory = cache::workspace().join(package);
        let sources = [directory.join("src"), cache::workspace().join("packages/python/src")];
        let mut command = self.command("aiwf", "python3", arguments);
        command
            .current_dir(directory)
            .env("PYTHONPATH", std::env::join_paths(sources).unwrap())
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// Runs a program to its end and shows what it said unless it ended well.
    pub fn run(&self, command: &mut Command) -> Finished {
        let done = run_bounded(command, LIMIT).unwrap();
        assert!(done.succeeded(), "{}\n{}\n{}", done.ending(), done.stdout_text(), done.stderr_text());
        done
    }

    /// What the model was asked in a scenario.
    pub fn requests(&self, scenario: &str) -> Vec<Arc<RecordedRequest>> {
        self.server.requests(scenario)
    }

    /// Nothing that was started here lives on, whatever session it moved to.
    pub fn assert_nothing_left(&self) {
        let gone =
            Deadline::after(Duration::from_secs(60)).wait_until(|| processes_with_env(&self.mark).is_empty());
        assert!(gone, "still alive: {:?}", processes_with_env(&self.mark));
    }
}
