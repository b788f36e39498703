//! What holding a run needs of the system, tried out: containers and old kernels refuse some of it.

use std::io;

use alhena_sys::fork::adopt_orphans;
use alhena_sys::{growth, processes};

/// Something that the system does not allow here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lack {
    /// What.
    pub what: &'static str,
    /// What it costs.
    pub cost: &'static str,
}

/// What this process may not do, of all that a keeper needs. Trying it out makes this process adopt orphans: only for
/// programs that end soon.
#[must_use]
pub fn lacks() -> Vec<Lack> {
    let tried: [(io::Result<()>, Lack); 4] = [
        (
            adopt_orphans(),
            Lack {
                what: "adopting orphans (child subreaper)",
                cost: "a process that clears its environment can outlive its run",
            },
        ),
        (
            processes::can_be_read(),
            Lack { what: "reading /proc", cost: "processes that leave their group can outlive their run" },
        ),
        (
            processes::end_of(std::process::id()).map(drop),
            Lack { what: "handles of processes (pidfd)", cost: "the end of a run is noticed a little later" },
        ),
        (
            growth::is_told(),
            Lack { what: "notices of changed files (inotify)", cost: "what the CLI writes is noticed later" },
        ),
    ];
    tried.into_iter().filter_map(|(tried, lack)| tried.err().map(|_| lack)).collect()
}
