//! What other programs expect, as conversions of the model.

pub use alhena_hosts::{acp, agent_cli_sdk, aiwf, claude, dialect, native, openase, promptfoo, streamed};
