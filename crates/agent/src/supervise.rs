//! Holding a process so that nothing of it outlives the run.
//!
//! Gemini CLI 0.61.0 ignores SIGTERM in its launcher, starts each shell command in a session of its own and leaves
//! those running when it dies. So a *keeper*, a small process between Alhena and the CLI, adopts every orphan (it is
//! a child subreaper) and ends them all: when the CLI exits, when Alhena says so, and when Alhena disappears. A *guard*
//! around the keeper does the same when the keeper is killed.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`protocol`] | what Alhena and the keeper say to each other |
//! | [`guard`] | the process around the keeper: does the keeper's work when that is killed |
//! | [`held`] | a program that dies with us, and is stopped step by step |
//! | `keeper` | the keeper's loop: start, wait, stop, clean up |
//! | [`sweep`] | ending everything that is left of a run |
//! | [`machine`] | what all that needs of the system |
//! | [`mark`] | which processes carry the mark of a run |
//! | [`errand`] | a short program under a keeper |
//! | [`adoption`] | what a run leaves whose guard and keeper were killed together |
//! | `greeting` | how a program becomes the keeper of a run |
//! | [`custody`] | Alhena's side: a keeper process, or a thread where there is none |
//! | `embedded` | the keeper in a program that uses the library |

pub mod adoption;
pub mod custody;
mod embedded;
pub mod errand;
mod greeting;
pub mod guard;
pub mod held;
mod keeper;
pub mod machine;
pub mod mark;
pub mod protocol;
pub mod sweep;

pub use self::embedded::run_if_keeper;
