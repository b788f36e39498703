//! The session: opened, with its mode and its model.

use alhena_model::Input;
use alhena_model::options::Choice;
use alhena_wire::acp::say;
use alhena_wire::rpc::Id;
use serde_json::Value;

use super::{Acp, Purpose as Asked, Stage};
use crate::acp::conversation::{OfferedModel, Opened};
use crate::request::Approval;

impl Acp {
    /// Asks for something.
    pub(super) fn ask(&mut self, purpose: Asked, line: impl FnOnce(&Id) -> Vec<u8>) -> u64 {
        self.requests += 1;
        self.asked.insert(self.requests, purpose);
        self.pipe.say(&line(&Id::from(self.requests)));
        self.requests
    }

    pub(super) fn greet(&mut self) {
        self.next_exchange();
        self.ask(Asked::Initialize, |id| say::initialize(id, "alhena", env!("CARGO_PKG_VERSION")));
    }

    /// The agent is there: a session is opened.
    pub(super) fn open_session(&mut self) {
        let dir = self.dir.to_string_lossy().into_owned();
        let servers = self.opening.servers.clone();
        match self.opening.resumed.clone() {
            Some(session) => {
                self.session.id.clone_from(&session);
                self.ask(Asked::Open, |id| say::load_session(id, &session, &dir, &servers));
            }
            None => drop(self.ask(Asked::Open, |id| say::new_session(id, &dir, &servers))),
        }
    }

    /// The session is there. One that was loaded has the mode and the model of the process's directory (0.61.0).
    pub(super) fn opened(&mut self, answer: &Value) {
        let text =
            |pointer: &str| answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = text("/sessionId");
        if !id.is_empty() {
            self.session.id = id;
        }
        if self.opening.resumed.is_none() {
            self.session.mode = text("/modes/currentModeId");
            self.session.model = text("/models/currentModelId");
        }
        let modes = answer.pointer("/modes/availableModes").and_then(Value::as_array).into_iter().flatten();
        self.session.modes = modes.filter_map(|mode| mode.get("id")?.as_str()).map(str::to_owned).collect();
        self.session.stage = Stage::Ready;
        self.follow_new_session();
        let opened = Opened {
            session_id: self.session.id.clone(),
            model: text("/models/currentModelId"),
            models: models(answer),
        };
        *self.opened.lock() = Some(opened);
        self.set_mode();
        if let Some(model) = self.request.model.clone() {
            self.set_model(model);
        }
    }

    pub(super) fn set_mode(&mut self) {
        if self.session.stage != Stage::Ready {
            return;
        }
        let mode = self.gate.mode();
        let known = match self.session.is_gemini {
            true => Some(mode_id(mode).to_owned()),
            false => self.session.modes.iter().find(|id| mode.names().contains(&id.as_str())).cloned(),
        };
        let Some(id) = known else { return self.say_mode_is_missing(mode) };
        if self.session.mode != id {
            self.session.mode.clone_from(&id);
            self.session.settling += 1;
            let session = self.session.id.clone();
            self.ask(Asked::Setting, |request| say::set_mode(request, &session, &id));
        }
    }

    /// What another agent asks about is answered as the mode says; what it does not ask about nobody can keep back.
    fn say_mode_is_missing(&mut self, mode: Approval) {
        // One without modes asks, as the protocol has it, and one that may do everything need not.
        let asks = self.session.modes.is_empty() && mode == Approval::Default;
        if asks || mode == Approval::Yolo {
            return;
        }
        let (name, modes) = (mode.names().first().unwrap_or(&""), self.session.modes.join(", "));
        let who = self.opening.name.as_deref().unwrap_or("The agent");
        let warning = match modes.is_empty() {
            true => format!("{who} has no mode {name}: what it does without asking is not kept back"),
            false => {
                format!(
                    "{who} has no mode {name}, only {modes}: what it does without asking is not kept back"
                )
            }
        };
        match &mut self.exchange {
            Some(exchange) => exchange.account.feed(Input::Warning(warning)),
            None => self.warnings.push(warning),
        }
    }

    pub(super) fn set_model(&mut self, model: String) {
        self.request.model = Some(model.clone());
        if self.session.stage == Stage::Ready && self.session.model != model {
            self.session.settling += 1;
            let session = self.session.id.clone();
            self.ask(Asked::Setting, |id| say::set_model(id, &session, &model));
            self.session.model = model;
        }
    }
}

/// The models that an agent offers with a session.
fn models(answer: &Value) -> Vec<OfferedModel> {
    let offered = answer.pointer("/models/availableModels").and_then(Value::as_array);
    let text = |model: &Value, name: &str| model.get(name).and_then(Value::as_str).map(str::to_owned);
    let read = |model: &Value| {
        let id = text(model, "modelId")?;
        let name = text(model, "name").unwrap_or_else(|| id.clone());
        Some(OfferedModel { id, name, description: text(model, "description") })
    };
    offered.into_iter().flatten().filter_map(read).collect()
}

/// Gemini CLI's name for the mode.
fn mode_id(approval: Approval) -> &'static str {
    match approval {
        Approval::Default => "default",
        Approval::AutoEdit => "autoEdit",
        Approval::Yolo => "yolo",
        Approval::Plan => "plan",
    }
}
