//! What Alhena hands out: the [`Conversation`], [`Event`] and [`Message`] as projections of it, [`Outcome`], [`Failure`],
//! [`Usage`], the tool table, and the [`Interpreter`] that turns what Gemini CLI wrote into all of them.
//!
//! Wire types are parsed first and judged here: nothing in this crate does any I/O, so a live run and the replay of
//! a recording go through exactly the same code. A fact that Alhena worked out carries [`Source::Derived`].

pub mod answer;
pub mod conversation;
pub mod event;
pub mod failure;
mod hint;
pub mod hook;
pub mod interpret;
pub mod join;
pub mod judge;
pub mod message;
pub mod options;
pub mod outcome;
pub mod policy;
pub mod prices;
pub mod statistics;
pub mod time;
pub mod tool;
pub mod usage;

pub use answer::Answered;
pub use conversation::{Conversation, Entry, Thought, ToolEnd, ToolRun};
pub use event::{CallUsage, Event, EventKind, FileChange, PermissionRequest, Resolution, Source, ToolError};
pub use failure::{Failure, FailureKind};
pub use hint::Hint;
pub use interpret::{Decided, DiskFact, Input, Interpreter, Prompted, SpendingLimits, Witnesses};
pub use join::{Called, Fact, SessionFacts, ToolFact};
pub use judge::{End, Exit, Stop, complaints};
pub use message::{Include, Message};
pub use options::{Approval, Prompt, RunOptions, Setting, SettingError};
pub use outcome::{Change, CommandRun, FileRecord, Malformed, Outcome, Reported, Status};
pub use policy::{PathUse, Policy, Refusal};
pub use prices::{Cost, Price, Prices, Prompts, Rates};
pub use statistics::{Calls, ModelCalls, Statistics, ToolRuns};
pub use time::Timestamp;
pub use tool::{Class, Tool};
pub use usage::{Tokens, Usage};
