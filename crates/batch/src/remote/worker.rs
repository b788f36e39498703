//! A worker: some threads take jobs from the queue and run them here, one looks which have to stop.

mod job;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alhena_model::{Failure, Outcome};
use parking_lot::{Mutex, MutexGuard, RwLock};

use super::admission::Admission;
use super::folder::Folders;
use crate::local::Local;
use crate::perform::{Stop, Watch};
use crate::queue::{Cancelled, Held, JobConsumer, Label, Name, Queue, QueueError, Refused};

/// How long a thread waits for a job before it asks again.
const WAIT: Duration = Duration::from_secs(20);
/// How often the worker checks whether a batch was cancelled, and whether it is time to end.
const LOOK: Duration = Duration::from_millis(200);
/// The pause after an error of the server.
const PAUSE: Duration = Duration::from_secs(1);

/// The phases of a worker, in their order.
const GOING: u8 = 0;
const DRAINING: u8 = 1;
const STOPPING: u8 = 2;

/// The parts of a worker.
pub struct WorkerOptions {
    /// The queue.
    pub queue: Queue,
    /// The worker's name in results.
    pub name: String,
    /// The name of its quota: workers with the same one share rate limits.
    pub quota: String,
    /// Decides which jobs may run here.
    pub admission: Admission,
    /// The folders that came with jobs.
    pub folders: Folders,
    /// Runs the jobs.
    pub local: Local,
    /// Receives what happens, on any thread.
    pub tell: Box<dyn Fn(&WorkerEvent<'_>) + Send + Sync>,
}

/// Takes jobs from a queue and runs them here.
pub struct Worker {
    queue: Queue,
    name: String,
    quota: String,
    admission: Admission,
    folders: Folders,
    local: RwLock<Option<Local>>,
    tell: Box<dyn Fn(&WorkerEvent<'_>) + Send + Sync>,
    cancelled: Cancelled,
    /// Batches that were looked up on the server.
    seen: Mutex<HashSet<String>>,
    phase: AtomicU8,
    running: Mutex<HashMap<u64, Running>>,
    next: AtomicU64,
    /// When the last job ended.
    last: Mutex<Instant>,
    /// Why no worker on this machine can work.
    broken: Mutex<Option<Failure>>,
}

#[derive(Clone)]
struct Running {
    batch: Arc<str>,
    watch: Arc<Watch>,
    /// Whether it was stopped because its batch was cancelled.
    cancelled: Arc<AtomicBool>,
}

/// A job that a worker was given.
#[derive(Clone, Debug)]
pub struct GivenJob {
    /// The batch.
    pub batch: String,
    /// The job's id.
    pub id: String,
    /// The number of the attempt.
    pub attempt: u32,
}

/// Something that happened at a worker.
#[derive(Debug)]
pub enum WorkerEvent<'a> {
    /// A job began.
    Began(&'a GivenJob),
    /// A job ended, and its result is being stored.
    Done(&'a GivenJob, &'a Outcome, Duration),
    /// A job was not run to its end here, with the reason.
    Left(&'a GivenJob, Left, &'a str),
    /// A message that is no job was taken out of the queue.
    Refused(&'a Refused),
    /// A job waits for a rate limit that another worker was told.
    RateLimited {
        /// The limit.
        clock: &'a str,
        /// How long it still holds.
        left: Duration,
    },
    /// The server answers again.
    Reconnected,
    /// The server refused something, or does not answer.
    Failed(&'a QueueError),
    /// A result was not stored, with the reason. The job goes to another worker.
    ResultLost(&'a str),
}

/// How a job left a worker without being run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nobody waits for it.
    Dropped,
    /// Another worker gets it.
    Returned,
    /// It cannot be read.
    Refused,
    /// It ended too many workers.
    Buried,
}

/// How a worker ended.
#[derive(Debug)]
pub enum WorkerEnd {
    /// Its jobs were done.
    Drained,
    /// Its jobs were stopped and returned.
    Stopped,
    /// No job can run on this machine.
    Broken(Box<Failure>),
}

impl Worker {
    /// Makes a worker. It takes no job before [`run`](Self::run).
    pub fn new(options: WorkerOptions) -> Arc<Self> {
        let WorkerOptions { queue, name, quota, admission, folders, local, tell } = options;
        Arc::new(Self {
            cancelled: queue.watch_cancelled(),
            queue,
            name,
            quota,
            admission,
            folders,
            local: RwLock::new(Some(local)),
            tell,
            seen: Mutex::default(),
            phase: AtomicU8::new(GOING),
            running: Mutex::default(),
            next: AtomicU64::new(0),
            last: Mutex::new(Instant::now()),
            broken: Mutex::default(),
        })
    }

    /// Runs `jobs` jobs at once, until it is drained or stopped or had no job for the time `idle`.
    pub fn run(
        self: &Arc<Self>,
        jobs: usize,
        labels: &[Label],
        idle: Option<Duration>,
    ) -> Result<WorkerEnd, QueueError> {
        for _ in 0..jobs {
            let (worker, consumer) = (self.clone(), self.queue.worker(labels)?);
            std::thread::spawn(move || worker.take_all(consumer));
        }
        self.watch_over(idle);
        Ok(self.close())
    }

    /// Takes no more jobs. Those that run finish.
    pub fn drain(&self) {
        self.phase.fetch_max(DRAINING, Ordering::AcqRel);
    }

    /// Stops the jobs that run and returns them to the queue.
    pub fn stop(&self, how: Stop) {
        self.phase.fetch_max(STOPPING, Ordering::AcqRel);
        self.running().values().for_each(|running| running.watch.stop(how));
    }

    fn phase(&self) -> u8 {
        self.phase.load(Ordering::Acquire)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.running.lock()
    }

    /// Waits until nothing runs and nothing more is to be done.
    fn watch_over(&self, idle: Option<Duration>) {
        loop {
            std::thread::sleep(LOOK);
            self.stop_cancelled();
            let running = self.running();
            let last = self.last.lock().elapsed();
            let is_idle = running.is_empty() && idle.is_some_and(|idle| last >= idle);
            if running.is_empty() && (self.phase() != GOING || is_idle) {
                // A thread that gets a job from now on returns it.
                return self.drain();
            }
        }
    }

    fn stop_cancelled(&self) {
        let goes_on = |running: &&Running| !running.cancelled.load(Ordering::Acquire);
        let mut heard: HashMap<Arc<str>, Vec<Running>> = HashMap::new();
        for running in self.running().values().filter(goes_on).filter(|one| self.cancelled.has(&one.batch)) {
            heard.entry(running.batch.clone()).or_default().push(running.clone());
        }
        for (_, all) in heard.iter().filter(|(batch, _)| self.is_cancelled(batch) != Some(false)) {
            for running in all {
                running.cancelled.store(true, Ordering::Release);
                running.watch.stop(Stop::Gently);
            }
        }
    }

    fn close(&self) -> WorkerEnd {
        let local = self.local.write().take();
        if let Some(local) = local {
            local.close();
        }
        self.folders.close();
        match (self.broken.lock().take(), self.phase()) {
            (Some(failure), _) => WorkerEnd::Broken(Box::new(failure)),
            (None, STOPPING) => WorkerEnd::Stopped,
            (None, _) => WorkerEnd::Drained,
        }
    }

    fn take_all(&self, mut consumer: JobConsumer) {
        let mut lost = false;
        while self.phase() == GOING {
            let held = consumer.hold(WAIT);
            for refused in consumer.refused() {
                (self.tell)(&WorkerEvent::Refused(&refused));
            }
            match held.and_then(|held| held.map_or(Ok(()), |held| self.take(held))) {
                Ok(()) => {}
                Err(error) => {
                    if !std::mem::replace(&mut lost, true) {
                        (self.tell)(&WorkerEvent::Failed(&error));
                    }
                    std::thread::sleep(PAUSE);
                    continue;
                }
            }
            if std::mem::take(&mut lost) {
                (self.tell)(&WorkerEvent::Reconnected);
            }
        }
    }

    /// One job, from its delivery to its result.
    fn take(&self, held: Held) -> Result<(), QueueError> {
        // Registered first, so that the worker does not end meanwhile.
        let (number, running) = self.register(held.batch());
        let done = held.open().map(|delivery| self.work_on(delivery, &running));
        *self.last.lock() = Instant::now();
        self.running().remove(&number);
        done
    }

    fn register(&self, batch: &str) -> (u64, Running) {
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        let watch = Arc::new(Watch::unheard());
        let running = Running { batch: batch.into(), watch, cancelled: Arc::default() };
        self.running().insert(number, running.clone());
        (number, running)
    }

    /// Returns whether a batch is cancelled. A batch that was cancelled or opened again a moment ago may not have been heard of yet, so
    /// the server is asked. None if the batch was cancelled and the server does not answer.
    fn is_cancelled(&self, batch: &str) -> Option<bool> {
        let heard = self.cancelled.has(batch);
        let is_new = self.seen.lock().insert(batch.to_owned());
        match (heard || is_new).then(|| self.ask_cancelled(batch)) {
            Some(None) if heard => None,
            asked => Some(asked.flatten().unwrap_or_default()),
        }
    }

    fn ask_cancelled(&self, batch: &str) -> Option<bool> {
        self.queue.is_cancelled(&batch.parse::<Name>().ok()?)
    }
}
