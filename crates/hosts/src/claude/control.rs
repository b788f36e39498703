//! A line that the program writes: a request, an answer to a request of ours, or something that the user says.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// The program wants something, and an answer.
    Request {
        /// For the answer.
        id: String,
        /// What it wants.
        ask: Ask,
    },
    /// The answer to a request of ours.
    Answer {
        /// Of the request.
        id: String,
        /// What it says, or why there is nothing.
        answer: Result<Value, String>,
    },
    /// The user says something.
    User(User),
    /// A kind of line that changes nothing here, such as `keep_alive`.
    Other,
}

/// What the program wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// To begin.
    Initialize(Box<Initialize>),
    /// The turn is to end.
    Interrupt,
    /// Another permission mode.
    SetPermissionMode(String),
    /// Another model; none for the first one.
    SetModel(Option<String>),
    /// What the MCP servers do.
    McpStatus,
    /// Something else: its name.
    Unknown(String),
}

/// What is known at the beginning.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Initialize {
    /// Hooks, by the name of their event.
    pub hooks: Value,
    /// What to tell the model instead of its own system prompt, in pieces.
    pub system_prompt: Option<Pieces>,
    /// What to tell it beside.
    pub append_system_prompt: Option<String>,
    /// MCP servers that live in the program.
    pub sdk_mcp_servers: Vec<String>,
    /// What an answer has to look like.
    pub json_schema: Option<Value>,
    /// Agents of the program's.
    pub agents: Option<Map<String, Value>>,
    /// Names for tools.
    pub tool_aliases: Option<Map<String, Value>>,
    /// What to do in plan mode.
    pub plan_mode_instructions: Option<String>,
}

/// A text, or pieces of one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Pieces {
    /// The whole.
    One(String),
    /// In order.
    Many(Vec<String>),
}

impl Pieces {
    /// The whole text.
    pub fn text(&self) -> String {
        match self {
            Pieces::One(text) => text.clone(),
            Pieces::Many(pieces) => pieces.join("\n\n"),
        }
    }
}

impl Initialize {
    /// What of it cannot be done, in words.
    pub fn impossible(&self) -> Option<String> {
        let filled = |map: &Option<Map<String, Value>>| map.as_ref().is_some_and(|map| !map.is_empty());
        let why = if filled(&self.agents) {
            "agents of Claude's do not run in Gemini CLI"
        } else if filled(&self.tool_aliases) {
            "Gemini CLI's tools keep their names"
        } else if self.plan_mode_instructions.is_some() {
            "Gemini CLI has its own words for plan mode"
        } else {
            return self.sdk_mcp_servers.first().map(|name| {
                format!(
                    "the MCP server {name:?} lives in the program, where Gemini CLI cannot reach it; run it as a process \
                     or over HTTP"
                )
            });
        };
        Some(why.to_owned())
    }
}

/// What the user says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct User {
    /// The text.
    pub text: String,
    /// What of it cannot be said to Gemini CLI: an image, the result of a tool.
    pub unsaid: Vec<String>,
    /// The name that the program gave it.
    pub uuid: Option<String>,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The request that asks for an answer, if it is one.
    pub id: Option<String>,
    /// What is wrong.
    pub message: String,
}

impl Incoming {
    /// Reads a line.
    pub fn read(line: &[u8]) -> Result<Self, Fault> {
        let fault = |id: Option<&str>, message: String| Fault { id: id.map(str::to_owned), message };
        let value: Value = alhena_wire::from_slice(line)
            .map_err(|error| fault(None, format!("a line on stdin is no JSON: {error}")))?;
        let kind = text(&value, "type");
        let id = text(&value, "request_id");
        match kind {
            Some("control_request") => {
                let id = id.ok_or_else(|| fault(None, "a control request has no request_id".to_owned()))?;
                let request = value.get("request").unwrap_or(&Value::Null);
                let ask = Ask::read(request).map_err(|message| fault(Some(id), message))?;
                Ok(Incoming::Request { id: id.to_owned(), ask })
            }
            Some("control_response") => {
                let response = value.get("response").unwrap_or(&Value::Null);
                let id = text(response, "request_id")
                    .ok_or_else(|| fault(None, "a control response has no request_id".to_owned()))?;
                let answer = match text(response, "subtype") {
                    Some("error") => Err(text(response, "error").unwrap_or("unknown error").to_owned()),
                    _ => Ok(response.get("response").cloned().unwrap_or(Value::Null)),
                };
                Ok(Incoming::Answer { id: id.to_owned(), answer })
            }
            Some("user") => User::read(&value).map(Incoming::User).map_err(|message| fault(None, message)),
            Some(_) => Ok(Incoming::Other),
            None => Err(fault(None, "a line on stdin has no type".to_owned())),
        }
    }
}

impl Ask {
    fn read(request: &Value) -> Result<Self, String> {
        let subtype = text(request, "subtype").ok_or("a control request has no subtype")?;
        Ok(match subtype {
            "initialize" => Ask::Initialize(Box::new(
                Initialize::deserialize(&without_nulls(request))
                    .map_err(|error| format!("the request to initialize is not understood: {error}"))?,
            )),
            "interrupt" => Ask::Interrupt,
            "set_permission_mode" => Ask::SetPermissionMode(
                text(request, "mode").ok_or("set_permission_mode names no mode")?.to_owned(),
            ),
            "set_model" => match request.get("model") {
                None | Some(Value::Null) => Ask::SetModel(None),
                Some(Value::String(model)) => Ask::SetModel(Some(model.clone())),
                Some(_) => return Err("the model of set_model is not a name".to_owned()),
            },
            "mcp_status" => Ask::McpStatus,
            _ => Ask::Unknown(subtype.to_owned()),
        })
    }
}

impl User {
    fn read(value: &Value) -> Result<Self, String> {
        let uuid = text(value, "uuid").map(str::to_owned);
        let content = value.pointer("/message/content").ok_or("a user message has no content")?;
        let mut user = User { uuid, ..User::default() };
        match content {
            Value::String(text) => user.text.clone_from(text),
            Value::Array(blocks) => {
                let mut texts = Vec::new();
                for block in blocks {
                    match (text(block, "type"), text(block, "text")) {
                        (Some("text"), Some(text)) => texts.push(text),
                        (kind, _) => user.unsaid.push(kind.unwrap_or("a block without a type").to_owned()),
                    }
                }
                user.text = texts.join("\n");
            }
            _ => return Err("the content of a user message is neither a text nor a list".to_owned()),
        }
        Ok(user)
    }
}

/// The same object without what is null: the SDKs write null for what was not said.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
        other => other.clone(),
    }
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}
