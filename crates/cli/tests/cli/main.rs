//! What a person sees who types a command: transcripts, one file per command.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs
)]

#[path = "../common/mod.rs"]
mod common;

mod batch;
mod capabilities;
mod cassette;
mod completions;
mod config;
mod detect;
mod directories;
mod doctor;
mod help;
mod host;
mod install;
mod json_errors;
mod mock;
mod output;
mod parse;
mod recording;
mod run;
mod run_finish;
mod run_resume;
mod run_stdin;
mod run_stopped;
mod sessions;
mod sessions_files;
mod terminal;
