#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod private_places;
mod real_cli;
mod stand_in_output;
mod stand_in_processes;
