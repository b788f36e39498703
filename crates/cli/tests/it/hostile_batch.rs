//! `alhena batch` through the binary, with stand-ins in the place of Gemini CLI.

mod input;
mod killed;
mod places;
mod seen;
mod stopped;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::lab::{ALHENA, HostileLab};
use alhena_testbed::{Deadline, Finished, Script, Step, processes_with_env, run_bounded};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_secs(120);

/// A place for batches of stand-ins.
struct Desk {
    hostile: HostileLab,
}

impl Desk {
    /// Whose stand-ins are good agents, unless a job says something else.
    fn new(name: &str) -> Self {
        Self { hostile: HostileLab::new(name, Script::normal()) }
    }

    fn work(&self) -> PathBuf {
        self.hostile.lab.workspace()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        self.hostile.lab.home.write(name, text).unwrap()
    }

    fn jobs(&self, jobs: &[Value]) {
        self.write("jobs.jsonl", jobs.iter().map(|job| format!("{job}\n")).collect::<String>());
    }

    /// `alhena batch JOBS --into results.jsonl ...`
    fn command(&self, jobs: &str, args: &[&str]) -> Command {
        let lab = &self.hostile.lab;
        let mut command = Command::new(ALHENA);
        command.env_clear().envs(lab.env.iter()).current_dir(self.work());
        command.args(["batch", jobs, "--into", "results.jsonl", "--transport", "cold"]);
        command.arg("--set").arg(format!("gemini={}", lab.gemini.path.display())).args(args);
        command
    }

    fn batch(&self, jobs: &str, args: &[&str]) -> Finished {
        run_bounded(&mut self.command(jobs, args), LIMIT).unwrap()
    }

    /// All lines of the results, as they stand.
    fn results(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.work().join("results.jsonl")).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How each job ended.
    fn statuses(&self) -> BTreeMap<String, String> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.results()
            .iter()
            .map(|result| (text(&result["id"]), text(&result["outcome"]["status"])))
            .collect()
    }

    /// The prompts that stand-ins were started with.
    fn prompts(&self) -> Vec<String> {
        let starts = self.hostile.hostile.starts().unwrap().into_iter();
        let asked = starts.filter(|start| !start.argv.iter().any(|word| word == "--version"));
        let prompts = asked.map(|start| {
            let named = start.argv.iter().find_map(|word| word.strip_prefix("--prompt=")).map(str::to_owned);
            let stdin = start.stdin.and_then(|stdin| stdin.text).filter(|text| !text.is_empty());
            stdin.or(named).unwrap_or_default()
        });
        prompts.collect()
    }

    /// Neither a process nor a place is left.
    fn nothing_is_left(&self) {
        let home = self.hostile.lab.home.path().join("alhena");
        let of_home = format!("ALHENA_HOME={}", home.display());
        let deadline = Deadline::after(Duration::from_secs(30));
        assert!(
            deadline.wait_until(|| processes_with_env(&of_home).is_empty()),
            "{:?}",
            processes_with_env(&of_home)
        );
        assert!(deadline.wait_until(|| self.hostile.hostile.survivors().unwrap().is_empty()));
        assert_eq!(self.left_places(), Vec::<String>::new());
    }

    fn left_places(&self) -> Vec<String> {
        let places = self.hostile.lab.home.path().join("alhena/state/places");
        let entries = std::fs::read_dir(places).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// A job whose stand-in takes these steps.
fn steps(prompt: &str, steps: impl IntoIterator<Item = Step>) -> Value {
    json!({"prompt": prompt, "env": [format!("HOSTILE={}", Script::new(steps).to_json())]})
}

fn is_there(path: PathBuf) {
    let deadline = Deadline::after(Duration::from_secs(60));
    assert!(deadline.wait_until(|| path.exists()), "{}", path.display());
}
