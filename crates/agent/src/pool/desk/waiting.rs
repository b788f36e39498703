//! A prompt that waits for a process, and its end if it never gets one.

use std::io::Read;
use std::sync::Arc;
use std::time::Instant;

use alhena_model::{End, Event, EventKind, Exit, Input, Interpreter, Outcome, Source, Stop, Timestamp};
use alhena_sys::sockets::Stream;

use crate::acp::Job;
use crate::env::Environment;
use crate::find::Gemini;
use crate::pool::key::Key;
use crate::prepare::RunError;
use crate::run::{Item, Listener};

/// What a process is made of.
pub(in crate::pool) struct Made {
    pub key: Key,
    pub gemini: Gemini,
    pub environment: Environment,
}

pub(in crate::pool) struct Waiting {
    pub job: Box<Job>,
    pub made: Arc<Made>,
    /// How many were served before who had come later.
    pub passed: u32,
}

impl Waiting {
    pub(in crate::pool) fn new(key: Key, job: Box<Job>, gemini: Gemini, environment: Environment) -> Self {
        Self::again(Arc::new(Made { key, gemini, environment }), job)
    }

    /// One that has waited before.
    pub(super) fn again(made: Arc<Made>, job: Box<Job>) -> Self {
        Self { job, made, passed: 0 }
    }

    /// Rung when it is to stop.
    pub(super) fn bell(&self) -> Option<&Stream> {
        self.job.terms.bell.as_ref()
    }

    /// When its time is over: it runs from when it was asked.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let request = &self.job.terms.request;
        Some(request.began? + request.timeout?)
    }

    /// Why it does not want to wait any longer.
    pub(super) fn wants_to_stop(&mut self) -> Option<Stop> {
        let rung = self.bell().is_some_and(|mut bell| bell.read(&mut [0; 16]).is_ok());
        if rung || self.job.outlet.listener() == Listener::Gone {
            return Some(Stop::Cancelled);
        }
        let limit = self.job.terms.request.timeout?;
        self.deadline().filter(|at| *at <= Instant::now()).map(|_| Stop::Timeout(limit))
    }

    /// It ends before it began.
    pub(super) fn stop(self, why: Stop) {
        let mut interpreter = Interpreter::new();
        let mut events = Vec::new();
        interpreter.feed(Input::Time(Timestamp::now()), &mut events);
        for notice in &self.job.terms.request.notices {
            interpreter.feed(Input::Warning(notice.clone()), &mut events);
        }
        interpreter.feed(Input::Stop(why), &mut events);
        let began = self.job.terms.request.began;
        let duration_ms = began.map(|began| began.elapsed().as_millis() as u64);
        let end = End { exit: Exit::Unknown, stderr: String::new(), duration_ms };
        let _in_the_last_event = interpreter.conclude(&end, &mut events);
        self.hand_out(events);
    }

    /// There cannot be a process for it.
    pub(super) fn fail(self, why: RunError) {
        let outcome = Arc::new(Outcome::not_begun(why.into_failure()));
        let kind = EventKind::Finished { outcome };
        self.hand_out(vec![Event { seq: 0, at: Timestamp::now(), source: Source::Derived, kind }]);
    }

    fn hand_out(self, events: Vec<Event>) {
        let Job { outlet, terms, .. } = *self.job;
        terms.over.set();
        for event in events {
            // There is room: nothing was handed out before.
            let _nobody_listens = outlet.offer(Item::Event(event));
        }
    }
}
