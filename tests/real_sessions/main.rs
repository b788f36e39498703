//! Sessions on the real CLI, and their pages in a real browser.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs
)]

#[path = "../lab/mod.rs"]
mod lab;

mod browser;
