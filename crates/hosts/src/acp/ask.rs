//! What a client asks of an agent.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResourceResource, HttpHeader, InitializeRequest, ListSessionsRequest,
    LoadSessionRequest, McpServer, NewSessionRequest, PromptRequest, ResumeSessionRequest,
    SetSessionConfigOptionRequest, SetSessionModeRequest,
};
use alhena_wire::rpc::Fault;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Refusal;

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// The first word.
    Initialize(Client),
    /// Signs in.
    Authenticate,
    /// A new session.
    New(SessionSetup),
    /// A session that was there before; with all that was said in it, or without.
    Load {
        /// Which one.
        session: String,
        /// Where it goes on.
        place: SessionSetup,
        /// Whether the client wants to be told what was said.
        replay: bool,
    },
    /// The sessions that there are.
    List {
        /// Those of this directory only.
        dir: Option<PathBuf>,
        /// Where the list goes on.
        cursor: Option<String>,
    },
    /// A prompt.
    Prompt {
        /// In which session.
        session: String,
        /// All of it as one text.
        text: String,
    },
    /// What may be done without asking.
    SetMode {
        /// In which session.
        session: String,
        /// The id of a mode.
        mode: String,
    },
    /// Which model.
    SetModel {
        /// In which session.
        session: String,
        /// The id of a model.
        model: String,
    },
    /// One of the options that were offered with a session.
    SetOption {
        /// In which session.
        session: String,
        /// Which option.
        option: String,
        /// The value, which has to be one of those that were offered.
        value: String,
    },
    /// A session is over.
    Close {
        /// Which one.
        session: String,
    },
}

/// What the client can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// It shows notices.
    pub notices: bool,
}

/// Where a session works, and with what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionSetup {
    /// The directory.
    pub dir: PathBuf,
    /// More directories that the model may use.
    pub more_dirs: Vec<PathBuf>,
    /// MCP servers, as Gemini CLI has them in its settings.
    pub servers: Map<String, Value>,
}

impl Ask {
    /// Reads a request.
    pub fn read(method: &str, params: Value) -> Result<Self, Refusal> {
        Ok(match method {
            "initialize" => {
                let request: InitializeRequest = read(method, params)?;
                let session = request.client_capabilities.session;
                Self::Initialize(Client { notices: session.is_some_and(|session| session.notices.is_some()) })
            }
            "authenticate" => Self::Authenticate,
            "session/new" => {
                let request: NewSessionRequest = read(method, params)?;
                Self::New(place(request.cwd, request.additional_directories, request.mcp_servers)?)
            }
            "session/load" => {
                let request: LoadSessionRequest = read(method, params)?;
                let place = place(request.cwd, request.additional_directories, request.mcp_servers)?;
                Self::Load { session: request.session_id.to_string(), place, replay: true }
            }
            "session/resume" => {
                let request: ResumeSessionRequest = read(method, params)?;
                let place = place(request.cwd, request.additional_directories, request.mcp_servers)?;
                Self::Load { session: request.session_id.to_string(), place, replay: false }
            }
            "session/list" => {
                let params = if params.is_null() { json!({}) } else { params };
                let request: ListSessionsRequest = read(method, params)?;
                let dir = request.cwd.map(absolute).transpose()?;
                Self::List { dir, cursor: request.cursor }
            }
            "session/prompt" => {
                let request: PromptRequest = read(method, params)?;
                Self::Prompt { session: request.session_id.to_string(), text: text(request.prompt)? }
            }
            "session/set_mode" => {
                let request: SetSessionModeRequest = read(method, params)?;
                Self::SetMode { session: request.session_id.to_string(), mode: request.mode_id.to_string() }
            }
            "session/set_model" => {
                let request: SetModel = read(method, params)?;
                Self::SetModel { session: request.session_id, model: request.model_id }
            }
            "session/set_config_option" => {
                let request: SetSessionConfigOptionRequest = read(method, params)?;
                let value = request.value.as_value_id().map(ToString::to_string);
                let value = value.ok_or_else(|| wrong("every option here is a choice by name".to_owned()))?;
                let (session, option) = (request.session_id.to_string(), request.config_id.to_string());
                Self::SetOption { session, option, value }
            }
            "session/close" => Self::Close { session: read::<Named>(method, params)?.session_id },
            other => return Err(Refusal::of(Fault::Method, format!("there is no method {other:?}"), "")),
        })
    }

    /// The session that is to be cancelled, if a notification says so.
    pub fn cancelled(method: &str, params: Value) -> Option<String> {
        (method == "session/cancel").then(|| Named::deserialize(params).ok())?.map(|named| named.session_id)
    }
}

/// It is not in the protocol any more, and clients have it all the same.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetModel {
    session_id: String,
    model_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: String,
}

fn wrong(message: String) -> Refusal {
    Refusal::of(Fault::Params, message, "")
}

fn read<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, Refusal> {
    T::deserialize(params).map_err(|error| wrong(format!("{method} does not take these parameters: {error}")))
}

fn absolute(dir: PathBuf) -> Result<PathBuf, Refusal> {
    if dir.is_absolute() {
        return Ok(dir);
    }
    let message = format!("{:?} is not an absolute path", dir.to_string_lossy());
    Err(Refusal::of(Fault::Params, message, "Give the whole path of a directory."))
}

fn place(dir: PathBuf, more_dirs: Vec<PathBuf>, servers: Vec<McpServer>) -> Result<SessionSetup, Refusal> {
    let more_dirs = more_dirs.into_iter().map(absolute).collect::<Result<_, _>>()?;
    let mut place = SessionSetup { dir: absolute(dir)?, more_dirs, servers: Map::new() };
    for server in servers {
        let (name, entry) = server_entry(server)?;
        if place.servers.insert(name.clone(), entry).is_some() {
            return Err(wrong(format!("there are two MCP servers with the name {name:?}")));
        }
    }
    Ok(place)
}

/// A server as Gemini CLI has it in its settings.
fn server_entry(server: McpServer) -> Result<(String, Value), Refusal> {
    let at = |kind: &str, url: String, headers: Vec<HttpHeader>| {
        let headers: Map<String, Value> =
            headers.into_iter().map(|header| (header.name, header.value.into())).collect();
        json!({"url": url, "type": kind, "headers": headers})
    };
    Ok(match server {
        McpServer::Stdio(server) => {
            let env: Map<String, Value> =
                server.env.into_iter().map(|variable| (variable.name, variable.value.into())).collect();
            let command = server.command.to_string_lossy();
            (server.name, json!({"command": command, "args": server.args, "env": env}))
        }
        McpServer::Http(server) => (server.name, at("http", server.url, server.headers)),
        McpServer::Sse(server) => (server.name, at("sse", server.url, server.headers)),
        _ => {
            return Err(wrong(
                "Gemini CLI reaches MCP servers as processes, over HTTP and by SSE only".to_owned(),
            ));
        }
    })
}

/// A prompt as one text. What is embedded stands behind it, and its name where it was.
fn text(blocks: Vec<ContentBlock>) -> Result<String, Refusal> {
    let (mut text, mut context, mut after_text) = (String::new(), String::new(), false);
    for block in blocks {
        let is_text = matches!(block, ContentBlock::Text(_));
        if is_text && after_text {
            text.push('\n');
        }
        after_text = is_text;
        match block {
            ContentBlock::Text(piece) => text.push_str(&piece.text),
            ContentBlock::ResourceLink(link) => text.push_str(&format!("[@{}]({})", link.name, link.uri)),
            ContentBlock::Resource(embedded) => match embedded.resource {
                EmbeddedResourceResource::TextResourceContents(resource) => {
                    let name = resource.uri.rsplit('/').next().unwrap_or(&resource.uri);
                    text.push_str(&format!("[@{name}]({})", resource.uri));
                    context.push_str(&format!(
                        "\n<context uri={:?}>\n{}\n</context>",
                        resource.uri, resource.text
                    ));
                }
                _ => return Err(unsaid("embedded bytes")),
            },
            ContentBlock::Image(_) => return Err(unsaid("an image")),
            ContentBlock::Audio(_) => return Err(unsaid("sound")),
            _ => return Err(unsaid("content of a kind that nobody knows")),
        }
    }
    if text.trim().is_empty() && context.is_empty() {
        return Err(wrong("the prompt is empty".to_owned()));
    }
    text.push_str(&context);
    Ok(text)
}

fn unsaid(what: &str) -> Refusal {
    let hint = "Put it into a file of the project and name it in the prompt: Gemini CLI can read it.";
    Refusal::of(Fault::Params, format!("a prompt with {what} is not taken, as promptCapabilities says"), hint)
}
