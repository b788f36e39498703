//! The page of `alhena serve` in a real browser, on the real CLI and the scripted API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod agents;
mod approvals;
mod figures;
mod hostile;
mod keyboard;
#[path = "../lab/mod.rs"]
mod lab;
mod looks;
mod place;
mod reconnects;
mod runs;
mod windows;
