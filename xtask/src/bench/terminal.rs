//! `cargo xtask bench terminal [TURNS]`: how soon the end of a turn is told, and how often a status is wrong, on the real CLI
//! in tmux against the scripted API; next to it, on the same screens, the rule of the document that CAO's provider follows
//! (D-03 to D-06). Then what it costs to read a screen (`cargo bench -p alhena-terminal`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant, SystemTime};

use alhena_agent::env::Environment;
use alhena_agent::{Approval, ResolvedRequest};
use alhena_scripted::{RecordedRequest, Scenario, Server, Turn};
use alhena_terminal::{Force, Launch, Options, Terminal, Terminals, Until, status_name};
use alhena_testbed::{PrivateHome, RealCli, Trust, tools};
use serde_json::json;

use super::build;
use crate::commands::{cargo, follow};

const VERSION: &str = "0.61.0";
const TURNS: usize = 50;
const COMMANDS: usize = 40;
const LONG: Duration = Duration::from_secs(60);
/// What the API has sent, the CLI has still to draw: what is said in this time is neither right nor wrong.
const GREY: Duration = Duration::from_secs(1);

/// Measures.
pub fn run(words: &[&str]) -> Result<(), String> {
    let turns = match words.first() {
        Some(word) => word.parse().map_err(|_| format!("{word} is not a number"))?,
        None => TURNS,
    };
    let lab = Lab::new(build()?)?;
    let outcome = lab.measure(turns);
    lab.close();
    outcome?.print();
    let mut screen = cargo();
    screen.args(["bench", "--quiet", "--package", "alhena-terminal"]);
    match follow(&mut screen, Duration::from_secs(1800), |_| ())? {
        true => Ok(()),
        false => Err("the bench of the screen failed".to_owned()),
    }
}

struct Lab {
    alhena: PathBuf,
    environment: Environment,
    home: PrivateHome,
    api: Server,
    terminals: Terminals,
    gemini: PathBuf,
    tmux: PathBuf,
    server: String,
}

/// What was going on when a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Truth {
    Working,
    Done,
}

/// How often which status was said of what.
type Matrix = BTreeMap<(Truth, &'static str), usize>;

#[derive(Default)]
struct Outcome {
    /// Times of a command, the shortest first.
    commands: Vec<(&'static str, Vec<f64>)>,
    delays: Vec<f64>,
    ours: Matrix,
    document: Matrix,
}

impl Lab {
    fn new(alhena: PathBuf) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let home = PrivateHome::with(Trust::Trusted).map_err(text)?;
        let api = Server::start().map_err(text)?;
        let url = api.add("api", Scenario::dynamic(scripted));
        let mut environment: Environment = home.env(&url).into_iter().collect();
        environment.set("ALHENA_HOME", home.path().join("alhena")).set("ALHENA_KEEPER", &alhena);
        environment.set("SHELL", "/bin/sh").remove("NO_COLOR");
        let server = format!("alhena-bench-{}", std::process::id());
        let tmux = tools::tmux().map_err(text)?;
        let options = Options {
            server: server.clone(),
            tmux: Some(tmux.clone()),
            state: None,
            environment: environment.clone(),
        };
        let terminals = Terminals::open(options).map_err(|error| error.to_string())?;
        let gemini = RealCli::get(VERSION).map_err(text)?.bin;
        Ok(Self { alhena, environment, home, api, terminals, gemini, tmux, server })
    }

    fn close(&self) {
        for terminal in self.terminals.list().unwrap_or_default() {
            let _gone = terminal.kill();
        }
        let mut end = Command::new(&self.tmux);
        let _gone = end.args(["-L", &self.server, "kill-server"]).stderr(Stdio::null()).status();
    }

    fn measure(&self, turns: usize) -> Result<Outcome, String> {
        let request = ResolvedRequest {
            dir: Some(self.home.workspace()),
            model: Some("gemini-2.5-flash".to_owned()),
            approval: Approval::Yolo,
            ..ResolvedRequest::default()
        };
        let launch =
            Launch { request, gemini: Some(self.gemini.clone()), timeout: LONG, ..Launch::default() };
        let terminal = self.terminals.launch(launch).map_err(|error| error.to_string())?;
        let mut outcome = Outcome::default();
        for command in ["status", "list"] {
            outcome.commands.push((command, self.time(command, terminal.name())?));
        }
        for number in 0..turns {
            self.turn(&terminal, number, &mut outcome)?;
        }
        Ok(outcome)
    }

    /// How long a command takes, in milliseconds, from its start to its end.
    fn time(&self, command: &str, name: &str) -> Result<Vec<f64>, String> {
        let mut times = Vec::new();
        for _ in 0..COMMANDS {
            let mut typed = Command::new(&self.alhena);
            typed.env_clear().envs(self.environment.iter());
            typed.args(["terminal", "--server", &self.server, "--tmux"]).arg(&self.tmux).arg(command);
            if command == "status" {
                typed.arg(name);
            }
            let began = Instant::now();
            let done = typed.output().map_err(|error| error.to_string())?;
            times.push(began.elapsed().as_secs_f64() * 1e3);
            if !done.status.success() {
                return Err(format!("{command} failed: {}", String::from_utf8_lossy(&done.stderr)));
            }
        }
        times.sort_by(f64::total_cmp);
        Ok(times)
    }

    fn turn(&self, terminal: &Terminal, number: usize, outcome: &mut Outcome) -> Result<(), String> {
        let text = |error: alhena_terminal::TerminalError| error.to_string();
        let goal = (0..=number).map(requests).sum::<usize>();
        terminal.send(&format!("Turn {number}"), Force::OnlyWhenReady).map_err(text)?;
        let stage = AtomicU8::new(0);
        let samples = std::thread::scope(|scope| {
            let sampler = scope.spawn(|| self.sample(terminal, goal, &stage));
            let waited = terminal.wait(Until::Completed, LONG);
            let told = SystemTime::now();
            // Some samples of what comes after.
            std::thread::sleep(GREY + Duration::from_millis(300));
            stage.store(1, Ordering::Relaxed);
            let samples = sampler.join().map_err(|_| "the sampler failed".to_owned())?;
            waited.map_err(text)?;
            let state = self.api.state("api");
            let ended =
                state.runs.values().flat_map(|run| &run.turns).filter_map(|turn| turn.ended).next_back();
            if let Some((ended, _)) = ended {
                outcome
                    .delays
                    .push(told.duration_since(ended).map_or(0.0, |delay| delay.as_secs_f64() * 1e3));
            }
            Ok::<_, String>(samples)
        })?;
        for (truth, ours, document) in samples {
            *outcome.ours.entry((truth, ours)).or_default() += 1;
            *outcome.document.entry((truth, document)).or_default() += 1;
        }
        Ok(())
    }

    /// Looks every 50 ms, both ways, until it is told to stop.
    fn sample(
        &self,
        terminal: &Terminal,
        goal: usize,
        stage: &AtomicU8,
    ) -> Vec<(Truth, &'static str, &'static str)> {
        let mut samples = Vec::new();
        while stage.load(Ordering::Relaxed) == 0 {
            let before = self.truth(goal);
            let (reading, look) = (terminal.status_now(), terminal.captured());
            // Only what was so before and after.
            if let (Ok(reading), Ok(look), Some(truth)) = (reading, look, before)
                && self.truth(goal) == before
            {
                samples.push((truth, status_name(reading.status), documents_rule(&look.text)));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        samples
    }

    fn truth(&self, goal: usize) -> Option<Truth> {
        let state = self.api.state("api");
        if state.turns_served() < goal {
            return Some(Truth::Working);
        }
        let ended =
            state.runs.values().flat_map(|run| &run.turns).filter_map(|turn| turn.ended).next_back()?;
        let age = SystemTime::now().duration_since(ended.0).unwrap_or_default();
        (age > GREY).then_some(Truth::Done)
    }
}

fn requests(number: usize) -> usize {
    if number.is_multiple_of(3) { 2 } else { 1 }
}

/// Text in pieces with pauses; every third turn with a tool.
fn scripted(request: &RecordedRequest) -> Turn {
    let prompt = request.prompt().unwrap_or_default();
    let number: usize = prompt.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let mut seed = number as u64 * 7919 + 13;
    let mut roll = |sides: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    };
    let mut turn = Turn::new().delay(Duration::from_millis(roll(300)));
    for piece in 0..=roll(4) {
        turn = turn.text(format!("Piece {piece}. ")).sleep(Duration::from_millis(roll(350)));
    }
    if requests(number) == 2 && request.results_since_prompt().next().is_none() {
        return turn.call("run_shell_command", json!({ "command": format!("sleep 0.{}", roll(6)) }));
    }
    turn.text(format!("Answer {number}."))
}

/// D-03 to D-07, as the document has them: a prompt in the last 50 lines is idle, with a query and an answer completed.
fn documents_rule(screen: &str) -> &'static str {
    let lines: Vec<&str> = screen.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(50)..).unwrap_or_default();
    let idle = tail.iter().any(|line| line.trim_start().starts_with("*   Type your message"));
    let starts = |mark: &str| lines.iter().any(|line| line.trim_start().starts_with(mark));
    let failed = ["Error:", "APIError:", "ConnectionError:", "Traceback"].iter().any(|words| starts(words));
    match (idle, failed) {
        (_, true) => "error",
        (false, false) => "processing",
        (true, false) if starts("> ") && starts("✦") => "completed",
        (true, false) => "idle",
    }
}

impl Outcome {
    fn print(&self) {
        for (command, times) in &self.commands {
            let middle = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
            let last = times.last().copied().unwrap_or(f64::NAN);
            println!(
                "command  {command} takes {middle:.1} ms (p50), {last:.1} ms at most ({} times, aim 10 ms)",
                times.len()
            );
        }
        let mut sorted = self.delays.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let index = ((sorted.len().max(1) - 1) as f64 * part).round() as usize;
            sorted.get(index).copied().unwrap_or(f64::NAN)
        };
        println!(
            "delay    completed is told {:.0} ms (p50), {:.0} ms (p95) after the API's end ({} turns, aim 300 ms at p95)",
            at(0.5),
            at(0.95),
            sorted.len()
        );
        for (name, matrix) in [("alhena", &self.ours), ("document's rule", &self.document)] {
            for truth in [Truth::Working, Truth::Done] {
                let said: Vec<String> = matrix
                    .iter()
                    .filter(|((was, _), _)| *was == truth)
                    .map(|((_, said), count)| format!("{said} {count}"))
                    .collect();
                let truth = if truth == Truth::Working { "working" } else { "done" };
                println!("said     {name}: while {truth}: {}", said.join(", "));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::documents_rule;

    #[test]
    fn the_documents_rule_takes_a_prompt_for_the_end() {
        assert_eq!(documents_rule("nothing"), "processing");
        assert_eq!(documents_rule(" *   Type your message or @path"), "idle");
        let working =
            " > query\n✦ so far\n ⠋ Thinking... (esc to cancel, 1s)\n *   Type your message or @path";
        assert_eq!(documents_rule(working), "completed");
        assert_eq!(documents_rule("Error: no"), "error");
    }
}
