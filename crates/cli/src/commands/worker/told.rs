//! What a worker tells: lines for people on stderr, or an object a line on stdout.

use alhena::Outcome;
use serde_json::{Value, json};

use crate::output::{say, write_json};
use crate::style::{Colours, Paint, duration, one_line};
use crate::{command_error, output::Stream};

/// Who is told.
pub struct Told {
    pub json: bool,
    pub quiet: bool,
}

/// Which job.
pub struct Which {
    pub batch: String,
    pub id: String,
    pub attempt: u32,
}

impl Told {
    fn tell(&self, paint: Paint, word: &str, which: &Which, more: &str, facts: Value) {
        if self.json {
            let mut event =
                json!({"type": word, "batch": which.batch, "id": which.id, "attempt": which.attempt});
            if let (Value::Object(event), Value::Object(facts)) = (&mut event, facts) {
                event.extend(facts);
            }
            let _nobody_reads = write_json(|out| writeln!(out, "{event}"));
        } else if !self.quiet {
            let word = Colours::of(Stream::Err).paint(paint, word);
            let (batch, id) = (one_line(&which.batch, 64), one_line(&which.id, 60));
            // As a whole: what a line begins with is no space.
            say(format_args!("{word} {}", one_line(&format!("{batch}/{id}{more}"), 430)));
        }
    }

    pub fn began(&self, which: &Which) {
        let more = if which.attempt > 1 { format!(" (attempt {})", which.attempt) } else { String::new() };
        self.tell(Paint::Dim, "began", which, &more, json!({}));
    }

    pub fn done(&self, which: &Which, outcome: &Outcome, ms: u64) {
        let failure = outcome.failure.as_ref();
        let (paint, more) = match failure {
            None => (Paint::Green, format!(": {} in {}", "success", duration(ms))),
            Some(failure) => (Paint::Red, format!(": {}", failure.message)),
        };
        let kind = failure.map(|failure| failure.kind);
        self.tell(paint, "done", which, &more, json!({"status": outcome.status, "kind": kind, "ms": ms}));
    }

    /// It is given to another worker, or wanted by nobody.
    pub fn left(&self, which: &Which, word: &str, why: &str) {
        self.tell(Paint::Yellow, word, which, &format!(": {why}"), json!({"why": why}));
    }

    /// What was put under this subject is no job, and was taken out of the queue.
    pub fn refused(&self, subject: &str, why: &str) {
        if self.json {
            let event = json!({"type": "refused", "subject": subject, "why": why});
            let _nobody_reads = write_json(|out| writeln!(out, "{event}"));
        } else if !self.quiet {
            let word = Colours::of(Stream::Err).paint(Paint::Yellow, "refused");
            say(format_args!("{word} {}: {}", one_line(subject, 120), one_line(why, 300)));
        }
    }

    /// Something that concerns no job.
    pub fn say(&self, text: &str) {
        if self.json {
            let event = json!({"type": "says", "message": text});
            let _nobody_reads = write_json(|out| writeln!(out, "{event}"));
        } else if !self.quiet {
            say(text);
        }
    }

    /// Something is wrong, which is said in any case.
    pub fn complain(&self, text: &str, hint: &str) {
        command_error::complain(&text, hint);
    }
}
