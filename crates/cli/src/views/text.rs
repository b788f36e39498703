//! The model's text, as it comes; everything else on stderr.

use std::io::{self, Write};

use alhena_model::{Event, EventKind, Outcome};
use alhena_sys::files::FileId;
use alhena_sys::handles;

use super::{Target, View, warn};
use crate::command_error::complain_of;
use crate::output::say_part;
use crate::style::Harmless;

pub struct Text {
    target: Target,
    quiet: bool,
    harmless: Harmless,
    /// Whether the text so far ends within a line.
    in_line: bool,
}

impl Text {
    pub fn new(target: Target, quiet: bool) -> Self {
        Self { target, quiet, harmless: Harmless::default(), in_line: false }
    }

    fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.in_line) {
            self.target.out.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// Whether stdout and stderr end in the same place, where what goes to both would run together.
fn shown_together() -> bool {
    let (out, err) = (FileId::of(handles::stdout()), FileId::of(handles::stderr()));
    matches!((out, err), (Ok(out), Ok(err)) if out == err)
}

impl View for Text {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.kind {
            EventKind::Text { delta } if !delta.is_empty() => {
                // A file gets the text as it is; a terminal would obey what is in it.
                let clean = self.target.terminal.then(|| self.harmless.clean(delta));
                let text = clean.as_deref().unwrap_or(delta);
                self.target.out.write_all(text.as_bytes())?;
                self.in_line = !text.ends_with('\n');
                Ok(())
            }
            // Text of different turns does not run together.
            EventKind::ToolCall { .. } => self.end_line(),
            EventKind::Warning { message } if !self.quiet && message != crate::offline::NOTICE => {
                self.target.out.flush()?;
                if self.in_line && shown_together() {
                    say_part("\n");
                    self.in_line = false;
                }
                warn(event.source, message);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.target.out.flush()
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.end_line()?;
        self.target.out.flush()?;
        if let Some(failure) = &outcome.failure {
            complain_of(failure);
        }
        Ok(())
    }
}
