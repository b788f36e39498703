//! A run's directory.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

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

pub fn finish(kept: &Kept, outcome: &Outcome) -> io::Result<()> {
    files::replace_own(&kept.dir.join(OUTCOME), &serde_json::to_vec(outcome)?)?;
    write(kept)
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
    if !is_over {
        interrupted(&kept)?;
    }
    Ok(kept)
}

/// It was under way when the server was killed; its keeper has ended it.
fn interrupted(kept: &Kept) -> io::Result<()> {
    let failure = Failure::new(FailureKind::Crashed, "the server was killed while the run was under way")
        .with_hint("Start it again; with resume it goes on where its session stopped.".to_owned());
    let mut outcome = match files::read_if_there(&kept.dir.join(OUTCOME))? {
        // It was over, and only that had not been said.
        Some(bytes) => serde_json::from_slice(&bytes)?,
        None => Outcome::not_begun(failure),
    };
    {
        let mut view = kept.locked();
        outcome.session_id = outcome.session_id.take().or(view.session_id.take());
        view.ended(&outcome);
    }
    let path = kept.dir.join(EVENTS);
    if !ends_finished(&path)? {
        Log::end_old(&path, |seq| finished(seq, outcome.clone()))?;
    }
    finish(kept, &outcome)
}

/// Whether the last whole line of the events is their end.
fn ends_finished(path: &Path) -> io::Result<bool> {
    let Ok(file) = files::open(path) else { return Ok(false) };
    let mut last = Vec::new();
    for line in io::BufReader::new(file).split(b'\n') {
        last = line?;
    }
    let event: Result<Value, _> = serde_json::from_slice(&last);
    Ok(event.is_ok_and(|event| event.get("type").is_some_and(|kind| kind == "finished")))
}
