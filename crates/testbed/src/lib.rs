//! What the project's tests need and no user ever sees: stand-ins for `gemini` that misbehave on purpose, the real CLI
//! in a private directory, private homes that can be compared before and after, and bounds on time.
//!
//! Nothing here is installed by hand: whatever is missing is built or fetched into a private, shared directory.
#![allow(missing_docs)] // Most names say all.

pub mod bounded;
pub mod browser;
pub mod cache;
pub mod forms;
pub mod home;
pub mod nats;
pub mod npm;
pub mod python;
pub mod real_cli;
pub mod script;
pub mod snapshot;
pub mod stand_in;
pub mod streams;
pub mod tls;
pub mod tools;

/// Every living process that was started with this entry in its environment: `NAME=value`, or `NAME=` for any value.
///
/// Gemini CLI 0.61.0 moves every shell command to a session of its own, so neither the process group nor the session finds
/// it: only ancestry and a mark in the environment do.
pub fn processes_with_env(entry: &str) -> Vec<u32> {
    match entry.split_once('=') {
        Some((name, "")) => processes::by_variable(name).into_values().flatten().collect(),
        Some((name, value)) => processes::with_variable(name, value),
        None => Vec::new(),
    }
}

/// Where instrumented builds write what ran: a program that is started in an environment of its own needs it too.
pub fn profile_variable() -> Option<(String, String)> {
    let name = "LLVM_PROFILE_FILE";
    Some((name.to_owned(), std::env::var(name).ok()?))
}

pub use alhena_sys::processes;
pub use alhena_sys::processes::alive;
pub use alhena_sys::sockets::HeldPort;
pub use bounded::{Deadline, Finished, Watchdog, run_bounded};
pub use home::{PrivateHome, Trust};
pub use real_cli::{RealCli, versions};
pub use script::{Child, Script, Step};
pub use snapshot::{Snapshot, diff};
pub use stand_in::{Hostile, Start, hostile_path};
