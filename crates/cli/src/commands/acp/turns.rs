//! What happens in the sessions, as the editor is told it.

use alhena::hosts::acp::Refusal;
use alhena::hosts::acp::permission::{self, Verdict};
use alhena::hosts::acp::updates::When;
use alhena::wire::rpc::{self, Id};
use alhena::{EventKind, Outcome, Permission, TurnItem};
use serde_json::{Value, json};

use super::serve::{Break, Serving, answer, tell, write};
use super::session::{From, Going, Session, Stage};
use crate::output::say;
use crate::views::words_of_warning;

impl Serving {
    pub fn item(&mut self, number: u64, item: TurnItem) -> Result<(), Break> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let opening = matches!(session.stage, Stage::Opening { .. });
        match item {
            TurnItem::Event(event) if opening => {
                if let EventKind::Warning { message } = &event.kind {
                    say(format_args!("warning: {}", words_of_warning(event.source, message)));
                }
            }
            TurnItem::Line(line) if !opening => session.updates.line(&line),
            TurnItem::Event(event) => {
                for update in session.updates.event(&event, When::Now) {
                    tell(&session.id, &update)?;
                }
            }
            TurnItem::Asked(permission) => return self.asked(number, permission),
            TurnItem::Withdrawn { call_id, .. } => {
                for (request, _) in session.asked.extract_if(|_, asked| asked.call_id == call_id) {
                    write(&rpc::notification("$/cancel_request", &json!({"requestId": request})))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The agent wants to use a tool.
    fn asked(&mut self, number: u64, permission: Permission) -> Result<(), Break> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        if matches!(session.stage, Stage::Going(Going { cancelled: true, .. })) {
            return Ok(());
        }
        self.requests += 1;
        let elsewhere = permission.elsewhere.as_deref();
        let call =
            session.updates.question(&permission.call_id, &permission.title, &permission.input, elsewhere);
        let params = permission::request(&session.id, &call);
        session.asked.insert(self.requests, permission);
        write(&rpc::request(&Id::from(self.requests), "session/request_permission", &params))
    }

    /// The editor has decided. What nobody asked, or nobody wants to know any more, is passed over.
    pub fn decided(&mut self, id: &Id, outcome: &Result<Value, Value>) -> Result<(), Break> {
        for session in self.sessions.values_mut() {
            let Some(number) = session.asked.keys().copied().find(|number| Id::from(*number) == *id) else {
                continue;
            };
            let Some(permission) = session.asked.remove(&number) else { continue };
            let runs = session.updates.runs(&permission.call_id);
            match Verdict::read(outcome) {
                Verdict::AllowOnce => permission.allow_once(),
                Verdict::AllowForSession => permission.allow_for_conversation(),
                Verdict::Reject(why) => {
                    permission.reject(why);
                    return Ok(());
                }
            }
            return tell(&session.id, &runs);
        }
        Ok(())
    }

    /// A turn is over, or an agent has its session.
    pub fn over(&mut self, number: u64, outcome: &Outcome) -> Result<(), Break> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        session.asked.clear();
        match std::mem::replace(&mut session.stage, Stage::Idle) {
            Stage::Idle => Ok(()),
            Stage::Opening { answer: id, from } => self.opened(number, &id, from, outcome),
            Stage::Going(Going { answer: id, next, .. }) => {
                answer(&id, session.updates.end(outcome))?;
                let Some((next, text)) = next else { return Ok(()) };
                match self.say(number, next.clone(), &text) {
                    Ok(()) => Ok(()),
                    Err(refusal) => answer(&next, Err(refusal)),
                }
            }
        }
    }

    fn opened(&mut self, number: u64, id: &Id, from: From, outcome: &Outcome) -> Result<(), Break> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        if let (Some(failure), _) | (None, Some(failure)) = (&outcome.failure, never(session).as_ref()) {
            let refused = Refusal::from(failure);
            self.close(number)?;
            return answer(id, Err(refused));
        }
        let chosen = Some(std::mem::take(&mut session.choices.model)).filter(|model| !model.is_empty());
        session.is_open(chosen);
        let From::Stored { told } = from else {
            return answer(id, Ok(session.choices.opened(Some(&session.id))));
        };
        for event in &told {
            if let (EventKind::Prompt { text }, None) = (&event.kind, &session.said) {
                session.said = Some((text.clone(), event.at));
            }
            for update in session.updates.event(event, When::Before) {
                tell(&session.id, &update)?;
            }
        }
        answer(id, Ok(session.choices.opened(None)))
    }
}

/// Why an agent has no session, of which nothing is said.
fn never(session: &Session) -> Option<alhena::Failure> {
    let message = "the agent ended before it had a session";
    let failed = || alhena::Failure::new(alhena::FailureKind::Crashed, message);
    session.talk.opened().is_none().then(failed)
}
