//! The way from an engine to whoever reads the events.

use std::collections::VecDeque;

use crate::acp::TurnItem;
use crate::run::{Item, Listener, Queue, Weigh};

/// Where what comes out goes: to a run, or to a turn of a conversation.
pub(crate) enum Outlet {
    /// Nobody is there who could be asked.
    Run(Queue<Item>),
    Turn(Queue<(TurnItem, usize)>),
}

impl Outlet {
    pub(crate) fn listener(&self) -> Listener {
        match self {
            Outlet::Run(queue) => queue.listener(),
            Outlet::Turn(queue) => queue.listener(),
        }
    }

    /// How much waits to be taken, in bytes.
    pub(crate) fn queued(&self) -> usize {
        match self {
            Outlet::Run(queue) => queue.queued(),
            Outlet::Turn(queue) => queue.queued(),
        }
    }

    /// Whether questions find somebody.
    pub(crate) fn can_be_asked(&self) -> bool {
        matches!(self, Outlet::Turn(_)) && self.listener() != Listener::Gone
    }

    /// Hands out as much as is taken; false when some has to wait.
    pub(crate) fn hand_out(&self, waiting: &mut VecDeque<Item>) -> bool {
        while let Some(item) = waiting.pop_front() {
            if self.listener() == Listener::Busy {
                waiting.push_front(item);
                return false;
            }
            // There is room, and nobody else who could take it.
            match self {
                Outlet::Run(queue) => drop(queue.offer(item)),
                Outlet::Turn(queue) => {
                    let weight = item.weight();
                    drop(queue.offer((item.into(), weight)));
                }
            }
        }
        true
    }

    /// Hands out something about a question; gives it back when there is no room now.
    pub(crate) fn ask(&self, about: TurnItem) -> Option<TurnItem> {
        let Outlet::Turn(queue) = self else { return Some(about) };
        queue.offer((about, QUESTION)).map(|(about, _)| about)
    }
}

/// What a question weighs: there are few of them.
const QUESTION: usize = size_of::<TurnItem>();
