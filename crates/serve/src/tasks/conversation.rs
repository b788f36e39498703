//! The threads of a conversation: one that opens it, one for each turn, and one that closes it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use alhena_agent::{RunError, Talk, Turn, TurnItem};
use alhena_batch::launcher::Launch;
use alhena_batch::perform::Seen;
use alhena_model::{EventKind, Failure, FailureKind, Outcome, RunOptions};

use super::questions::{asked, withdraw, withdrawn};
use super::{Control, LONGEST_TITLE, TaskEntry, TaskState, beginning, boxed, launch};
use crate::problem::Problem;
use crate::state::{App, Shared};

const NOW_AND_THEN: Duration = Duration::from_millis(100);

/// Starts the agent of a conversation. If the conversation is being closed, its end is told by who closes it.
pub fn open(app: &App, entry: &TaskEntry, options: &RunOptions) {
    // A panic must not leave the clients of this conversation waiting.
    let begun = catch_unwind(AssertUnwindSafe(|| begin(app, entry, options)));
    let opened = entry.talk().as_ref().and_then(Talk::opened);
    let failure = match begun {
        Ok(Ok(failure)) => failure,
        Ok(Err(failure)) => Some(*failure),
        Err(_) => Some(Failure::new(FailureKind::Crashed, "the server failed to start the agent")),
    };
    let fails = failure.is_some();
    {
        let mut control = entry.control();
        control.is_open = true;
        if control.is_closing {
            drop(control);
            entry.changed.notify_all();
            return;
        }
        control.is_closing = fails;
        if !fails {
            let mut task = entry.locked();
            if let Some(opened) = opened {
                task.session_id = Some(opened.session_id).filter(|id| !id.is_empty());
                task.model =
                    task.model.take().or_else(|| Some(opened.model).filter(|model| !model.is_empty()));
            }
            match control.in_turn {
                true => task.state = TaskState::Working,
                false => task.settle(),
            }
            entry.save(&task);
        }
    }
    app.tasks.news.tell();
    entry.changed.notify_all();
    if fails {
        end(app, entry, failure);
    }
}

/// Ends a conversation that has no thread to open it.
pub fn not_opened(app: &App, entry: &TaskEntry, failure: Failure) {
    {
        let mut control = entry.control();
        (control.is_open, control.is_closing) = (true, true);
    }
    end(app, entry, Some(failure));
}

/// Returns why the agent has no session, if it has none.
fn begin(app: &App, entry: &TaskEntry, options: &RunOptions) -> Result<Option<Failure>, Box<Failure>> {
    let Launch { mut request, agent, environment, after } = launch(app, None, options)?;
    if entry.control().is_closing {
        return Err(Box::new(Failure::new(FailureKind::Cancelled, "it was closed before it began")));
    }
    request.began = None;
    let (mode, model) = (request.approval, request.model.clone());
    let mut talk = Talk::begin(agent, request, environment).map_err(boxed)?;
    app.tasks.change(entry, |task| {
        task.approval = Some(mode.to_string());
        task.model = model;
    });
    let mut turn = talk.open().map_err(boxed)?;
    entry.control().after = after;
    *entry.talk() = Some(talk);
    if entry.control().is_closing
        && let Some(talk) = entry.talk().take()
    {
        // It was closed before there was anything to close.
        talk.close();
    }
    while let Some(item) = turn.next_blocking() {
        if let TurnItem::Event(event) = item
            && !matches!(event.kind, EventKind::Finished { .. })
        {
            entry.keep(0, event);
        }
    }
    Ok(turn.outcome_blocking().failure.clone())
}

/// Begins a turn.
pub fn prompt(app: &Shared, entry: &Arc<TaskEntry>, text: String) -> Result<(), Problem> {
    {
        let mut control = entry.control();
        if entry.is_over() {
            return Err(Problem::conflict("the conversation is closed"));
        }
        if control.is_closing {
            return Err(Problem::conflict("the conversation is being closed"));
        }
        if control.in_turn {
            return Err(Problem::conflict("a turn is on").hint("Wait for its end, or cancel it."));
        }
        (control.in_turn, control.is_cancelled) = (true, false);
    }
    let mut number = 0;
    app.tasks.change(entry, |task| {
        task.turns += 1;
        if task.state != TaskState::Starting {
            task.state = TaskState::Working;
        }
        task.title.get_or_insert_with(|| beginning(&text, LONGEST_TITLE));
        number = task.turns;
    });
    let spawned = app.spawn("turn", entry, move |app, entry| {
        // A panic must not leave the clients of this turn waiting.
        let outcome = catch_unwind(AssertUnwindSafe(|| turn(app, entry, number, &text)));
        let outcome = outcome.unwrap_or_else(|_| {
            let failed = Failure::new(FailureKind::Crashed, "the server failed to follow the turn");
            Arc::new(Outcome::not_begun(failed))
        });
        entry.end_turn(number, outcome);
        app.tasks.news.tell();
    });
    spawned.map_err(|error| {
        let failure = Failure::new(FailureKind::Crashed, error.to_string());
        entry.end_turn(number, Arc::new(Outcome::not_begun(failure)));
        Problem::broken(error)
    })
}

fn turn(app: &App, entry: &TaskEntry, number: u64, text: &str) -> Arc<Outcome> {
    entry.wait_until(|control| {
        control.is_closing || control.is_cancelled || entry.locked().state != TaskState::Starting
    });
    let cancelled = |why| Err(RunError::Failed(Box::new(Failure::new(FailureKind::Cancelled, why))));
    let is_cancelled = entry.control().is_cancelled;
    let begun = match &mut *entry.talk() {
        _ if is_cancelled => cancelled("the turn was cancelled before it began"),
        Some(talk) => talk.prompt(text),
        None => cancelled("the conversation was closed before the turn began"),
    };
    let outcome = match begun {
        Ok(turn) => follow(app, entry, number, turn),
        Err(error) => Arc::new(Outcome::not_begun(error.into_failure())),
    };
    let session = entry.talk().as_ref().and_then(Talk::opened).map(|opened| opened.session_id);
    app.tasks.change(entry, |task| {
        task.session_id = session.or(task.session_id.take());
        let used = outcome.usage.all.total;
        if used > 0 {
            let known = task.tokens.is_none() || task.cost_usd.is_some();
            task.cost_usd =
                outcome.cost_usd.filter(|_| known).map(|cost| task.cost_usd.unwrap_or(0.0) + cost);
            task.tokens = Some(task.tokens.unwrap_or(0) + used);
        }
    });
    outcome
}

fn follow(app: &App, entry: &TaskEntry, number: u64, mut turn: Turn) -> Arc<Outcome> {
    {
        let mut control = entry.control();
        control.canceller = Some(turn.canceller());
        if control.is_closing || control.is_cancelled {
            turn.cancel();
        }
    }
    let mut seen = Seen::default();
    while let Some(item) = turn.next_blocking() {
        match item {
            TurnItem::Event(event) if matches!(event.kind, EventKind::Finished { .. }) => {}
            TurnItem::Event(event) => {
                let has_changed = seen.saw(&event);
                entry.keep(number, event);
                if has_changed {
                    app.tasks.change(entry, |task| task.doing = seen.doing().map(str::to_owned));
                }
            }
            TurnItem::Asked(permission) => asked(app, entry, number, permission),
            TurnItem::Withdrawn { call_id, reason } => withdrawn(app, entry, number, &call_id, &reason),
            _ => {}
        }
    }
    let left = std::mem::take(&mut entry.control().waiting);
    left.keys().for_each(|id| withdraw(app, entry, number, *id, "the turn is over"));
    entry.control().canceller = None;
    turn.outcome_blocking()
}

/// Cancels the turn that is on, if one is, also while it is on its way to the agent.
pub fn cancel(entry: &TaskEntry) {
    let mut control = entry.control();
    control.is_cancelled = control.in_turn;
    if let Some(canceller) = &control.canceller {
        canceller.cancel();
    }
    drop(control);
    entry.changed.notify_all();
}

/// Closes a conversation, and returns when nothing of it is left.
pub fn close(app: &App, entry: &TaskEntry) {
    let is_first = !std::mem::replace(&mut entry.control().is_closing, true);
    if is_first && !entry.is_over() {
        end(app, entry, None);
    }
    entry.wait_until(|_| entry.is_over());
}

impl TaskEntry {
    /// Adds an event of a turn, and logs an error.
    fn keep(&self, turn: u64, event: alhena_model::Event) {
        self.append(Some(turn), event).unwrap_or_else(|error| self.not_kept("an event", &error));
    }

    /// Ends a turn. A client that hears of the end and sends the next prompt, or asks for the conversation, waits here until there
    /// is room for the prompt, and until the conversation has changed.
    fn end_turn(&self, number: u64, outcome: Arc<Outcome>) {
        let mut control = self.control();
        let mut task = self.locked();
        self.emit(Some(number), EventKind::TurnFinished { outcome });
        control.in_turn = false;
        if control.is_open {
            task.settle();
        }
        self.save(&task);
        drop(task);
        drop(control);
        self.changed.notify_all();
    }

    fn wait_until(&self, is_so: impl Fn(&Control) -> bool) {
        let mut control = self.control();
        while !is_so(&control) {
            // Not every change of the task notifies.
            self.changed.wait_for(&mut control, NOW_AND_THEN);
        }
    }
}

fn end(app: &App, entry: &TaskEntry, failure: Option<Failure>) {
    let waiting = {
        let mut control = entry.control();
        control.is_closing = true;
        if let Some(canceller) = &control.canceller {
            canceller.cancel();
        }
        std::mem::take(&mut control.waiting)
    };
    let turn = entry.locked().turns;
    waiting.keys().for_each(|id| withdraw(app, entry, turn, *id, "the conversation is closed"));
    drop(waiting);
    let talk = entry.talk().take();
    let mut warnings = talk.map(|talk| talk.close().1.warnings).unwrap_or_default();
    // The turn that was on tells how it ended, and an agent that was about to start is not left behind.
    entry.wait_until(|control| !control.in_turn && control.is_open);
    if let Some(after) = entry.control().after.take() {
        warnings.extend(after(&Outcome::default()));
    }
    let last = EventKind::Closed { warnings, failure: failure.clone().map(Box::new) };
    app.tasks.end(entry, last, |task| task.end(failure));
}
