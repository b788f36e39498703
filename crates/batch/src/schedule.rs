//! Which job when. One loop that hears everything: a job that came, what a job does and how it ended, a wish to stop, the time.

mod intake;
mod pace;
mod queue;
mod repeat;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{fmt, io};

use alhena_model::{Outcome, SettingError, Status, Timestamp};

use self::pace::Pace;
use self::queue::Queue;
use self::repeat::{Repeat, judge};
use crate::journal::{Journal, Order};
use crate::perform::{Attempt, Over, Perform, Stop, Watch};
use crate::progress::{AtWork, Board, News, Observer, Phase, Progress};
use crate::result::{Earlier, JobResult, Spent};
use crate::supply::{Complaint, Supply};

pub use self::repeat::Where;

/// So long a first repeat waits; each further one twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// So often one job is told by the API to come later before that is its result.
const MOST_LIMITED: u32 = 20;
/// How often an observer hears that time has passed.
const TICK: Duration = Duration::from_millis(500);
/// So many jobs of a stream wait in memory, for each that may run.
const WINDOW: usize = 16;

/// How a batch is to be run.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many jobs at once.
    pub jobs: usize,
    /// How often a job is repeated whose failure may pass.
    pub retries: u32,
    /// How many US dollars all jobs may cost: no job begins any more when they have.
    pub max_cost: Option<f64>,
    /// Whether no job begins any more when one has failed.
    pub fail_fast: bool,
    /// Whether the results are in the order of the jobs when it is over.
    pub ordered: bool,
    /// Whether jobs that failed are done again.
    pub again_failed: bool,
    /// Whether jobs are done again that are others than when their results were written.
    pub again_changed: bool,
}

/// All that the loop can hear.
#[derive(Debug)]
pub(crate) enum Happening {
    /// Perhaps something has come.
    Woken,
    /// Nobody works on it yet.
    Waits(usize),
    Does(usize, String),
    Used(usize, Spent),
    Over(usize, Box<Attempt>),
    Drain,
    Stop(Stop),
}

/// From anywhere: a signal, another thread.
#[derive(Clone, Debug)]
pub struct Control(Sender<Happening>);

impl Control {
    /// No job begins any more; those that run finish.
    pub fn drain(&self) {
        let _over = self.0.send(Happening::Drain);
    }

    /// Those that run are stopped as well; they count as not done.
    pub fn stop(&self, how: Stop) {
        let _over = self.0.send(Happening::Stop(how));
    }

    /// Perhaps something has come.
    pub fn wake(&self) {
        let _over = self.0.send(Happening::Woken);
    }
}

/// What a batch hears from.
pub struct Inbox(Receiver<Happening>);

/// The two ends of what a batch hears.
pub fn control() -> (Control, Inbox) {
    let (sender, receiver) = channel();
    (Control(sender), Inbox(receiver))
}

/// A job under way.
struct Worker {
    watch: Arc<Watch>,
    lane: Option<u32>,
}

/// What is known of a job that was tried before.
#[derive(Default)]
struct Tried {
    attempts: u32,
    /// How often the API told it to come later, and how often it was repeated otherwise, both by this start.
    limited: u32,
    repeats: u32,
    earlier: Vec<Earlier>,
}

/// A batch: jobs in, results out.
pub struct Batch {
    supply: Supply,
    journal: Journal,
    limits: Limits,
    perform: Arc<dyn Perform>,
    control: Control,
    inbox: Receiver<Happening>,
    queue: Queue,
    pace: Pace,
    board: Board,
    workers: HashMap<usize, Worker>,
    tried: HashMap<usize, Tried>,
    finished: Vec<(usize, Box<Attempt>)>,
    unwritten: Vec<(usize, JobResult)>,
    why: Option<Why>,
}

impl Batch {
    /// Looks at what is done already. Refuses when that was done for other jobs.
    pub fn new(
        supply: Supply,
        journal: Journal,
        limits: Limits,
        perform: Arc<dyn Perform>,
        (control, Inbox(inbox)): (Control, Inbox),
    ) -> Result<Self, Changed> {
        let pace = Pace::new(limits.jobs.max(1));
        let mut batch = Self {
            supply,
            journal,
            limits,
            perform,
            control,
            inbox,
            queue: Queue::default(),
            pace,
            board: Board::new(),
            workers: HashMap::new(),
            tried: HashMap::new(),
            finished: Vec::new(),
            unwritten: Vec::new(),
            why: None,
        };
        if batch.supply.is_complete() && !batch.limits.again_changed {
            batch.refuse_changed()?;
        }
        for number in 0..batch.supply.entries().len() {
            let _told_above = batch.enter(number);
        }
        batch.count_jobs();
        Ok(batch)
    }

    /// Where the results go.
    pub fn results(&self) -> &std::path::Path {
        self.journal.path()
    }

    /// How far it is.
    pub fn board(&self) -> &Board {
        &self.board
    }

    /// Runs all jobs. Returns when nothing runs any more and the journal is right.
    pub fn run(mut self, observer: &mut dyn Observer) -> Ended {
        loop {
            self.take_in(observer);
            self.begin_what_may(observer);
            self.settle(observer);
            if self.is_over() {
                break;
            }
            self.hear(observer);
            self.settle(observer);
        }
        self.end()
    }

    fn is_over(&self) -> bool {
        let nothing_to_do = self.queue.is_empty() && self.supply.is_complete();
        self.workers.is_empty() && (nothing_to_do || self.board.phase != Phase::Going)
    }

    fn begin_what_may(&mut self, observer: &mut dyn Observer) {
        let now = Instant::now();
        self.queue.wake(now);
        self.board.held_until = self.pace.until(now);
        if self.board.phase == Phase::Going
            && self.perform.waiting() > 0
            && let Some(why) = self.is_spent()
        {
            self.drain(why, observer);
        }
        while self.board.phase == Phase::Going && self.workers.len() < self.pace.allowed(now) {
            if let Some(why) = self.is_spent() {
                if !self.queue.is_empty() {
                    self.drain(why, observer);
                }
                return;
            }
            let supply = &self.supply;
            let Some((number, lane)) = self.queue.take(|lane| supply.lane(lane)) else { return };
            self.begin(number, lane, observer);
        }
    }

    /// Whether nothing more may be spent.
    fn is_spent(&self) -> Option<Why> {
        let most = self.limits.max_cost?;
        let spent = self.board.spent_so_far();
        match spent.unpriced {
            true => Some(Why::Unpriced),
            false => (spent.cost_usd >= most).then_some(Why::Budget),
        }
    }

    fn begin(&mut self, number: usize, lane: Option<u32>, observer: &mut dyn Observer) {
        let watch = Arc::new(Watch::new(number, self.control.0.clone()));
        let entry = self.supply.entries().get(number);
        let (id, mark) =
            entry.map(|entry| (entry.id.to_string(), entry.mark.to_string())).unwrap_or_default();
        let attempt = self.tried.get(&number).map_or(0, |tried| tried.attempts) + 1;
        let since = Instant::now();
        let at_work = AtWork {
            id: id.clone(),
            attempt,
            since,
            doing: "starts".to_owned(),
            spent: Spent::default(),
            waits: false,
        };
        self.board.running.insert(number, at_work);
        self.workers.insert(number, Worker { watch: watch.clone(), lane });
        observer.news(&News::Began { id: id.clone(), attempt }, &self.board);
        let over = Over::new(number, self.control.0.clone());
        match self.supply.job(number) {
            Ok(job) => self.perform.clone().begin(job, attempt, watch, over),
            Err(fault) => {
                let result = JobResult::new(id, mark, Arc::new(Outcome::not_begun(fault.into())));
                over.done(Attempt { result, place: Where::Shared });
            }
        }
    }

    /// Waits for something to happen, and takes all that has.
    fn hear(&mut self, observer: &mut dyn Observer) {
        let now = Instant::now();
        let times = [self.queue.next_time(), self.pace.until(now)];
        let until = times.into_iter().flatten().min().map(|at| at.saturating_duration_since(now));
        let first = match self.inbox.recv_timeout(until.unwrap_or(TICK).min(TICK)) {
            Ok(happening) => happening,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                observer.news(&News::Tick, &self.board);
                return;
            }
        };
        let mut next = Some(first);
        while let Some(happening) = next {
            match happening {
                Happening::Woken => {}
                Happening::Waits(number) => {
                    if let Some(at_work) = self.board.running.get_mut(&number) {
                        at_work.waits = true;
                    }
                }
                Happening::Does(number, what) => {
                    if let Some(at_work) = self.board.running.get_mut(&number) {
                        if std::mem::take(&mut at_work.waits) {
                            at_work.since = Instant::now();
                        }
                        at_work.doing = what;
                    }
                }
                Happening::Used(number, spent) => {
                    if let Some(at_work) = self.board.running.get_mut(&number) {
                        at_work.spent = spent;
                    }
                }
                Happening::Over(number, done) => self.finished.push((number, done)),
                Happening::Drain => self.drain(Why::Interrupted, observer),
                Happening::Stop(how) => {
                    self.drain(Why::Interrupted, observer);
                    self.board.phase = Phase::Stopping;
                    self.workers.values().for_each(|worker| worker.watch.stop(how));
                }
            }
            next = self.inbox.try_recv().ok();
        }
        observer.news(&News::Tick, &self.board);
    }

    fn drain(&mut self, why: Why, observer: &mut dyn Observer) {
        if self.board.phase == Phase::Going {
            self.board.phase = Phase::Draining;
            observer.news(&News::Drains { why: why.to_string() }, &self.board);
            self.why = Some(why);
            self.perform.drain();
        }
    }

    /// Makes results of what has finished, and puts them on the disk, all together.
    fn settle(&mut self, observer: &mut dyn Observer) {
        for (number, attempt) in std::mem::take(&mut self.finished) {
            self.judge(number, *attempt, observer);
        }
        if self.unwritten.is_empty() {
            return;
        }
        let results: Vec<JobResult> = self.unwritten.iter().map(|(_, result)| result.clone()).collect();
        if let Err(error) = self.journal.add(&results) {
            // Nothing more can be kept, so nothing more begins. What still ends is tried again.
            self.drain(Why::Journal(error), observer);
            return;
        }
        for (number, result) in std::mem::take(&mut self.unwritten) {
            self.board.count(result.outcome.status);
            self.board.note_done();
            self.supply.forget(number);
            let failure = result.outcome.failure.as_ref();
            let news = News::Done {
                id: result.id.clone(),
                attempt: result.attempt,
                status: result.outcome.status,
                kind: failure.map(|failure| failure.kind),
                message: failure.map(|failure| failure.message.clone()).unwrap_or_default(),
            };
            observer.news(&news, &self.board);
            if self.limits.fail_fast && !result.outcome.is_success() {
                self.drain(Why::FailFast, observer);
            }
        }
    }

    /// Whether an attempt is the result of its job.
    fn judge(&mut self, number: usize, Attempt { result, place }: Attempt, observer: &mut dyn Observer) {
        let Some(worker) = self.workers.remove(&number) else { return };
        let Some(at_work) = self.board.running.remove(&number) else { return };
        self.queue.release(worker.lane);
        let outcome = &result.outcome;
        let spent = Spent::of(outcome.usage.all.total, outcome.cost_usd);
        self.board.spent.add(if spent.tokens > 0 { spent } else { at_work.spent });
        if worker.watch.asked().is_some() && outcome.status == Status::Cancelled {
            // We stopped it: it is not done, and the next start begins it again.
            return;
        }
        let mut tried = self.tried.remove(&number).unwrap_or_default();
        tried.attempts = at_work.attempt;
        let now = Instant::now();
        let repeat = judge(outcome, place);
        let pause = match repeat {
            Repeat::QuotaIsUsedUp => {
                // What is not done today can be done tomorrow, by the same command.
                self.drain(Why::Quota, observer);
                return;
            }
            Repeat::WhenAllowed(after) if self.limits.retries > 0 && tried.limited < MOST_LIMITED => {
                tried.limited += 1;
                let held = self.pace.limited(after, now);
                self.board.held_until = self.pace.until(now);
                observer.news(&News::Held { ms: held.as_millis() as u64 }, &self.board);
                Some(held)
            }
            Repeat::Soon if tried.repeats < self.limits.retries => {
                tried.repeats += 1;
                Some(FIRST_PAUSE.saturating_mul(1 << (tried.repeats - 1).min(10)).min(LONGEST_PAUSE))
            }
            Repeat::No | Repeat::Soon | Repeat::WhenAllowed(_) => None,
        };
        if outcome.usage.all.total > 0 && !matches!(repeat, Repeat::WhenAllowed(_)) {
            self.pace.answered();
        }
        // When nothing begins any more, a failure that may pass is left to the next start.
        if let Some(pause) = pause {
            let id = at_work.id.clone();
            let message = outcome.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default();
            tried.earlier.push(Earlier::of(outcome));
            self.tried.insert(number, tried);
            self.board.repeated += 1;
            let lane = self.supply.entries().get(number).and_then(|entry| entry.lane);
            self.queue.push_later(number, lane, now + pause);
            observer.news(&News::Repeats { id, attempt: at_work.attempt, message }, &self.board);
            return;
        }
        let (attempt, earlier, at) = (tried.attempts, tried.earlier, Timestamp::now());
        self.unwritten.push((number, JobResult { attempt, earlier, at, ..result }));
    }

    fn end(mut self) -> Ended {
        let unwritten = self.unwritten.len();
        let order = |id: &str| self.supply.number(id);
        let order: Option<Order<'_>> = if self.limits.ordered { Some(&order) } else { None };
        if let Err(error) = self.journal.arrange(order)
            && self.why.is_none()
        {
            self.why = Some(Why::Journal(error));
        }
        let left = self.supply.entries().iter().filter(|entry| self.journal.get(&entry.id).is_none()).count();
        Ended {
            why: self.why,
            progress: self.board.progress(),
            left: left as u64,
            unwritten,
            journal: self.journal,
            supply: self.supply,
        }
    }
}

#[cfg(test)]
mod tests;

/// Why no more jobs began.
#[derive(Debug)]
pub enum Why {
    /// Somebody asked for it.
    Interrupted,
    /// A job failed, and that was to be the end.
    FailFast,
    /// It has cost what it may.
    Budget,
    /// What it costs is not known, and it may not cost just anything.
    Unpriced,
    /// The API's quota of this day is used up.
    Quota,
    /// Results cannot be kept.
    Journal(io::Error),
    /// No more jobs can be read.
    Jobs(Vec<Complaint>),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Interrupted => f.write_str("stopped on request"),
            Why::FailFast => f.write_str("a job failed"),
            Why::Budget => f.write_str("it has cost what it may"),
            Why::Unpriced => {
                f.write_str("a model was used whose price is not known, so that its cost cannot be limited")
            }
            Why::Quota => f.write_str("the API's quota of this day is used up"),
            Why::Journal(error) => write!(f, "the results cannot be written: {error}"),
            Why::Jobs(complaints) => match complaints.first() {
                Some(Complaint { line, fault }) => write!(f, "line {line}: {fault}"),
                None => f.write_str("no more jobs can be read"),
            },
        }
    }
}

/// How a batch ended. The journal is right, whatever happened.
#[derive(Debug)]
pub struct Ended {
    /// Why not all jobs were begun, if so.
    pub why: Option<Why>,
    /// How far it got.
    pub progress: Progress,
    /// How many jobs have no result.
    pub left: u64,
    /// How many results could not be written; their jobs count as not done.
    pub unwritten: usize,
    /// The results.
    pub journal: Journal,
    /// The jobs.
    pub supply: Supply,
}

impl Ended {
    /// Whether every job has succeeded, and every line was one.
    pub fn is_success(&self) -> bool {
        self.why.is_none() && self.left == 0 && self.progress.failed == 0 && self.progress.refused == 0
    }
}

/// Jobs that are not those whose results are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Those that say something else now.
    pub changed: Vec<String>,
    /// Those that are not there any more.
    pub gone: Vec<String>,
}

impl Changed {
    fn sorted(mut self) -> Self {
        self.changed.sort();
        self.gone.sort();
        self
    }
}

fn changed_since(id: &str) -> SettingError {
    SettingError::new(
        format!("the job {id:?} is another than when its result was written"),
        "Give another file for the results, or have changed jobs done again.",
    )
}
