//! A home of its own for each test on the real CLI, so that none sees another's settings, sessions or trust.
//!
//! 0.61.0 with `GOOGLE_GEMINI_BASE_URL` and no `selectedType` picks an authentication that it then rejects (exit 41), so the
//! home has settings that say `gemini-api-key`; and an untrusted folder exits 55, so the workspace is trusted unless the
//! test wants otherwise.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::snapshot::Snapshot;

/// Whether the CLI trusts the workspace of a [`PrivateHome`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The workspace is in `trustedFolders.json`.
    Trusted,
    /// Nothing is said about it: headless runs exit 55.
    Untrusted,
}

/// A temporary home with a workspace and a temporary directory beside it, all gone when dropped.
#[derive(Debug)]
pub struct PrivateHome {
    root: TempDir,
}

impl PrivateHome {
    pub fn new() -> io::Result<Self> {
        Self::with(Trust::Trusted)
    }

    pub fn with(trust: Trust) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("alhena-home-").tempdir()?;
        let home = Self { root };
        std::fs::create_dir_all(home.gemini())?;
        std::fs::create_dir_all(home.workspace())?;
        std::fs::create_dir_all(home.tmp())?;
        home.write_settings(&json!({"security": {"auth": {"selectedType": "gemini-api-key"}}}))?;
        if trust == Trust::Trusted {
            let workspace = home.workspace().to_string_lossy().into_owned();
            let folders = json!({workspace: "TRUST_FOLDER"});
            std::fs::write(home.gemini().join("trustedFolders.json"), pretty(&folders))?;
        }
        Ok(home)
    }

    pub fn path(&self) -> PathBuf {
        self.base().join("home")
    }

    pub fn gemini(&self) -> PathBuf {
        self.path().join(".gemini")
    }

    /// The directory to run in. Its path has no symbolic links, because the CLI compares real paths.
    pub fn workspace(&self) -> PathBuf {
        self.base().join("work")
    }

    /// What `TMPDIR` says: the CLI leaves error reports there.
    pub fn tmp(&self) -> PathBuf {
        self.base().join("tmp")
    }

    fn base(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap_or_else(|_| self.root.path().to_path_buf())
    }

    pub fn write_settings(&self, settings: &Value) -> io::Result<()> {
        std::fs::write(self.gemini().join("settings.json"), pretty(settings))
    }

    /// Writes a file of the workspace, with its directories.
    pub fn write(&self, path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<PathBuf> {
        let path = self.workspace().join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, contents)?;
        Ok(path)
    }

    /// A complete, clean environment for a CLI that talks to `base_url`: start with an empty one and add only this.
    pub fn env(&self, base_url: &str) -> Vec<(String, String)> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        [
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("HOME", text(self.path())),
            ("TMPDIR", text(self.tmp())),
            ("LANG", "C.UTF-8".to_owned()),
            ("TERM", "xterm-256color".to_owned()),
            ("COLORTERM", "truecolor".to_owned()),
            ("NO_COLOR", "1".to_owned()),
            ("GEMINI_API_KEY", "dummy".to_owned()),
            ("GOOGLE_GEMINI_BASE_URL", base_url.to_owned()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain(crate::profile_variable())
        .collect()
    }

    /// The whole home as it is now, to be compared with [`crate::diff`].
    pub fn snapshot(&self) -> io::Result<Snapshot> {
        Snapshot::of(&self.path())
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
