//! Holding a process so that nothing of it outlives the run.
//!
//! Gemini CLI 0.61.0 ignores SIGTERM in its launcher, starts each shell command in a session of its own and leaves
//! those running when it dies. So a *keeper*, a small process between Alhena and the CLI, adopts every orphan (it is
//! a child subreaper) and ends them all: when the CLI exits, when Alhena says so, and when Alhena disappears.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`protocol`] | what Alhena and the keeper say to each other |
//! | [`keeper`] | the keeper's loop: start, wait, stop, sweep, publish |
//! | [`processes`] | which processes belong to a run |
//! | [`terminal`] | a terminal as standard input, for the one gentle way to stop the CLI |
//! | [`custody`] | Alhena's side: a keeper process, or a thread where there is none |

pub mod custody;
pub mod keeper;
pub mod processes;
pub mod protocol;
pub mod terminal;
