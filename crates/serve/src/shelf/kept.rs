//! One thing on a shelf: its directory, what is told of it, and its events.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use alhena_model::Timestamp;
use alhena_sys::files;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use super::Shelved;
use crate::log::Log;

const EVENTS: &str = "events.jsonl";

/// By what it was started: the same again is the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// What the client calls it.
    pub name: String,
    /// A mark of all that was asked.
    pub asked: String,
}

/// Something that is kept.
pub struct Kept<V: Shelved> {
    pub id: String,
    pub dir: PathBuf,
    pub(super) key: Option<Key>,
    view: Mutex<V>,
    events: Mutex<Events>,
    pub live: V::Live,
}

/// The log of its events.
enum Events {
    /// Held as long as it grows.
    Growing(Arc<Log>),
    /// There as long as somebody reads it.
    Ended(Weak<Log>),
}

/// What the file holds that is named after the kind.
#[derive(Serialize, Deserialize)]
struct Written<V> {
    #[serde(flatten)]
    view: V,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
}

impl<V: Shelved> Kept<V> {
    fn new(dir: PathBuf, view: V, key: Option<Key>, events: Events) -> Self {
        Self {
            id: view.id().to_owned(),
            dir,
            key,
            view: Mutex::new(view),
            events: Mutex::new(events),
            live: V::Live::default(),
        }
    }

    pub(super) fn create(dir: PathBuf, view: V, key: Option<Key>) -> io::Result<Self> {
        files::create_private_dir(&dir)?;
        let log = Log::create(&dir.join(EVENTS))?;
        let kept = Self::new(dir, view, key, Events::Growing(Arc::new(log)));
        kept.write(&kept.locked())?;
        Ok(kept)
    }

    pub(super) fn read(dir: PathBuf) -> io::Result<Self> {
        let Written { view, key } = serde_json::from_slice(&std::fs::read(dir.join(file::<V>()))?)?;
        let kept = Self::new(dir, view, key, Events::Ended(Weak::new()));
        V::found(&kept)?;
        Ok(kept)
    }

    /// What is told of it.
    pub fn view(&self) -> V {
        self.locked().clone()
    }

    pub fn locked(&self) -> MutexGuard<'_, V> {
        self.view.lock()
    }

    /// When it was over, if it is.
    pub fn over_at(&self) -> Option<Timestamp> {
        self.locked().over_at()
    }

    pub fn is_over(&self) -> bool {
        self.over_at().is_some()
    }

    /// Puts what is told of it on disk.
    pub fn write(&self, view: &V) -> io::Result<()> {
        let written = Written { view: view.clone(), key: self.key.clone() };
        files::replace_own(&self.dir.join(file::<V>()), &serde_json::to_vec(&written)?)
    }

    /// Where its events are.
    pub fn events(&self) -> PathBuf {
        self.dir.join(EVENTS)
    }

    fn log_now(&self) -> MutexGuard<'_, Events> {
        self.events.lock()
    }

    /// Its events, to be read.
    pub fn log(&self) -> io::Result<Arc<Log>> {
        let mut events = self.log_now();
        let known = match &*events {
            Events::Growing(log) => Some(log.clone()),
            Events::Ended(log) => log.upgrade(),
        };
        if let Some(log) = known {
            return Ok(log);
        }
        let opened = Arc::new(Log::of_old(&self.events())?);
        *events = Events::Ended(Arc::downgrade(&opened));
        Ok(opened)
    }

    /// Adds the event that `line` makes of its number; nothing behind the end.
    pub fn append(&self, line: impl FnOnce(u64) -> Vec<u8>) -> io::Result<()> {
        let growing = match &*self.log_now() {
            Events::Growing(log) => log.clone(),
            Events::Ended(_) => return Ok(()),
        };
        growing.append(line)
    }

    /// No event comes any more.
    pub fn end_events(&self) {
        let mut events = self.log_now();
        if let Events::Growing(log) = &*events {
            log.end();
            let ended = Arc::downgrade(log);
            *events = Events::Ended(ended);
        }
    }
}

fn file<V: Shelved>() -> String {
    format!("{}.json", V::NAME)
}

/// The beginning of a text.
pub fn beginning(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
