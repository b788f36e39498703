//! Warm agents: one process of the CLI for many prompts, over the Agent Client Protocol.
//!
//! | Module | Its one job |
//! |---|---|
//! | `process` | from a request to `gemini --acp` under the keeper |
//! | `other` | the same for any other agent that speaks ACP |
//! | `pipe` | what is said to the agent, however slowly it listens |
//! | `responses` | what the API answered, as the CLI records it |
//! | `permission` | a question of the agent, and what can be answered |
//! | `gate` | what is answered without asking anybody |
//! | `hooks` | who decides before that |
//! | `transport` | what the engine of a process does when it speaks ACP |
//! | `service` | a process that serves independent prompts, one after the other |
//! | `turn` | one prompt and all that follows from it |
//! | `conversation` | what a program gets: several turns, each with its events and its outcome |
//! | `talk` | a conversation that outlives its process: it begins again where that has ended |

mod conversation;
mod gate;
mod hooks;
mod hotline;
mod other;
mod permission;
mod pipe;
mod process;
pub(crate) mod responses;
mod service;
mod talk;
mod transport;
mod turn;

pub(crate) use process::Who;
pub(crate) use service::{Free, Job, Kind, Service, SessionFolder, Terms, Told};
pub(crate) use transport::{run_once, serve};

pub use conversation::{Canceller, Closed, Conversation, OfferedModel, Opened, Turn, TurnItem};
pub use other::AcpAgent;
pub use permission::{Action, Permission, Question};
pub use talk::{Talk, Whom};
