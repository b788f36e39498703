//! How jobs come in: whether they are done already, were others when they were, or are none.

use std::sync::Arc;

use alhena_model::{Failure, FailureKind, Outcome, Status};

use super::{Batch, Changed, Tried, WINDOW, Why, changed_since};
use crate::progress::{News, Observer, Phase};
use crate::result::{Earlier, JobResult};
use crate::supply::{Came, Complaint, id_of_no_job};

impl Batch {
    pub(super) fn refuse_changed(&self) -> Result<(), Changed> {
        let mut changed = Changed::default();
        for (id, done) in self.journal.done().filter(|(_, done)| !done.is_refusal()) {
            match self.supply.number(id).and_then(|number| self.supply.entries().get(number)) {
                None => changed.gone.push(id.to_owned()),
                Some(entry) if entry.mark.to_string() != *done.job => changed.changed.push(id.to_owned()),
                Some(_) => {}
            }
        }
        match changed.changed.is_empty() && changed.gone.is_empty() {
            true => Ok(()),
            false => Err(changed.sorted()),
        }
    }

    pub(super) fn count_jobs(&mut self) {
        self.board.known = self.supply.entries().len() as u64;
        self.board.jobs = self.supply.is_complete().then_some(self.board.known);
    }

    /// Takes a job in, unless it is done. False when it is done, but was another one then.
    pub(super) fn enter(&mut self, number: usize) -> bool {
        let Some(entry) = self.supply.entries().get(number) else { return true };
        let lane = entry.lane;
        self.journal.forget_refusal(&entry.id);
        self.journal.forget_refusal(&id_of_no_job(entry.line));
        if let Some(done) = self.journal.get(&entry.id) {
            let is_other = entry.mark.to_string() != *done.job;
            if is_other && !self.limits.again_changed {
                return false;
            }
            let again = is_other || self.limits.again_failed && done.status != Status::Success;
            self.board.spent.add(done.spent);
            if !again {
                self.board.count(done.status);
                self.board.before += 1;
                self.supply.forget(number);
                return true;
            }
            let earlier = Earlier {
                status: done.status,
                kind: done.kind,
                message: String::new(),
                tokens: done.spent.tokens,
                cost_usd: Some(done.spent.cost_usd).filter(|_| !done.spent.unpriced),
                duration_ms: done.duration_ms,
            };
            let tried = Tried { attempts: done.attempt, earlier: vec![earlier], ..Tried::default() };
            self.tried.insert(number, tried);
        }
        self.queue.push(number, lane);
        true
    }

    /// Takes from a stream what has come, as far as there is room.
    pub(super) fn take_in(&mut self, observer: &mut dyn Observer) {
        let room = self.limits.jobs.max(1) * WINDOW;
        while self.board.phase == Phase::Going && self.queue.len() < room {
            match self.supply.take_next() {
                None => break,
                Some(Came::Job(job, _)) => {
                    let number = self.supply.entries().len().saturating_sub(1);
                    if !self.enter(number) {
                        let fault = changed_since(&job.id);
                        self.refused(vec![Complaint { line: job.line, fault }], observer);
                        self.supply.forget(number);
                    }
                }
                Some(Came::Refused { id, mark, complaints }) => {
                    if let (Some(id), Some(mark)) = (id, mark) {
                        let failure = complaints.first().map(|complaint| {
                            let said = format!("line {}: {}", complaint.line, complaint.fault);
                            Failure::new(FailureKind::Input, said).with_hint(complaint.fault.fix.clone())
                        });
                        let number = self.supply.entries().len().saturating_sub(1);
                        self.record_refusal(number, id, &mark.to_string(), failure);
                    }
                    self.refused(complaints, observer);
                }
                Some(Came::End) => {}
                Some(Came::Broken(complaints)) => self.drain(Why::Jobs(complaints), observer),
            }
        }
        self.count_jobs();
    }

    /// A line that is no job gets a result, too: whoever waits for it is told.
    fn record_refusal(&mut self, number: usize, id: String, mark: &str, failure: Option<Failure>) {
        match self.journal.get(&id) {
            Some(done) if *done.job == *mark && !self.limits.again_failed => {
                self.board.count(done.status);
                self.board.before += 1;
                return;
            }
            // What came of a job is not lost to a slip of the pen.
            Some(done) if !done.is_refusal() && !self.limits.again_changed => return,
            _ => {}
        }
        let failure = failure.unwrap_or_else(|| Failure::new(FailureKind::Input, "it is no job"));
        let result = JobResult::new(id, mark, Arc::new(Outcome::not_begun(failure)));
        self.unwritten.push((number, result));
    }

    fn refused(&mut self, complaints: Vec<Complaint>, observer: &mut dyn Observer) {
        self.board.refused += 1;
        for Complaint { line, fault } in complaints {
            let news = News::Refused { line, message: fault.to_string(), hint: fault.fix };
            observer.news(&news, &self.board);
        }
        if self.limits.fail_fast {
            self.drain(Why::FailFast, observer);
        }
    }
}
