//! `cargo xtask bench sessions [SESSIONS [MEGABYTES [ROUNDS]]]`: all sessions to messages on two threads, against a plain Node
//! loader on the same files in the same run; the list without and with its cache; the search.

mod generate;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use alhena_model::Include;
use alhena_model::message::Block;
use alhena_session::Transcript;
use alhena_sys::processes;
use alhena_testbed::{cache, run_bounded};

use super::{build, median, number};

const SESSIONS: u64 = 2_000;
const MEGABYTES: u64 = 1_000;
const ROUNDS: u64 = 3;
const THREADS: usize = 2;
const LIMIT: Duration = Duration::from_secs(900);

/// What was found: the proof that both sides did the same work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    messages: u64,
    blocks: u64,
    text_bytes: u64,
    result_bytes: u64,
}

/// Measures. `load HOME` is the part that a child process does, so that its memory can be told.
pub fn run(words: &[&str]) -> Result<(), String> {
    if let ["load", home] = words {
        let started = Instant::now();
        let seen = load(Path::new(home))?;
        let seconds = started.elapsed().as_secs_f64();
        println!("{seconds} {} {} {} {}", seen.messages, seen.blocks, seen.text_bytes, seen.result_bytes);
        println!("{}", processes::peak_memory(std::process::id()));
        return Ok(());
    }
    let (sessions, megabytes) = (number(words, 0, SESSIONS)?, number(words, 1, MEGABYTES)?);
    let rounds = number(words, 2, ROUNDS)?;
    let home = generate::home(sessions, megabytes)?;
    let bytes: u64 =
        files(&home)?.iter().filter_map(|path| path.metadata().ok()).map(|data| data.len()).sum();
    println!("{sessions} sessions, {:.0} MB, medians of {rounds}", bytes as f64 / 1e6);
    let full = messages_against_node(&home, rounds)?;
    commands(&home, bytes, rounds, full)
}

fn messages_against_node(home: &Path, rounds: u64) -> Result<f64, String> {
    let (mut node, mut alhena, mut memory) = (Vec::new(), Vec::new(), 0);
    let script = cache::workspace().join("xtask/src/bench/sessions.mjs");
    for _ in 0..rounds {
        let (node_seconds, node_saw, _) = side(Command::new("node").arg(&script).arg(home))?;
        let mut own = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
        let (seconds, saw, peak) = side(own.args(["bench", "--as-built", "sessions", "load"]).arg(home))?;
        if saw != node_saw {
            return Err(format!("the two sides saw different things: alhena {saw:?}, node {node_saw:?}"));
        }
        node.push(node_seconds);
        alhena.push(seconds);
        memory = memory.max(peak);
    }
    let (node, alhena) = (median(&node), median(&alhena));
    println!(
        "to messages: node {node:.2} s, alhena {alhena:.2} s on {THREADS} threads: 1/{:.1}",
        node / alhena
    );
    println!("memory of alhena: {} MB", memory / 1000);
    Ok(alhena)
}

/// Runs one side: seconds, what it saw, and its peak memory in kB where it says so.
fn side(command: &mut Command) -> Result<(f64, Counts, u64), String> {
    let done = run_bounded(command, LIMIT).map_err(|error| error.to_string())?;
    if !done.succeeded() {
        return Err(format!("one side failed ({}): {}", done.ending(), done.stderr_text()));
    }
    let text = done.stdout_text();
    let mut words = text.split_whitespace();
    let seconds = words.next().and_then(|word| word.parse().ok());
    let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
    match (seconds, &numbers[..]) {
        (Some(seconds), &[messages, blocks, text_bytes, result_bytes, ref rest @ ..]) => {
            let seen = Counts { messages, blocks, text_bytes, result_bytes };
            Ok((seconds, seen, rest.first().copied().unwrap_or(0)))
        }
        _ => Err(format!("one side printed {text:?}")),
    }
}

fn files(home: &Path) -> Result<Vec<PathBuf>, String> {
    let list = |dir: &Path| -> Result<Vec<PathBuf>, String> {
        let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        Ok(entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
    };
    let mut files = Vec::new();
    for project in list(&home.join(".gemini/tmp"))? {
        files.extend(list(&project.join("chats"))?);
    }
    Ok(files)
}

fn load(home: &Path) -> Result<Counts, String> {
    let files = files(home)?;
    let next = AtomicUsize::new(0);
    let work = || -> Result<Counts, String> {
        let (mut seen, mut buffer) = (Counts::default(), Vec::new());
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let transcript = Transcript::read_into(path, buffer).map_err(|error| error.to_string())?;
            count(&transcript, &mut seen);
            buffer = transcript.into_buffer();
        }
        Ok(seen)
    };
    let sides: Vec<Result<Counts, String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a thread failed".to_owned())))
            .collect()
    });
    sides.into_iter().try_fold(Counts::default(), |sum, side| {
        let side = side?;
        Ok(Counts {
            messages: sum.messages + side.messages,
            blocks: sum.blocks + side.blocks,
            text_bytes: sum.text_bytes + side.text_bytes,
            result_bytes: sum.result_bytes + side.result_bytes,
        })
    })
}

fn count(transcript: &Transcript, seen: &mut Counts) {
    for message in transcript.messages(Include::Said) {
        seen.messages += 1;
        for block in message.content.blocks() {
            seen.blocks += 1;
            match block {
                Block::Text { text } => seen.text_bytes += text.len() as u64,
                Block::ToolResult(result) => seen.result_bytes += result.content.len() as u64,
                Block::Thinking { .. } | Block::ToolUse { .. } | Block::Image { .. } => {}
            }
        }
    }
}

/// The list and the search, as a user calls them.
fn commands(home: &Path, bytes: u64, rounds: u64, full: f64) -> Result<(), String> {
    let binary = build()?;
    let scratch = cache::root().join("bench/sessions-own");
    let call = |arguments: &[&str]| -> Result<f64, String> {
        let mut command = Command::new(&binary);
        command.arg("sessions").args(arguments).env("GEMINI_CLI_HOME", home).env("ALHENA_HOME", &scratch);
        let started = Instant::now();
        let done = run_bounded(&mut command, LIMIT).map_err(|error| error.to_string())?;
        let seconds = started.elapsed().as_secs_f64();
        if done.succeeded() {
            Ok(seconds)
        } else {
            Err(format!("alhena sessions {arguments:?}: {}", done.stderr_text()))
        }
    };
    let forget = || drop(std::fs::remove_dir_all(&scratch));
    let times = |arguments: &[&str], fresh: bool| -> Result<f64, String> {
        let mut figures = Vec::new();
        for _ in 0..rounds.max(3) {
            if fresh {
                forget();
            }
            figures.push(call(arguments)?);
        }
        Ok(median(&figures))
    };
    let cold = times(&["list", "--all"], true)?;
    let warm = times(&["list", "--all"], false)?;
    println!("list --all: cold {cold:.3} s ({:.2} of the full load), warm {:.0} ms", cold / full, warm * 1e3);
    let gigabytes = bytes as f64 / 1e9;
    for words in [&["search", "nihe"][..], &["search", "nihe", "rahe"], &["search", "successfully modified"]]
    {
        let time = times(words, false)?;
        println!("{}: {:.0} ms ({:.0} ms per GB)", words.join(" "), time * 1e3, time * 1e3 / gigabytes);
    }
    forget();
    Ok(())
}
