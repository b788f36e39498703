//! Jobs on this machine: on warm processes, or on one for each.

use std::path::Path;
use std::sync::Arc;

use alhena_agent::env::Environment;
use alhena_agent::{Pool, PoolOptions, Run, RunError, Transport, Whom};
use alhena_model::{Failure, FailureKind, Outcome, Prompt, RunOptions, Status};

use crate::job::{Job, Place};
use crate::launcher::{Launch, Launcher};
use crate::perform::{Attempt, Perform, Watch, Where};
use crate::place::{Changes, Places, Workplace};

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
    launcher: Arc<dyn Launcher>,
    way: Way,
    pool: Option<Pool>,
    /// Goes after the pool: its processes stay where they were started.
    places: Option<Places>,
}

impl Local {
    /// For so many jobs at once.
    pub fn new(launcher: Arc<dyn Launcher>, way: Way, jobs: usize) -> Result<Self, RunError> {
        let pool = match way {
            Way::Cold => None,
            Way::Auto | Way::Warm => Some(Pool::new(PoolOptions::default().processes(jobs))?),
        };
        let places = Places::of(&Environment::of_process());
        places.iter().for_each(Places::sweep);
        Ok(Self { launcher, way, pool, places })
    }

    /// Why jobs that ask for places of their own cannot be done here, if so.
    pub fn no_places(&self) -> Option<Failure> {
        match &self.places {
            Some(places) => places.unusable(),
            None => Some(no_home()),
        }
    }

    /// Ends what is warm, and waits until nothing of it is left.
    pub fn close(self) {
        if let Some(pool) = self.pool {
            pool.close_blocking();
        }
        // Somebody may still have been there at the beginning whose batch was killed just before.
        self.places.iter().for_each(Places::sweep);
    }

    fn start(&self, launch: Launch, transport: Option<Transport>) -> Result<Run, RunError> {
        let Launch { mut request, agent, environment, .. } = launch;
        let gemini = match agent {
            Whom::Other(agent) => return agent.start(request, &environment),
            Whom::Gemini(gemini) => gemini,
        };
        request.transport = transport.unwrap_or(Transport::Auto);
        // What several cannot share gets a process of its own, unless that was ruled out; then it is refused.
        let is_warm = || {
            self.way == Way::Warm
                || transport != Some(Transport::Headless)
                    && Pool::fits_in(&gemini, &request, &environment).is_ok()
        };
        match &self.pool {
            Some(pool) if is_warm() => pool.start(&gemini, request, &environment),
            _ => gemini.start(request, &environment),
        }
    }
}

impl Perform for Local {
    fn perform(&self, job: &Job, watch: &Watch) -> Attempt {
        let mut place = match self.place(job, watch) {
            Ok(None) => {
                let outcome =
                    self.attempt(&job.prompt, &job.options, None, None, watch).unwrap_or_else(not_begun);
                return Attempt::of(job, outcome, Where::Shared);
            }
            Ok(Some(place)) => place,
            Err(failure) => return Attempt::not_begun(job, *failure, Where::Own),
        };
        let commit = place.commit().map(str::to_owned);
        let source = place.source();
        let attempt = match &job.place {
            // A copy is to its folder what its options are to its request; a checkout is a folder of its own.
            Place::Copy => self.attempt(&job.prompt, &job.options, Some(place.dir()), source, watch),
            Place::Dir | Place::Git(_) => {
                let mut options = job.options.clone();
                options.dir = Some(place.dir().to_owned());
                self.attempt(&job.prompt, &options, None, source, watch)
            }
        };
        let mut outcome = attempt.unwrap_or_else(not_begun);
        let mut done = Attempt::of(job, outcome.clone(), Where::Own);
        done.result.commit = commit;
        if watch.asked().is_some() && outcome.status == Status::Cancelled {
            return done;
        }
        let told = Arc::make_mut(&mut outcome);
        let taken =
            place.changes(watch).and_then(|changes| Ok((changes, place.outputs(&job.outputs, watch)?)));
        match taken {
            Ok((Changes { patch, warnings, .. }, outputs)) => {
                done.result.patch = patch;
                done.result.outputs = outputs.files;
                told.warnings.extend(warnings.into_iter().chain(outputs.warnings));
            }
            // Work that nobody can see is none.
            Err(failure) if told.failure.is_none() => {
                told.status = Status::of(failure.kind);
                told.failure = Some(*failure);
            }
            Err(failure) => told.warnings.push(failure.message),
        }
        done.result.outcome = outcome;
        done
    }
}

fn not_begun(error: RunError) -> Arc<Outcome> {
    Arc::new(Outcome::not_begun(error.into_failure()))
}

impl Local {
    fn place(&self, job: &Job, watch: &Watch) -> Result<Option<Workplace<'_>>, Box<Failure>> {
        match (&job.place, &self.places) {
            (Place::Dir, _) => Ok(None),
            (_, Some(places)) => places.make(job, watch),
            (_, None) => Err(Box::new(no_home())),
        }
    }

    fn attempt(
        &self,
        prompt: &Prompt,
        options: &RunOptions,
        copy: Option<&Path>,
        source: Option<&Path>,
        watch: &Watch,
    ) -> Result<Arc<Outcome>, RunError> {
        let mut launch = self.launcher.launch(Some(prompt), options, copy)?;
        launch.request.usage_dir = source.map(Path::to_owned);
        let after = launch.after.take();
        let mut run = self.start(launch, options.transport)?;
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

fn no_home() -> Failure {
    let failure = Failure::new(FailureKind::Config, "there is no directory for private places");
    failure.with_hint("Set HOME, or ALHENA_HOME.")
}
