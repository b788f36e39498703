//! Where the queue is, for all commands that have to do with other machines.

use std::path::PathBuf;

#[cfg(feature = "nats")]
use alhena_batch::queue::{Address, Layout, Queue, QueueError};

use crate::command_error::CommandError;

/// How the server lets one in. What is not given here the environment says, as the `nats` command has it.
#[derive(Clone, Debug, clap::Args)]
pub struct NatsArgs {
    /// A file with credentials for NATS [default: NATS_CREDS].
    #[arg(long, value_name = "FILE")]
    nats_creds: Option<PathBuf>,
    /// A file with the seed of a key for NATS [default: NATS_NKEY].
    #[arg(long, value_name = "FILE")]
    nats_nkey: Option<PathBuf>,
    /// A user of NATS, with the password in NATS_PASSWORD [default: NATS_USER].
    #[arg(long, value_name = "NAME")]
    nats_user: Option<String>,
    /// Certificates that are trusted beside the system's [default: NATS_CA].
    #[arg(long, value_name = "FILE")]
    nats_ca: Option<PathBuf>,
    /// A certificate of one's own [default: NATS_CERT].
    #[arg(long, value_name = "FILE", requires = "nats_key")]
    nats_cert: Option<PathBuf>,
    /// The key of that certificate [default: NATS_KEY].
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    nats_key: Option<PathBuf>,
    /// On how many servers of a cluster everything is kept [default: as it is, or 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    nats_replicas: Option<u8>,
}

/// What is said where there is none.
#[cfg(not(feature = "nats"))]
pub fn missing() -> CommandError {
    CommandError::usage(
        "this alhena was built without NATS",
        "Build it with the feature `nats`, which is there unless --no-default-features is given.",
    )
}

#[cfg(feature = "nats")]
impl NatsArgs {
    /// Where the server is and who one is there.
    pub fn address(&self, url: Option<&str>) -> Result<Address, CommandError> {
        let variable = |name: &str| std::env::var(name).ok();
        let mut address = Address::of(url, variable).map_err(wrong)?;
        let given = |option: &Option<PathBuf>, default: Option<PathBuf>| option.clone().or(default);
        address.credentials = given(&self.nats_creds, address.credentials);
        address.nkey = given(&self.nats_nkey, address.nkey);
        address.ca = given(&self.nats_ca, address.ca);
        address.user = self.nats_user.clone().or(address.user);
        if let (Some(certificate), Some(key)) = (&self.nats_cert, &self.nats_key) {
            address.certificate = Some((certificate.clone(), key.clone()));
        }
        Ok(address)
    }

    /// Connects. The queue is laid out where it is not.
    pub fn connect(&self, url: Option<&str>, mut layout: Layout) -> Result<(Queue, Address), CommandError> {
        let address = self.address(url)?;
        if let Some(replicas) = self.nats_replicas {
            layout = layout.replicas(usize::from(replicas));
        }
        let queue = Queue::connect(&address, layout).map_err(wrong)?;
        Ok((queue, address))
    }
}

#[cfg(feature = "nats")]
/// What went wrong with the queue, for people.
pub fn wrong(error: QueueError) -> CommandError {
    let hint = error.hint().unwrap_or_default();
    match error {
        QueueError::Address(_) | QueueError::Name(_) | QueueError::Connect { .. } => {
            CommandError::usage(error, hint)
        }
        _ => CommandError::failed(error, hint),
    }
}
