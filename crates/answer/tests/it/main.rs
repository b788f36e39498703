#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod public_schemas;
mod schemas;
