//! How far a batch is, as data: what a terminal shows, a summary counts and a server tells is made of it.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use alhena_model::{FailureKind, Status};
use serde::{Deserialize, Serialize};

use crate::result::Spent;

/// Over so many jobs, and so long, the rate is taken.
const RECENT: usize = 200;
const LATELY: Duration = Duration::from_secs(300);

/// A picture of a batch at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// How many jobs there are; none while more may come.
    pub jobs: Option<u64>,
    /// How many are known.
    pub known: u64,
    /// How many have succeeded, earlier starts included.
    pub succeeded: u64,
    /// How many have not, earlier starts included.
    pub failed: u64,
    /// How many of both were done by earlier starts.
    pub before: u64,
    /// How many lines were no jobs.
    pub refused: u64,
    /// How many attempts were followed by another.
    pub repeated: u64,
    /// Those that run, in the order of their start.
    pub running: Vec<Running>,
    /// What was used, earlier starts and what runs included.
    pub spent: Spent,
    /// How many jobs are done in a minute.
    pub per_minute: Option<f64>,
    /// How long it will take, if it goes on so.
    pub left_ms: Option<u64>,
    /// How long nobody may begin, because of the API's rate limit.
    pub held_ms: Option<u64>,
    /// How long it has taken since this start.
    pub elapsed_ms: u64,
    /// Whether it goes on.
    pub phase: Phase,
}

/// Whether jobs begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// They do.
    #[default]
    Going,
    /// None begins any more; those that run may finish.
    Draining,
    /// Those that run are being stopped.
    Stopping,
}

/// A job that runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    /// Its id.
    pub id: String,
    /// Which attempt it is.
    pub attempt: u32,
    /// For how long.
    pub for_ms: u64,
    /// What it does, in a few words.
    pub doing: String,
    /// What this attempt has used so far.
    pub spent: Spent,
}

/// Something that happened in a batch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum News {
    /// An attempt began.
    Began {
        /// The job.
        id: String,
        /// Which attempt.
        attempt: u32,
    },
    /// A job is done, and its result is on the disk.
    Done {
        /// The job.
        id: String,
        /// Which attempt.
        attempt: u32,
        /// How it ended.
        status: Status,
        /// Why it failed.
        kind: Option<FailureKind>,
        /// The same in words.
        message: String,
    },
    /// An attempt failed, and there will be another.
    Repeats {
        /// The job.
        id: String,
        /// Which attempt failed.
        attempt: u32,
        /// Why.
        message: String,
    },
    /// Nobody begins for so long: the API's rate limit is reached.
    Held {
        /// How long.
        ms: u64,
    },
    /// A line was no job.
    Refused {
        /// Which.
        line: u64,
        /// What was wrong with it.
        message: String,
        /// What to do.
        hint: String,
    },
    /// No more jobs begin.
    Drains {
        /// Why, in words.
        why: String,
    },
    /// Nothing else; time has passed.
    Tick,
}

/// Who wants to know.
pub trait Observer {
    /// Something happened.
    fn news(&mut self, news: &News, board: &Board);
}

impl<F: FnMut(&News, &Board)> Observer for F {
    fn news(&mut self, news: &News, board: &Board) {
        self(news, board);
    }
}

/// What is known of a batch while it runs.
#[derive(Debug)]
pub struct Board {
    pub(crate) started: Instant,
    pub(crate) jobs: Option<u64>,
    pub(crate) known: u64,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) before: u64,
    pub(crate) refused: u64,
    pub(crate) repeated: u64,
    /// What was used by all that is over.
    pub(crate) spent: Spent,
    pub(crate) running: BTreeMap<usize, AtWork>,
    pub(crate) held_until: Option<Instant>,
    pub(crate) phase: Phase,
    recent: VecDeque<Instant>,
}

/// A job that runs.
#[derive(Debug)]
pub(crate) struct AtWork {
    pub id: String,
    pub attempt: u32,
    pub since: Instant,
    pub doing: String,
    pub spent: Spent,
}

impl Board {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            jobs: None,
            known: 0,
            succeeded: 0,
            failed: 0,
            before: 0,
            refused: 0,
            repeated: 0,
            spent: Spent::default(),
            running: BTreeMap::new(),
            held_until: None,
            phase: Phase::Going,
            recent: VecDeque::new(),
        }
    }

    pub(crate) fn count(&mut self, status: Status) {
        match status {
            Status::Success => self.succeeded += 1,
            _ => self.failed += 1,
        }
    }

    pub(crate) fn note_done(&mut self) {
        self.recent.push_back(Instant::now());
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    /// What was used, by what runs, too.
    pub(crate) fn spent_so_far(&self) -> Spent {
        let mut spent = self.spent;
        self.running.values().for_each(|at_work| spent.add(at_work.spent));
        spent
    }

    /// A picture of this moment.
    pub fn progress(&self) -> Progress {
        let now = Instant::now();
        let done = self.succeeded + self.failed;
        let per_second = self.per_second(now);
        let left = self.jobs.map(|jobs| jobs.saturating_sub(done));
        let left_ms = match (left, per_second, self.phase) {
            (Some(left), Some(rate), Phase::Going) => Some((left as f64 / rate * 1000.0) as u64),
            _ => None,
        };
        let running = self.running.values().map(|at_work| Running {
            id: at_work.id.clone(),
            attempt: at_work.attempt,
            for_ms: millis(now.saturating_duration_since(at_work.since)),
            doing: at_work.doing.clone(),
            spent: at_work.spent,
        });
        let mut running: Vec<Running> = running.collect();
        running.sort_by_key(|running| std::cmp::Reverse(running.for_ms));
        Progress {
            jobs: self.jobs,
            known: self.known,
            succeeded: self.succeeded,
            failed: self.failed,
            before: self.before,
            refused: self.refused,
            repeated: self.repeated,
            running,
            spent: self.spent_so_far(),
            per_minute: per_second.map(|rate| rate * 60.0),
            left_ms,
            held_ms: self.held_until.filter(|until| *until > now).map(|until| millis(until - now)),
            elapsed_ms: millis(now.saturating_duration_since(self.started)),
            phase: self.phase,
        }
    }

    /// Jobs in a second, lately.
    fn per_second(&self, now: Instant) -> Option<f64> {
        let lately = self.recent.iter().filter(|at| now.saturating_duration_since(**at) < LATELY);
        let count = lately.clone().count();
        let first = lately.clone().next()?;
        // The first one took its time, too, if nothing came before it.
        let since =
            if self.recent.len() < RECENT && count == self.recent.len() { &self.started } else { first };
        let seconds = now.saturating_duration_since(*since).as_secs_f64();
        (seconds > 0.0).then_some(count as f64 / seconds)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
