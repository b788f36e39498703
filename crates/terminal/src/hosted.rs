//! What an agent does in a pane that somebody else owns ([`here`](crate::here())).
//!
//! They capture its screen; what the screen cannot tell is in its record and its session: that MCP servers still start, that a
//! message is on its way, how a turn ended, and the answer as the model wrote it.

use std::time::{Duration, SystemTime};

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_model::Timestamp;

use crate::answer::session_of;
use crate::error::{TerminalError, TerminalErrorKind};
use crate::here::DIRECTORY;
use crate::said::Said;
use crate::screen::{Capture, Reading, Status};
use crate::store::{self, Record};
use crate::terminal::Until;
use crate::turn::TurnNote;

/// A turn whose session has nothing final in it is over when nothing was written for so long and the screen looks free.
const STANDS: Duration = Duration::from_millis(2500);

/// An agent that runs in somebody else's pane.
#[derive(Debug)]
pub struct Hosted {
    record: Record,
}

impl Hosted {
    /// The one that lives, by the id that its host gave it.
    pub fn find(id: &str, environment: &Environment) -> Result<Self, TerminalError> {
        let missing = || {
            TerminalError::new(TerminalErrorKind::NotFound, format!("no agent runs with the id {id:?}"))
                .hint("It is the one that `alhena terminal here --id` was given.")
        };
        let records = Dirs::of(environment).ok_or_else(missing)?.state.join("terminals").join(DIRECTORY);
        let all = std::fs::read_dir(records).map_err(|_| missing())?.flatten().map(|entry| entry.path());
        let records = all.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        let ours = |record: &Record| record.name == id && record.is_alive();
        let found = records.filter_map(|path| store::read(&path).ok().flatten()).filter(ours);
        found.max_by_key(|record| record.created).map(|record| Self { record }).ok_or_else(missing)
    }

    /// What it does, by its screen and by everything else. A message that was sent at `since` is work until the session has
    /// it (from then on there is a `turn`) and its turn has ended.
    #[must_use]
    pub fn read(&self, capture: &Capture<'_>, since: Option<Timestamp>) -> Reading {
        let reading = capture.read();
        if !Until::Idle.is_met(reading.status) {
            return reading;
        }
        if let Some(why) = self.record.mcp.as_ref().and_then(|mcp| mcp.waits_for()) {
            return Reading { warning: Some(why), ..Reading::of(Status::Starting) };
        }
        let Some(since) = since else { return reading };
        let (said, stands) = self.said(since);
        if said.queries == 0 {
            return Reading::of(Status::Processing);
        }
        let id = said.queries as u64;
        if !said.is_final() && !stands {
            let turn = Some(TurnNote { id, ended: None });
            return Reading { turn, ..Reading::of(Status::Processing) };
        }
        let (how, warning) = said.ending();
        let turn = Some(TurnNote { id, ended: Some(how) });
        match (&said.error, said.texts.is_empty()) {
            (Some(error), true) => {
                let error = Some(error.clone());
                Reading { turn, warning, error, ..Reading::of(Status::Error) }
            }
            (_, true) => Reading { turn, warning, ..Reading::of(Status::Idle) },
            (_, false) => {
                let message = Some(said.answer());
                Reading { turn, warning, message, ..Reading::of(Status::Completed) }
            }
        }
    }

    /// The last answer in its session since a moment, or why there is none. None without a session: the screen may tell.
    pub fn last_answer(&self, since: Option<Timestamp>) -> Option<Result<String, TerminalError>> {
        session_of(&self.record)?;
        let (said, _) = self.said(since.unwrap_or(Timestamp::from_millis(0)));
        if !said.texts.is_empty() {
            return Some(Ok(said.answer()));
        }
        let why = if said.queries == 0 { None } else { said.ending().1 };
        let why = why.unwrap_or_else(|| "its session has none yet".to_owned());
        Some(Err(TerminalError::new(TerminalErrorKind::NoAnswer, format!("there is no answer: {why}"))))
    }

    /// What the session says, and whether it has not grown for a while.
    fn said(&self, since: Timestamp) -> (Said, bool) {
        let Some(session) = session_of(&self.record) else { return (Said::default(), false) };
        let written = std::fs::metadata(&session).and_then(|data| data.modified());
        let age = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        (Said::since(&session, since), age.is_some_and(|age| age > STANDS))
    }
}
