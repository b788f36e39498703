//! What the stand-in does, as data: a list of steps that a test builds and the `hostile` binary carries out.
//!
//! The launcher under test passes whatever flags Gemini CLI knows, so the steps travel in one environment variable and
//! never in argv. Shapes are those of 0.61.0.

use serde::{Deserialize, Serialize};

/// The variable that carries the script, as a JSON array of [`Step`]s. Without it the stand-in behaves like a good agent.
pub const SCRIPT_VARIABLE: &str = "HOSTILE";
/// The variable with what `--version` prints.
pub const VERSION_VARIABLE: &str = "HOSTILE_VERSION";
/// The variable with the file to which each start adds one JSON line about its argv, environment, stdin and directory.
pub const DUMP_VARIABLE: &str = "HOSTILE_DUMP";
/// The variable with the file to which every process of the stand-in adds its pid.
pub const PIDS_VARIABLE: &str = "HOSTILE_PIDS";
/// The variable with the seconds after which every process of the stand-in kills itself, so that a failed test leaves
/// nothing behind for long.
pub const LIFETIME_VARIABLE: &str = "HOSTILE_LIFETIME";
/// Seconds that a process of the stand-in lives when [`LIFETIME_VARIABLE`] is not set.
pub const DEFAULT_LIFETIME: u32 = 180;
/// What `--version` prints when [`VERSION_VARIABLE`] is not set.
pub const DEFAULT_VERSION: &str = "0.61.0";
/// The exit code with which the stand-in says that its own script or files are wrong.
pub const BROKEN_SCRIPT: i32 = 98;

/// One thing that the stand-in does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Leaves stdin unread. Only as the first step; otherwise stdin is read before anything is written.
    IgnoreStdin,
    Init,
    /// The `message` event that echoes the prompt.
    User,
    /// An assistant delta with this text.
    Text(String),
    /// A `tool_use` and its `tool_result`.
    Tool {
        name: String,
        parameters: serde_json::Value,
        /// The output of a successful call.
        output: String,
    },
    Error {
        /// `warning` or `error`.
        severity: String,
        message: String,
    },
    Result,
    ResultError(String),
    /// `init`, `user`, a delta and `result`.
    Normal,
    /// This text and a line end.
    Line(String),
    Bytes(Vec<u8>),
    /// Lines that are not events: plain text, half JSON, other JSON values, control characters, blank lines, deep nesting.
    Garbage,
    /// A delta that holds bytes which are not UTF-8, and a line of nothing else.
    InvalidUtf8,
    /// A delta with U+2028, U+2029 and U+0085 unescaped inside its text.
    LineSeparators,
    /// A delta whose line has this many bytes, line end included.
    LongLine(u64),
    /// This many bytes without any line end, and none after them.
    EndlessLine(u64),
    /// At least this many bytes of small deltas, whole lines only.
    Deltas(u64),
    /// At least this many bytes of deltas and tool calls with large outputs, whole lines only.
    Mixed(u64),
    /// The process ends when it has written this many bytes of stdout in all, in the middle of a line or a character.
    DieAtByte {
        /// Bytes that still get out.
        bytes: u64,
        ending: Ending,
    },
    Stderr(String),
    /// This many bytes of lines on stderr.
    StderrFlood(u64),
    CloseStdout,
    /// Writes a session file with the prompt and an answer, where the CLI keeps it.
    Session,
    /// Adds to the session file what the CLI adds on ^C: a list of messages without the conversation.
    WipeSession,
    /// Says the value of this variable, of its environment or of `.env` in its directory: as text, in a tool's output and
    /// on stderr, plain and encoded.
    Reveal(String),
    /// Makes an empty file, so that a test knows how far it got.
    Touch(String),
    /// Does nothing until there is such a file: until a test has done its part.
    WaitFor(String),
    /// Does nothing for a while.
    Sleep(u64),
    Hang,
    /// Ignores these signals from here on (children inherit that).
    IgnoreSignals(Vec<i32>),
    /// Ends with the exit code when one of the signals comes, as the CLI does with 0.
    ExitOnSignals {
        signals: Vec<i32>,
        code: i32,
    },
    /// Starts a process that lives until killed, and waits until it is set up.
    Spawn(Child),
    /// Processes that replace themselves by a fork again and again, in new sessions, and in the end live until killed.
    ForkStorm {
        /// How many at any time.
        processes: u32,
        /// How long they keep forking.
        for_ms: u64,
        /// How long one of them lives before it forks and exits.
        every_ms: u64,
    },
    End(Ending),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// By exit code, 0 to 255.
    Exit(i32),
    /// By sending itself the signal with its default action. One that does not end a process by default stops it or is
    /// without effect; then it goes on with the next step.
    Signal(i32),
}

/// A process that the stand-in starts, as tools and servers of an agent do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Child {
    /// It moves to a session of its own (the CLI's shell tool does that).
    pub new_session: bool,
    /// It is double-forked, so that its parent is gone.
    pub daemon: bool,
    /// It closes stdin, stdout and stderr instead of keeping its parent's open.
    pub closed_files: bool,
    /// It starts a program with an empty environment, so that no mark in the environment finds it.
    pub cleared_environment: bool,
    /// It ignores SIGTERM, SIGINT and SIGHUP.
    pub ignores_signals: bool,
    /// It writes a line to the stdout that it inherited this often.
    pub writes_every_ms: Option<u64>,
}

impl Child {
    pub fn new_session(mut self) -> Self {
        self.new_session = true;
        self
    }

    pub fn daemon(mut self) -> Self {
        self.daemon = true;
        self
    }

    pub fn closed_files(mut self) -> Self {
        self.closed_files = true;
        self
    }

    pub fn cleared_environment(mut self) -> Self {
        self.cleared_environment = true;
        self
    }

    pub fn ignores_signals(mut self) -> Self {
        self.ignores_signals = true;
        self
    }

    pub fn writes_every_ms(mut self, pause: u64) -> Self {
        self.writes_every_ms = Some(pause);
        self
    }
}

/// Steps in order. After the last one the process exits 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Script {
    pub steps: Vec<Step>,
}

impl Script {
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect() }
    }

    /// What a good agent does: the same events as a plain run of the real CLI, and exit 0.
    pub fn normal() -> Self {
        Self::new([Step::Normal])
    }

    /// The value of [`SCRIPT_VARIABLE`].
    pub fn to_json(&self) -> String {
        // Steps hold only strings, numbers and JSON values, which always serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the value of [`SCRIPT_VARIABLE`].
    pub fn from_json(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map_err(|error| format!("{SCRIPT_VARIABLE} is not a list of steps: {error}"))
    }
}
