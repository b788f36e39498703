//! Any host's command line for `gemini`, understood: what the drop-in runs instead.
//!
//! The hosts wrote their command lines from documents, and Gemini CLI 0.61.0 rejects half of them: `-y` together with
//! `--approval-mode`, the same flag twice, a prompt that starts with a dash, `--disable-tool`, `suggest`, and
//! `--sandbox=docker` silently means no sandbox. Here each of them is read for what it means, without any judgement about
//! what is wise, and everything that differs from what was written is explained.

mod flags;
mod reading;
mod words;

use alhena_model::Approval;
use alhena_model::options::Sandbox;

use crate::native::Format;
use flags::{COMMANDS, Meaning};
use reading::Reading;
use words::{Piece, split};

/// Where the drop-in was started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// What standard input is.
    pub stdin: Stream,
    /// What standard output is.
    pub stdout: Stream,
    /// Whether `CI` or `GITHUB_ACTIONS` is `true`, which makes the CLI headless on a terminal too.
    pub ci: bool,
}

/// What a standard stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// A terminal.
    Terminal,
    /// A pipe, a file, nothing.
    Other,
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// One headless run.
    Run(Box<DropIn>),
    /// Something that the real CLI gets untouched, with the terminal; and why.
    PassThrough(String),
}

/// One headless run, whatever dialect it was asked for in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DropIn {
    /// The prompt; none when only standard input has one.
    pub prompt: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What the model may do; none when nothing was said and the user's settings decide.
    pub approval: Option<Approval>,
    /// The format to write; none when nothing was said.
    pub output_format: Option<Format>,
    /// The sandbox.
    pub sandbox: Sandbox,
    /// More directories that the model may use.
    pub include_dirs: Vec<String>,
    /// Tools to allow.
    pub allow_tools: Vec<String>,
    /// Tools to deny.
    pub deny_tools: Vec<String>,
    /// Policy files.
    pub policies: Vec<String>,
    /// Where to work.
    pub dir: Option<String>,
    /// The session to go on with: `latest`, a number or an id.
    pub resume: Option<String>,
    /// The id for the new session.
    pub session_id: Option<String>,
    /// Arguments for the real CLI as they are.
    pub extra: Vec<String>,
    /// What is done differently from what was written, and why.
    pub explanations: Vec<String>,
}

impl DropIn {
    /// The prompt as the CLI would put it together with what standard input holds.
    pub fn with_stdin(&self, stdin: &str) -> String {
        with_stdin(self.prompt.as_deref().unwrap_or(""), stdin)
    }
}

/// A prompt as the CLI puts it together with what standard input holds (0.61.0).
pub fn with_stdin(prompt: &str, stdin: &str) -> String {
    match (prompt, stdin) {
        (prompt, "") => prompt.to_owned(),
        ("", stdin) => stdin.to_owned(),
        (prompt, stdin) => format!("{stdin}\n\n{prompt}"),
    }
}

/// Reads a command line, without the program's name.
pub fn read(arguments: &[String], around: Surroundings) -> Invocation {
    let pieces = split(arguments);
    let first_word = pieces.iter().find_map(|piece| match piece {
        Piece::Word(word) => Some(word.as_str()),
        _ => None,
    });
    if let Some(command) = first_word.filter(|word| COMMANDS.contains(word)) {
        return Invocation::PassThrough(format!("`{command}` is a command of Gemini CLI"));
    }
    let handed_over = pieces.iter().find_map(|piece| match piece {
        Piece::Flag(given) if given.flag.meaning == Meaning::HandOver => Some(&given.spelled),
        _ => None,
    });
    if let Some(flag) = handed_over {
        return Invocation::PassThrough(format!("{flag} is for Gemini CLI itself"));
    }
    let mut reading = Reading::of(&pieces);
    for piece in pieces {
        reading.piece(piece);
    }
    if let Some(why) = reading.interactive(around) {
        return Invocation::PassThrough(why.to_owned());
    }
    Invocation::Run(Box::new(reading.finish()))
}

#[cfg(test)]
mod tests;
