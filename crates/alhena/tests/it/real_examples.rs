//! The examples are programs that others begin with: each runs the real CLI against a scripted API.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use alhena::scripted::{RecordedRequest, Scenario, Server, Turn, tour};
use alhena_testbed::{PrivateHome, RealCli, Trust, run_bounded, versions};
use serde_json::json;

const LIMIT: Duration = Duration::from_secs(120);
const HAIKU: &str = "Write a haiku about rivers into haiku.txt";

/// Where cargo puts what it builds beside this test.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned()
}

struct Place {
    home: PrivateHome,
    server: Server,
}

impl Place {
    fn new() -> Self {
        Self { home: PrivateHome::with(Trust::Trusted).unwrap(), server: Server::start().unwrap() }
    }

    /// Runs an example to its end under the keeper of the `alhena` binary, and returns its output.
    fn run(&self, example: &str, scenario: Scenario, prompt: &str) -> String {
        self.run_under(&built().join("alhena"), example, scenario, prompt)
    }

    /// The same under another keeper.
    fn run_under(&self, keeper: &Path, example: &str, scenario: Scenario, prompt: &str) -> String {
        let cli = RealCli::get(&versions()[0]).unwrap();
        let program = built().join("examples").join(example);
        assert!(program.is_file(), "`cargo build -p alhena --examples` builds {}", program.display());
        let mut command = Command::new(program);
        command.arg(prompt).current_dir(self.home.workspace()).env_clear();
        command.envs(self.home.env(&self.server.add(example, scenario)));
        command.env("ALHENA_HOME", self.home.path().join("alhena"));
        command.env("ALHENA_KEEPER", keeper).env("GEMINI_CLI_PATH", &cli.bin);
        let done = run_bounded(&mut command, LIMIT).unwrap();
        assert!(done.succeeded(), "{example}: {} {}", done.stdout_text(), done.stderr_text());
        done.stdout_text().to_string()
    }
}

#[test]
fn run_gives_the_answer_and_the_files() {
    let place = Place::new();
    let said = place.run("run", tour(), HAIKU);
    assert!(said.contains("Created") && said.contains("haiku.txt") && said.contains("Success, "), "{said}");
    assert!(place.home.workspace().join("haiku.txt").is_file());
}

#[test]
fn stream_shows_the_call_before_the_end_and_sessions_has_it_afterwards() {
    let place = Place::new();
    let said = place.run("stream", tour(), HAIKU);
    let call = said.find("[write_file ").unwrap_or_else(|| panic!("{said}"));
    assert!(said.find("Success").is_some_and(|end| end > call), "{said}");

    let kept = place.run("sessions", tour(), "");
    assert!(kept.contains(HAIKU) && kept.contains("[Write "), "{kept}");
}

#[test]
fn stop_ends_a_command_that_would_take_a_minute_and_is_its_own_keeper() {
    let sleeps = Scenario::dynamic(|_: &RecordedRequest| {
        Turn::new().call("run_shell_command", json!({"command": "sleep 300"}))
    });
    // No such keeper is found, so that the example is its own.
    let said = Place::new().run_under(Path::new("/proc/nowhere"), "stop", sleeps, "Wait");
    assert!(said.contains("that is enough") && said.contains("Cancelled []"), "{said}");
}

#[test]
fn permissions_are_decided_by_rules_and_by_the_program() {
    let shell = |command: &str| Turn::new().call("run_shell_command", json!({"command": command}));
    let scenario = Scenario::new()
        .turn(Turn::new().call("write_file", json!({"file_path": "haiku.txt", "content": "rivers"})))
        .turn(shell("rm -f old.txt"))
        .turn(shell("touch made"))
        .turn(Turn::say("Done."));
    let place = Place::new();
    place.home.write("old.txt", "kept").unwrap();
    place
        .home
        .write_settings(&json!({
            "model": {"name": "gemini-2.5-flash"}, "security": {"auth": {"selectedType": "gemini-api-key"}},
        }))
        .unwrap();
    let said = place.run("permissions", scenario, "Write");
    assert!(
        said.contains("haiku.txt gets 6 bytes") && said.contains("denied by the rule shell(rm *)"),
        "{said}"
    );
    assert!(said.contains("[rejected: run_shell_command touch made]"), "{said}");
    assert!(said.contains("Success, 1 files"), "{said}");
    let at = |name: &str| place.home.workspace().join(name).exists();
    assert!(at("haiku.txt") && at("old.txt") && !at("made"));
}
