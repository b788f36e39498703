//! `alhena worker`.

#[cfg(feature = "nats")]
mod print;
#[cfg(feature = "nats")]
mod start;

use std::path::PathBuf;
use std::time::Duration;

use alhena_agent::Approval;

use crate::command_error::Done;
use crate::commands::batch::By;
use crate::commands::options;
use crate::nats::NatsArgs;

/// Do jobs of batches that were put into a queue with `alhena batch --nats`.
///
/// A worker uses its own key and its own Gemini CLI, and decides what jobs may do on it. `alhena help worker` explains it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena worker --nats nats://queue:4222 --root /srv/work
  alhena worker --nats tls://queue:4222 --nats-creds worker.creds --jobs 8 --max-approval auto-edit
  alhena worker --nats nats://queue:4222 --label gpu --idle-exit 10m")]
pub struct Args {
    /// The NATS server, or several of a cluster with commas between them [default: NATS_URL].
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    #[command(flatten)]
    server: NatsArgs,
    /// How many jobs at once; by cores and free memory otherwise.
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Take jobs with this label too, beside those that have none; can be repeated.
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// Jobs work in directories below this one, and in folders that come with them.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// The most that a job may let the model do without asking.
    #[arg(long, value_name = "MODE", value_parser = options::approval(), default_value = "auto-edit")]
    max_approval: Approval,
    /// The Gemini CLI to run: a path, a command on PATH, or a version, which is fetched if it is not there.
    #[arg(long, value_name = "PATH|VERSION")]
    gemini: Option<PathBuf>,
    /// On warm processes, or on a new one for each job.
    #[arg(long, value_enum, default_value = "auto")]
    transport: By,
    /// Workers with the same quota wait together when the API tells one of them to.
    #[arg(long, value_name = "NAME", default_value = "shared")]
    quota: String,
    /// How long this worker may be silent before its jobs are given to others.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = alhena_model::options::time)]
    lease: Duration,
    /// What it is called in results; its machine's name and its process by default.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// End when there was nothing to do for this time.
    #[arg(long, value_name = "TIME", value_parser = alhena_model::options::time)]
    idle_exit: Option<Duration>,
    /// Print what happens as JSON, an object a line.
    #[arg(long)]
    json: bool,
    /// Say nothing on stderr but errors.
    #[arg(long, short)]
    quiet: bool,
}

#[cfg(not(feature = "nats"))]
pub fn execute(_: Args) -> Done {
    Err(crate::nats::missing())
}

#[cfg(feature = "nats")]
pub fn execute(args: Args) -> Done {
    start::start(args)
}
