//! Jobs that are done on other machines: what of them travels, and what a worker lets in.
//!
//! | Module | Its one job |
//! |---|---|
//! | [`table`] | which options may travel, and why the others may not |
//! | [`letter`] | a job and its answer, as they are in the queue |
//! | [`pack`] | the submitter's side: a job becomes a letter |
//! | [`gate`] | the worker's side: a letter becomes a job, or is refused |
//! | [`company`] | whether a server and workers are there for the jobs |
//! | [`submit`] | puts jobs into the queue and gathers what came of them |

mod company;
mod gate;
mod letter;
mod pack;
mod submit;
mod table;

pub use self::company::nobody;
pub use self::gate::{Gate, OptionsOfWorker};
pub use self::letter::{Answer, Letter, id_and_mark, key};
pub use self::pack::OptionsThatTravel;
pub use self::submit::{Far, Setup};
