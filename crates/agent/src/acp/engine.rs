//! The engine of a warm agent: one thread that talks to the process, follows what it writes, keeps the clocks, and stops it.

mod begin;
mod clocks;
mod count;
mod exchange;
mod finish;
mod going_on;
mod hooked;
mod listen;
mod orders;
mod serve;
mod session;

pub(super) use self::begin::converse;
pub(crate) use self::begin::run_once;
pub(crate) use self::serve::serve;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Weak;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use alhena_sys::growth::Growth;
use alhena_sys::sockets::Stream;
use alhena_wire::frame::Framer;

use super::conversation::{Closed, SharedOpened};
use super::gate::Gate;
use super::hooks::Deciders;
use super::hotline::Hotline;
use super::pipe::Pipe;
use super::process::Opening;
use super::responses::Responses;
use super::service::Terms;
use super::turn::{Exchange, Outlet};
use crate::follow::Follower;
use crate::neighbours::Neighbours;
use crate::recording::Recorder;
use crate::request::ResolvedRequest;
use crate::retries::Retries;
use crate::run::{Item, Over, Sessions};
use crate::tail::SessionTail;
use crate::telemetry::TelemetryTail;
use crate::ward::Ward;

pub(super) struct Engine {
    ward: Ward,
    pipe: Pipe,
    stdout: Follower,
    framer: Framer,
    /// Lines that have been read, and not been looked at.
    lines: VecDeque<Heard>,
    growth: Growth,
    retries: Retries,
    bell: Stream,
    orders: Receiver<super::hotline::Order>,
    hotline: Weak<Hotline>,
    request: ResolvedRequest,
    dir: PathBuf,
    gate: Gate,
    /// Who decides before a tool runs.
    deciders: Option<Deciders>,
    opening: Opening,
    session: Session,
    /// What the requests without an answer are for.
    asked: HashMap<u64, Purpose>,
    requests: u64,
    questions: u64,
    prompts: VecDeque<Prompt>,
    exchange: Option<Exchange>,
    /// What turns that are over have left to be handed out.
    departing: Vec<(Outlet, VecDeque<Item>)>,
    /// While no turn has it.
    tail: Option<SessionTail>,
    /// Where it is ours.
    telemetry: Option<TelemetryTail>,
    /// Where they are recorded.
    responses: Option<Responses>,
    /// Whether calls of models are traced.
    traces: bool,
    neighbours: Option<Neighbours>,
    recorder: Option<Recorder>,
    /// What the next prompt is told of the turn before.
    note: Option<String>,
    warnings: Vec<String>,
    started: Instant,
    /// One prompt, and then the process ends before the outcome is out.
    once: bool,
    closing: bool,
    nobody_rings: bool,
    turns: u64,
    sessions: Sessions,
    over: Over,
    opened: SharedOpened,
    closed: async_channel::Sender<Closed>,
    /// What it is besides, where it serves independent prompts.
    serving: Option<serve::Serving>,
}

/// A line of the agent.
enum Heard {
    Line(Vec<u8>),
    TooLong { bytes: u64, sample: String },
}

/// A prompt that waits for its turn.
struct Prompt {
    turn: u64,
    text: String,
    /// There is none: somebody waits here for the session.
    opens: Option<SharedOpened>,
    outlet: Outlet,
    cancelled: bool,
    /// Of one that has nothing to do with those before.
    terms: Option<Box<Terms>>,
}

/// What is known of the session.
#[derive(Default)]
struct Session {
    stage: Stage,
    /// The agent is Gemini CLI, with its own ways.
    is_gemini: bool,
    id: String,
    /// The model that it is set to.
    model: String,
    /// The mode that it is set to.
    mode: String,
    /// The modes that there are.
    modes: Vec<String>,
    /// Changes that have not been confirmed.
    settling: usize,
}

/// How far the start has got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Starting,
    Ready,
    /// The agent does not want to.
    Failed,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Initialize,
    Open,
    Setting,
    Prompt,
}

impl Engine {
    /// Runs to the end.
    pub(super) fn run(mut self) {
        self.greet();
        while !self.ward.over {
            self.wait();
            self.hear_keeper();
            self.take_orders();
            self.hear_deciders();
            self.listen();
            self.go_on();
            self.check_clocks();
        }
        self.finish();
    }
}
