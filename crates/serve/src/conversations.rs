//! Conversations on warm agents: opened, prompted, asked about, answered, closed.
//!
//! Their events are on disk as those of runs are, with one number through all turns. A conversation ends with the server; what was
//! said in it stays, here and in its session.

mod hold;
mod permission;
pub mod routes;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use alhena_agent::{Canceller, Permission, Talk};
use alhena_batch::meaning::{After, Options};
use alhena_model::{Failure, FailureKind, Timestamp};
use alhena_sys::files;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use self::hold::close;
pub use self::permission::{Decision, PermissionView};
use crate::log::{Log, json_line};
use crate::news::News;
use crate::policy::too_many;
use crate::problem::Problem;
use crate::runs::{Keeping, Key};
use crate::token::{is_id, new_id};

const EVENTS: &str = "events.jsonl";
const WRITTEN: &str = "conversation.json";

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
pub struct Held {
    pub id: String,
    dir: PathBuf,
    key: Option<Key>,
    view: Mutex<ConversationView>,
    log: Mutex<Weak<Log>>,
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
    /// A thread starts its agent.
    is_opening: bool,
    is_closing: bool,
    canceller: Option<Canceller>,
    asked: u64,
    waiting: BTreeMap<u64, Permission>,
    after: Option<After>,
    /// Kept here while it grows.
    log: Option<Arc<Log>>,
}

impl Held {
    pub fn view(&self) -> ConversationView {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, ConversationView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turning(&self) -> MutexGuard<'_, Turning> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn talking(&self) -> MutexGuard<'_, Option<Talk>> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_closed(&self) -> bool {
        self.locked().state == ConversationState::Closed
    }

    pub fn log(&self) -> io::Result<Arc<Log>> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = log.upgrade() {
            return Ok(log);
        }
        let opened = Arc::new(Log::of_old(&self.dir.join(EVENTS))?);
        *log = Arc::downgrade(&opened);
        Ok(opened)
    }

    /// Adds an event, which gets its number here.
    fn tell(&self, turn: u64, event: Value) {
        let Some(log) = self.turning().log.clone() else { return };
        self.append(&log, turn, event);
    }

    fn append(&self, log: &Log, turn: u64, event: Value) {
        if let Err(error) = log.append(|seq| numbered(seq, turn, event)) {
            tracing::error!("an event of the conversation {} could not be kept: {error}", self.id);
        }
    }

    fn write(&self) {
        let written = Written {
            view: ConversationView { permissions: Vec::new(), ..self.view() },
            key: self.key.clone(),
        };
        let bytes = serde_json::to_vec(&written).map_err(io::Error::other);
        if let Err(error) = bytes.and_then(|bytes| files::replace_own(&self.dir.join(WRITTEN), &bytes)) {
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

/// What `conversation.json` holds.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(flatten)]
    view: ConversationView,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
}

/// All conversations.
pub struct Conversations {
    dir: PathBuf,
    all: Mutex<All>,
    most: usize,
    keeping: Keeping,
    pub news: Arc<News>,
}

#[derive(Default)]
struct All {
    held: BTreeMap<String, Arc<Held>>,
    keys: HashMap<String, String>,
}

impl Conversations {
    /// Those of a directory; none of them is held any more.
    pub fn open(dir: PathBuf, most: usize, keeping: Keeping, news: Arc<News>) -> io::Result<Self> {
        files::create_private_dir(&dir)?;
        let mut all = All::default();
        for name in files::names_in(&dir)?.into_iter().filter(|name| is_id(name)) {
            let dir = dir.join(name);
            match read(&dir) {
                Ok(held) => {
                    if let Some(key) = &held.key {
                        all.keys.insert(key.name.clone(), held.id.clone());
                    }
                    all.held.insert(held.id.clone(), Arc::new(held));
                }
                Err(error) => {
                    tracing::warn!("{}: {error}; it is removed", dir.display());
                    let _gone = std::fs::remove_dir_all(&dir);
                }
            }
        }
        let conversations = Self { dir, all: Mutex::new(all), most, keeping, news };
        conversations.prune();
        Ok(conversations)
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, id: &str) -> Result<Arc<Held>, Problem> {
        let found = self.all().held.get(id).cloned();
        found.ok_or_else(|| Problem::not_found(format!("there is no conversation {id:?}")))
    }

    /// The newest first.
    pub fn list(&self) -> Vec<Arc<Held>> {
        self.all().held.values().rev().cloned().collect()
    }

    pub fn going(&self) -> Vec<Arc<Held>> {
        self.list().into_iter().filter(|held| !held.is_closed()).collect()
    }

    /// Makes room for a new one; the second value is whether it is new.
    fn begin(&self, options: &Options, key: Option<Key>) -> Result<(Arc<Held>, bool), Problem> {
        let mut all = self.all();
        if let Some(key) = &key
            && let Some(before) = all.keys.get(&key.name).and_then(|id| all.held.get(id))
        {
            return match before.key.as_ref() == Some(key) {
                true => Ok((before.clone(), false)),
                false => Err(Problem::conflict("this Idempotency-Key was given with another request")
                    .hint("Give each request a key of its own.")),
            };
        }
        if all.held.values().filter(|held| !held.is_closed()).count() >= self.most {
            return Err(too_many("conversations", self.most));
        }
        let held = Arc::new(self.create(options, key).map_err(Problem::broken)?);
        if let Some(key) = &held.key {
            all.keys.insert(key.name.clone(), held.id.clone());
        }
        all.held.insert(held.id.clone(), held.clone());
        drop(all);
        self.news.tell();
        Ok((held, true))
    }

    fn create(&self, options: &Options, key: Option<Key>) -> io::Result<Held> {
        let id = new_id('c')?;
        let dir = self.dir.join(&id);
        files::create_private_dir(&dir)?;
        let log = Arc::new(Log::create(&dir.join(EVENTS))?);
        let text = |name: &str| options.get(name).and_then(Value::as_str).map(str::to_owned);
        let view = ConversationView {
            id: id.clone(),
            state: ConversationState::Starting,
            dir: text("dir").unwrap_or_default(),
            model: text("model"),
            mode: text("approval"),
            created_at: Timestamp::now(),
            turns: 0,
            title: None,
            doing: None,
            tokens: None,
            cost_usd: None,
            session_id: None,
            failure: None,
            permissions: Vec::new(),
        };
        let held = Held::new(dir, view, key);
        *held.log.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&log);
        {
            let mut turning = held.turning();
            turning.log = Some(log);
            turning.is_opening = true;
        }
        held.write();
        Ok(held)
    }

    fn changed(&self, held: &Held, change: impl FnOnce(&mut ConversationView)) {
        change(&mut held.locked());
        self.news.tell();
    }

    /// Forgets what is too old, or too many.
    fn prune(&self) {
        let oldest = Timestamp::now().as_millis()
            - i64::try_from(self.keeping.longest.as_millis()).unwrap_or(i64::MAX);
        let mut all = self.all();
        let closed: Vec<Arc<Held>> =
            all.held.values().rev().filter(|held| held.is_closed()).cloned().collect();
        for (at, held) in closed.into_iter().enumerate() {
            if at >= self.keeping.most || held.view().created_at.as_millis() < oldest {
                all.held.remove(&held.id);
                if let Some(key) = &held.key {
                    all.keys.remove(&key.name);
                }
                let _gone_already = std::fs::remove_dir_all(&held.dir);
            }
        }
    }
}

impl Held {
    fn new(dir: PathBuf, view: ConversationView, key: Option<Key>) -> Self {
        Self {
            id: view.id.clone(),
            dir,
            key,
            view: Mutex::new(view),
            log: Mutex::new(Weak::new()),
            talk: Mutex::new(None),
            turn: Mutex::default(),
            turn_over: Condvar::new(),
        }
    }
}

fn read(dir: &Path) -> io::Result<Held> {
    let Written { mut view, key } = serde_json::from_slice(&std::fs::read(dir.join(WRITTEN))?)?;
    let was_open = view.state != ConversationState::Closed;
    view.state = ConversationState::Closed;
    view.doing = None;
    let turns = view.turns;
    if was_open {
        let failure = killed();
        let events = dir.join(EVENTS);
        let open = unanswered(&events)?;
        let last = json!({ "type": "closed", "at": Timestamp::now(), "failure": &failure });
        let lines = open.into_iter().map(withdrawn).chain([last]);
        Log::end_old(&events, |first| {
            (first..).zip(lines).map(|(seq, event)| numbered(seq, turns, event)).collect()
        })?;
        view.failure = Some(failure);
    }
    let held = Held::new(dir.to_owned(), view, key);
    if was_open {
        held.write();
    }
    Ok(held)
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
