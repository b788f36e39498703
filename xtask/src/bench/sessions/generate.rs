//! Generated sessions, half as one JSON object (to 0.38) and half as a log (0.39 on), shaped like recorded ones: thoughts,
//! text, reads, edits with the file before and after, shell output, and in a log every answer twice and every tool result
//! again in the user's name.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alhena_testbed::cache;
use serde_json::{Value, json};

/// Raise this when the generator changes, or old files would be measured.
const GENERATION: u32 = 1;
const PROJECTS: u64 = 40;

/// The home with this many sessions of this many megabytes together, generated on first use.
pub(super) fn home(sessions: u64, megabytes: u64) -> Result<PathBuf, String> {
    let name = format!("bench/sessions-{sessions}-{megabytes}-g{GENERATION}");
    let made = cache::entry(&name, |directory| {
        eprintln!("generating {name} ...");
        for number in 0..sessions {
            write_session(directory, number, megabytes * 1_000_000 / sessions)?;
        }
        Ok(())
    });
    made.map_err(|error| format!("{name}: {error}"))
}

fn write_session(home: &Path, number: u64, size: u64) -> io::Result<()> {
    let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let project = home.join(format!(".gemini/tmp/project-{}", number % PROJECTS));
    fs::create_dir_all(project.join("chats"))?;
    fs::write(project.join(".project_root"), format!("/home/dev/project-{}", number % PROJECTS))?;
    let id = format!("{:08x}-0000-4000-8000-{:012x}", random.next() as u32, number);
    let day = 1 + number % 28;
    let time = format!("2026-10-{day:02}T10:00:00.000Z");
    let as_log = number % 2 == 1;
    let header = json!({"sessionId": id, "projectHash": "0".repeat(64), "startTime": time, "lastUpdated": time, "kind": "main"});
    let mut messages = Messages { random: &mut random, number: 0, time: time.clone() };
    let (mut log, mut object, mut written) = (format!("{header}\n"), Vec::new(), 0_u64);
    while written < size {
        let turn = messages.turn();
        if as_log {
            let before = log.len();
            turn.append(&time, &mut log);
            written += (log.len() - before) as u64;
        } else {
            for record in turn.records {
                written += pretty_length(&record);
                object.push(record);
            }
        }
    }
    let (extension, text) = match as_log {
        true => ("jsonl", log),
        false => {
            let mut whole = header;
            if let Some(fields) = whole.as_object_mut() {
                fields.insert("messages".to_owned(), Value::Array(object));
            }
            ("json", serde_json::to_string_pretty(&whole)?)
        }
    };
    let short: String = id.chars().take(8).collect();
    let name = format!("session-2026-10-{day:02}T10-{:02}-{short}.{extension}", number / 28 % 60);
    fs::write(project.join("chats").join(name), text)
}

fn pretty_length(record: &Value) -> u64 {
    serde_json::to_string_pretty(record).map_or(0, |text| text.len() as u64 * 21 / 20)
}

/// A prompt, an answer with tools, their responses, and an answer.
struct Turn {
    records: Vec<Value>,
    /// The answer with tools as a log first has it, and the responses that follow it there.
    early: Value,
    responses: Value,
}

impl Turn {
    fn append(&self, time: &str, log: &mut String) {
        let mut line = |value: &Value| {
            let _infallible = writeln!(log, "{value}");
        };
        let updated = json!({"$set": {"lastUpdated": time}});
        if let [prompt, tools, answer] = &self.records[..] {
            for value in
                [prompt, &updated, &self.early, &updated, tools, &self.responses, &updated, answer, &updated]
            {
                line(value);
            }
        }
    }
}

struct Messages<'r> {
    random: &'r mut Random,
    number: u64,
    time: String,
}

impl Messages<'_> {
    fn id(&mut self) -> String {
        self.number += 1;
        format!("{:016x}-{:08x}", self.random.next(), self.number)
    }

    fn turn(&mut self) -> Turn {
        let prompt = json!({"id": self.id(), "timestamp": self.time, "type": "user", "content": [{"text": self.random.prose(30)}]});
        let count = 1 + self.random.below(3);
        let calls: Vec<Value> = (0..count).map(|_| self.call()).collect();
        let responses: Vec<Value> =
            calls.iter().filter_map(|call| call.get("result")?.get(0).cloned()).collect();
        let early = self.answer(20);
        let mut tools = early.clone();
        if let Some(fields) = tools.as_object_mut() {
            fields.insert("toolCalls".to_owned(), Value::Array(calls));
        }
        let responses =
            json!({"id": self.id(), "timestamp": self.time, "type": "user", "content": responses});
        let answer = self.answer(150);
        Turn { records: vec![prompt, tools, answer], early, responses }
    }

    fn answer(&mut self, words: u64) -> Value {
        let thoughts: Vec<Value> = (0..1 + self.random.below(2))
            .map(|_| json!({"subject": self.random.prose(3), "description": self.random.prose(40), "timestamp": self.time}))
            .collect();
        let (input, output) = (2000 + self.random.below(90_000), 20 + self.random.below(900));
        json!({"id": self.id(), "timestamp": self.time, "type": "gemini", "content": self.random.prose(words), "thoughts": thoughts,
               "tokens": {"input": input, "output": output, "cached": input / 2, "thoughts": 40, "tool": 0, "total": input + output + 40},
               "model": if self.random.below(4) == 0 { "gemini-2.5-pro" } else { "gemini-2.5-flash" }})
    }

    fn call(&mut self) -> Value {
        let (name, args, output, display) = match self.random.below(4) {
            0 => {
                let path = format!("/home/dev/src/{}.rs", self.random.word());
                ("read_file", json!({"file_path": path}), self.random.code(120), json!(""))
            }
            1 => {
                let (old, new) = (self.random.code(80), self.random.code(80));
                let diff = format!(
                    "--- a.rs\tCurrent\n+++ a.rs\tProposed\n@@ -1,3 +1,3 @@\n-{}\n+{}\n",
                    self.random.prose(6),
                    self.random.prose(6)
                );
                let args = json!({"file_path": "a.rs", "instruction": self.random.prose(12), "old_string": self.random.code(6), "new_string": self.random.code(6)});
                let display = json!({"fileDiff": diff, "fileName": "a.rs", "filePath": "/home/dev/src/a.rs", "originalContent": old, "newContent": new, "isNewFile": false});
                ("replace", args, "Successfully modified file".to_owned(), display)
            }
            2 => {
                let printed = self.random.code(60);
                let output = format!(
                    "<untrusted_context>\nOutput: {printed}\nProcess Group PGID: 4711\n</untrusted_context>"
                );
                (
                    "run_shell_command",
                    json!({"command": "cargo test --workspace", "description": self.random.prose(5)}),
                    output,
                    json!(printed),
                )
            }
            _ => {
                let output = self.random.code(40);
                (
                    "grep_search",
                    json!({"pattern": self.random.word(), "dir_path": "."}),
                    output,
                    json!("Found 12 matches"),
                )
            }
        };
        let id = format!("{name}_{}", self.id());
        json!({"id": id, "name": name, "args": args, "status": "success", "timestamp": self.time,
               "result": [{"functionResponse": {"id": id, "name": name, "response": {"output": output}}}],
               "resultDisplay": display, "description": self.random.prose(6), "displayName": name, "renderOutputAsMarkdown": true})
    }
}

/// A small generator, so that the same name always means the same bytes.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A word; a few are common, most are rare, as in any language.
    fn word(&mut self) -> String {
        const SYLLABLES: [&str; 16] = [
            "al", "he", "na", "ge", "mi", "ni", "to", "ra", "sel", "vor", "kin", "du", "pe", "lo", "fa", "st",
        ];
        let rank = match self.below(10) {
            0..=5 => self.below(200),
            6..=8 => self.below(6_000),
            _ => self.below(120_000),
        };
        let mut rest = rank + 16;
        let mut word = String::new();
        while rest > 0 {
            word.push_str(SYLLABLES.get((rest % 16) as usize).copied().unwrap_or(""));
            rest /= 16;
        }
        word
    }

    fn prose(&mut self, words: u64) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// Lines like those of a program: indented, quoted, some of them not ASCII.
    fn code(&mut self, lines: u64) -> String {
        let mut code = String::new();
        for number in 0..lines {
            let indent = " ".repeat(4 * self.below(4) as usize);
            let _infallible = match self.below(8) {
                0 => writeln!(code, "{indent}// {} — größer", self.prose(6)),
                1 => writeln!(code, "{indent}let {} = \"{}\";", self.word(), self.prose(3)),
                _ => writeln!(code, "{indent}{}.{}({}, {number});", self.word(), self.word(), self.word()),
            };
        }
        code
    }
}
