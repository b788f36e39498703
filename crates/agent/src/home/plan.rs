//! What has to be done when a run ends, as data: the keeper gets it as JSON, and a crashed run leaves it on disk.

use std::path::PathBuf;

use alhena_session::fingerprint::Fingerprint;
use alhena_session::publish::{CopiedFile, CopiedSession, KeptBoth, Published};
use serde::{Deserialize, Serialize};

/// Everything that [`finish`](super::finish) needs to know. Opaque; write it as JSON and read it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishPlan {
    /// Tells this run from others that used the same place.
    pub(super) run: String,
    /// Stands in the environment of its processes.
    #[serde(default)]
    pub(super) mark: Option<String>,
    /// The place: `<homes>/<key>/<slot>`; the plan and the lock are beside it.
    pub(super) slot: PathBuf,
    /// The user's home, which holds `.gemini`.
    pub(super) user_home: PathBuf,
    /// The project's path, as the CLI sees it.
    pub(super) project: String,
    /// The project's directory name in the overlay.
    pub(super) slug: String,
    pub(super) layout: Layout,
    /// Whether sessions go into the user's store.
    pub(super) publish: bool,
    /// Whether they are worth it: those of a pool hold one independent prompt after the other.
    #[serde(default = "yes")]
    pub(super) keep_sessions: bool,
    pub(super) resumed: Option<CopiedSession>,
    /// Other files that were copied in, by their path in the project's directory.
    pub(super) copied: Vec<CopiedFile>,
    /// Files that were in the user's `.gemini` when the run began, of those that may have to be merged back.
    pub(super) linked: Vec<CopiedFile>,
    /// The folders that were trusted when the run began.
    pub(super) trusted: serde_json::Map<String, serde_json::Value>,
    pub(super) context: ContextFile,
}

fn yes() -> bool {
    true
}

/// How a release names the directories of projects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// SHA-256 of the path, up to 0.28.
    Hash,
    /// A slug given out by `projects.json`, since 0.29.
    Slug,
}

/// The context file of the overlay: the user's text and ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ContextFile {
    /// Its name in `.gemini`.
    pub(super) name: PathBuf,
    /// The user's own file when the run began.
    pub(super) original: Option<Fingerprint>,
    /// None when the overlay's is a link to the user's, or missing.
    pub(super) ours: Option<OurContext>,
}

/// What we added to the context file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OurContext {
    /// Our part, to be taken out again.
    pub(super) text: String,
    /// The whole as we wrote it.
    pub(super) written: Fingerprint,
}

/// What [`finish`](super::finish) did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    /// Session files that are now in the user's store. Empty when the run left no conversation.
    pub published: Vec<PathBuf>,
    /// The ids of the sessions of the run that are in the user's store, whether they are new there or as they were.
    pub sessions: Vec<String>,
    /// Sessions whose original was changed by somebody else during the run.
    pub kept_both: Vec<KeptBoth>,
    /// Files of the user's Gemini home that got something new: a login, a trusted folder.
    pub merged: Vec<PathBuf>,
    /// What people should know.
    pub warnings: Vec<String>,
    /// Whether something could not be saved. The overlay is then still there, and the next run tries again.
    pub incomplete: bool,
}

impl Finished {
    /// Adds what became of the sessions of one project.
    pub(super) fn add(&mut self, project: Published) {
        self.published.extend(project.published);
        self.sessions.extend(project.sessions);
        self.kept_both.extend(project.kept_both);
        self.warnings.extend(project.warnings);
    }
}

/// What the overlay's context file says before our part, so that it can be found again.
pub(super) const CONTEXT_RULE: &str = "\n\n---\n\n";
