//! Everything that goes to stdout, through one place that knows about the byte at which to die.

use std::io::Write;

use alhena_testbed::forms;
use alhena_testbed::script::Ending;
use alhena_testbed::streams::{self, Lines};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::os;

pub struct Output {
    arguments: Arguments,
    death: Option<(u64, Ending)>,
    written: u64,
    tool_calls: u64,
}

impl Output {
    pub fn new(arguments: Arguments) -> Self {
        Self { arguments, death: None, written: 0, tool_calls: 0 }
    }

    pub fn prompt(&self) -> &str {
        &self.arguments.prompt
    }

    pub fn die_at(&mut self, bytes: u64, ending: Ending) {
        self.death = Some((bytes, ending));
        self.write(&[]);
    }

    pub fn init(&mut self) {
        let session_id = self.session_id();
        let model = self.model();
        self.event("init", json!({"session_id": session_id, "model": model}));
    }

    pub fn user(&mut self) {
        let prompt = self.arguments.prompt.clone();
        self.event("message", json!({"role": "user", "content": prompt}));
    }

    pub fn text(&mut self, text: &str) {
        self.event("message", json!({"role": "assistant", "content": text, "delta": true}));
    }

    pub fn tool(&mut self, name: &str, parameters: &Value, output: &str) {
        let id = format!("{name}__{name}_{}_{}", jiff::Timestamp::now().as_millisecond(), self.tool_calls);
        self.tool_calls += 1;
        self.event("tool_use", json!({"tool_name": name, "tool_id": id, "parameters": parameters}));
        self.event("tool_result", json!({"tool_id": id, "status": "success", "output": output}));
    }

    pub fn error(&mut self, severity: &str, message: &str) {
        self.event("error", json!({"severity": severity, "message": message}));
    }

    pub fn result(&mut self) {
        let stats = self.stats(100, 5, 164);
        self.event("result", json!({"status": "success", "stats": stats}));
    }

    pub fn result_error(&mut self, message: &str) {
        let stats = self.stats(0, 0, 0);
        let error = json!({"type": "unknown", "message": message});
        self.event("result", json!({"status": "error", "error": error, "stats": stats}));
    }

    pub fn line(&mut self, text: &[u8]) {
        let mut line = text.to_vec();
        line.push(b'\n');
        self.write(&line);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.write(bytes);
    }

    pub fn garbage(&mut self) {
        let nested = "[".repeat(100_000);
        let lines: [&[u8]; 12] = [
            b"Loaded cached credentials.",
            b"",
            b"   ",
            b"{\"type\":\"message\",\"role\":\"assist",
            b"{}",
            b"[1,2,3]",
            b"null",
            b"{\"type\":42}",
            b"{\"type\":\"message\"} trailing",
            b"\x1b[31mred\x1b[0m \x07 \x00 \x7f",
            nested.as_bytes(),
            b"\xef\xbb\xbf{\"type\":\"thought\",\"text\":\"unknown type after a byte order mark\"}",
        ];
        for line in lines {
            self.line(line);
        }
    }

    pub fn invalid_utf8(&mut self) {
        let mut line = Vec::new();
        line.extend_from_slice(b"{\"type\":\"message\",\"timestamp\":\"2026-11-15T17:49:10.686Z\",\"role\":\"assistant\",\"content\":\"bad ");
        line.extend_from_slice(b"\xff\xfe\xc3\x28\xed\xa0\x80");
        line.extend_from_slice(b" bytes\",\"delta\":true}");
        self.line(&line);
        self.line(b"\x80\x81\xf5\xff");
    }

    pub fn long_line(&mut self, bytes: u64) {
        let empty = event("message", json!({"role": "assistant", "content": "", "delta": true}));
        let Some((head, tail)) = empty.split_once(r#""content":""#) else { return };
        let head = format!(r#"{head}"content":""#);
        let frame = (head.len() + tail.len() + 1) as u64;
        self.write(head.as_bytes());
        self.endless_line(bytes.saturating_sub(frame));
        self.line(tail.as_bytes());
    }

    pub fn endless_line(&mut self, bytes: u64) {
        let block = [b'x'; 1 << 16];
        let mut left = bytes;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
            self.write(block.get(..count).unwrap_or_default());
            left -= count as u64;
        }
    }

    pub fn deltas(&mut self, bytes: u64) {
        let mut lines = Lines::new(1);
        self.repeat(bytes, |block| block.write_all(lines.delta().as_bytes()).is_ok());
    }

    pub fn mixed(&mut self, bytes: u64) {
        let mut lines = Lines::new(2);
        let mut position = 0_u32;
        self.repeat(bytes, |block| {
            position += 1;
            let line = if position.is_multiple_of(20) {
                lines.tool(streams::LARGE_OUTPUT / 4)
            } else {
                lines.delta()
            };
            block.write_all(line.as_bytes()).is_ok()
        });
    }

    /// Fills a block of whole lines once and writes it until there are enough bytes: a gigabyte is not worth generating.
    fn repeat(&mut self, bytes: u64, mut fill: impl FnMut(&mut Vec<u8>) -> bool) {
        let block_size = usize::try_from(bytes).unwrap_or(usize::MAX).min(1 << 20);
        let mut block = Vec::new();
        while block.len() < block_size && fill(&mut block) {}
        let mut left = bytes;
        while left > 0 && !block.is_empty() {
            self.write(&block);
            left = left.saturating_sub(block.len() as u64);
        }
    }

    fn event(&mut self, kind: &str, fields: Value) {
        self.line(event(kind, fields).as_bytes());
    }

    fn stats(&self, input: u64, output: u64, duration: u64) -> Value {
        let model = json!({"total_tokens": input + output, "input_tokens": input, "output_tokens": output, "cached": 0, "input": input});
        let models = if input == 0 { json!({}) } else { json!({self.model(): model}) };
        json!({
            "total_tokens": input + output, "input_tokens": input, "output_tokens": output, "cached": 0, "input": input,
            "duration_ms": duration, "tool_calls": self.tool_calls, "models": models,
        })
    }

    fn model(&self) -> String {
        self.arguments.model.clone().unwrap_or_else(|| "gemini-2.5-flash".to_owned())
    }

    pub fn session_id(&self) -> String {
        let own = || format!("a1990dbd-d94c-47ca-8818-{:012x}", std::process::id());
        self.arguments.session_id.clone().unwrap_or_else(own)
    }

    fn write(&mut self, bytes: &[u8]) {
        let room =
            self.death.map(|(at, _)| usize::try_from(at.saturating_sub(self.written)).unwrap_or(usize::MAX));
        let allowed = bytes.get(..room.unwrap_or(usize::MAX).min(bytes.len())).unwrap_or_default();
        os::write_all(1, allowed);
        self.written += allowed.len() as u64;
        if let Some((at, ending)) = self.death
            && self.written >= at
        {
            self.death = None;
            crate::end(ending);
        }
    }

    /// Says the value of the variable wherever an agent can say something, in every form in which a log could hold it.
    pub fn reveal(&mut self, name: &str) {
        let Some(value) = std::env::var(name).ok().or_else(|| from_dotenv(name)) else { return };
        self.text(&format!("It is {value} indeed. "));
        self.tool("run_shell_command", &json!({"command": format!("echo '{value}'")}), &format!("{value}\n"));
        let all =
            [value.clone(), forms::json(&value), forms::percent(&value), forms::base64(value.as_bytes())];
        for form in all {
            self.text(&format!("{form} "));
            os::write_all(2, format!("leaked: {form}\n").as_bytes());
        }
    }
}

fn event(kind: &str, fields: Value) -> String {
    let mut event = json!({"type": kind, "timestamp": timestamp()});
    if let (Some(event), Value::Object(fields)) = (event.as_object_mut(), fields) {
        event.extend(fields);
    }
    event.to_string()
}

/// Lines on stderr as the CLI writes them while it retries.
pub fn flood_stderr(bytes: u64) {
    let line = b"Attempt 3 failed with status 503. Retrying with backoff... ApiError: model overloaded\n";
    let block = line.repeat(1000);
    let mut left = bytes;
    while left > 0 {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        os::write_all(2, block.get(..count).unwrap_or_default());
        left -= count as u64;
    }
}

/// Now, as the CLI writes it: UTC with milliseconds.
fn timestamp() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

fn from_dotenv(name: &str) -> Option<String> {
    let text = std::fs::read_to_string(".env").ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
}
