//! How the prompt gets to the CLI, so that no prompt can break it.
//!
//! `-p "-x"` is an error, so it is `--prompt=`; one argument holds at most 128 KiB, so a long prompt goes by standard
//! input; the CLI cuts that at 8 MiB, and from a good 4 million characters on it makes no call and reports success
//! (0.61.0), so what is larger is refused.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use alhena_model::FailureKind;
use alhena_wire::release::Feature;

use super::RunError;
use crate::find::Gemini;
use crate::request::{Prompt, PromptBy, Request, Sandbox};
use crate::supervise::protocol;

/// Longer prompts go by standard input. The kernel's limit is 128 KiB for one argument.
const LONGEST_SHORT: usize = 32 << 10;
const LONGEST_ARGUMENT: usize = 120 << 10;
/// The CLI counts a token for four UTF-16 units and compares with a window of 1,048,576 tokens, less what it adds itself.
const MOST_UNITS: usize = 4_000_000;
/// Where the CLI cuts its standard input.
const MOST_BYTES: usize = 8 << 20;

/// A prompt on its way.
pub(super) struct Delivery {
    /// The last arguments.
    pub args: Vec<OsString>,
    pub stdin: Stdin,
}

/// What the CLI shall read.
pub(super) enum Stdin {
    /// The prompt.
    Prompt(String),
    /// Nothing; a terminal is welcome.
    Nothing,
    /// Nothing, and no terminal: it would make the CLI interactive.
    NoTerminal,
}

pub(super) fn deliver(request: &Request) -> Result<Delivery, RunError> {
    if request.prompt_by == PromptBy::File {
        return by_file(&request.prompt);
    }
    let text = match &request.prompt {
        Prompt::Text(text) => text.clone(),
        Prompt::File(path) => fs::read_to_string(path).map_err(|error| {
            RunError::usage(format!("{}: {error}", path.display()), "Give a text file that can be read.")
        })?,
    };
    check(&text)?;
    let by = match request.prompt_by {
        PromptBy::Auto if text.len() > LONGEST_SHORT || text.contains('\0') => PromptBy::Stdin,
        PromptBy::Auto => PromptBy::Flag,
        other => other,
    };
    match by {
        PromptBy::Stdin | PromptBy::Auto | PromptBy::File => {
            Ok(Delivery { args: Vec::new(), stdin: Stdin::Prompt(text) })
        }
        PromptBy::Flag => {
            fits_an_argument(&text)?;
            Ok(Delivery { args: vec![format!("--prompt={text}").into()], stdin: Stdin::Nothing })
        }
        PromptBy::Positional => {
            fits_an_argument(&text)?;
            // Behind `--` nothing is taken for a flag.
            Ok(Delivery { args: vec!["--".into(), text.into()], stdin: Stdin::NoTerminal })
        }
    }
}

/// the exact words.
fn by_file(prompt: &Prompt) -> Result<Delivery, RunError> {
    let Prompt::File(path) = prompt else {
        return Err(RunError::usage(
            "--prompt-by file needs a file",
            "Give the prompt with --prompt-file, or leave out --prompt-by.",
        ));
    };
    if !path.is_file() {
        return Err(RunError::usage(format!("{} is not a file", path.display()), "Give a file that exists."));
    }
    let argument = format!("--prompt=Process the prompt in {}", path.display());
    Ok(Delivery { args: vec![argument.into()], stdin: Stdin::Nothing })
}

fn check(text: &str) -> Result<(), RunError> {
    if text.trim().is_empty() {
        return Err(RunError::usage(
            "the prompt is empty",
            "Give a prompt as an argument, by --prompt-file or on stdin.",
        ));
    }
    let too_many = text.len() > MOST_UNITS && text.encode_utf16().count() > MOST_UNITS;
    if text.len() >= MOST_BYTES || too_many {
        return Err(RunError::usage(
            format!(
                "the prompt is too large: {} bytes, and Gemini CLI sends at most {MOST_UNITS} characters",
                text.len()
            ),
            "Put the material into files and name them in the prompt.",
        ));
    }
    Ok(())
}

fn fits_an_argument(text: &str) -> Result<(), RunError> {
    if text.contains('\0') {
        return Err(RunError::usage(
            "an argument cannot hold a NUL character",
            "Leave out --prompt-by, or use stdin.",
        ));
    }
    if text.len() > LONGEST_ARGUMENT {
        return Err(RunError::usage(
            format!("the prompt is too long for an argument: {} bytes", text.len()),
            "Leave out --prompt-by, or use stdin.",
        ));
    }
    Ok(())
}

impl Stdin {
    /// Puts the prompt where the CLI will read it.
    pub(super) fn place(
        self,
        run_dir: &Path,
        gemini: &Gemini,
        request: &Request,
    ) -> Result<protocol::Stdin, RunError> {
        match self {
            Stdin::Prompt(text) => {
                let path = run_dir.join("stdin");
                fs::write(&path, text).map_err(|error| {
                    RunError::failed(FailureKind::Config, format!("{}: {error}", path.display()))
                })?;
                Ok(protocol::Stdin::File(path.into_os_string()))
            }
            // A sandbox passes its terminal on, and older releases have not been seen to obey ^C.
            Stdin::Nothing
                if request.sandbox == Sandbox::Inherit && gemini.version.has(Feature::LauncherSplit) =>
            {
                Ok(protocol::Stdin::Terminal)
            }
            Stdin::Nothing | Stdin::NoTerminal => Ok(protocol::Stdin::Null),
        }
    }
}
