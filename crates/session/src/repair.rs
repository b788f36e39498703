//! Mending what Gemini CLI does to its own sessions.
//!
//! | What it does (0.44 to 0.61.0) | What helps |
//! |---|---|
//! | a cancelled run, a failed call and a resume in the same minute write a checkpoint without the messages so far, or without their tool calls, thoughts and tokens | a checkpoint with all of them, from the records that still stand in the file |
//! | a resume in another minute leaves a stub; the next start of any other session takes the stub for rubbish and deletes all files with its short id, the session among them | the stub is moved away |
//! | a start deletes sessions without a prompt, and the next record brings the file back without its header; it cannot be loaded then | a header |
//!
//! First it says what it would do. Files are only appended to, as the CLI does itself, or moved away whole, and a copy of each
//! is kept. A session that may be in use is left alone.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use alhena_model::{Hint, Timestamp};
use alhena_sys::files;
use serde_json::{Value, json};

use crate::file::{Format, SessionFile, Stamp};
use crate::in_use::{self, Use};
use crate::load::Transcript;
use crate::names;
use crate::project::{names_in, project_hash};
use crate::store::{Session, SessionState};
use crate::survey::{self, Ending, Survey};

/// What would be done to a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The session's id.
    pub session: String,
    /// What is wrong with it.
    pub state: SessionState,
    /// What would be done, in order.
    pub steps: Vec<Step>,
    file: SessionFile,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The file gets a checkpoint with all its messages.
    Restore {
        /// The file.
        path: PathBuf,
        /// How many messages come back, or get their details back.
        messages: u64,
    },
    /// The file gets a header.
    AddHeader {
        /// The file.
        path: PathBuf,
        /// The id that it gets.
        id: String,
    },
    /// The file is moved away.
    MoveAway {
        /// The file.
        path: PathBuf,
    },
}

impl Step {
    /// The file that it is about.
    pub fn path(&self) -> &Path {
        match self {
            Step::Restore { path, .. } | Step::AddHeader { path, .. } | Step::MoveAway { path } => path,
        }
    }
}

/// Why a session was left alone.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotRepaired {
    /// Somebody uses it.
    InUse(Use),
    /// It changed while it was looked at.
    Changed,
    /// What would have been written is not better than what is there.
    NoBetter,
    /// A file could not be read or written.
    Io(io::Error),
}

impl From<io::Error> for NotRepaired {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::fmt::Display for NotRepaired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::InUse(Use::Running(process)) => {
                write!(f, "a Gemini CLI runs in its folder (process {process})")
            }
            Self::InUse(Use::Recent) => f.write_str("it was written to within the last minute"),
            Self::InUse(_) => f.write_str("this system does not tell whether a Gemini CLI uses it"),
            Self::Changed => f.write_str("it changed meanwhile"),
            Self::NoBetter => f.write_str("nothing in its files is better than what is there"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotRepaired {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl Hint for NotRepaired {}

/// Whether to go on where nobody can tell if the session is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caution {
    /// Leave it alone.
    Full,
    /// Go on, unless it is known to be in use.
    WhereUnknown,
}

/// What would help a session; `None` when nothing is wrong with it.
pub fn plan(session: &Session) -> Option<Plan> {
    // Before 0.39 there were no checkpoints and no stubs.
    if session.file.format == Format::Json {
        return None;
    }
    let mut steps = Vec::new();
    let path = session.file.path.clone();
    if !session.survey.header && session.survey.messages > 0 {
        steps.push(Step::AddHeader { path: path.clone(), id: whole_id(session) });
    }
    if session.survey.lost > 0 {
        steps.push(Step::Restore { path, messages: session.survey.lost });
    }
    // A stub is a danger only to a session that is worth something.
    if session.survey.ending != Ending::Empty || session.survey.lost > 0 {
        steps.extend(session.stubs().map(|stub| Step::MoveAway { path: stub.path.clone() }));
    }
    let (id, file) = (session.id.clone(), session.file.clone());
    (!steps.is_empty()).then(|| Plan { session: id, state: session.state(), steps, file })
}

/// Carries a plan out. Every file that is touched is first copied into `backups`, which is told.
pub fn apply(plan: &Plan, backups: &Path, caution: Caution) -> Result<Vec<PathBuf>, NotRepaired> {
    match in_use::of(&plan.file) {
        Use::Free => {}
        Use::Unknown if caution == Caution::WhereUnknown => {}
        other => return Err(NotRepaired::InUse(other)),
    }
    if Stamp::of(&fs::metadata(&plan.file.path)?) != plan.file.stamp {
        return Err(NotRepaired::Changed);
    }
    let mut kept = Vec::new();
    if let Some(addition) = addition(plan)? {
        kept.push(back_up(&plan.file.path, backups)?);
        append(&plan.file, &addition)?;
    }
    for step in &plan.steps {
        if let Step::MoveAway { path } = step {
            kept.push(back_up(path, backups)?);
            fs::remove_file(path)?;
        }
    }
    Ok(kept)
}

/// What has to be appended to the session's file, if anything.
fn addition(plan: &Plan) -> Result<Option<Vec<u8>>, NotRepaired> {
    let transcript = Transcript::read(&plan.file.path)?;
    let records = transcript.records();
    let mut text = String::new();
    for step in &plan.steps {
        match step {
            Step::AddHeader { id, .. } => text.push_str(&format!("{}\n", header(plan, id, &records))),
            Step::Restore { .. } => text.push_str(&checkpoint(&records)),
            Step::MoveAway { .. } => {}
        }
    }
    if text.is_empty() {
        return Ok(None);
    }
    let text = on_a_line_of_its_own(&transcript, text);
    match changed(&transcript, &text) {
        Some(after) if after.lost == 0 => Ok(Some(text.into_bytes())),
        _ => Err(NotRepaired::NoBetter),
    }
}

/// A checkpoint with these records as they stand: the line is put together from texts, because a value can change on the way.
fn checkpoint(records: &[&str]) -> String {
    let (messages, now) = (records.join(","), Timestamp::now());
    format!("{{\"$set\":{{\"messages\":[{messages}],\"lastUpdated\":\"{now}\"}}}}\n")
}

/// The last line of a file may be cut off.
fn on_a_line_of_its_own(transcript: &Transcript, text: String) -> String {
    if transcript.bytes().ends_with(b"\n") { text } else { format!("\n{text}") }
}

/// What a session is with an addition, if that takes nothing away from it.
fn changed(transcript: &Transcript, addition: &str) -> Option<Survey> {
    let before = survey::of_bytes(transcript.bytes());
    let after = survey::of_bytes(&[transcript.bytes(), addition.as_bytes()].concat());
    let better = after.header && after.messages >= before.messages && after.spent == before.spent;
    better.then_some(after)
}

/// Gives a session back what Gemini CLI took from it when it was stopped: from 0.44 on, ^C in a turn ends with a checkpoint
/// that rolls the conversation back to the state before the turn's prompt, tool calls and all (0.61.0).
///
/// Only a rollback at the file's end counts, and only one that stands behind the first `since` bytes. What a person took back
/// (`$rewindTo`), a summary in the place of old messages and a rollback that the conversation went on after stay as they are.
/// The CLI must have ended; the file is appended to. Whether there was something to bring back.
pub fn undo_stop(path: &Path, since: u64) -> io::Result<bool> {
    let transcript = Transcript::read(path)?;
    let Some(offset) = survey::fold_lines(transcript.bytes()).rolled_back().filter(|at| *at >= since) else {
        return Ok(false);
    };
    let before = transcript.records_before(offset);
    let text = on_a_line_of_its_own(&transcript, checkpoint(&before));
    if changed(&transcript, &text).is_none() {
        return Ok(false);
    }
    let mut file = File::options().append(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    Ok(true)
}

fn header(plan: &Plan, id: &str, records: &[&str]) -> Value {
    let time = |record: Option<&&str>| {
        alhena_wire::from_slice::<Value>(record?.as_bytes()).ok()?.get("timestamp").cloned()
    };
    let project = plan.file.project.root.as_deref();
    let now = || json!(Timestamp::from_millis(plan.file.stamp.modified_ms()));
    json!({
        "sessionId": id,
        "projectHash": project.map_or_else(|| plan.file.project.name.clone(), project_hash),
        "startTime": time(records.first()).unwrap_or_else(now),
        "lastUpdated": time(records.last()).unwrap_or_else(now),
        "kind": "main",
    })
}

fn back_up(path: &Path, backups: &Path) -> io::Result<PathBuf> {
    files::create_private_dir(backups)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let now = Timestamp::now().to_string().replace(':', "-");
    let mut copy = tempfile::Builder::new()
        .prefix(&format!("{now}-"))
        .suffix(&format!("-{name}"))
        .tempfile_in(backups)?;
    io::copy(&mut File::open(path)?, &mut copy)?;
    copy.as_file().sync_all()?;
    copy.keep().map(|(_, path)| path).map_err(|error| error.error)
}

/// Appends with one write, as the CLI does, unless the file has changed since it was looked at.
fn append(file: &SessionFile, addition: &[u8]) -> Result<(), NotRepaired> {
    let mut open = File::options().append(true).open(&file.path)?;
    if Stamp::of(&open.metadata()?) != file.stamp {
        return Err(NotRepaired::Changed);
    }
    open.write_all(addition)?;
    open.sync_all()?;
    Ok(())
}

/// The id of a session whose file does not say it: its name has eight characters. Other traces have all of it; otherwise
/// the rest is made from the file's name, so that it is always the same.
fn whole_id(session: &Session) -> String {
    let start = &session.file.id_start;
    let project = session.file.project.chats.parent().unwrap_or(&session.file.project.chats);
    let traces = [
        session.file.project.chats.clone(),
        project.join("logs"),
        project.join("tool-outputs"),
        project.to_path_buf(),
    ];
    for dir in traces {
        for name in names_in(&dir).unwrap_or_default() {
            let Some(name) = name.to_str() else { continue };
            let id = name.strip_prefix(names::PREFIX).unwrap_or(name);
            let id = names::stem(id).map_or(id, |(stem, _)| stem);
            if id.len() == 36 && id.starts_with(start.as_str()) {
                return id.to_owned();
            }
        }
    }
    let made = project_hash(&session.file.path);
    let part = |from: usize, to: usize| made.get(from..to).unwrap_or("0000").to_owned();
    format!("{start}-{}-4{}-8{}-{}", part(0, 4), part(4, 7), part(7, 10), part(10, 22))
}

#[cfg(test)]
mod tests;
