//! Defaults of `alhena run` in files: the user's own, and the one of a folder that Gemini CLI trusts.
//!
//! A folder's file comes with a repository. So it counts only where the folder's own settings would, and it cannot choose
//! what is executed, read or written, trust itself, allow more than the user does, or raise what a run may cost.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alhena_agent::Sandbox;
use alhena_agent::dirs::Dirs;
use alhena_agent::env::{self, Environment};
use alhena_agent::facts::{self, NotUsed};
use alhena_agent::{Approval, RunError, Trust};
use alhena_model::options::{BadValue, nearest};
use alhena_model::{RunOptions, Setting};
use clap::ValueEnum;
use serde_json::Value;
use toml::Spanned;

use crate::commands::install;
use crate::views::Name;

/// The folder's file, in the working directory.
const PROJECT_FILE: &str = ".alhena/config.toml";
/// Nobody writes a larger one.
const LARGEST: u64 = 1 << 20;

/// The key that is no option of a run as data.
const VIEW: &str = "view";

/// What can stand in the files, and what it means: in a folder's too, or only in the user's own.
pub fn keys(owner: Owner) -> Vec<(String, &'static str)> {
    let settings = Setting::ALL.iter().filter(|setting| is_key(**setting));
    let settings = settings
        .filter(|setting| matches!(of_folder(**setting), InFolder::Refused(_)) == (owner == Owner::User));
    let mut keys: Vec<_> = settings
        .map(|setting| (key_of(*setting), setting.help().trim_end_matches("; can be repeated")))
        .collect();
    if owner == Owner::Project {
        keys.push((VIEW.to_owned(), "Print this when --as is not given"));
    }
    keys
}

fn is_key(setting: Setting) -> bool {
    !matches!(setting, Setting::Prompt | Setting::PromptFile | Setting::NoConfig)
}

fn key_of(setting: Setting) -> String {
    setting.name().replace('_', "-")
}

/// What a folder's file may do with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InFolder {
    /// Its value replaces that of the user's file.
    Replaces,
    /// Its values restrict, and are added to those of the user's file.
    Adds,
    /// The lower value counts.
    Lowers,
    /// It may turn it on where the user's file says nothing.
    TurnsOn,
    /// Nothing, and why.
    Refused(&'static str),
}

const EXECUTES: &str = "a folder cannot choose what is executed";
const GRANTS: &str = "a folder cannot allow more than you do";
const FILES: &str = "a folder cannot choose which files are read or written";
const COSTS: &str = "a folder cannot raise what a run may cost";
const INSTRUCTS: &str = "a folder's instructions belong in its GEMINI.md";
const SESSION: &str = "a folder cannot choose the session";
const NO_DEFAULT: &str = "it has no default";

/// Without a wildcard: a new option does not compile until it is decided.
fn of_folder(setting: Setting) -> InFolder {
    use InFolder::{Adds, Lowers, Refused, Replaces, TurnsOn};
    match setting {
        Setting::PromptBy
        | Setting::Model
        | Setting::Approval
        | Setting::PermissionTimeout
        | Setting::Timeout
        | Setting::FirstEventTimeout
        | Setting::StallTimeout => Replaces,
        Setting::DenyTool | Setting::Deny | Setting::Ask => Adds,
        Setting::MaxTurns | Setting::MaxTokens | Setting::MaxCost | Setting::MaxCalls => Lowers,
        Setting::Sandbox => TurnsOn,
        Setting::Trust => Refused("a folder cannot trust itself"),
        Setting::AgentCommand
        | Setting::Gemini
        | Setting::McpServer
        | Setting::Env
        | Setting::Hook
        | Setting::HookTimeout
        | Setting::Args => Refused(EXECUTES),
        // Over ACP Gemini CLI edits files that it does not edit headless.
        Setting::Transport | Setting::AllowTool | Setting::Policy | Setting::Allow | Setting::Rules => {
            Refused(GRANTS)
        }
        Setting::Offline
        | Setting::Cassette
        | Setting::CassetteMode
        | Setting::Dir
        | Setting::IncludeDir
        | Setting::SystemPromptFile
        | Setting::Prices
        | Setting::Schema
        | Setting::Record => Refused(FILES),
        Setting::MaxAttempts | Setting::SchemaAttempts | Setting::OnRateLimit => Refused(COSTS),
        Setting::SystemPrompt | Setting::SystemPromptMode => Refused(INSTRUCTS),
        Setting::Resume | Setting::SessionId => Refused(SESSION),
        Setting::Prompt | Setting::PromptFile | Setting::NoConfig => Refused(NO_DEFAULT),
    }
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    User,
    Project,
}

/// The defaults in force.
#[derive(Debug, Default)]
pub struct Config {
    pub options: RunOptions,
    pub view: Option<Name>,
    /// What was set, to what, and where; a later one wins.
    pub set: Vec<Set>,
    /// A folder's file that does not count.
    pub passed_over: Option<(PathBuf, NotUsed)>,
}

/// One line of a file.
#[derive(Debug)]
pub struct Set {
    pub key: String,
    pub value: String,
    pub file: PathBuf,
}

/// The user's file: where `ALHENA_CONFIG` says, or the usual place; none if that variable is empty.
pub fn user_file(environment: &Environment) -> Option<PathBuf> {
    match environment.get(env::ALHENA_CONFIG) {
        Some(path) if path.is_empty() => None,
        Some(path) => Some(path.into()),
        None => Some(Dirs::of(environment)?.config.join("config.toml")),
    }
}

impl Config {
    /// Fills in what the options do not say, and adds what restricts. For other agents without what is only for Gemini CLI
    /// and restricts nothing.
    pub fn fill(&self, options: &mut RunOptions) {
        const GEMINI_ONLY: &[Setting] = &[
            Setting::Model,
            Setting::Trust,
            Setting::MaxTurns,
            Setting::MaxAttempts,
            Setting::OnRateLimit,
            Setting::Transport,
            Setting::IncludeDir,
            Setting::AllowTool,
            Setting::PromptBy,
            Setting::Args,
        ];
        options.fill(&self.options, &[Setting::AgentCommand]);
        let is_meant = |setting: &Setting| options.agent_command.is_none() || !GEMINI_ONLY.contains(setting);
        let meant: Vec<Setting> = Setting::ALL.iter().copied().filter(is_meant).collect();
        let Self { options: RunOptions { deny, deny_tool, ask, .. }, .. } = self;
        for (own, more) in
            [(&mut options.deny, deny), (&mut options.deny_tool, deny_tool), (&mut options.ask, ask)]
        {
            own.splice(0..0, more.iter().cloned());
        }
        options.fill(&self.options, &meant);
    }

    /// Only the defaults of these options.
    #[must_use]
    pub fn only(mut self, is_meant: impl Fn(Setting) -> bool) -> Self {
        for setting in Setting::ALL.iter().filter(|setting| !is_meant(**setting)) {
            self.options.replace(&RunOptions::default(), *setting);
        }
        self
    }

    /// Only what may count where others than the user say what is to be done: what a folder may set, and the user's trust.
    #[must_use]
    pub fn for_jobs(self) -> Self {
        self.only(|setting| setting == Setting::Trust || !matches!(of_folder(setting), InFolder::Refused(_)))
    }

    /// The defaults of the user's own file.
    pub fn of_user(environment: &Environment) -> Result<Self, RunError> {
        let mut config = Self::default();
        let Some(file) = user_file(environment) else { return Ok(config) };
        // A file that was asked for has to be there.
        let asked_for = environment.filled(env::ALHENA_CONFIG).is_some();
        match read(&file) {
            Ok(text) => config.take(&text, &file, Owner::User)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !asked_for => {}
            Err(error) => return Err(wrong(format!("{}: {error}", file.display()), HINT)),
        }
        Ok(config)
    }

    /// The defaults for a run in this directory; `trust` is what the caller said of it.
    pub fn load(dir: &Path, trust: Option<Trust>, environment: &Environment) -> Result<Self, RunError> {
        Self::of_user(environment)?.with_folder(dir, trust, environment)
    }

    fn with_folder(
        mut self,
        dir: &Path,
        trust: Option<Trust>,
        environment: &Environment,
    ) -> Result<Self, RunError> {
        let file = dir.join(PROJECT_FILE);
        if user_file(environment).is_none() || fs::symlink_metadata(&file).is_err() {
            return Ok(self);
        }
        let given = trust.or(self.options.trust).unwrap_or_default();
        if let Err(why) = facts::may_use(environment, dir, &file, given) {
            self.passed_over = Some((file, why));
            return Ok(self);
        }
        let text = read(&file).map_err(|error| wrong(format!("{}: {error}", file.display()), HINT))?;
        self.take(&text, &file, Owner::Project)?;
        Ok(self)
    }

    /// The same as a command was told to: none with `--no-config`; without a directory, where the user's file says. What is
    /// wrong with a directory is said when it is needed.
    pub fn of_run(
        dir: Option<&Path>,
        trust: Option<Trust>,
        none: bool,
        environment: &Environment,
    ) -> Result<Self, RunError> {
        if none {
            return Ok(Self::default());
        }
        let config = Self::of_user(environment)?;
        match dir.or(config.options.dir.as_deref()).unwrap_or(Path::new(".")).canonicalize() {
            Ok(dir) => config.with_folder(&dir, trust, environment),
            Err(_) => Ok(config),
        }
    }

    /// The Gemini CLI that is named, unless it is a version, which only a run fetches.
    pub fn gemini(&self) -> Option<PathBuf> {
        self.options.gemini.clone().filter(|path| install::as_version(path).is_none())
    }

    /// What somebody who wrote a file has to be told.
    pub fn notice(&self) -> Option<String> {
        let (file, why) = self.passed_over.as_ref()?;
        Some(match why {
            NotUsed::Untrusted => format!(
                "{} is not used: Gemini CLI does not trust this folder; `trust`=settings does",
                file.display()
            ),
            NotUsed::Exposed(_) => format!("{} is not used: it {why}", file.display()),
        })
    }

    fn take(&mut self, text: &str, file: &Path, owner: Owner) -> Result<(), RunError> {
        type Lines = std::collections::BTreeMap<Spanned<String>, Spanned<toml::Value>>;
        let place = |at: usize| {
            let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
            format!("{}:{line}", file.display())
        };
        let lines: Lines = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            wrong(format!("{}: {}", place(at), error.message()), HINT)
        })?;
        let mut given: Vec<String> = Vec::new();
        for (written, value) in lines {
            let place = place(written.span().start);
            let name = written.into_inner().replace('-', "_");
            let key = name.replace('_', "-");
            if given.contains(&key) {
                return Err(wrong(format!("{place}: {key} is given twice"), HINT));
            }
            let bad = |BadValue { problem, fix }| {
                let hint = if fix.is_empty() { HINT } else { fix.as_str() };
                wrong(format!("{place}: {key}: {problem}"), hint)
            };
            let value = json(value.into_inner());
            let shown = shown(&key, &value);
            let counts = match Setting::named(&name).filter(|setting| is_key(*setting)) {
                Some(setting) => {
                    if let Some(other) = setting.excludes().find(|other| given.contains(&key_of(*other))) {
                        let other = key_of(other);
                        return Err(bad(BadValue::new(format!("it cannot be given together with {other}"))));
                    }
                    self.set(setting, value, owner).map_err(bad)?
                }
                None if key == VIEW => {
                    let view = Name::from_str(&shown, false);
                    let view = view.map_err(|_| bad(BadValue::new(format!("there is no view {shown:?}"))))?;
                    self.view = Some(view);
                    Effect::Replaced
                }
                None => {
                    return Err(wrong(format!("{place}: unknown key {key:?}"), &suggestion(&key)));
                }
            };
            if counts == Effect::Replaced {
                self.set.retain(|set| set.key != key);
            }
            if counts != Effect::None {
                self.set.push(Set { key: key.clone(), value: shown, file: file.to_owned() });
            }
            given.push(key);
        }
        Ok(())
    }

    fn set(&mut self, setting: Setting, value: Value, owner: Owner) -> Result<Effect, BadValue> {
        let rule = of_folder(setting);
        if let (InFolder::Refused(why), Owner::Project) = (rule, owner) {
            return Err(BadValue::new(why).fix("Put it into your own file, or on the command line."));
        }
        let value = match value {
            Value::String(text) => setting.value_of_text(&text),
            value => value,
        };
        let mut read = RunOptions::default();
        read.read(setting, &value)?;
        if setting == Setting::Model && read.model.as_deref().is_some_and(|model| model.trim().is_empty()) {
            return Err(BadValue::new("no model has an empty name"));
        }
        if owner == Owner::User {
            self.options.replace(&read, setting);
            return Ok(Effect::Replaced);
        }
        let old = &mut self.options;
        match rule {
            _ if read.approval == Some(Approval::Yolo) => {
                Err(BadValue::new("a folder cannot let the model do everything"))
            }
            InFolder::Adds => {
                old.deny.extend(read.deny);
                old.deny_tool.extend(read.deny_tool);
                old.ask.extend(read.ask);
                Ok(Effect::Added)
            }
            InFolder::TurnsOn if matches!(read.sandbox, Some(Sandbox::Off | Sandbox::Inherit)) => {
                Err(BadValue::new("a folder cannot turn the sandbox off"))
            }
            InFolder::TurnsOn if old.has(setting) => Ok(Effect::None),
            InFolder::Lowers if !lowers(&read, old) => Ok(Effect::None),
            _ => {
                old.replace(&read, setting);
                Ok(Effect::Replaced)
            }
        }
    }
}

/// What a line did to the lines before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Replaced,
    Added,
    None,
}

/// Whether no limit is above one that is there.
fn lowers(new: &RunOptions, old: &RunOptions) -> bool {
    fn below<T: PartialOrd>(new: Option<T>, old: Option<T>) -> bool {
        new.zip(old).is_none_or(|(new, old)| new < old)
    }
    below(new.max_turns, old.max_turns)
        && below(new.max_tokens, old.max_tokens)
        && below(new.max_cost, old.max_cost)
        && below(new.max_calls, old.max_calls)
}

const HINT: &str = "Mend the file, or run with `no_config`; `alhena help config` explains it.";

fn wrong(message: String, hint: &str) -> RunError {
    RunError::usage(message, hint.to_owned())
}

/// The key that was probably meant.
fn suggestion(key: &str) -> String {
    let keys: Vec<String> =
        [Owner::Project, Owner::User].into_iter().flat_map(keys).map(|(key, _)| key).collect();
    let meant = if key == "as" { Some(VIEW) } else { nearest(key, keys.iter().map(String::as_str)) };
    match meant {
        Some(name) => format!("Did you mean {name}? `alhena help config` lists the keys."),
        None => "`alhena help config` lists the keys.".to_owned(),
    }
}

/// JSON cannot have all numbers; what it cannot have is refused as the text that it is.
fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) if number.is_finite() => number.into(),
        toml::Value::Float(number) => number.to_string().into(),
        toml::Value::Boolean(yes) => yes.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(values) => values.into_iter().map(json).collect(),
        toml::Value::Table(table) => table.into_iter().map(|(name, value)| (name, json(value))).collect(),
    }
}

/// A value for people to see. Those of variables are secrets.
fn shown(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) if key == "env" => text.split('=').next().unwrap_or_default().to_owned(),
        Value::Array(values) if key == "env" => {
            values.iter().map(|value| shown(key, value)).collect::<Vec<_>>().join(", ")
        }
        Value::Object(pairs) if key == "env" => pairs.keys().cloned().collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn read(file: &Path) -> io::Result<String> {
    let data = fs::metadata(file)?;
    match data.is_file() && data.len() <= LARGEST {
        true => fs::read_to_string(file),
        false => Err(io::Error::other("not a file of a size that people write")),
    }
}
