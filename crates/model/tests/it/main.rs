#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod common;

mod acp;
mod conversation;
mod joined;
mod messages;
mod properties;
mod public_schemas;
mod recordings;
mod schemas;
