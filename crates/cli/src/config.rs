//! Defaults of `alhena run` in files: the user's own, and the one of a folder that Gemini CLI trusts.
//!
//! A folder's file comes with a repository. So it counts only where the folder's own settings would, and it cannot choose
//! what is executed, trust itself, or let the model do everything.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alhena::agent::dirs::Dirs;
use alhena::agent::env::{self, Environment};
use alhena::agent::facts::{self, NotUsed};
use alhena::model::options::nearest;
use alhena::model::{RunOptions, Setting};
use alhena::{Approval, RunError, Trust};
use clap::ValueEnum;
use toml::Spanned;

use crate::views::Name;

/// The folder's file, in the working directory.
const PROJECT_FILE: &str = ".alhena/config.toml";
/// Nobody writes a larger one.
const LARGEST: u64 = 1 << 20;

/// What can stand in a file: the name of an option of `run`, and what it means.
pub const KEYS: &[(&str, &str)] = &[
    ("model", "The model."),
    ("approval", "What the model may do without asking; yolo only in your own file."),
    ("trust", "true or \"settings\": run in folders that are not trusted. Only in your own file."),
    ("timeout", "How long a run may take, such as \"1h30m\", or \"none\"."),
    ("first-event-timeout", "How long until the first event, or \"none\"."),
    ("stall-timeout", "How long it may be silent while no tool runs, or \"none\"."),
    ("max-turns", "How many turns the model may take."),
    ("view", "What to print when --as is not given."),
];

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
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
    pub key: &'static str,
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
    /// Fills in what the options do not say. For other agents only what is not about Gemini CLI alone.
    pub fn fill(&self, options: &mut RunOptions) {
        let gemini_only = [Setting::Model, Setting::Trust, Setting::MaxTurns];
        let is_meant = |setting: &Setting| options.agent_command.is_none() || !gemini_only.contains(setting);
        let meant: Vec<Setting> = Setting::ALL.iter().copied().filter(is_meant).collect();
        options.fill(&self.options, &meant);
    }

    /// The defaults for a run in this directory; `trust` is what the caller said of it.
    pub fn load(dir: &Path, trust: Option<Trust>, environment: &Environment) -> Result<Self, RunError> {
        let mut config = Self::default();
        let Some(file) = user_file(environment) else { return Ok(config) };
        // A file that was asked for has to be there.
        let asked_for = environment.filled(env::ALHENA_CONFIG).is_some();
        match read(&file) {
            Ok(text) => config.take(&text, &file, Owner::User)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !asked_for => {}
            Err(error) => return Err(wrong(format!("{}: {error}", file.display()), HINT)),
        }
        let file = dir.join(PROJECT_FILE);
        if fs::symlink_metadata(&file).is_err() {
            return Ok(config);
        }
        let given = trust.or(config.options.trust).unwrap_or_default();
        if let Err(why) = facts::may_use(environment, dir, &file, given) {
            config.passed_over = Some((file, why));
            return Ok(config);
        }
        let text = read(&file).map_err(|error| wrong(format!("{}: {error}", file.display()), HINT))?;
        config.take(&text, &file, Owner::Project)?;
        Ok(config)
    }

    /// The same as a command was told to: none with `--no-config`. What is wrong with a directory is said when it is needed.
    pub fn of_run(
        dir: &Path,
        trust: Option<Trust>,
        none: bool,
        environment: &Environment,
    ) -> Result<Self, RunError> {
        match dir.canonicalize() {
            Ok(dir) if !none => Self::load(&dir, trust, environment),
            _ => Ok(Self::default()),
        }
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
        for (written, value) in lines {
            let place = place(written.span().start);
            let (key, value) = (written.into_inner().replace('_', "-"), value.into_inner());
            let known = KEYS.iter().map(|(name, _)| *name).find(|name| *name == key);
            let Some(known) = known else {
                return Err(wrong(format!("{place}: unknown key {key:?}"), &suggestion(&key)));
            };
            let value = plain(&value)
                .and_then(|value| self.set(known, &value, owner).map(|()| value))
                .map_err(|why| wrong(format!("{place}: {known}: {why}"), HINT))?;
            self.set.retain(|set| set.key != known);
            self.set.push(Set { key: known, value, file: file.to_owned() });
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str, owner: Owner) -> Result<(), String> {
        let Some(setting) = Setting::named(&key.replace('-', "_")) else {
            let view = Name::from_str(value, false);
            self.view = Some(view.map_err(|_| format!("there is no view {value:?}"))?);
            return Ok(());
        };
        let field = (setting.name().to_owned(), setting.value_of_text(value));
        let read = RunOptions::from_fields(&[field].into_iter().collect(), &[]);
        let read = read.map_err(|mut errors| errors.pop().map(|error| error.problem).unwrap_or_default())?;
        match setting {
            Setting::Model if value.trim().is_empty() => return Err("no model has an empty name".to_owned()),
            Setting::Approval if (read.approval, owner) == (Some(Approval::Yolo), Owner::Project) => {
                return Err("a folder cannot let the model do everything".to_owned());
            }
            Setting::Trust if owner == Owner::Project => {
                return Err("a folder cannot trust itself".to_owned());
            }
            _ => self.options.replace(&read, setting),
        }
        Ok(())
    }
}

const HINT: &str = "Mend the file, or run with `no_config`; `alhena help config` explains it.";

fn wrong(message: String, hint: &str) -> RunError {
    RunError::Usage { message, hint: hint.to_owned() }
}

/// The key that was probably meant, or all of them.
fn suggestion(key: &str) -> String {
    let meant = if key == "as" { Some("view") } else { nearest(key, KEYS.iter().map(|(name, _)| *name)) };
    match meant {
        Some(name) => format!("Did you mean {name}? `alhena help config` lists the keys."),
        None => {
            let names: Vec<&str> = KEYS.iter().map(|(name, _)| *name).collect();
            format!("The keys are {}.", names.join(", "))
        }
    }
}

/// A value as it would be typed on the command line.
fn plain(value: &toml::Value) -> Result<String, String> {
    match value {
        toml::Value::String(text) => Ok(text.clone()),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Float(number) => Ok(number.to_string()),
        toml::Value::Boolean(yes) => Ok(yes.to_string()),
        _ => Err("one word or number is needed".to_owned()),
    }
}

fn read(file: &Path) -> io::Result<String> {
    let data = fs::metadata(file)?;
    match data.is_file() && data.len() <= LARGEST {
        true => fs::read_to_string(file),
        false => Err(io::Error::other("not a file of a size that people write")),
    }
}
