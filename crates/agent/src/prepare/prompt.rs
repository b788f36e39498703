//! How the prompt gets to the CLI, so that no prompt can break it.
//!
//! `-p "-x"` is an error, so it is `--prompt=`; one argument holds at most 128 KiB, so a long prompt goes by standard
//! input; the CLI cuts that at 8 MiB, and from a good 4 million characters on it makes no call and reports success
//! (0.61.0), so what is larger is refused.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use alhena_model::{FailureKind, Setting};
use alhena_sys::files;
use alhena_wire::release::Feature;

use super::{RunError, arguments};
use crate::find::Gemini;
use crate::request::{Prompt, PromptBy, ResolvedRequest, Sandbox};
use crate::supervise::protocol;

/// Longer prompts go by standard input. The kernel's limit is 128 KiB for one argument.
const LONGEST_SHORT: usize = 32 << 10;
const LONGEST_ARGUMENT: usize = 120 << 10;
/// The CLI counts a token for four UTF-16 units and compares with a window of 1,048,576 tokens, less what it adds itself.
const MOST_UNITS: usize = 4_000_000;
/// Where the CLI cuts its standard input.
const MOST_BYTES: usize = 8 << 20;
/// What the CLI's first word can be besides a prompt.
const COMMANDS: &[&str] =
    &["mcp", "extensions", "extension", "skills", "skill", "hooks", "hook", "gemma", "completion"];

/// How a prompt will travel.
pub(super) enum Delivery {
    Flag(String),
    Stdin(String),
    Positional(String),
    /// The model reads this file itself.
    File(PathBuf),
}

/// A prompt on its way.
pub(super) struct Delivered {
    /// Before all flags: one that takes several values would swallow what comes after it (0.61.0).
    pub first: Vec<OsString>,
    /// After all flags.
    pub last: Vec<OsString>,
    pub stdin: protocol::Stdin,
}

/// Chooses the way, and refuses what cannot go it, before anything is made.
pub(super) fn deliver(request: &ResolvedRequest) -> Result<Delivery, RunError> {
    if request.prompt_by == PromptBy::File {
        return by_file(request.prompt.as_ref());
    }
    let text = text(request)?;
    let by = match request.prompt_by {
        PromptBy::Auto if text.len() > LONGEST_SHORT || text.contains('\0') => PromptBy::Stdin,
        PromptBy::Auto => PromptBy::Flag,
        other => other,
    };
    match by {
        PromptBy::Stdin | PromptBy::Auto | PromptBy::File => Ok(Delivery::Stdin(text)),
        PromptBy::Flag => {
            fits_an_argument(&text)?;
            Ok(Delivery::Flag(text))
        }
        PromptBy::Positional => {
            fits_an_argument(&text)?;
            stays_a_prompt(&text)?;
            Ok(Delivery::Positional(text))
        }
    }
}

/// The text of the prompt, if the CLI can take it.
pub(crate) fn text(request: &ResolvedRequest) -> Result<String, RunError> {
    let text = match &request.prompt {
        None => String::new(),
        Some(Prompt::Text(text)) => text.clone(),
        Some(Prompt::File(path)) => fs::read_to_string(path).map_err(|error| {
            let message = format!("{}: {}: {error}", Setting::PromptFile, path.display());
            RunError::usage(message, "Give a text file that can be read.").caused_by(error)
        })?,
    };
    check(&text)?;
    Ok(text)
}

fn by_file(prompt: Option<&Prompt>) -> Result<Delivery, RunError> {
    let Some(Prompt::File(path)) = prompt else {
        return Err(RunError::usage(
            "`prompt_by` file needs a file",
            "Give the prompt with `prompt_file`, or leave out `prompt_by`.",
        ));
    };
    match path.is_file() {
        true => Ok(Delivery::File(path.clone())),
        false => {
            Err(RunError::usage(format!("{} is not a file", path.display()), "Give a file that exists."))
        }
    }
}

/// The CLI's parser takes a lone word for other things too; behind `--` it takes none for the prompt (0.61.0).
fn stays_a_prompt(text: &str) -> Result<(), RunError> {
    let taken_for = match text {
        _ if text.starts_with('-') => "an option",
        _ if COMMANDS.contains(&text) => "a command",
        // 1.0 arrives as 1, 0x10 as 16.
        _ if text.parse::<f64>().is_ok_and(f64::is_finite) || text.starts_with("0x") => "a number",
        _ => return Ok(()),
    };
    Err(RunError::usage(
        format!("Gemini CLI would take this prompt for {taken_for}"),
        "Leave out `prompt_by` positional: the other ways take every prompt.",
    ))
}

fn check(text: &str) -> Result<(), RunError> {
    if text.trim().is_empty() {
        return Err(RunError::usage("the prompt is empty", "Give a prompt or a `prompt_file`."));
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
            "Leave out `prompt_by`, or use stdin.",
        ));
    }
    if text.len() > LONGEST_ARGUMENT {
        return Err(RunError::usage(
            format!("the prompt is too long for an argument: {} bytes", text.len()),
            "Leave out `prompt_by`, or use stdin.",
        ));
    }
    Ok(())
}

impl Delivery {
    /// Puts the prompt where the CLI will find it. `dir` is where the CLI works.
    pub(super) fn place(
        self,
        run_dir: &Path,
        dir: &Path,
        gemini: &Gemini,
        request: &ResolvedRequest,
    ) -> Result<Delivered, RunError> {
        // A sandbox passes its terminal on, and older releases have not been seen to obey ^C.
        let terminal = request.sandbox == Sandbox::Inherit && gemini.version.has(Feature::LauncherSplit);
        let nothing = if terminal { protocol::Stdin::Terminal } else { protocol::Stdin::Null };
        let flag = |text: String| vec![OsString::from(format!("--prompt={text}"))];
        Ok(match self {
            Delivery::Flag(text) => Delivered { first: Vec::new(), last: flag(text), stdin: nothing },
            Delivery::Positional(text) => {
                Delivered { first: vec![text.into()], last: Vec::new(), stdin: nothing }
            }
            Delivery::Stdin(text) => {
                let path = run_dir.join("stdin");
                fs::write(&path, text).map_err(|error| not_placed(&path, &error))?;
                let stdin = protocol::Stdin::File(path.into_os_string());
                Delivered { first: Vec::new(), last: Vec::new(), stdin }
            }
            Delivery::File(path) => {
                let (file, copy) = within_reach(&path, run_dir, dir, &request.include_dirs)?;
                // the exact words.
                let mut last = flag(format!("Process the prompt in {}", file.display()));
                last.extend(copy.map(|dir| arguments::include(&dir)).transpose()?);
                Delivered { first: Vec::new(), last, stdin: nothing }
            }
        })
    }
}

/// The file as the model may read it: the CLI denies what is outside of its directories. A copy is shown to it then,
/// because the file's own directory would open all that is beside it to the model; the copy's directory comes with it.
fn within_reach(
    path: &Path,
    run_dir: &Path,
    dir: &Path,
    include_dirs: &[PathBuf],
) -> Result<(PathBuf, Option<PathBuf>), RunError> {
    let real = fs::canonicalize(path).map_err(|error| not_placed(path, &error))?;
    let allowed = include_dirs.iter().filter_map(|dir| fs::canonicalize(dir).ok());
    if allowed.chain([dir.to_owned()]).any(|dir| real.starts_with(dir)) {
        // As the caller wrote it, if it is the same file from where the CLI works.
        let same = fs::canonicalize(dir.join(path)).is_ok_and(|found| found == real);
        return Ok((if same { path.to_owned() } else { real }, None));
    }
    let shown = run_dir.join("prompt");
    let copy = shown.join(path.file_name().unwrap_or_else(|| OsStr::new("prompt")));
    files::create_private_dir(&shown)
        .and_then(|_| fs::copy(&real, &copy))
        .map_err(|error| not_placed(path, &error))?;
    Ok((copy, Some(shown)))
}

fn not_placed(path: &Path, error: &std::io::Error) -> RunError {
    RunError::failed(FailureKind::Config, format!("{}: {error}", path.display()))
}
