//! What a program gets: a conversation of several turns.

use std::fmt;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use alhena_model::{Event, EventKind, FailureKind, Outcome, RunOptions, Status};
use async_channel::Receiver;
use futures_core::Stream;
use parking_lot::Mutex;

use super::hotline::{Hotline, Order};
use super::permission::Permission;
use super::process::Who;
use super::transport;
use crate::engine::Outlet;
use crate::env::Environment;
use crate::find::Gemini;
use crate::prepare::{RunError, asking};
use crate::request::{Approval, ResolvedRequest, RunExtras};
use crate::run::{About, Item, Queue, Weigh};

impl Gemini {
    /// Begins a conversation.
    ///
    /// Nobody is waited for: a CLI that cannot start is a failure of the first turn.
    pub fn converse(&self, options: &RunOptions) -> Result<Conversation, RunError> {
        self.converse_with(options, RunExtras::default())
    }

    /// Begins a conversation with what is not an option, such as callbacks or another environment.
    pub fn converse_with(&self, options: &RunOptions, extras: RunExtras) -> Result<Conversation, RunError> {
        let environment = extras.environment.clone();
        self.start_conversation(ResolvedRequest::for_program(None, options, extras)?, &environment)
    }

    /// Begins a conversation whose options are resolved, for programs of this workspace.
    #[doc(hidden)]
    pub fn start_conversation(
        &self,
        request: ResolvedRequest,
        environment: &Environment,
    ) -> Result<Conversation, RunError> {
        transport::converse(Who::Gemini(self), request, environment)
    }
}

/// A conversation with one agent: turn after turn, each with its events and its outcome. Dropping it ends everything.
pub struct Conversation {
    hotline: Arc<Hotline>,
    turns: u64,
    about: About,
    opened: SharedOpened,
    closed: Receiver<Closed>,
    /// What it left, once somebody has waited for that.
    left: Option<Closed>,
    /// Somebody decides before a tool runs.
    hooked: bool,
}

/// Where the engine says which session it is.
pub(super) type SharedOpened = Arc<Mutex<Option<Opened>>>;

/// What an agent says of its session when that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Opened {
    /// The session's id.
    pub session_id: String,
    /// The model that it begins with; empty when the agent does not say.
    pub model: String,
    /// The models that the agent offers.
    pub models: Vec<OfferedModel>,
}

/// A model that an agent offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OfferedModel {
    /// Its name for [`Conversation::set_model`].
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// More about it.
    pub description: Option<String>,
}

/// What a conversation left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Closed {
    /// The session files in the user's store.
    pub session_files: Vec<PathBuf>,
    /// What people should know.
    pub warnings: Vec<String>,
}

impl Closed {
    /// The end of another conversation, too.
    pub(super) fn add(&mut self, other: Self) {
        self.session_files.extend(other.session_files);
        self.warnings.extend(other.warnings);
    }
}

/// What comes out of a turn.
#[derive(Debug)]
#[non_exhaustive]
pub enum TurnItem {
    /// Something happened.
    Event(Event),
    /// The agent wants to do something, and waits for the answer.
    Asked(Permission),
    /// It does not wait any longer: the question is rejected, and no answer to it counts.
    Withdrawn {
        /// The call that was asked about.
        call_id: String,
        /// Why: the time for an answer is over, or the turn is.
        reason: String,
    },
    /// A line as the agent wrote it; only on request.
    Line(Vec<u8>),
    /// All that was said and done, before the last event; only on request.
    Conversation(Box<alhena_model::Conversation<'static>>),
}

impl From<Item> for TurnItem {
    fn from(item: Item) -> Self {
        match item {
            Item::Event(event) => Self::Event(event),
            Item::Line(line) => Self::Line(line),
            Item::Conversation(said) => Self::Conversation(said),
        }
    }
}

/// One prompt and all that follows from it: a [`Stream`] of items, then an outcome. Dropping it cancels the turn.
pub struct Turn {
    items: Pin<Box<Receiver<(TurnItem, usize)>>>,
    queued: Arc<AtomicUsize>,
    canceller: Canceller,
    outcome: Option<Arc<Outcome>>,
    /// Of a turn without a prompt: where the engine says that it has its session.
    opens: Option<SharedOpened>,
}

/// Cancels a turn from anywhere. The conversation goes on.
#[derive(Clone)]
pub struct Canceller {
    hotline: Arc<Hotline>,
    turn: u64,
}

impl Weigh for (TurnItem, usize) {
    fn weight(&self) -> usize {
        self.1
    }
}

impl Conversation {
    pub(super) fn new(
        hotline: Arc<Hotline>,
        about: About,
        opened: SharedOpened,
        closed: Receiver<Closed>,
        hooked: bool,
    ) -> Self {
        Self { hotline, turns: 0, about, opened, closed, left: None, hooked }
    }

    /// A turn without a prompt: it succeeds when the agent has its session. A CLI that cannot start is its failure, as it would
    /// be that of a prompt.
    pub fn open(&mut self) -> Result<Turn, RunError> {
        // Not that of the conversation, which keeps its session when the agent has ended.
        let opened = SharedOpened::default();
        let mut turn = self.begin(|turn, outlet| Order::Open { turn, outlet, opened: opened.clone() })?;
        turn.opens = Some(opened);
        Ok(turn)
    }

    /// A prompt. While another turn goes on it waits for its end.
    pub fn prompt(&mut self, text: impl Into<String>) -> Result<Turn, RunError> {
        let text = text.into();
        self.begin(|turn, outlet| Order::Prompt { turn, text, outlet })
    }

    fn begin(&mut self, order: impl FnOnce(u64, Outlet) -> Order) -> Result<Turn, RunError> {
        self.turns += 1;
        let (queue, items, queued) = Queue::new();
        let turn = self.turns;
        if !self.hotline.give(order(turn, Outlet::Turn(queue))) {
            return Err(over());
        }
        let canceller = Canceller { hotline: self.hotline.clone(), turn };
        Ok(Turn { items: Box::pin(items), queued, canceller, outcome: None, opens: None })
    }

    /// The model from the next prompt on. If the agent does not take it, that turn fails.
    pub fn set_model(&mut self, model: impl Into<String>) -> Result<(), RunError> {
        self.hotline.give(Order::SetModel(model.into())).then_some(()).ok_or_else(over)
    }

    /// What may be done without asking, from now on. Where somebody decides before a tool runs, it cannot be plan mode.
    pub fn set_mode(&mut self, mode: Approval) -> Result<(), RunError> {
        if self.hooked && mode == Approval::Plan {
            return Err(asking::not_in_plan_mode());
        }
        self.hotline.give(Order::SetMode(mode)).then_some(()).ok_or_else(over)
    }

    /// The session's id, once there is one.
    pub fn session_id(&self) -> Option<String> {
        self.opened().map(|opened| opened.session_id)
    }

    /// What the agent says of its session, once there is one.
    pub fn opened(&self) -> Option<Opened> {
        self.opened.lock().clone()
    }

    /// What is known of its process from the start.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Ends it, and waits until nothing of it is left: no process, no directory, and its session in the user's store.
    pub async fn close(mut self) -> Closed {
        let _over = self.hotline.give(Order::Close);
        match self.left.take() {
            Some(left) => left,
            None => self.closed.recv().await.unwrap_or_default(),
        }
    }

    /// The same, waiting in this thread.
    pub fn close_blocking(mut self) -> Closed {
        self.end_blocking();
        self.left.take().unwrap_or_default()
    }

    /// Ends it as [`Conversation::close_blocking`] does, and keeps it: what is prompted from then on is refused.
    pub fn end_blocking(&mut self) {
        let _over = self.hotline.give(Order::Close);
        if self.left.is_none() {
            self.left = self.closed.recv_blocking().ok();
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _over = self.hotline.give(Order::Close);
    }
}

fn over() -> RunError {
    RunError::failed(FailureKind::Crashed, "the conversation is over: its agent has ended")
}

impl Turn {
    /// The outcome of a turn that gave none: one without a prompt that has its session, or one that came when the agent had
    /// ended, which has failed.
    fn without_outcome(&self) -> Arc<Outcome> {
        let opened = self.opens.as_ref();
        let opened = opened.and_then(|opened| opened.lock().clone());
        let mut outcome = Outcome::not_begun(over().into_failure());
        if let Some(opened) = opened {
            (outcome.status, outcome.failure) = (Status::Success, None);
            outcome.session_id = Some(opened.session_id);
        }
        Arc::new(outcome)
    }

    /// The next item; `None` after the last.
    pub async fn next(&mut self) -> Option<TurnItem> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// The next item, waiting in this thread.
    pub fn next_blocking(&mut self) -> Option<TurnItem> {
        let (item, weight) = self.items.recv_blocking().ok()?;
        Some(self.taken(item, weight))
    }

    fn taken(&mut self, item: TurnItem, weight: usize) -> TurnItem {
        self.queued.fetch_sub(weight, Ordering::AcqRel);
        if let TurnItem::Event(Event { kind: EventKind::Finished { outcome }, .. }) = &item {
            self.outcome = Some(outcome.clone());
        }
        item
    }

    /// The outcome; what nobody took is passed over, and questions are rejected.
    pub async fn outcome(mut self) -> Arc<Outcome> {
        while self.outcome.is_none() && self.next().await.is_some() {}
        self.outcome.take().unwrap_or_else(|| self.without_outcome())
    }

    /// The outcome, waiting in this thread.
    pub fn outcome_blocking(mut self) -> Arc<Outcome> {
        while self.outcome.is_none() && self.next_blocking().is_some() {}
        self.outcome.take().unwrap_or_else(|| self.without_outcome())
    }

    /// Something that can cancel the turn from elsewhere.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Cancels it. Its items go on until the last.
    pub fn cancel(&self) {
        self.canceller.cancel();
    }
}

impl Canceller {
    /// Cancels the turn; its outcome will be cancelled, unless it was over. Cancelling twice does no harm.
    pub fn cancel(&self) {
        let _over = self.hotline.give(Order::Cancel { turn: self.turn });
    }
}

impl Stream for Turn {
    type Item = TurnItem;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TurnItem>> {
        let Some((item, weight)) = ready!(self.items.as_mut().poll_next(context)) else {
            return Poll::Ready(None);
        };
        Poll::Ready(Some(self.taken(item, weight)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.canceller.cancel();
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation").field("about", &self.about).finish_non_exhaustive()
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("number", &self.canceller.turn).finish_non_exhaustive()
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("turn", &self.turn).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use alhena_model::options;
    use alhena_sys::sockets;

    use super::*;

    fn opened() -> Opened {
        Opened { session_id: "s".to_owned(), ..Opened::default() }
    }

    #[test]
    fn a_turn_without_a_prompt_fails_when_the_agent_ends_before_it_and_the_session_was_there_earlier() {
        let (orders, taken) = mpsc::channel();
        let (bell, _rung) = sockets::Stream::pair().unwrap();
        let (_closed, is_closed) = async_channel::bounded(1);
        let about = About::new(String::new(), PathBuf::new(), options::Transport::Acp);
        let known = SharedOpened::default();
        let hotline = Arc::new(Hotline::new(orders, bell));
        let mut conversation = Conversation::new(hotline, about, known.clone(), is_closed, false);

        let first = conversation.open().unwrap();
        let Ok(Order::Open { outlet, opened: word, .. }) = taken.recv() else { panic!() };
        *known.lock() = Some(opened());
        *word.lock() = Some(opened());
        drop(outlet);
        let outcome = first.outcome_blocking();
        assert_eq!((outcome.status, outcome.session_id.as_deref()), (Status::Success, Some("s")));

        let second = conversation.open().unwrap();
        drop(taken);
        let outcome = second.outcome_blocking();
        assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), Some(FailureKind::Crashed));
        assert_eq!(conversation.session_id().as_deref(), Some("s"), "a later agent goes on with it");
    }
}
