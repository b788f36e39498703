//! One prompt and all that follows from it, from the engine's side.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use alhena_model::{EventKind, Malformed, Stop};
use alhena_wire::acp::Choice;
use alhena_wire::responses::FunctionCall;
use alhena_wire::rpc::Id;

use super::conversation::{SharedOpened, TurnItem};
use super::permission::{Permission, Question, Withdrawn};
use super::service::Terms;
use crate::account::Account;
use crate::engine::Outlet;
use crate::rate_limit::Patience;
use crate::run::Item;
use crate::tail::SessionTail;

/// How long an agent may be silent instead of answering a cancel: 10 ms are usual (0.61.0).
const PATIENCE_WITH_CANCEL: Duration = Duration::from_secs(5);
/// The same for one that goes on to talk.
const LONGEST_CANCEL: Duration = Duration::from_secs(20);

/// A question that waits.
pub(super) struct Pending {
    pub id: Id,
    pub question: Question,
    /// The call as the API's answer has it, where answers are recorded; until those who decide have it.
    pub recorded: Option<FunctionCall>,
    pub options: Vec<Choice>,
    pub since: Instant,
    /// Somebody who decides was asked first, and has not decided.
    pub deciding: bool,
    pub withdrawn: Withdrawn,
}

/// A prompt that has its turn.
pub(super) struct Exchange {
    pub number: u64,
    pub text: String,
    /// There is no prompt: somebody waits here for the session.
    pub opens: Option<SharedOpened>,
    pub outlet: Outlet,
    pub account: Account,
    pub began: Instant,
    /// The request, once it is sent.
    pub request: Option<u64>,
    /// Questions without an answer.
    pub questions: BTreeMap<u64, Pending>,
    /// Those that have not been handed out, and word of those that are not asked any more.
    pub asking: VecDeque<TurnItem>,
    /// When the agent last said something.
    pub heard: Instant,
    /// What decides when the API limits requests.
    pub patience: Patience,
    /// Until then nothing is asked: the agent waits for the API, or we do.
    pub waits_until: Instant,
    /// Lines that made no sense when it was being stopped.
    pub dropped: Malformed,
    /// Why it is being stopped, and since when.
    pub stop: Option<(Stop, Instant)>,
    /// How much the agent had said in all when it was looked at last, and since when it is no more.
    pub said: (u64, Instant),
    /// When the agent answered the prompt: what is left is what others say of it.
    pub answered: Option<Instant>,
    /// How much was on standard error before.
    pub stderr_before: u64,
    /// How much the agent had said before, where that is none of this one's.
    pub output_before: u64,
    /// Of a prompt that has nothing to do with those before.
    pub terms: Option<Box<Terms>>,
    /// Something was handed out that cannot be taken back.
    pub told: bool,
    /// The agent did something besides talking.
    pub did: bool,
}

impl Exchange {
    /// Whether an agent that has said so much in all leaves a cancel without an answer for too long.
    pub(super) fn ignores_cancel(&mut self, said: u64) -> bool {
        let Some((why, since)) = self.stop else { return false };
        if self.said.0 != said {
            self.said = (said, Instant::now());
        }
        // Who was asked to stop may have a conversation to lose; who had its time has had it.
        let heard = if why == Stop::Cancelled { since.max(self.said.1) } else { since };
        since.elapsed() > LONGEST_CANCEL || heard.elapsed() > PATIENCE_WITH_CANCEL
    }

    /// Hands out what there is; false when some has to wait for its reader.
    pub(super) fn hand_out(&mut self) -> bool {
        if self.is_held_back() {
            return true;
        }
        self.told = true;
        self.note_deeds();
        if !self.outlet.hand_out(&mut self.account.waiting) {
            return false;
        }
        while let Some(about) = self.asking.pop_front() {
            if let Some(about) = self.outlet.ask(about) {
                self.asking.push_front(about);
                return false;
            }
        }
        true
    }

    /// Somebody is to be asked.
    pub(super) fn ask(&mut self, permission: Permission) {
        self.asking.push_back(TurnItem::Asked(permission));
    }

    /// A question is not asked any more. Whoever has not got it yet never will.
    pub(super) fn withdraw(&mut self, number: u64, reason: &str) {
        let Some(pending) = self.questions.get(&number) else { return };
        let _only_once = pending.withdrawn.set(reason.to_owned());
        let asked = self.asking.len();
        self.asking.retain(|about| !matches!(about, TurnItem::Asked(permission) if permission.is(number)));
        if self.asking.len() == asked && self.outlet.can_be_asked() {
            let call_id = pending.question.call_id.clone();
            self.asking.push_back(TurnItem::Withdrawn { call_id, reason: reason.to_owned() });
        }
    }

    /// None of the questions is asked any more.
    pub(super) fn withdraw_all(&mut self, reason: &str) {
        for number in self.questions.keys().copied().collect::<Vec<_>>() {
            self.withdraw(number, reason);
        }
    }

    /// Whether all that there is can still be taken back: as long as nothing came of a prompt but its beginning, another process can
    /// begin it again if this one dies.
    pub(super) fn is_held_back(&self) -> bool {
        self.terms.is_some() && !self.told && self.account.waiting.iter().all(is_beginning)
    }

    /// Looks at what is about to be handed out.
    pub(super) fn note_deeds(&mut self) {
        self.did |= self.account.waiting.iter().any(is_deed);
    }

    /// Whether the agent has forgotten what it was told, or need not.
    pub(super) fn is_cleared(&self) -> bool {
        self.did || self.account.session.as_ref().is_some_and(SessionTail::is_cleared)
    }

    /// How much there was on standard output and on standard error before, as far as that is none of its own.
    pub(super) fn written_before(&self) -> (u64, u64) {
        (self.output_before, if self.terms.is_some() { self.stderr_before } else { 0 })
    }

    /// Whether something waits that somebody has to take.
    pub(super) fn has_to_be_taken(&self) -> bool {
        !self.asking.is_empty() || !(self.account.waiting.is_empty() || self.is_held_back())
    }

    /// Whether the agent's silence means nothing: it waits for a tool, for an answer, or for us.
    pub(super) fn may_be_silent(&self) -> bool {
        self.account.interpreter.tool_open()
            || !self.questions.is_empty()
            || self.answered.is_some()
            || Instant::now() < self.waits_until
    }

    /// The question that is to be answered first, and until when. Those who decide keep their own time.
    pub(super) fn first_due(&self, limit: Option<Duration>) -> Option<(u64, Instant)> {
        let due = |(number, pending): (&u64, &Pending)| Some((*number, pending.since.checked_add(limit?)?));
        let asked = self.questions.iter().filter(|(_, pending)| !pending.deciding);
        asked.filter_map(due).min_by_key(|(_, until)| *until)
    }
}

fn is_beginning(item: &Item) -> bool {
    let Item::Event(event) = item else { return false };
    matches!(event.kind, EventKind::Started { .. } | EventKind::Prompt { .. } | EventKind::Warning { .. })
}

/// Whether it says that the agent did something besides talking.
pub(super) fn is_deed(item: &Item) -> bool {
    let Item::Event(event) = item else { return false };
    let talk =
        matches!(event.kind, EventKind::Text { .. } | EventKind::Thinking { .. } | EventKind::Usage(_));
    !(talk || is_beginning(item) || matches!(event.kind, EventKind::Finished { .. }))
}
