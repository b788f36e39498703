#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod common;

mod answers;
mod cassette;
mod failures;
mod files;
mod knowledge;
mod protocol;
mod schema;
mod selection;
