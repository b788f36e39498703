//! A process that serves independent prompts, one after the other: what it is given, and what it tells of itself.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use alhena_sys::sockets::Stream;

use crate::prepare::RunError;
use crate::request::ResolvedRequest;
use crate::run::{Item, Over, Queue};

use super::hotline::{Hotline, Order};

/// One prompt.
pub(crate) struct Job {
    pub text: String,
    pub outlet: Queue<Item>,
    pub terms: Box<Terms>,
}

/// On what terms it is served.
pub(crate) struct Terms {
    pub request: ResolvedRequest,
    pub place: SessionFolder,
    /// Rung when it is to stop; none when it has been.
    pub bell: Option<Stream>,
    pub over: Over,
    /// How often a process died of it, or with it.
    pub deaths: u32,
}

/// Where a session works, and in what state its folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionFolder {
    pub dir: PathBuf,
    /// Changes whenever something does that a session reads once.
    pub state: String,
}

/// What a process is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub heap_mb: u64,
    /// Whether its sessions are to be used again.
    pub reuse: bool,
}

/// What a process tells of itself.
pub(crate) enum Told {
    /// It has served its prompt and can take another.
    Free(Free),
    /// It is gone. A prompt that nothing had come of yet is given back.
    Gone { back: Option<Box<Job>>, why: Option<RunError> },
}

/// A process without a prompt.
#[derive(Debug)]
pub(crate) struct Free {
    /// Where its session is, if that has nothing in it.
    pub clean: Option<SessionFolder>,
    /// How many sessions it has had.
    pub sessions: u32,
    /// Its memory, in bytes.
    pub memory: u64,
}

/// The place where a process finds its next prompt. Whoever puts one there knows that it is taken, or given back.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Content>>);

#[derive(Default)]
enum Content {
    #[default]
    Empty,
    Job(Box<Job>),
    /// Nobody takes anything any more.
    Closed,
}

impl Slot {
    /// Puts a prompt there; gives it back when it cannot be taken.
    pub(crate) fn put(&self, job: Box<Job>) -> Result<(), Box<Job>> {
        let mut content = self.0.lock();
        match *content {
            Content::Empty => {
                *content = Content::Job(job);
                Ok(())
            }
            Content::Job(_) | Content::Closed => Err(job),
        }
    }

    pub(super) fn take(&self) -> Option<Box<Job>> {
        let mut content = self.0.lock();
        match std::mem::take(&mut *content) {
            Content::Job(job) => Some(job),
            Content::Empty => None,
            Content::Closed => {
                *content = Content::Closed;
                None
            }
        }
    }

    /// Takes nothing any more; gives back what nobody has taken.
    pub(super) fn close(&self) -> Option<Box<Job>> {
        match std::mem::replace(&mut *self.0.lock(), Content::Closed) {
            Content::Job(job) => Some(job),
            Content::Empty | Content::Closed => None,
        }
    }
}

/// The way to a process.
#[derive(Clone)]
pub(crate) struct Service {
    slot: Slot,
    hotline: Arc<Hotline>,
}

impl Service {
    pub(super) fn new(slot: Slot, hotline: Arc<Hotline>) -> Self {
        Self { slot, hotline }
    }

    /// Gives it a prompt; gives that back when the process is busy or gone.
    pub(crate) fn give(&self, job: Box<Job>) -> Result<(), Box<Job>> {
        self.slot.put(job)?;
        self.hotline.ring();
        Ok(())
    }

    /// Ends it. It tells when it is gone.
    pub(crate) fn end(&self) {
        let _gone = self.hotline.give(Order::Close);
    }
}
