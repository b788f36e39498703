//! What can be known about Gemini CLI's surroundings without calling anybody: sign-in, trust, locks.
//!
//! Headless, the CLI finds out late and says little: a missing sign-in ends it with exit 41, an untrusted folder with exit
//! 55 and empty stdout (0.41 and later), each after its whole start-up. These are the CLI's own decisions, made from the
//! same files and variables in the same order.

mod auth;
mod dotenv;
mod lock;
mod trust;

use std::path::{Path, PathBuf};

use alhena_sys::files::exposed;
use alhena_sys::platform::{PLATFORM, Platform};
use serde_json::Value;

pub use auth::{AuthMethod, AuthState, Chosen, Refusal, authentication};
pub(crate) use dotenv::untrusted_names;
pub use lock::{Lock, LockState, locks};
pub(crate) use trust::resolve;
pub use trust::{NotUsed, TrustLevel, TrustReason, TrustState, may_use, trust};

use crate::env::{self, Environment};
use crate::settings::{SettingsError, read_settings};
pub(crate) use dotenv::everything as env_files;

/// The settings files that count, strongest first: system, workspace if it is trusted, user, system defaults.
struct Layers(Vec<Value>);

impl Layers {
    fn read(home: &Path, env: &Environment) -> Result<Self, SettingsError> {
        let system = system_settings(env);
        let defaults = env.filled(env::GEMINI_CLI_SYSTEM_DEFAULTS_PATH).map(PathBuf::from);
        let defaults = defaults.unwrap_or_else(|| system.with_file_name("system-defaults.json"));
        // The CLI takes a system file for one only if nobody but root can change it (0.61.0; releases up to 0.56 took any).
        let secure =
            |path: &Path| if exposed::is_roots(path) { read_settings(path) } else { Ok(Value::Null) };
        Ok(Self(vec![
            secure(&system)?,
            read_settings(&home.join(".gemini/settings.json"))?,
            secure(&defaults)?,
        ]))
    }

    /// Adds the workspace's own settings. They are read and have to be good even when they do not count; in the home
    /// directory itself there are none.
    fn add_workspace(&mut self, home: &Path, dir: &Path, trusted: bool) -> Result<(), SettingsError> {
        let is_home = home.canonicalize().is_ok_and(|home| dir.canonicalize().is_ok_and(|dir| dir == home));
        if !is_home {
            let workspace = read_settings(&dir.join(".gemini/settings.json"))?;
            self.0.insert(1, if trusted { workspace } else { Value::Null });
        }
        Ok(())
    }

    fn get(&self, pointer: &str) -> Option<&Value> {
        self.0.iter().find_map(|layer| layer.pointer(pointer))
    }

    fn text(&self, pointer: &str) -> Option<&str> {
        self.get(pointer)?.as_str().filter(|text| !text.is_empty())
    }
}

pub(crate) fn system_settings(env: &Environment) -> PathBuf {
    let usual = match PLATFORM {
        Platform::Linux => "/etc/gemini-cli/settings.json",
        Platform::MacOs => "/Library/Application Support/GeminiCli/settings.json",
        Platform::Windows => "C:\\ProgramData\\gemini-cli\\settings.json",
    };
    env.filled(env::GEMINI_CLI_SYSTEM_SETTINGS_PATH).map_or_else(|| usual.into(), PathBuf::from)
}
