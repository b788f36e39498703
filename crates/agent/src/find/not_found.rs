//! What is said when no Gemini CLI can be started: every place that was looked at, and what to do.
//!
//! "command not found" does not tell a broken link of a removed Node version from no install at all, and Gemini CLI, which
//! lives beside the Node it was installed with, leaves such links behind.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use alhena_model::{FailureKind, Hint};
use alhena_wire::release::Version;
use serde::Serialize;

use super::entry::PACKAGE;
use super::node::NodeVersion;
use super::places::Place;
use crate::env;
use crate::facts::NotUsed;

/// A path that was looked at and not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// The path.
    pub path: PathBuf,
    /// How it was come upon.
    pub place: Place,
    /// Why it was not taken.
    pub why: Why,
}

/// Why a path is not a Gemini CLI that can be started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// There is nothing.
    Missing,
    /// A link that leads nowhere.
    Dangling,
    /// A directory.
    Directory,
    /// A file without permission to run it.
    NotExecutable,
    /// It is Alhena's own drop-in.
    Alhena,
    /// A relative path in a variable: what it means depends on the folder.
    Relative,
    /// It is what a folder brings along, and may not be used.
    NotUsed(NotUsed),
    /// It needs Node, and there is none.
    NoNode,
    /// It needs a newer Node than there is.
    NodeTooOld {
        /// The Node that it would run on.
        node: PathBuf,
        /// The version of that.
        found: NodeVersion,
        /// The oldest that it runs on.
        needed: NodeVersion,
    },
    /// There is no room on any disk for its answer.
    NoRoom,
    /// It did not tell its version.
    NoVersion {
        /// What it did instead.
        detail: String,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("does not exist"),
            Self::Dangling => f.write_str("is a link that leads nowhere"),
            Self::Directory => f.write_str("is a directory"),
            Self::NotExecutable => f.write_str("is not executable"),
            Self::Alhena => f.write_str("is Alhena's own stand-in for gemini"),
            Self::Relative => f.write_str("is not an absolute path"),
            Self::NotUsed(why) => why.fmt(f),
            Self::NoNode => f.write_str("needs Node, which is not on PATH"),
            Self::NodeTooOld { node, found, needed } => {
                write!(f, "needs Node {needed} or newer, and {} is {found}", node.display())
            }
            Self::NoRoom => f.write_str("cannot be asked for its version: the disk is full"),
            Self::NoVersion { detail } => write!(f, "does not tell its version: {detail}"),
        }
    }
}

/// There is no Gemini CLI that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// Every path that was looked at, in order.
    pub tried: Vec<Tried>,
}

impl Tried {
    /// Whether there is something that was not used, or somebody said that there is.
    #[must_use]
    pub fn is_worth_telling(&self) -> bool {
        self.why != Why::Missing || matches!(self.place, Place::Explicit | Place::Environment)
    }
}

impl fmt::Display for Tried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.why)
    }
}

impl NotFound {
    /// What a run that has no CLI fails by.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self.tried.iter().any(|tried| tried.why == Why::NoRoom) {
            true => FailureKind::DiskFull,
            false => FailureKind::NotInstalled,
        }
    }

    /// The same as it displays, with every directory that had nothing.
    #[must_use]
    pub fn in_full(&self) -> String {
        let mut text = format!("{NONE}{}", self.unusable());
        for tried in self.tried.iter().filter(|tried| !tried.is_worth_telling()) {
            text.push_str(&format!("\n  {tried}"));
        }
        text
    }

    fn unusable(&self) -> String {
        self.tried
            .iter()
            .filter(|tried| tried.is_worth_telling())
            .map(|tried| format!("\n  {tried}"))
            .collect()
    }
}

const NONE: &str = "Gemini CLI was not found";

impl fmt::Display for NotFound {
    /// What is there and cannot be used, each with its reason, and in how many places nothing was.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NONE}{}", self.unusable())?;
        match self.tried.iter().filter(|tried| !tried.is_worth_telling()).count() {
            0 => Ok(()),
            count => write!(f, "\n  nothing on PATH and in other usual places ({count} in all)"),
        }
    }
}

impl std::error::Error for NotFound {}

impl Hint for NotFound {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let needed = self.tried.iter().find_map(|tried| match tried.why {
            Why::NodeTooOld { needed, .. } => Some(needed),
            Why::NoNode => Some(NodeVersion::OLDEST),
            _ => None,
        });
        if let Some(needed) = needed {
            return Some(format!("Install Node {} or newer, and put it first on PATH.", needed.major).into());
        }
        if self.kind() == FailureKind::DiskFull {
            return Some(FailureKind::DiskFull.hint().into());
        }
        if let Some(tried) = self.tried.iter().find(|tried| tried.place == Place::Explicit) {
            let version = tried.path.ancestors().nth(3).and_then(|dir| dir.file_name()?.to_str());
            return Some(
                match version
                    .filter(|_| tried.why == Why::Missing)
                    .and_then(|name| name.parse::<Version>().ok())
                {
                    Some(version) => format!("Fetch it with `alhena install {version}`.").into(),
                    None => {
                        "Give `gemini` the path of a Gemini CLI that can be started, or leave it out to have one looked for."
                            .into()
                    }
                },
            );
        }
        if self.tried.iter().any(|tried| tried.why == Why::NotUsed(NotUsed::Untrusted)) {
            let path = env::GEMINI_CLI_PATH;
            let ways =
                "Install one of your own with `alhena install`, or use the folder's with `trust`=settings or";
            return Some(format!("{ways} {path}.").into());
        }
        let path = env::GEMINI_CLI_PATH;
        let ways = format!(
            "Install it with `alhena install` or `npm install -g {PACKAGE}`, or say where it is with"
        );
        Some(format!("{ways} {path}.").into())
    }
}
