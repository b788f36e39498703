//! The end of tasks that were under way when the server was killed: their keepers have ended the agents.

use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

use alhena_batch::doing::Seen;
use alhena_model::{Event, EventKind, Failure, FailureKind, Outcome, Resolution};
use alhena_sys::files;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{OUTCOME, TaskEntry, TaskKind};

impl TaskEntry {
    /// Ends the task, if it has not ended.
    pub(super) fn recover(&self) -> io::Result<()> {
        match self.kind {
            TaskKind::Run => self.recover_run(),
            TaskKind::Conversation => self.recover_conversation(),
        }
    }

    fn recover_run(&self) -> io::Result<()> {
        let events = self.events();
        // One that has ended can be without its last event, if the server was killed just then.
        let has_end = ends_finished(&events)?;
        if self.is_over() && has_end {
            return Ok(());
        }
        let mut outcome = match files::read_if_there(&self.dir.join(OUTCOME))? {
            Some(bytes) => serde_json::from_slice(&bytes)?,
            None => killed(&events)?,
        };
        let mut task = self.locked();
        outcome.session_id = outcome.session_id.take().or(task.session_id.take());
        task.end_run(&outcome);
        if !has_end {
            self.append_last(None, vec![EventKind::Finished { outcome: Arc::new(outcome.clone()) }])?;
        }
        self.write_outcome(&outcome)?;
        self.write(&task)
    }

    fn recover_conversation(&self) -> io::Result<()> {
        if self.is_over() {
            return Ok(());
        }
        let failure =
            Failure::new(FailureKind::Crashed, "the server was killed while the conversation was open")
                .with_hint("Open another; with resume it goes on where the session stopped.".to_owned());
        let reason = Some("the server was killed".to_owned());
        let mut last: Vec<EventKind> = unanswered(&self.events())?
            .into_iter()
            .map(|id| EventKind::PermissionResolved {
                id,
                decision: Resolution::Withdrawn,
                reason: reason.clone(),
            })
            .collect();
        last.push(EventKind::Closed { warnings: Vec::new(), failure: Some(Box::new(failure.clone())) });
        let mut task = self.locked();
        self.append_last(Some(task.turns), last)?;
        task.end(Some(failure));
        self.write(&task)
    }

    pub(super) fn write_outcome(&self, outcome: &Outcome) -> io::Result<()> {
        files::replace_own(&self.dir.join(OUTCOME), &serde_json::to_vec(outcome)?)
    }
}

/// Reads the events of a log. A line that was cut off is ignored.
fn each_event<T: DeserializeOwned>(path: &Path, mut each: impl FnMut(T)) -> io::Result<()> {
    let Ok(file) = files::open(path) else { return Ok(()) };
    for line in io::BufReader::new(file).split(b'\n') {
        if let Ok(event) = serde_json::from_slice(&line?) {
            each(event);
        }
    }
    Ok(())
}

/// Returns the questions without an answer.
fn unanswered(events: &Path) -> io::Result<Vec<String>> {
    let mut open: Vec<String> = Vec::new();
    each_event(events, |kind: EventKind| match kind {
        EventKind::Permission { permission } => open.push(permission.id),
        EventKind::PermissionResolved { id, .. } => open.retain(|open| *open != id),
        _ => {}
    })?;
    Ok(open)
}

/// Returns the outcome of a run that was killed, with its usage as far as its events have it.
fn killed(events: &Path) -> io::Result<Outcome> {
    let failure = Failure::new(FailureKind::Crashed, "the server was killed while the run was under way")
        .with_hint("Start it again; with resume it goes on where its session stopped.".to_owned());
    let mut outcome = Outcome::not_begun(failure);
    let mut seen = Seen::default();
    each_event(events, |event: Event| {
        if let EventKind::Usage(call) = &event.kind {
            call.usage.models.iter().for_each(|(model, tokens)| outcome.usage.add(model, tokens));
        }
        seen.saw(&event);
    })?;
    outcome.cost_usd = seen.spent().1;
    Ok(outcome)
}

/// How much of the end of the events is read at first.
const TAIL: u64 = 64 << 10;

/// Returns true if the last whole line of the events is their end.
fn ends_finished(path: &Path) -> io::Result<bool> {
    let Ok(file) = files::open(path) else { return Ok(false) };
    let (length, mut want) = (file.metadata()?.len(), TAIL);
    loop {
        let start = length.saturating_sub(want);
        let mut tail = vec![0; usize::try_from(length - start).map_err(io::Error::other)?];
        files::read_exact_at(&file, &mut tail, start)?;
        // Bytes behind the last line end were cut off.
        let whole = memchr::memrchr(b'\n', &tail).and_then(|end| tail.get(..end)).unwrap_or_default();
        match memchr::memrchr(b'\n', whole) {
            None if start > 0 => want = want.saturating_mul(4),
            before => {
                let last = whole.get(before.map_or(0, |before| before + 1)..).unwrap_or_default();
                let event: Result<Value, _> = serde_json::from_slice(last);
                return Ok(event.is_ok_and(|event| event.get("type").is_some_and(|kind| kind == "finished")));
            }
        }
    }
}
