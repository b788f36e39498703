//! One session of an editor: the conversation behind it, and how far it is.

use std::collections::HashMap;
use std::path::PathBuf;

use alhena_agent::{Approval, Canceller, Permission, Talk};
use alhena_hosts::acp::ask::Client;
use alhena_hosts::acp::say::{Choices, Listed, MODES};
use alhena_hosts::acp::updates::Updates;
use alhena_model::{Event, Timestamp};
use alhena_wire::rpc::Id;

pub struct Session {
    /// The id that the editor knows; empty before it is told.
    pub id: String,
    pub dir: PathBuf,
    pub talk: Talk,
    pub updates: Updates,
    pub choices: Choices,
    pub stage: Stage,
    /// What was asked and not answered, by the number of the request.
    pub asked: HashMap<u64, Permission>,
    /// The first prompt, and when the last one was said.
    pub said: Option<(String, Timestamp)>,
}

/// How far a session is.
pub enum Stage {
    /// Its agent is being started for this request.
    Opening { answer: Id, from: From },
    /// Nothing is to be done.
    Idle,
    /// A prompt has its turn.
    Going(Going),
}

/// What a session begins with.
pub enum From {
    Nothing,
    /// Another one, which the editor wants to be told or not.
    Stored {
        told: Vec<Event>,
    },
}

pub struct Going {
    /// The prompt's request.
    pub answer: Id,
    pub canceller: Canceller,
    pub cancelled: bool,
    /// A prompt that came when this one had been cancelled and was not over.
    pub next: Option<(Id, String)>,
}

impl Session {
    pub fn new(talk: Talk, dir: PathBuf, client: Client, approval: Approval, stage: Stage) -> Self {
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
    pub fn is_open(&mut self, model: Option<String>) {
        let Some(opened) = self.talk.opened() else { return };
        self.choices.model = model.unwrap_or(opened.model);
        self.choices.models =
            opened.models.into_iter().map(|model| (model.id, model.name, model.description)).collect();
        self.id = opened.session_id;
    }

    /// As a list has it. One in which nothing was said is not told.
    pub fn listed(&self) -> Option<Listed> {
        let (first, last) = self.said.as_ref()?;
        Some(Listed {
            id: self.id.clone(),
            dir: self.dir.to_string_lossy().into_owned(),
            title: Some(super::stored::title(first)),
            updated: last.to_string(),
        })
    }
}

/// The protocol's id of a mode.
fn mode_id(approval: Approval) -> &'static str {
    let of = |id: &str| id.parse() == Ok(approval);
    MODES.iter().map(|(id, ..)| *id).find(|id| of(id)).unwrap_or_default()
}
