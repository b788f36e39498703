//! `cargo xtask bench batch [PROMPTS [COLD [JOBS]]]`: many prompts on the real CLI and the scripted API, by `alhena batch` on warm
//! processes, by `alhena batch` with a process for each, and by `xargs -P gemini`, in turns.
//!
//! The two that start a process for each prompt get fewer prompts, COLD: what one of them costs does not depend on how many there are.
//! Jobs a minute and core are told twice: by CPU time, which is what a job costs, and by the clock, which is also the machine's.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use alhena_scripted::{RecordedRequest, Scenario, Turn};
use serde_json::json;

use super::measure::{ended_cpu, run_to_end};
use super::{Lab, MODEL, build, number};

const PROMPTS: usize = 200;
const ROUNDS: usize = 2;
/// How much less a job is to cost than by xargs.
const AIM: f64 = 15.0;

pub fn run(words: &[&str]) -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let prompts = number(words, 0, PROMPTS)?;
    let cold = number(words, 1, (prompts / 10).max(4))?;
    let at_once = number(words, 2, cores)?;
    let echo = |request: &RecordedRequest| Turn::say(request.prompt().unwrap_or_default());
    let bench = Bench { lab: Lab::new(build()?, Scenario::dynamic(echo))?, at_once };
    // The first of each fills caches.
    for way in WAYS {
        bench.turn(way, 1, "first")?;
    }
    let mut rows: Vec<(&Way, Row)> = WAYS.iter().map(|way| (way, Row::default())).collect();
    for round in 0..ROUNDS {
        for (way, row) in &mut rows {
            let count = if way.is_warm { prompts } else { cold }.div_ceil(ROUNDS);
            row.add(bench.turn(way, count, &format!("round-{round}"))?);
        }
    }
    println!("{at_once} at once on {cores} cores");
    println!("{:24} prompts   CPU each   wall each   jobs/min/core by CPU   by the clock   peak memory", "");
    for (way, row) in &rows {
        println!(
            "{:24} {:7}  {:5.0} ms   {:6.0} ms   {:20.1}   {:12.1}   {:8.0} MB",
            way.name,
            row.prompts,
            row.cpu_each() * 1e3,
            row.wall_each() * 1e3,
            60.0 / row.cpu_each(),
            60.0 / (row.wall_each() * cores as f64),
            row.memory,
        );
    }
    if let [(_, warm), (_, cold), (_, xargs)] = rows.as_slice() {
        println!(
            "warm against xargs: {:.1} times by CPU, {:.1} by the clock (aim: {AIM:.0}); cold against xargs: {:.1} by CPU",
            xargs.cpu_each() / warm.cpu_each(),
            xargs.wall_each() / warm.wall_each(),
            xargs.cpu_each() / cold.cpu_each(),
        );
    }
    Ok(())
}

struct Way {
    name: &'static str,
    is_warm: bool,
    command: fn(&Bench, &Path, usize) -> Result<Command, String>,
}

const WAYS: &[Way] = &[
    Way { name: "alhena batch, warm", is_warm: true, command: |bench, dir, _| bench.batch(dir, "warm") },
    Way { name: "alhena batch, cold", is_warm: false, command: |bench, dir, _| bench.batch(dir, "cold") },
    Way { name: "xargs -P gemini", is_warm: false, command: |bench, dir, _| bench.xargs(dir) },
];

#[derive(Clone, Copy, Default)]
struct Row {
    prompts: usize,
    cpu: f64,
    wall: f64,
    /// Of all processes at once, in MB.
    memory: f64,
}

impl Row {
    fn add(&mut self, other: Row) {
        self.prompts += other.prompts;
        self.cpu += other.cpu;
        self.wall += other.wall;
        self.memory = self.memory.max(other.memory);
    }

    fn cpu_each(&self) -> f64 {
        self.cpu / self.prompts.max(1) as f64
    }

    fn wall_each(&self) -> f64 {
        self.wall / self.prompts.max(1) as f64
    }
}

struct Bench {
    lab: Lab,
    at_once: usize,
}

impl Bench {
    fn turn(&self, way: &Way, count: usize, name: &str) -> Result<Row, String> {
        let text = |error: std::io::Error| error.to_string();
        let dir = tempfile::tempdir().map_err(text)?;
        let prompts: Vec<String> = (0..count).map(|number| format!("{}-{name}-{number}", way.name)).collect();
        let jobs: String = prompts.iter().map(|prompt| format!("{}\n", json!({"prompt": prompt}))).collect();
        std::fs::write(dir.path().join("jobs.jsonl"), jobs).map_err(text)?;
        std::fs::write(dir.path().join("prompts"), prompts.join("\n") + "\n").map_err(text)?;
        let before = self.answered(&prompts);
        let command = (way.command)(self, dir.path(), count)?;
        let (cpu, began) = (ended_cpu(), Instant::now());
        let memory = run_to_end(command).map_err(|why| format!("{}: {why}", way.name))?;
        let row = Row { prompts: count, cpu: ended_cpu() - cpu, wall: began.elapsed().as_secs_f64(), memory };
        match self.answered(&prompts) - before {
            answered if answered == count => Ok(row),
            answered => Err(format!("{}: {answered} of {count} prompts came to the API", way.name)),
        }
    }

    /// How many of these prompts the API has been asked.
    fn answered(&self, prompts: &[String]) -> usize {
        let requests = self.lab.server.requests("bench");
        let asked: std::collections::HashSet<&str> =
            requests.iter().filter_map(|request| request.prompt()).collect();
        prompts.iter().filter(|prompt| asked.contains(prompt.as_str())).count()
    }

    fn batch(&self, dir: &Path, transport: &str) -> Result<Command, String> {
        let mut command = self.lab.command(&self.lab.alhena);
        command.arg("batch").arg(dir.join("jobs.jsonl")).arg("--into").arg(dir.join("results.jsonl"));
        command.args(["--quiet", "--transport", transport, "--jobs", &self.at_once.to_string()]);
        command.args([
            "--set",
            &format!("model={MODEL}"),
            "--set",
            &format!("gemini={}", self.lab.cli.display()),
        ]);
        Ok(command)
    }

    fn xargs(&self, dir: &Path) -> Result<Command, String> {
        let mut command = self.lab.command(Path::new("xargs"));
        command.args(["-d", "\n", "-n", "1", "-P", &self.at_once.to_string()]).arg(&self.lab.cli);
        command.args(["-m", MODEL, "-o", "json", "-p"]);
        command.stdin(File::open(dir.join("prompts")).map_err(|error| error.to_string())?);
        Ok(command)
    }
}
