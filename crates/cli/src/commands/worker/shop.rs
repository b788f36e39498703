//! A worker at work: some take jobs and do them, one looks who has to stop.

mod job;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use alhena::agent::dirs::Dirs;
use alhena::agent::env::Environment;
use alhena::batch::local::{Local, Way};
use alhena::batch::meaning::Meaning;
use alhena::batch::perform::{Stop, Watch};
use alhena::{Failure, FailureKind, PoolOptions, Request};
use alhena_queue::{Cancelled, Held, Label, Layout, Name, Queue, QueueError, Worker};

use super::Args;
use super::told::Told;
use crate::command_error::{CommandError, Done};
use crate::commands::batch::OptionsOfRun;
use crate::commands::run::find;
use crate::far::{Folders, Gate, OptionsOfWorker};
use crate::nats;
use crate::signals::Interrupts;

/// So long is waited for a job before it is asked again.
const WAIT: Duration = Duration::from_secs(20);
/// How often it is looked whether a batch was cancelled, and whether it is time to go.
const LOOK: Duration = Duration::from_millis(200);
/// After a server that gives nothing.
const PAUSE: Duration = Duration::from_secs(1);

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
        args.max_approval,
    ));
    for _ in 0..jobs {
        let worker = shop.queue.worker(&labels).map_err(nats::wrong)?;
        let shop = shop.clone();
        std::thread::spawn(move || shop.take_all(worker));
    }
    shop.watch_over(args.idle_exit);
    shop.close()
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
}
