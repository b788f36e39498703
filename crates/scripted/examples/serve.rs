//! Serves a scenario until it is interrupted: `cargo run -p alhena-scripted --example serve -- scenario.json`.
//!
//! Prints the base URL for `GOOGLE_GEMINI_BASE_URL` on stdout, then every request on stderr.

use std::error::Error;
use std::time::Duration;

use alhena_scripted::{Scenario, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let Some(path) = std::env::args().nth(1) else {
        return Err("usage: serve SCENARIO.json".into());
    };
    let scenario =
        Scenario::from_json(&std::fs::read_to_string(&path)?).map_err(|error| format!("{path}: {error}"))?;
    let server = Server::start()?;
    println!("{}", server.add("scenario", scenario));
    let mut shown = 0;
    loop {
        if server.wait_until("scenario", Duration::from_secs(3600), |state| state.requests > shown) {
            for request in server.requests("scenario").iter().skip(shown) {
                eprintln!("{} {} ({} bytes)", request.method, request.path, request.raw_body.len());
                shown += 1;
            }
        }
    }
}
