//! What a home is asked for with, and why there may be none.
//!
//! `GEMINI_CLI_HOME` exists since 0.25; 0.61.0 does not look at it inside a sandbox, and takes the `.gemini` of the working
//! directory for the folder's own settings unless that directory is its home.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use alhena_model::{FailureKind, Hint, Setting};
use alhena_session::{Scope, Store, Which};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::env::Environment;
use crate::settings::SettingsError;

use super::plan::Layout;
use super::settings;
use alhena_session::resume::Resume;

/// What a home is needed for.
#[derive(Clone, Debug, PartialEq)]
pub struct HomeRequest {
    /// The directory that holds the user's `.gemini`: `GEMINI_CLI_HOME`, or the home directory.
    pub user_home: PathBuf,
    /// Where the CLI will run; links in it are resolved.
    pub project_dir: PathBuf,
    /// Where overlays are made: a directory of Alhena's own.
    pub homes: PathBuf,
    /// Changes to the user's settings, in the form of `settings.json`.
    pub settings: Map<String, Value>,
    /// Instructions to append to the user's own.
    pub context: Option<String>,
    /// The session to continue.
    pub resume: Option<Resume>,
    /// The id that a new session is to have; one that exists is an error.
    pub session_id: Option<String>,
    /// Whether the CLI will run in a sandbox, which sees the user's home only.
    pub sandbox: bool,
    /// Whether the settings of the project's own folder are loaded, and win.
    pub folder_settings: bool,
    /// What the found release does.
    pub release: Release,
    /// The environment of the run.
    pub environment: Environment,
    /// What stands in the environment of all its processes, as `ALHENA_RUN`: by it they are found if it is killed.
    pub mark: Option<String>,
    /// Whether the sessions of the run go to the user's store.
    pub keep_sessions: bool,
}

/// What matters here about a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// It knows `GEMINI_CLI_HOME` (0.25).
    pub has_home_variable: bool,
    /// It names project directories by slug (0.29).
    pub has_slugs: bool,
}

impl Release {
    /// What 0.29 and all later ones do.
    pub const CURRENT: Release = Release { has_home_variable: true, has_slugs: true };

    pub(super) fn layout(self) -> Layout {
        if self.has_slugs { Layout::Slug } else { Layout::Hash }
    }
}

impl HomeRequest {
    /// A request for a current release, without any changes to the user's settings.
    pub fn new(
        user_home: impl Into<PathBuf>,
        project_dir: impl Into<PathBuf>,
        homes: impl Into<PathBuf>,
    ) -> Self {
        Self {
            user_home: user_home.into(),
            project_dir: project_dir.into(),
            homes: homes.into(),
            settings: Map::new(),
            context: None,
            resume: None,
            session_id: None,
            sandbox: false,
            folder_settings: false,
            release: Release::CURRENT,
            environment: Environment::default(),
            mark: None,
            keep_sessions: true,
        }
    }

    /// What a run without a home of its own does without.
    pub(super) fn cost_of(&self, why: DirectReason) -> Vec<String> {
        let why = match why {
            DirectReason::HomeDirectory => "the project is the home directory itself",
            DirectReason::Sandbox => "it runs in a sandbox",
            DirectReason::TooOld => "this release does not know GEMINI_CLI_HOME (0.25)",
            DirectReason::NotUnicode => "a path is not Unicode",
        };
        let mut cost = vec![format!(
            "The run uses the Gemini home itself, because {why}: other starts of the CLI can delete its session"
        )];
        let settings = settings::leaf_names(&self.settings);
        if !settings.is_empty() {
            cost.push(format!("These settings of the run have no effect: {}", settings.join(", ")));
        }
        if self.context.is_some() {
            cost.push("The system prompt cannot be appended".to_owned());
        }
        cost
    }
}

/// Why a run has no home of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectReason {
    /// The project is the home directory: its `.gemini` would count as the folder's own settings.
    HomeDirectory,
    /// A sandbox sees the user's home only.
    Sandbox,
    /// The release does not know `GEMINI_CLI_HOME`.
    TooOld,
    /// A path is not Unicode, which the CLI cannot handle in this place.
    NotUnicode,
}

/// The folder that a session belongs to, if there is just one session of that id or beginning of an id.
fn folder_of(user_home: &Path, id: &str) -> Option<PathBuf> {
    let found = Store::of_home(user_home).find(&Scope::All, &Which::Id(id.to_owned())).ok()?;
    found.file.project.root.clone()
}

/// Why no home could be prepared. Nothing has been started or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HomeError {
    /// The user's settings cannot be read, so the CLI would refuse them too.
    #[error("{0}")]
    Settings(#[source] SettingsError),
    /// There is no session with this id in the project.
    #[error("no session {id} in the project {}", project.display())]
    NoSession {
        /// The id that was asked for.
        id: String,
        /// The project.
        project: PathBuf,
    },
    /// Several sessions begin like this.
    #[error("{} sessions begin with {start}: {}", ids.len(), ids.join(", "))]
    SeveralSessions {
        /// What was asked for.
        start: String,
        /// All of their ids.
        ids: Vec<String>,
    },
    /// There is a session with this id already.
    #[error("the session {id} exists already")]
    SessionExists {
        /// The id that was asked for.
        id: String,
    },
    /// The file system said no.
    #[error("the home of the run could not be made in {}: {source}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

impl Hint for HomeError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            HomeError::NoSession { .. } => Some("`alhena sessions list` shows those of this folder.".into()),
            HomeError::SeveralSessions { .. } => Some("Give more of the id.".into()),
            HomeError::SessionExists { id } => {
                Some(format!("Give another id, or go on with that session: {}={id}", Setting::Resume).into())
            }
            HomeError::Settings(error) => error.hint(),
            HomeError::Io { .. } => None,
        }
    }
}

impl HomeError {
    /// What to do about it, and where the session is if another folder has it.
    pub(crate) fn hint_in(&self, user_home: &Path) -> Option<Cow<'_, str>> {
        if let HomeError::NoSession { id, .. } = self
            && let Some(folder) = folder_of(user_home, id)
        {
            let folder = folder.display();
            return Some(
                format!("That is a session of another folder: run it there, with -C {folder}").into(),
            );
        }
        self.hint()
    }

    /// The kind of failure that a run with this error is.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            HomeError::Settings(_) => FailureKind::Config,
            HomeError::NoSession { .. }
            | HomeError::SeveralSessions { .. }
            | HomeError::SessionExists { .. } => FailureKind::Input,
            HomeError::Io { source, .. } if alhena_sys::files::is_full(source) => FailureKind::DiskFull,
            HomeError::Io { .. } => FailureKind::Config,
        }
    }
}
