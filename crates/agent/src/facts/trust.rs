//! Whether Gemini CLI trusts a folder.
//!
//! 0.61.0 asks the environment, then the setting, then `trustedFolders.json`, where of all rules that cover the folder the
//! one with the longest path decides. No rule at all counts as untrusted in headless mode (exit 55).

use std::collections::HashMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use alhena_sys::files::exposed::{self, Exposed};
use alhena_sys::platform::{PLATFORM, Platform};
use serde::Serialize;
use serde_json::Value;

use super::Layers;
use crate::env::{self, Environment};
use crate::request::Trust;
use crate::settings;

/// What is written about a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TrustLevel {
    /// The folder and what is below it.
    TrustFolder,
    /// The folder above it and what is below that.
    TrustParent,
    /// Neither the folder nor what is below it.
    DoNotTrust,
}

impl TrustLevel {
    fn read(value: &Value) -> Option<Self> {
        match value.as_str()? {
            "TRUST_FOLDER" => Some(Self::TrustFolder),
            "TRUST_PARENT" => Some(Self::TrustParent),
            "DO_NOT_TRUST" => Some(Self::DoNotTrust),
            _ => None,
        }
    }
}

/// Whether a folder is trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// It is.
    Trusted(TrustReason),
    /// It was decided that it is not.
    Untrusted(TrustReason),
    /// Nobody has decided: a headless run refuses, an interactive one asks.
    Undecided,
    /// The CLI cannot tell, and ends with exit 52.
    Broken {
        /// What it would complain about.
        problem: String,
    },
}

/// What decided about trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TrustReason {
    /// A variable in the environment.
    Variable(&'static str),
    /// `security.folderTrust.enabled` is false: every folder is trusted.
    Disabled,
    /// A rule in `trustedFolders.json`.
    Rule {
        /// The path as it is written there.
        path: String,
        /// What is written about it.
        level: TrustLevel,
    },
}

/// Whether the CLI with this home (the directory that has `.gemini`) and environment trusts `dir`.
///
/// What an editor that the CLI is connected to says about its workspace is not known here.
#[must_use]
pub fn trust(home: &Path, dir: &Path, env: &Environment) -> TrustState {
    if env.is_true(env::GEMINI_RESTRICTED_MODE) {
        return TrustState::Untrusted(TrustReason::Variable(env::GEMINI_RESTRICTED_MODE));
    }
    let by_variable = TrustReason::Variable(env::GEMINI_CLI_TRUST_WORKSPACE);
    match env.get(env::GEMINI_CLI_TRUST_WORKSPACE).and_then(|value| value.to_str()) {
        Some("true") => return TrustState::Trusted(by_variable),
        Some("false") => return TrustState::Untrusted(by_variable),
        _ => {}
    }
    let layers = match Layers::read(home, env) {
        Ok(layers) => layers,
        Err(error) => return TrustState::Broken { problem: error.to_string() },
    };
    if layers.get("/security/folderTrust/enabled") == Some(&Value::Bool(false)) {
        return TrustState::Trusted(TrustReason::Disabled);
    }
    let chosen = env.filled(env::GEMINI_CLI_TRUSTED_FOLDERS_PATH).map(PathBuf::from);
    by_rules(&chosen.unwrap_or_else(|| home.join(".gemini/trustedFolders.json")), dir)
}

/// Why something that a folder brings along is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NotUsed {
    /// The folder is not trusted.
    Untrusted,
    /// Somebody else could have put it there.
    Exposed(Exposed),
}

impl fmt::Display for NotUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untrusted => f.write_str("is in a folder that is not trusted"),
            Self::Exposed(exposed) => write!(f, "could be somebody else's: {exposed}"),
        }
    }
}

/// Whether a file that a folder brings along may decide what runs, such as its own CLI or a profile: the folder is trusted
/// by Gemini's own rules, or the caller says so with [`Trust::WithSettings`]; and nobody but the user and root could have
/// put the file there.
pub fn may_use(env: &Environment, folder: &Path, file: &Path, given: Trust) -> Result<(), NotUsed> {
    let by_rule = || {
        let home = env.gemini_home();
        home.is_some_and(|home| matches!(trust(&home, folder, env), TrustState::Trusted(_)))
    };
    if given != Trust::WithSettings && !by_rule() {
        return Err(NotUsed::Untrusted);
    }
    exposed::check(file).map_err(NotUsed::Exposed)
}

fn by_rules(file: &Path, dir: &Path) -> TrustState {
    let rules = match rules(file, dir) {
        Ok(rules) => rules,
        Err(problem) => return TrustState::Broken { problem },
    };
    let location = real(&resolve(Path::new(""), dir));
    let mut best: Option<(usize, TrustReason)> = None;
    for (written, path, level) in rules {
        let covered = match level {
            TrustLevel::TrustParent => written.parent().unwrap_or(&written),
            TrustLevel::TrustFolder | TrustLevel::DoNotTrust => &written,
        };
        // The CLI compares lengths of the rules' paths, in UTF-16; of equals the first counts.
        let length = written.to_string_lossy().encode_utf16().count();
        let longer = best.as_ref().is_none_or(|(longest, _)| length > *longest);
        if longer && is_below(&real(covered), &location) {
            best = Some((length, TrustReason::Rule { path, level }));
        }
    }
    match best {
        Some((_, reason @ TrustReason::Rule { level: TrustLevel::DoNotTrust, .. })) => {
            TrustState::Untrusted(reason)
        }
        Some((_, reason)) => TrustState::Trusted(reason),
        None => TrustState::Undecided,
    }
}

/// The rules in the file: path, path as written, level. Of two ways to write one path the later one counts.
fn rules(file: &Path, dir: &Path) -> Result<Vec<(PathBuf, String, TrustLevel)>, String> {
    let value = settings::read_settings(file).map_err(|error| error.to_string())?;
    let mut rules: Vec<(PathBuf, String, TrustLevel)> = Vec::new();
    let mut places: HashMap<PathBuf, usize> = HashMap::new();
    for (written, level) in value.as_object().into_iter().flatten() {
        let path = resolve(dir, Path::new(written));
        let Some(level) = TrustLevel::read(level) else {
            return Err(format!("{}: {level} is no trust level for {written:?}", file.display()));
        };
        let place = *places.entry(path.clone()).or_insert(rules.len());
        let rule = (path, written.clone(), level);
        match rules.get_mut(place) {
            Some(known) => *known = rule,
            None => rules.push(rule),
        }
    }
    Ok(rules)
}

/// The path with its links followed, or as it is when it does not exist.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// Node's `path.resolve`: absolute, `.` and `..` taken literally.
pub(crate) fn resolve(base: &Path, path: &Path) -> PathBuf {
    let joined = base.join(path);
    let absolute = std::path::absolute(&joined).unwrap_or(joined);
    let mut resolved = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(resolved.pop()),
            other => resolved.push(other),
        }
    }
    resolved
}

/// Whether a path is another one or below it; macOS and Windows do not tell cases apart.
fn is_below(above: &Path, path: &Path) -> bool {
    if PLATFORM != Platform::Linux {
        let lower = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
        return lower(path).starts_with(lower(above));
    }
    path.starts_with(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(root.path().join(".gemini")).unwrap();
            std::fs::create_dir_all(root.path().join("work/app/deep")).unwrap();
            Self(root)
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        fn rules(&self, rules: &[(&str, &str)]) {
            let rules: serde_json::Map<_, _> = rules
                .iter()
                .map(|(path, level)| (self.at(path).to_str().unwrap().to_owned(), (*level).into()))
                .collect();
            std::fs::write(self.at(".gemini/trustedFolders.json"), serde_json::to_vec(&rules).unwrap())
                .unwrap();
        }

        fn trust(&self, dir: &str) -> TrustState {
            trust(self.0.path(), &self.at(dir), &Environment::default())
        }

        fn rule(&self, path: &str, level: TrustLevel) -> TrustReason {
            TrustReason::Rule { path: self.at(path).to_str().unwrap().to_owned(), level }
        }
    }

    #[test]
    fn environment_decides_first_and_only_by_exact_words() {
        let home = Home::new();
        home.rules(&[("work", "TRUST_FOLDER")]);
        let with = |name, value| trust(home.0.path(), &home.at("work"), &Environment::from([(name, value)]));
        let variable = TrustReason::Variable;
        assert_eq!(
            with(env::GEMINI_CLI_TRUST_WORKSPACE, "false"),
            TrustState::Untrusted(variable(env::GEMINI_CLI_TRUST_WORKSPACE))
        );
        assert_eq!(
            with(env::GEMINI_CLI_TRUST_WORKSPACE, "true"),
            TrustState::Trusted(variable(env::GEMINI_CLI_TRUST_WORKSPACE))
        );
        assert_eq!(
            with(env::GEMINI_RESTRICTED_MODE, "true"),
            TrustState::Untrusted(variable(env::GEMINI_RESTRICTED_MODE))
        );
        let by_rule = TrustState::Trusted(home.rule("work", TrustLevel::TrustFolder));
        assert_eq!(with(env::GEMINI_CLI_TRUST_WORKSPACE, "1"), by_rule);
    }

    #[test]
    fn longest_rule_that_covers_the_folder_decides() {
        let home = Home::new();
        assert_eq!(home.trust("work/app"), TrustState::Undecided);
        home.rules(&[
            ("work", "TRUST_FOLDER"),
            ("work/app", "DO_NOT_TRUST"),
            ("work/application", "TRUST_FOLDER"),
        ]);
        assert_eq!(home.trust("work"), TrustState::Trusted(home.rule("work", TrustLevel::TrustFolder)));
        let distrusted = TrustState::Untrusted(home.rule("work/app", TrustLevel::DoNotTrust));
        assert_eq!(home.trust("work/app/deep"), distrusted);
        assert_eq!(home.trust(""), TrustState::Undecided);
    }

    #[test]
    fn trusting_the_parent_covers_its_other_children() {
        let home = Home::new();
        home.rules(&[("work/other", "TRUST_PARENT")]);
        let trusted = TrustState::Trusted(home.rule("work/other", TrustLevel::TrustParent));
        assert_eq!(home.trust("work/app"), trusted);
    }

    #[test]
    fn of_two_ways_to_write_one_path_the_later_counts() {
        let home = Home::new();
        home.rules(&[("work/app", "TRUST_PARENT"), ("work/../work/app", "DO_NOT_TRUST")]);
        assert_eq!(home.trust("work/deep"), TrustState::Undecided);
        let distrusted = TrustState::Untrusted(home.rule("work/../work/app", TrustLevel::DoNotTrust));
        assert_eq!(home.trust("work/app"), distrusted);
    }

    #[test]
    fn links_are_followed_on_both_sides() {
        let home = Home::new();
        alhena_sys::files::symlink(home.at("work"), home.at("link")).unwrap();
        home.rules(&[("link", "TRUST_FOLDER")]);
        let trusted = TrustState::Trusted(home.rule("link", TrustLevel::TrustFolder));
        assert_eq!(home.trust("work/app"), trusted);
        assert_eq!(home.trust("link/app"), trusted);
    }

    #[test]
    fn switched_off_trust_trusts_everything() {
        let home = Home::new();
        let settings = r#"{"security": {"folderTrust": {"enabled": false}}} // off"#;
        std::fs::write(home.at(".gemini/settings.json"), settings).unwrap();
        assert_eq!(home.trust("work"), TrustState::Trusted(TrustReason::Disabled));
    }

    #[test]
    fn file_of_rules_can_be_elsewhere_and_can_be_broken() {
        let home = Home::new();
        let file = home.at("rules.json");
        let env = Environment::from([(env::GEMINI_CLI_TRUSTED_FOLDERS_PATH, &file)]);
        std::fs::write(&file, r#"{"/": "TRUST_FOLDER"}"#).unwrap();
        let everything = TrustReason::Rule { path: "/".to_owned(), level: TrustLevel::TrustFolder };
        assert_eq!(trust(home.0.path(), &home.at("work"), &env), TrustState::Trusted(everything));
        std::fs::write(&file, r#"{"/": "TRUST_ME"}"#).unwrap();
        let problem = format!("{}: \"TRUST_ME\" is no trust level for \"/\"", file.display());
        assert_eq!(trust(home.0.path(), &home.at("work"), &env), TrustState::Broken { problem });
    }
}
