//! What a request may ask for: one table of all options of `run`, and what is checked of each.
//!
//! Whoever has the token is the user, but the address may be reached by more than the user meant. So folders can be limited, modes
//! can be, programs are the server's choice, and so is the environment. An option that is not in the table is refused.

mod paths;

use std::path::{Path, PathBuf};

use alhena_agent::{Approval, Request};
use alhena_batch::meaning::Options;
use alhena_model::options::{BadValue, Choice};
use alhena_model::{Failure, FailureKind};
use axum::http::StatusCode;
use serde_json::Value;

use self::paths::{Paths, Wanted};
use crate::problem::Problem;

/// What is checked of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Nothing: it reaches nothing but the model and the limits of the run itself.
    Free,
    /// Folders that are there, below the root.
    Folder,
    /// Files to be read, below the root.
    File,
    /// A file below the root, to be read; to be written where edits may be made.
    Cassette,
    /// A text, and nothing that could be taken for one.
    Text,
    /// JSON, or a file to be read, below the root.
    JsonOrFile,
    /// No mode above the limit.
    Mode,
    /// Allows what a mode would not: only where every mode may be asked for.
    Grant,
    /// The folder's own settings can name programs.
    Trust,
    /// It may be asked for; that there be none needs the right to name programs.
    Sandbox,
    /// Variables, of those that the server lists.
    Environment,
    /// Names a program, or arguments of one.
    Program,
    /// Never, and why.
    Never(&'static str),
}

/// All options of `run`, by name.
pub const TABLE: &[(&str, Rule)] = &[
    ("agent_command", Rule::Program),
    ("allow", Rule::Grant),
    ("allow_tool", Rule::Grant),
    ("approval", Rule::Mode),
    ("args", Rule::Program),
    ("ask", Rule::Free),
    ("cassette", Rule::Cassette),
    ("cassette_mode", Rule::Free),
    ("deny", Rule::Free),
    ("deny_tool", Rule::Free),
    ("dir", Rule::Folder),
    ("env", Rule::Environment),
    ("first_event_timeout", Rule::Free),
    ("gemini", Rule::Program),
    ("hook", Rule::Program),
    ("hook_timeout", Rule::Free),
    ("include_dir", Rule::Folder),
    ("max_attempts", Rule::Free),
    ("max_calls", Rule::Free),
    ("max_cost", Rule::Free),
    ("max_tokens", Rule::Free),
    ("max_turns", Rule::Free),
    ("mcp_server", Rule::Program),
    ("model", Rule::Free),
    ("no_config", Rule::Free),
    ("offline", Rule::File),
    ("on_rate_limit", Rule::Free),
    ("permission_timeout", Rule::Free),
    ("policy", Rule::Grant),
    ("prices", Rule::File),
    ("prompt", Rule::Text),
    ("prompt_by", Rule::Free),
    ("prompt_file", Rule::File),
    ("record", Rule::Never("the server records every run: GET /v1/runs/{id}/recording")),
    ("resume", Rule::Free),
    ("rules", Rule::Grant),
    ("sandbox", Rule::Sandbox),
    ("schema", Rule::JsonOrFile),
    ("schema_attempts", Rule::Free),
    ("session_id", Rule::Free),
    ("stall_timeout", Rule::Free),
    ("system_prompt", Rule::Free),
    ("system_prompt_file", Rule::File),
    ("system_prompt_mode", Rule::Free),
    ("timeout", Rule::Free),
    ("transport", Rule::Free),
    ("trust", Rule::Trust),
];

/// Options that say nothing about a conversation.
pub(crate) const NOT_IN_CONVERSATIONS: &[&str] = &[
    "cassette",
    "cassette_mode",
    "prompt",
    "prompt_by",
    "prompt_file",
    "schema",
    "schema_attempts",
    "session_id",
    "transport",
];

/// What is to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// A run.
    Run,
    /// A conversation.
    Conversation,
}

/// What the server allows.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Folders and files that requests name are below it.
    pub root: Option<PathBuf>,
    /// The highest mode.
    pub max_approval: Approval,
    /// Variables that a request may set.
    pub allow_env: Vec<String>,
    /// Whether requests may name programs.
    pub allow_programs: bool,
    /// What relative paths are relative to.
    base: PathBuf,
}

/// From the one that lets least happen to the one that lets everything happen.
pub(crate) const MODES: [Approval; 4] =
    [Approval::Plan, Approval::Default, Approval::AutoEdit, Approval::Yolo];

/// The name of a mode.
pub fn mode_name(mode: Approval) -> &'static str {
    mode.name()
}

impl Policy {
    /// With this root, without symbolic links; relative paths are relative to it, or to where the server was started.
    pub fn new(root: Option<&Path>) -> std::io::Result<Self> {
        let root = root.map(Path::canonicalize).transpose()?;
        if root.as_ref().is_some_and(|root| !root.is_dir()) {
            return Err(std::io::ErrorKind::NotADirectory.into());
        }
        let base = match &root {
            Some(root) => root.clone(),
            None => std::env::current_dir()?,
        };
        Ok(Self { root, max_approval: Approval::Yolo, allow_env: Vec::new(), allow_programs: false, base })
    }

    /// The modes that may be asked for.
    pub fn modes(&self) -> impl Iterator<Item = &'static str> {
        MODES.into_iter().filter(|mode| self.allows(*mode)).map(mode_name)
    }

    fn allows(&self, mode: Approval) -> bool {
        mode.rank() <= self.max_approval.rank()
    }

    /// A mode that is asked for.
    pub fn mode(&self, name: &str) -> Result<Approval, Problem> {
        let mode: Approval = name.parse().map_err(|bad: BadValue| Problem::input(bad.to_string()))?;
        match self.allows(mode) {
            true => Ok(mode),
            false => Err(self.above(mode)),
        }
    }

    fn above(&self, mode: Approval) -> Problem {
        let most = mode_name(self.max_approval);
        Problem::forbidden(format!("the approval mode {} is above {most}", mode_name(mode)))
            .hint(format!("This server allows no more than {most}."))
    }

    /// Whether somebody may allow something for the whole conversation: that is as much as a mode in which nobody is asked.
    pub fn may_allow_always(&self, is_edit: bool) -> Result<(), Problem> {
        let needed = if is_edit { Approval::AutoEdit } else { Approval::Yolo };
        match self.allows(needed) {
            true => Ok(()),
            false => {
                let most = mode_name(self.max_approval);
                Err(Problem::forbidden(format!("to allow this always is more than the mode {most} does"))
                    .hint("Allow it once; it is asked about each time."))
            }
        }
    }

    /// Whether something in this folder may be touched by whoever asks over HTTP.
    pub fn may_use(&self, folder: &Path) -> bool {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.root.as_ref().is_none_or(|root| real.starts_with(root))
    }

    /// The options with real paths in them, if all of them may be given.
    ///
    /// `knows` says whether there is such an option at all: what is wrong with others is said by whoever knows the names.
    pub fn admit(
        &self,
        given: &Options,
        what: Beginning,
        knows: &dyn Fn(&str) -> bool,
    ) -> Result<Options, Problem> {
        self.may_record(given)?;
        let mut options = Options::new();
        for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
            if what == Beginning::Conversation && NOT_IN_CONVERSATIONS.contains(&name.as_str()) {
                let problem = Problem::input(format!("{name} cannot be given for a conversation"));
                return Err(problem.hint("Prompts are sent to it one by one."));
            }
            let rule = TABLE.iter().find(|(known, _)| known == name).map(|(_, rule)| *rule);
            let value = match rule {
                Some(rule) => self.option(name, value, rule)?,
                None if knows(name) => {
                    return Err(Problem::forbidden(format!("{name} cannot be given over HTTP")));
                }
                None => value.clone(),
            };
            options.insert(name.clone(), value);
        }
        if !options.contains_key("dir") {
            options.insert("dir".to_owned(), self.base.display().to_string().into());
        }
        let offline = options.get("offline").is_some_and(|value| *value != Value::Bool(false));
        if offline && !options.contains_key("approval") {
            // The scripted model may do everything otherwise; in a conversation one wants to see the questions.
            let mode = match what {
                Beginning::Run => self.max_approval,
                Beginning::Conversation => Approval::Default.min(self.max_approval),
            };
            options.insert("approval".to_owned(), mode_name(mode).into());
        }
        if !options.contains_key("approval") && !self.allows(Approval::Default) {
            options.insert("approval".to_owned(), mode_name(self.max_approval).into());
        }
        Ok(options)
    }

    /// Recording writes a file, which not every mode may; only what says that it plays back does nothing else.
    fn may_record(&self, given: &Options) -> Result<(), Problem> {
        let has_one = given.get("cassette").is_some_and(|value| !value.is_null());
        let is_replay = given.get("cassette_mode").is_some_and(|mode| mode == "replay");
        match has_one && !is_replay && !self.allows(Approval::AutoEdit) {
            true => {
                let most = mode_name(self.max_approval);
                Err(Problem::forbidden(format!(
                    "cassette: recording writes a file, and the mode {most} may not"
                ))
                .hint("Give cassette_mode replay, which plays back and never records."))
            }
            false => Ok(()),
        }
    }

    fn option(&self, name: &str, value: &Value, rule: Rule) -> Result<Value, Problem> {
        let paths = Paths { base: &self.base, root: self.root.as_deref() };
        match rule {
            Rule::Free => Ok(value.clone()),
            Rule::Folder => paths.each(name, value, Wanted::Folder),
            Rule::File if value.is_boolean() => Ok(value.clone()),
            Rule::File => paths.each(name, value, Wanted::File),
            Rule::Cassette if self.allows(Approval::AutoEdit) => paths.each(name, value, Wanted::Written),
            // It is only played back: `admit` has seen to that.
            Rule::Cassette => paths.each(name, value, Wanted::File),
            Rule::Text if value.is_string() => Ok(value.clone()),
            Rule::Text => Err(Problem::input(format!("{name}: a text is needed"))),
            Rule::JsonOrFile => match value {
                Value::Object(_) => Ok(value.clone()),
                // A file could have such a name.
                Value::String(text) if text.trim_start().starts_with('{') => {
                    serde_json::from_str(text).map_err(|error| Problem::input(format!("{name}: {error}")))
                }
                Value::String(_) => paths.each(name, value, Wanted::File),
                _ => Err(Problem::input(format!("{name}: a JSON object or a path is needed"))),
            },
            Rule::Mode => match value.as_str() {
                Some(mode) => self.mode(mode).map(|_| value.clone()),
                None => Err(Problem::input(format!("{name}: a text is needed"))),
            },
            Rule::Grant if self.max_approval != Approval::Yolo => {
                let most = mode_name(self.max_approval);
                Err(Problem::forbidden(format!("{name} allows more than the mode {most} does"))
                    .hint("The server would have to be started without a limit on approval modes."))
            }
            Rule::Grant if matches!(name, "policy" | "rules") => paths.each(name, value, Wanted::File),
            Rule::Grant => Ok(value.clone()),
            Rule::Trust if value == "settings" => {
                self.program(name, value, "loads what the folder brings along")
            }
            Rule::Trust => Ok(value.clone()),
            Rule::Sandbox if is_off(value) => self.program(name, value, "takes the sandbox away"),
            Rule::Sandbox => Ok(value.clone()),
            Rule::Environment => self.variables(name, value),
            Rule::Program => self.program(name, value, "names a program"),
            Rule::Never(why) => Err(Problem::input(format!("{name} cannot be given here: {why}"))),
        }
    }

    fn program(&self, name: &str, value: &Value, what: &str) -> Result<Value, Problem> {
        match self.allow_programs {
            true => Ok(value.clone()),
            false => Err(Problem::forbidden(format!("{name} {what}, and a request may not"))
                .hint("The server would have to be started so that requests may name programs.")),
        }
    }

    fn variables(&self, option: &str, value: &Value) -> Result<Value, Problem> {
        let texts: Vec<&str> = match value {
            Value::String(text) => vec![text],
            Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
            Value::Object(pairs) => pairs.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        for text in texts {
            let name = text.split('=').next().unwrap_or_default();
            if !self.allow_env.iter().any(|allowed| allowed == name) {
                return Err(Problem::forbidden(format!("{option}: {name} may not be set by a request"))
                    .hint("The server would have to be started so that requests may set this variable."));
            }
        }
        Ok(value.clone())
    }

    /// A mode that the request did not name is no reason to refuse it: the defaults of files are lowered to the limit.
    pub fn lower(&self, request: &mut Request, options: &Options) {
        if !options.contains_key("approval") {
            request.approval = request.approval.min(self.max_approval);
        }
    }

    /// What the options came to, with the defaults of files: the last look before something begins.
    pub fn check(&self, request: &Request) -> Result<(), Box<Failure>> {
        let refused = |message: String, hint: &str| {
            Err(Box::new(Failure::new(FailureKind::Input, message).with_hint(hint.to_owned())))
        };
        if !self.allows(request.approval) {
            return refused(
                format!("the approval mode {} is above the server's limit", mode_name(request.approval)),
                "Ask for a lower mode, or start the server with a higher limit.",
            );
        }
        match &request.dir {
            Some(dir) if self.may_use(dir) => Ok(()),
            _ => refused("the folder is not below the server's root".to_owned(), "Give another dir."),
        }
    }
}

fn is_off(value: &Value) -> bool {
    *value == Value::Bool(false)
        || value.as_str().is_some_and(|name| matches!(name, "off" | "none" | "false" | "no"))
}

/// Past the limit on how many there may be.
pub fn too_many(what: &str, most: usize) -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many", format!("there are {most} {what} already"))
        .hint("Wait for one to end, or start the server with a higher limit.")
        .retry_after(5)
}

#[cfg(test)]
mod tests;
