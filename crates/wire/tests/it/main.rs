#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod acp;
mod exit;
mod frame;
mod properties;
mod recordings;
mod release;
mod report;
mod session;
mod session_content;
mod session_files;
mod session_properties;
mod stream;
