//! A run, from its options to its last event, in a thread of its own.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use alhena_agent::{Run, Whom};
use alhena_batch::launcher::{After, Launch};
use alhena_batch::perform::Seen;
use alhena_model::{EventKind, Failure, FailureKind, Outcome, Prompt, RunOptions, Status, Timestamp};

use super::{RECORDING, TaskEntry, TaskState, TaskStore, boxed, launch};
use crate::state::App;

impl TaskEntry {
    /// Stops a run: gently, and if asked again at once.
    pub fn stop(&self) {
        let mut control = self.control();
        control.stops += 1;
        control.stop();
    }
}

/// Performs a run, and returns when nothing of it is left.
pub fn perform(app: &App, run: &TaskEntry, prompt: Option<&Prompt>, options: &RunOptions) {
    // A panic must not leave the clients of this run waiting.
    let outcome = catch_unwind(AssertUnwindSafe(|| outcome(app, run, prompt, options)));
    let outcome = outcome.unwrap_or_else(|_| {
        Outcome::not_begun(Failure::new(FailureKind::Crashed, "the server failed to follow the run"))
    });
    finish(&app.tasks, run, outcome);
}

/// Ends a run: first on disk, so that its outcome is there when a client hears of the end.
pub fn finish(tasks: &TaskStore, run: &TaskEntry, outcome: Outcome) {
    run.write_outcome(&outcome).unwrap_or_else(|error| run.not_kept("the outcome", &error));
    let outcome = Arc::new(outcome);
    tasks.end(run, EventKind::Finished { outcome: outcome.clone() }, |task| task.end_run(&outcome));
}

fn outcome(app: &App, run: &TaskEntry, prompt: Option<&Prompt>, options: &RunOptions) -> Outcome {
    let (started, after) = match start(app, run, prompt, options) {
        Ok(started) => started,
        Err(failure) => return Outcome::not_begun(*failure),
    };
    let (outcome, is_kept) = follow(app, run, started);
    let warnings = after.map(|after| after(&outcome));
    let mut outcome = Arc::unwrap_or_clone(outcome);
    outcome.warnings.extend(warnings.into_iter().flatten());
    if let Err(error) = is_kept {
        outcome.status = Status::Failed;
        outcome.failure = Some(not_kept(&error));
    }
    outcome
}

fn not_kept(error: &io::Error) -> Failure {
    let kind = match alhena_sys::files::is_full(error) {
        true => FailureKind::DiskFull,
        false => FailureKind::Crashed,
    };
    Failure::new(kind, format!("its events could not be kept, so it was stopped: {error}"))
}

fn start(
    app: &App,
    run: &TaskEntry,
    prompt: Option<&Prompt>,
    options: &RunOptions,
) -> Result<(Run, Option<After>), Box<Failure>> {
    let Launch { mut request, agent, environment, after } = launch(app, prompt, options)?;
    if run.control().stops > 0 {
        return Err(Box::new(Failure::new(FailureKind::Cancelled, "it was stopped before it began")));
    }
    request.record = Some(run.dir.join(RECORDING));
    let (model, approval) = (request.model.clone(), request.approval);
    let started = match agent {
        Whom::Gemini(gemini) => gemini.start(request, &environment),
        Whom::Other(agent) => agent.start(request, &environment),
    };
    let started = started.map_err(boxed)?;
    {
        let mut control = run.control();
        control.stopper = Some(started.stopper());
        control.stop();
    }
    app.tasks.change(run, |task| {
        task.state = TaskState::Working;
        task.started_at = Some(Timestamp::now());
        task.model = model;
        task.approval = Some(approval.to_string());
    });
    run.save(&run.locked());
    Ok((started, after))
}

/// Keeps all events of a run but the last one, and stops the run if that fails.
fn follow(app: &App, entry: &TaskEntry, mut run: Run) -> (Arc<Outcome>, io::Result<()>) {
    let (mut seen, mut is_kept) = (Seen::default(), Ok(()));
    while let Some(event) = run.next_blocking() {
        if matches!(event.kind, EventKind::Finished { .. }) {
            continue;
        }
        if seen.saw(&event) {
            app.tasks.change(entry, |task| {
                task.doing = seen.doing().map(str::to_owned);
                (task.tokens, task.cost_usd) = seen.spent();
            });
        }
        if let EventKind::Started { session_id, .. } = &event.kind {
            app.tasks.change(entry, |task| task.session_id = Some(session_id.clone()));
            entry.save(&entry.locked());
        }
        if is_kept.is_ok() {
            is_kept = entry.append(None, event);
            if is_kept.is_err() {
                run.stop();
            }
        }
    }
    (run.outcome_blocking(), is_kept)
}
