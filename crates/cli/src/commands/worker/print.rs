//! The events of a worker: lines for people on stderr, or an object a line on stdout.

use std::fmt::Display;

use alhena_batch::remote::worker::{GivenJob, Left, WorkerEvent};
use serde_json::{Value, json};

use crate::output::{say, write_json};
use crate::style::{Colours, Paint, duration, one_line};
use crate::{command_error, output::Stream};

/// Prints the events of a worker.
pub struct EventPrinter {
    pub json: bool,
    pub quiet: bool,
}

impl EventPrinter {
    /// Prints an event.
    pub fn event(&self, event: &WorkerEvent<'_>) {
        match event {
            WorkerEvent::Began(job) => {
                let more =
                    if job.attempt > 1 { format!(" (attempt {})", job.attempt) } else { String::new() };
                self.job(Paint::Dim, "began", job, &more, json!({}));
            }
            WorkerEvent::Done(job, outcome, took) => {
                let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                let failure = outcome.failure.as_ref();
                let (paint, more) = match failure {
                    None => (Paint::Green, format!(": success in {}", duration(ms))),
                    Some(failure) => (Paint::Red, format!(": {}", failure.message)),
                };
                let kind = failure.map(|failure| failure.kind);
                let facts = json!({"status": outcome.status, "kind": kind, "ms": ms});
                self.job(paint, "done", job, &more, facts);
            }
            WorkerEvent::Left(job, how, why) => {
                let word = match how {
                    Left::Dropped => "dropped",
                    Left::Returned => "returned",
                    Left::Refused => "refused",
                    Left::Buried => "buried",
                };
                self.job(Paint::Yellow, word, job, &format!(": {why}"), json!({"why": why}));
            }
            WorkerEvent::Refused(refused) => {
                let (subject, why) = (&refused.subject, &refused.reason);
                self.print(json!({"type": "refused", "subject": subject, "why": why}), || {
                    let word = Colours::of(Stream::Err).paint(Paint::Yellow, "refused");
                    format!("{word} {}: {}", one_line(subject, 120), one_line(why, 300))
                });
            }
            WorkerEvent::RateLimited { clock, left } => {
                let seconds = left.as_secs_f64().ceil();
                self.say(&format!(
                    "waits {seconds} s for the rate limit of {clock:?}, which another worker was told"
                ));
            }
            WorkerEvent::Reconnected => self.say("the server answers again"),
            WorkerEvent::Failed(error) => {
                command_error::complain(&error, error.hint().unwrap_or_default());
            }
            WorkerEvent::ResultLost(why) => {
                command_error::complain(
                    &format!("a result was not stored, and the job goes to another: {why}"),
                    "",
                );
            }
        }
    }

    /// Prints a message that concerns no job.
    pub fn say(&self, text: &str) {
        self.print(json!({"type": "says", "message": text}), || text);
    }

    fn job(&self, paint: Paint, word: &str, job: &GivenJob, more: &str, facts: Value) {
        let mut event = json!({"type": word, "batch": job.batch, "id": job.id, "attempt": job.attempt});
        if let (Value::Object(event), Value::Object(facts)) = (&mut event, facts) {
            event.extend(facts);
        }
        self.print(event, || {
            let word = Colours::of(Stream::Err).paint(paint, word);
            let (batch, id) = (one_line(&job.batch, 64), one_line(&job.id, 60));
            // As a whole: what a line begins with is no space.
            format!("{word} {}", one_line(&format!("{batch}/{id}{more}"), 430))
        });
    }

    fn print<T: Display>(&self, event: Value, line: impl FnOnce() -> T) {
        if self.json {
            let _nobody_reads = write_json(|out| writeln!(out, "{event}"));
        } else if !self.quiet {
            say(line());
        }
    }
}
