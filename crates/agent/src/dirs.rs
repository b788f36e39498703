//! Where Alhena keeps its own files: installs, caches, and the state of runs.
//!
//! Gemini CLI keeps everything in `~/.gemini` (0.61.0), deletes what it takes for rubbish there at every start, and
//! counts what it finds as sessions. So nothing of Alhena's lives there.

use std::path::PathBuf;

use alhena_session::ledger::Ledger;
use alhena_sys::platform::{PLATFORM, Platform};

use crate::env::{self, Environment};

/// Alhena's own directories. None of them needs to exist until somebody makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirs {
    /// What is kept until the user removes it: installs of Gemini CLI.
    pub data: PathBuf,
    /// What can be deleted at any time at no more cost than time.
    pub cache: PathBuf,
    /// What the user writes: `config.toml`.
    pub config: PathBuf,
    /// What belongs to runs: homes, recordings in progress, leftovers to clean up.
    pub state: PathBuf,
}

impl Dirs {
    /// The directories for an environment; none when there is neither `ALHENA_HOME` nor a home directory.
    ///
    /// A relative path in an XDG variable is ignored, as its specification demands; a relative `ALHENA_HOME` is taken
    /// relative to the working directory.
    #[must_use]
    pub fn of(env: &Environment) -> Option<Self> {
        if let Some(home) = env.filled(env::ALHENA_HOME) {
            let home = std::path::absolute(home).unwrap_or_else(|_| PathBuf::from(home));
            return Some(Self {
                data: home.join("data"),
                cache: home.join("cache"),
                state: home.join("state"),
                config: home,
            });
        }
        if PLATFORM == Platform::Windows {
            let local = env.filled(env::LOCALAPPDATA).map(PathBuf::from);
            let base = local.or_else(|| env.home().map(|home| home.join("AppData/Local")))?.join("alhena");
            return Some(Self {
                data: base.join("data"),
                cache: base.join("cache"),
                state: base.join("state"),
                config: base,
            });
        }
        let home = env.home()?;
        if PLATFORM == Platform::MacOs {
            let support = home.join("Library/Application Support/alhena");
            return Some(Self {
                data: support.clone(),
                cache: home.join("Library/Caches/alhena"),
                state: support.join("state"),
                config: support,
            });
        }
        let xdg = |name: &str, default: &str| {
            let chosen = env.filled(name).map(PathBuf::from).filter(|path| path.is_absolute());
            chosen.unwrap_or_else(|| home.join(default)).join("alhena")
        };
        Some(Self {
            data: xdg(env::XDG_DATA_HOME, ".local/share"),
            cache: xdg(env::XDG_CACHE_HOME, ".cache"),
            state: xdg(env::XDG_STATE_HOME, ".local/state"),
            config: xdg(env::XDG_CONFIG_HOME, ".config"),
        })
    }

    /// Where Alhena's own installs of Gemini CLI are, one directory per version.
    #[must_use]
    pub fn installs(&self) -> PathBuf {
        self.data.join("gemini-cli")
    }

    /// The token counts of runs whose sessions are not kept.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger::at(self.state.join("usage"))
    }

    /// The home that stands for the user's in runs against the scripted model, whose sessions are not the user's.
    #[must_use]
    pub fn offline_home(&self) -> PathBuf {
        self.state.join("offline")
    }

    /// Where the directories of runs are that are under way.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.state.join("runs")
    }

    /// Where answers are kept that cost a process to get, such as the version of a program.
    #[must_use]
    pub fn answers(&self) -> PathBuf {
        self.cache.join("answers")
    }

    /// Where Node keeps compiled code between runs.
    #[must_use]
    pub fn compile_cache(&self) -> PathBuf {
        self.cache.join("node-compile-cache")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn linux_follows_xdg_and_ignores_relative_values() {
        let env = Environment::from([
            (env::HOME, "/home/u"),
            (env::XDG_DATA_HOME, "/data"),
            (env::XDG_CACHE_HOME, "relative/cache"),
            (env::XDG_STATE_HOME, ""),
        ]);
        let expected = Dirs {
            data: "/data/alhena".into(),
            cache: "/home/u/.cache/alhena".into(),
            state: "/home/u/.local/state/alhena".into(),
            config: "/home/u/.config/alhena".into(),
        };
        assert_eq!(Dirs::of(&env), Some(expected));
    }

    #[test]
    fn alhena_home_holds_everything() {
        let root = tempfile::tempdir().unwrap();
        let env = Environment::from([(env::ALHENA_HOME, root.path())]);
        let dirs = Dirs::of(&env).unwrap();
        assert_eq!(
            [&dirs.data, &dirs.cache, &dirs.state].map(|path| path.strip_prefix(root.path()).unwrap()),
            ["data", "cache", "state"].map(std::path::Path::new)
        );
        assert_eq!(dirs.config, root.path());
    }

    #[test]
    fn without_any_home_there_are_no_directories() {
        assert_eq!(Dirs::of(&Environment::default()), None);
    }
}
