//! One trial: makes the place, starts the runs, strikes, waits, and asks everybody who checks something.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use alhena_scripted::Server;
use alhena_testbed::Snapshot;
use alhena_testbed::processes::{peak_memory, signal};
use alhena_testbed::script::{LIFETIME_VARIABLE, SCRIPT_VARIABLE};
use rustix::process::Signal;

use super::agent::{self, LIFETIME};
use super::place::{Place, Programs, RESUMED, write};
use super::plan::{Home, Plan, Stop, Stream, View};
use super::{after, place, secrets, stop, verdict};

/// No run takes longer than this, whatever happens to it.
const LIMIT: Duration = Duration::from_secs(60);
/// The real CLI alone takes seconds to start on a busy machine.
const REAL_LIMIT: Duration = Duration::from_secs(120);
/// 50 MB of short lines, each an event to print and to record, in a build without optimisation.
const FLOOD_LIMIT: Duration = Duration::from_secs(300);
/// A stop that leaves the run alone, such as a signal that its agent ignores, is followed by another after this.
const PATIENCE: Duration = Duration::from_secs(8);
/// Alhena's memory at most, in KiB.
const MOST_MEMORY: u64 = 160 << 10;

pub struct Started {
    child: Child,
    status: Option<ExitStatus>,
    output: Option<io::PipeReader>,
    read: Vec<u8>,
    server: Option<(Arc<Server>, String)>,

    memory: u64,
}

impl Started {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> bool {
        if self.status.is_none() {
            self.memory = self.memory.max(peak_memory(self.child.id()));
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_some()
    }

    /// Goes away as the reader of its stdout, after reading what is there.
    pub fn close_output(&mut self) -> Option<SystemTime> {
        let mut reader = self.output.take()?;
        let there = rustix::io::ioctl_fionread(&reader).unwrap_or(0);
        self.read = vec![0; usize::try_from(there).unwrap_or_default()];
        reader.read_exact(&mut self.read).ok()?;
        drop(reader);
        (!self.has_ended()).then(SystemTime::now)
    }

    /// Whether the real CLI has asked the model something.
    pub fn was_asked(&self) -> bool {
        self.server.as_ref().is_some_and(|(server, name)| !server.requests(name).is_empty())
    }
}

#[derive(Debug)]
pub struct EndedRun {
    pub run: usize,
    /// How; none when it had to be killed because its time was over.
    pub status: Option<ExitStatus>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// When the agent was about to write its result.
    pub result: Option<SystemTime>,
}

/// Runs the trial of a plan and gives what was wrong; nothing when all promises were kept.
pub fn run(plan: &Plan, programs: &Programs) -> Vec<String> {
    match attempt(plan, programs) {
        Ok(findings) => findings,
        Err(error) => vec![format!("the trial itself could not be held: {error}")],
    }
}

fn attempt(plan: &Plan, programs: &Programs) -> io::Result<Vec<String>> {
    let place = Place::make(plan, programs)?;
    if plan.secrets {
        write(&place.work.join(".env"), &secrets::dotenv())?;
    }
    let server = if plan.real { Some(Arc::new(Server::start()?)) } else { None };
    let before = Snapshot::of(&place.real_home)?;
    let mut findings = if plan.traps { after::questions(plan, &place) } else { Vec::new() };
    let mut runs = Vec::new();
    for number in 0..plan.runs {
        runs.push(start(plan, &place, programs, server.as_ref(), number)?);
    }
    let mut deed = stop::Deed::default();
    if let Some(first) = runs.first_mut() {
        deed = stop::perform(plan, &place, first);
    }
    for (number, run) in runs.iter_mut().enumerate() {
        findings.extend(wait(plan, run, number, &deed));
    }
    let ended: Vec<EndedRun> =
        runs.iter().enumerate().filter_map(|(number, run)| end(&place, run, number).ok()).collect();
    for run in &ended {
        let deed = if run.run == 0 { deed.clone() } else { stop::Deed::default() };
        findings.extend(
            verdict::judge(plan, run, &deed).into_iter().map(|what| format!("run {}: {what}", run.run)),
        );
    }
    drop(runs);
    findings.extend(after::processes(&place));
    findings.extend(after::next_run(plan, &place));
    findings.extend(after::leftovers(plan, &place));
    findings.extend(after::traps(plan, &place));
    findings.extend(after::secrets(plan, &place));
    findings.extend(after::changes(plan, &place, &before)?);
    findings.extend(after::sessions(plan, &place, &ended));
    Ok(findings)
}

pub fn command(plan: &Plan, place: &Place, words: &[&str]) -> Command {
    let mut command = Command::new(&place.alhena);
    command.args(words).current_dir(&place.work).env_clear().process_group(0);
    let path = std::env::var("PATH").unwrap_or_default();
    let own = place.root.join("bin");
    command.env("PATH", format!("{}:{path}", own.display())).env("TMPDIR", &place.tmp);
    command.env("LANG", "C.UTF-8").env("TERM", "dumb").env("GEMINI_API_KEY", "dummy-key-of-the-trial");
    if plan.home != Home::Unset {
        command.env("HOME", &place.home);
    }
    if plan.alhena_home {
        command.env("ALHENA_HOME", &place.alhena_home);
    }
    if plan.secrets {
        command.envs(secrets::variables());
    }
    command.env(LIFETIME_VARIABLE, LIFETIME.to_string());
    place::confine(&mut command, plan.limits);
    command
}

fn start(
    plan: &Plan,
    place: &Place,
    programs: &Programs,
    server: Option<&Arc<Server>>,
    number: usize,
) -> io::Result<Started> {
    let mut command = command(plan, place, &["run"]);
    let mut asked = None;
    match (server, &programs.real) {
        (Some(server), Some(cli)) => {
            let name = format!("run-{number}");
            let url = server.add(&name, agent::scenario(plan, place, number));
            command.env("GOOGLE_GEMINI_BASE_URL", url).arg("--gemini").arg(cli);
            command.args(["--model", "gemini-2.5-flash", "--approval", "yolo"]);
            asked = Some((server.clone(), name));
        }
        _ => {
            command.env(SCRIPT_VARIABLE, agent::script(plan, place, number).to_json());
            // In a folder of traps the CLI has to be found, and the folder's own passed over.
            if !plan.traps {
                command.arg("--gemini").arg(&place.stand_in);
            }
        }
    }
    command.args(["--trust", "--as", view(plan.view)]);
    match plan.stop {
        Stop::Timeout(time) => command.arg("--timeout").arg(format!("{}ms", time.as_millis())),
        Stop::Stall(time) => command.arg("--stall-timeout").arg(format!("{}ms", time.as_millis())),
        _ => &mut command,
    };
    if plan.resumes {
        command.arg(format!("--resume={RESUMED}"));
    }
    if plan.record {
        command.arg("--record").arg(place.record.join(format!("run-{number}")));
    }
    command.arg(agent::prompt(plan, number));
    let mut output = None;
    if number == 0 && matches!(plan.stop, Stop::CloseOutput { .. }) {
        let (reader, writer) = io::pipe()?;
        output = Some(reader);
        command.stdout(writer);
    } else {
        command.stdout(File::create(place.out.join(format!("{number}.stdout")))?);
    }
    // Not on the disk that may be full: what is said there has to be read.
    command.stderr(File::create(place.marks.join(format!("{number}.stderr")))?).stdin(Stdio::null());
    let child = command.spawn()?;
    Ok(Started { child, status: None, output, read: Vec::new(), server: asked, memory: 0 })
}

fn view(view: View) -> &'static str {
    match view {
        View::Events => "events",
        View::Outcome => "outcome",
        View::Other(name) => name,
    }
}

/// Waits for the end of a run, and sees that it keeps its bounds.
fn wait(plan: &Plan, run: &mut Started, number: usize, deed: &stop::Deed) -> Vec<String> {
    let limit = match (plan.real, plan.stream) {
        (true, _) => REAL_LIMIT,
        (false, Stream::Flood) if plan.stop == Stop::None => FLOOD_LIMIT,
        (false, _) => LIMIT,
    };
    let (waiting, mut told) = (Instant::now(), false);
    while !run.has_ended() {
        if waiting.elapsed() > limit {
            let state = format!("run {number} did not end within {limit:?}");
            signal(run.pid(), Signal::KILL);
            let _ = run.child.wait();
            return vec![state];
        }
        // The run may rightly go on after a stop that was not meant for Alhena.
        if number == 0 && !told && waiting.elapsed() > PATIENCE && !verdict::must_end(plan, deed) {
            told = true;
            signal(run.pid(), Signal::TERM);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    match run.memory > MOST_MEMORY {
        true => vec![format!("run {number} took {} MiB of memory", run.memory >> 10)],
        false => Vec::new(),
    }
}

fn end(place: &Place, run: &Started, number: usize) -> io::Result<EndedRun> {
    let file = std::fs::read(place.out.join(format!("{number}.stdout")));
    let stdout = file.unwrap_or_else(|_| run.read.clone());
    let stderr = std::fs::read(place.marks.join(format!("{number}.stderr")))?;
    let result = std::fs::metadata(agent::mark(place, number, "result")).and_then(|data| data.modified());
    Ok(EndedRun {
        run: number,
        status: run.status,
        stdout,
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
        result: result.ok(),
    })
}
