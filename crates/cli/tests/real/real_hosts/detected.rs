//! Looking for the CLI and running it agree through every package: what is detected for a project is what starts there.
//!
//! The projects have a CLI of their own, of another release than the one on PATH. Each program works elsewhere, and names a
//! folder below a project by a relative path. Which release ran is what it told the API.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::RealCli;
use alhena_testbed::npm::Packages;
use serde_json::{Value, json};

use super::agent_cli_sdk::SDK;
use super::openase;
use super::place::Place;
use super::promptfoo::PROMPTFOO;

/// The release of the projects; the one on PATH is another.
const OF_PROJECT: &str = "0.38.2";

struct Projects {
    place: Place,
}

/// Which CLI has to run.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    OnPath,
    Projects,
}

impl Projects {
    /// Two projects, of which the user trusts one.
    fn new(name: &str) -> Self {
        let place = Place::new(name, [("talk", Scenario::new().turn(Turn::say("Hello.").always()))]);
        let own = RealCli::get(OF_PROJECT).unwrap();
        for project in ["trusted", "untrusted"] {
            let modules = place.home.workspace().join(project).join("node_modules");
            fs::create_dir_all(modules.join(".bin")).unwrap();
            fs::create_dir_all(modules.with_file_name("app")).unwrap();
            symlink(own.dir.join("node_modules/@google"), modules.join("@google")).unwrap();
            symlink(fs::read_link(&own.bin).unwrap(), modules.join(".bin/gemini")).unwrap();
        }
        let trusted = place.home.workspace().join("trusted").to_string_lossy().into_owned();
        fs::write(
            place.home.gemini().join("trustedFolders.json"),
            json!({trusted: "TRUST_FOLDER"}).to_string(),
        )
        .unwrap();
        Self { place }
    }

    fn cli(&self, project: &str, wanted: Wanted) -> (PathBuf, String) {
        match wanted {
            Wanted::OnPath => (self.place.cli.bin.clone(), self.place.cli.version.clone()),
            Wanted::Projects => {
                let path = self.place.home.workspace().join(project).join("node_modules/.bin/gemini");
                (path, OF_PROJECT.to_owned())
            }
        }
    }

    /// Runs a program that gets the folder as its last argument. It prints as JSON what it detects, and runs a prompt; that
    /// has to be this CLI.
    fn check(&self, mut command: Command, project: &str, wanted: Wanted) {
        let on_path = self.place.cli.bin.parent().unwrap();
        let path = format!("{}:{}", on_path.display(), std::env::var("PATH").unwrap());
        command.arg(format!("{project}/app")).current_dir(self.place.home.workspace());
        let asked = self.place.requests("talk").len();
        let done = self.place.run(command.env("PATH", path).env_remove("GEMINI_CLI_PATH"));
        let (path, version) = self.cli(project, wanted);
        let told: Value = serde_json::from_str(&done.stdout_text()).unwrap();
        let detected = json!({"path": path, "version": version});
        for (key, value) in told.as_object().unwrap() {
            assert_eq!(value, &detected[key], "{project}, {wanted:?}: {told}\n{}", done.stderr_text());
        }
        let requests = self.place.requests("talk");
        assert!(requests.len() > asked, "{project}: the model was not asked\n{}", done.stderr_text());
        for request in &requests[asked..] {
            let ran = &request.headers["user-agent"];
            assert!(ran.contains(&format!("/{version}/")), "{project}, {wanted:?}: {ran} ran");
        }
    }

    /// The same where only the project decides, as in every host that runs with `--trust`.
    fn check_both(&self, command: impl Fn() -> Command) {
        self.check(command(), "trusted", Wanted::Projects);
        self.check(command(), "untrusted", Wanted::OnPath);
        self.place.assert_nothing_left();
    }

    fn write(&self, name: &str, text: &str) -> String {
        let file = self.place.home.tmp().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file.to_string_lossy().into_owned()
    }

    /// A program for Node beside the packages.
    fn node(&self, package: &str, text: &str) -> impl Fn(&[&str]) -> Command {
        let root = self.place.home.path().join("npm");
        Packages::build(&root, &[package]).unwrap();
        let script = root.join("script.mjs");
        fs::write(&script, text).unwrap();
        move |arguments| {
            let script = script.to_string_lossy();
            self.place.command("promptfoo", "node", &[&[script.as_ref()], arguments].concat())
        }
    }
}

const PYTHON: &str = r#"
import asyncio, json, sys
import alhena

trust = {"no": False, "yes": True, "settings": "settings"}[sys.argv[1]]
found = alhena.detect(sys.argv[2], trust=trust)
options = alhena.Options(cwd=sys.argv[2], trust=trust)

async def talk():
    await alhena.ask("Hello", options)
    async with alhena.Client(options) as client:
        await client.ask("Hello")

asyncio.run(talk())
print(json.dumps({"path": found.path, "version": found.version}))
"#;

#[test]
fn what_the_python_package_detects_is_what_it_runs() {
    let projects = Projects::new("detected-python");
    let script = projects.write("script.py", PYTHON);
    let command = |trust| projects.place.python("packages/python", &[&script, trust]);
    projects.check(command("no"), "trusted", Wanted::Projects);
    projects.check(command("yes"), "trusted", Wanted::Projects);
    projects.check(command("yes"), "untrusted", Wanted::OnPath);
    projects.check(command("settings"), "untrusted", Wanted::Projects);
    // Somebody who trusts every folder says so in a file.
    let config = projects.write("config.toml", "trust = \"settings\"\n");
    let mut command = command("no");
    command.env("ALHENA_CONFIG", config);
    projects.check(command, "untrusted", Wanted::Projects);
    projects.place.assert_nothing_left();
}

const AIWF: &str = r#"
import sys
from alhena_aiwf import GeminiCliProvider

provider = GeminiCliProvider(working_dir=sys.argv[1], approval_mode="default")
provider.validate()
provider.generate("Hello")
print("{}")
"#;

#[test]
fn aiwf_runs_the_cli_that_is_detected_for_the_project() {
    let projects = Projects::new("detected-aiwf");
    let script = projects.write("script.py", AIWF);
    projects.check_both(|| projects.place.python("hosts/aiwf", &[&script]));
}

const NODE: &str = r#"
import { ask, Client, detect } from 'alhena';

const [trust, cwd] = process.argv.slice(2);
const options = { cwd, trust: { no: false, yes: true, settings: 'settings' }[trust] };
const { path, version } = await detect(options);
await ask('Hello', options);
const client = new Client(options);
await client.ask('Hello');
await client.close();
console.log(JSON.stringify({ path, version }));
"#;

#[test]
fn what_the_node_package_detects_is_what_it_runs() {
    let projects = Projects::new("detected-node");
    let command = projects.node("alhena", NODE);
    projects.check(command(&["no"]), "trusted", Wanted::Projects);
    projects.check(command(&["yes"]), "trusted", Wanted::Projects);
    projects.check(command(&["yes"]), "untrusted", Wanted::OnPath);
    projects.check(command(&["settings"]), "untrusted", Wanted::Projects);
    projects.place.assert_nothing_left();
}

const SDK_SCRIPT: &str = r#"
import { detectCli, execute, getCapabilities } from '@alhena/agent-cli-sdk-gemini';

const [workingDir] = process.argv.slice(2);
const path = await detectCli({ workingDir });
const { cliPath } = await getCapabilities('gemini', { workingDir });
const result = await execute({ prompt: 'Hello', workingDir });
if (!result.success || cliPath !== path) throw new Error(`${cliPath} ${result.error}`);
console.log(JSON.stringify({ path }));
"#;

#[test]
fn what_agent_cli_sdk_detects_is_what_it_executes() {
    let projects = Projects::new("detected-sdk");
    let command = projects.node(SDK, SDK_SCRIPT);
    projects.check_both(|| command(&[]));
}

const PROMPTFOO_SCRIPT: &str = r#"
import { resolve } from 'node:path';
import { GeminiCli } from '@alhena/promptfoo-gemini-cli';

const [by, directory] = process.argv.slice(2);
const basePath = resolve(directory);
const config = {
  'working directory': { working_dir: directory, basePath: process.cwd() },
  'config directory': { basePath },
  'option': { gemini_path: '../node_modules/.bin/gemini', basePath },
}[by];
const provider = new GeminiCli({ config });
const { error } = await provider.callApi('Hello');
if (error) throw new Error(error);
console.log('{}');
"#;

#[test]
fn promptfoo_runs_the_cli_that_is_detected_for_the_project() {
    let projects = Projects::new("detected-promptfoo");
    let command = projects.node(PROMPTFOO, PROMPTFOO_SCRIPT);
    projects.check_both(|| command(&["working directory"]));
    // E-37: the call then works in an empty directory of its own.
    projects.check_both(|| command(&["config directory"]));
    projects.check(command(&["option"]), "untrusted", Wanted::Projects);
}

const GO: &str = r#"
package main

import (
	"context"
	"fmt"
	"os"

	"alhena.dev/hosts/openase"
)

func main() {
	turn, err := openase.Start(context.Background(), openase.Options{Prompt: "Hello", Dir: os.Args[1]})
	if err != nil {
		panic(err)
	}
	for {
		line, err := turn.Next()
		if err != nil {
			panic(err)
		}
		if failed, ok := line.(*openase.TurnFailed); ok {
			panic(failed.Message)
		}
		if openase.IsLast(line) {
			fmt.Println("{}")
			return
		}
	}
}
"#;

#[test]
fn openase_runs_the_cli_that_is_detected_for_the_project() {
    let projects = Projects::new("detected-openase");
    let program = openase::program(&projects.place, GO);
    projects.check_both(|| projects.place.command("openase", &program, &[]));
}
