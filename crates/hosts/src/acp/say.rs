//! The answers to a client's requests.

use serde_json::{Value, json};

use crate::with;

/// What a session may do without asking: Gemini CLI's ids, with names for people.
pub const MODES: [(&str, &str, &str); 4] = [
    ("default", "Default", "Asks before it changes or runs anything"),
    ("autoEdit", "Auto edit", "Edits files without asking"),
    ("yolo", "YOLO", "Does everything without asking"),
    ("plan", "Plan", "Reads only, and plans"),
];

/// The option that is the mode.
pub const MODE: &str = "mode";
/// The option that is the model.
pub const MODEL: &str = "model";

/// The answer to the first word. Whatever version the client speaks: this is the one that is spoken here.
pub fn initialized(version: &str) -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "alhena", "title": "Gemini CLI by Alhena", "version": version},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": true},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "additionalDirectories": {}},
        },
        "authMethods": [],
    })
}

/// What can be chosen in a session, and what is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// The id of the mode.
    pub mode: &'static str,
    /// The id of the model.
    pub model: String,
    /// The models on offer: id, name, and more about it.
    pub models: Vec<(String, String, Option<String>)>,
}

impl Choices {
    /// Whether a model is one of them.
    pub fn has_model(&self, id: &str) -> bool {
        self.model == id || self.models.iter().any(|(known, ..)| known == id)
    }

    /// The modes, as a session is answered with.
    pub fn modes(&self) -> Value {
        json!({"currentModeId": self.mode, "availableModes": modes("id")})
    }

    /// Mode and model as options.
    pub fn options(&self) -> Value {
        let mode = json!({
            "id": MODE, "name": "Mode", "category": "mode", "type": "select",
            "currentValue": self.mode, "options": modes("value"),
        });
        if self.model.is_empty() {
            return json!([mode]);
        }
        let known = self.models.iter().any(|(id, ..)| *id == self.model);
        let other = (!known).then(|| json!({"value": self.model, "name": self.model}));
        let offered = self.models.iter().map(|(id, name, about)| {
            with(json!({"value": id, "name": name}), [("description", about.clone().map(Value::from))])
        });
        let models: Vec<Value> = other.into_iter().chain(offered).collect();
        let model = json!({
            "id": MODEL, "name": "Model", "category": "model", "type": "select",
            "currentValue": self.model, "options": models,
        });
        json!([mode, model])
    }

    /// The answer to a request for a session. One that was loaded has its id from the client.
    pub fn opened(&self, new: Option<&str>) -> Value {
        let answer = json!({"modes": self.modes(), "configOptions": self.options()});
        with(answer, [("sessionId", new.map(Value::from))])
    }
}

/// The modes, each with its id under this key.
fn modes(key: &str) -> Vec<Value> {
    MODES.iter().map(|(id, name, about)| json!({key: id, "name": name, "description": about})).collect()
}

/// A session in a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Where it works.
    pub dir: String,
    /// What it is about.
    pub title: Option<String>,
    /// When something was last said in it.
    pub updated: String,
}

/// So many sessions are named at a time.
const PAGE: usize = 100;

/// A page of the list; none when the cursor is not one of ours.
pub fn listed(sessions: &[Listed], cursor: Option<&str>) -> Option<Value> {
    let start = cursor.map_or(Some(0), |cursor| cursor.parse::<usize>().ok())?;
    let page: Vec<Value> = sessions
        .iter()
        .skip(start)
        .take(PAGE)
        .map(|session| {
            json!({
                "sessionId": session.id,
                "cwd": session.dir,
                "title": session.title,
                "updatedAt": session.updated,
            })
        })
        .collect();
    let next = start.saturating_add(PAGE);
    let next = (next < sessions.len()).then(|| next.to_string().into());
    Some(with(json!({ "sessions": page }), [("nextCursor", next)]))
}
