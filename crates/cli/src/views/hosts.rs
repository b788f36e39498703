//! The hosts' own shapes.

use std::io::{self, Write};

use alhena_hosts::{aiwf, openase, promptfoo};
use alhena_model::{Event, EventKind, Outcome};

use super::{Target, View};

/// aiwf: one object at the end.
pub struct Aiwf(Target);

impl Aiwf {
    pub fn new(target: Target) -> Self {
        Self(target)
    }
}

impl View for Aiwf {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        // skipped, and a sample of it for the host's log.
        if let EventKind::Malformed { sample, bytes } = &event.kind {
            let text = format!("warning: skipped a line that is no event, {bytes} bytes: {sample}");
            crate::output::say(text);
        }
        Ok(())
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        write_line(&mut self.0, &aiwf::view(outcome, None))?;
        self.0.out.flush()
    }
}

/// OpenASE: lines as it happens.
pub struct OpenAse {
    target: Target,
    mode: openase::Mode,
}

impl OpenAse {
    pub fn new(target: Target, mode: openase::Mode) -> Self {
        Self { target, mode }
    }
}

impl View for OpenAse {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        openase::lines(event, self.mode).iter().try_for_each(|line| write_line(&mut self.target, line))
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.target.out.flush()
    }

    fn close(&mut self, _outcome: &Outcome) -> io::Result<()> {
        self.target.out.flush()
    }
}

/// promptfoo: one object at the end.
pub struct Promptfoo {
    target: Target,
    view: promptfoo::View,
}

impl Promptfoo {
    pub fn new(target: Target) -> Self {
        Self { target, view: promptfoo::View::default() }
    }
}

impl View for Promptfoo {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.view.event(event);
        Ok(())
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        let response = std::mem::take(&mut self.view).response(outcome, None);
        write_line(&mut self.target, &response)?;
        self.target.out.flush()
    }
}

fn write_line(target: &mut Target, value: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut target.out, value)?;
    target.out.write_all(b"\n")
}
