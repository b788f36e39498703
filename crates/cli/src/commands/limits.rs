//! How long a run, or a turn of a conversation, may take, and how much it may try.

use alhena::Request;

use crate::config::Config;
use crate::limit::Limit;

#[derive(Debug, clap::Args)]
pub struct Limits {
    /// Stop it after this time, such as 90s or 1h30m, or none [default: none].
    #[arg(long, value_name = "TIME")]
    timeout: Option<Limit>,
    /// Stop it when nothing comes within this time, or none [default: 60s].
    #[arg(long, value_name = "TIME")]
    first_event_timeout: Option<Limit>,
    /// Stop it when it is silent for this long while no tool runs, or none [default: 5m].
    #[arg(long, value_name = "TIME")]
    stall_timeout: Option<Limit>,
    /// How many turns the model may take.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// How often a failing request to the API is tried.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_attempts: Option<u32>,
}

impl Limits {
    /// Puts all of it into a request; where nothing was said, what the files say.
    pub fn describe(self, config: &Config, request: &mut Request) {
        if let Some(limit) = self.timeout.or(config.timeout) {
            request.timeout = limit.duration();
        }
        if let Some(limit) = self.first_event_timeout.or(config.first_event_timeout) {
            request.first_event_timeout = limit.duration();
        }
        if let Some(limit) = self.stall_timeout.or(config.stall_timeout) {
            request.stall_timeout = limit.duration();
        }
        request.max_turns = self.max_turns.or(config.max_turns);
        request.max_attempts = self.max_attempts;
    }
}
