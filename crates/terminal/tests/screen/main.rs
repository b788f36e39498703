//! The screen module against captures of the real CLI, against hand-made screens of other layouts, and against noise.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs
)]

mod answers;
mod layouts;
mod markdown;
mod recordings;
