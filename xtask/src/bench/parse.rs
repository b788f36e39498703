//! `cargo xtask bench parse [MEGABYTES [ROUNDS]]`: stream-json to events, one thread, against a Node loop that does the
//! same work on the same data in the same run, each round in a process of its own. Both sides report what they saw, and the
//! figures only count if it is equal.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use alhena_model::{End, Event, EventKind, Exit, Interpreter, Source};
use alhena_testbed::{cache, run_bounded};
use alhena_wire::frame::{Frame, Framer};

use super::data::{Shape, stream};
use super::{median, number};

const MEGABYTES: u64 = 100;
const ROUNDS: u32 = 5;

/// What was found in a stream: the proof that both sides did the same work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub events: u64,
    /// Events of each type, in the order init, message, tool_use, tool_result, error, result.
    pub by_type: [u64; 6],
    pub malformed: u64,
    pub text_bytes: u64,
    pub output_bytes: u64,
}

/// Reads as `alhena parse` does, and keeps every event, as the Node side does. Both are looked at, and let go, after the
/// clock has stopped.
fn alhena(path: &Path) -> Result<Vec<Event>, String> {
    let text = |error: std::io::Error| error.to_string();
    let mut file = std::fs::File::open(path).map_err(text)?;
    let (mut framer, mut interpreter, mut events) = (Framer::default(), Interpreter::new(), Vec::new());
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = file.read(&mut buffer).map_err(text)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        let take = |frame: Frame<'_>| interpreter.feed(frame.into(), &mut events);
        match count {
            0 => framer.finish(take),
            _ => framer.push(bytes, take),
        }
        if count == 0 {
            let end = End { exit: Exit::Unknown, stderr: String::new(), duration_ms: None };
            interpreter.conclude(&end, &mut events);
            return Ok(events);
        }
    }
}

fn counts(events: &[Event]) -> Counts {
    let mut seen = Counts::default();
    for event in events {
        let kind = match (&event.kind, event.source) {
            (EventKind::Started { .. }, _) => 0,
            (EventKind::Prompt { .. }, _) => 1,
            (EventKind::Text { delta }, _) => {
                seen.text_bytes += delta.len() as u64;
                1
            }
            (EventKind::ToolCall { .. }, _) => 2,
            (EventKind::ToolResult { output, .. }, _) => {
                seen.output_bytes += output.as_ref().map_or(0, |output| output.len() as u64);
                3
            }
            (EventKind::Warning { .. } | EventKind::Error { .. }, Source::Stream) => 4,
            (EventKind::Finished { .. }, _) => 5,
            (EventKind::Malformed { .. }, _) => {
                seen.malformed += 1;
                continue;
            }
            // Derived ones come on top of what Node makes.
            _ => continue,
        };
        seen.events += 1;
        if let Some(count) = seen.by_type.get_mut(kind) {
            *count += 1;
        }
    }
    seen
}

/// Measures. `once FILE` is Alhena's side of one round.
pub fn run(words: &[&str]) -> Result<(), String> {
    if let ["once", file] = words {
        println!("{}", once(Path::new(file))?);
        return Ok(());
    }
    let (megabytes, rounds) = (number(words, 0, MEGABYTES)?, number(words, 1, ROUNDS)?);
    for shape in [Shape::Deltas, Shape::Mixed] {
        let file = stream(shape, megabytes)?;
        let size = std::fs::metadata(&file).map_err(|error| error.to_string())?.len() as f64 / 1e6;
        let sides = measure(&file, rounds, ours)?;
        let node = median(&sides.node);
        println!("{:8} {size:.0} MB, median of {rounds}: node {:.0} MB/s", shape.name(), size / node);
        let alhena = median(&sides.alhena);
        println!(
            "{:8} alhena {:.0} MB/s, {:.1} times as fast (aim 4 to 6)",
            shape.name(),
            size / alhena,
            node / alhena
        );
    }
    Ok(())
}

#[derive(Debug, Default)]
pub struct Sides {
    pub node: Vec<f64>,
    pub alhena: Vec<f64>,
}

fn measure(
    file: &Path,
    rounds: u32,
    ours: impl Fn(&Path) -> Result<(f64, Counts), String>,
) -> Result<Sides, String> {
    let mut sides = Sides::default();
    for _ in 0..rounds {
        let (seconds, seen_by_node) = node(file)?;
        sides.node.push(seconds);
        let (seconds, seen) = ours(file)?;
        sides.alhena.push(seconds);
        if seen != seen_by_node {
            return Err(format!(
                "the two sides saw different things: alhena {seen:?}, node {seen_by_node:?}"
            ));
        }
    }
    Ok(sides)
}

/// Alhena's side of one round: seconds and counts, as the Node side prints them.
fn once(file: &Path) -> Result<String, String> {
    let start = Instant::now();
    let events = alhena(file)?;
    let seconds = start.elapsed().as_secs_f64();
    let seen = counts(&events);
    let [init, message, call, result, error, end] = seen.by_type;
    Ok(format!(
        "{seconds} {} {init} {message} {call} {result} {error} {end} {} {} {}",
        seen.events, seen.malformed, seen.text_bytes, seen.output_bytes
    ))
}

fn ours(file: &Path) -> Result<(f64, Counts), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    side("Alhena's", Command::new(own).args(["bench", "--as-built", "parse", "once"]).arg(file))
}

fn script() -> PathBuf {
    cache::workspace().join("xtask/src/bench/parse.mjs")
}

fn node(file: &Path) -> Result<(f64, Counts), String> {
    side("the Node", Command::new("node").arg(script()).arg(file))
}

fn side(name: &str, command: &mut Command) -> Result<(f64, Counts), String> {
    let done = run_bounded(command, Duration::from_secs(600)).map_err(|error| error.to_string())?;
    if !done.succeeded() {
        return Err(format!("{name} side failed ({}): {}", done.ending(), done.stderr_text()));
    }
    let text = done.stdout_text();
    read_side(&text).ok_or_else(|| format!("{name} side printed {text:?}"))
}

fn read_side(text: &str) -> Option<(f64, Counts)> {
    let mut words = text.split_whitespace();
    let seconds = words.next()?.parse().ok()?;
    let mut number = || words.next()?.parse::<u64>().ok();
    let events = number()?;
    let by_type = [number()?, number()?, number()?, number()?, number()?, number()?];
    Some((
        seconds,
        Counts { events, by_type, malformed: number()?, text_bytes: number()?, output_bytes: number()? },
    ))
}

#[cfg(test)]
mod tests {
    use super::{Counts, measure, node, once, read_side};

    const LINES: &str = concat!(
        r#"{"type":"init","timestamp":"2026-11-15T17:49:10.599Z","session_id":"a","model":"m"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2026-11-15T17:49:10.603Z","role":"user","content":"Say hi"}"#,
        "\nnot json\n",
        r#"{"type":"message","timestamp":"2026-11-15T17:49:10.686Z","role":"assistant","content":"größe","delta":true}"#,
        "\n",
        r#"{"type":"tool_use","timestamp":"2026-11-15T17:49:10.686Z","tool_name":"glob","tool_id":"1","parameters":{}}"#,
        "\n",
        r#"{"type":"tool_result","timestamp":"2026-11-15T17:49:10.686Z","tool_id":"1","status":"success","output":"abc"}"#,
        "\n",
        r#"{"type":"result","timestamp":"2026-11-15T17:49:10.762Z","status":"success","stats":{"total_tokens":1}}"#,
        "\n",
    );
    const SEEN: Counts =
        Counts { events: 6, by_type: [1, 2, 1, 1, 0, 1], malformed: 1, text_bytes: 7, output_bytes: 3 };

    fn file() -> Result<tempfile::NamedTempFile, std::io::Error> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), LINES)?;
        Ok(file)
    }

    #[test]
    fn the_node_side_counts_what_is_there() {
        let file = file().unwrap();
        assert_eq!(node(file.path()).unwrap().1, SEEN);
    }

    #[test]
    fn sides_that_saw_different_things_are_no_measurement() {
        let file = file().unwrap();
        let sides = measure(file.path(), 2, |file| Ok(read_side(&once(file)?).unwrap())).unwrap();
        assert_eq!((sides.node.len(), sides.alhena.len()), (2, 2));
        let wrong = measure(file.path(), 1, |_| Ok((1.0, Counts::default()))).unwrap_err();
        assert!(wrong.starts_with("the two sides saw different things"), "{wrong}");
    }
}
