//! The protocol: one thread, to which everything that happens comes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender};

use alhena_agent::{Approval, Permission, TurnItem};
use alhena_agent::{Canceller, Talk};
use alhena_hosts::acp::Refusal;
use alhena_hosts::acp::ask::{Ask, Client, SessionSetup};
use alhena_hosts::acp::permission::{self, Verdict};
use alhena_hosts::acp::say::{self, Choices, Listed, MODE, MODEL, MODES};
use alhena_hosts::acp::updates::{self, Updates, When};
use alhena_model::Timestamp;
use alhena_model::{Event, EventKind, Failure, FailureKind, Outcome};
use alhena_wire::rpc::{self, Fault, Id, Message};
use serde_json::{Value, json};

use super::start::{Starter, refusal};
use super::stored;
use crate::commands::happening::{self, Break, Happening};
use crate::commands::talk;
use crate::output;

/// So many sessions can be open.
const MOST: usize = 50;

/// What becomes of a request: an answer now, or one later.
enum Answer {
    Now(Value),
    Later,
}

struct Serving {
    starter: Starter,
    /// Who it is, once it has said so.
    client: Option<Client>,
    sessions: BTreeMap<u64, Session>,
    /// How many sessions there were.
    begun: u64,
    /// How many requests were made of the editor.
    requests: u64,
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
        Err(broken) => broken.exit(),
    }
}

fn write(line: &[u8]) -> Result<(), Break> {
    Ok(output::write_json(|out| out.write_all(line))?)
}

fn answer(id: &Id, outcome: Result<Value, Refusal>) -> Result<(), Break> {
    write(&match outcome {
        Ok(result) => rpc::answer(id, &result),
        Err(Refusal { code, message, data }) => rpc::failure(id, code, &message, &data),
    })
}

fn tell(session: &str, update: &Value) -> Result<(), Break> {
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
                Ok(Happening::Gone) => return Err(Break::gone()),
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
            Ask::New(place) => self.begin(id, client, place, None, Beginning::New),
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
                self.begin(id, client, place, Some(session), Beginning::Stored { told })
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
        from: Beginning,
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

    fn say(&mut self, number: u64, id: Id, text: &str) -> Result<(), Refusal> {
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
    fn close(&mut self, number: u64) -> Result<(), Break> {
        let Some(session) = self.sessions.remove(&number) else { return Ok(()) };
        if let Stage::Going(Going { answer: id, next, .. }) = session.stage {
            for id in std::iter::once(id).chain(next.map(|(id, _)| id)) {
                answer(&id, Ok(json!({"stopReason": "cancelled"})))?;
            }
        }
        talk::close(session.talk);
        Ok(())
    }

    fn item(&mut self, number: u64, item: TurnItem) -> Result<(), Break> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        let opening = matches!(session.stage, Stage::Opening { .. });
        match item {
            TurnItem::Event(event) if opening => {
                if let EventKind::Warning { message } = &event.kind {
                    output::say(format_args!("warning: {message}"));
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
    fn decided(&mut self, id: &Id, outcome: &Result<Value, Value>) -> Result<(), Break> {
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
    fn over(&mut self, number: u64, outcome: &Outcome) -> Result<(), Break> {
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

    fn opened(&mut self, number: u64, id: &Id, from: Beginning, outcome: &Outcome) -> Result<(), Break> {
        let Some(session) = self.sessions.get_mut(&number) else { return Ok(()) };
        if let (Some(failure), _) | (None, Some(failure)) = (&outcome.failure, never(session).as_ref()) {
            let refused = Refusal::from(failure);
            self.close(number)?;
            return answer(id, Err(refused));
        }
        let chosen = Some(std::mem::take(&mut session.choices.model)).filter(|model| !model.is_empty());
        session.is_open(chosen);
        let Beginning::Stored { told } = from else {
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
fn never(session: &Session) -> Option<Failure> {
    let message = "the agent ended before it had a session";
    let failed = || Failure::new(FailureKind::Crashed, message);
    session.talk.opened().is_none().then(failed)
}

/// Why a request has no answer yet.
enum Unanswered {
    Refused(Refusal),
    Broken(Break),
}

impl From<Refusal> for Unanswered {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Break> for Unanswered {
    fn from(broken: Break) -> Self {
        Self::Broken(broken)
    }
}

fn set_mode(session: &mut Session, id: &str) -> Result<(), Refusal> {
    let known = MODES.iter().find(|(known, ..)| *known == id);
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

struct Session {
    /// The id that the editor knows; empty before it is told.
    id: String,
    dir: PathBuf,
    talk: Talk,
    updates: Updates,
    choices: Choices,
    stage: Stage,
    /// What was asked and not answered, by the number of the request.
    asked: HashMap<u64, Permission>,
    /// The first prompt, and when the last one was said.
    said: Option<(String, Timestamp)>,
}

/// How far a session is.
enum Stage {
    /// Its agent is being started for this request.
    Opening { answer: Id, from: Beginning },
    /// Nothing is to be done.
    Idle,
    /// A prompt has its turn.
    Going(Going),
}

/// What a session begins with.
enum Beginning {
    New,
    /// Another one, which the editor wants to be told or not.
    Stored {
        told: Vec<Event>,
    },
}

struct Going {
    /// The prompt's request.
    answer: Id,
    canceller: Canceller,
    cancelled: bool,
    /// A prompt that came when this one had been cancelled and was not over.
    next: Option<(Id, String)>,
}

impl Session {
    fn new(talk: Talk, dir: PathBuf, client: Client, approval: Approval, stage: Stage) -> Self {
        Self {
            id: String::new(),
            updates: Updates::new(client, &dir.to_string_lossy()),
            dir,
            talk,
            choices: Choices { mode: mode_id(approval), ..Choices::default() },
            stage,
            asked: HashMap::new(),
            said: None,
        }
    }

    /// The agent is there, and says what can be chosen.
    fn is_open(&mut self, model: Option<String>) {
        let Some(opened) = self.talk.opened() else { return };
        self.choices.model = model.unwrap_or(opened.model);
        self.choices.models =
            opened.models.into_iter().map(|model| (model.id, model.name, model.description)).collect();
        self.id = opened.session_id;
    }

    /// As a list has it. One in which nothing was said is not told.
    fn listed(&self) -> Option<Listed> {
        let (first, last) = self.said.as_ref()?;
        Some(Listed {
            id: self.id.clone(),
            dir: self.dir.to_string_lossy().into_owned(),
            title: Some(stored::title(first)),
            updated: last.to_string(),
        })
    }
}

/// The protocol's id of a mode.
fn mode_id(approval: Approval) -> &'static str {
    let of = |id: &str| id.parse() == Ok(approval);
    MODES.iter().map(|(id, ..)| *id).find(|id| of(id)).unwrap_or_default()
}
