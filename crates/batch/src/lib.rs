//! Many requests: a file of jobs in, a file of results out, and nothing lost or done twice in between.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`job`] | one job: its options, where it works, and the mark by which it is known again |
//! | [`launcher`] | what the program that a batch is in does for a run |
//! | [`supply`] | jobs from a file, or from a stream that is still being written |
//! | [`journal`] | the results file, which is the journal: who is done, whatever happened meanwhile |
//! | [`result`] | one line of it |
//! | [`schedule`] | which job when: places, limits, repeats, the clock of the API's rate limits |
//! | [`perform`] | one attempt of a job, and what is seen of it |
//! | [`place`] | places of their own to work in, and what was changed there |
//! | [`outputs`] | files that a job gives back beside what it changed |
//! | [`local`] | attempts on this machine, warm or cold |
//! | [`progress`] | how far it is, as data |
//! | [`summary`] | what came of it, in figures and as a page |
//! | [`registry`] | the batches of this machine, for whoever asks |
//! | `queue` | jobs for workers on many machines, over NATS JetStream (feature `nats`) |
//! | `remote` | batches that workers do, and the workers (feature `nats`) |

pub mod job;
pub mod journal;
pub mod launcher;
pub mod local;
pub mod outputs;
pub mod perform;
pub mod place;
pub mod progress;
#[cfg(feature = "nats")]
pub mod queue;
pub mod registry;
#[cfg(feature = "nats")]
pub mod remote;
pub mod result;
pub mod schedule;
pub mod summary;
pub mod supply;
mod travel;

#[cfg(test)]
mod testing;
