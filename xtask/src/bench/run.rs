//! `cargo xtask bench run [ROUNDS]`: `alhena run` against the bare `gemini` command, on the real CLI and the scripted API,
//! interleaved; the same for the drop-in; then what Alhena adds before and after the CLI, and its memory on a stream of
//! a gigabyte.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alhena_scripted::{After, Scenario, Turn};
use alhena_sys::processes;
use alhena_testbed::{Hostile, Script, Step};

use super::{Lab, VERSION, build, median, number};

const ROUNDS: usize = 10;

pub fn run(words: &[&str]) -> Result<(), String> {
    let rounds = number(words, 0, ROUNDS)?;
    let hello = Turn::new().text("Hello ").text("there.");
    let bench = Bench(Lab::new(build()?, Scenario::new().turn(hello).after(After::Repeat))?);
    bench.wall(rounds)?;
    bench.dropin(rounds)?;
    bench.edges(rounds)?;
    bench.gigabyte()
}

/// What the processes of one command used, without those they watch over.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    wall: f64,
    /// CPU seconds of alhena and its keeper.
    own: f64,
    /// CPU seconds of everything else below.
    other: f64,
    /// Peak memory of alhena and its keeper, each, in MB.
    memory: f64,
}

struct Bench(Lab);

impl Bench {
    fn command(&self, program: &Path) -> Command {
        let mut command = self.0.command(program);
        command.stderr(Stdio::null());
        command
    }

    /// Wall time of both sides in turn, and what Alhena itself costs.
    fn wall(&self, rounds: usize) -> Result<(), String> {
        let (mut bare, mut ours) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let mut gemini = self.command(&self.0.cli);
            gemini.args(["-m", "gemini-2.5-flash", "-o", "stream-json", "-p", "Say hi"]);
            let gemini = watch(gemini)?;
            let mut alhena = self.command(&self.0.alhena);
            alhena.arg("run").arg("--gemini").arg(&self.0.cli);
            alhena.args(["--model", "gemini-2.5-flash", "--as", "outcome", "Say hi"]);
            let alhena = watch(alhena)?;
            // The first round fills caches.
            if round > 0 {
                bare.push(gemini);
                ours.push(alhena);
            }
        }
        let of = |all: &[Used], figure: fn(&Used) -> f64| median(&all.iter().map(figure).collect::<Vec<_>>());
        let (theirs, wall) = (of(&bare, |used| used.wall), of(&ours, |used| used.wall));
        println!(
            "wall     gemini {theirs:.2} s, alhena run {wall:.2} s: ratio {:.2} (median of {rounds}, aim 0.80)",
            wall / theirs
        );
        let (own, cli) = (of(&ours, |used| used.own), of(&ours, |used| used.other));
        println!(
            "cpu      alhena and keeper {:.1} ms, the CLI {cli:.2} s: {:.2} % (aim 2 %)",
            own * 1e3,
            own / cli * 1e2
        );
        println!("memory   alhena {:.1} MB at its peak (aim 20 MB)", of(&ours, |used| used.memory));
        Ok(())
    }

    /// The drop-in on PATH before the CLI, against the CLI: the CLI's own file, which Alhena starts in one process, and a
    /// script around it, which it has to start as it is.
    fn dropin(&self, rounds: usize) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let links = self.0.home.path().join("dropin");
        std::fs::create_dir_all(&links).map_err(text)?;
        std::os::unix::fs::symlink(&self.0.alhena, links.join("gemini")).map_err(text)?;
        let script = format!("#!/bin/sh\nexec {} \"$@\"\n", self.0.cli.display());
        let wrapper = self.0.home.write("wrapper/gemini", script).map_err(text)?;
        std::fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .map_err(text)?;
        let system = std::env::var("PATH").unwrap_or_default();
        for (name, cli) in [("one process", &self.0.cli), ("as a script", &wrapper)] {
            let real = cli.parent().unwrap_or(Path::new("/")).display().to_string();
            let paths = [format!("{real}:{system}"), format!("{}:{real}:{system}", links.display())];
            let mut walls = [Vec::new(), Vec::new()];
            for round in 0..=rounds {
                for (path, walls) in paths.iter().zip(&mut walls) {
                    let mut gemini = self.command(Path::new("/usr/bin/env"));
                    gemini.arg(format!("PATH={path}"));
                    gemini.args(["gemini", "-m", "gemini-2.5-flash", "-o", "stream-json", "-p", "Say hi"]);
                    let used = watch(gemini)?;
                    if round > 0 {
                        walls.push(used.wall);
                    }
                }
            }
            let [bare, ours] = walls.map(|walls| median(&walls) * 1e3);
            println!(
                "drop-in  {name}: gemini {bare:.0} ms, through alhena {ours:.0} ms: {:+.0} ms (median of {rounds}, aim at \
                 most +50 ms)",
                ours - bare
            );
        }
        Ok(())
    }

    /// From our start to the start of the CLI, and from its end to our end, with a stand-in that notes its times.
    fn edges(&self, rounds: usize) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        let times = self.0.home.path().join("times");
        let lines = concat!(
            r#"{"type":"init","timestamp":"2026-11-15T17:49:10.599Z","session_id":"a","model":"m"}"#,
            "\n",
            r#"{"type":"message","timestamp":"2026-11-15T17:49:10.686Z","role":"assistant","content":"hi","delta":true}"#,
            "\n",
            r#"{"type":"result","timestamp":"2026-11-15T17:49:10.762Z","status":"success","stats":{"total_tokens":3}}"#,
            "\n",
        );
        let script = format!(
            "#!/bin/bash\nif [ \"$1\" = --version ]; then echo {VERSION}; exit; fi\nt=$EPOCHREALTIME\ncat <<'E'\n{lines}E\necho $t $EPOCHREALTIME > {}\n",
            times.display()
        );
        let stand_in = self.0.home.write("gemini-stand-in", script).map_err(text)?;
        std::fs::set_permissions(&stand_in, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .map_err(text)?;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for round in 0..=rounds * 2 {
            let mut alhena = self.command(&self.0.alhena);
            alhena
                .arg("run")
                .arg("--gemini")
                .arg(&stand_in)
                .args(["--as", "outcome", "Say hi"])
                .stdout(Stdio::null());
            let start = epoch();
            let ended = alhena.status().map_err(text)?;
            let end = epoch();
            if !ended.success() {
                return Err(format!("alhena run on the stand-in ended with {ended}"));
            }
            let noted = std::fs::read_to_string(&times).map_err(text)?;
            let mut noted = noted.split_whitespace().filter_map(|time| time.parse::<f64>().ok());
            let (Some(began), Some(over)) = (noted.next(), noted.next()) else {
                return Err("no times".to_owned());
            };
            if round > 0 {
                before.push((began - start) * 1e3);
                after.push((end - over) * 1e3);
            }
        }
        println!(
            "edges    start to the CLI {:.1} ms, the CLI's end to ours {:.1} ms (aim 30 ms each)",
            median(&before),
            median(&after)
        );
        Ok(())
    }

    fn gigabyte(&self) -> Result<(), String> {
        let text = |error: std::io::Error| error.to_string();
        for (name, step) in [("deltas", Step::Deltas(1 << 30)), ("mixed", Step::Mixed(1 << 30))] {
            let hostile = Hostile::new(Script::new([Step::Init, step, Step::Result])).map_err(text)?;
            let mut alhena = self.command(&self.0.alhena);
            alhena.envs(hostile.env()).arg("run").arg("--gemini").arg(hostile.path());
            alhena.args(["--as", "text", "--output", "/dev/null", "Say hi"]);
            let used = watch(alhena)?;
            println!(
                "1 GB     {name}: alhena {:.1} MB at its peak (aim 20 MB), {:.0} MB/s",
                used.memory,
                1073.7 / used.wall
            );
        }
        Ok(())
    }
}

fn epoch() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// Runs a command and watches its processes in `/proc` until it ends.
fn watch(mut command: Command) -> Result<Used, String> {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().map_err(|error| error.to_string())?;
    let (mut cpu, mut memory) = (BTreeMap::<(u32, u32), (f64, bool)>::new(), 0f64);
    let status = loop {
        look(&child, &mut cpu, &mut memory);
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if start.elapsed() > Duration::from_secs(300) => {
                let _gone = child.kill();
                return Err("a run took longer than 300 s".to_owned());
            }
            None => std::thread::sleep(Duration::from_millis(4)),
        }
    };
    let wall = start.elapsed().as_secs_f64();
    if !status.success() {
        return Err(format!("a run ended with {status}"));
    }
    let sum = |ours: bool| cpu.values().filter(|(_, own)| *own == ours).map(|(seconds, _)| seconds).sum();
    Ok(Used { wall, own: sum(true), other: sum(false), memory })
}

/// CPU time of every thread below the command so far, and the peak memory of Alhena's own processes.
fn look(child: &Child, cpu: &mut BTreeMap<(u32, u32), (f64, bool)>, memory: &mut f64) {
    let mut all = processes::descendants(child.id());
    all.push(child.id());
    for pid in all {
        let program = processes::executable(pid).unwrap_or_default();
        let own = program.file_name().is_some_and(|name| name == "alhena");
        for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let Some(id) = thread.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let stat = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let Some(nanos) = stat.split_whitespace().next().and_then(|text| text.parse::<f64>().ok()) else {
                continue;
            };
            cpu.insert((pid, id), (nanos / 1e9, own));
        }
        if own {
            *memory = memory.max(processes::peak_memory(pid) as f64 / 1024.0);
        }
    }
}
