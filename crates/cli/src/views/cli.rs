//! The CLI's own formats, made truthful: its own lines verbatim, only additions at the end.

use std::io::{self, Write};

use alhena_hosts::native::{JsonReport, StreamJson, line_for};
use alhena_model::{Event, Outcome, Source, Timestamp};

use super::{Target, View};

/// stream-json.
pub struct StreamJsonView {
    target: Target,
    seen: StreamJson,
    /// The CLI writes such lines itself; over ACP it does not.
    has_lines: bool,
}

impl StreamJsonView {
    pub fn new(target: Target) -> Self {
        Self { target, seen: StreamJson::default(), has_lines: false }
    }
}

impl View for StreamJsonView {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        // What the CLI says in a line comes after that line.
        let made = line_for(event).filter(|_| !self.has_lines && event.source != Source::Derived);
        match made {
            Some(line) => writeln!(self.target.out, "{line}"),
            None => Ok(()),
        }
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.has_lines = true;
        let out = &mut self.target.out;
        let mut lines = self.seen.line(line);
        lines.try_for_each(|line| out.write_all(&line).and_then(|()| out.write_all(b"\n")))
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.target.out.flush()
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        if let Some(line) = self.seen.rest(outcome) {
            self.target.out.write_all(&line)?;
            self.target.out.write_all(b"\n")?;
        }
        for line in self.seen.close(outcome, Timestamp::now()) {
            writeln!(self.target.out, "{line}")?;
        }
        self.target.out.flush()
    }
}

/// json.
pub struct JsonView {
    target: Target,
    report: JsonReport,
}

impl JsonView {
    pub fn new(target: Target) -> Self {
        Self { target, report: JsonReport::default() }
    }
}

impl View for JsonView {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.report.event(event);
        Ok(())
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        writeln!(self.target.out, "{}", self.report.print(outcome))?;
        self.target.out.flush()
    }
}
