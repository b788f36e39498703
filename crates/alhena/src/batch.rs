//! Many requests: jobs, the journal of their results, and scheduling.

pub use alhena_batch::{
    job, journal, launcher, local, outputs, perform, place, progress, registry, result, schedule, summary,
    supply,
};
#[cfg(feature = "nats")]
pub use alhena_batch::{queue, remote};
