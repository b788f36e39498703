//! One run, from its options to its last event, in a thread of its own.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use alhena_agent::{Run, RunError};
use alhena_batch::doing::Seen;
use alhena_batch::meaning::{After, Agent, Ask, Options};
use alhena_model::{EventKind, Failure, FailureKind, Outcome, Status, Timestamp};

use super::{Kept, RunState, disk};
use crate::log::{Log, json_line};
use crate::state::App;

/// Does it, and comes back when nothing of it is left.
pub fn perform(app: &App, kept: &Kept, log: &Log, options: &Options) {
    // Whatever goes wrong here, nobody must wait for its end for ever.
    let outcome = catch_unwind(AssertUnwindSafe(|| outcome(app, kept, log, options)));
    let mut outcome = outcome.unwrap_or_else(|_| {
        Outcome::not_begun(Failure::new(FailureKind::Crashed, "the server failed to follow the run"))
    });
    outcome.failure.iter_mut().for_each(|failure| app.in_fields(failure));
    app.runs.finish(kept, log, &outcome);
}

/// There is no thread for it.
pub fn not_performed(app: &App, kept: &Kept, log: &Log, error: &io::Error) {
    let failure = Failure::new(FailureKind::Crashed, format!("the run could not be started: {error}"));
    app.runs.finish(kept, log, &Outcome::not_begun(failure));
}

fn outcome(app: &App, kept: &Kept, log: &Log, options: &Options) -> Outcome {
    match start(app, kept, options) {
        Ok((run, after)) => {
            let (mut outcome, is_kept) = follow(app, kept, log, run);
            if let Some(after) = after {
                let warnings = after(&outcome);
                Arc::make_mut(&mut outcome).warnings.extend(warnings);
            }
            let mut outcome = Arc::unwrap_or_clone(outcome);
            if let Err(error) = is_kept {
                outcome.status = Status::Failed;
                outcome.failure = Some(unkept(&error));
            }
            outcome
        }
        Err(failure) => Outcome::not_begun(*failure),
    }
}

fn unkept(error: &io::Error) -> Failure {
    let kind = match alhena_sys::files::is_full(error) {
        true => FailureKind::DiskFull,
        false => FailureKind::Crashed,
    };
    Failure::new(kind, format!("its events could not be kept, so it was stopped: {error}"))
}

fn start(app: &App, kept: &Kept, options: &Options) -> Result<(Run, Option<After>), Box<Failure>> {
    let mut ask = app.meaning.ask(options, None).map_err(boxed)?;
    app.policy.lower(&mut ask.request, options);
    app.policy.check(&ask.request)?;
    if kept.was_asked_to_stop() {
        return Err(Box::new(Failure::new(FailureKind::Cancelled, "it was stopped before it began")));
    }
    ask.request.record = Some(kept.dir.join(disk::RECORDING));
    let after = ask.after.take();
    let Ask { mut request, agent, environment, transport, .. } = ask;
    request.transport = transport.unwrap_or(request.transport);
    let (model, approval) = (request.model.clone(), request.approval);
    let run = match agent {
        Agent::Gemini(gemini) => gemini.run_in(request, &environment),
        Agent::Other(agent) => agent.run_in(request, &environment),
    };
    let run = run.map_err(boxed)?;
    kept.stops_by(run.stopper());
    app.runs.changed(kept, |view| {
        view.state = RunState::Running;
        view.started_at = Some(Timestamp::now());
        view.model = model;
        view.approval = Some(crate::policy::mode_name(approval).to_owned());
    });
    if let Err(error) = disk::write(kept) {
        tracing::error!("the run {} could not be kept: {error}", kept.id);
    }
    Ok((run, after))
}

/// Why something could not begin, as a failure.
pub fn boxed(error: RunError) -> Box<Failure> {
    Box::new(error.into_failure())
}

/// Keeps its events but the last; where that cannot be, it is stopped.
fn follow(app: &App, kept: &Kept, log: &Log, mut run: Run) -> (Arc<Outcome>, io::Result<()>) {
    let (mut seen, mut is_kept) = (Seen::default(), Ok(()));
    while let Some(event) = run.next_blocking() {
        if matches!(event.kind, EventKind::Finished { .. }) {
            continue;
        }
        if seen.saw(&event) {
            app.runs.changed(kept, |view| {
                view.doing = seen.doing().map(str::to_owned);
                (view.tokens, view.cost_usd) = seen.spent();
            });
        }
        if let EventKind::Started { session_id, .. } = &event.kind {
            app.runs.changed(kept, |view| view.session_id = Some(session_id.clone()));
            let _told_at_the_end = disk::write(kept);
        }
        if is_kept.is_ok() {
            is_kept = log.append(|_| json_line(&event));
            if is_kept.is_err() {
                run.stop();
            }
        }
    }
    (run.outcome_blocking(), is_kept)
}
