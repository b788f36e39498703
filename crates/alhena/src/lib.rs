//! Runs Gemini CLI reliably from other programs.
//!
//! The library runs the CLI, listens to it and hands everything out in one form, and it never calls a failure a success:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use alhena::{Approval, Gemini, RunOptions};
//!
//! let gemini = Gemini::find()?;
//! let options = RunOptions::default().dir("./app").approval(Approval::AutoEdit);
//! let mut run = gemini.run("Fix the failing test", &options)?;
//! while let Some(event) = run.next().await {
//!     println!("{event:?}");
//! }
//! let outcome = run.outcome().await; // a failed run is an outcome with a failure inside, never an `Err`
//! # Ok(()) }
//! ```
//!
//! Programs without an async runtime use [`Gemini::run_blocking`]. What is not an option, such as callbacks or another environment, is
//! in [`RunExtras`]. The chapters in [`concepts`] explain what is promised and how it is kept; `examples` beside this file holds whole
//! programs.
//!
//! What most programs need stands here by name. The rest is in modules, some of which need a feature:
//!
//! | Module | Feature | Contents |
//! |---|---|---|
//! | [`agent`] | | find and install the CLI; conversations, permissions, hooks and rules; recordings; the environment |
//! | [`answer`] | `schema` | JSON schemas that an answer has to fit; `typed` makes them from types |
//! | [`model`] | | options, events, messages, outcomes, and the interpreter that makes them |
//! | [`session`] | | the CLI's session store |
//! | [`wire`] | | the formats that the CLI writes |
//! | `batch` | `batch` | many requests: jobs, results and scheduling; `nats` for many machines |
//! | `hosts` | `hosts` | what other programs expect, as views |
//! | `scripted` | `scripted` | a scripted Gemini API, for tests; `record` for cassettes of the real one |
//! | `terminal` | `terminal` | the interactive CLI in tmux |

#![deny(missing_docs)]

pub mod agent;
pub mod concepts;
pub mod model;
pub mod session;
pub mod wire;

pub use alhena_agent::keeper;
pub use alhena_agent::{
    Approval, Conversation, Gemini, Permission, Pool, PoolOptions, Prompt, Resume, Run, RunError, RunExtras,
    Stopper, Trust, Turn, TurnItem,
};
pub use alhena_model::answer;
pub use alhena_model::{Event, EventKind, Failure, FailureKind, Hint, Message, Outcome, RunOptions, Status};

#[cfg(feature = "batch")]
pub mod batch;
#[cfg(feature = "hosts")]
pub mod hosts;
#[cfg(feature = "scripted")]
pub mod scripted;
#[cfg(feature = "terminal")]
pub mod terminal;
