//! The submitter's side of a remote batch: a few threads put jobs into the queue, and one gathers the results.
//!
//! A result is known by its job, the job's mark and the attempt, so that a submitter that was killed finds the results that came
//! meanwhile, and puts in only the jobs that have none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use alhena_model::{Failure, FailureKind, SettingError};
use parking_lot::Mutex;

use super::envelope::{JobEnvelope, ResultEnvelope, StoredFolder, id_and_mark, key, key_of};
use super::folder;
use super::presence::{JobsState, PresenceMonitor};
use crate::job::Job;
use crate::journal::{Entry, Journal};
use crate::perform::{Attempt, Over, Perform, Stop, Watch, Where};
use crate::queue::{Batch, Begun, Cancelled, Gathered, Gathering, Label, Name, Queue, QueueError, Refused};
use crate::result::{Earlier, JobResult};
use crate::schedule::Control;

/// How many threads put jobs in.
const PUTTING: usize = 4;
/// How often the submitter checks whether the batch is stopped.
const LOOK: Duration = Duration::from_millis(200);
/// How long to wait for the results of earlier starts.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a worker may be silent, beside two leases.
const LATE: Duration = Duration::from_secs(5);
/// The pause after an error of the server.
const PAUSE: Duration = Duration::from_millis(500);
/// How often it is checked whether the server still has its streams.
const CHECK: Duration = Duration::from_secs(5);
/// How often it is checked whether every job is still there, also where the streams are.
const CHECK_JOBS: Duration = Duration::from_secs(60);
/// How long to wait for results that are in the queue.
const SOON: Duration = Duration::from_secs(10);

/// The key of a job in the queue, and the number of the attempt.
type Key = (String, u32);

/// A batch whose jobs workers do.
pub struct Submitter {
    queue: Queue,
    batch: Name,
    label: Label,
    cancelled: Cancelled,
    control: Control,
    open: Mutex<OpenJobs>,
    tell: Box<dyn Fn(SubmitterEvent) + Send + Sync>,
    folders: Mutex<HashMap<PathBuf, StoredFolder>>,
    orders: Mutex<Option<Sender<(Key, Job)>>>,
    /// How many jobs no worker has.
    waiting: AtomicUsize,
    /// Whether a worker took a job, went on with it or ended it since the last check.
    moved: AtomicBool,
    draining: AtomicBool,
    closing: AtomicBool,
    was_cancelled: AtomicBool,
    announced: Batch,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct OpenJobs {
    pending: HashMap<Key, Pending>,
    /// Results whose jobs have not begun here, because an earlier start put them in.
    early: HashMap<Key, Vec<u8>>,
}

/// A job that has no result yet.
struct Pending {
    watch: Arc<Watch>,
    over: Over,
    holder: Option<Holder>,
    job: Job,
    /// Whether the server has taken it.
    is_in: bool,
}

/// When it was last checked whether the server still has its streams, and every job.
struct Checked {
    streams: Instant,
    jobs: Instant,
}

/// The worker that has a job, as far as that is known.
struct Holder {
    worker: String,
    heard: Instant,
    /// How long it may be silent; without a limit for workers that do not say.
    patience: Option<Duration>,
}

impl Holder {
    fn is_gone(&self) -> bool {
        self.patience.is_some_and(|patience| self.heard.elapsed() > patience)
    }
}

/// The parts of a remote batch.
pub struct SubmitterOptions {
    /// The queue.
    pub queue: Queue,
    /// The name of the batch there.
    pub batch: Name,
    /// The label of its jobs.
    pub label: Label,
    /// Stops the batch when it is cancelled elsewhere.
    pub control: Control,
    /// What was announced of the batch.
    pub announced: Batch,
    /// The results that the journal has already; see [`known`].
    pub known: HashSet<(String, u32)>,
    /// Whether to tell that no worker is there, and that the connection is lost.
    pub watches_workers: bool,
    /// Receives what happens, on any thread.
    pub tell: Box<dyn Fn(SubmitterEvent) + Send + Sync>,
}

/// Something that whoever waits for a batch should know.
#[derive(Debug)]
pub enum SubmitterEvent {
    /// The connection is lost. The client connects again by itself.
    Disconnected,
    /// The connection is back.
    Reconnected,
    /// No worker takes jobs with the label of the batch.
    NoWorker,
    /// The server did not take a job, which is sent again.
    NotStored(QueueError),
    /// The server gave no results, and is asked again.
    NotGathered(QueueError),
    /// The server lost its storage, and the queue is set up again.
    StorageLost,
    /// So many jobs had vanished from the queue and are put into it again.
    JobsVanished(usize),
    /// A job that nobody waits for stays in the queue.
    NotWithdrawn(QueueError),
    /// A message that is no result was passed over.
    Refused(Refused),
}

/// Returns the attempts whose results the journal has.
pub fn known(journal: &Journal) -> HashSet<(String, u32)> {
    let attempts = |(id, entry): (&str, &Entry)| {
        let key = key(id, &entry.job);
        (1..=entry.attempt).map(move |attempt| (key.clone(), attempt)).collect::<Vec<_>>()
    };
    journal.done().flat_map(attempts).collect()
}

impl Submitter {
    /// Gathers the results of earlier starts, and begins to listen.
    pub fn begin(options: SubmitterOptions) -> Result<Arc<Self>, QueueError> {
        let SubmitterOptions { queue, batch, label, control, announced, known, watches_workers, tell } =
            options;
        let mut gathering = queue.gather(&batch);
        let early = gather_the_past(&queue, &batch, &mut gathering, &known, &tell)?;
        let (orders, ordered) = channel();
        let submitter = Arc::new(Self {
            cancelled: queue.watch_cancelled(),
            queue,
            batch,
            label,
            control,
            open: Mutex::new(OpenJobs { pending: HashMap::new(), early }),
            tell,
            folders: Mutex::default(),
            orders: Mutex::new(Some(orders)),
            waiting: AtomicUsize::new(0),
            moved: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            was_cancelled: AtomicBool::new(false),
            announced,
            threads: Mutex::default(),
        });
        let told = Arc::downgrade(&submitter);
        submitter.queue.watch_begun(&submitter.batch, move |begun| {
            if let Some(submitter) = told.upgrade() {
                submitter.was_told(begun);
            }
        })?;
        let ordered = Arc::new(Mutex::new(ordered));
        let mut threads = Vec::new();
        for _ in 0..PUTTING {
            let (submitter, ordered) = (submitter.clone(), ordered.clone());
            threads.push(std::thread::spawn(move || submitter.put_all(&ordered)));
        }
        let gathers = submitter.clone();
        threads.push(std::thread::spawn(move || gathers.gather_all(gathering, &known)));
        if watches_workers {
            let (submitter, monitor) =
                (submitter.clone(), PresenceMonitor::new(submitter.queue.clone(), submitter.label.clone()));
            threads.push(std::thread::spawn(move || submitter.watch_workers(monitor)));
        }
        *submitter.threads.lock() = threads;
        Ok(submitter)
    }

    /// Whether somebody else cancelled the batch.
    pub fn was_cancelled(&self) -> bool {
        self.was_cancelled.load(Ordering::Acquire)
    }

    /// Listens no more. What is in the queue stays there.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        drop(self.orders.lock().take());
        for thread in std::mem::take(&mut *self.threads.lock()) {
            let _broke_down = thread.join();
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn was_told(&self, begun: Begun) {
        self.moved.fetch_or(!begun.returned, Ordering::AcqRel);
        let mut open = self.open.lock();
        let Some(pending) = open.pending.get_mut(&(begun.job, begun.attempt)) else { return };
        if begun.returned {
            // Another may have it already.
            if pending.holder.as_ref().is_some_and(|holder| holder.worker == begun.worker) {
                self.waits_again(pending);
            }
            return;
        }
        if pending.holder.is_none() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        pending.watch.does(&format!("works on {}", begun.worker));
        let lease = begun.lease_ms.map(Duration::from_millis);
        let patience = lease.map(|lease| lease.saturating_mul(2).saturating_add(LATE));
        pending.holder = Some(Holder { worker: begun.worker, heard: Instant::now(), patience });
    }

    /// Nobody works on it any more.
    fn waits_again(&self, pending: &mut Pending) {
        pending.holder = None;
        self.waiting.fetch_add(1, Ordering::AcqRel);
        pending.watch.does("waits for another worker");
        pending.watch.waits();
    }

    /// Who was killed does not say so.
    fn look_who_is_gone(&self) {
        let connected = self.queue.is_connected();
        for pending in self.open.lock().pending.values_mut() {
            match &mut pending.holder {
                // Nobody can be heard.
                Some(holder) if !connected => holder.heard = Instant::now(),
                Some(holder) if holder.is_gone() => self.waits_again(pending),
                _ => {}
            }
        }
    }

    fn watch_workers(&self, mut monitor: PresenceMonitor) {
        while !self.is_closing() {
            monitor.look(&self.jobs_state(), &self.tell);
            std::thread::sleep(LOOK);
        }
    }

    fn jobs_state(&self) -> JobsState {
        let pending = self.open.lock().pending.len();
        let waits = pending > 0 && self.waiting() >= pending;
        JobsState { waits, moved: self.moved.swap(false, Ordering::AcqRel) }
    }

    fn put_all(&self, ordered: &Mutex<Receiver<(Key, Job)>>) {
        loop {
            // Whoever has the lock waits for all, and keeps it until its job is on its way: they are in their order.
            let turn = ordered.lock();
            let Ok((key, job)) = turn.recv() else { return };
            self.put(&key, &job, turn);
        }
    }

    fn put<T>(&self, key: &Key, job: &Job, turn: T) {
        let mut turn = Some(turn);
        let envelope = match JobEnvelope::pack(job, |folder| self.keep(folder)) {
            Ok(envelope) => envelope,
            Err(error) => return self.fails(key, error.into()),
        };
        let bytes = match serde_json::to_vec(&envelope) {
            Ok(bytes) => bytes,
            Err(error) => return self.fails(key, Failure::new(FailureKind::Input, error.to_string())),
        };
        // A server that is away comes back; who wants to go takes the job away meanwhile.
        while !self.is_closing() && self.open.lock().pending.contains_key(key) {
            let sent = || drop(turn.take());
            match self.queue.put_in_turn(&self.batch, &key.0, key.1, &self.label, &bytes, sent) {
                Ok(_) => {
                    if let Some(pending) = self.open.lock().pending.get_mut(key) {
                        pending.is_in = true;
                    }
                    return;
                }
                Err(error @ (QueueError::Broken(_) | QueueError::Name(_))) => {
                    return self.fails(key, Failure::new(FailureKind::Input, error.to_string()));
                }
                Err(error) => {
                    // The others need not wait for it.
                    drop(turn.take());
                    (self.tell)(SubmitterEvent::NotStored(error));
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes a folder into the queue, once for all jobs that work on it.
    fn keep(&self, folder: &Path) -> Result<StoredFolder, SettingError> {
        let fault = |error: &dyn std::fmt::Display| {
            SettingError::new(
                format!("{} cannot travel: {error}", folder.display()),
                "Name a smaller folder, or a repository with git.",
            )
        };
        let path = folder.canonicalize().map_err(|error| fault(&error))?;
        let mut folders = self.folders.lock();
        if let Some(kept) = folders.get(&path) {
            return Ok(kept.clone());
        }
        let (bytes, left_out) = folder::pack(&path).map_err(|error| fault(&error))?;
        let name = self.queue.keep_file(&self.batch, &bytes).map_err(|error| fault(&error))?;
        folders.insert(path, (name.clone(), left_out.clone()));
        Ok((name, left_out))
    }

    fn fails(&self, key: &Key, failure: Failure) {
        if let Some(pending) = self.take(key) {
            pending.over.done(Attempt::not_begun(&pending.job, failure, Where::Shared));
        }
    }

    fn take(&self, key: &Key) -> Option<Pending> {
        let pending = self.open.lock().pending.remove(key)?;
        if pending.holder.is_none() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        Some(pending)
    }

    fn gather_all(&self, mut gathering: Gathering, known: &HashSet<Key>) {
        let mut said = false;
        let mut checked = Checked { streams: Instant::now(), jobs: Instant::now() };
        while !self.is_closing() {
            let looked = self.look_after_jobs(&mut gathering, &mut checked);
            match looked.and_then(|()| gathering.next(LOOK)) {
                Ok(Some(gathered)) => {
                    said = false;
                    self.arrived(gathered, known);
                }
                Ok(None) => {}
                Err(error) => {
                    if !std::mem::replace(&mut said, true) {
                        (self.tell)(SubmitterEvent::NotGathered(error));
                    }
                    std::thread::sleep(PAUSE);
                }
            }
            pass_over(&mut gathering, &self.tell);
            self.look_who_is_gone();
            self.look_who_goes();
        }
    }

    /// Puts jobs into the queue again that the server has lost. Those that somebody works on are not lost: that one stores a result. What
    /// fails here is tried again at the next check.
    fn look_after_jobs(&self, gathering: &mut Gathering, checked: &mut Checked) -> Result<(), QueueError> {
        if checked.streams.elapsed() < CHECK || !self.queue.is_connected() {
            return Ok(());
        }
        checked.streams = Instant::now();
        let is_lost = gathering.begins_anew()?;
        if is_lost {
            // Folders went with everything else.
            self.folders.lock().clear();
            let mut batch = self.announced.clone();
            batch.cancelled = self.was_cancelled();
            self.queue.announce_again(&self.batch, &batch)?;
        } else if checked.jobs.elapsed() < CHECK_JOBS {
            return Ok(());
        }
        let waits = |pending: &Pending| pending.holder.is_none() && pending.is_in;
        let waiting: Vec<Key> = {
            let open = self.open.lock();
            open.pending.iter().filter(|(_, pending)| waits(pending)).map(|(key, _)| key.clone()).collect()
        };
        let gone = self.queue.vanished(&self.batch, waiting)?;
        // Whoever cancels or forgets a batch says so first, then takes its jobs out.
        let is_open = gone.is_empty() || self.queue.is_open(&self.batch)?;
        checked.jobs = Instant::now();
        if is_lost {
            gathering.restored();
            (self.tell)(SubmitterEvent::StorageLost);
        }
        if !is_open {
            self.end_as_cancelled();
            return Ok(());
        }
        let mut vanished = Vec::new();
        for key in gone {
            if let Some(pending) = self.open.lock().pending.get_mut(&key).filter(|pending| waits(pending)) {
                pending.is_in = false;
                vanished.push((key, pending.job.clone()));
            }
        }
        vanished.sort_by_key(|(_, job)| job.line);
        let count = vanished.len();
        if let Some(orders) = &*self.orders.lock() {
            vanished.into_iter().for_each(|order| drop(orders.send(order)));
        }
        if count > 0 {
            (self.tell)(SubmitterEvent::JobsVanished(count));
        }
        Ok(())
    }

    fn arrived(&self, gathered: Gathered, known: &HashSet<Key>) {
        self.moved.store(true, Ordering::Release);
        let key = (gathered.job, gathered.attempt);
        match self.take(&key) {
            Some(pending) => pending.over.done(attempt(&gathered.payload, &pending.job)),
            None if known.contains(&key) => {}
            None => {
                self.open.lock().early.insert(key, gathered.payload);
            }
        }
    }

    /// Stops waiting for the batch because somebody else cancelled it.
    fn end_as_cancelled(&self) {
        if !self.was_cancelled.swap(true, Ordering::AcqRel) {
            self.control.stop(Stop::Gently);
        }
    }

    /// A batch that was cancelled, a wish to stop, and one to begin nothing more.
    fn look_who_goes(&self) {
        if self.cancelled.has(&self.batch.to_string()) {
            self.end_as_cancelled();
        }
        let asked = self.open.lock().pending.values().any(|pending| pending.watch.asked().is_some());
        // For as long as it takes: what is given back later is begun by nobody, either.
        let draining = self.draining.load(Ordering::Acquire);
        if !asked && !draining {
            return;
        }
        let going: Vec<Key> = self
            .open
            .lock()
            .pending
            .iter()
            .filter(|(_, pending)| asked || pending.holder.is_none())
            .map(|(key, _)| key.clone())
            .collect();
        for key in going {
            let Some(pending) = self.take(&key) else { continue };
            // What somebody works on goes on, and its answer is there for whoever comes back.
            if pending.holder.is_none()
                && let Err(error) = self.queue.withdraw(&self.batch, &key.0, key.1)
            {
                (self.tell)(SubmitterEvent::NotWithdrawn(error));
            }
            pending.watch.stop(Stop::Gently);
            let failure = Failure::new(FailureKind::Cancelled, "nobody waits for it any more");
            pending.over.done(Attempt::not_begun(&pending.job, failure, Where::Shared));
        }
    }
}

impl Perform for Submitter {
    fn perform(&self, job: &Job, _: &Watch) -> Attempt {
        let failure = Failure::new(FailureKind::Crashed, "jobs of this batch are done elsewhere");
        Attempt::not_begun(job, failure, Where::Shared)
    }

    fn begin(self: Arc<Self>, job: Job, attempt: u32, watch: Arc<Watch>, over: Over) {
        let key = (key_of(&job), attempt);
        let mut open = self.open.lock();
        if let Some(payload) = open.early.remove(&key) {
            return over.done(self::attempt(&payload, &job));
        }
        watch.waits();
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let pending = Pending { watch, over, holder: None, job: job.clone(), is_in: false };
        open.pending.insert(key.clone(), pending);
        drop(open);
        if let Some(orders) = &*self.orders.lock() {
            let _closed = orders.send((key, job));
        }
    }

    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }
}

/// What was done before this start: all of it, so that nothing of it is done again.
fn gather_the_past(
    queue: &Queue,
    batch: &Name,
    gathering: &mut Gathering,
    known: &HashSet<Key>,
    tell: &dyn Fn(SubmitterEvent),
) -> Result<HashMap<Key, Vec<u8>>, QueueError> {
    let mut early = HashMap::new();
    let there = queue.progress(batch)?.map_or(0, |progress| progress.results);
    let begin = Instant::now();
    while there > 0 && gathering.left() != Some(0) {
        let gathered = match gathering.next(Duration::from_secs(30)) {
            Ok(Some(gathered)) => gathered,
            Ok(None) if pass_over(gathering, tell) => continue,
            Ok(None) => break,
            Err(error) if begin.elapsed() > PATIENCE => return Err(error),
            Err(_) => {
                std::thread::sleep(PAUSE);
                continue;
            }
        };
        let key = (gathered.job, gathered.attempt);
        if is_out_of_quota(&gathered.payload, &key.0) {
            // That day is over, perhaps: the same attempt once more.
            queue.forget_result(batch, &key.0, key.1)?;
        } else if !known.contains(&key) {
            early.insert(key, gathered.payload);
        }
    }
    Ok(early)
}

/// Tells of messages that are no results. Returns whether there were any.
fn pass_over(gathering: &mut Gathering, tell: &dyn Fn(SubmitterEvent)) -> bool {
    let refused = gathering.refused();
    let there_were = !refused.is_empty();
    refused.into_iter().map(SubmitterEvent::Refused).for_each(tell);
    there_were
}

fn is_out_of_quota(payload: &[u8], key: &str) -> bool {
    let attempt = ResultEnvelope::read(payload, key).ok();
    let failure = attempt.as_ref().and_then(|attempt| attempt.result.outcome.failure.as_ref());
    failure.is_some_and(|failure| failure.daily_quota)
}

/// Returns the attempt that a worker sent, or one that failed because that is not an attempt of this job.
fn attempt(payload: &[u8], job: &Job) -> Attempt {
    let answer = match payload.is_empty() {
        true => Err("it is not in the queue any more".to_owned()),
        false => ResultEnvelope::read(payload, &key_of(job)),
    };
    answer.unwrap_or_else(|why| {
        let message = format!("the worker's answer is no good: {why}");
        Attempt::not_begun(job, Failure::new(FailureKind::InvalidResponse, message), Where::Shared)
    })
}

/// A result that cannot be had, and why.
pub type MissingResult = (String, String);

/// Returns the last attempt of each job of a batch, in the order in which the jobs were done first, and the results that cannot be had.
pub fn results(queue: &Queue, batch: &Name) -> Result<(Vec<JobResult>, Vec<MissingResult>), QueueError> {
    let there = queue.progress(batch)?.map_or(0, |progress| progress.results);
    let mut gathering = queue.gather(batch);
    let mut places = HashMap::new();
    let mut attempts: BTreeMap<usize, BTreeMap<u32, Result<JobResult, MissingResult>>> = BTreeMap::new();
    let mut missing = Vec::new();
    while there > 0 && gathering.left() != Some(0) {
        let gathered = gathering.next(SOON)?;
        let refused = gathering.refused();
        if gathered.is_none() && refused.is_empty() {
            break;
        }
        missing.extend(refused.into_iter().map(|Refused { subject, reason, .. }| (subject, reason)));
        let Some(Gathered { job, attempt, payload, lost, .. }) = gathered else { continue };
        let answer = lost.map_or_else(|| ResultEnvelope::read(&payload, &job), Err);
        let (id, _) = id_and_mark(&job);
        let next = places.len();
        let place = *places.entry(id.to_owned()).or_insert(next);
        let told = answer.map(|answer| JobResult { attempt, ..answer.result });
        let told = told.map_err(|why| (format!("{id} (attempt {attempt})"), why));
        attempts.entry(place).or_default().insert(attempt, told);
    }
    if there > 0 && gathering.left() != Some(0) {
        missing.push(("the rest".to_owned(), "the server gave no more of them in 10 s".to_owned()));
    }
    let mut results = Vec::new();
    for told in attempts.into_values().filter_map(last_of) {
        match told {
            Ok(result) => results.push(result),
            Err(told) => missing.push(told),
        }
    }
    Ok((results, missing))
}

/// Returns the last attempt at a job, with what is known of those before.
fn last_of(
    mut attempts: BTreeMap<u32, Result<JobResult, MissingResult>>,
) -> Option<Result<JobResult, MissingResult>> {
    let (_, last) = attempts.pop_last()?;
    let earlier = attempts.into_values().filter_map(Result::ok).map(|before| Earlier::of(&before.outcome));
    Some(last.map(|last| JobResult { earlier: earlier.collect(), ..last }))
}
