//! Serves a scenario until it is interrupted: `cargo run -p alhena-scripted --example serve -- SCENARIO.json [RECORDING]`,
//! or `tour` for the offline tour.
//!
//! Prints the base URL for `GOOGLE_GEMINI_BASE_URL` on stdout, then every request on stderr, and records the requests
//! as JSON lines where a second file is named.

use std::error::Error;
use std::time::Duration;

use alhena_scripted::{Scenario, Server};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: serve SCENARIO.json|tour [RECORDING.ndjson]")?;
    let scenario = if path == "tour" { alhena_scripted::tour() } else { read(&path)? };
    let server = Server::start()?;
    if let Some(recording) = arguments.next() {
        server.record_to(&recording).map_err(|error| format!("{recording}: {error}"))?;
    }
    println!("{}", server.add("scenario", scenario));
    let mut shown = 0;
    loop {
        server.wait_until("scenario", Duration::from_secs(3600), |state| state.requests > shown);
        for request in server.requests("scenario").iter().skip(shown) {
            eprintln!("{} {} ({} bytes)", request.method, request.path, request.raw_body.len());
            shown += 1;
        }
    }
}

fn read(path: &str) -> Result<Scenario, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    Scenario::from_json(&text).map_err(|error| format!("{path}: {error}"))
}
