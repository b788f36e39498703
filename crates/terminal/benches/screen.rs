//! How long a screen takes to read, next to the document's rule in Python on the same captures in the same run.
//!
//! `cargo bench -p alhena-terminal`. The aims: 50 lines in 50 microseconds, 5,000 lines in 2 milliseconds, and an answer in
//! a time that grows with its length and not faster. Ratios are what to compare; the figures depend on the machine.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]

use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use alhena_terminal::screen::Capture;

/// A conversation with 55 turns, as captured from 0.61.0 in 80 columns.
const CONVERSATION: &str = include_str!("../tests/data/answers/61-80.txt");

/// The rows of the prompt at the end of a capture.
const PROMPT_ROWS: usize = 12;

struct Subject {
    name: &'static str,
    text: String,
}

/// The last `rows` rows of the conversation, repeated as often as needed, with the prompt at the end.
fn capture(rows: usize) -> String {
    let lines: Vec<&str> = CONVERSATION.trim_end().lines().collect();
    let (turns, prompt) = lines.split_at(lines.len() - PROMPT_ROWS);
    let body: Vec<&str> = turns.iter().rev().cycle().take(rows - PROMPT_ROWS).copied().collect();
    let body: Vec<&str> = body.into_iter().rev().chain(prompt.iter().copied()).collect();
    body.join("\n")
}

/// One answer of about `rows` rows.
fn long_answer(rows: usize) -> String {
    let lines: Vec<&str> = CONVERSATION.trim_end().lines().collect();
    let prompt = lines[lines.len() - PROMPT_ROWS..].join("\n");
    let border = "▄".repeat(80);
    let paragraph = "  The quick brown fox jumps over the lazy dog while the band plays on and on and on\n  until the end.\n\n";
    format!("{border}\n > write\n{border}\n✦ Here it is.\n\n{}{prompt}", paragraph.repeat(rows / 3))
}

/// The same with colours: every row in its own.
fn coloured(text: &str) -> String {
    text.lines().map(|line| format!("\x1b[38;2;255;255;255m{line}\x1b[39m\n")).collect()
}

/// The median time of a call, in microseconds.
fn median(mut call: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = Vec::new();
    let begin = Instant::now();
    while times.len() < 30 || (begin.elapsed().as_millis() < 300 && times.len() < 5_000) {
        let start = Instant::now();
        call();
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The same in Python: status and answer of each capture.
fn baseline(subjects: &[Subject]) -> Vec<(f64, f64)> {
    let directory = std::env::temp_dir().join(format!("alhena-screen-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let paths: Vec<_> =
        subjects.iter().map(|subject| directory.join(subject.name.replace(' ', "_"))).collect();
    for (path, subject) in paths.iter().zip(subjects) {
        std::fs::write(path, &subject.text).unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/baseline.py");
    let output = Command::new("python3").arg(script).args(&paths).output();
    std::fs::remove_dir_all(&directory).unwrap();
    let Ok(output) = output else { return Vec::new() };
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let figure = |line: &str, key: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()[key].as_f64().unwrap()
    };
    lines.lines().map(|line| (figure(line, "status"), figure(line, "answer"))).collect()
}

fn main() {
    let subjects = [
        Subject { name: "50 lines", text: capture(50) },
        Subject { name: "50 lines, coloured", text: coloured(&capture(50)) },
        Subject { name: "5,000 lines", text: capture(5_000) },
        Subject { name: "5,000 lines, coloured", text: coloured(&capture(5_000)) },
        Subject { name: "answer of 2,500 lines", text: long_answer(2_500) },
        Subject { name: "answer of 5,000 lines", text: long_answer(5_000) },
        Subject { name: "answer of 10,000 lines", text: long_answer(10_000) },
    ];
    let python = baseline(&subjects);
    println!(
        "{:24} {:>10} {:>10} {:>10} {:>10} {:>22}",
        "microseconds, median", "status", "read", "answer", "turns", "Python status, answer"
    );
    for (at, subject) in subjects.iter().enumerate() {
        let capture = Capture::new(&subject.text).title("◇  Ready (project)");
        let status = median(|| {
            black_box(black_box(&capture).status());
        });
        let read = median(|| drop(black_box(black_box(&capture).read())));
        let answer = median(|| drop(black_box(black_box(&capture).last_answer())));
        let turns = median(|| drop(black_box(black_box(&capture).turns())));
        let compared = match python.get(at) {
            Some((their_status, their_answer)) => format!(
                "{their_status:.0} ({:.0}x), {their_answer:.0} ({:.0}x)",
                their_status / status,
                their_answer / answer
            ),
            None => "no python3".to_owned(),
        };
        println!("{:24} {status:>10.1} {read:>10.1} {answer:>10.1} {turns:>10.1}   {compared}", subject.name);
    }
}
