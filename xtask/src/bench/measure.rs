//! What processes and threads have spent.

use std::process::Command;
use std::time::Duration;

use alhena_sys::processes;
use alhena_testbed::Deadline;

/// The kernel counts the time of ended processes in hundredths.
const TICKS: f64 = 100.0;
const LONGEST: Duration = Duration::from_secs(600);

/// CPU seconds of a prompt, by who spent them.
#[derive(Clone, Copy, Default)]
pub(super) struct Parts {
    pub cli: f64,
    /// What it started, and waited for.
    pub started: f64,
    pub ours: f64,
}

impl Parts {
    /// All that the agents below this process and our own threads have spent so far.
    pub(super) fn now() -> Self {
        let all = processes::descendants(std::process::id());
        let agents = all.into_iter().filter(|pid| processes::command_line(*pid).contains("--acp"));
        let mut parts = Parts { ours: own_cpu(), ..Parts::default() };
        for pid in agents {
            let [user, system, ended_user, ended_system] = cpu_of(&format!("/proc/{pid}/stat"));
            parts.cli += user + system;
            parts.started += ended_user + ended_system;
        }
        parts
    }

    pub(super) fn each_since(self, before: Self, prompts: usize) -> Self {
        let each = |now: f64, before: f64| (now - before) / prompts.max(1) as f64;
        Parts {
            cli: each(self.cli, before.cli),
            started: each(self.started, before.started),
            ours: each(self.ours, before.ours),
        }
    }
}

pub(super) fn ninety_fifth(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * 95 / 100).or(sorted.last()).copied().unwrap_or(f64::NAN)
}

pub(super) fn megabytes(pids: impl Iterator<Item = u32>) -> f64 {
    pids.map(processes::memory).sum::<u64>() as f64 / f64::from(1 << 20)
}

/// Runs a program to its end; how much memory it and all below it held at most, in MB.
pub(super) fn run_to_end(mut command: Command) -> Result<f64, String> {
    let text = |error: std::io::Error| error.to_string();
    let complaints = tempfile::NamedTempFile::new().map_err(text)?;
    command.stderr(complaints.reopen().map_err(text)?);
    let mut child = command.spawn().map_err(text)?;
    let deadline = Deadline::after(LONGEST);
    let mut memory = 0f64;
    let status = loop {
        let all = processes::descendants(child.id());
        memory = memory.max(megabytes(all.into_iter().chain([child.id()])));
        match child.try_wait().map_err(text)? {
            Some(status) => break status,
            None if deadline.passed() => {
                processes::kill_tree(child.id());
                let _gone = child.wait();
                return Err(format!("it had not ended after {} s", LONGEST.as_secs()));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if status.success() {
        return Ok(memory);
    }
    let said = std::fs::read_to_string(complaints.path()).unwrap_or_default();
    Err(format!("{status}: {}", said.lines().last().unwrap_or_default()))
}

/// CPU seconds of all processes that we or they have waited for.
pub(super) fn ended_cpu() -> f64 {
    let [_, _, user, system] = cpu_of("/proc/self/stat");
    user + system
}

/// CPU seconds of a process, and of those that it has waited for: `utime`, `stime`, `cutime`, `cstime`.
pub(super) fn cpu_of(stat: &str) -> [f64; 4] {
    let stat = std::fs::read_to_string(stat).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let mut figures =
        fields.split_whitespace().skip(11).map(|ticks| ticks.parse::<f64>().unwrap_or(0.0) / TICKS);
    [(); 4].map(|()| figures.next().unwrap_or(0.0))
}

/// CPU seconds of our own threads that follow agents. The scripted API is in this process too, and does not count.
pub(super) fn own_cpu() -> f64 {
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
