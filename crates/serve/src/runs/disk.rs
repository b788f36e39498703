//! A run's directory.

use std::io::{self, BufRead};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use alhena_batch::doing::Seen;
use alhena_batch::meaning::Options;
use alhena_model::{Event, EventKind, Failure, FailureKind, Outcome, Source, Timestamp};
use alhena_sys::files;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Kept, Key, Live, RunState, RunView};
use crate::log::{Log, json_line};
use crate::token::is_id;

pub const EVENTS: &str = "events.jsonl";
pub const OUTCOME: &str = "outcome.json";
pub const RECORDING: &str = "recording";
const RUN: &str = "run.json";

/// What `run.json` holds.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    view: RunView,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
}

/// What is told of a run that was just asked for.
pub fn view_of(id: &str, options: &Options, longest: usize) -> RunView {
    let text = |name: &str| options.get(name).and_then(Value::as_str).map(str::to_owned);
    let prompt = text("prompt").or_else(|| text("prompt_file")).unwrap_or_default();
    RunView {
        id: id.to_owned(),
        state: RunState::Queued,
        prompt: beginning(&prompt, longest),
        dir: text("dir").unwrap_or_default(),
        model: text("model"),
        approval: text("approval"),
        created_at: Timestamp::now(),
        started_at: None,
        finished_at: None,
        doing: None,
        tokens: None,
        cost_usd: None,
        status: None,
        failure: None,
        session_id: None,
    }
}

/// The beginning of a text.
pub fn beginning(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

pub fn create(dir: PathBuf, view: RunView, key: Option<Key>) -> io::Result<(Kept, Arc<Log>)> {
    files::create_private_dir(&dir)?;
    let log = Arc::new(Log::create(&dir.join(EVENTS))?);
    let kept = Kept {
        id: view.id.clone(),
        dir,
        view: Mutex::new(view),
        live: Mutex::default(),
        log: Mutex::new(Arc::downgrade(&log)),
        key,
    };
    write(&kept)?;
    Ok((kept, log))
}

pub fn write(kept: &Kept) -> io::Result<()> {
    let written = Written { view: kept.view(), key: kept.key.clone() };
    files::replace_own(&kept.dir.join(RUN), &serde_json::to_vec(&written)?)
}

pub fn write_outcome(kept: &Kept, outcome: &Outcome) -> io::Result<()> {
    files::replace_own(&kept.dir.join(OUTCOME), &serde_json::to_vec(outcome)?)
}

/// The last event of a run.
pub fn finished(seq: u64, outcome: Outcome) -> Vec<u8> {
    let kind = EventKind::Finished { outcome: Arc::new(outcome) };
    json_line(&Event { seq, at: Timestamp::now(), source: Source::Derived, kind })
}

pub fn read_all(dir: &Path) -> io::Result<Vec<Kept>> {
    let mut all = Vec::new();
    for name in files::names_in(dir)?.into_iter().filter(|name| is_id(name)) {
        let dir = dir.join(name);
        match read(&dir) {
            Ok(kept) => all.push(kept),
            // One that was killed before it was whole was told to nobody.
            Err(error) => {
                tracing::warn!("{}: {error}; it is removed", dir.display());
                let _gone = std::fs::remove_dir_all(&dir);
            }
        }
    }
    Ok(all)
}

fn read(dir: &Path) -> io::Result<Kept> {
    let Written { view, key } = serde_json::from_slice(&std::fs::read(dir.join(RUN))?)?;
    let is_over = view.state == RunState::Finished;
    let kept = Kept {
        id: view.id.clone(),
        dir: dir.to_owned(),
        view: Mutex::new(view),
        live: Mutex::new(Live::default()),
        log: Mutex::new(Weak::new()),
        key,
    };
    // One that is over may be without its last event, where whoever wrote it was killed just then.
    let has_end = ends_finished(&dir.join(EVENTS))?;
    if !is_over || !has_end {
        interrupted(&kept, has_end)?;
    }
    Ok(kept)
}

/// It was under way when the server was killed; its keeper has ended it.
fn interrupted(kept: &Kept, has_end: bool) -> io::Result<()> {
    let path = kept.dir.join(EVENTS);
    let mut outcome = match files::read_if_there(&kept.dir.join(OUTCOME))? {
        // It was over, and only that had not been said.
        Some(bytes) => serde_json::from_slice(&bytes)?,
        None => killed(&path)?,
    };
    {
        let mut view = kept.locked();
        outcome.session_id = outcome.session_id.take().or(view.session_id.take());
        view.ended(&outcome);
    }
    if !has_end {
        Log::end_old(&path, |seq| vec![finished(seq, outcome.clone())])?;
    }
    write_outcome(kept, &outcome)?;
    write(kept)
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
            match &event.kind {
                // One message more.
                EventKind::Usage(usage) if event.source == Source::Session => {
                    usage.models.iter().for_each(|(model, tokens)| outcome.usage.add(model, tokens));
                }
                // All so far.
                EventKind::Usage(usage) => outcome.usage = usage.clone(),
                _ => {}
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
        file.read_exact_at(&mut tail, start)?;
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
