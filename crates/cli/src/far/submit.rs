//! Jobs that others do: put into the queue, and gathered from there.
//!
//! A job's result is known by the job, its mark and the attempt, so that whoever comes back after being killed finds what was done
//! meanwhile, and puts in again only what is not there. A job has no thread here: a few put jobs in, and one gathers.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use alhena::batch::job::Job;
use alhena::batch::meaning::Fault;
use alhena::batch::perform::{Attempt, Over, Perform, Stop, Watch, Where};
use alhena::batch::queue::{
    Batch, Begun, Cancelled, Gathered, Gathering, Label, Name, Queue, QueueError, Refused,
};
use alhena::batch::remote::folder;
use alhena::batch::schedule::Control;
use alhena::{Failure, FailureKind};

use super::company::{Company, Work};
use super::letter::{Answer, key_of};
use super::pack::{Kept, pack};
use crate::output::say;
use crate::style::one_line;

/// So many put jobs in at once.
const PUTTING: usize = 4;
/// How often it is looked whether somebody wants to go.
const LOOK: Duration = Duration::from_millis(200);
/// So long is waited for what was done before.
const PATIENCE: Duration = Duration::from_secs(60);
/// Beside two leases, so long a worker may be silent that works.
const LATE: Duration = Duration::from_secs(5);
/// After a server that does not take or give anything.
const PAUSE: Duration = Duration::from_millis(500);
/// How often it is checked whether the server still has its streams.
const CHECK: Duration = Duration::from_secs(5);
/// How often it is checked whether every job is still there, also where the streams are.
const CHECK_JOBS: Duration = Duration::from_secs(60);

/// A job as the queue knows it, and which attempt.
type Key = (String, u32);

/// A batch whose jobs are done elsewhere.
pub struct Far {
    queue: Queue,
    batch: Name,
    label: Label,
    cancelled: Cancelled,
    control: Control,
    desk: Mutex<Desk>,
    folders: Mutex<HashMap<PathBuf, Kept>>,
    orders: Mutex<Option<Sender<(Key, Job)>>>,
    /// How many jobs nobody works on.
    waiting: AtomicUsize,
    /// Whether somebody took one, went on with it or did it, since that was asked last.
    moved: AtomicBool,
    draining: AtomicBool,
    closing: AtomicBool,
    was_cancelled: AtomicBool,
    announced: Batch,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Desk {
    pending: HashMap<Key, Pending>,
    /// Answers whose jobs have not begun here, because somebody put them in before.
    early: HashMap<Key, Vec<u8>>,
}

/// A job whose answer is waited for.
struct Pending {
    watch: Arc<Watch>,
    over: Over,
    by: Option<By>,
    job: Job,
    /// Whether the server has taken it.
    is_in: bool,
}

/// When it was last checked whether the server still has its streams, and every job.
struct Checked {
    streams: Instant,
    jobs: Instant,
}

/// Who works on a job, as far as that was heard.
struct By {
    worker: String,
    heard: Instant,
    /// So long silence means nothing; none is for ever, of workers that do not say.
    patience: Option<Duration>,
}

impl By {
    fn is_gone(&self) -> bool {
        self.patience.is_some_and(|patience| self.heard.elapsed() > patience)
    }
}

/// What a batch begins with.
pub struct Setup {
    pub queue: Queue,
    pub batch: Name,
    pub label: Label,
    pub control: Control,
    /// What was announced of the batch.
    pub announced: Batch,
    /// What the journal has already.
    pub known: HashSet<Key>,
    /// The server, as it may be shown to whoever is told that nobody is there; none where nothing is to be said.
    pub tell: Option<String>,
}

impl Far {
    /// Gathers what was done before, and begins to listen.
    pub fn begin(setup: Setup) -> Result<Arc<Self>, QueueError> {
        let Setup { queue, batch, label, control, announced, known, tell } = setup;
        let mut gathering = queue.gather(&batch);
        let early = gather_the_past(&queue, &batch, &mut gathering, &known)?;
        let (orders, ordered) = channel();
        let far = Arc::new(Self {
            cancelled: queue.watch_cancelled(),
            queue,
            batch,
            label,
            control,
            desk: Mutex::new(Desk { pending: HashMap::new(), early }),
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
        let told = Arc::downgrade(&far);
        far.queue.watch_begun(&far.batch, move |begun| {
            if let Some(far) = told.upgrade() {
                far.was_told(begun);
            }
        })?;
        let ordered = Arc::new(Mutex::new(ordered));
        let mut threads = Vec::new();
        for _ in 0..PUTTING {
            let (far, ordered) = (far.clone(), ordered.clone());
            threads.push(std::thread::spawn(move || far.put_all(&ordered)));
        }
        let gathers = far.clone();
        threads.push(std::thread::spawn(move || gathers.gather_all(gathering, &known)));
        if let Some(server) = tell {
            let (far, company) = (far.clone(), Company::new(far.queue.clone(), far.label.clone(), server));
            threads.push(std::thread::spawn(move || far.look_round(company)));
        }
        *lock(&far.threads) = threads;
        Ok(far)
    }

    /// Whether somebody else cancelled the batch.
    pub fn was_cancelled(&self) -> bool {
        self.was_cancelled.load(Ordering::Acquire)
    }

    /// Listens no more. What is in the queue stays there.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Release);
        drop(lock(&self.orders).take());
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            let _broke_down = thread.join();
        }
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    fn was_told(&self, begun: Begun) {
        self.moved.fetch_or(!begun.returned, Ordering::AcqRel);
        let mut desk = lock(&self.desk);
        let Some(pending) = desk.pending.get_mut(&(begun.job, begun.attempt)) else { return };
        if begun.returned {
            // Another may have it already.
            if pending.by.as_ref().is_some_and(|by| by.worker == begun.worker) {
                self.waits_again(pending);
            }
            return;
        }
        if pending.by.is_none() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        pending.watch.does(&format!("works on {}", begun.worker));
        let lease = begun.lease_ms.map(Duration::from_millis);
        let patience = lease.map(|lease| lease.saturating_mul(2).saturating_add(LATE));
        pending.by = Some(By { worker: begun.worker, heard: Instant::now(), patience });
    }

    /// Nobody works on it any more.
    fn waits_again(&self, pending: &mut Pending) {
        pending.by = None;
        self.waiting.fetch_add(1, Ordering::AcqRel);
        pending.watch.does("waits for another worker");
        pending.watch.waits();
    }

    /// Who was killed does not say so.
    fn look_who_is_gone(&self) {
        let connected = self.queue.is_connected();
        for pending in lock(&self.desk).pending.values_mut() {
            match &mut pending.by {
                // Nobody can be heard.
                Some(by) if !connected => by.heard = Instant::now(),
                Some(by) if by.is_gone() => self.waits_again(pending),
                _ => {}
            }
        }
    }

    fn look_round(&self, mut company: Company) {
        while !self.is_closing() {
            company.look(&self.work());
            std::thread::sleep(LOOK);
        }
    }

    fn work(&self) -> Work {
        let pending = lock(&self.desk).pending.len();
        let waits = pending > 0 && self.waiting() >= pending;
        Work { waits, moved: self.moved.swap(false, Ordering::AcqRel) }
    }

    fn put_all(&self, ordered: &Mutex<Receiver<(Key, Job)>>) {
        loop {
            // Whoever has the lock waits for all, and keeps it until its job is on its way: they are in their order.
            let turn = lock(ordered);
            let Ok((key, job)) = turn.recv() else { return };
            self.put(&key, &job, turn);
        }
    }

    fn put<T>(&self, key: &Key, job: &Job, turn: T) {
        let mut turn = Some(turn);
        let letter = match pack(job, |folder| self.keep(folder)) {
            Ok(letter) => letter,
            Err(Fault { message, hint }) => {
                return self.fails(key, Failure::new(FailureKind::Input, message).with_hint(hint));
            }
        };
        let bytes = match serde_json::to_vec(&letter) {
            Ok(bytes) => bytes,
            Err(error) => return self.fails(key, Failure::new(FailureKind::Input, error.to_string())),
        };
        // A server that is away comes back; who wants to go takes the job away meanwhile.
        while !self.is_closing() && lock(&self.desk).pending.contains_key(key) {
            let sent = || drop(turn.take());
            match self.queue.put_in_turn(&self.batch, &key.0, key.1, &self.label, &bytes, sent) {
                Ok(_) => {
                    if let Some(pending) = lock(&self.desk).pending.get_mut(key) {
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
                    say(format_args!("{error}; once more"));
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes a folder into the queue, once for all jobs that work on it.
    fn keep(&self, folder: &Path) -> Result<Kept, Fault> {
        let fault = |error: &dyn std::fmt::Display| {
            Fault::new(
                format!("{} cannot travel: {error}", folder.display()),
                "Name a smaller folder, or a repository with git.",
            )
        };
        let path = folder.canonicalize().map_err(|error| fault(&error))?;
        let mut folders = lock(&self.folders);
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
        let pending = lock(&self.desk).pending.remove(key)?;
        if pending.by.is_none() {
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
                        say(format_args!("{error}; it is asked again and again"));
                    }
                    std::thread::sleep(PAUSE);
                }
            }
            pass_over(&mut gathering);
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
            lock(&self.folders).clear();
            let mut batch = self.announced.clone();
            batch.cancelled = self.was_cancelled();
            self.queue.announce_again(&self.batch, &batch)?;
        } else if checked.jobs.elapsed() < CHECK_JOBS {
            return Ok(());
        }
        let waits = |pending: &Pending| pending.by.is_none() && pending.is_in;
        let waiting: Vec<Key> = {
            let desk = lock(&self.desk);
            desk.pending.iter().filter(|(_, pending)| waits(pending)).map(|(key, _)| key.clone()).collect()
        };
        let gone = self.queue.vanished(&self.batch, waiting)?;
        // Whoever cancels or forgets a batch says so first, then takes its jobs out.
        let is_open = gone.is_empty() || self.queue.is_open(&self.batch)?;
        checked.jobs = Instant::now();
        if is_lost {
            gathering.restored();
            say("NATS lost what it had stored; the queue is set up again");
        }
        if !is_open {
            self.end_as_cancelled();
            return Ok(());
        }
        let mut vanished = Vec::new();
        for key in gone {
            if let Some(pending) = lock(&self.desk).pending.get_mut(&key).filter(|pending| waits(pending)) {
                pending.is_in = false;
                vanished.push((key, pending.job.clone()));
            }
        }
        vanished.sort_by_key(|(_, job)| job.line);
        let count = vanished.len();
        if let Some(orders) = &*lock(&self.orders) {
            vanished.into_iter().for_each(|order| drop(orders.send(order)));
        }
        if count > 0 {
            say(format_args!("{count} jobs had vanished from the queue and are put into it again"));
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
                lock(&self.desk).early.insert(key, gathered.payload);
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
        let asked = lock(&self.desk).pending.values().any(|pending| pending.watch.asked().is_some());
        // For as long as it takes: what is given back later is begun by nobody, either.
        let draining = self.draining.load(Ordering::Acquire);
        if !asked && !draining {
            return;
        }
        let going: Vec<Key> = lock(&self.desk)
            .pending
            .iter()
            .filter(|(_, pending)| asked || pending.by.is_none())
            .map(|(key, _)| key.clone())
            .collect();
        for key in going {
            let Some(pending) = self.take(&key) else { continue };
            // What somebody works on goes on, and its answer is there for whoever comes back.
            if pending.by.is_none()
                && let Err(error) = self.queue.withdraw(&self.batch, &key.0, key.1)
            {
                say(format_args!("{error}: a job stays in the queue"));
            }
            pending.watch.stop(Stop::Gently);
            let failure = Failure::new(FailureKind::Cancelled, "nobody waits for it any more");
            pending.over.done(Attempt::not_begun(&pending.job, failure, Where::Shared));
        }
    }
}

impl Perform for Far {
    fn perform(&self, job: &Job, _: &Watch) -> Attempt {
        let failure = Failure::new(FailureKind::Crashed, "jobs of this batch are done elsewhere");
        Attempt::not_begun(job, failure, Where::Shared)
    }

    fn begin(self: Arc<Self>, job: Job, attempt: u32, watch: Arc<Watch>, over: Over) {
        let key = (key_of(&job), attempt);
        let mut desk = lock(&self.desk);
        if let Some(payload) = desk.early.remove(&key) {
            return over.done(self::attempt(&payload, &job));
        }
        watch.waits();
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let pending = Pending { watch, over, by: None, job: job.clone(), is_in: false };
        desk.pending.insert(key.clone(), pending);
        drop(desk);
        if let Some(orders) = &*lock(&self.orders) {
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
) -> Result<HashMap<Key, Vec<u8>>, QueueError> {
    let mut early = HashMap::new();
    let there = queue.progress(batch)?.map_or(0, |progress| progress.results);
    let begin = Instant::now();
    while there > 0 && gathering.left() != Some(0) {
        let gathered = match gathering.next(Duration::from_secs(30)) {
            Ok(Some(gathered)) => gathered,
            Ok(None) if pass_over(gathering) => continue,
            Ok(None) => break,
            Err(error) if begin.elapsed() > PATIENCE => return Err(error),
            Err(_) => {
                std::thread::sleep(PAUSE);
                continue;
            }
        };
        let key = (gathered.job, gathered.attempt);
        if is_out_of_quota(&gathered.payload) {
            // That day is over, perhaps: the same attempt once more.
            queue.forget_result(batch, &key.0, key.1)?;
        } else if !known.contains(&key) {
            early.insert(key, gathered.payload);
        }
    }
    Ok(early)
}

/// Says what came that is no result; whether there was anything.
fn pass_over(gathering: &mut Gathering) -> bool {
    let refused = gathering.refused();
    for Refused { subject, reason, .. } in &refused {
        say(format_args!("passed over {}: {}", one_line(subject, 120), one_line(reason, 300)));
    }
    !refused.is_empty()
}

fn is_out_of_quota(payload: &[u8]) -> bool {
    let answer: Option<Answer> = serde_json::from_slice(payload).ok();
    let failure = answer.as_ref().and_then(|answer| answer.attempt.result.outcome.failure.as_ref());
    failure.is_some_and(|failure| failure.daily_quota)
}

/// An answer is one only for the job that was asked.
fn attempt(payload: &[u8], job: &Job) -> Attempt {
    let answer = match payload.is_empty() {
        true => Err("it is not in the queue any more".to_owned()),
        false => Answer::read(payload, &key_of(job)),
    };
    answer.unwrap_or_else(|why| {
        let message = format!("the worker's answer is no good: {why}");
        Attempt::not_begun(job, Failure::new(FailureKind::InvalidResponse, message), Where::Shared)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
