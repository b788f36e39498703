//! Runs: started, followed on disk, stopped, and kept until there are too many or they are too old.
//!
//! | File of a run | |
//! |---|---|
//! | `run.json` | what is told of it, with the key by which it was started |
//! | `events.jsonl` | its events |
//! | `outcome.json` | how it ended; there before the last event is |
//! | `recording/` | everything that the CLI wrote |

mod disk;
mod perform;
pub mod routes;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use alhena_agent::Stopper;
use alhena_batch::meaning::Options;
use alhena_model::{Failure, Outcome, Status, Timestamp};
use serde::{Deserialize, Serialize};

use crate::log::Log;
use crate::news::News;
use crate::policy::too_many;
use crate::problem::Problem;
use crate::token::new_id;

pub use self::disk::beginning;
pub use self::perform::boxed;

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It is being prepared.
    Queued,
    /// Its agent works.
    Running,
    /// It is over.
    Finished,
}

/// A run, as it is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Run))]
pub struct RunView {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub state: RunState,
    /// What it was asked, or the beginning of that; the event `prompt` has all of it.
    pub prompt: String,
    /// Where it works.
    pub dir: String,
    /// The model that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it may do without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// When it was asked for.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When its agent was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String, format = DateTime))]
    pub started_at: Option<Timestamp>,
    /// When it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String, format = DateTime))]
    pub finished_at: Option<Timestamp>,
    /// What it does, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<String>,
    /// Tokens so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What it cost so far, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, value_type = String))]
    pub status: Option<Status>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(required = false, schema_with = crate::openapi::failure))]
    pub failure: Option<Failure>,
    /// The session that it made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl RunView {
    fn ended(&mut self, outcome: &Outcome) {
        self.state = RunState::Finished;
        self.finished_at = Some(Timestamp::now());
        self.doing = None;
        self.status = Some(outcome.status);
        self.failure.clone_from(&outcome.failure);
        self.session_id = outcome.session_id.clone().or(self.session_id.take());
        self.tokens = Some(outcome.usage.all.total).filter(|tokens| *tokens > 0).or(self.tokens);
        self.cost_usd = outcome.cost_usd.or(self.cost_usd);
    }
}

/// A run that is kept.
pub struct Kept {
    pub id: String,
    dir: PathBuf,
    view: Mutex<RunView>,
    live: Mutex<Live>,
    /// The log, as long as somebody has it.
    log: Mutex<Weak<Log>>,
    key: Option<Key>,
}

/// By what it was started: the same again is the same run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// What the client calls it.
    pub name: String,
    /// A mark of all that was asked.
    pub asked: String,
}

/// What can stop it.
#[derive(Default)]
struct Live {
    stopper: Option<Stopper>,
    /// How often it was asked to stop.
    asked: u32,
}

impl Live {
    fn stop(&self) {
        match (&self.stopper, self.asked) {
            (Some(stopper), 1) => stopper.stop(),
            (Some(stopper), 2..) => stopper.stop_at_once(),
            _ => {}
        }
    }
}

impl Kept {
    pub fn view(&self) -> RunView {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, RunView> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops it: gently, and if asked again at once.
    pub fn stop(&self) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.asked += 1;
        live.stop();
    }

    fn stops_by(&self, stopper: Stopper) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.stopper = Some(stopper);
        live.stop();
    }

    fn was_asked_to_stop(&self) -> bool {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).asked > 0
    }

    pub fn is_over(&self) -> bool {
        self.locked().state == RunState::Finished
    }

    /// Its events.
    pub fn log(&self) -> std::io::Result<Arc<Log>> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = log.upgrade() {
            return Ok(log);
        }
        let opened = Arc::new(Log::of_old(&self.dir.join(disk::EVENTS))?);
        *log = Arc::downgrade(&opened);
        Ok(opened)
    }
}

/// How many are kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// So many that are over.
    pub most: usize,
    /// So long.
    pub longest: std::time::Duration,
}

/// All runs.
pub struct Runs {
    dir: PathBuf,
    all: Mutex<All>,
    most: usize,
    keeping: Keeping,
    news: Arc<News>,
    /// Each thread that performs a run has one of these.
    hands: Arc<()>,
}

#[derive(Default)]
struct All {
    runs: BTreeMap<String, Arc<Kept>>,
    keys: HashMap<String, String>,
}

/// What came of asking for a run.
pub enum Started {
    /// A new one, with its log, to be performed.
    New(Arc<Kept>, Arc<Log>),
    /// The one that was started by the same key before.
    Before(Arc<Kept>),
}

/// So much of a prompt is told.
const LONGEST_PROMPT: usize = 4000;

impl Runs {
    /// Those of a directory; what was under way when whoever wrote it was killed is told to be over.
    pub fn open(dir: PathBuf, most: usize, keeping: Keeping, news: Arc<News>) -> std::io::Result<Self> {
        alhena_sys::files::create_private_dir(&dir)?;
        let mut all = All::default();
        for kept in disk::read_all(&dir)? {
            if let Some(key) = &kept.key {
                all.keys.insert(key.name.clone(), kept.id.clone());
            }
            all.runs.insert(kept.id.clone(), Arc::new(kept));
        }
        let runs = Self { dir, all: Mutex::new(all), most, keeping, news, hands: Arc::default() };
        runs.prune();
        Ok(runs)
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, id: &str) -> Result<Arc<Kept>, Problem> {
        let found = self.all().runs.get(id).cloned();
        found.ok_or_else(|| Problem::not_found(format!("there is no run {id:?}")))
    }

    /// The newest first.
    pub fn list(&self) -> Vec<Arc<Kept>> {
        self.all().runs.values().rev().cloned().collect()
    }

    /// What a thread holds while it performs a run.
    fn hand(&self) -> Arc<()> {
        self.hands.clone()
    }

    /// Whether nothing of any run is left to be done, to the last file.
    pub fn are_at_rest(&self) -> bool {
        Arc::strong_count(&self.hands) == 1 && self.going().is_empty()
    }

    /// Those that are not over.
    pub fn going(&self) -> Vec<Arc<Kept>> {
        self.list().into_iter().filter(|kept| !kept.is_over()).collect()
    }

    /// Makes room for a run that begins, unless there are too many, or its key says that it was begun before.
    pub fn begin(&self, options: &Options, key: Option<Key>) -> Result<Started, Problem> {
        let mut all = self.all();
        if let Some(key) = &key
            && let Some(before) = all.keys.get(&key.name).and_then(|id| all.runs.get(id))
        {
            return match before.key.as_ref() == Some(key) {
                true => Ok(Started::Before(before.clone())),
                false => Err(Problem::conflict("this Idempotency-Key was given with another request")
                    .hint("Give each request a key of its own.")),
            };
        }
        if all.runs.values().filter(|kept| !kept.is_over()).count() >= self.most {
            return Err(too_many("runs", self.most));
        }
        let id = new_id('r').map_err(Problem::broken)?;
        let view = disk::view_of(&id, options, LONGEST_PROMPT);
        let dir = self.dir.join(&id);
        let (kept, log) = disk::create(dir, view, key).map_err(Problem::broken)?;
        if let Some(key) = &kept.key {
            all.keys.insert(key.name.clone(), id.clone());
        }
        let kept = Arc::new(kept);
        all.runs.insert(id, kept.clone());
        drop(all);
        self.news.tell();
        Ok(Started::New(kept, log))
    }

    /// Something changed that is told.
    fn changed(&self, kept: &Kept, change: impl FnOnce(&mut RunView)) {
        change(&mut kept.locked());
        self.news.tell();
    }

    /// It is over: first on disk, then for whoever asks, so that nobody is told of an end that is not there yet.
    fn finish(&self, kept: &Kept, log: &Log, outcome: &Outcome) {
        let unkept = |error| tracing::error!("the end of the run {} could not be kept: {error}", kept.id);
        disk::write_outcome(kept, outcome).unwrap_or_else(unkept);
        {
            // Whoever sees the last event and asks for the run waits here until that says so too.
            let mut view = kept.locked();
            log.append(|seq| disk::finished(seq, outcome.clone())).unwrap_or_else(unkept);
            view.ended(outcome);
        }
        disk::write(kept).unwrap_or_else(unkept);
        log.end();
        self.prune();
        self.news.tell();
    }

    /// Forgets what is too old, or too many.
    fn prune(&self) {
        let gone: Vec<Arc<Kept>> = {
            let mut all = self.all();
            let oldest = Timestamp::now().as_millis()
                - i64::try_from(self.keeping.longest.as_millis()).unwrap_or(i64::MAX);
            let over: Vec<Arc<Kept>> =
                all.runs.values().rev().filter(|kept| kept.is_over()).cloned().collect();
            let gone: Vec<Arc<Kept>> = over
                .into_iter()
                .enumerate()
                .filter(|(at, kept)| *at >= self.keeping.most || kept.view().created_at.as_millis() < oldest)
                .map(|(_, kept)| kept)
                .collect();
            for kept in &gone {
                all.runs.remove(&kept.id);
                if let Some(key) = &kept.key {
                    all.keys.remove(&key.name);
                }
            }
            gone
        };
        for kept in gone {
            let _gone_already = std::fs::remove_dir_all(&kept.dir);
        }
    }
}

#[cfg(test)]
mod tests;
