//! Generated stream-json of any size, the same bytes for the same seed.
//!
//! The shapes are those of 0.61.0: one `message` delta per API chunk (a few words), and tool results whose `output` is
//! the display string, up to a megabyte for a shell command.

use std::io::{self, Write};

const WORDS: &[&str] = &[
    "the",
    "river",
    "test",
    "fails",
    "because",
    "parser",
    "`src/lib.rs`",
    "returns",
    "an",
    "empty",
    "line",
    "when",
    "input",
    "ends",
    "without",
    "newline",
    "so",
    "I",
    "will",
    "change",
    "\"framer\"",
    "and",
    "run",
    "it",
    "again",
    "größer",
    "→",
    "文字",
    "fn main() {",
    "}\n",
    "\n\n",
    "```rust\n",
    "- item\n",
    "don't",
    "C:\\path",
    "100 %",
    "😀",
];

/// The bytes of a tool's output in a mixed stream.
pub const LARGE_OUTPUT: usize = 1 << 20;

#[derive(Debug, Clone)]
pub struct Lines {
    state: u64,
    calls: u64,
}

impl Lines {
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1), calls: 0 }
    }

    /// The first two lines of a stream: `init` and the prompt.
    pub fn init(&self) -> String {
        concat!(
            r#"{"type":"init","timestamp":"2026-11-15T17:49:10.599Z","session_id":"a1990dbd-d94c-47ca-8818-e0385c72f6d1","model":"gemini-2.5-flash"}"#,
            "\n",
            r#"{"type":"message","timestamp":"2026-11-15T17:49:10.603Z","role":"user","content":"Fix the failing test"}"#,
            "\n",
        )
        .to_owned()
    }

    pub fn result(&self) -> String {
        format!(
            r#"{{"type":"result","timestamp":"2026-11-15T17:59:10.762Z","status":"success","stats":{{"total_tokens":105,"input_tokens":100,"output_tokens":5,"cached":0,"input":100,"duration_ms":600163,"tool_calls":{},"models":{{"gemini-2.5-flash":{{"total_tokens":105,"input_tokens":100,"output_tokens":5,"cached":0,"input":100}}}}}}}}"#,
            self.calls
        ) + "\n"
    }

    pub fn delta(&mut self) -> String {
        let count = 1 + self.below(12);
        let mut text = String::new();
        for _ in 0..count {
            text.push_str(self.word());
            text.push(' ');
        }
        format!(
            "{{\"type\":\"message\",\"timestamp\":\"{}\",\"role\":\"assistant\",\"content\":{},\"delta\":true}}\n",
            self.timestamp(),
            quoted(&text)
        )
    }

    /// A shell command and its output of about `size` bytes.
    pub fn tool(&mut self, size: usize) -> String {
        let id = format!(
            "run_shell_command__run_shell_command_{}_{}",
            1_794_765_160_669_u64 + self.calls,
            self.calls % 4
        );
        self.calls += 1;
        let mut output = String::with_capacity(size + 128);
        while output.len() < size {
            output.push_str(&format!("src/module_{}.rs:{}: ", self.below(400), self.below(5000)));
            for _ in 0..6 {
                output.push_str(self.word());
                output.push(' ');
            }
            output.push('\n');
        }
        format!(
            "{{\"type\":\"tool_use\",\"timestamp\":\"{}\",\"tool_name\":\"run_shell_command\",\"tool_id\":\"{id}\",\"parameters\":{{\"command\":\"rg -n parser src\",\"description\":\"Searches the sources\"}}}}\n{{\"type\":\"tool_result\",\"timestamp\":\"{}\",\"tool_id\":\"{id}\",\"status\":\"success\",\"output\":{}}}\n",
            self.timestamp(),
            self.timestamp(),
            quoted(&output)
        )
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) % limit.max(1)
    }

    fn word(&mut self) -> &'static str {
        let index = self.below(WORDS.len() as u64) as usize;
        WORDS.get(index).copied().unwrap_or("word")
    }

    fn timestamp(&mut self) -> String {
        format!("2026-11-15T17:{:02}:{:02}.{:03}Z", self.below(60), self.below(60), self.below(1000))
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes `init` and a prompt, small deltas up to about `total` bytes, and `result`.
pub fn write_deltas(out: &mut impl Write, total: u64, seed: u64) -> io::Result<()> {
    write_stream(out, total, seed, |lines| lines.delta())
}

/// Writes `init` and a prompt, deltas and tool calls with outputs of [`LARGE_OUTPUT`] up to about `total` bytes, and `result`.
/// For each large output there are 200 deltas and 20 small tool calls.
pub fn write_mixed(out: &mut impl Write, total: u64, seed: u64) -> io::Result<()> {
    let mut position = 0_u64;
    write_stream(out, total, seed, |lines| {
        position += 1;
        match position % 221 {
            0 => lines.tool(LARGE_OUTPUT),
            n if n % 11 == 0 => lines.tool(600),
            _ => lines.delta(),
        }
    })
}

fn write_stream(
    out: &mut impl Write,
    total: u64,
    seed: u64,
    mut next: impl FnMut(&mut Lines) -> String,
) -> io::Result<()> {
    let mut lines = Lines::new(seed);
    let first = lines.init();
    out.write_all(first.as_bytes())?;
    let mut written = first.len() as u64;
    while written < total {
        let line = next(&mut lines);
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
    }
    out.write_all(lines.result().as_bytes())
}
