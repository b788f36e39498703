//! Everything that can come in: the one way into the [`Interpreter`](super::Interpreter).
//!
//! A run that is followed, a recording that is played, and an output that is parsed differ only in where their inputs come
//! from. So what they give is the same by construction.

use std::borrow::Cow;

use alhena_wire::frame::Frame;
use alhena_wire::report::Report;
use alhena_wire::rpc::Message;
use serde::{Deserialize, Serialize};

use crate::answer::Answered;
use crate::join::Fact;
use crate::judge::{End, Exit, Stop};
use crate::outcome::{Change, Malformed};
use crate::prices::Prices;
use crate::statistics::Statistics;
use crate::time::Timestamp;

/// One thing that has come in. A recording holds all but the output itself, which is in a file of its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // Most fields say all.
pub enum Input<'a> {
    /// One line of stream-json, without its end.
    #[serde(skip)]
    Line(Cow<'a, [u8]>),
    #[serde(skip)]
    TooLong { sample: String, bytes: u64 },
    /// Something that is none of the format's own.
    #[serde(skip)]
    Noise { sample: String, bytes: u64 },
    /// The whole of a json report, from standard output or, for fatal errors, from standard error.
    #[serde(skip)]
    Report(Box<Report<'a>>),
    /// Plain text output: all of it is the model's answer, and exit 0 stands in for a result.
    #[serde(skip)]
    Text { text: Cow<'a, str>, exit: Exit },
    /// One message of an ACP agent.
    #[serde(skip)]
    Acp(Box<Message>),
    /// It is not Gemini CLI that runs, but this.
    Agent(String),
    /// An ACP agent gets a prompt.
    Prompted(Box<Prompted>),
    /// A question of an ACP agent is answered.
    Decided(Box<Decided>),
    /// The time.
    Time(Timestamp),
    /// Something from the session file.
    Fact(Fact),
    /// The session file has been read to its end, and nobody writes to it any more.
    SessionEnded,
    /// What the disk says of a file now.
    Disk {
        /// The file, as the tool named it.
        path: String,
        state: DiskFact,
    },
    /// A file that changed, and that no tool claims.
    Found { path: String, change: Change },
    /// What the CLI measured.
    Statistics(Box<Statistics>),
    /// What models cost: the first input of a run, so that a recording costs later what it cost then.
    Prices(Box<Prices>),
    /// Tools that the caller denied.
    Denied(Vec<String>),
    /// Lines of an agent that was stopped and that make no sense: counted, and not told one by one.
    Dropped(Malformed),
    /// Something that people should know.
    Warning(String),
    /// An attempt that fails may be followed by another: what it failed of is told when it is known to be the last.
    MayGoOn,
    /// The attempt before has failed, and the run goes on. What it took and what it did counts, but not how it ended.
    GoesOn,
    /// Alhena begins to stop the run now. The first reason counts.
    Stop(Stop),
    /// Somebody who decides has ended the run, and says why. Gemini CLI calls that a success.
    Halted(String),
    /// What came of an answer that had to fit a schema.
    Answered(Box<Answered>),
    /// What the run may spend is used up, in words for people. Gemini CLI calls that a success.
    OverBudget(String),
    /// The reason that the API gave for the end of the model's last answer, in its own word; none if it gave none. Known only
    /// at the end of a turn.
    FinishReason(Option<String>),
    /// Nothing says in time why the model's last answer ended, unless an [`Input::FinishReason`] comes all the same. A success is
    /// told with a warning then.
    FinishReasonUnavailable,
    /// The run's spending limits. An outcome that exceeds one is a failure.
    SpendingLimits(SpendingLimits),
    /// The session of the run is not in the user's store, so that nobody can go on with it.
    SessionLost,
    /// The process is gone.
    End(Box<End>),
}

/// The most that a run may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpendingLimits {
    /// Tokens of all kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
    /// Model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
}

impl SpendingLimits {
    /// Returns which limit this exceeds, in words for people. A limit that is met exactly is kept.
    pub fn exceeded_by(&self, tokens: u64, dollars: f64, calls: u64) -> Option<String> {
        /// Sums of prices are not exact.
        const ROUNDING: f64 = 1e-9;
        let tokens =
            self.tokens.filter(|limit| tokens > *limit).map(|limit| format!("{tokens} of {limit} tokens"));
        let cost = self.dollars.filter(|limit| dollars > *limit + ROUNDING);
        let cost = cost.map(|limit| format!("${dollars:.6} of ${limit}"));
        let calls =
            self.calls.filter(|limit| calls > *limit).map(|limit| format!("{calls} of {limit} model calls"));
        let exceeded: Vec<String> = [tokens, cost, calls].into_iter().flatten().collect();
        (!exceeded.is_empty()).then(|| format!("The budget was exceeded: {}", exceeded.join(", ")))
    }
}

/// A prompt that an ACP agent gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompted {
    /// The request that its answer has the id of.
    pub request: u64,
    /// The session.
    pub session: String,
    /// The model that the session is set to, as far as it is known.
    pub model: String,
    /// Where the session works.
    pub dir: String,
    /// What is asked.
    pub text: String,
    /// Whether the agent is Gemini CLI, with its own ways.
    #[serde(default = "yes")]
    pub is_gemini: bool,
    /// How often the model may be asked.
    #[serde(default)]
    pub max_turns: Option<u32>,
}

fn yes() -> bool {
    true
}

/// What was decided of a call that an ACP agent asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The call.
    pub call: String,
    /// Why it may not run; it may when there is no reason.
    pub rejected: Option<String>,
}

impl Input<'static> {
    /// A line of an ACP agent; what is no message is noise.
    pub fn acp(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Line(line) => match Message::read(line) {
                Ok(message) => Input::Acp(Box::new(message)),
                Err(_) => {
                    let start = line.get(..line.len().min(SAMPLE)).unwrap_or_default();
                    Input::Noise {
                        sample: String::from_utf8_lossy(start).into_owned(),
                        bytes: line.len() as u64,
                    }
                }
            },
            Frame::TooLong { bytes, sample } => Input::TooLong { sample, bytes },
        }
    }
}

/// So much is shown of a line that is no message.
const SAMPLE: usize = 200;

impl<'a> From<Frame<'a>> for Input<'a> {
    fn from(frame: Frame<'a>) -> Self {
        match frame {
            Frame::Line(line) => Self::Line(line.into()),
            Frame::TooLong { bytes, sample } => Self::TooLong { sample, bytes },
        }
    }
}

/// What the disk says of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiskFact {
    /// Nobody looked.
    Unknown,
    /// It is not there, or has not changed since the run began.
    Untouched,
    /// It is new since the run began.
    Created,
    /// It changed since the run began.
    Modified,
}
