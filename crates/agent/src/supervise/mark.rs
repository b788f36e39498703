//! The mark of a run: a variable in the environment of every process that belongs to it.

use std::collections::HashMap;

use alhena_sys::processes;

/// The environment variable that carries it.
pub use crate::env::ALHENA_RUN as MARK;

/// All living processes of the run with this mark, without the caller.
#[must_use]
pub fn marked(mark: &str) -> Vec<u32> {
    processes::with_variable(MARK, mark)
}

/// Marks of runs that still have processes, with those: leftovers, when nobody holds the run.
#[must_use]
pub fn marks() -> HashMap<String, Vec<u32>> {
    let runs = processes::by_variable(MARK).into_iter();
    runs.filter_map(|(mark, pids)| Some((mark.into_string().ok()?, pids))).collect()
}
