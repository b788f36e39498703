//! Batches that workers do: real `nats-server`, the program itself, and stand-ins for the CLI.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

#[path = "../fleet/mod.rs"]
mod fleet;

mod chaos;
mod doors;
mod ends;
mod refused;
mod works;

use alhena_testbed::nats::NatsServer;
use fleet::Fleet;

fn fleet(name: &str) -> Fleet {
    Fleet::new(name, vec![NatsServer::alone().unwrap()])
}

/// So many jobs that say their own id.
fn jobs(count: usize) -> String {
    (0..count).map(|job| format!("{{\"id\": \"j{job}\", \"prompt\": \"marker-{job}-end\"}}\n")).collect()
}
