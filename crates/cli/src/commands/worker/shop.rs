//! A worker at work: some take jobs and do them, one looks who has to stop.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use alhena::agent::dirs::Dirs;
use alhena::agent::env::Environment;
use alhena::batch::local::{Local, Way};
use alhena::batch::meaning::{Fault, Meaning};
use alhena::batch::perform::{Done as Ended, Perform, Stop, Watch, Where};
use alhena::{Approval, Failure, FailureKind, PoolOptions, Request, Status};
use alhena_queue::{Cancelled, Delivery, Held, Label, Layout, Name, Queue, QueueError, Worker};

use super::Args;
use super::hold;
use super::told::{Told, Which};
use crate::command_error::{CommandError, Done};
use crate::commands::batch::OptionsOfRun;
use crate::commands::run::find;
use crate::far::{Answer, Folders, Gate, Letter, OptionsOfWorker};
use crate::nats;
use crate::signals::Interrupts;

/// So long is waited for a job before it is asked again.
const WAIT: Duration = Duration::from_secs(20);
/// How often it is looked whether a batch was cancelled, and whether it is time to go.
const LOOK: Duration = Duration::from_millis(200);
/// After a server that gives nothing.
const PAUSE: Duration = Duration::from_secs(1);

/// What to do about a job that is lost on its way.
const AGAIN: &str = "Put it in again, with `alhena batch --again failed`.";

/// How far a worker is.
const GOING: u8 = 0;
const DRAINING: u8 = 1;
const STOPPING: u8 = 2;

/// Everything that those who work share.
struct Shop {
    queue: Queue,
    name: String,
    quota: String,
    gate: Gate,
    folders: Folders,
    local: RwLock<Option<Local>>,
    cancelled: Cancelled,
    /// Batches that were asked after.
    seen: Mutex<HashSet<String>>,
    told: Told,
    phase: AtomicU8,
    running: Mutex<HashMap<u64, Running>>,
    next: AtomicU64,
    /// When the last job was there.
    last: Mutex<Instant>,
    /// Why no worker on this machine can work.
    broken: Mutex<Option<Failure>>,
}

#[derive(Clone)]
struct Running {
    batch: Arc<str>,
    watch: Arc<Watch>,
    /// It was stopped because its batch was cancelled.
    cancelled: Arc<AtomicBool>,
}

pub fn open(args: Args) -> Done {
    let interrupts = Arc::new(Interrupts::catch());
    let labels: Vec<Label> =
        args.label.iter().map(|label| label.parse()).collect::<Result<_, _>>().map_err(nats::wrong)?;
    let root = root(&args.root)?;
    let meaning = Arc::new(OptionsOfRun::new(interrupts.clone(), args.quiet || args.json));
    let environment = Environment::of_process();
    let mut request = Request::new("");
    let gemini = find(args.gemini.clone(), &mut request, &environment, args.quiet, &interrupts)?;
    // A signal ends whoever looks for it, and must not end jobs that are to finish.
    meaning.knows(gemini.clone());
    let jobs = args.jobs.map_or_else(|| PoolOptions::default().processes, usize::from);
    let (queue, address) = args.server.connect(args.nats.as_deref(), Layout::default().lease(args.lease))?;
    let dirs = Dirs::of(&environment).ok_or_else(|| {
        CommandError::usage("there is no home directory to work with", "Set HOME, or ALHENA_HOME.")
    })?;
    let folders = Folders::new(&dirs.cache.join("workers")).map_err(|error| {
        CommandError::failed(format!("no place for folders: {error}"), "Make room for it.")
    })?;
    // What a run leaves whose keeper and guard are killed together comes to us.
    let _by_mark_only = alhena::agent::supervise::adoption::every_child_is_a_runs();
    let meaning: Arc<dyn Meaning> = Arc::new(OptionsOfWorker::new(meaning));
    let local = Local::new(meaning, Way::from(args.transport), jobs)?;
    let shop = Arc::new(Shop {
        cancelled: queue.watch_cancelled(),
        queue,
        name: args.name.clone().unwrap_or_else(own_name),
        quota: args.quota.clone(),
        gate: Gate { root, most: args.max_approval, gemini: gemini.path.clone() },
        folders,
        local: RwLock::new(Some(local)),
        seen: Mutex::default(),
        told: Told { json: args.json, quiet: args.quiet },
        phase: AtomicU8::new(GOING),
        running: Mutex::default(),
        next: AtomicU64::new(0),
        last: Mutex::new(Instant::now()),
        broken: Mutex::default(),
    });
    let told = shop.clone();
    interrupts.tell(move |count| told.interrupted(count));
    shop.told.say(&format!(
        "{} takes {jobs} jobs at once from {}, below {}, up to approval {}",
        shop.name,
        address.shown(),
        shop.gate.root.display(),
        name_of(args.max_approval),
    ));
    for _ in 0..jobs {
        let worker = shop.queue.worker(&labels).map_err(nats::wrong)?;
        let shop = shop.clone();
        std::thread::spawn(move || shop.take_all(worker));
    }
    shop.watch_over(args.idle_exit);
    shop.close()
}

fn name_of(approval: Approval) -> &'static str {
    approval.names().first().copied().unwrap_or_default()
}

fn root(given: &std::path::Path) -> Result<PathBuf, CommandError> {
    let wrong = |why: String| {
        CommandError::usage(format!("{}: {why}", given.display()), "Give --root a directory that exists.")
    };
    let root = given.canonicalize().map_err(|error| wrong(error.to_string()))?;
    match (root.is_dir(), root.to_str()) {
        (true, Some(_)) => Ok(root),
        (false, _) => Err(wrong("it is no directory".to_owned())),
        (true, None) => Err(wrong("its name is no text".to_owned())),
    }
}

fn own_name() -> String {
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{machine}-{}", std::process::id())
}

impl Shop {
    fn phase(&self) -> u8 {
        self.phase.load(Ordering::Acquire)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once: no more jobs. Twice: they are given to others.
    fn interrupted(&self, count: u32) {
        let (phase, how) = match count {
            1 => (DRAINING, None),
            2 => (STOPPING, Some(Stop::Gently)),
            _ => (STOPPING, Some(Stop::AtOnce)),
        };
        self.phase.fetch_max(phase, Ordering::AcqRel);
        match how {
            None => {
                self.told.say("no more jobs are taken; those that run finish. Once more gives them back.")
            }
            Some(how) => self.running().values().for_each(|running| running.watch.stop(how)),
        }
    }

    /// Until nothing runs and nothing more is to be done.
    fn watch_over(&self, idle: Option<Duration>) {
        loop {
            std::thread::sleep(LOOK);
            self.stop_cancelled();
            let running = self.running();
            let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
            let is_idle = running.is_empty() && idle.is_some_and(|idle| last >= idle);
            if running.is_empty() && (self.phase() != GOING || is_idle) {
                // Whoever gets a job from now on gives it back.
                self.phase.fetch_max(DRAINING, Ordering::AcqRel);
                return;
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

    fn close(&self) -> Done {
        let local = self.local.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(local) = local {
            local.close();
        }
        self.folders.close();
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(failure) = broken {
            let code = failure.kind.exit_status();
            return Err(CommandError::failed(failure.message, failure.hint).exit(code));
        }
        Ok(match self.phase() {
            STOPPING => ExitCode::from(FailureKind::Cancelled.exit_status()),
            _ => ExitCode::SUCCESS,
        })
    }

    fn take_all(&self, mut worker: Worker) {
        let mut lost = false;
        while self.phase() == GOING {
            let held = worker.hold(WAIT);
            for refused in worker.refused() {
                self.told.refused(&refused.subject, &refused.reason);
            }
            match held.and_then(|held| held.map_or(Ok(()), |held| self.take(held))) {
                Ok(()) => {}
                Err(error) => {
                    if !std::mem::replace(&mut lost, true) {
                        self.told.complain(&error.to_string(), error.hint().unwrap_or_default());
                    }
                    std::thread::sleep(PAUSE);
                    continue;
                }
            }
            if std::mem::take(&mut lost) {
                self.told.say("the server answers again");
            }
        }
    }

    /// One job, from its delivery to its result.
    fn take(&self, held: Held) -> Result<(), QueueError> {
        // Before anything else: nobody goes home meanwhile.
        let (number, running) = self.register(held.batch());
        let done = held.open().map(|delivery| self.work_on(delivery, &running));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.running().remove(&number);
        done
    }

    fn work_on(&self, delivery: Delivery, running: &Running) {
        let batch = delivery.batch().to_owned();
        let read = match delivery.lost() {
            Some(why) => Err(Fault::new(format!("what the job says cannot be had: {why}"), AGAIN)),
            None => Letter::read(delivery.payload()),
        };
        let id = read.as_ref().map_or(delivery.job(), |letter| &letter.id).to_owned();
        let which = Which { batch: batch.clone(), id, attempt: delivery.attempt() };
        match self.is_cancelled(&batch) {
            Some(false) => {}
            Some(true) => {
                self.told.left(&which, "dropped", "its batch was cancelled");
                return self.note(delivery.discard());
            }
            // It may have been opened again: then it comes once more when the lease is over.
            None => {
                return self.told.left(&which, "returned", "its batch was cancelled, and nobody says more");
            }
        }
        let letter = match read {
            Ok(letter) => letter,
            Err(fault) => return self.refuse(delivery, fault, &which),
        };
        if self.phase() != GOING {
            self.told.left(&which, "returned", "this worker ends");
            self.note(delivery.give_back());
        } else if delivery.is_exhausted() {
            self.bury(delivery, &letter, &which);
        } else {
            self.told.began(&which);
            delivery.tell_begun(&self.name);
            let begin = Instant::now();
            let ended = match self.perform(&letter, &running.watch) {
                Ok(ended) => ended,
                Err(error) => {
                    self.told.left(&which, "returned", &error.to_string());
                    return self.note(delivery.give_back());
                }
            };
            let ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
            let was_cancelled = running.cancelled.load(Ordering::Acquire);
            self.end(delivery, &letter, ended, &which, (ms, was_cancelled));
        }
    }

    fn register(&self, batch: &str) -> (u64, Running) {
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        let watch = Arc::new(Watch::unheard());
        let running = Running { batch: batch.into(), watch, cancelled: Arc::default() };
        self.running().insert(number, running.clone());
        (number, running)
    }

    /// What was cancelled just before this worker came may not have been heard yet, and neither what was opened again since. None
    /// if it was cancelled, and nobody says whether it is now.
    fn is_cancelled(&self, batch: &str) -> Option<bool> {
        let heard = self.cancelled.has(batch);
        let is_new = self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(batch.to_owned());
        match (heard || is_new).then(|| self.ask_cancelled(batch)) {
            Some(None) if heard => None,
            asked => Some(asked.flatten().unwrap_or_default()),
        }
    }

    fn ask_cancelled(&self, batch: &str) -> Option<bool> {
        self.queue.is_cancelled(&batch.parse::<Name>().ok()?)
    }

    /// Does it; an error if the server did not give what it takes, which says nothing about the job.
    fn perform(&self, letter: &Letter, watch: &Watch) -> Result<Ended, QueueError> {
        let (mut folder, mut away) = (None, None);
        let unpack = |name: &str| {
            let fetch = || {
                self.queue.file(name).map_err(|error| {
                    let told = io::Error::other(error.to_string());
                    away = Some(error).filter(|error| matches!(error, QueueError::Server { .. }));
                    told
                })
            };
            let unpacked = self
                .folders
                .get(name, fetch)
                .map_err(|error| Fault::new(format!("the folder of the job cannot be had: {error}"), ""))?;
            let path = unpacked.path().to_owned();
            folder = Some(unpacked);
            Ok(path)
        };
        let job = match self.gate.admit(letter, unpack) {
            Ok(job) => job,
            Err(Fault { message, hint }) => {
                let failure = Failure::new(FailureKind::Input, message).with_hint(hint);
                return away.map_or_else(|| Ok(Ended::not_begun(failure, Where::Shared)), Err);
            }
        };
        let model = job.options.get("model").and_then(serde_json::Value::as_str);
        let clock = hold::clock(&self.quota, model);
        hold::wait(&self.queue, &clock, watch);
        let local = self.local.read().unwrap_or_else(PoisonError::into_inner);
        let Some(local) = local.as_ref().filter(|_| watch.asked().is_none()) else {
            let failure = Failure::new(FailureKind::Cancelled, "the worker ends");
            return Ok(Ended::not_begun(failure, Where::Shared));
        };
        let ended = local.perform(&job, watch);
        hold::tell(&self.queue, &clock, &ended.outcome);
        drop(folder);
        Ok(ended)
    }

    fn end(
        &self,
        delivery: Delivery,
        letter: &Letter,
        ended: Ended,
        which: &Which,
        (ms, was_cancelled): (u64, bool),
    ) {
        let was_stopped = ended.outcome.status == Status::Cancelled;
        if was_stopped && was_cancelled {
            return match self.ask_cancelled(&which.batch) {
                Some(true) => {
                    self.told.left(which, "dropped", "its batch was cancelled");
                    self.note(delivery.discard());
                }
                // Whoever opened it again waits for a result. Of a batch that is forgotten nobody else gets anything.
                Some(false) | None => {
                    self.told.left(which, "returned", "its batch was cancelled");
                    self.note(delivery.give_back());
                }
            };
        }
        if was_stopped && self.phase() != GOING {
            self.told.left(which, "returned", "this worker ends");
            return self.note(delivery.give_back());
        }
        if let Some(failure) = ended.outcome.failure.as_ref().filter(|failure| is_ours(failure.kind, letter))
        {
            // Every other job would fail here the same way: better nobody takes them than this one.
            self.told.left(which, "returned", &failure.message);
            *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.clone());
            self.phase.fetch_max(DRAINING, Ordering::AcqRel);
            return self.note(delivery.give_back());
        }
        self.told.done(which, &ended.outcome, ms);
        self.answer(delivery, Answer::of(letter, &self.name, ended), Delivery::finish);
    }

    /// A letter that nobody here can read: whoever waits for its answer is told.
    fn refuse(&self, delivery: Delivery, Fault { message, hint }: Fault, which: &Which) {
        self.told.left(which, "refused", &message);
        let failure = Failure::new(FailureKind::Input, message).with_hint(hint);
        let (letter, ended) = (Letter::unread(delivery.job()), Ended::not_begun(failure, Where::Shared));
        self.answer(delivery, Answer::of(&letter, &self.name, ended), Delivery::finish);
    }

    /// A job that ended every worker before: nobody else has to.
    fn bury(&self, delivery: Delivery, letter: &Letter, which: &Which) {
        let message = format!("{} workers were given it, and none came back", delivery.times() - 1);
        self.told.left(which, "buried", &message);
        let failure = Failure::new(FailureKind::Crashed, message)
            .with_hint("It is kept in the stream alhena-dead; try it alone with `alhena run`.");
        let ended = Ended::not_begun(failure, Where::Nowhere);
        self.answer(delivery, Answer::of(letter, &self.name, ended), Delivery::bury);
    }

    fn answer(
        &self,
        delivery: Delivery,
        answer: Answer,
        how: fn(Delivery, &[u8]) -> Result<bool, alhena_queue::QueueError>,
    ) {
        let sent = serde_json::to_vec(&answer).map_err(|error| error.to_string());
        let sent = sent.and_then(|bytes| how(delivery, &bytes).map_err(|error| error.to_string()));
        if let Err(error) = sent {
            self.told.complain(&format!("a result was not stored, and the job goes to another: {error}"), "");
        }
    }

    fn note(&self, done: Result<(), alhena_queue::QueueError>) {
        if let Err(error) = done {
            self.told.complain(&error.to_string(), error.hint().unwrap_or_default());
        }
    }
}

/// Whether it is this machine that is at fault, and no job can do anything about it.
fn is_ours(kind: FailureKind, letter: &Letter) -> bool {
    match kind {
        FailureKind::DiskFull => true,
        // Which CLI is missing: that of all jobs, or one that this job asked for?
        FailureKind::NotInstalled => !letter.is_offline(),
        _ => false,
    }
}
