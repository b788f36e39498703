//! One job at a worker: from its envelope to its result, or back into the queue.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use alhena_model::{Failure, FailureKind, SettingError, Status};

use super::{GOING, GivenJob, Left, Running, Worker, WorkerEvent};
use crate::perform::{Attempt, Perform, Watch, Where};
use crate::queue::{Delivery, QueueError};
use crate::remote::envelope::{JobEnvelope, ResultEnvelope, unread};
use crate::remote::rate_limit;

/// The hint for a job that is lost on its way.
const AGAIN: &str = "Put it in again: have failed jobs done again.";

impl Worker {
    pub(super) fn work_on(&self, delivery: Delivery, running: &Running) {
        let batch = delivery.batch().to_owned();
        let read = match delivery.lost() {
            Some(why) => Err(SettingError::new(format!("what the job says cannot be had: {why}"), AGAIN)),
            None => JobEnvelope::read(delivery.payload()),
        };
        let id = read.as_ref().map_or(delivery.job(), |envelope| &envelope.id).to_owned();
        let given = GivenJob { batch: batch.clone(), id, attempt: delivery.attempt() };
        match self.is_cancelled(&batch) {
            Some(false) => {}
            Some(true) => {
                self.left(&given, Left::Dropped, "its batch was cancelled");
                return self.note(delivery.discard());
            }
            // It may have been opened again: then it comes once more when the lease is over.
            None => {
                return self.left(&given, Left::Returned, "its batch was cancelled, and nobody says more");
            }
        }
        let envelope = match read {
            Ok(envelope) => envelope,
            Err(fault) => return self.refuse(delivery, fault, &given),
        };
        if self.phase() != GOING {
            self.left(&given, Left::Returned, "this worker ends");
            self.note(delivery.give_back());
        } else if delivery.is_exhausted() {
            self.bury(delivery, &envelope, &given);
        } else {
            (self.tell)(&WorkerEvent::Began(&given));
            delivery.tell_begun(&self.name);
            let begin = Instant::now();
            let ended = match self.perform(&envelope, &running.watch) {
                Ok(ended) => ended,
                // Another worker may get the folder. If the next delivery fails as well, that is the result.
                Err(error) if delivery.times() == 1 => {
                    self.left(&given, Left::Returned, &error.to_string());
                    return self.note(delivery.give_back());
                }
                Err(error) => {
                    let message = format!("the folder of the job cannot be had: {error}");
                    envelope
                        .not_begun(Failure::new(FailureKind::Input, message).with_hint(AGAIN), Where::Shared)
                }
            };
            self.end(delivery, &envelope, ended, &given, running, begin.elapsed());
        }
    }

    /// Runs a job. Fails if the server does not give what the job needs, which says nothing about the job.
    fn perform(&self, envelope: &JobEnvelope, watch: &Watch) -> Result<Attempt, QueueError> {
        let (mut folder, mut away) = (None, None);
        let unpack = |name: &str| {
            let fetch = || {
                self.queue.file(name).map_err(|error| {
                    let told = io::Error::other(error.to_string());
                    away = Some(error).filter(|error| matches!(error, QueueError::Server { .. }));
                    told
                })
            };
            let unpacked = self.folders.get(name, fetch).map_err(|error| {
                SettingError::new(format!("the folder of the job cannot be had: {error}"), "")
            })?;
            let path = unpacked.path().to_owned();
            folder = Some(unpacked);
            Ok(path)
        };
        let job = match self.admission.admit(envelope, unpack) {
            Ok(job) => job,
            Err(error) => {
                let not_begun = || envelope.not_begun(error.into(), Where::Shared);
                return away.map_or_else(|| Ok(not_begun()), Err);
            }
        };
        let clock = &rate_limit::clock(&self.quota, job.options.model.as_deref());
        rate_limit::wait(&self.queue, clock, watch, |left| {
            (self.tell)(&WorkerEvent::RateLimited { clock, left });
        });
        let local = self.local.read();
        let Some(local) = local.as_ref().filter(|_| watch.asked().is_none()) else {
            let failure = Failure::new(FailureKind::Cancelled, "the worker ends");
            return Ok(envelope.not_begun(failure, Where::Shared));
        };
        let ended = local.perform(&job, watch);
        rate_limit::announce(&self.queue, clock, &ended.result.outcome);
        drop(folder);
        Ok(ended)
    }

    fn end(
        &self,
        delivery: Delivery,
        envelope: &JobEnvelope,
        ended: Attempt,
        given: &GivenJob,
        running: &Running,
        took: Duration,
    ) {
        let outcome = &ended.result.outcome;
        let was_stopped = outcome.status == Status::Cancelled;
        if was_stopped && running.cancelled.load(Ordering::Acquire) {
            return match self.ask_cancelled(&given.batch) {
                Some(true) => {
                    self.left(given, Left::Dropped, "its batch was cancelled");
                    self.note(delivery.discard());
                }
                // The submitter that opened it again waits for a result. Jobs of a batch that is forgotten go to nobody else.
                Some(false) | None => {
                    self.left(given, Left::Returned, "its batch was cancelled");
                    self.note(delivery.give_back());
                }
            };
        }
        if was_stopped && self.phase() != GOING {
            self.left(given, Left::Returned, "this worker ends");
            return self.note(delivery.give_back());
        }
        if let Some(failure) = outcome.failure.as_ref().filter(|failure| is_ours(failure.kind, envelope)) {
            // Every other job would fail here the same way, so this worker takes no more.
            self.left(given, Left::Returned, &failure.message);
            *self.broken.lock() = Some(failure.clone());
            self.drain();
            return self.note(delivery.give_back());
        }
        (self.tell)(&WorkerEvent::Done(given, outcome, took));
        self.answer(delivery, &envelope.left_out, ended, Delivery::finish);
    }

    /// Stores a result for an envelope that cannot be read.
    fn refuse(&self, delivery: Delivery, error: SettingError, given: &GivenJob) {
        self.left(given, Left::Refused, &error.to_string());
        let attempt = unread(delivery.job(), error.into());
        self.answer(delivery, &[], attempt, Delivery::finish);
    }

    /// Puts aside a job that ended too many workers.
    fn bury(&self, delivery: Delivery, envelope: &JobEnvelope, given: &GivenJob) {
        let message = format!("{} workers were given it, and none came back", delivery.times() - 1);
        self.left(given, Left::Buried, &message);
        let failure = Failure::new(FailureKind::Crashed, message)
            .with_hint("It is kept in the stream alhena-dead; try it alone with `alhena run`.");
        let attempt = envelope.not_begun(failure, Where::Nowhere);
        self.answer(delivery, &envelope.left_out, attempt, Delivery::bury);
    }

    fn answer(
        &self,
        delivery: Delivery,
        left_out: &[String],
        ended: Attempt,
        store: fn(Delivery, &[u8]) -> Result<bool, QueueError>,
    ) {
        let answer = ResultEnvelope::new(left_out, &self.name, delivery.attempt(), ended);
        let sent = serde_json::to_vec(&answer).map_err(|error| error.to_string());
        let sent = sent.and_then(|bytes| store(delivery, &bytes).map_err(|error| error.to_string()));
        if let Err(error) = sent {
            (self.tell)(&WorkerEvent::ResultLost(&error));
        }
    }

    fn left(&self, given: &GivenJob, how: Left, why: &str) {
        (self.tell)(&WorkerEvent::Left(given, how, why));
    }

    fn note(&self, done: Result<(), QueueError>) {
        if let Err(error) = done {
            (self.tell)(&WorkerEvent::Failed(&error));
        }
    }
}

/// Returns whether the cause of a failure is this machine and not the job.
fn is_ours(kind: FailureKind, envelope: &JobEnvelope) -> bool {
    match kind {
        FailureKind::DiskFull => true,
        // An offline job brings its own CLI, so the missing one may be that.
        FailureKind::NotInstalled => !envelope.is_offline(),
        _ => false,
    }
}
