//! The status, asked for by two processes at once all the time, against what the scripted API knows.
//!
//! A sample is a process of its own, `alhena terminal status --json`, and holds for the time between its start and its end. It
//! is judged only where the truth did not change within that time, nor in the 150 ms before it: on a busy machine a sample
//! takes longer, and then it is judged less often, never more kindly. `ALHENA_TRUTH_TURNS` makes more of it; the figures are
//! printed.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use alhena_agent::home::McpServer;
use alhena_scripted::{RecordedRequest, Scenario, Turn};
use alhena_terminal::screen::Reading;
use alhena_terminal::{Force, Terminal, Until};
use serde_json::{Value, json};

use super::place::{ALHENA, LONG, Place};
use crate::lab::Build;

/// How long after a change a sample may be wrong.
const WINDOW: Duration = Duration::from_millis(150);

/// What a turn can be, and how it has to end.
const KINDS: [(&str, &[&str]); 9] = [
    ("at once", &["answered"]),
    ("slowly", &["answered"]),
    ("much", &["answered"]),
    ("empty", &["empty"]),
    ("with a tool", &["answered"]),
    ("half blocked", &["blocked"]),
    ("failing", &["error"]),
    ("blocked", &["blocked", "empty"]),
    ("cut off", &["cut_off"]),
];

fn scripted(request: &RecordedRequest) -> Turn {
    let prompt = request.prompt().unwrap_or_default();
    let told = |kind: &str| prompt.ends_with(&format!("Be {kind}"));
    let pause = Duration::from_millis(700);
    match () {
        () if told("slowly") => Turn::new().delay(pause).text("One. ").sleep(pause).text("Two."),
        () if told("empty") => Turn::new().delay(pause).finish("STOP"),
        () if told("half blocked") => Turn::new().delay(pause).text("Half of").finish("SAFETY"),
        () if told("blocked") => Turn::new().delay(pause).finish("SAFETY"),
        () if told("cut off") => Turn::new().delay(pause).text("This is cut").finish("MAX_TOKENS"),
        () if told("failing") => {
            Turn::error(400, json!({"code": 400, "message": "scripted", "status": "INVALID_ARGUMENT"}))
        }
        () if told("with a tool") && request.results_since_prompt().next().is_none() => {
            Turn::new().delay(pause).call("run_shell_command", json!({"command": "sleep 0.5"}))
        }
        () => Turn::say("Well."),
    }
}

/// What somebody was told, and when they asked.
#[derive(Clone, Debug)]
struct Sample {
    asked: SystemTime,
    told: SystemTime,
    status: String,
    turn: Option<u64>,
    ended: Option<String>,
}

/// A turn by the word of the API.
#[derive(Debug)]
struct Truth {
    kind: &'static str,
    hows: &'static [&'static str],
    turn: u64,
    sent: SystemTime,
    /// When the API had sent the last of it.
    answered: SystemTime,
    /// When the one who waited was told that it is over.
    over: SystemTime,
}

fn sample(place: &Place, name: &str) -> Option<Sample> {
    let asked = SystemTime::now();
    let mut command = Command::new(ALHENA);
    command.env_clear().envs(place.env.iter()).args(["terminal", "--server", &place.server, "--tmux"]);
    let done = command.arg(&place.tmux).args(["status", name, "--json"]).output().unwrap();
    let told = SystemTime::now();
    let value: Value = serde_json::from_slice(&done.stdout).ok()?;
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned);
    let turn = value.pointer("/turn/id").and_then(Value::as_u64);
    Some(Sample { asked, told, status: text("/status")?, turn, ended: text("/turn/ended") })
}

/// One agent: a launch whose MCP server takes six seconds, and some turns. Says when the server was there.
fn life(
    place: &Place,
    name: &str,
    kinds: &[(&'static str, &'static [&'static str])],
) -> (SystemTime, Vec<Truth>) {
    let mut wanted = place.wanted("");
    wanted.name = Some(name.to_owned());
    wanted.timeout = LONG * 2;
    wanted.request = wanted.request.approval(alhena_agent::Approval::Yolo);
    let started = place.work().join(format!("{name}.txt"));
    let script = format!("sleep 6; touch {}", started.display());
    wanted.request.mcp_servers.push(McpServer::process("slow", "sh", ["-c", &script]));
    let terminal = place.terminals.launch(wanted).unwrap();
    assert!(started.exists(), "{name} was ready before its server");
    let ready = std::fs::metadata(&started).unwrap().modified().unwrap();
    (ready, kinds.iter().map(|(kind, hows)| turn(place, &terminal, kind, hows)).collect())
}

fn turn(place: &Place, terminal: &Terminal, kind: &'static str, hows: &'static [&'static str]) -> Truth {
    let padding = if kind == "much" { "Much to read. ".repeat(200_000 / 14) } else { String::new() };
    let number = terminal.send(&format!("{padding}Be {kind}"), Force::OnlyWhenReady).unwrap().turn.unwrap();
    let reading: Reading = terminal.wait(Until::Settled, LONG).unwrap();
    let over = SystemTime::now();
    let record = terminal.turn_records().pop().unwrap();
    let sent = SystemTime::UNIX_EPOCH + Duration::from_millis(record.sent.as_millis() as u64);
    let state = place.api.state("api");
    let turns = state.runs.values().flat_map(|run| &run.turns);
    // Everything that was asked for has been answered: nothing was called over too early.
    let ended: Vec<SystemTime> =
        turns.map(|turn| turn.ended.unwrap_or_else(|| panic!("{kind} goes on: {reading:?}")).0).collect();
    Truth { kind, hows, turn: number, sent, answered: ended.into_iter().max().unwrap(), over }
}

/// What was wrong, of what could be judged.
fn judge(truths: &[Truth], samples: &[Sample]) -> (usize, Vec<String>) {
    let (mut judged, mut wrong) = (0, Vec::new());
    for (index, truth) in truths.iter().enumerate() {
        let next = truths.get(index + 1).map(|next| next.sent);
        for sample in samples {
            let works = sample.asked > truth.sent + WINDOW && sample.told < truth.answered;
            let free = sample.asked > truth.over + WINDOW && next.is_some_and(|next| sample.told < next);
            if !works && !free {
                continue;
            }
            judged += 1;
            let is_free = ["idle", "completed", "error"].contains(&sample.status.as_str());
            let ended_well = sample.ended.as_deref().is_some_and(|how| truth.hows.contains(&how));
            let right = match works {
                true => sample.status == "processing" && sample.ended.is_none(),
                false => is_free && ended_well,
            };
            if !right || sample.turn != Some(truth.turn) {
                wrong.push(format!("{truth:?}: {sample:?}"));
            }
        }
    }
    (judged, wrong)
}

#[test]
fn two_processes_are_told_the_truth_about_every_kind_of_turn() {
    let turns = std::env::var("ALHENA_TRUTH_TURNS").ok().and_then(|text| text.parse().ok()).unwrap_or(9);
    let place = Place::soak("matrix", Scenario::dynamic(scripted), Duration::from_secs(20 * turns));
    let kinds: Vec<_> = KINDS.iter().copied().cycle().take(turns as usize).collect();
    let (mut judged, mut wrong, mut late, mut starting) = (0, Vec::new(), Vec::new(), 0);
    for (number, kinds) in kinds.chunks(KINDS.len()).enumerate() {
        let (name, over) = (format!("agent{number}"), AtomicBool::new(false));
        let watch = || {
            let mut samples = Vec::new();
            while !over.load(Ordering::Relaxed) {
                samples.extend(sample(&place, &name));
                std::thread::sleep(Duration::from_millis(30));
            }
            samples
        };
        let ((ready, truths), samples) = std::thread::scope(|scope| {
            let watchers = [scope.spawn(watch), scope.spawn(watch)];
            let truths =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| life(&place, &name, kinds)));
            over.store(true, Ordering::Relaxed);
            let samples = watchers.map(|watcher| watcher.join().unwrap()).concat();
            (truths.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), samples)
        });
        let (count, lies) = judge(&truths, &samples);
        judged += count;
        wrong.extend(lies);
        late.extend(truths.iter().map(|truth| {
            let late = truth.over.duration_since(truth.answered).unwrap_or_default();
            (late, truth.kind)
        }));
        for sample in samples.iter().filter(|sample| sample.told < ready) {
            starting += 1;
            if sample.status != "starting" {
                wrong.push(format!("its server was not ready: {sample:?}"));
            }
        }
        place.terminals.find(&name).unwrap().kill().unwrap();
    }
    late.sort_unstable();
    let median = late.get(late.len() / 2);
    println!(
        "{turns} turns, {judged} samples judged, {} wrong, {starting} while it started; told the end after {median:?}, at most {:?}",
        wrong.len(),
        late.last()
    );
    assert!(wrong.is_empty(), "{} of {judged} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(judged > turns as usize * 3 && starting > 5, "{judged} judged, {starting} starting");
}
