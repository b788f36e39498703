//! Tells a submitter once when no worker takes its jobs, and when the connection is lost.

use std::time::{Duration, Instant};

use super::submitter::SubmitterEvent;
use crate::queue::{Hearing, Label, Queue, WorkerPresence};

/// How long no job may be taken before somebody is told.
const LONG: Duration = Duration::from_secs(10);
/// How much of that time passes before the server is asked for workers.
const LOOKS: Duration = Duration::from_secs(7);

/// The state of the connection and of the workers, as it was seen last.
pub struct PresenceMonitor {
    queue: Queue,
    label: Label,
    connected: bool,
    since: Option<Instant>,
    hearing: Option<Hearing>,
    seen: bool,
    said: bool,
}

/// The state of the jobs of a batch.
pub struct JobsState {
    /// Whether there are jobs, and no worker works on any.
    pub waits: bool,
    /// Whether one was taken or done since the last look.
    pub moved: bool,
}

impl PresenceMonitor {
    pub fn new(queue: Queue, label: Label) -> Self {
        Self { queue, label, connected: true, since: None, hearing: None, seen: false, said: false }
    }

    /// Looks once.
    pub fn look(&mut self, jobs: &JobsState, tell: &dyn Fn(SubmitterEvent)) {
        let connected = self.queue.is_connected();
        if std::mem::replace(&mut self.connected, connected) != connected {
            tell(if connected { SubmitterEvent::Reconnected } else { SubmitterEvent::Disconnected });
        }
        // Told once for each time without workers.
        self.said &= !jobs.moved;
        if self.said || jobs.moved || !jobs.waits || !connected {
            return self.begin_anew();
        }
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let mut may_work = false;
        if waited >= LOOKS && !self.seen {
            match self.queue.worker_presence(&self.label) {
                Ok(WorkerPresence::Nobody) => {}
                Ok(WorkerPresence::Holds { lease }) => match self.hears() {
                    Some(hearing) if !hearing.has_heard() => may_work = hearing.elapsed() <= lease,
                    _ => self.seen = true,
                },
                // A server that does not answer is no reason to say something.
                Ok(WorkerPresence::Asks) | Err(_) => self.seen = true,
            }
        }
        if waited < LONG || may_work {
            return;
        }
        if !self.seen {
            self.said = true;
            tell(SubmitterEvent::NoWorker);
        }
        self.begin_anew();
    }

    fn begin_anew(&mut self) {
        (self.since, self.hearing, self.seen) = (None, None, false);
    }

    fn hears(&mut self) -> Option<&Hearing> {
        if self.hearing.is_none() {
            self.hearing = self.queue.hear_workers().ok();
        }
        self.hearing.as_ref()
    }
}
