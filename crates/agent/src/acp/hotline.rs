//! The way to the engine of a conversation, from anywhere.

use std::io::Write;
use std::sync::mpsc::Sender;

use alhena_sys::sockets::Stream;

use super::conversation::SharedOpened;
use super::permission::Decision;
use crate::engine::Outlet;
use crate::request::Approval;
use crate::run::RING;

/// What the engine is asked to do.
pub(super) enum Order {
    /// A prompt, when those before it are over.
    Prompt { turn: u64, text: String, outlet: Outlet },
    /// Word of the session in `opened`, as soon as there is one.
    Open { turn: u64, outlet: Outlet, opened: SharedOpened },
    /// The answer to a question.
    Decide { question: u64, decision: Decision },
    /// The model from the next prompt on.
    SetModel(String),
    /// What may be done without asking, from now on.
    SetMode(Approval),
    /// A turn is to end now.
    Cancel { turn: u64 },
    /// Everything is to end now.
    Close,
}

/// Takes orders to the engine.
pub(super) struct Hotline {
    orders: Sender<Order>,
    bell: Stream,
}

impl Hotline {
    pub(super) fn new(orders: Sender<Order>, bell: Stream) -> Self {
        Self { orders, bell }
    }

    /// Gives an order; false when nobody takes it any more.
    pub(super) fn give(&self, order: Order) -> bool {
        let taken = self.orders.send(order).is_ok();
        self.ring();
        taken
    }

    /// Says that there is something to be looked at.
    pub(super) fn ring(&self) {
        // A full bell has been rung.
        let _rung = (&self.bell).write(&[RING]);
    }
}
