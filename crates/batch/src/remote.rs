//! Batches whose jobs workers on other machines do, by way of a [queue](crate::queue).
//!
//! | Module | Its one job |
//! |---|---|
//! | [`admission`] | a job of the queue becomes one of this worker, or is refused |
//! | [`envelope`] | a job and its result, as they are in the queue |
//! | [`folder`] | folders that travel with a job |
//! | [`submitter`] | puts jobs into the queue and gathers their results |
//! | [`worker`] | takes jobs from the queue and runs them here |
//! | `presence` | tells when no worker takes the jobs of a batch |
//! | `rate_limit` | rate limits of the API that workers share |

pub mod admission;
pub mod envelope;
pub mod folder;
mod presence;
mod rate_limit;
pub mod submitter;
pub mod worker;
