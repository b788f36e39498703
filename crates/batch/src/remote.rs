//! Batches whose jobs workers on other machines do, by way of a [queue](crate::queue).
//!
//! | Module | Its one job |
//! |---|---|
//! | [`envelope`] | a job and its result, as they are in the queue |
//! | [`folder`] | folders that travel with a job |
//! | [`submitter`] | puts jobs into the queue and gathers their results |
//! | [`worker`] | takes jobs from the queue and runs them here |
//! | `presence` | tells when no worker takes the jobs of a batch |
//! | `rate_limit` | rate limits of the API that workers share |

use std::path::{Path, PathBuf};

use self::envelope::JobEnvelope;
use crate::job::Job;
use crate::meaning::Fault;

pub mod envelope;
pub mod folder;
mod presence;
mod rate_limit;
pub mod submitter;
pub mod worker;

/// A folder in the queue: its name there, and a warning for each file that was left out.
pub type StoredFolder = (String, Vec<String>);

/// Makes the envelope of a job, or tells why the job cannot travel. The second argument stores a folder in the queue.
pub type Pack =
    dyn Fn(&Job, &dyn Fn(&Path) -> Result<StoredFolder, Fault>) -> Result<JobEnvelope, Fault> + Send + Sync;

/// Makes the job of an envelope, or tells why the worker refuses it. The second argument fetches a folder from the queue.
pub type Admit =
    dyn Fn(&JobEnvelope, &mut dyn FnMut(&str) -> Result<PathBuf, Fault>) -> Result<Job, Fault> + Send + Sync;
