//! One run, from its options to its last event, in a thread of its own.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use alhena_agent::{Run as Going, RunError};
use alhena_batch::doing::Seen;
use alhena_batch::meaning::{After, Agent, Ask, Options};
use alhena_model::{EventKind, Failure, FailureKind, Outcome, Status, Timestamp};
use serde_json::Value;

use super::{Run, RunState, RunView, Runs, disk};
use crate::fields::InFields;
use crate::log::json_line;
use crate::policy::Beginning;
use crate::shelf::beginning;
use crate::shelf::routes::Begins;
use crate::state::{App, Shared};

/// So much of a prompt is told.
const LONGEST_PROMPT: usize = 4000;

impl Begins for RunView {
    const WHAT: Beginning = Beginning::Run;

    fn shelf(app: &App) -> &Runs {
        &app.runs
    }

    fn asked(id: &str, options: &Options) -> Self {
        let text = |name: &str| options.get(name).and_then(Value::as_str).map(str::to_owned);
        let prompt = text("prompt").or_else(|| text("prompt_file")).unwrap_or_default();
        Self {
            id: id.to_owned(),
            state: RunState::Queued,
            prompt: beginning(&prompt, LONGEST_PROMPT),
            dir: text("dir").unwrap_or_default(),
            model: text("model"),
            approval: text("approval"),
            created_at: Timestamp::now(),
            started_at: None,
            finished_at: None,
            doing: None,
            tokens: None,
            cost_usd: None,
            status: None,
            failure: None,
            session_id: None,
        }
    }

    /// Does it, and comes back when nothing of it is left.
    fn perform(app: &Shared, run: &Arc<Run>, options: &Options) {
        // Whatever goes wrong here, nobody must wait for its end for ever.
        let mut fields = InFields::new(&*app.meaning);
        let outcome = catch_unwind(AssertUnwindSafe(|| outcome(app, run, options, &mut fields)));
        let mut outcome = outcome.unwrap_or_else(|_| {
            Outcome::not_begun(Failure::new(FailureKind::Crashed, "the server failed to follow the run"))
        });
        fields.outcome(&mut outcome);
        app.runs.finish(run, &outcome);
    }

    fn not_performed(app: &Shared, run: &Arc<Run>, error: &io::Error) {
        let failure = Failure::new(FailureKind::Crashed, format!("the run could not be started: {error}"));
        app.runs.finish(run, &Outcome::not_begun(failure));
    }
}

fn outcome(app: &App, run: &Run, options: &Options, fields: &mut InFields<'_>) -> Outcome {
    match start(app, run, options) {
        Ok((going, after)) => {
            let (mut outcome, is_kept) = follow(app, run, going, fields);
            if let Some(after) = after {
                let warnings = fields.warnings(after(&outcome));
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

fn start(app: &App, run: &Run, options: &Options) -> Result<(Going, Option<After>), Box<Failure>> {
    let mut ask = app.meaning.ask(options, None).map_err(boxed)?;
    app.policy.lower(&mut ask.request, options);
    app.policy.check(&ask.request)?;
    if run.was_asked_to_stop() {
        return Err(Box::new(Failure::new(FailureKind::Cancelled, "it was stopped before it began")));
    }
    ask.request.record = Some(run.dir.join(disk::RECORDING));
    let after = ask.after.take();
    let Ask { mut request, agent, environment, transport, .. } = ask;
    request.transport = transport.unwrap_or(request.transport);
    let (model, approval) = (request.model.clone(), request.approval);
    let going = match agent {
        Agent::Gemini(gemini) => gemini.run_in(request, &environment),
        Agent::Other(agent) => agent.run_in(request, &environment),
    };
    let going = going.map_err(boxed)?;
    run.stops_by(going.stopper());
    app.runs.changed(run, |view| {
        view.state = RunState::Running;
        view.started_at = Some(Timestamp::now());
        view.model = model;
        view.approval = Some(crate::policy::mode_name(approval).to_owned());
    });
    run.keep();
    Ok((going, after))
}

/// Why something could not begin, as a failure.
pub fn boxed(error: RunError) -> Box<Failure> {
    Box::new(error.into_failure())
}

/// Keeps its events but the last; where that cannot be, it is stopped.
fn follow(
    app: &App,
    run: &Run,
    mut going: Going,
    fields: &mut InFields<'_>,
) -> (Arc<Outcome>, io::Result<()>) {
    let (mut seen, mut is_kept) = (Seen::default(), Ok(()));
    while let Some(mut event) = going.next_blocking() {
        if matches!(event.kind, EventKind::Finished { .. }) {
            continue;
        }
        if seen.saw(&event) {
            app.runs.changed(run, |view| {
                view.doing = seen.doing().map(str::to_owned);
                (view.tokens, view.cost_usd) = seen.spent();
            });
        }
        if let EventKind::Started { session_id, .. } = &event.kind {
            app.runs.changed(run, |view| view.session_id = Some(session_id.clone()));
            run.keep();
        }
        fields.event(&mut event);
        if is_kept.is_ok() {
            is_kept = run.append(|_| json_line(&event));
            if is_kept.is_err() {
                going.stop();
            }
        }
    }
    (going.outcome_blocking(), is_kept)
}
