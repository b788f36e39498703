//! Jobs for workers on many machines, over NATS JetStream.
//!
//! A job is bytes with a name, and has one result, whoever dies in between: workers, the one who submitted it, a server of
//! a cluster. The guarantees are those of JetStream, used as they are:
//!
//! - a job leaves the queue when its result has been stored, not before: a worker that dies loses its lease, and the job
//!   is given to another;
//! - the first result of a job and attempt is *the* result: the server refuses every other, so a job that was done twice
//!   counts once;
//! - a job that ended several workers is given to no further one: it gets a result that says so, and is kept in a stream
//!   of its own;
//! - a server that lost its storage is [set up again](Queue::generation) by whoever notices, and whoever submitted a job that is gone
//!   [notices](Queue::vanished) and puts it back.
//!
//! This module knows nothing of Gemini CLI, and its types can be used without a runtime: it has one of its own.

mod address;
mod batches;
mod clock;
mod connection;
mod error;
mod gather;
mod names;
mod payload;
mod presence;
mod setup;
mod work;

pub use address::Address;
pub use batches::{Batch, Cancelled, Progress};
pub use clock::{Next, Turn};
pub use connection::{Layout, Queue};
pub use error::{QueueError, Trouble};
pub use gather::{Gathered, Gathering};
pub use names::{Label, Name};
pub use presence::{Hearing, WorkerPresence};
pub use work::{Begun, Delivery, Held, JobConsumer, Refused};
