//! What a person sees who types a command: transcripts, one file per command.

mod batch;
mod capabilities;
mod cassette;
mod completions;
mod config;
mod detect;
mod doctor;
mod help;
mod host;
mod install;
mod mock;
mod output;
mod parse;
mod recording;
mod refused;
mod run;
mod run_finish;
mod run_resume;
mod run_stdin;
mod run_stopped;
mod sessions;
mod sessions_files;
pub mod settings;
mod terminal;
