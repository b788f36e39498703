//! Where a `gemini` command may be, in the order in which it is looked for.
//!
//! npm puts the command beside the Node it was installed with, so every version manager for Node has a place of its
//! own, one per Node version. Those are patterns with a `*`; of several matches the newest version comes first.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use alhena_sys::platform::{PLATFORM, Platform};
use alhena_sys::programs::file_names;
use serde::Serialize;

use crate::dirs::Dirs;
use crate::env::{self, Environment};
use crate::programs::search_path;

/// How a `gemini` command was come upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The caller named it.
    Explicit,
    /// `GEMINI_CLI_PATH` names it.
    Environment,
    /// `node_modules/.bin` of the working directory or of a directory above it.
    Project,
    /// A directory on `PATH`.
    Path,
    /// A place where a package manager is known to put it.
    Known,
    /// Alhena installed it.
    Installed,
}

/// What a known place is relative to.
enum Base {
    /// The file system's root.
    Root,
    /// The user's home.
    Home,
    /// The directory in a variable, or else one in the user's home.
    Variable(&'static str, &'static str),
}

/// One row: base and pattern of a directory that holds commands. A `*` stands for one whole component.
struct Known(Base, &'static str);

const KNOWN: &[Known] = &[
    Known(Base::Root, "/usr/local/bin"),
    Known(Base::Variable(env::MISE_DATA_DIR, ".local/share/mise"), "installs/node/*/bin"),
    Known(Base::Variable(env::NPM_CONFIG_PREFIX, ".npm-global"), "bin"),
    Known(Base::Home, ".npm-global/bin"),
    Known(Base::Variable(env::MISE_DATA_DIR, ".local/share/mise"), "installs/npm-google-gemini-cli/*/bin"),
    Known(Base::Variable(env::NVM_DIR, ".nvm"), "versions/node/*/bin"),
    Known(Base::Variable(env::VOLTA_HOME, ".volta"), "bin"),
    Known(Base::Variable(env::FNM_DIR, ".local/share/fnm"), "node-versions/*/installation/bin"),
    Known(Base::Home, ".fnm/node-versions/*/installation/bin"),
    Known(Base::Home, "Library/Application Support/fnm/node-versions/*/installation/bin"),
    Known(Base::Root, "/opt/homebrew/bin"),
    Known(Base::Root, "/home/linuxbrew/.linuxbrew/bin"),
    Known(Base::Variable(env::BUN_INSTALL, ".bun"), "bin"),
    Known(Base::Variable(env::PNPM_HOME, ".local/share/pnpm"), ""),
    Known(Base::Home, "Library/pnpm"),
    Known(Base::Variable(env::ASDF_DATA_DIR, ".asdf"), "installs/nodejs/*/bin"),
    Known(Base::Home, ".nodenv/versions/*/bin"),
    Known(Base::Home, ".yarn/bin"),
    Known(Base::Home, ".config/yarn/global/node_modules/.bin"),
    Known(Base::Home, "n/bin"),
    Known(Base::Home, ".local/bin"),
    Known(Base::Root, "/usr/bin"),
    Known(Base::Root, "/snap/bin"),
];

const KNOWN_ON_WINDOWS: &[Known] = &[
    Known(Base::Variable(env::APPDATA, "AppData/Roaming"), "npm"),
    Known(Base::Variable(env::NPM_CONFIG_PREFIX, "AppData/Roaming/npm"), ""),
    Known(Base::Variable(env::LOCALAPPDATA, "AppData/Local"), "pnpm"),
    Known(Base::Variable(env::LOCALAPPDATA, "AppData/Local"), "Volta/bin"),
    Known(Base::Variable(env::LOCALAPPDATA, "AppData/Local"), "mise/installs/node/*"),
    Known(Base::Variable(env::APPDATA, "AppData/Roaming"), "fnm/node-versions/*/installation"),
    Known(Base::Variable(env::APPDATA, "AppData/Roaming"), "nvm/*"),
    Known(Base::Home, "scoop/shims"),
    Known(Base::Home, ".bun/bin"),
];

/// Every path where `gemini` may be, best first, without the explicit one.
pub(super) fn candidates(env: &Environment, dir: &Path, dirs: Option<&Dirs>) -> Vec<(Place, PathBuf)> {
    let mut directories: Vec<(Place, PathBuf)> = Vec::new();
    directories.extend(dir.ancestors().map(|above| (Place::Project, above.join("node_modules/.bin"))));
    directories.extend(search_path(env).into_iter().map(|path| (Place::Path, path)));
    directories.extend(known_directories(env).into_iter().map(|path| (Place::Known, path)));
    directories.extend(dirs.into_iter().flat_map(installed_directories).map(|path| (Place::Installed, path)));

    let mut all = Vec::new();
    all.extend(env.filled(env::GEMINI_CLI_PATH).map(|path| (Place::Environment, PathBuf::from(path))));
    let names = file_names("gemini");
    for (place, directory) in directories {
        for name in &names {
            let path = directory.join(name);
            if !all.iter().any(|(_, known)| *known == path) {
                all.push((place, path));
            }
        }
    }
    all
}

/// The bin directories of Alhena's own installs, newest first.
pub(super) fn installed_directories(dirs: &Dirs) -> Vec<PathBuf> {
    let installs = dirs.installs();
    expand(&installs, Path::new("*")).into_iter().map(|version| version.join("node_modules/.bin")).collect()
}

fn known_directories(env: &Environment) -> Vec<PathBuf> {
    let home = env.home();
    let rows = if PLATFORM == Platform::Windows { KNOWN_ON_WINDOWS } else { KNOWN };
    let mut directories = Vec::new();
    for Known(base, pattern) in rows {
        let base = match base {
            Base::Root => Some(PathBuf::new()),
            Base::Home => home.clone(),
            Base::Variable(name, default) => {
                env.filled(name).map(PathBuf::from).or_else(|| home.as_ref().map(|home| home.join(default)))
            }
        };
        let Some(base) = base else { continue };
        directories.extend(expand(&base, Path::new(pattern)));
    }
    directories
}

/// The directories that a pattern stands for, newest version first; B-47. Without a `*` that is the one it names, whether
/// or not it exists.
fn expand(base: &Path, pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![base.to_path_buf()];
    for component in pattern {
        paths = if component == "*" {
            paths.iter().flat_map(|path| newest_first(path)).collect()
        } else {
            paths.into_iter().map(|path| path.join(component)).collect()
        };
    }
    paths
}

fn newest_first(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
    names.sort_by_cached_key(|name| Reverse((numbers(name), name.clone())));
    names.into_iter().map(|name| directory.join(name)).collect()
}

/// The numbers in a directory's name, so that `v9.11.2` sorts before `v22.1.0` and words before both.
fn numbers(name: &OsStr) -> Vec<u64> {
    let name = name.to_string_lossy();
    name.split(|character: char| !character.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn paths(list: &[(Place, PathBuf)], place: Place) -> Vec<&Path> {
        list.iter().filter(|(found, _)| *found == place).map(|(_, path)| path.as_path()).collect()
    }

    #[test]
    fn patterns_are_expanded_newest_version_first() {
        // B-46, B-47
        let root = tempfile::tempdir().unwrap();
        for version in ["9.11.2", "22.1.0", "22.10.0", "lts", ".partial"] {
            std::fs::create_dir_all(root.path().join("installs/node").join(version).join("bin")).unwrap();
        }
        let found = expand(root.path(), Path::new("installs/node/*/bin"));
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(root.path().join("installs/node")).unwrap()).collect();
        assert_eq!(names, ["22.10.0/bin", "22.1.0/bin", "9.11.2/bin", "lts/bin"].map(Path::new));
    }

    #[test]
    #[cfg(unix)]
    fn order_is_environment_project_path_known_installed() {
        // B-44, B-45, B-46, E-37
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        let env = Environment::from([
            (env::HOME, home.as_os_str()),
            (env::PATH, OsStr::new("/p1:/p2:relative::/p1")),
            (env::GEMINI_CLI_PATH, OsStr::new("/named/gemini")),
        ]);
        let dirs = Dirs::of(&env).unwrap();
        std::fs::create_dir_all(dirs.installs().join("0.9.0")).unwrap();
        std::fs::create_dir_all(dirs.installs().join("0.61.0")).unwrap();
        let all = candidates(&env, Path::new("/w/x"), Some(&dirs));
        assert_eq!(paths(&all, Place::Environment), [Path::new("/named/gemini")]);
        assert_eq!(
            paths(&all, Place::Project),
            ["/w/x/node_modules/.bin/gemini", "/w/node_modules/.bin/gemini", "/node_modules/.bin/gemini"]
                .map(Path::new)
        );
        assert_eq!(paths(&all, Place::Path), ["/p1/gemini", "/p2/gemini"].map(Path::new));
        assert_eq!(
            paths(&all, Place::Installed),
            ["0.61.0", "0.9.0"].map(|version| dirs.installs().join(version).join("node_modules/.bin/gemini"))
        );
        let places: Vec<_> = all.iter().map(|(place, _)| *place as u8).collect();
        assert!(places.is_sorted(), "{all:?}");
        for known in ["/usr/local/bin/gemini".into(), home.join(".npm-global/bin/gemini")] {
            assert!(paths(&all, Place::Known).contains(&known.as_path()), "{known:?}");
        }
    }
}
