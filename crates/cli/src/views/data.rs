//! Events and outcome as JSON.

use std::io::{self, Write};

use alhena::{Event, Outcome};

use super::{Target, View};

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
