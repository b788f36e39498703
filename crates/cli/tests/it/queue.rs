//! Batches that workers do: real `nats-server`, the program itself, and stand-ins for the CLI.

mod chaos;
mod doors;
mod ends;
mod refused;
mod works;

use crate::fleet::Fleet;
use alhena_batch::queue::{Address, Layout, Queue};
use alhena_testbed::nats::NatsServer;

fn fleet(name: &str) -> Fleet {
    Fleet::new(name, vec![NatsServer::alone().unwrap()])
}

fn queue(fleet: &Fleet) -> Queue {
    Queue::connect(&Address::of(Some(&fleet.urls()), |_| None).unwrap(), Layout::default()).unwrap()
}

/// So many jobs that say their own id.
fn jobs(count: usize) -> String {
    (0..count).map(|job| format!("{{\"id\": \"j{job}\", \"prompt\": \"marker-{job}-end\"}}\n")).collect()
}
