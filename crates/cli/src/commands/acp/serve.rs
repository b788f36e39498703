//! The protocol: one thread, to which everything that happens comes.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender};

use alhena::Approval;
use alhena::hosts::acp::Refusal;
use alhena::hosts::acp::ask::{Ask, Client, SessionSetup};
use alhena::hosts::acp::say::{self, MODE, MODEL};
use alhena::hosts::acp::updates;
use alhena::model::Timestamp;
use alhena::wire::rpc::{self, Fault, Id, Message};
use serde_json::{Value, json};

use super::session::{From, Going, Session, Stage};
use super::start::{Starter, refusal};
use super::stored;
use crate::commands::happening::{self, Happening, exit_code};
use crate::commands::talk;
use crate::output;

/// So many sessions can be open.
const MOST: usize = 50;

/// Why it is over before the editor says so.
pub enum Break {
    /// What is written cannot be written.
    Written(io::Error),
    /// A signal.
    Signal(i32),
}

impl std::convert::From<io::Error> for Break {
    fn from(error: io::Error) -> Self {
        Break::Written(error)
    }
}

/// What becomes of a request: an answer now, or one later.
enum Answer {
    Now(Value),
    Later,
}

pub struct Serving {
    starter: Starter,
    /// Who it is, once it has said so.
    client: Option<Client>,
    pub sessions: BTreeMap<u64, Session>,
    /// How many sessions there were.
    begun: u64,
    /// How many requests were made of the editor.
    pub requests: u64,
    sender: SyncSender<Happening>,
}

/// Serves an editor, to its end.
pub fn serve(starter: Starter) -> ExitCode {
    let (sender, happenings) = happening::listen();
    let sessions = BTreeMap::new();
    let mut serving = Serving { starter, client: None, sessions, begun: 0, requests: 0, sender };
    let done = serving.run(&happenings);
    // What the last turns have to say is not heard any more; nobody must be held up by that.
    std::thread::spawn(move || while happenings.recv().is_ok() {});
    // Nothing of it may be left when this process ends.
    std::thread::scope(|scope| {
        for session in std::mem::take(&mut serving.sessions).into_values() {
            scope.spawn(move || talk::close(session.talk));
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Break::Signal(signal)) => ExitCode::from(exit_code(signal)),
        Err(Break::Written(error)) => output::written(Err(error)),
    }
}

pub fn write(line: &[u8]) -> Result<(), Break> {
    Ok(output::write_json(|out| out.write_all(line))?)
}

pub fn answer(id: &Id, outcome: Result<Value, Refusal>) -> Result<(), Break> {
    write(&match outcome {
        Ok(result) => rpc::answer(id, &result),
        Err(Refusal { code, message, data }) => rpc::failure(id, code, &message, &data),
    })
}

pub fn tell(session: &str, update: &Value) -> Result<(), Break> {
    write(&rpc::notification("session/update", &updates::notification(session, update)))
}

impl Serving {
    fn run(&mut self, happenings: &Receiver<Happening>) -> Result<(), Break> {
        loop {
            match happenings.recv() {
                Ok(Happening::Line(line)) => self.hear(&line)?,
                Ok(Happening::TooLong(bytes)) => {
                    let message = format!("a line of {bytes} bytes is too long");
                    write(&rpc::refusal(None, Fault::Invalid, &message))?;
                }
                Ok(Happening::Item(number, item)) => self.item(number, *item)?,
                Ok(Happening::Over(number, outcome)) => self.over(number, &outcome)?,
                Ok(Happening::Signal(signal)) => return Err(Break::Signal(signal)),
                Ok(Happening::Gone) => return Err(Break::Written(io::ErrorKind::BrokenPipe.into())),
                Ok(Happening::InputOver) | Err(_) => return Ok(()),
            }
        }
    }

    fn hear(&mut self, line: &[u8]) -> Result<(), Break> {
        match Message::read(line) {
            Ok(Message::Request { id, method, params }) => match self.request(&id, &method, params) {
                Ok(Answer::Now(result)) => answer(&id, Ok(result)),
                Ok(Answer::Later) => Ok(()),
                Err(Unanswered::Refused(refusal)) => answer(&id, Err(refusal)),
                Err(Unanswered::Broken(broken)) => Err(broken),
            },
            Ok(Message::Notification { method, params }) => match Ask::cancelled(&method, params) {
                Some(session) => self.cancel(&session),
                None => Ok(()),
            },
            Ok(Message::Answer { id, outcome }) => self.decided(&id, &outcome),
            Err((id, Fault::Parse)) => {
                write(&rpc::refusal(id.as_ref(), Fault::Parse, "this line is no JSON"))
            }
            Err((id, fault)) => {
                write(&rpc::refusal(id.as_ref(), fault, "this line is no message of JSON-RPC"))
            }
        }
    }

    fn request(&mut self, id: &Id, method: &str, params: Value) -> Result<Answer, Unanswered> {
        let ask = Ask::read(method, params)?;
        let client = match (&ask, self.client) {
            (Ask::Initialize(client), _) => {
                self.client = Some(*client);
                return Ok(Answer::Now(say::initialized(env!("CARGO_PKG_VERSION"))));
            }
            (_, Some(client)) => client,
            (_, None) => {
                return Err(Refusal::of(Fault::Invalid, "initialize has to come first", "").into());
            }
        };
        match ask {
            Ask::Initialize(_) => Ok(Answer::Later),
            Ask::Authenticate => {
                let hint =
                    "Set GEMINI_API_KEY for the agent, or sign in once by starting Gemini CLI in a terminal.";
                Err(Refusal::of(
                    Fault::Params,
                    "Gemini CLI signs in by itself: there is no method to choose",
                    hint,
                )
                .into())
            }
            Ask::New(place) => self.begin(id, client, place, None, From::Nothing),
            Ask::Load { session, place, replay } => {
                if self.find(&session).is_ok() {
                    let message = format!("the session {session:?} is open already");
                    return Err(
                        Refusal::of(Fault::Params, message, "Go on with it, or close it first.").into()
                    );
                }
                let mut told = stored::history(&self.starter.environment, &place.dir, &session)?;
                if !replay {
                    told.clear();
                }
                self.begin(id, client, place, Some(session), From::Stored { told })
            }
            Ask::List { dir, cursor } => Ok(Answer::Now(self.list(dir.as_deref(), cursor.as_deref())?)),
            Ask::Prompt { session, text } => self.prompt(id, &session, text),
            Ask::SetMode { session, mode } => {
                let session = self.find(&session)?;
                set_mode(session, &mode)?;
                tell(&session.id, &updates::options_changed(&session.choices.options()))?;
                Ok(Answer::Now(json!({})))
            }
            Ask::SetModel { session, model } => {
                let session = self.find(&session)?;
                set_model(session, model)?;
                tell(&session.id, &updates::options_changed(&session.choices.options()))?;
                Ok(Answer::Now(json!({})))
            }
            Ask::SetOption { session, option, value } => self.set_option(&session, &option, value),
            Ask::Close { session } => {
                let number = self.number(&session)?;
                self.close(number)?;
                Ok(Answer::Now(json!({})))
            }
        }
    }

    fn number(&self, id: &str) -> Result<u64, Refusal> {
        let found = self.sessions.iter().find(|(_, session)| session.id == id && !id.is_empty());
        found.map(|(number, _)| *number).ok_or_else(|| Refusal::no_session(id))
    }

    fn find(&mut self, id: &str) -> Result<&mut Session, Refusal> {
        let known = self.sessions.values_mut().find(|session| session.id == id && !id.is_empty());
        known.ok_or_else(|| Refusal::no_session(id))
    }

    /// Starts an agent; the request is answered when it has its session.
    fn begin(
        &mut self,
        id: &Id,
        client: Client,
        place: SessionSetup,
        resume: Option<String>,
        from: From,
    ) -> Result<Answer, Unanswered> {
        if self.sessions.len() >= MOST {
            let message = format!("{MOST} sessions are open, and each has a process of its own");
            return Err(Refusal::of(Fault::Internal, message, "Close one of them first.").into());
        }
        let dir = place.dir.clone();
        let (mut talk, approval, model) = self.starter.begin(place, resume)?;
        let turn = talk.open().map_err(refusal)?;
        let stage = Stage::Opening { answer: id.clone(), from };
        let mut session = Session::new(talk, dir, client, approval, stage);
        session.choices.model = model.unwrap_or_default();
        self.begun += 1;
        self.sessions.insert(self.begun, session);
        happening::follow(self.begun, turn, self.sender.clone());
        Ok(Answer::Later)
    }

    fn list(&self, dir: Option<&Path>, cursor: Option<&str>) -> Result<Value, Refusal> {
        let mut sessions = stored::list(&self.starter.environment, dir)?;
        let here = |session: &&Session| dir.is_none_or(|dir| same(dir, &session.dir));
        let open: Vec<_> = self.sessions.values().filter(here).filter_map(Session::listed).collect();
        sessions.retain(|stored| !open.iter().any(|open| open.id == stored.id));
        sessions.extend(open);
        sessions.sort_by(|one, other| other.updated.cmp(&one.updated));
        say::listed(&sessions, cursor)
            .ok_or_else(|| Refusal::of(Fault::Params, "the cursor is not one that this agent gave", ""))
    }

    fn prompt(&mut self, id: &Id, session: &str, text: String) -> Result<Answer, Unanswered> {
        let number = self.number(session)?;
        let session = self.find(session)?;
        match &mut session.stage {
            Stage::Going(Going { cancelled: true, next: next @ None, .. }) => {
                *next = Some((id.clone(), text));
                return Ok(Answer::Later);
            }
            Stage::Going(_) | Stage::Opening { .. } => {
                let hint = "Wait for the answer to the prompt before, or cancel it.";
                return Err(Refusal::of(Fault::Invalid, "a turn is going on in this session", hint).into());
            }
            Stage::Idle => {}
        }
        self.say(number, id.clone(), &text)?;
        Ok(Answer::Later)
    }

    pub fn say(&mut self, number: u64, id: Id, text: &str) -> Result<(), Refusal> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let turn = session.talk.prompt(text).map_err(refusal)?;
        let first = session.said.take().map_or_else(|| text.to_owned(), |(first, _)| first);
        session.said = Some((first, Timestamp::now()));
        session.stage =
            Stage::Going(Going { answer: id, canceller: turn.canceller(), cancelled: false, next: None });
        happening::follow(number, turn, self.sender.clone());
        Ok(())
    }

    fn set_option(&mut self, session: &str, option: &str, value: String) -> Result<Answer, Unanswered> {
        let session = self.find(session)?;
        match option {
            MODE => {
                set_mode(session, &value)?;
                tell(&session.id, &updates::mode_changed(session.choices.mode))?;
            }
            MODEL if session.choices.has_model(&value) => set_model(session, value)?,
            MODEL => {
                let message = format!("the model {value:?} is not one of those on offer");
                return Err(Refusal::of(Fault::Params, message, "").into());
            }
            other => {
                let message = format!("there is no option {other:?}");
                return Err(Refusal::of(Fault::Params, message, "The options are mode and model.").into());
            }
        }
        Ok(Answer::Now(json!({ "configOptions": session.choices.options() })))
    }

    /// The turn of a session is to end. What it asked is not answered any more.
    fn cancel(&mut self, id: &str) -> Result<(), Break> {
        let Ok(session) = self.find(id) else { return Ok(()) };
        if let Stage::Going(going) = &mut session.stage {
            going.canceller.cancel();
            going.cancelled = true;
            session.asked.clear();
            if let Some((next, _)) = going.next.take() {
                answer(&next, Ok(json!({"stopReason": "cancelled"})))?;
            }
        }
        Ok(())
    }

    /// A session is over. A prompt that had its turn was cancelled.
    pub fn close(&mut self, number: u64) -> Result<(), Break> {
        let Some(session) = self.sessions.remove(&number) else { return Ok(()) };
        if let Stage::Going(Going { answer: id, next, .. }) = session.stage {
            for id in std::iter::once(id).chain(next.map(|(id, _)| id)) {
                answer(&id, Ok(json!({"stopReason": "cancelled"})))?;
            }
        }
        talk::close(session.talk);
        Ok(())
    }
}

/// Why a request has no answer yet.
enum Unanswered {
    Refused(Refusal),
    Broken(Break),
}

impl std::convert::From<Refusal> for Unanswered {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl std::convert::From<Break> for Unanswered {
    fn from(broken: Break) -> Self {
        Self::Broken(broken)
    }
}

fn set_mode(session: &mut Session, id: &str) -> Result<(), Refusal> {
    let known = say::MODES.iter().find(|(known, ..)| *known == id);
    let (Some((mode, ..)), Ok(approval)) = (known, id.parse::<Approval>()) else {
        let hint = "The modes are default, autoEdit, yolo and plan.";
        return Err(Refusal::of(Fault::Params, format!("there is no mode {id:?}"), hint));
    };
    session.talk.set_mode(approval).map_err(refusal)?;
    session.choices.mode = mode;
    Ok(())
}

fn set_model(session: &mut Session, model: String) -> Result<(), Refusal> {
    if model.trim().is_empty() {
        return Err(Refusal::of(Fault::Params, "the model has no name", ""));
    }
    session.talk.set_model(model.clone()).map_err(refusal)?;
    session.choices.model = model;
    Ok(())
}

/// Whether two paths mean the same directory.
fn same(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}
