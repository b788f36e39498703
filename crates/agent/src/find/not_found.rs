//! What is said when no Gemini CLI can be started: every place that was looked at, and what to do.
//!
//! "command not found" does not tell a broken link of a removed Node version from no install at all, and Gemini CLI, which
//! lives beside the Node it was installed with, leaves such links behind.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::entry::PACKAGE;
use super::node::NodeVersion;
use super::places::Place;
use crate::env;

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
    /// It needs Node, and there is none.
    NoNode,
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
            Self::NoNode => f.write_str("needs Node, which is not on PATH"),
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

impl NotFound {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        if self.tried.iter().any(|tried| tried.place == Place::Explicit && tried.why != Why::NoNode) {
            return "Give the path of a Gemini CLI that can be started, or none to have one looked for."
                .to_owned();
        }
        if self.tried.iter().any(|tried| tried.why == Why::NoNode) {
            return format!("Install Node {} or newer, or put it on PATH.", NodeVersion::OLDEST.major);
        }
        format!(
            "Install it with `alhena install` or `npm install -g {PACKAGE}`, or say where it is with {}.",
            env::GEMINI_CLI_PATH
        )
    }
}

impl fmt::Display for NotFound {
    /// What is there and cannot be used, each with its reason, and then where else nothing was.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gemini CLI was not found")?;
        let asked_for = |tried: &Tried| matches!(tried.place, Place::Explicit | Place::Environment);
        let (named, absent): (Vec<_>, Vec<_>) =
            self.tried.iter().partition(|tried| tried.why != Why::Missing || asked_for(tried));
        for tried in named {
            write!(f, "\n  {} {}", tried.path.display(), tried.why)?;
        }
        if !absent.is_empty() {
            f.write_str("\n  nothing in")?;
            for (index, directory) in absent.iter().filter_map(|tried| tried.path.parent()).enumerate() {
                write!(f, "{} {}", if index == 0 { "" } else { "," }, directory.display())?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for NotFound {}
