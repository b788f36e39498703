//! `cargo xtask bench warm [PROMPTS]`: what a prompt costs by each way, on the real CLI and the scripted API: `gemini` as people type
//! it, `acpx` in front of `gemini --acp`, `alhena run`, a pool with a new session for each prompt, a pool whose sessions are cleared, and one conversation.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use alhena_agent::env::Environment;
use alhena_agent::{Finder, Gemini, Pool, PoolOptions, Request};
use alhena_scripted::{RecordedRequest, Scenario, Server, Turn};
use alhena_sys::processes;
use alhena_testbed::{PrivateHome, RealCli, Trust, tools};

use super::{build, median};

const VERSION: &str = "0.61.0";
const MODEL: &str = "gemini-2.5-flash";
/// Of the warm ways; a new session costs some ten times as much as one that is cleared, a process a hundred times.
const PROMPTS: usize = 200;
const PARALLEL: usize = 3;
/// The kernel counts the time of ended processes in hundredths.
const TICKS: f64 = 100.0;

/// Measures.
pub fn run(words: &[&str]) -> Result<(), String> {
    let prompts = match words.first() {
        Some(word) => word.parse().map_err(|_| format!("{word} is not a number"))?,
        None => PROMPTS,
    };
    let bench = Bench::new(build()?)?;
    let cold = (prompts / 40).max(3);
    // The first fills caches.
    bench.gemini(1)?;
    bench.alhena(1)?;
    let rows = [
        ("alhena run", bench.alhena(cold)?),
        ("gemini", bench.gemini(cold)?),
        ("acpx exec", bench.acpx(cold)?),
        ("pool, new sessions", bench.pool(prompts / 2, false)?),
        ("pool, cleared sessions", bench.pool(prompts, true)?),
        ("one conversation", bench.conversation(prompts)?),
    ];
    let base = rows.first().map_or(f64::NAN, |(_, row)| row.cpu);
    println!("{:24} prompts   CPU each   alhena run is   wall each   memory   to the API p50 / p95", "");
    for (name, row) in &rows {
        println!(
            "{name:24} {:7}  {:6.0} ms  {:8.1} times  {:7.0} ms  {:4.0} MB   {:6.1} / {:.1} ms",
            row.prompts,
            row.cpu * 1e3,
            base / row.cpu,
            row.wall * 1e3,
            row.memory,
            median(&row.delays),
            ninety_fifth(&row.delays),
        );
    }
    println!("aims: cleared 40 times, new sessions 10 times, 95 of 100 prompts at the API within 40 ms");
    bench.parallel()
}

/// What prompts cost by one way. CPU includes starts.
struct Row {
    prompts: usize,
    cpu: f64,
    wall: f64,
    /// Of the CLI at its end, or at its peak, in MB.
    memory: f64,
    /// From the call to the request at the API, in milliseconds; of the warm ways without the first, which starts a process.
    delays: Vec<f64>,
}

struct Bench {
    alhena: PathBuf,
    gemini: Gemini,
    environment: Environment,
    home: PrivateHome,
    server: Server,
}

impl Bench {
    fn new(alhena: PathBuf) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let cli = RealCli::get(VERSION).map_err(text)?.bin;
        let home = PrivateHome::with(Trust::Trusted).map_err(text)?;
        let server = Server::start().map_err(text)?;
        let echo = |request: &RecordedRequest| Turn::say(request.prompt().unwrap_or_default());
        let url = server.add("bench", Scenario::dynamic(echo));
        let mut environment: Environment = home.env(&url).into_iter().collect();
        environment.set("ALHENA_HOME", home.path().join("alhena"));
        environment.set("ALHENA_KEEPER", &alhena);
        let found = Finder::new().env(environment.clone()).path(&cli).find();
        let gemini = found.map_err(|error| error.to_string())?;
        Ok(Self { alhena, gemini, environment, home, server })
    }

    fn request(&self, prompt: &str) -> Request {
        Request::new(prompt).dir(self.home.workspace()).model(MODEL)
    }

    fn gemini(&self, count: usize) -> Result<Row, String> {
        self.commands("gemini", count, |prompt| {
            let mut command = self.command(&self.gemini.path);
            command.args(["-m", MODEL, "-o", "stream-json", "-p", prompt]);
            command
        })
    }

    fn alhena(&self, count: usize) -> Result<Row, String> {
        self.commands("alhena", count, |prompt| {
            let mut command = self.command(&self.alhena);
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
            let mut command = self.command(&node);
            command.arg(&script).arg("--agent").arg(&agent);
            command.args(["--format", "json", "--approve-all", "exec", prompt]);
            command
        })
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment.iter()).current_dir(self.home.workspace());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// A process for each prompt.
    fn commands(&self, name: &str, count: usize, command: impl Fn(&str) -> Command) -> Result<Row, String> {
        let (before, began) = (ended_cpu(), Instant::now());
        let (mut asked, mut memory) = (Vec::new(), 0f64);
        for number in 0..count {
            let prompt = format!("{name}-{number}-of-{count}");
            asked.push((prompt.clone(), SystemTime::now()));
            let mut child = command(&prompt).spawn().map_err(|error| error.to_string())?;
            let status = loop {
                let all = processes::descendants(child.id());
                memory = memory.max(megabytes(all.into_iter().chain([child.id()])));
                match child.try_wait().map_err(|error| error.to_string())? {
                    Some(status) => break status,
                    None => std::thread::sleep(Duration::from_millis(20)),
                }
            };
            if !status.success() {
                return Err(format!("{name} ended with {status}"));
            }
        }
        let (cpu, wall) = (ended_cpu() - before, began.elapsed().as_secs_f64());
        Ok(self.row(count, cpu, wall, memory, &asked))
    }

    fn pool(&self, count: usize, reuse: bool) -> Result<Row, String> {
        let options = PoolOptions::default().processes(1).reuse(reuse);
        let pool = Pool::new(options).map_err(|error| error.to_string())?;
        let (before, began) = (ended_cpu(), Instant::now());
        let mut asked = Vec::new();
        for number in 0..count {
            let prompt = format!("pool-{reuse}-{number}-of-{count}");
            asked.push((prompt.clone(), SystemTime::now()));
            let run = pool.run_in(&self.gemini, self.request(&prompt), &self.environment);
            let outcome = run.map_err(|error| error.to_string())?.outcome_blocking();
            if outcome.text.all() != prompt {
                return Err(format!("{prompt} was answered by {:?}", outcome.text.all()));
            }
        }
        let wall = began.elapsed().as_secs_f64();
        let memory = megabytes(processes::descendants(std::process::id()).into_iter());
        let own = own_cpu();
        pool.close_blocking();
        asked.remove(0);
        Ok(self.row(count, ended_cpu() - before + own, wall, memory, &asked))
    }

    fn conversation(&self, count: usize) -> Result<Row, String> {
        let (before, began) = (ended_cpu(), Instant::now());
        let talk = self.gemini.converse_in(self.request(""), &self.environment);
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
                    let request = self.request(&format!("parallel-{round}-{number}"));
                    pool.run_in(&self.gemini, request, &self.environment)
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
        let requests = self.server.requests("bench");
        let arrived: HashMap<&str, SystemTime> =
            requests.iter().rev().filter_map(|request| Some((request.prompt()?, request.at))).collect();
        let delays = asked.iter().filter_map(|(prompt, at)| {
            let taken = arrived.get(prompt.as_str())?.duration_since(*at).ok()?;
            Some(taken.as_secs_f64() * 1e3)
        });
        let each = prompts as f64;
        Row { prompts, cpu: cpu / each, wall: wall / each, memory, delays: delays.collect() }
    }
}

fn ninety_fifth(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * 95 / 100).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

fn megabytes(pids: impl Iterator<Item = u32>) -> f64 {
    pids.map(processes::memory).sum::<u64>() as f64 / f64::from(1 << 20)
}

/// CPU seconds of all processes that we or they have waited for.
fn ended_cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    // `cutime` and `cstime`, counted from after the name.
    fields.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>()
        / TICKS
}

/// CPU seconds of our own threads that follow agents. The scripted API is in this process too, and does not count.
fn own_cpu() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ours = threads.filter(|thread| {
        let name = std::fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        name.starts_with("alhena-")
    });
    let nanos = ours.filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanos.sum::<f64>() / 1e9
}
