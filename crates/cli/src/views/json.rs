//! Views for programs: events, outcome and answer as JSON, the CLI's own formats made truthful, and the hosts' own shapes.

use std::io::{self, Write};

use alhena_hosts::native::{JsonReport, StreamJson, line_for};
use alhena_hosts::{aiwf, openase, promptfoo};
use alhena_model::{Event, EventKind, Outcome};
use alhena_model::{Source, Timestamp};

use super::{Target, View, complain_of, warn};
use crate::output::say;

/// One event per line, each written out at once.
pub struct Events(pub Target);

impl View for Events {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.0.line(event)
    }

    fn caught_up(&mut self) -> io::Result<()> {
        self.0.out.flush()
    }

    fn close(&mut self, _outcome: &Outcome) -> io::Result<()> {
        self.0.out.flush()
    }
}

/// The outcome, at the end.
pub struct OutcomeView(pub Target);

impl View for OutcomeView {
    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.0.pretty(outcome)?;
        self.0.out.flush()
    }
}

/// Only the answer, at the end, and only of a run that succeeded; what else there is to say goes to stderr.
pub struct Data {
    pub target: Target,
    pub quiet: bool,
}

impl View for Data {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.kind {
            EventKind::Warning { message } if !self.quiet && message != crate::offline::NOTICE => {
                warn(event.source, message)
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        if let Some(failure) = &outcome.failure {
            complain_of(failure);
        } else if let Some(data) = &outcome.data {
            self.target.pretty(data)?;
        }
        self.target.out.flush()
    }
}

/// stream-json: the CLI's own lines verbatim, with additions at the end only.
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

/// json: the CLI's own report.
pub struct JsonView {
    pub target: Target,
    pub report: JsonReport,
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

/// aiwf: one object at the end.
pub struct Aiwf(pub Target);

impl View for Aiwf {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        // skipped, and a sample of it for the host's log.
        if let EventKind::Malformed { sample, bytes } = &event.kind {
            say(format_args!("warning: skipped a line that is no event, {bytes} bytes: {sample}"));
        }
        Ok(())
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.0.line(&aiwf::view(outcome, None))?;
        self.0.out.flush()
    }
}

/// OpenASE: lines as it happens.
pub struct OpenAse {
    pub target: Target,
    pub mode: openase::Mode,
}

impl View for OpenAse {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        openase::lines(event, self.mode).iter().try_for_each(|line| self.target.line(line))
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
    pub target: Target,
    pub view: promptfoo::View,
}

impl View for Promptfoo {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.view.event(event);
        Ok(())
    }

    fn close(&mut self, outcome: &Outcome) -> io::Result<()> {
        let response = std::mem::take(&mut self.view).response(outcome, None);
        self.target.line(&response)?;
        self.target.out.flush()
    }
}
