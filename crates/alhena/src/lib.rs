//! Alhena makes Gemini CLI a part that other software can rely on.
//!
//! It runs the CLI, listens to it and hands everything out in one form, and it never calls a failure a success:
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
//! Programs without an async runtime use [`Gemini::run_blocking`]. The chapters in [`concepts`] explain what is
//! promised and how it is kept; `examples` beside this file holds whole programs.
//!
//! What most programs need stands here by name. The rest is in the module of its layer:
//!
//! | Module | What is there |
//! |---|---|
//! | [`agent`] | find, install, prepare, launch and stop the CLI; recordings; the environment |
//! | [`answer`] | JSON schemas that an answer has to fit (feature `schema`) |
//! | [`batch`] | many requests: jobs, their results, and which when |
//! | [`model`] | events, messages, outcomes, and the interpreter that makes them; the JSON in a text |
//! | [`session`] | the CLI's session store |
//! | [`terminal`] | the interactive CLI in tmux |
//! | [`hosts`] | what other programs expect, as views |
//! | [`scripted`] | a scripted Gemini API, for tests |
//! | [`wire`] | what the CLI writes, exactly |

pub mod concepts;

pub use alhena_agent as agent;
pub use alhena_agent::keeper;
pub use alhena_agent::{
    Approval, Conversation, Gemini, Permission, Pool, PoolOptions, Prompt, Request, Resume, Run, RunError,
    RunExtras, Stopper, Trust, Turn, TurnItem,
};
pub use alhena_batch as batch;
pub use alhena_hosts as hosts;
pub use alhena_model as model;
pub use alhena_model::answer;
pub use alhena_model::{Event, EventKind, Failure, FailureKind, Hint, Message, Outcome, RunOptions, Status};
pub use alhena_scripted as scripted;
pub use alhena_session as session;
pub use alhena_terminal as terminal;
pub use alhena_wire as wire;
