//! How many processes a machine bears.

use alhena_sys::processes::free_memory;

/// What a process needs to begin with, and some more (0.61.0: 215 MB to start, 400 MB after hundreds of prompts).
const NEEDED: u64 = 400 << 20;

/// Two for each core, because most of the time they wait for the model, as far as half of the free memory goes.
pub(super) fn processes() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let room = free_memory().map_or(usize::MAX, |free| usize::try_from(free / 2 / NEEDED).unwrap_or(1));
    (2 * cores).min(room).max(1)
}

/// Whether another process would fit. Where nobody can tell, it does.
pub(super) fn has_room() -> bool {
    free_memory().is_none_or(|free| free > NEEDED)
}
