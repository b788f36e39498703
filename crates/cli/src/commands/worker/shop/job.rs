//! One job at a worker: from its letter to its answer, or back into the queue.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Instant;

use alhena::batch::meaning::Fault;
use alhena::batch::perform::{Attempt, Perform, Watch, Where};
use alhena::batch::queue::{Delivery, QueueError};
use alhena::{Failure, FailureKind, Status};

use super::{DRAINING, GOING, Running, Shop};
use crate::commands::worker::hold;
use crate::commands::worker::told::Which;
use crate::far::{Answer, Letter};

/// What to do about a job that is lost on its way.
const AGAIN: &str = "Put it in again, with `alhena batch --again failed`.";

impl Shop {
    pub(super) fn work_on(&self, delivery: Delivery, running: &Running) {
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
                // Another may get it. What does not come then either is told.
                Err(error) if delivery.times() == 1 => {
                    self.told.left(&which, "returned", &error.to_string());
                    return self.note(delivery.give_back());
                }
                Err(error) => {
                    let message = format!("the folder of the job cannot be had: {error}");
                    letter
                        .not_begun(Failure::new(FailureKind::Input, message).with_hint(AGAIN), Where::Shared)
                }
            };
            let ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.end(delivery, &letter, ended, &which, running, ms);
        }
    }

    /// Does it; an error if the server did not give what it takes, which says nothing about the job.
    fn perform(&self, letter: &Letter, watch: &Watch) -> Result<Attempt, QueueError> {
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
                return away.map_or_else(|| Ok(letter.not_begun(failure, Where::Shared)), Err);
            }
        };
        let model = job.options.get("model").and_then(serde_json::Value::as_str);
        let clock = hold::clock(&self.quota, model);
        hold::wait(&self.queue, &clock, watch, |text| self.told.say(text));
        let local = self.local.read().unwrap_or_else(PoisonError::into_inner);
        let Some(local) = local.as_ref().filter(|_| watch.asked().is_none()) else {
            let failure = Failure::new(FailureKind::Cancelled, "the worker ends");
            return Ok(letter.not_begun(failure, Where::Shared));
        };
        let ended = local.perform(&job, watch);
        hold::tell(&self.queue, &clock, &ended.result.outcome);
        drop(folder);
        Ok(ended)
    }

    fn end(
        &self,
        delivery: Delivery,
        letter: &Letter,
        ended: Attempt,
        which: &Which,
        running: &Running,
        ms: u64,
    ) {
        let outcome = &ended.result.outcome;
        let was_stopped = outcome.status == Status::Cancelled;
        if was_stopped && running.cancelled.load(Ordering::Acquire) {
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
        if let Some(failure) = outcome.failure.as_ref().filter(|failure| is_ours(failure.kind, letter)) {
            // Every other job would fail here the same way: better nobody takes them than this one.
            self.told.left(which, "returned", &failure.message);
            *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure.clone());
            self.phase.fetch_max(DRAINING, Ordering::AcqRel);
            return self.note(delivery.give_back());
        }
        self.told.done(which, outcome, ms);
        self.answer(delivery, letter, ended, Delivery::finish);
    }

    /// A letter that nobody here can read: whoever waits for its answer is told.
    fn refuse(&self, delivery: Delivery, Fault { message, hint }: Fault, which: &Which) {
        self.told.left(which, "refused", &message);
        let failure = Failure::new(FailureKind::Input, message).with_hint(hint);
        let letter = Letter::unread(delivery.job());
        self.answer(delivery, &letter, letter.not_begun(failure, Where::Shared), Delivery::finish);
    }

    /// A job that ended every worker before: nobody else has to.
    fn bury(&self, delivery: Delivery, letter: &Letter, which: &Which) {
        let message = format!("{} workers were given it, and none came back", delivery.times() - 1);
        self.told.left(which, "buried", &message);
        let failure = Failure::new(FailureKind::Crashed, message)
            .with_hint("It is kept in the stream alhena-dead; try it alone with `alhena run`.");
        self.answer(delivery, letter, letter.not_begun(failure, Where::Nowhere), Delivery::bury);
    }

    fn answer(
        &self,
        delivery: Delivery,
        letter: &Letter,
        ended: Attempt,
        how: fn(Delivery, &[u8]) -> Result<bool, QueueError>,
    ) {
        let answer = Answer::of(letter, &self.name, delivery.attempt(), ended);
        let sent = serde_json::to_vec(&answer).map_err(|error| error.to_string());
        let sent = sent.and_then(|bytes| how(delivery, &bytes).map_err(|error| error.to_string()));
        if let Err(error) = sent {
            self.told.complain(&format!("a result was not stored, and the job goes to another: {error}"), "");
        }
    }

    fn note(&self, done: Result<(), QueueError>) {
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
