//! The threads of a conversation: one that opens it, one for each turn, one that closes it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use alhena_agent::{RunError, Talk, Turn, TurnItem, Whom};
use alhena_batch::doing::Seen;
use alhena_batch::meaning::{Agent, Ask, Options};
use alhena_model::{Event, EventKind, Failure, FailureKind, Outcome, Timestamp};
use serde_json::{Value, json};

use super::questions::{asked, resolved, withdrawn};
use super::{ConversationState as State, Held, Turning};
use crate::fields::InFields;
use crate::problem::Problem;
use crate::runs::boxed;
use crate::shelf::beginning;
use crate::state::{App, Shared};

const NOW_AND_THEN: Duration = Duration::from_millis(100);
/// So much of the first prompt is its title.
const TITLE: usize = 200;

/// Starts its agent. Where it was closed meanwhile, whoever closes it says how it ended.
pub fn open(app: &App, held: &Arc<Held>, options: &Options) {
    // Whatever goes wrong here, nobody must wait for its end for ever.
    let begun = catch_unwind(AssertUnwindSafe(|| begin(app, held, options)));
    let opened = held.talking().as_ref().and_then(Talk::opened);
    let failure = match begun {
        Ok(Ok(failure)) => failure,
        Ok(Err(failure)) => Some(*failure),
        Err(_) => Some(Failure::new(FailureKind::Crashed, "the server failed to start the agent")),
    };
    let fails = failure.is_some();
    {
        let mut turning = held.turning();
        turning.is_open = true;
        if turning.is_closing {
            drop(turning);
            held.live.turn_over.notify_all();
            return;
        }
        turning.is_closing = fails;
        if !fails {
            let mut view = held.locked();
            if let Some(opened) = opened {
                view.session_id = Some(opened.session_id).filter(|id| !id.is_empty());
                view.model =
                    view.model.take().or_else(|| Some(opened.model).filter(|model| !model.is_empty()));
            }
            match turning.is_on {
                true => view.state = State::Working,
                false => view.settle(),
            }
            held.keep(&view);
        }
    }
    app.conversations.news.tell();
    held.live.turn_over.notify_all();
    if fails {
        end(app, held, failure);
    }
}

/// There is no thread for it.
pub fn not_opened(app: &App, held: &Arc<Held>, error: &std::io::Error) {
    {
        let mut turning = held.turning();
        (turning.is_open, turning.is_closing) = (true, true);
    }
    let failure = Failure::new(FailureKind::Crashed, format!("the agent could not be started: {error}"));
    end(app, held, Some(failure));
}

/// Why it did not get a session, if it did not.
fn begin(app: &App, held: &Arc<Held>, options: &Options) -> Result<Option<Failure>, Box<Failure>> {
    let mut ask = app.meaning.ask(options, None).map_err(boxed)?;
    app.policy.lower(&mut ask.request, options);
    app.policy.check(&ask.request)?;
    if held.turning().is_closing {
        return Err(Box::new(Failure::new(FailureKind::Cancelled, "it was closed before it began")));
    }
    let after = ask.after.take();
    let Ask { mut request, agent, environment, .. } = ask;
    request.began = None;
    let (mode, model) = (request.approval, request.model.clone());
    let whom = match agent {
        Agent::Gemini(gemini) => Whom::Gemini(*gemini),
        Agent::Other(agent) => Whom::Other(agent),
    };
    let mut talk = Talk::begin(whom, request, environment).map_err(boxed)?;
    app.conversations.changed(held, |view| {
        view.mode = Some(crate::policy::mode_name(mode).to_owned());
        view.model = model;
    });
    let mut turn = talk.open().map_err(boxed)?;
    held.turning().after = after;
    *held.talking() = Some(talk);
    if held.turning().is_closing
        && let Some(talk) = held.talking().take()
    {
        // It was closed before there was anything to close.
        talk.close();
    }
    let mut fields = InFields::new(&*app.meaning);
    while let Some(item) = turn.next_blocking() {
        if let TurnItem::Event(mut event) = item
            && !matches!(event.kind, EventKind::Finished { .. })
        {
            fields.event(&mut event);
            held.tell(0, value(&event));
        }
    }
    Ok(turn.outcome_blocking().failure.clone())
}

/// Begins a turn.
pub fn prompt(app: &Shared, held: &Arc<Held>, text: String) -> Result<(), Problem> {
    {
        let mut turning = held.turning();
        let state = held.locked().state;
        match state {
            State::Closed => return Err(Problem::conflict("the conversation is closed")),
            _ if turning.is_closing => return Err(Problem::conflict("the conversation is being closed")),
            _ if turning.is_on => {
                return Err(Problem::conflict("a turn is on").hint("Wait for its end, or cancel it."));
            }
            _ => (turning.is_on, turning.is_cancelled) = (true, false),
        }
    }
    let mut number = 0;
    app.conversations.changed(held, |view| {
        view.turns += 1;
        if view.state != State::Starting {
            view.state = State::Working;
        }
        view.title.get_or_insert_with(|| beginning(&text, TITLE));
        number = view.turns;
    });
    let (hand, app, held, not_begun) = (app.conversations.hand(), app.clone(), held.clone(), held.clone());
    let spawned = std::thread::Builder::new().name("turn".to_owned()).spawn(move || {
        // Whatever goes wrong here, nobody must wait for its end for ever.
        let outcome = catch_unwind(AssertUnwindSafe(|| turn(&app, &held, number, &text)));
        let outcome = outcome.unwrap_or_else(|_| {
            let failed = Failure::new(FailureKind::Crashed, "the server failed to follow the turn");
            Arc::new(Outcome::not_begun(failed))
        });
        held.turn_ends(number, &outcome);
        app.conversations.news.tell();
        drop(hand);
    });
    spawned.map(|_| ()).map_err(|error| {
        not_begun
            .turn_ends(number, &Outcome::not_begun(Failure::new(FailureKind::Crashed, error.to_string())));
        Problem::broken(error)
    })
}

fn turn(app: &App, held: &Held, number: u64, text: &str) -> Arc<Outcome> {
    held.wait_until(|turning| {
        turning.is_closing || turning.is_cancelled || held.locked().state != State::Starting
    });
    let is_cancelled = held.turning().is_cancelled;
    let begun = match &mut *held.talking() {
        _ if is_cancelled => {
            let cancelled = "the turn was cancelled before it began";
            Err(RunError::Failed(Box::new(Failure::new(FailureKind::Cancelled, cancelled))))
        }
        Some(talk) => talk.prompt(text),
        None => {
            let closed = "the conversation was closed before the turn began";
            Err(RunError::Failed(Box::new(Failure::new(FailureKind::Cancelled, closed))))
        }
    };
    let mut fields = InFields::new(&*app.meaning);
    let mut outcome = match begun {
        Ok(turn) => follow(app, held, number, turn, &mut fields),
        Err(error) => Arc::new(Outcome::not_begun(error.into_failure())),
    };
    fields.outcome(Arc::make_mut(&mut outcome));
    let session = held.talking().as_ref().and_then(Talk::opened).map(|opened| opened.session_id);
    app.conversations.changed(held, |view| {
        view.session_id = session.or(view.session_id.take());
        let used = outcome.usage.all.total;
        if used > 0 {
            let known = view.tokens.is_none() || view.cost_usd.is_some();
            view.cost_usd =
                outcome.cost_usd.filter(|_| known).map(|cost| view.cost_usd.unwrap_or(0.0) + cost);
            view.tokens = Some(view.tokens.unwrap_or(0) + used);
        }
    });
    outcome
}

fn follow(app: &App, held: &Held, number: u64, mut turn: Turn, fields: &mut InFields<'_>) -> Arc<Outcome> {
    {
        let mut turning = held.turning();
        turning.canceller = Some(turn.canceller());
        if turning.is_closing || turning.is_cancelled {
            turn.cancel();
        }
    }
    let mut seen = Seen::default();
    while let Some(item) = turn.next_blocking() {
        match item {
            TurnItem::Event(event) if matches!(event.kind, EventKind::Finished { .. }) => {}
            TurnItem::Event(mut event) => {
                fields.event(&mut event);
                held.tell(number, value(&event));
                if seen.saw(&event) {
                    app.conversations.changed(held, |view| view.doing = seen.doing().map(str::to_owned));
                }
            }
            TurnItem::Asked(permission) => asked(app, held, number, permission),
            TurnItem::Withdrawn { call_id, reason } => withdrawn(app, held, number, &call_id, &reason),
            _ => {}
        }
    }
    // What is still asked is not asked any more.
    let left = std::mem::take(&mut held.turning().waiting);
    left.keys().for_each(|id| resolved(app, held, number, *id, "withdrawn", Some("the turn is over")));
    held.turning().canceller = None;
    turn.outcome_blocking()
}

/// Cancels the turn that goes on, if one does, also while it is on its way to the agent.
pub fn cancel(held: &Held) {
    let mut turning = held.turning();
    turning.is_cancelled = turning.is_on;
    if let Some(canceller) = &turning.canceller {
        canceller.cancel();
    }
    drop(turning);
    held.live.turn_over.notify_all();
}

/// Closes it, and comes back when nothing of it is left.
pub fn close(app: &App, held: &Arc<Held>) {
    let is_first = !std::mem::replace(&mut held.turning().is_closing, true);
    // One that was found closed stays as it was.
    if is_first && !held.is_over() {
        end(app, held, None);
    }
    held.wait_until(|_| held.is_over());
}

impl Held {
    /// The turn is over for whoever hears of it: who sends the next prompt or asks for the conversation at once waits here until
    /// there is room for it, and until that says so too.
    fn turn_ends(&self, number: u64, outcome: &Outcome) {
        let mut turning = self.turning();
        let mut view = self.locked();
        let event = json!({ "type": "turn_finished", "at": Timestamp::now(), "outcome": outcome });
        self.tell(number, event);
        turning.is_on = false;
        if turning.is_open {
            view.settle();
        }
        self.keep(&view);
        drop(view);
        drop(turning);
        self.live.turn_over.notify_all();
    }

    fn wait_until(&self, is_so: impl Fn(&Turning) -> bool) {
        let mut turning = self.turning();
        while !is_so(&turning) {
            // Whoever changes what a conversation does need not know who waits for it.
            self.live.turn_over.wait_for(&mut turning, NOW_AND_THEN);
        }
    }
}

fn end(app: &App, held: &Arc<Held>, mut failure: Option<Failure>) {
    let fields = InFields::new(&*app.meaning);
    failure.iter_mut().for_each(|failure| fields.failure(failure));
    let waiting = {
        let mut turning = held.turning();
        turning.is_closing = true;
        if let Some(canceller) = &turning.canceller {
            canceller.cancel();
        }
        std::mem::take(&mut turning.waiting)
    };
    let turn = held.locked().turns;
    waiting
        .keys()
        .for_each(|id| resolved(app, held, turn, *id, "withdrawn", Some("the conversation is closed")));
    drop(waiting);
    let talk = held.talking().take();
    let mut warnings = Vec::new();
    if let Some(talk) = talk {
        warnings = talk.close().1.warnings;
    }
    // The turn that was on tells how it ended, and an agent that was about to start is not left behind.
    held.wait_until(|turning| !turning.is_on && turning.is_open);
    if let Some(after) = held.turning().after.take() {
        warnings.extend(after(&Outcome::default()));
    }
    let mut last = json!({ "type": "closed", "at": Timestamp::now(), "warnings": fields.warnings(warnings) });
    if let (Some(failure), Some(fields)) = (&failure, last.as_object_mut()) {
        fields.insert("failure".to_owned(), json!(failure));
    }
    {
        // Whoever sees the last event and asks for the conversation waits here until that says so too.
        let mut view = held.locked();
        held.tell(turn, last);
        view.closed(failure);
        held.keep(&view);
    }
    held.end_events();
    app.conversations.news.tell();
    held.live.turn_over.notify_all();
    app.conversations.prune(Timestamp::now());
}

fn value(event: &Event) -> Value {
    serde_json::to_value(event).unwrap_or_default()
}
