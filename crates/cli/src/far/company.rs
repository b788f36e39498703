//! Whether anybody is there for the jobs of a batch: a server, and workers. Whoever waits for nobody is told.

use std::time::{Duration, Instant};

use alhena::batch::queue::{Attendance, Hearing, Label, Queue};

use crate::output::say;

/// So long nothing may be taken before somebody is told that nobody is there.
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
    hearing: Option<Hearing>,
    seen: bool,
    said: bool,
}

/// How the jobs of a batch are.
pub struct Work {
    /// Whether there are some, and nobody works on any.
    pub waits: bool,
    /// Whether one was taken or done since the last look.
    pub moved: bool,
}

impl Company {
    pub fn new(queue: Queue, label: Label, server: String) -> Self {
        Self { queue, label, server, connected: true, since: None, hearing: None, seen: false, said: false }
    }

    /// Looks once.
    pub fn look(&mut self, work: &Work) {
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
        // Once for each time that nobody is there: somebody was.
        self.said &= !work.moved;
        if self.said || work.moved || !work.waits || !connected {
            return self.begin_anew();
        }
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        let mut may_work = false;
        if waited >= LOOKS && !self.seen {
            match self.queue.attendance(&self.label) {
                Ok(Attendance::Nobody) => {}
                Ok(Attendance::Holds { lease }) => match self.hears() {
                    Some(hearing) if !hearing.has_heard() => may_work = hearing.elapsed() <= lease,
                    _ => self.seen = true,
                },
                // A server that does not say is no reason to say something.
                Ok(Attendance::Asks) | Err(_) => self.seen = true,
            }
        }
        if waited < LONG || may_work {
            return;
        }
        if !self.seen {
            self.said = true;
            say(format_args!("{}: start one with `{}`", nobody(&self.label), self.start()));
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
