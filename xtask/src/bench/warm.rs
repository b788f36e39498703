//! `cargo xtask bench warm [PROMPTS]`: what a prompt costs by each way, on the real CLI and the scripted API: `gemini` as people type
//! it, `acpx` and the crate gemini-cli-sdk in front of `gemini --acp`, `alhena run`, a pool with a new session for each prompt, a pool
//! whose sessions are cleared, and one conversation.
//!
//! CPU is compared and not time: time is that of the machine. A bare `gemini` begins by starting itself again with a larger heap, so
//! it loads its 16 MB of code twice, each time without a compile cache; on a busy machine that has been 13 s before its first request.

mod sdk;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Instant, SystemTime};

use alhena_agent::{Finder, Gemini, Pool, PoolOptions, RunExtras};
use alhena_model::RunOptions;
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_sys::processes;
use alhena_testbed::tools;

use super::measure::{Parts, ended_cpu, megabytes, ninety_fifth, own_cpu, run_to_end};
use super::{Lab, MODEL, build, median, number};

/// Of the warm ways; a new session costs some ten times as much as one that is cleared, a process a hundred times.
const PROMPTS: usize = 200;
const PARALLEL: usize = 3;

pub fn run(words: &[&str]) -> Result<(), String> {
    let prompts = number(words, 0, PROMPTS)?;
    let bench = Bench::new(build()?)?;
    let cold = (prompts / 40).max(3);
    // The first fills caches.
    bench.gemini(1)?;
    bench.alhena(1)?;
    let rows = [
        ("alhena run", bench.alhena(cold)),
        ("gemini", bench.gemini(cold)),
        ("acpx exec", bench.acpx(cold)),
        ("gemini-cli-sdk, query", bench.sdk(cold)),
        ("gemini-cli-sdk, client", bench.sdk_client(prompts)),
        ("pool, new sessions", bench.pool(prompts / 2, false)),
        ("pool, cleared sessions", bench.pool(prompts, true)),
        ("one conversation", bench.conversation(prompts)),
    ];
    let cpu = |name: &str| {
        let row = rows.iter().find(|(other, _)| *other == name).and_then(|(_, row)| row.as_ref().ok());
        row.map_or(f64::NAN, |row| row.cpu)
    };
    println!(
        "{:24} prompts   CPU each  alhena run is  gemini is  wall each   memory   to the API p50 / p95",
        ""
    );
    for (name, row) in &rows {
        match row {
            Ok(row) => println!(
                "{name:24} {:7}  {:6.0} ms  {:7.1} times  {:6.1} t.  {:6.0} ms  {:4.0} MB   {:6.1} / {:.1} ms",
                row.prompts,
                row.cpu * 1e3,
                cpu("alhena run") / row.cpu,
                cpu("gemini") / row.cpu,
                row.wall * 1e3,
                row.memory,
                median(&row.delays),
                ninety_fifth(&row.delays),
            ),
            Err(why) => println!("{name:24} does not work: {why}"),
        }
    }
    for (name, row) in &rows {
        if let Ok(Row { parts: Some(parts), .. }) = row {
            println!(
                "{name:24} once it is warm: {:.1} ms the CLI, {:.1} ms what it starts, {:.1} ms Alhena",
                parts.cli * 1e3,
                parts.started * 1e3,
                parts.ours * 1e3
            );
        }
    }
    bench.parallel()?;
    let (fresh, cleared) =
        (cpu("alhena run") / cpu("pool, new sessions"), cpu("alhena run") / cpu("pool, cleared sessions"));
    let delays = rows
        .iter()
        .find(|(name, _)| *name == "pool, cleared sessions")
        .and_then(|(_, row)| row.as_ref().ok());
    let late = delays.map_or(f64::NAN, |row| ninety_fifth(&row.delays));
    println!(
        "aims: cleared 40 times ({cleared:.1}), new sessions 10 times ({fresh:.1}), p95 to the API 40 ms ({late:.1})"
    );
    match rows
        .into_iter()
        .find(|(name, row)| row.is_err() && !OTHERS.iter().any(|other| name.starts_with(other)))
    {
        Some((name, Err(why))) => Err(format!("{name}: {why}")),
        _ => Ok(()),
    }
}

/// Programs of others, which may not work.
const OTHERS: &[&str] = &["acpx", "gemini-cli-sdk"];

/// What prompts cost by one way. CPU includes starts.
struct Row {
    prompts: usize,
    cpu: f64,
    wall: f64,
    /// Of the CLI at its end, or at its peak, in MB.
    memory: f64,
    /// From the call to the request at the API, in milliseconds; of the warm ways without the first, which starts a process.
    delays: Vec<f64>,
    parts: Option<Parts>,
}

struct Bench {
    lab: Lab,
    gemini: Gemini,
}

impl Bench {
    fn new(alhena: PathBuf) -> Result<Self, String> {
        let echo = |request: &RecordedRequest| Turn::say(request.prompt().unwrap_or_default());
        let lab = Lab::new(alhena, Scenario::dynamic(echo))?;
        let found = Finder::new().env(lab.environment.clone()).path(&lab.cli).find();
        let gemini = found.map_err(|error| error.to_string())?;
        Ok(Self { lab, gemini })
    }

    fn options(&self) -> RunOptions {
        RunOptions::default().dir(self.lab.home.workspace()).model(MODEL)
    }

    fn extras(&self) -> RunExtras {
        RunExtras::of(self.lab.environment.clone())
    }

    fn gemini(&self, count: usize) -> Result<Row, String> {
        self.commands("gemini", count, |prompt| {
            let mut command = self.lab.command(&self.gemini.path);
            command.args(["-m", MODEL, "-o", "stream-json", "-p", prompt]);
            command
        })
    }

    fn alhena(&self, count: usize) -> Result<Row, String> {
        self.commands("alhena", count, |prompt| {
            let mut command = self.lab.command(&self.lab.alhena);
            command.arg("run").arg("--gemini").arg(&self.gemini.path);
            command.args(["--model", MODEL, "--as", "outcome", prompt]);
            command
        })
    }

    /// Another client of the same protocol, which starts an agent for each prompt.
    fn acpx(&self, count: usize) -> Result<Row, String> {
        let text = |error: std::io::Error| error.to_string();
        let node = tools::node22().map_err(text)?;
        let script = tools::acpx().map_err(text)?.join("acpx/dist/cli.js");
        let agent = format!("{} --acp -m {MODEL}", self.gemini.path.display());
        self.commands("acpx", count, |prompt| {
            let mut command = self.lab.command(&node);
            command.arg(&script).arg("--agent").arg(&agent);
            command.args(["--format", "json", "--approve-all", "exec", prompt]);
            command
        })
    }

    /// Another client in Rust; it starts an agent for each prompt.
    fn sdk(&self, count: usize) -> Result<Row, String> {
        let client = sdk::client()?;
        self.commands("sdk", count, |prompt| self.sdk_command(&client, &[prompt.to_owned()]))
    }

    /// The same with all prompts in one session, whose history grows.
    fn sdk_client(&self, count: usize) -> Result<Row, String> {
        let prompts: Vec<String> = (0..count).map(|number| format!("client-{number}-of-{count}")).collect();
        let command = self.sdk_command(&sdk::client()?, &prompts);
        let (before, began) = (ended_cpu(), Instant::now());
        let memory = run_to_end(command)?;
        Ok(self.row(count, ended_cpu() - before, began.elapsed().as_secs_f64(), memory, &[]))
    }

    fn sdk_command(&self, client: &Path, prompts: &[String]) -> Command {
        let mut command = self.lab.command(client);
        command.arg(&self.gemini.path).arg(MODEL).args(prompts);
        command
    }

    fn commands(&self, name: &str, count: usize, command: impl Fn(&str) -> Command) -> Result<Row, String> {
        let (before, began) = (ended_cpu(), Instant::now());
        let (mut asked, mut memory) = (Vec::new(), 0f64);
        for number in 0..count {
            let prompt = format!("{name}-{number}-of-{count}");
            asked.push((prompt.clone(), SystemTime::now()));
            memory = memory.max(run_to_end(command(&prompt))?);
        }
        let (cpu, wall) = (ended_cpu() - before, began.elapsed().as_secs_f64());
        Ok(self.row(count, cpu, wall, memory, &asked))
    }

    fn pool(&self, count: usize, reuse: bool) -> Result<Row, String> {
        let options = PoolOptions::default().processes(1).reuse(reuse);
        let pool = Pool::new(options).map_err(|error| error.to_string())?;
        let (before, began) = (ended_cpu(), Instant::now());
        let (mut asked, mut warm) = (Vec::new(), Parts::default());
        for number in 0..count {
            if number == 1 {
                warm = Parts::now();
            }
            let prompt = format!("pool-{reuse}-{number}-of-{count}");
            asked.push((prompt.clone(), SystemTime::now()));
            let run = pool.run_with(&self.gemini, prompt.as_str(), &self.options(), self.extras());
            let outcome = run.map_err(|error| error.to_string())?.outcome_blocking();
            if outcome.text.all() != prompt {
                return Err(format!("{prompt} was answered by {:?}", outcome.text.all()));
            }
        }
        let wall = began.elapsed().as_secs_f64();
        let memory = megabytes(processes::descendants(std::process::id()).into_iter());
        let (own, parts) = (own_cpu(), Parts::now().each_since(warm, count - 1));
        pool.close_blocking();
        asked.remove(0);
        let row = self.row(count, ended_cpu() - before + own, wall, memory, &asked);
        // A process that was replaced on the way has taken its figures along.
        Ok(Row { parts: Some(parts).filter(|parts| parts.cli > 0.0 && reuse), ..row })
    }

    fn conversation(&self, count: usize) -> Result<Row, String> {
        let (before, began) = (ended_cpu(), Instant::now());
        let talk = self.gemini.converse_with(&self.options(), self.extras());
        let mut talk = talk.map_err(|error| error.to_string())?;
        let mut asked = Vec::new();
        for number in 0..count {
            let prompt = format!("talk-{number}-of-{count}");
            asked.push((prompt.clone(), SystemTime::now()));
            let turn = talk.prompt(&prompt).map_err(|error| error.to_string())?;
            if turn.outcome_blocking().text.all() != prompt {
                return Err(format!("{prompt} was not answered"));
            }
        }
        let wall = began.elapsed().as_secs_f64();
        let memory = megabytes(processes::descendants(std::process::id()).into_iter());
        let own = own_cpu();
        talk.close_blocking();
        asked.remove(0);
        Ok(self.row(count, ended_cpu() - before + own, wall, memory, &asked))
    }

    /// Several prompts at once: what each of them holds.
    fn parallel(&self) -> Result<(), String> {
        let pool =
            Pool::new(PoolOptions::default().processes(PARALLEL)).map_err(|error| error.to_string())?;
        for round in 0..3 {
            let runs: Vec<_> = (0..PARALLEL)
                .map(|number| {
                    let prompt = format!("parallel-{round}-{number}");
                    pool.run_with(&self.gemini, prompt, &self.options(), self.extras())
                })
                .collect::<Result<_, _>>()
                .map_err(|error| error.to_string())?;
            for run in runs {
                run.outcome_blocking();
            }
        }
        let all = processes::descendants(std::process::id());
        let agents = all.iter().filter(|pid| processes::command_line(**pid).contains("--acp")).count().max(1);
        let memory = megabytes(all.into_iter());
        println!("memory of {agents} at once: {:.0} MB each, keepers included", memory / agents as f64);
        pool.close_blocking();
        Ok(())
    }

    fn row(&self, prompts: usize, cpu: f64, wall: f64, memory: f64, asked: &[(String, SystemTime)]) -> Row {
        let requests = self.lab.server.requests("bench");
        let arrived: HashMap<&str, SystemTime> =
            requests.iter().rev().filter_map(|request| Some((request.prompt()?, request.at))).collect();
        let delays = asked.iter().filter_map(|(prompt, at)| {
            let taken = arrived.get(prompt.as_str())?.duration_since(*at).ok()?;
            Some(taken.as_secs_f64() * 1e3)
        });
        let each = prompts as f64;
        Row { prompts, cpu: cpu / each, wall: wall / each, memory, delays: delays.collect(), parts: None }
    }
}
