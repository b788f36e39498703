//! Which options of a job may travel to a worker.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`table`] | which options may travel, and why the others may not |
//! | [`pack`] | the submitter's side: a job becomes an envelope |
//! | [`gate`] | the worker's side: an envelope becomes a job, or is refused |

mod gate;
mod pack;
mod table;

/// The envelope, by the names that the modules here use.
mod letter {
    pub use alhena_batch::remote::envelope::{JobEnvelope as Letter, Place, VERSION, of_another_release};
}

pub use self::gate::{Gate, OptionsOfWorker};
pub use self::pack::{OptionsThatTravel, pack};
