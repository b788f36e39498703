//! For tests: jobs that need no agent.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use alhena_agent::RunError;
use alhena_model::{Failure, FailureKind, Outcome, Prompt, RunOptions, Status};
use parking_lot::Mutex;

use crate::job::Job;
use crate::launcher::{Launch, Launcher};
use crate::perform::{Attempt, Perform, Watch, Where};

/// Starts nothing, and takes options as they are given.
pub struct NoLauncher;

impl Launcher for NoLauncher {
    fn check(&self, _: Option<&Prompt>, options: &RunOptions) -> Result<RunOptions, RunError> {
        Ok(options.clone())
    }

    fn launch(&self, _: Option<&Prompt>, _: &RunOptions, _: Option<&Path>) -> Result<Launch, RunError> {
        Err(RunError::usage("nothing is run here", ""))
    }
}

/// Something that a job did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    Begin(String, Instant),
    End(String, Instant),
}

type Script = dyn Fn(&Job, u32, &Watch) -> Outcome + Send + Sync;

/// Does jobs as a test says.
pub struct Acts {
    script: Box<Script>,
    attempts: Mutex<HashMap<String, u32>>,
    tell: Mutex<Sender<Did>>,
}

impl Acts {
    pub fn new(
        script: impl Fn(&Job, u32, &Watch) -> Outcome + Send + Sync + 'static,
    ) -> (Arc<Self>, Receiver<Did>) {
        let (tell, did) = channel();
        let acts = Self { script: Box::new(script), attempts: Mutex::default(), tell: Mutex::new(tell) };
        (Arc::new(acts), did)
    }

    fn tell(&self, did: Did) {
        let _nobody_listens = self.tell.lock().send(did);
    }
}

impl Perform for Acts {
    fn perform(&self, job: &Job, watch: &Watch) -> Attempt {
        let attempt = {
            let mut attempts = self.attempts.lock();
            let attempt = attempts.entry(job.id.clone()).or_default();
            *attempt += 1;
            *attempt
        };
        self.tell(Did::Begin(job.id.clone(), Instant::now()));
        let outcome = (self.script)(job, attempt, watch);
        self.tell(Did::End(job.id.clone(), Instant::now()));
        Attempt::of(job, Arc::new(outcome), Where::Shared)
    }
}

pub fn good() -> Outcome {
    let mut outcome = Outcome::default();
    outcome.status = Status::Success;
    outcome.usage.all.total = 10;
    outcome.cost_usd = Some(0.5);
    outcome.duration_ms = 20;
    outcome
}

pub fn bad(kind: FailureKind) -> Outcome {
    Outcome::not_begun(Failure::new(kind, "it did not work"))
}

/// Waits until it is told to stop.
pub fn until_stopped(watch: &Watch) -> Outcome {
    while watch.asked().is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    bad(FailureKind::Cancelled)
}
