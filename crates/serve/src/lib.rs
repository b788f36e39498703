//! Runs, conversations, sessions and terminals over HTTP, and the page to watch them on.
//!
//! | Module | Its one job |
//! |---|---|
//! | `listen` | connections: taken, bounded in number and time, ended |
//! | `gate` | who gets in: `Host`, `Origin`, token, what a read-only token may |
//! | `token` | the tokens, in private files |
//! | `policy` | what a request may ask for, and the problems that say what not |
//! | `routes` | the one table of routes |
//! | `tasks` | runs and conversations, and their store |
//! | `log`, `stream` | events on disk, and their way to readers |
//! | `sessions`, `terminals`, `batches`, `now`, `about` | what there is besides |
//! | `page` | the page itself |
//! | `problem`, `extract` | what is wrong, and what comes with a request |
//! | `fields` | what Alhena says to people, with the names of fields |
//!
//! What only the binary can do is behind two traits: [`Launcher`](alhena_batch::launcher::Launcher) prepares runs, and [`Knows`]
//! tells of the machine.

mod about;
mod batches;
mod extract;
mod gate;
mod listen;
mod log;
mod now;
#[cfg(feature = "openapi")]
pub mod openapi;
mod page;
mod policy;
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
