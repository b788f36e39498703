//! Model calls that are in no conversation: those of tools, of the router, of summaries, checks and corrections.
//!
//! The CLI writes the answer to each of them into the file of `--record-responses` before it goes on (0.61.0). The name of the
//! model is not in there; its traces, which follow a moment later, have it.

use std::io;
use std::path::Path;

use alhena_model::Tokens;
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::responses::{self, Response};

use crate::acp::responses::tokens;
use crate::follow::Follower;
use crate::recording::LONGEST_LINE;
use crate::telemetry::TelemetryTail;

/// Reads these calls as they are recorded.
pub(super) struct Aside {
    file: Follower,
    framer: Framer,
    telemetry: Option<TelemetryTail>,
    /// Calls whose model is not known yet.
    nameless: Vec<Tokens>,
}

impl Aside {
    pub(super) fn open(file: &Path, telemetry: Option<&Path>) -> io::Result<Self> {
        let telemetry = telemetry.map(TelemetryTail::open).transpose()?;
        let (file, framer) = (Follower::open(file)?, Framer::new(LONGEST_LINE));
        Ok(Self { file, framer, telemetry, nameless: Vec::new() })
    }

    /// Whether the models of the calls will be known.
    pub(super) fn has_names(&self) -> bool {
        self.telemetry.is_some()
    }

    /// Whether calls are left whose model is not known yet.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.nameless.is_empty()
    }

    /// Returns the calls since the last time whose model is known.
    pub(super) fn read(&mut self) -> Vec<(String, Tokens)> {
        // Traces first: an answer is recorded before its trace is written.
        let traced = self.telemetry.as_mut().map(TelemetryTail::traced).unwrap_or_default();
        let mut fresh: Vec<Response> = Vec::new();
        while let Some(bytes) = self.file.next().ok().filter(|bytes| !bytes.is_empty()) {
            self.framer.push(bytes, |frame| {
                if let Frame::Line(line) = frame {
                    fresh.extend(responses::parse_line(line).filter(|response| !response.streamed));
                }
            });
        }
        self.nameless.extend(fresh.iter().map(tokens));
        let mut named = Vec::new();
        for call in traced {
            let same = |tokens: &Tokens| (tokens.prompt, tokens.output) == (call.input, call.output);
            if let Some(at) = self.nameless.iter().position(same) {
                named.push((call.model, self.nameless.remove(at)));
            }
        }
        named
    }

    /// Returns the calls whose model stays unknown.
    pub(super) fn take_nameless(&mut self) -> Vec<Tokens> {
        std::mem::take(&mut self.nameless)
    }
}
