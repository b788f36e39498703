//! Where an example runs: a home of its own, the real CLI, a scripted API.

use std::path::PathBuf;
use std::process::Command;

use alhena_scripted::{Scenario, Server, Turn};
use alhena_testbed::{PrivateHome, RealCli, Trust, versions};
use serde_json::json;

pub struct Sample {
    home: PrivateHome,
    cli: RealCli,
    server: Server,
    url: String,
}

impl Sample {
    /// The model writes `haiku.txt` and says "Here it is.", however often it is asked.
    pub fn new() -> Result<Self, String> {
        let write = json!({"file_path": "haiku.txt", "content": "rivers\n"});
        let turns = |scenario: Scenario, _| {
            scenario.turn(Turn::new().call("write_file", write.clone())).turn(Turn::say("Here it is."))
        };
        Self::with((0..8).fold(Scenario::new(), turns))
    }

    pub fn with(scenario: Scenario) -> Result<Self, String> {
        let version = versions().into_iter().next().ok_or("no release of the CLI is named for tests")?;
        let tell = |error: std::io::Error| error.to_string();
        let server = Server::start().map_err(tell)?;
        let url = server.add("example", scenario);
        let home = PrivateHome::with(Trust::Untrusted).map_err(tell)?;
        Ok(Self { home, cli: RealCli::get(&version).map_err(tell)?, server, url })
    }

    pub fn workspace(&self) -> PathBuf {
        self.home.workspace()
    }

    pub fn requests(&self) -> usize {
        self.server.requests("example").len()
    }

    /// The example's file is there: the example ran on the real CLI and the model was asked.
    pub fn wrote_haiku(&self) -> Result<(), String> {
        let file = self.workspace().join("haiku.txt");
        match (std::fs::read_to_string(&file), self.requests()) {
            (Ok(text), asked) if text == "rivers\n" && asked > 0 => Ok(()),
            (found, asked) => {
                Err(format!("{}: {found:?}, the model was asked {asked} times", file.display()))
            }
        }
    }

    /// Gives a command this environment and nothing else, and the workspace to work in.
    pub fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .current_dir(self.home.workspace())
            .env_clear()
            .envs(self.home.env(&self.url))
            .env("ALHENA_HOME", self.home.path().join("alhena"))
            .env("GEMINI_CLI_PATH", &self.cli.bin)
    }
}
