//! Every environment variable that Alhena reads or sets, in one table, and a copy of an environment to read them from.
//!
//! Gemini CLI 0.61.0 takes much of its configuration from the environment (sign-in, trust, home, heap), so a decision
//! about a run is a decision about variables. The rest of the crate never asks the process for a variable by a literal
//! name: it uses a constant from here, on an [`Environment`] that a test can make up.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use alhena_sys::platform::{PLATFORM, Platform};

/// Who acts on a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBy {
    /// Alhena reads it.
    Alhena,
    /// Alhena sets it for its own child processes, and reads it there.
    AlhenaInside,
    /// Gemini CLI reads it, and Alhena sets it or draws conclusions from it.
    Gemini,
    /// Node reads it.
    Node,
    /// The operating system's conventions; Alhena reads it to find directories and programs.
    System,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name in the environment.
    pub name: &'static str,
    /// Who acts on it.
    pub reader: ReadBy,
    /// What it means, in one sentence.
    pub meaning: &'static str,
}

macro_rules! variables {
    ($($reader:ident { $($name:ident $meaning:literal)* })*) => {
        $($(
            #[doc = $meaning]
            pub const $name: &str = stringify!($name);
        )*)*

        /// The whole table: documentation, `alhena help environment` and the tests are made from it.
        pub const TABLE: &[Variable] = &[$($(
            Variable { name: $name, reader: ReadBy::$reader, meaning: $meaning },
        )*)*];
    };
}

variables! {
    Alhena {
        ALHENA_HOME "Puts Alhena's data, cache, state and `config.toml` into this one directory instead of the system's usual places."
        ALHENA_KEEPER "The keeper program to start runs under, instead of the one found beside the library or on PATH."
        ALHENA_CONFIG "A file with defaults instead of `~/.config/alhena/config.toml`; empty: no such file counts, no folder's either."
        ALHENA_PRICES "A file with the prices of models, instead of the one that comes with Alhena."
        ALHENA_HOOK_PROGRAM "Set by Alhena for Gemini CLI where a run has hooks: the program that carries its questions."
        ALHENA_HOOK_SOCKET "Set by Alhena for the same: where they are carried to."
        ALHENA_HOOK_FAILED "Set by Alhena for the same: the file that is there when a question before a model call was lost."
        ALHENA_MOCK "Exported by `alhena mock` for a shell: the server that it started there."
        ALHENA_ANSWER_URL "Set by Alhena for Gemini CLI where an answer has to fit a schema: where it is submitted."
        ALHENA_LOG "What to log on stderr, such as `debug` or `alhena_agent=trace`; nothing by default."
        ALHENA_EXPLAIN "Any value: the drop-in `gemini` says on stderr why it hands a command to the CLI as it is."
        CAO_HOME_DIR "Where CAO keeps its files, profiles among them, instead of `~/.aws/cli-agent-orchestrator`."
        NATS_URL "The NATS server of `alhena worker` and `alhena batch status`, or several with commas between them; one that is given to the command comes first. These are the variables of the `nats` command."
        NATS_CREDS "A file with credentials for that server."
        NATS_NKEY "A file with the seed of a key for it."
        NATS_USER "A user of it; a token, where there is no password."
        NATS_PASSWORD "The password of that user."
        NATS_TOKEN "A token for that server."
        NATS_CA "A file with certificates that are trusted for that server beside the system's."
        NATS_CERT "The certificate of one's own that is shown to that server."
        NATS_KEY "The key of that certificate."
        GEMINI_CLI_PATH "The Gemini CLI to use, if that file exists; an explicitly given path comes first."
    }
    AlhenaInside {
        ALHENA_RUN "The mark of a run: every process of it carries it, so that none can hide from being stopped."
        ALHENA_OUTER_GEMINI_HOME "What GEMINI_CLI_HOME said where a terminal was launched; agents launched from it need it."
        ALHENA_OUTER_TMPDIR "The same for TMPDIR."
        CAO_TERMINAL_ID "Tells processes and MCP servers in a terminal which one it is; the name is CAO's."
        ALHENA_TERMINAL "For the command that a terminal notifies by: the name of the agent that waits for somebody."
        ALHENA_TERMINAL_ID "For that command: the terminal's id."
        ALHENA_STATUS "For that command: what the agent does, such as `waiting`."
        ALHENA_QUESTION "For that command: what the agent asks."
        ALHENA_ASKING "Set while a program is asked for its version; an Alhena below it asks nobody in turn."
    }
    Gemini {
        GEMINI_CLI_HOME "The directory whose `.gemini` is used instead of the one in the user's home (since 0.25)."
        GEMINI_CLI_NO_RELAUNCH "Any value: the CLI does not start a second Node process with a larger heap."
        GEMINI_CLI_TRUST_WORKSPACE "`true` trusts the working directory and loads its settings, `false` distrusts it."
        GEMINI_CLI_TRUSTED_FOLDERS_PATH "The file to read trust decisions from instead of `.gemini/trustedFolders.json`."
        GEMINI_CLI_SYSTEM_SETTINGS_PATH "Settings that win over all others; 0.61.0 takes only files that root alone can write."
        GEMINI_CLI_SYSTEM_DEFAULTS_PATH "Settings that all others win over, with the same condition."
        GEMINI_FORCE_ENCRYPTED_FILE_STORAGE "`true` keeps sign-ins in the system's keychain or an encrypted file."
        GEMINI_RESTRICTED_MODE "`true` distrusts every directory, whatever else says."
        GEMINI_API_KEY "A key for the Gemini API; enough to sign in when no other method is selected."
        GEMINI_MODEL "The model to use when no flag names one."
        GEMINI_SYSTEM_MD "A file that replaces the CLI's system prompt."
        GEMINI_SANDBOX "Which sandbox engine to use; wins over the flag."
        GEMINI_DEBUG_LOG_FILE "The file that the CLI writes its debug log to; Alhena reads from it which MCP servers did not answer, and when all have started."
        GEMINI_TELEMETRY_ENABLED "Whether the CLI writes telemetry."
        GEMINI_TELEMETRY_TARGET "`local` or `gcp`."
        GEMINI_TELEMETRY_OUTFILE "The file that telemetry is written to."
        GEMINI_TELEMETRY_LOG_PROMPTS "Whether prompts are part of the telemetry."
        GEMINI_TELEMETRY_TRACES_ENABLED "Whether the telemetry traces each call of a model."
        OTEL_BSP_SCHEDULE_DELAY "How late traces are written, in milliseconds; set for conversations, if it is not."
        GEMINI_CLI_USE_COMPUTE_ADC "`true` signs in with the machine's own Google account."
        GOOGLE_GEMINI_BASE_URL "Another address for the Gemini API. Without a selected sign-in method it selects `gateway`, which headless runs refuse."
        GOOGLE_GENAI_USE_GCA "`true` signs in with a personal Google account."
        GOOGLE_GENAI_USE_VERTEXAI "`true` uses Vertex AI."
        GOOGLE_API_KEY "A key for Vertex AI in express mode."
        GOOGLE_CLOUD_PROJECT "The project for Vertex AI and for some Google accounts."
        GOOGLE_CLOUD_LOCATION "The location for Vertex AI."
        GOOGLE_CLOUD_ACCESS_TOKEN "A token to sign in with a Google account, together with `GOOGLE_GENAI_USE_GCA`."
        GOOGLE_APPLICATION_CREDENTIALS "A file with the credentials of a service account."
        CLOUD_SHELL "`true` inside Google Cloud Shell, where the machine's own account signs in."
        SANDBOX "Set inside the CLI's sandbox."
        COLORTERM "`truecolor` keeps a warning about colours out of the CLI's stderr."
        NO_COLOR "No colours in error messages; Alhena honours it too."
        NO_PROXY "Hosts that are reached without a proxy; Alhena adds its own on loopback where an answer has to fit a schema."
        CI "Makes the CLI headless even on a terminal."
    }
    Node {
        NODE_OPTIONS "Options for every Node process below. Alhena reads a heap size from it and never sets it, because tools would inherit it."
        NODE_EXTRA_CA_CERTS "A file with certificates that Node trusts beside its own; recording a cassette trusts them too."
        NODE_COMPILE_CACHE "Where Node 22.1 and later keeps compiled code, which makes the next start faster."
    }
    System {
        HOME "The user's home directory."
        USERPROFILE "The user's home directory on Windows."
        PATH "Where programs are looked for."
        SSL_CERT_FILE "A file with the certificates to trust, in place of the system's, for recording a cassette."
        XDG_CONFIG_HOME "Where configuration files are on Linux, `~/.config` by default."
        XDG_DATA_HOME "Where data files go on Linux, `~/.local/share` by default."
        XDG_CACHE_HOME "Where cache files go on Linux, `~/.cache` by default."
        XDG_STATE_HOME "Where state files go on Linux, `~/.local/state` by default."
        LOCALAPPDATA "Where application data goes on Windows."
        APPDATA "Where npm puts global commands on Windows."
        NVM_DIR "Where nvm keeps Node, `~/.nvm` by default."
        VOLTA_HOME "Where Volta keeps its tools, `~/.volta` by default."
        FNM_DIR "Where fnm keeps Node, `~/.local/share/fnm` by default."
        PNPM_HOME "Where pnpm puts global commands."
        BUN_INSTALL "Where Bun keeps global packages, `~/.bun` by default."
        ASDF_DATA_DIR "Where asdf keeps its tools, `~/.asdf` by default."
        MISE_DATA_DIR "Where mise keeps its tools, `~/.local/share/mise` by default."
        NPM_CONFIG_PREFIX "Where npm puts global packages."
    }
}

/// A copy of an environment: what a process would see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    /// The value of a variable, also when it is empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let exact = self.0.get(OsStr::new(name));
        // Windows writes `Path` and means `PATH`.
        let found = if PLATFORM == Platform::Windows {
            exact.or_else(|| {
                self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
            })
        } else {
            exact
        };
        found.map(OsString::as_os_str)
    }

    /// The value of a variable unless it is missing or empty, which Gemini CLI treats alike.
    #[must_use]
    pub fn filled(&self, name: &str) -> Option<&OsStr> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// Whether a variable has exactly the value `true`, the only word Gemini CLI accepts for its switches.
    #[must_use]
    pub fn is_true(&self, name: &str) -> bool {
        self.get(name) == Some(OsStr::new("true"))
    }

    /// Sets a variable in this copy.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> &mut Self {
        self.0.insert(name.into(), value.into());
        self
    }

    /// Removes a variable from this copy.
    pub fn remove(&mut self, name: &str) -> &mut Self {
        self.0.remove(OsStr::new(name));
        self
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The user's home directory: `HOME` (`USERPROFILE` on Windows).
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        let name = if PLATFORM == Platform::Windows { USERPROFILE } else { HOME };
        self.filled(name).map(PathBuf::from)
    }

    /// The directory whose `.gemini` Gemini CLI uses: `GEMINI_CLI_HOME`, or else the user's home.
    #[must_use]
    pub fn gemini_home(&self) -> Option<PathBuf> {
        self.filled(GEMINI_CLI_HOME).map(PathBuf::from).or_else(|| self.home())
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl<K: Into<OsString>, V: Into<OsString>, const N: usize> From<[(K, V); N]> for Environment {
    fn from(variables: [(K, V); N]) -> Self {
        variables.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_names_are_unique_and_every_meaning_is_a_sentence() {
        let mut names: Vec<_> = TABLE.iter().map(|variable| variable.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        for variable in TABLE {
            assert!(variable.meaning.ends_with('.'), "{}: {}", variable.name, variable.meaning);
        }
    }

    #[test]
    fn empty_variable_counts_as_missing_where_gemini_treats_it_so() {
        let env = Environment::from([(GEMINI_API_KEY, ""), (GOOGLE_GENAI_USE_GCA, "1")]);
        assert_eq!(env.get(GEMINI_API_KEY), Some(OsStr::new("")));
        assert_eq!(env.filled(GEMINI_API_KEY), None);
        assert!(!env.is_true(GOOGLE_GENAI_USE_GCA));
    }

    #[test]
    fn gemini_home_wins_over_home() {
        let mut env = Environment::from([(HOME, "/h"), (USERPROFILE, "/h")]);
        assert_eq!(env.gemini_home(), Some(PathBuf::from("/h")));
        env.set(GEMINI_CLI_HOME, "/g");
        assert_eq!(env.gemini_home(), Some(PathBuf::from("/g")));
    }
}
