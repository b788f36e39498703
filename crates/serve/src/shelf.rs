//! What is begun here and kept, runs as well as conversations: known by its id and by the key of its request, bounded in number,
//! and forgotten when there are too many or when it is too old.
//!
//! Each has a directory with what is told of it, and with its events.

mod kept;
pub mod routes;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alhena_model::Timestamp;
use alhena_sys::files;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::kept::{Kept, Key, beginning};
use crate::news::News;
use crate::policy::too_many;
use crate::problem::Problem;
use crate::token::{is_id, new_id};

/// What is told of something on a shelf.
pub trait Shelved: Clone + Serialize + DeserializeOwned + Send + 'static {
    /// What one of them is called.
    const NAME: &'static str;

    /// What there is of it beside that, as long as it goes on.
    type Live: Default + Send + Sync;

    /// Its id.
    fn id(&self) -> &str;

    /// When it was over, if it is.
    fn over_at(&self) -> Option<Timestamp>;

    /// What was under way when whoever wrote it was killed is made to be over.
    fn found(kept: &Kept<Self>) -> io::Result<()>;
}

/// How many are kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// So many that are over.
    pub most: usize,
    /// So long after their end.
    pub longest: Duration,
}

/// All of a kind.
pub struct Shelf<V: Shelved> {
    dir: PathBuf,
    all: Mutex<All<V>>,
    /// So many at once.
    most: usize,
    keeping: Keeping,
    pub news: Arc<News>,
    /// Each thread that is at work for one of them has one of these.
    hands: Arc<()>,
}

struct All<V: Shelved> {
    kept: BTreeMap<String, Arc<Kept<V>>>,
    keys: HashMap<String, String>,
    /// Whether nothing begins any more.
    is_last: bool,
}

impl<V: Shelved> All<V> {
    fn add(&mut self, kept: Arc<Kept<V>>) {
        if let Some(key) = &kept.key {
            self.keys.insert(key.name.clone(), kept.id.clone());
        }
        self.kept.insert(kept.id.clone(), kept);
    }

    fn remove(&mut self, kept: &Kept<V>) {
        self.kept.remove(&kept.id);
        if let Some(key) = &kept.key {
            self.keys.remove(&key.name);
        }
    }

    /// The one that this key began.
    fn before(&self, key: &Key) -> Result<Option<Arc<Kept<V>>>, Problem> {
        match self.keys.get(&key.name).and_then(|id| self.kept.get(id)) {
            Some(before) if before.key.as_ref() == Some(key) => Ok(Some(before.clone())),
            Some(_) => Err(Problem::conflict("this Idempotency-Key was given with another request")
                .hint("Give each request a key of its own.")),
            None => Ok(None),
        }
    }
}

/// What came of asking for one.
pub enum Started<V: Shelved> {
    /// A new one.
    New(Arc<Kept<V>>),
    /// The one that was started by the same key before.
    Before(Arc<Kept<V>>),
}

impl<V: Shelved> Shelf<V> {
    /// Those of a directory.
    pub fn open(dir: PathBuf, most: usize, keeping: Keeping, news: Arc<News>) -> io::Result<Self> {
        files::create_private_dir(&dir)?;
        let mut all = All { kept: BTreeMap::new(), keys: HashMap::new(), is_last: false };
        for name in files::names_in(&dir)?.into_iter().filter(|name| is_id(name)) {
            let dir = dir.join(name);
            match Kept::read(dir.clone()) {
                Ok(kept) => all.add(Arc::new(kept)),
                // One that was killed before it was whole was told to nobody.
                Err(error) => {
                    tracing::warn!("{}: {error}; it is removed", dir.display());
                    let _gone = std::fs::remove_dir_all(&dir);
                }
            }
        }
        let shelf = Self { dir, all: Mutex::new(all), most, keeping, news, hands: Arc::default() };
        shelf.prune(Timestamp::now());
        Ok(shelf)
    }

    fn all(&self) -> MutexGuard<'_, All<V>> {
        self.all.lock()
    }

    pub fn get(&self, id: &str) -> Result<Arc<Kept<V>>, Problem> {
        let found = self.all().kept.get(id).cloned();
        found.ok_or_else(|| Problem::not_found(format!("there is no {} {id:?}", V::NAME)))
    }

    /// The newest first.
    pub fn list(&self) -> Vec<Arc<Kept<V>>> {
        self.all().kept.values().rev().cloned().collect()
    }

    /// Those that are not over.
    pub fn going(&self) -> Vec<Arc<Kept<V>>> {
        self.list().into_iter().filter(|kept| !kept.is_over()).collect()
    }

    /// The same, and nothing begins any more.
    pub fn last(&self) -> Vec<Arc<Kept<V>>> {
        self.all().is_last = true;
        self.going()
    }

    /// What a thread holds while it is at work for one of them.
    pub fn hand(&self) -> Arc<()> {
        self.hands.clone()
    }

    /// Whether nothing of any is left to be done, to the last file.
    pub fn are_at_rest(&self) -> bool {
        Arc::strong_count(&self.hands) == 1 && self.going().is_empty()
    }

    /// The one that the same request began before.
    pub fn before(&self, key: Option<&Key>) -> Result<Option<Arc<Kept<V>>>, Problem> {
        key.map_or(Ok(None), |key| self.all().before(key))
    }

    /// Makes room for one that begins, unless there are too many, or its key says that it was begun before.
    pub fn begin(&self, key: Option<Key>, view: impl FnOnce(&str) -> V) -> Result<Started<V>, Problem> {
        let mut all = self.all();
        if let Some(before) = key.as_ref().map(|key| all.before(key)).transpose()?.flatten() {
            return Ok(Started::Before(before));
        }
        if all.is_last {
            return Err(routes::ending());
        }
        if all.kept.values().filter(|kept| !kept.is_over()).count() >= self.most {
            return Err(too_many(&format!("{}s", V::NAME), self.most));
        }
        let id = new_id(V::NAME).map_err(Problem::broken)?;
        let kept = Kept::create(self.dir.join(&id), view(&id), key).map_err(Problem::broken)?;
        let kept = Arc::new(kept);
        all.add(kept.clone());
        drop(all);
        self.news.tell();
        Ok(Started::New(kept))
    }

    /// Something changed that is told.
    pub fn changed(&self, kept: &Kept<V>, change: impl FnOnce(&mut V)) {
        change(&mut kept.locked());
        self.news.tell();
    }

    /// Forgets what is too old by now, or too many.
    pub fn prune(&self, now: Timestamp) {
        let longest = i64::try_from(self.keeping.longest.as_millis()).unwrap_or(i64::MAX);
        let oldest = now.as_millis().saturating_sub(longest);
        let gone: Vec<Arc<Kept<V>>> = {
            let mut all = self.all();
            let over = all.kept.values().rev().filter_map(|kept| Some((kept.over_at()?, kept)));
            let gone: Vec<_> = over
                .enumerate()
                .filter(|(at, (over, _))| *at >= self.keeping.most || over.as_millis() < oldest)
                .map(|(_, (_, kept))| kept.clone())
                .collect();
            gone.iter().for_each(|kept| all.remove(kept));
            gone
        };
        // Nobody waits for a disk to find one of the others.
        for kept in gone {
            let _gone_already = std::fs::remove_dir_all(&kept.dir);
        }
    }
}

#[cfg(test)]
mod tests;
