//! The `.env` file that Gemini CLI adds to its environment.
//!
//! Many people keep their API key in `~/.gemini/.env`. 0.61.0 takes one file only: the first one upwards from the working
//! directory, then the one in the home; `.gemini/.env` only where the folder is trusted. In an untrusted folder it takes
//! no more than four variables out of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::trust::{TrustState, trust};
use crate::env::{self, Environment};
use crate::settings::read_file;

/// What an untrusted folder's file may set.
const ALLOWED_UNTRUSTED: [&str; 4] =
    [env::GEMINI_API_KEY, env::GOOGLE_API_KEY, env::GOOGLE_CLOUD_PROJECT, env::GOOGLE_CLOUD_LOCATION];

/// What decides about the file.
pub(super) struct Rules<'a> {
    pub(super) home: &'a Path,
    pub(super) dir: &'a Path,
    pub(super) trusted: bool,
    /// `advanced.ignoreLocalEnv`: a plain `.env` counts only in the home.
    pub(super) ignore_local: bool,
    /// `advanced.excludedEnvVars`: what a project's file may not set.
    pub(super) excluded: Vec<String>,
}

impl Rules<'_> {
    /// The environment with the file's variables added; what is set already, also to nothing, stays. Gives back the file
    /// too, if there is one.
    pub(super) fn apply(&self, env: &Environment) -> (Environment, Option<PathBuf>) {
        let mut result = env.clone();
        let Some(path) = self.file() else { return (result, None) };
        let text = read_file(&path).unwrap_or_default();
        let of_project = !path.to_string_lossy().contains(".gemini");
        for (name, mut value) in parse(&String::from_utf8_lossy(&text)) {
            if !self.trusted {
                if !ALLOWED_UNTRUSTED.contains(&name.as_str()) {
                    continue;
                }
                value.retain(|character| character.is_ascii_alphanumeric() || "-_./".contains(character));
            }
            if of_project && self.excluded.contains(&name) || env.get(&name).is_some() {
                continue;
            }
            result.set(name, value);
        }
        (result, Some(path))
    }

    fn file(&self) -> Option<PathBuf> {
        let upwards = self.dir.ancestors().flat_map(|directory| {
            let own = self.trusted.then(|| directory.join(".gemini/.env"));
            let plain = (!self.ignore_local || directory == self.home).then(|| directory.join(".env"));
            own.into_iter().chain(plain)
        });
        let at_home = self.trusted.then(|| self.home.join(".gemini/.env"));
        upwards.chain(at_home).chain([self.home.join(".env")]).find(|path| path.exists())
    }
}

/// What all files say that the CLI could take, whatever is trusted.
pub(crate) fn everything(dir: &Path, home: Option<&Path>) -> Vec<(String, String)> {
    let places = dir.ancestors().chain(home);
    let files = places.flat_map(|place| [place.join(".gemini/.env"), place.join(".env")]);
    files
        .filter_map(|path| read_file(&path).ok())
        .flat_map(|text| parse(&String::from_utf8_lossy(&text)))
        .collect()
}

/// Every variable that files of folders nobody trusts would set, from `dir` upwards to the user's home. A file that cannot
/// be read here, and perhaps by the CLI, is an error.
///
/// `--skip-trust` keeps the folder's settings out and lets the whole of such a file in (0.61.0): a variable there can name
/// another address for the API, or a program for every shell to run first.
pub(crate) fn untrusted_names(
    home: &Path,
    dir: &Path,
    env: &Environment,
) -> Result<BTreeSet<String>, (PathBuf, io::Error)> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let (home, dir) = (real(home), real(dir));
    let mut names = BTreeSet::new();
    for folder in dir.ancestors().take_while(|folder| *folder != home) {
        for file in [folder.join(".gemini/.env"), folder.join(".env")] {
            if !file.exists() || matches!(trust(&home, folder, env), TrustState::Trusted(_)) {
                continue;
            }
            let text = read_file(&file).map_err(|error| (file, error))?;
            names.extend(possible_names(&String::from_utf8_lossy(&text)));
        }
    }
    for allowed in ALLOWED_UNTRUSTED {
        names.remove(allowed);
    }
    Ok(names)
}

/// Everything in a text that could be taken for the name of a variable: a word before `=` or `:` with nothing but `export`
/// in front of it. Rather too much than too little, as whoever wrote the file may know the CLI's parser well: to that a
/// new line is a space.
fn possible_names(text: &str) -> impl Iterator<Item = String> {
    const NEW_LINES: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];
    let is_space = |character: char| character.is_whitespace() || character == '\u{feff}';
    let is_name = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    text.split_inclusive(['=', ':']).filter_map(move |piece| {
        let piece = piece.strip_suffix(['=', ':'])?.trim_end_matches(is_space);
        let before = piece.trim_end_matches(is_name);
        let name = piece.strip_prefix(before).filter(|name| !name.is_empty())?;
        let line = before.rsplit(NEW_LINES).next().unwrap_or_default().trim_matches(is_space);
        (line.is_empty() || line == "export").then(|| name.to_owned())
    })
}

/// The assignments in a file; of several to one name the last counts.
fn parse(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.lines().next().unwrap_or_default();
        let (taken, assignment) = match assignment(line) {
            Some((name, value)) => {
                let start = line.len() - value.len();
                let whole = rest.get(start..).unwrap_or_default();
                let (value, length) = quoted(whole).unwrap_or_else(|| (plain(value), value.len()));
                (start + length, Some((name.to_owned(), value)))
            }
            None => (line.len(), None),
        };
        found.extend(assignment);
        let after = rest.get(taken..).unwrap_or_default();
        rest = after.split_once('\n').map_or("", |(_, next)| next);
    }
    found
}

/// A line's name and what follows its `=` or `: `.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let end =
        line.find(|character: char| !(character.is_ascii_alphanumeric() || "_.-".contains(character)))?;
    let (name, rest) = line.split_at_checked(end).filter(|(name, _)| !name.is_empty())?;
    let value = rest.trim_start().strip_prefix('=').or_else(|| rest.strip_prefix(": "))?;
    Some((name, value))
}

/// A value in quotes, which may span lines, and the length of its text; none if no quote opens or closes it.
fn quoted(text: &str) -> Option<(String, usize)> {
    let inner = text.trim_start_matches([' ', '\t']);
    let quote = inner.chars().next().filter(|first| "'\"`".contains(*first))?;
    let mut escaped = false;
    let close = inner.char_indices().skip(1).find_map(|(at, character)| {
        let found = character == quote && !escaped;
        escaped = character == '\\' && !escaped;
        found.then_some(at)
    })?;
    // More than a comment behind the quote: it was none, but part of the value.
    let behind = inner.get(close + 1..)?.lines().next().unwrap_or_default().trim_start();
    let value = inner.get(1..close).filter(|_| behind.is_empty() || behind.starts_with('#'))?;
    let value = if quote == '"' { value.replace("\\n", "\n").replace("\\r", "\r") } else { value.to_owned() };
    Some((value, text.len() - inner.len() + close + 1))
}

/// A value without quotes: up to a `#`, without blanks around.
fn plain(text: &str) -> String {
    text.split('#').next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn files_are_read_as_dotenv_reads_them() {
        let text = "# comment\nA=1 # one\r\nexport B = 'two # not a comment' # c\nC=\"three\\nlines\nhere\"\nD: four\n\
            not an assignment\nE=\nF='open\nA=again\nG=\"\"\nH=\"open\nI=\"i\"\n=x\nÄ=1";
        let expected = [
            ("A", "again"),
            ("B", "two # not a comment"),
            ("C", "three\nlines\nhere"),
            ("D", "four"),
            ("E", ""),
            ("F", "'open"),
            ("G", ""),
            ("H", "\"open"),
            ("I", "i"),
        ];
        assert_eq!(parse(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }

    #[test]
    fn first_file_upwards_counts_and_what_is_set_stays() {
        let root = tempfile::tempdir().unwrap();
        let (home, dir) = (root.path().join("home"), root.path().join("work/app"));
        fs::create_dir_all(home.join(".gemini")).unwrap();
        fs::create_dir_all(dir.join(".gemini")).unwrap();
        fs::write(home.join(".gemini/.env"), "GEMINI_API_KEY=home").unwrap();
        let rules = |trusted| Rules {
            home: &home,
            dir: &dir,
            trusted,
            ignore_local: false,
            excluded: vec!["DEBUG".to_owned()],
        };
        let key = |trusted, env: &Environment| {
            let (env, _) = rules(trusted).apply(env);
            env.get(env::GEMINI_API_KEY).map(|value| value.to_str().unwrap().to_owned())
        };
        let empty = Environment::default();
        assert_eq!(key(true, &empty), Some("home".to_owned()));
        assert_eq!(key(false, &empty), None);
        assert_eq!(key(true, &Environment::from([(env::GEMINI_API_KEY, "")])), Some(String::new()));

        let text = "GEMINI_API_KEY=a b$c\nGOOGLE_GEMINI_BASE_URL=http://x\nDEBUG=1\n";
        fs::write(root.path().join("work/.env"), text).unwrap();
        let mut expected = Environment::from([(env::GEMINI_API_KEY, "abc")]);
        assert_eq!(rules(false).apply(&empty), (expected.clone(), Some(root.path().join("work/.env"))));
        expected.set(env::GEMINI_API_KEY, "a b$c").set(env::GOOGLE_GEMINI_BASE_URL, "http://x");
        assert_eq!(rules(true).apply(&empty).0, expected);
        let ignoring = Rules { ignore_local: true, ..rules(true) };
        assert_eq!(ignoring.apply(&empty).1, Some(home.join(".gemini/.env")));
    }
}
