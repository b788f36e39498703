//! The provider's configuration: names, defaults, checks, and the command line that the plan writes for it.
//!
//! The plan's options map to flags that Gemini CLI 0.61.0 mostly does not have, so [`Config::command_line`] is what the
//! drop-in has to understand, and not what the CLI gets.

use serde_json::{Map, Value};

use crate::dialect::Approval;

/// How long a call may take unless told otherwise (E-22).
pub const DEFAULT_TIMEOUT_MS: u64 = 120_000;
/// The approval modes of the plan (E-14).
pub const APPROVAL_MODES: [&str; 3] = ["suggest", "auto_edit", "full_auto"];
/// Every option that is understood: the plan's first, then what came since.
pub const KEYS: [&str; 21] = [
    "apiKey",
    "googleCloudProject",
    "useVertexAI",
    "model",
    "working_dir",
    "include_directories",
    "approval_mode",
    "yolo",
    "sandbox",
    "mcp_settings_path",
    "mcp_servers",
    "disable_tools",
    "allow_tools",
    "timeout_ms",
    "session_id",
    "resume",
    "system_prompt",
    "max_turns",
    "schema",
    "cache",
    "gemini_path",
];

/// A configuration that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// `GEMINI_API_KEY` for the CLI (E-16).
    pub api_key: Option<String>,
    /// `GOOGLE_CLOUD_PROJECT` (E-17).
    pub google_cloud_project: Option<String>,
    /// `GOOGLE_GENAI_USE_VERTEXAI` (E-18).
    pub use_vertex_ai: Option<bool>,
    /// The model (E-07).
    pub model: Option<String>,
    /// Where to work (E-19).
    pub working_dir: Option<String>,
    /// More directories (E-10).
    pub include_directories: Vec<String>,
    /// The approval mode as it was named (E-08, E-14).
    pub approval_mode: Option<String>,
    /// Approve everything (E-09, E-15).
    pub yolo: bool,
    /// The sandbox (E-11, E-12).
    pub sandbox: Sandbox,
    /// A settings file with MCP servers (E-20).
    pub mcp_settings_path: Option<String>,
    /// MCP servers (E-21).
    pub mcp_servers: Map<String, Value>,
    /// Tools to deny (E-13).
    pub disable_tools: Vec<String>,
    /// Tools to allow.
    pub allow_tools: Vec<String>,
    /// How long a call may take (E-22).
    pub timeout_ms: u64,
    /// The id for the new session.
    pub session_id: Option<String>,
    /// The session to go on with (E-46).
    pub resume: Option<String>,
}

/// The sandbox as the plan has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// Nothing was said.
    #[default]
    Unsaid,
    /// `false`.
    Off,
    /// `true`, which the plan does not have.
    On,
    /// `docker`, `podman`.
    Engine(String),
}

/// E-05: the provider's configuration, overlaid by the prompt's, key by key.
pub fn overlay(provider: &Value, prompt: &Value) -> Value {
    let mut merged = provider.as_object().cloned().unwrap_or_default();
    if let Value::Object(prompt) = prompt {
        merged.extend(prompt.clone());
    }
    Value::Object(merged)
}

impl Config {
    /// Checks a configuration; gives it with its warnings, or what is wrong with it.
    pub fn read(config: &Value) -> Result<(Config, Vec<String>), String> {
        let empty = Map::new();
        let fields = match config {
            Value::Null => &empty, // E-03
            Value::Object(fields) => fields,
            _ => return Err("config must be an object".to_owned()),
        };
        let given = Given(fields);
        let config = Config {
            api_key: given.text("apiKey")?,
            google_cloud_project: given.text("googleCloudProject")?,
            use_vertex_ai: given.switch("useVertexAI")?,
            model: given.text("model")?,
            working_dir: given.text("working_dir")?,
            include_directories: given.list("include_directories")?,
            approval_mode: given.approval_mode()?,
            yolo: given.switch("yolo")?.unwrap_or(false),
            sandbox: given.sandbox()?,
            mcp_settings_path: given.text("mcp_settings_path")?,
            mcp_servers: given.object("mcp_servers")?,
            disable_tools: given.list("disable_tools")?,
            allow_tools: given.list("allow_tools")?,
            timeout_ms: given.timeout()?,
            session_id: given.text("session_id")?,
            resume: given.text("resume")?,
        };
        let unknown = fields.keys().filter(|key| !KEYS.contains(&key.as_str()));
        Ok((config, unknown.map(|key| format!("unknown option {key} is ignored")).collect()))
    }

    /// The command line that the plan writes, in its order (E-06 to E-13).
    pub fn command_line(&self, prompt: &str) -> Vec<String> {
        let mut line = vec!["-p", prompt, "--output-format", "json"];
        if let Some(model) = &self.model {
            line.extend(["-m", model]);
        }
        if let Some(mode) = &self.approval_mode {
            line.extend(["--approval-mode", mode]);
        }
        if self.yolo {
            line.push("--yolo");
        }
        let directories = self.include_directories.join(",");
        if !directories.is_empty() {
            line.extend(["--include-directories", &directories]);
        }
        match &self.sandbox {
            Sandbox::Unsaid => {}
            Sandbox::Off => line.extend(["--sandbox", "none"]),
            Sandbox::On => line.push("--sandbox"),
            Sandbox::Engine(engine) => line.extend(["--sandbox", engine]),
        }
        for tool in &self.disable_tools {
            line.extend(["--disable-tool", tool]);
        }
        line.into_iter().map(str::to_owned).collect()
    }

    /// What is added to the environment (E-16 to E-18).
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let vertex = self.use_vertex_ai.map(|on| on.to_string());
        [
            ("GEMINI_API_KEY", self.api_key.clone()),
            ("GOOGLE_CLOUD_PROJECT", self.google_cloud_project.clone()),
            ("GOOGLE_GENAI_USE_VERTEXAI", vertex),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

/// The fields as they were given; `null` is nothing.
struct Given<'a>(&'a Map<String, Value>);

impl Given<'_> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("{key} must be a string, got: {other}")),
        }
    }

    fn switch(&self, key: &str) -> Result<Option<bool>, String> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(on)) => Ok(Some(*on)),
            Some(other) => Err(format!("{key} must be true or false, got: {other}")),
        }
    }

    fn list(&self, key: &str) -> Result<Vec<String>, String> {
        let wrong = |value: &Value| format!("{key} must be a list of strings, got: {value}");
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(value @ Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong(value)))
                .collect(),
            Some(other) => Err(wrong(other)),
        }
    }

    fn object(&self, key: &str) -> Result<Map<String, Value>, String> {
        match self.get(key) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map.clone()),
            Some(other) => Err(format!("{key} must be an object, got: {other}")),
        }
    }

    fn approval_mode(&self) -> Result<Option<String>, String> {
        let mode = self.text("approval_mode")?;
        match &mode {
            Some(name) if Approval::named(name).is_none() => Err(format!(
                "approval_mode must be one of {}, got: {}",
                APPROVAL_MODES.join(", "),
                Value::String(name.clone())
            )),
            _ => Ok(mode),
        }
    }

    fn sandbox(&self) -> Result<Sandbox, String> {
        match self.get("sandbox") {
            None => Ok(Sandbox::Unsaid),
            Some(Value::Bool(false)) => Ok(Sandbox::Off),
            Some(Value::Bool(true)) => Ok(Sandbox::On),
            Some(Value::String(engine)) if !engine.is_empty() => Ok(Sandbox::Engine(engine.clone())),
            Some(other) => Err(format!("sandbox must be docker, podman or false, got: {other}")),
        }
    }

    fn timeout(&self) -> Result<u64, String> {
        match self.get("timeout_ms") {
            None => Ok(DEFAULT_TIMEOUT_MS),
            Some(value) => match value.as_f64() {
                Some(ms) if ms > 0.0 => Ok(ms.ceil() as u64),
                _ => Err(format!("timeout_ms must be a number > 0, got: {value}")),
            },
        }
    }
}
