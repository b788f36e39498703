//! Jobs on this machine: on warm processes, or on one for each.

use std::sync::Arc;

use alhena_agent::{Pool, PoolOptions, Run, RunError, Transport};
use alhena_model::{Failure, FailureKind, Outcome};

use crate::job::{Job, Place};
use crate::meaning::{Agent, Ask, Meaning};
use crate::perform::{Done, Perform, Watch, Where};

/// How jobs get their processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Warm ones, unless a job says that it is headless, or asks for what several cannot share.
    Auto,
    /// Warm ones; a job that several cannot share one with fails.
    Warm,
    /// A new one for each job.
    Cold,
}

/// Does jobs on this machine.
pub struct Local {
    meaning: Arc<dyn Meaning>,
    way: Way,
    pool: Option<Pool>,
}

impl Local {
    /// For so many jobs at once.
    pub fn new(meaning: Arc<dyn Meaning>, way: Way, jobs: usize) -> Result<Self, RunError> {
        let pool = match way {
            Way::Cold => None,
            Way::Auto | Way::Warm => Some(Pool::new(PoolOptions::default().processes(jobs))?),
        };
        Ok(Self { meaning, way, pool })
    }

    /// Ends what is warm, and waits until nothing of it is left.
    pub fn close(self) {
        if let Some(pool) = self.pool {
            pool.close_blocking();
        }
    }

    fn start(&self, ask: Ask) -> Result<Run, RunError> {
        let Ask { mut request, agent, environment, transport, .. } = ask;
        request.transport = transport.unwrap_or(Transport::Auto);
        let gemini = match agent {
            Agent::Other(agent) => return agent.run_in(request, &environment),
            Agent::Gemini(gemini) => gemini,
        };
        // What several cannot share gets a process of its own, unless that was ruled out; then it is refused.
        let is_warm = || {
            self.way == Way::Warm
                || transport != Some(Transport::Headless)
                    && Pool::fits_in(&gemini, &request, &environment).is_ok()
        };
        match &self.pool {
            Some(pool) if is_warm() => pool.run_in(&gemini, request, &environment),
            _ => gemini.run_in(request, &environment),
        }
    }
}

impl Perform for Local {
    fn perform(&self, job: &Job, watch: &Watch) -> Done {
        let place = Where::Shared;
        if job.place != Place::Dir {
            let failure = Failure::new(FailureKind::Input, "there are no private places to work in yet");
            return Done::not_begun(failure.with_hint("Leave out copy and git."), place);
        }
        match self.attempt(job, watch) {
            Ok(outcome) => Done { outcome, patch: None, commit: None, place },
            Err(error) => Done::not_begun(error.into_failure(), place),
        }
    }
}

impl Local {
    fn attempt(&self, job: &Job, watch: &Watch) -> Result<Arc<Outcome>, RunError> {
        let mut ask = self.meaning.ask(&job.options, None)?;
        let after = ask.after.take();
        let mut run = self.start(ask)?;
        watch.holds(run.stopper());
        while let Some(event) = run.next_blocking() {
            watch.saw(&event);
        }
        let mut outcome = run.outcome_blocking();
        if let Some(after) = after {
            let warnings = after(&outcome);
            Arc::make_mut(&mut outcome).warnings.extend(warnings);
        }
        Ok(outcome)
    }
}
