//! `alhena acp` with real clients: the protocol's official SDK and acpx, on the real CLI, against the scripted API.

mod acpx;
mod client;
mod ends;
mod lines;
mod sessions;
mod talks;

use crate::lab::Lab;
use alhena_scripted::Scenario;

/// The CLI that these tests talk to.
const VERSION: &str = "0.61.0";

fn lab(name: &str, scenario: Scenario) -> Lab {
    Lab::real(name, VERSION, scenario)
}
