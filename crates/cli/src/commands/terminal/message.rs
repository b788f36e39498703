//! A message for an agent, from wherever it comes.

use std::io::{self, Read};
use std::path::PathBuf;

use alhena_terminal::{Sent, TerminalError, TerminalErrorKind};

use crate::output::say;

/// No prompt can be larger.
const MOST: u64 = 8 << 20;

/// What to say.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Message {
    /// The message; `-` reads it from stdin.
    #[arg(value_name = "TEXT", required_unless_present = "file", conflicts_with = "file")]
    text: Option<String>,
    /// Read the message from a file.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Message {
    pub fn read(self) -> Result<String, TerminalError> {
        match (self.text, self.file) {
            (_, Some(file)) => {
                let opened = std::fs::File::open(&file);
                text_of(&file.display().to_string(), opened)
            }
            (Some(text), None) if text == "-" => text_of("stdin", Ok(io::stdin().lock())),
            (text, None) => Ok(text.unwrap_or_default()),
        }
    }
}

/// Tells what was changed in a message.
pub fn tell(sent: &Sent) {
    sent.notices().iter().for_each(say);
}

fn text_of(name: &str, from: io::Result<impl Read>) -> Result<String, TerminalError> {
    let failed = |message: String, hint: &str| {
        Err(TerminalError::new(TerminalErrorKind::Usage, message).with_hint(hint))
    };
    let mut bytes = Vec::new();
    let read = from.and_then(|from| from.take(MOST + 1).read_to_end(&mut bytes));
    match (read, String::from_utf8(bytes)) {
        (Err(error), _) => failed(format!("{name}: {error}"), "Give a file that can be read."),
        (Ok(_), Ok(text)) if text.len() as u64 <= MOST => Ok(text),
        (Ok(_), Ok(_)) => failed(format!("{name} is larger than 8 MiB"), "Name the file in a message."),
        (Ok(_), Err(_)) => failed(format!("{name} is not UTF-8 text"), "Name the file in a message."),
    }
}
