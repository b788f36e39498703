//! A run's directory.

use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

use alhena_batch::doing::Seen;
use alhena_model::{Event, EventKind, Failure, FailureKind, Outcome, Source, Timestamp};
use alhena_sys::files;
use parking_lot::Mutex;
use serde_json::Value;

use super::{Live, Run, RunState, RunView};
use crate::log::{Log, json_line};
use crate::shelf::Shelved;

pub const OUTCOME: &str = "outcome.json";
pub const RECORDING: &str = "recording";

pub fn write_outcome(run: &Run, outcome: &Outcome) -> io::Result<()> {
    files::replace_own(&run.dir.join(OUTCOME), &serde_json::to_vec(outcome)?)
}

/// The last event of a run.
pub fn finished(seq: u64, outcome: Outcome) -> Vec<u8> {
    let kind = EventKind::Finished { outcome: Arc::new(outcome) };
    json_line(&Event { seq, at: Timestamp::now(), source: Source::Derived, kind })
}

impl Shelved for RunView {
    const NAME: &'static str = "run";
    type Live = Mutex<Live>;

    fn id(&self) -> &str {
        &self.id
    }

    fn over_at(&self) -> Option<Timestamp> {
        (self.state == RunState::Finished).then(|| self.finished_at.unwrap_or(self.created_at))
    }

    /// One that was under way when the server was killed is over; its keeper has ended it.
    fn found(run: &Run) -> io::Result<()> {
        let events = run.events();
        // One that is over may be without its last event, where whoever wrote it was killed just then.
        let has_end = ends_finished(&events)?;
        if run.is_over() && has_end {
            return Ok(());
        }
        let mut outcome = match files::read_if_there(&run.dir.join(OUTCOME))? {
            // It was over, and only that had not been said.
            Some(bytes) => serde_json::from_slice(&bytes)?,
            None => killed(&events)?,
        };
        let mut view = run.locked();
        outcome.session_id = outcome.session_id.take().or(view.session_id.take());
        view.ended(&outcome);
        if !has_end {
            Log::end_old(&events, |seq| vec![finished(seq, outcome.clone())])?;
        }
        write_outcome(run, &outcome)?;
        run.write(&view)
    }
}

/// The outcome of a run that was killed, with what its events say that it used.
fn killed(events: &Path) -> io::Result<Outcome> {
    let failure = Failure::new(FailureKind::Crashed, "the server was killed while the run was under way")
        .with_hint("Start it again; with resume it goes on where its session stopped.".to_owned());
    let mut outcome = Outcome::not_begun(failure);
    let Ok(file) = files::open(events) else { return Ok(outcome) };
    let mut seen = Seen::default();
    for line in io::BufReader::new(file).split(b'\n') {
        // Of a line that was cut off nothing counts.
        if let Ok(event) = serde_json::from_slice::<Event>(&line?) {
            if let EventKind::Usage(call) = &event.kind {
                call.usage.models.iter().for_each(|(model, tokens)| outcome.usage.add(model, tokens));
            }
            seen.saw(&event);
        }
    }
    outcome.cost_usd = seen.spent().1;
    Ok(outcome)
}

/// So much of the end of the events is read at first.
const TAIL: u64 = 64 << 10;

/// Whether the last whole line of the events is their end.
fn ends_finished(path: &Path) -> io::Result<bool> {
    let Ok(file) = files::open(path) else { return Ok(false) };
    let (length, mut want) = (file.metadata()?.len(), TAIL);
    loop {
        let start = length.saturating_sub(want);
        let mut tail = vec![0; usize::try_from(length - start).map_err(io::Error::other)?];
        files::read_exact_at(&file, &mut tail, start)?;
        // What stands behind the last line end was cut off.
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
