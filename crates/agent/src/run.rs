//! A run that is under way: its events, its outcome, and the way to stop it.

use std::fmt;
use std::future::poll_fn;
use std::io::Write;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use alhena_model::options::Transport;
use alhena_model::{Conversation, Event, EventKind, Failure, FailureKind, Outcome};
use alhena_sys::sockets;
use async_channel::{Receiver, Sender};
use futures_core::Stream;
use parking_lot::Mutex;

/// What comes out of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Something happened.
    Event(Event),
    /// A line as the CLI wrote it, without its end, before the events it gave; only on request.
    Line(Vec<u8>),
    /// All that was said and done, before the last event; only on request.
    Conversation(Box<Conversation<'static>>),
}

/// A run: a [`Stream`] of its events. Dropping it stops it.
pub struct Run {
    items: Pin<Box<Receiver<Item>>>,
    queued: Arc<AtomicUsize>,
    stopper: Stopper,
    outcome: Option<Arc<Outcome>>,
    about: About,
    sessions: Sessions,
}

/// Where the engine says which session files the run left in the user's store.
pub(crate) type Sessions = Arc<Mutex<Vec<PathBuf>>>;

/// What is known of a run from its start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct About {
    /// Stands in the environment of all its processes.
    pub mark: String,
    /// Where the CLI's stderr is while the run goes on.
    pub stderr: PathBuf,
    /// How Alhena talks to the CLI.
    pub transport: Transport,
}

impl About {
    pub(crate) fn new(mark: String, stderr: PathBuf, transport: Transport) -> Self {
        Self { mark, stderr, transport }
    }
}

/// Stops a run from another thread; not for use in a signal handler. It holds no descriptor once the run is over.
#[derive(Clone)]
pub struct Stopper {
    over: Over,
}

/// Whether nothing of a run is left, no process and no directory, and until then the callers' way to its engine.
#[derive(Clone, Default)]
pub(crate) struct Over(Arc<Mutex<Line>>);

enum Line {
    /// The run goes on. The socket is missing until there is a [`Stopper`].
    Open(Option<sockets::Stream>),
    /// The run is over.
    Closed,
}

impl Default for Line {
    fn default() -> Self {
        Self::Open(None)
    }
}

impl Over {
    /// Says that nothing of the run is left. Closes the socket, however many stoppers there are.
    pub(crate) fn set(&self) {
        *self.0.lock() = Line::Closed;
    }

    fn is_set(&self) -> bool {
        matches!(*self.0.lock(), Line::Closed)
    }
}

const GENTLY: u8 = b'x';
/// Wakes the engine and asks for nothing.
pub(crate) const RING: u8 = b'.';
/// What the engine hears from [`Stopper::stop_at_once`].
pub(crate) const AT_ONCE: u8 = b'!';

impl Stopper {
    pub(crate) fn new(socket: sockets::Stream, over: Over) -> Self {
        let mut line = over.0.lock();
        if let Line::Open(open) = &mut *line {
            *open = Some(socket);
        }
        drop(line);
        Self { over }
    }

    /// Asks the run to stop; its outcome will be cancelled. Asking twice does no harm.
    pub fn stop(&self) {
        self.say(GENTLY);
    }

    /// Ends at once what [`Stopper::stop`] ends gently: the CLI gets no time to say goodbye, and what it wrote is not read
    /// any more.
    pub fn stop_at_once(&self) {
        self.say(AT_ONCE);
    }

    /// Whether nothing of the run is left, no process and no directory, so that this program can end without harm.
    pub fn is_over(&self) -> bool {
        self.over.is_set()
    }

    fn say(&self, word: u8) {
        if let Line::Open(Some(socket)) = &*self.over.0.lock() {
            // A full or closed socket means that it was asked before, or is over.
            let _over = (&*socket).write(&[word]);
        }
    }
}

impl Run {
    pub(crate) fn new(
        items: Receiver<Item>,
        queued: Arc<AtomicUsize>,
        stopper: Stopper,
        about: About,
        sessions: Sessions,
    ) -> Self {
        Self { items: Box::pin(items), queued, stopper, outcome: None, about, sessions }
    }

    /// What is known of it from its start.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The next event; `None` after the last.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// The next event, waiting in this thread.
    pub fn next_blocking(&mut self) -> Option<Event> {
        loop {
            if let Item::Event(event) = self.next_item_blocking()? {
                return Some(event);
            }
        }
    }

    /// The next event or line, waiting in this thread.
    pub fn next_item_blocking(&mut self) -> Option<Item> {
        let item = self.items.recv_blocking().ok()?;
        Some(self.taken(item))
    }

    fn taken(&mut self, item: Item) -> Item {
        self.queued.fetch_sub(item.weight(), Ordering::AcqRel);
        if let Item::Event(Event { kind: EventKind::Finished { outcome }, .. }) = &item {
            self.outcome = Some(outcome.clone());
        }
        item
    }

    /// Whether nothing is waiting to be taken at this moment.
    pub fn caught_up(&self) -> bool {
        self.items.is_empty()
    }

    /// The outcome; events that nobody took are passed over.
    pub async fn outcome(mut self) -> Arc<Outcome> {
        while self.outcome.is_none() && self.next().await.is_some() {}
        self.outcome.take().unwrap_or_else(no_outcome)
    }

    /// The outcome, waiting in this thread.
    pub fn outcome_blocking(mut self) -> Arc<Outcome> {
        while self.outcome.is_none() && self.next_blocking().is_some() {}
        self.outcome.take().unwrap_or_else(no_outcome)
    }

    /// The session files that the run left in the user's store; known once it is over.
    pub fn session_files(&self) -> Vec<PathBuf> {
        self.sessions.lock().clone()
    }

    /// Asks the run to stop. Its events go on until the last.
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// Something that can stop the run from elsewhere.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }
}

/// The outcome of a run whose engine ended without one: nothing is known of it, so it failed.
pub(crate) fn no_outcome() -> Arc<Outcome> {
    let failure = Failure::new(FailureKind::Crashed, "The run was lost: its engine ended without an outcome")
        .with_hint("This is a defect of Alhena. What the run did before is not known; check the folder, then run again.");
    Arc::new(Outcome::not_begun(failure))
}

impl Stream for Run {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            let Some(item) = ready!(self.items.as_mut().poll_next(context)) else { return Poll::Ready(None) };
            if let Item::Event(event) = self.taken(item) {
                return Poll::Ready(Some(event));
            }
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_over = self.stopper.is_over();
        f.debug_struct("Run").field("about", &self.about).field("is_over", &is_over).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopper").field("is_over", &self.is_over()).finish_non_exhaustive()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// Where the engine puts events. Bounded in number and in bytes, so that a slow reader costs no memory: the rest
/// waits in the file.
pub(crate) struct Queue<T = Item> {
    items: Sender<T>,
    queued: Arc<AtomicUsize>,
}

/// About how much memory something holds.
pub(crate) trait Weigh {
    fn weight(&self) -> usize;
}

/// Whether anybody still listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// There is room.
    Ready,
    /// It is behind.
    Busy,
    /// It is gone.
    Gone,
}

const MOST_EVENTS: usize = 4096;
const MOST_BYTES: usize = 1 << 20;

impl<T: Weigh> Queue<T> {
    pub(crate) fn new() -> (Self, Receiver<T>, Arc<AtomicUsize>) {
        let (items, receiver) = async_channel::bounded(MOST_EVENTS);
        let queued = Arc::new(AtomicUsize::new(0));
        (Self { items, queued: queued.clone() }, receiver, queued)
    }

    pub(crate) fn listener(&self) -> Listener {
        if self.items.is_closed() {
            Listener::Gone
        } else if self.items.is_full() || self.queued() >= MOST_BYTES {
            Listener::Busy
        } else {
            Listener::Ready
        }
    }

    /// How much waits to be taken, in bytes.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Acquire)
    }

    /// Adds an item; gives it back when there is no room.
    pub(crate) fn offer(&self, item: T) -> Option<T> {
        if self.listener() == Listener::Busy {
            return Some(item);
        }
        let weight = item.weight();
        self.queued.fetch_add(weight, Ordering::AcqRel);
        match self.items.try_send(item) {
            Ok(()) => None,
            Err(async_channel::TrySendError::Full(item)) => {
                self.queued.fetch_sub(weight, Ordering::AcqRel);
                Some(item)
            }
            // Nobody listens any more; the engine finds out and stops.
            Err(async_channel::TrySendError::Closed(_)) => None,
        }
    }
}

impl Weigh for Item {
    fn weight(&self) -> usize {
        size_of::<Item>()
            + match self {
                Item::Line(line) => line.len(),
                // Nothing comes behind it that could queue.
                Item::Conversation(_) => 0,
                Item::Event(event) => heavy_event(event),
            }
    }
}

fn heavy_event(event: &Event) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    match &event.kind {
        EventKind::Text { delta } => delta.len(),
        EventKind::Prompt { text } | EventKind::Thinking { text, .. } => text.len(),
        EventKind::ToolResult { output, .. } | EventKind::Command { output, .. } => text(output),
        EventKind::FileChange(change) => text(&change.diff),
        EventKind::ToolCall { input, .. } => heavy(input),
        EventKind::Unknown { raw } => heavy(raw),
        _ => 0,
    }
}

/// The strings of a value, one level deep: that is where file contents are.
fn heavy(value: &serde_json::Value) -> usize {
    value
        .as_object()
        .map_or(0, |fields| fields.values().filter_map(|field| field.as_str()).map(str::len).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alhena_model::Status;

    #[test]
    fn a_run_whose_engine_is_gone_has_failed_and_says_why() {
        let (queue, items, queued) = Queue::new();
        drop(queue);
        let stopper = Stopper::new(sockets::Stream::pair().unwrap().0, Over::default());
        let about = About::new(String::new(), PathBuf::new(), Transport::Headless);
        let outcome = Run::new(items, queued, stopper, about, Sessions::default()).outcome_blocking();
        let kind = outcome.failure.as_ref().map(|failure| failure.kind);
        assert_eq!((outcome.status, kind), (Status::Failed, Some(FailureKind::Crashed)));
    }

    #[test]
    fn stoppers_that_outlive_their_run_hold_no_socket() {
        let (ours, mut theirs) = sockets::Stream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let mut read = || std::io::Read::read(&mut theirs, &mut [0; 8]).map_err(|error| error.kind());
        let over = Over::default();
        let stopper = Stopper::new(ours, over.clone());
        let other = stopper.clone();
        assert_eq!(read(), Err(std::io::ErrorKind::WouldBlock));
        other.stop();
        assert_eq!((read(), stopper.is_over()), (Ok(1), false));
        over.set();
        stopper.stop();
        assert_eq!((read(), stopper.is_over(), other.is_over()), (Ok(0), true, true));
        // The same where the run was over before anybody could stop it.
        let (ours, mut theirs) = sockets::Stream::pair().unwrap();
        let late = Stopper::new(ours, over);
        assert_eq!((std::io::Read::read(&mut theirs, &mut [0; 8]).unwrap(), late.is_over()), (0, true));
    }
}
