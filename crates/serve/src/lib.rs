//! Runs, conversations, sessions and terminals over HTTP, and the page to watch them on.
//!
//! | Module | Its one job |
//! |---|---|
//! | `listen` | connections: taken, bounded in number and time, ended |
//! | `gate` | who gets in: `Host`, `Origin`, token, what a read-only token may |
//! | `token` | the tokens, in private files |
//! | `policy` | what a request may ask for: one table of all options |
//! | `routes` | the one table of routes |
//! | `tasks` | runs and conversations, and their store |
//! | `log`, `stream` | events on disk, and their way to readers |
//! | `sessions`, `terminals`, `batches`, `now`, `about` | what there is besides |
//! | `page` | the page itself |
//! | `problem`, `extract` | what is wrong, and what comes with a request |
//! | `fields` | what Alhena says to people, with the names of fields |
//!
//! What the options of a run mean it is told by whoever knows them ([`alhena_batch::meaning::Meaning`]), and what only the binary
//! knows by [`Knows`].

mod about;
mod batches;
mod extract;
mod gate;
mod listen;
mod log;
mod news;
mod now;
#[cfg(feature = "openapi")]
pub mod openapi;
mod page;
pub mod policy;
mod problem;
mod routes;
mod server;
mod sessions;
mod state;
mod stream;
mod tar;
mod tasks;
mod terminals;
mod token;

pub use page::OPENAPI;
pub use problem::Problem;
pub use server::{Ender, ServeError, Server};
pub use state::{Knows, OnExit, Settings, Tls};
pub use token::{Access, Tokens};
