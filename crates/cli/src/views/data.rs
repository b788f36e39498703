//! Events, outcome and data as JSON.

use std::io::{self, Write};

use alhena::{Event, EventKind, Outcome};

use super::{Target, View, words_of_warning};
use crate::command_error::complain_of;
use crate::output::{Stream, say};
use crate::style::{Colours, Harmless, Paint};

/// One event per line, each written out at once.
pub struct Events(Target);

impl Events {
    pub fn new(target: Target) -> Self {
        Self(target)
    }
}

impl View for Events {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        serde_json::to_writer(&mut self.0.out, event)?;
        self.0.out.write_all(b"\n")
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.0.out.flush()
    }

    fn close(&mut self, _outcome: &Outcome) -> io::Result<()> {
        self.0.out.flush()
    }
}

/// The outcome, at the end.
pub struct OutcomeView(Target);

impl OutcomeView {
    pub fn new(target: Target) -> Self {
        Self(target)
    }
}

impl View for OutcomeView {
    fn event(&mut self, _event: &Event) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.0.out, outcome)?;
        self.0.out.write_all(b"\n")?;
        self.0.out.flush()
    }
}

/// Only the answer, at the end, and only of a run that succeeded; what else there is to say goes to stderr.
pub struct Data {
    target: Target,
    quiet: bool,
}

impl Data {
    pub fn new(target: Target, quiet: bool) -> Self {
        Self { target, quiet }
    }
}

impl View for Data {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.kind {
            EventKind::Warning { message } if !self.quiet && message != crate::offline::NOTICE => {
                let warning = Colours::of(Stream::Err).paint(Paint::Yellow, "warning:");
                say(format_args!(
                    "{warning} {}",
                    Harmless::default().clean(&words_of_warning(event.source, message))
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        if let Some(failure) = &outcome.failure {
            complain_of(failure);
        } else if let Some(data) = &outcome.data {
            serde_json::to_writer_pretty(&mut self.target.out, data)?;
            self.target.out.write_all(b"\n")?;
        }
        self.target.out.flush()
    }
}
