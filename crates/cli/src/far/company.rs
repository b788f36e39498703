//! Whether anybody is there for the jobs of a batch: a server, and workers. Whoever waits for nobody is told.

use std::time::{Duration, Instant};

use alhena_queue::{Label, Queue};

use crate::output::say;

/// So long nothing may begin before somebody is told that nobody is there.
const LONG: Duration = Duration::from_secs(10);
/// In the last part of that time it is looked whether a worker asks for jobs.
const LOOKS: Duration = Duration::from_secs(7);

/// What is known of it.
pub struct Company {
    queue: Queue,
    label: Label,
    server: String,
    connected: bool,
    since: Option<Instant>,
    seen: bool,
    said: bool,
}

impl Company {
    pub fn new(queue: Queue, label: Label, server: String) -> Self {
        Self { queue, label, server, connected: true, since: None, seen: false, said: false }
    }

    /// Looks once. `waits` is whether there are jobs, and nobody has begun one.
    pub fn look(&mut self, waits: bool) {
        let connected = self.queue.is_connected();
        if std::mem::replace(&mut self.connected, connected) != connected {
            match connected {
                true => say(format_args!("the connection to {} is back", self.server)),
                false => say(format_args!(
                    "the connection to {} is lost; it is tried again and again",
                    self.server
                )),
            }
        }
        if self.said || !waits || !connected {
            (self.since, self.seen) = (None, false);
            return;
        }
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited >= LOOKS && !self.seen {
            // A server that does not say is no reason to say something.
            self.seen = self.queue.is_attended(&self.label).unwrap_or(true);
        }
        if waited >= LONG {
            if !self.seen {
                self.said = true;
                say(format_args!("{}: start one with `{}`", nobody(&self.label), self.start()));
            }
            (self.since, self.seen) = (None, false);
        }
    }

    fn start(&self) -> String {
        match self.label == Label::any() {
            true => format!("alhena worker --nats {}", self.server),
            false => format!("alhena worker --nats {} --label {}", self.server, self.label),
        }
    }
}

/// That nobody is there.
pub fn nobody(label: &Label) -> String {
    match *label == Label::any() {
        true => "no worker takes jobs".to_owned(),
        false => format!("no worker takes jobs with the label {label}"),
    }
}
