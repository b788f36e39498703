//! How fast the wire layer reads, on generated data: `cargo bench -p alhena-wire`.
//!
//! Prints megabytes per second, the best of five rounds, by the CPU time of the thread where the system tells it (Linux): a
//! busy machine would otherwise measure its other work. With a directory as its argument it writes the data there first, so
//! that another reader can be timed on the same bytes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use alhena_wire::frame::{Frame, Framer};
use alhena_wire::session::Session;
use alhena_wire::stream::{StreamEvent, parse_line};
use serde_json::json;

const MEGABYTE: usize = 1 << 20;

/// Words without a random generator: the same text on every machine.
struct Words(u64);

impl Words {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    fn text(&mut self, words: u64) -> String {
        const WORDS: [&str; 12] = [
            "the",
            "river",
            "writes",
            "a",
            "function",
            "into",
            "src/main.rs",
            "café",
            "of",
            "tests",
            "\"quoted\"",
            "and\n",
        ];
        (0..words).map(|_| WORDS[self.next(12) as usize]).collect::<Vec<_>>().join(" ")
    }
}

fn delta(words: &mut Words) -> String {
    let length = 3 + words.next(10);
    let content = words.text(length);
    let line = json!({"type": "message", "timestamp": "2026-11-15T17:49:10.599Z", "role": "assistant", "content": content, "delta": true});
    format!("{line}\n")
}

fn deltas(size: usize) -> Vec<u8> {
    let mut words = Words(1);
    let mut stream = String::new();
    while stream.len() < size {
        stream += &delta(&mut words);
    }
    stream.into_bytes()
}

fn mixed(size: usize) -> Vec<u8> {
    let mut words = Words(2);
    let output = words.text(170_000);
    let mut stream = String::new();
    while stream.len() < size {
        (0..200).for_each(|_| stream += &delta(&mut words));
        let call = json!({"type": "tool_use", "timestamp": "2026-11-15T17:49:10.599Z", "tool_name": "run_shell_command", "tool_id": "run_shell_command__1", "parameters": {"command": words.text(20)}});
        let result = json!({"type": "tool_result", "timestamp": "2026-11-15T17:49:10.599Z", "tool_id": "run_shell_command__1", "status": "success", "output": output});
        writeln!(stream, "{call}\n{result}").unwrap();
    }
    stream.into_bytes()
}

fn message(words: &mut Words, turn: u64) -> [serde_json::Value; 3] {
    let user = json!({"id": format!("u{turn}"), "timestamp": "2026-11-15T17:49:10.599Z", "type": "user", "content": [{"text": words.text(30)}]});
    let mut first = json!({"id": format!("g{turn}"), "timestamp": "2026-11-15T17:49:10.599Z", "type": "gemini", "content": words.text(150), "thoughts": [{"subject": "Plan", "description": words.text(40), "timestamp": "2026-11-15T17:49:10.599Z"}], "tokens": {"input": 1000, "output": 50, "cached": 20, "thoughts": 7, "tool": 0, "total": 1057}, "model": "gemini-2.5-flash"});
    let plain = first.clone();
    let output = words.text(900);
    first["toolCalls"] = json!([{"id": format!("c{turn}"), "name": "read_file", "args": {"file_path": "src/main.rs"}, "result": [{"functionResponse": {"id": format!("c{turn}"), "name": "read_file", "response": {"output": output}}}], "status": "success", "timestamp": "2026-11-15T17:49:10.599Z", "resultDisplay": {"fileDiff": words.text(200), "fileName": "main.rs", "filePath": "/w/src/main.rs", "originalContent": words.text(300), "newContent": words.text(300)}}]);
    [user, plain, first]
}

fn log(size: usize) -> Vec<u8> {
    let mut words = Words(3);
    let mut file = format!(
        "{}\n",
        json!({"sessionId": "s", "projectHash": "p", "startTime": "t", "lastUpdated": "t", "kind": "main"})
    );
    for turn in 0.. {
        if file.len() > size {
            break;
        }
        for record in message(&mut words, turn) {
            writeln!(file, "{record}\n{}", json!({"$set": {"lastUpdated": "2026-11-15T17:49:10.599Z"}}))
                .unwrap();
        }
    }
    file.into_bytes()
}

fn object(size: usize) -> Vec<u8> {
    let mut words = Words(4);
    let mut messages = Vec::new();
    for turn in 0..(size as u64 / 16_000) {
        let [user, _, model] = message(&mut words, turn);
        messages.extend([user, model]);
    }
    let session = json!({"sessionId": "s", "projectHash": "p", "startTime": "t", "lastUpdated": "t", "messages": messages});
    serde_json::to_string_pretty(&session).unwrap().into_bytes()
}

fn read_stream(bytes: &[u8]) -> usize {
    let mut text = 0;
    let mut framer = Framer::default();
    for chunk in bytes.chunks(64 << 10) {
        framer.push(chunk, |frame| {
            if let Frame::Line(line) = frame
                && let StreamEvent::Message(message) = black_box(parse_line(line)).unwrap()
            {
                text += message.content.len();
            }
        });
    }
    text
}

fn read_session(bytes: &[u8]) -> usize {
    let session = Session::read(bytes);
    let records = session.log.messages().iter().map(|message| black_box(message.decode()));
    records.map(|record| record.content.map_or(0, |content| content.text().len())).sum()
}

/// Nanoseconds of this thread on a CPU; of the clock, where that is not known.
fn now(start: Instant) -> u64 {
    let scheduled = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let cpu = scheduled.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
    cpu.unwrap_or_else(|| start.elapsed().as_nanos() as u64)
}

fn time(name: &str, bytes: &[u8], read: impl Fn(&[u8]) -> usize) {
    let clock = Instant::now();
    let round = |_| {
        let start = now(clock);
        black_box(read(black_box(bytes)));
        now(clock) - start
    };
    let best = (0..5).map(round).min().unwrap_or_default();
    println!("{name:24} {:8.0} MB/s", bytes.len() as f64 / best as f64 * 1000.0);
}

fn main() {
    let directory = std::env::args().nth(1).filter(|argument| !argument.starts_with('-'));
    let save = |name: &str, bytes: &[u8]| {
        if let Some(directory) = &directory {
            std::fs::write(std::path::Path::new(directory).join(name), bytes).unwrap();
        }
    };
    for (name, bytes) in [("deltas.ndjson", deltas(50 * MEGABYTE)), ("mixed.ndjson", mixed(50 * MEGABYTE))] {
        save(name, &bytes);
        time(name, &bytes, read_stream);
    }
    for (name, bytes) in [("session.jsonl", log(20 * MEGABYTE)), ("session.json", object(20 * MEGABYTE))] {
        save(name, &bytes);
        time(name, &bytes, read_session);
    }
}
