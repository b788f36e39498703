//! Conversations on warm agents: opened, prompted, asked about, answered, closed.
//!
//! Their events are on disk as those of runs are, with one number through all turns. A conversation ends with the server; what was
//! said in it stays, here and in its session.

mod hold;
mod permission;
mod questions;
pub mod routes;

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Arc;

use alhena_agent::{Canceller, Permission, Talk};
use alhena_batch::meaning::{After, Options};
use alhena_model::{Failure, FailureKind, Timestamp};
use alhena_sys::files;
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::hold::close;
pub use self::permission::{Decision, PermissionView};
use crate::log::{Log, json_line};
use crate::policy::Beginning;
use crate::shelf::routes::Begins;
use crate::shelf::{Kept, Shelf, Shelved};
use crate::state::{App, Shared};

/// What a conversation is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConversationState {
    /// Its agent starts.
    Starting,
    /// It waits for a prompt.
    Idle,
    /// A turn goes on.
    Working,
    /// It waits for somebody to allow or reject something.
    Waiting,
    /// It is over.
    Closed,
}

/// A conversation, as it is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Conversation))]
pub struct ConversationView {
    /// Its id.
    pub id: String,
    /// What it is doing.
    pub state: ConversationState,
    /// Where it works.
    pub dir: String,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What may be done without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// When it was opened.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String, format = DateTime))]
    pub closed_at: Option<Timestamp>,
    /// How many prompts it had.
    pub turns: u64,
    /// The first prompt, or the beginning of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What its agent does, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// Tokens so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What it cost so far, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Why it is closed, where nobody closed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, schema_with = crate::openapi::failure))]
    pub failure: Option<Failure>,
    /// What waits for an answer.
    #[serde(default)]
    pub permissions: Vec<PermissionView>,
}

/// A conversation that is held, or was.
pub type Held = Kept<ConversationView>;

/// All conversations.
pub type Conversations = Shelf<ConversationView>;

impl Shelved for ConversationView {
    const NAME: &'static str = "conversation";
    type Live = Live;

    fn id(&self) -> &str {
        &self.id
    }

    fn over_at(&self) -> Option<Timestamp> {
        (self.state == ConversationState::Closed).then(|| self.closed_at.unwrap_or(self.created_at))
    }

    /// None of them is held any more.
    fn found(held: &Held) -> io::Result<()> {
        if held.is_over() {
            return Ok(());
        }
        let (events, failure) = (held.events(), killed());
        let mut view = held.locked();
        let last = json!({ "type": "closed", "at": Timestamp::now(), "failure": &failure });
        let lines = unanswered(&events)?.into_iter().map(withdrawn).chain([last]);
        Log::end_old(&events, |first| {
            (first..).zip(lines).map(|(seq, event)| numbered(seq, view.turns, event)).collect()
        })?;
        view.closed(Some(failure));
        held.write(&view)
    }
}

impl Begins for ConversationView {
    const WHAT: Beginning = Beginning::Conversation;

    fn shelf(app: &App) -> &Conversations {
        &app.conversations
    }

    fn asked(id: &str, options: &Options) -> Self {
        let text = |name: &str| options.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            id: id.to_owned(),
            state: ConversationState::Starting,
            dir: text("dir").unwrap_or_default(),
            model: text("model"),
            mode: text("approval"),
            created_at: Timestamp::now(),
            closed_at: None,
            turns: 0,
            title: None,
            doing: None,
            tokens: None,
            cost_usd: None,
            session_id: None,
            failure: None,
            permissions: Vec::new(),
        }
    }

    fn perform(app: &Shared, held: &Arc<Held>, options: &Options) {
        hold::open(app, held, options);
    }

    fn not_performed(app: &Shared, held: &Arc<Held>, error: &io::Error) {
        hold::not_opened(app, held, error);
    }
}

impl ConversationView {
    /// What it does when no turn is on.
    fn settle(&mut self) {
        if self.state != ConversationState::Closed {
            self.state = ConversationState::Idle;
            self.doing = None;
        }
    }

    fn closed(&mut self, failure: Option<Failure>) {
        self.state = ConversationState::Closed;
        self.closed_at = Some(Timestamp::now());
        self.doing = None;
        self.failure = failure;
        self.permissions.clear();
    }
}

/// What is there of it while it is open.
#[derive(Default)]
pub struct Live {
    /// The conversation itself, while there is one; held only as long as something is said to it.
    talk: Mutex<Option<Talk>>,
    turn: Mutex<Turning>,
    turn_over: Condvar,
}

/// The turn that goes on, and what it asks.
#[derive(Default)]
struct Turning {
    /// A thread is at it.
    is_on: bool,
    /// Somebody cancelled it before there was anything to cancel.
    is_cancelled: bool,
    /// Its agent has started, or will not any more.
    is_open: bool,
    is_closing: bool,
    canceller: Option<Canceller>,
    asked: u64,
    waiting: BTreeMap<u64, Permission>,
    after: Option<After>,
}

impl Held {
    fn turning(&self) -> MutexGuard<'_, Turning> {
        self.live.turn.lock()
    }

    fn talking(&self) -> MutexGuard<'_, Option<Talk>> {
        self.live.talk.lock()
    }

    /// Adds an event, which gets its number here.
    fn tell(&self, turn: u64, event: Value) {
        if let Err(error) = self.append(|seq| numbered(seq, turn, event)) {
            tracing::error!("an event of the conversation {} could not be kept: {error}", self.id);
        }
    }

    fn keep(&self, view: &ConversationView) {
        if let Err(error) = self.write(view) {
            tracing::error!("the conversation {} could not be kept: {error}", self.id);
        }
    }
}

fn numbered(seq: u64, turn: u64, event: Value) -> Vec<u8> {
    let mut fields = Map::from_iter([("seq".to_owned(), seq.into()), ("turn".to_owned(), turn.into())]);
    if let Value::Object(event) = event {
        fields.extend(event.into_iter().filter(|(name, _)| name != "seq"));
    }
    json_line(&fields)
}

fn killed() -> Failure {
    let message = "the server was killed while the conversation was open";
    Failure::new(FailureKind::Crashed, message)
        .with_hint("Open another; with resume it goes on where the session stopped.".to_owned())
}

fn withdrawn(id: String) -> Value {
    json!({
        "type": "permission_resolved", "at": Timestamp::now(), "id": id, "decision": "withdrawn",
        "reason": "the server was killed",
    })
}

/// The questions that were asked and never answered.
fn unanswered(events: &Path) -> io::Result<Vec<String>> {
    let Ok(file) = files::open(events) else { return Ok(Vec::new()) };
    let mut open: Vec<String> = Vec::new();
    for line in io::BufReader::new(file).split(b'\n') {
        // Of a line that was cut off nothing counts.
        let Ok(event) = serde_json::from_slice::<Value>(&line?) else { continue };
        let id = |at: &str| event.pointer(at).and_then(Value::as_str).map(str::to_owned);
        match event.get("type").and_then(Value::as_str) {
            Some("permission") => open.extend(id("/permission/id")),
            Some("permission_resolved") => open.retain(|open| id("/id").as_ref() != Some(open)),
            _ => {}
        }
    }
    Ok(open)
}

#[cfg(test)]
mod tests;
