//! A pager on a terminal: long text is for reading, not for scrolling by.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};

use alhena_agent::env::Environment;
use alhena_agent::programs::on_path;

use crate::output::{self, Guard, Stream};

/// Where text for people goes: through a pager on a terminal, and straight out everywhere else.
pub struct Output {
    pager: Option<Child>,
}

impl Output {
    /// Starts the user's pager (`PAGER`), or `less`; none when the output is no terminal, and none with `--no-pager`.
    pub fn open(paged: bool) -> Self {
        let wanted = paged && Stream::Out.is_terminal();
        let pager = wanted.then(chosen).flatten().and_then(|mut command| {
            // Colours, no pager for what fits on a screen, and leave the text standing at the end.
            command.env("LESS", std::env::var_os("LESS").unwrap_or_else(|| "FRX".into()));
            command.stdin(Stdio::piped()).spawn().ok()
        });
        Self { pager }
    }

    pub fn write(&mut self, text: &str) -> io::Result<()> {
        match self.pager.as_mut().and_then(|pager| pager.stdin.as_mut()) {
            // The pager shows it on the terminal.
            Some(pipe) => {
                let mut guard = Guard::new(pipe);
                guard.write_all(text.as_bytes())?;
                guard.flush()
            }
            None => output::write(|out| out.write_all(text.as_bytes())),
        }
    }

    /// Waits until the reader is done.
    pub fn close(mut self) {
        if let Some(mut pager) = self.pager.take() {
            drop(pager.stdin.take());
            let _ended = pager.wait();
        }
    }
}

fn chosen() -> Option<Command> {
    let text: OsString = std::env::var_os("PAGER").unwrap_or_else(|| "less".into());
    let text = text.into_string().ok()?;
    let mut words = text.split_whitespace();
    // A bare name is looked up where no folder can put its own; a path is the user's word.
    let name = words.next()?;
    let bare = !name.contains('/');
    let program = if bare { on_path(&Environment::of_process(), name)? } else { name.into() };
    let mut command = Command::new(program);
    command.args(words);
    Some(command)
}
