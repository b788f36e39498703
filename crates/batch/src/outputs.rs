//! Files that a job gives back beside its patch: those that it names, whatever git thinks of them.
//!
//! They are a part of the result, as the patch is: a place of its own is gone when its job is over, and may be on another machine.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use alhena_model::SettingError;
use alhena_sys::files;
use alhena_wire::display::{escaped_len, is_unsafe};
use data_encoding::BASE64;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::place::{LARGEST, LeftOut, NEITHER, is_repository};

/// More patterns, or longer ones, are a mistake.
const MOST_PATTERNS: usize = 100;
const LONGEST_PATTERN: usize = 1024;
/// More files are no outputs but a folder.
const MOST_FILES: usize = 10_000;
/// What a file takes in the result beside its path and its content.
const AROUND: u64 = 40;
const HINT: &str = "Give paths or patterns below its directory, such as [\"report.md\", \"dist/**/*.json\"].";

/// Which files: paths below the directory of the job, also with `*`, `**`, `?` and `[...]`. A directory stands for all that is in it, and
/// what is there by the very name that is written is meant whatever its letters are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs(Vec<String>);

/// A file that a job gave back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputFile {
    /// Below the directory in which the job worked.
    pub path: String,
    /// What is in it.
    #[serde(flatten)]
    pub content: Content,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text in UTF-8.
    Text(String),
    /// Anything else, in base64.
    Base64(String),
}

/// What was found, and what people should know of it.
#[derive(Debug, Default)]
pub struct Gathered {
    /// In the order of their paths.
    pub files: Vec<OutputFile>,
    /// What was asked for and is not there.
    pub warnings: Vec<String>,
}

impl Outputs {
    /// Those that a job names: one pattern, or a list.
    pub fn of(said: Value) -> Result<Self, SettingError> {
        let wrong = || SettingError::new("outputs: a list of paths is needed", HINT);
        match said {
            Value::String(pattern) => Self::new(vec![pattern]),
            Value::Array(patterns) => {
                let text = |pattern| match pattern {
                    Value::String(pattern) => Ok(pattern),
                    _ => Err(wrong()),
                };
                Self::new(patterns.into_iter().map(text).collect::<Result<_, _>>()?)
            }
            _ => Err(wrong()),
        }
    }

    /// These patterns, if all of them stay below the directory.
    pub fn new(patterns: Vec<String>) -> Result<Self, SettingError> {
        if patterns.len() > MOST_PATTERNS {
            return Err(SettingError::new(format!("outputs: there are more than {MOST_PATTERNS}"), HINT));
        }
        let plain = patterns.iter().map(|pattern| plain(pattern)).collect::<Result<_, _>>()?;
        let outputs = Self(plain);
        outputs.matcher()?;
        Ok(outputs)
    }

    /// The patterns.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn matcher(&self) -> Result<GlobSet, SettingError> {
        let mut set = GlobSetBuilder::new();
        for pattern in &self.0 {
            let plain = without_braces(pattern);
            let glob = GlobBuilder::new(&plain).literal_separator(true).backslash_escape(false).build();
            let wrong = |error: globset::Error| {
                SettingError::new(format!("outputs: {pattern:?} is no pattern: {}", error.kind()), HINT)
            };
            set.add(glob.map_err(wrong)?);
        }
        set.build().map_err(|error| SettingError::new(format!("outputs: {error}"), HINT))
    }

    /// Takes them from a directory in which nobody works any more. Links are not followed: they may lead anywhere. What was there and
    /// is neither a file nor a directory nor a link may have been taken out before.
    pub fn gather(&self, dir: &Path, taken_out: &[PathBuf]) -> io::Result<Gathered> {
        let matcher = self.matcher().map_err(|fault| io::Error::other(fault.to_string()))?;
        let mut gathering = Gathering {
            patterns: &self.0,
            matcher,
            found: vec![false; self.0.len()],
            files: Vec::new(),
            room: LARGEST,
            left_out: LeftOut::of("the outputs"),
        };
        gathering.all(dir)?;
        for path in taken_out.iter().filter_map(|path| path.strip_prefix(dir).ok()) {
            if gathering.is_wanted(path) {
                gathering.left_out.add(path, NEITHER);
            }
        }
        let mut warnings = gathering.left_out.told();
        for (pattern, found) in self.0.iter().zip(gathering.found) {
            if !found {
                warnings.push(format!("outputs: there is no file {pattern:?}"));
            }
        }
        Ok(Gathered { files: gathering.files, warnings })
    }
}

/// A pattern without what means nothing; none that leads out of the directory.
fn plain(pattern: &str) -> Result<String, SettingError> {
    let wrong = || SettingError::new(format!("outputs: {pattern:?} is no path below its directory"), HINT);
    let mut plain = PathBuf::new();
    for part in Path::new(pattern).components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::CurDir => {}
            _ => return Err(wrong()),
        }
    }
    let plain = plain.to_str().filter(|plain| !plain.is_empty() && !plain.contains('\0'));
    match plain {
        Some(plain) if plain.len() > LONGEST_PATTERN => {
            Err(SettingError::new(format!("outputs: a pattern is longer than {LONGEST_PATTERN} bytes"), HINT))
        }
        Some(plain) => Ok(plain.to_owned()),
        None => Err(wrong()),
    }
}

/// Braces mean themselves: whoever wants several patterns writes several.
fn without_braces(pattern: &str) -> String {
    let (mut plain, mut is_inside) = (String::new(), false);
    for letter in pattern.chars() {
        match letter {
            '{' | '}' if !is_inside => plain.extend(['[', letter, ']']),
            _ => plain.push(letter),
        }
        is_inside = letter == '[' || is_inside && letter != ']';
    }
    plain
}

/// The names in a directory, in their order.
type Names = std::vec::IntoIter<std::ffi::OsString>;

fn names_in(dir: &Path) -> io::Result<Names> {
    let names = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name()));
    let mut names: Vec<_> = names.collect::<io::Result<_>>()?;
    names.retain(|name| !is_repository(name));
    names.sort();
    Ok(names.into_iter())
}

struct Gathering<'a> {
    patterns: &'a [String],
    matcher: GlobSet,
    /// Which patterns stand for something that is there.
    found: Vec<bool>,
    files: Vec<OutputFile>,
    /// So many bytes may still come.
    room: u64,
    left_out: LeftOut,
}

impl Gathering<'_> {
    /// Goes through a directory, however deep it is.
    fn all(&mut self, dir: &Path) -> io::Result<()> {
        let mut open: Vec<(PathBuf, Names)> = vec![(PathBuf::new(), names_in(dir)?)];
        while let Some((below, names)) = open.last_mut() {
            let Some(name) = names.next() else {
                open.pop();
                continue;
            };
            let path = below.join(&name);
            let full = dir.join(&path);
            // What is gone, or has no short enough name, nobody can read.
            let Ok(kind) = full.symlink_metadata().map(|data| data.file_type()) else { continue };
            if kind.is_dir() {
                match names_in(&full) {
                    Ok(names) => open.push((path, names)),
                    Err(error) if self.is_wanted(&path) => self.left_out.add(&path, &error.to_string()),
                    // What nobody asked for may be closed.
                    Err(_) => {}
                }
            } else if self.is_wanted(&path) {
                match kind {
                    kind if kind.is_file() => self.file(&path, &full),
                    kind if kind.is_symlink() => self.left_out.add(&path, "it is a link"),
                    _ => self.left_out.add(&path, NEITHER),
                }
            }
        }
        Ok(())
    }

    /// Whether a pattern stands for this path, or for a directory that it is in.
    fn is_wanted(&mut self, path: &Path) -> bool {
        let mut is_wanted = false;
        for part in path.ancestors().filter(|part| !part.as_os_str().is_empty()) {
            let written = self.patterns.iter().position(|pattern| part.to_str() == Some(pattern));
            for at in self.matcher.matches(part).into_iter().chain(written) {
                is_wanted = true;
                if let Some(found) = self.found.get_mut(at) {
                    *found = true;
                }
            }
        }
        is_wanted
    }

    fn file(&mut self, path: &Path, full: &Path) {
        let Some(name) = path.to_str() else { return self.left_out.add(path, "its name is no text") };
        if self.files.len() == MOST_FILES {
            return self.left_out.add(path, &format!("there are more than {MOST_FILES}"));
        }
        let mut bytes = Vec::new();
        let read = files::open_without_following(full)
            .and_then(|file| file.take(self.room + 1).read_to_end(&mut bytes));
        if let Err(error) = read {
            return self.left_out.add(path, &error.to_string());
        }
        let (content, size) = Content::of(bytes);
        match self.room.checked_sub(size + written_size(name) + AROUND) {
            Some(room) => {
                self.room = room;
                self.files.push(OutputFile { path: name.to_owned(), content });
            }
            None => self.left_out.add(path, &format!("all together have more than {} MB", LARGEST >> 20)),
        }
    }
}

impl Content {
    /// Whichever is shorter in a result, and how many bytes it takes there.
    fn of(bytes: Vec<u8>) -> (Self, u64) {
        let encoded = BASE64.encode_len(bytes.len()) as u64;
        match String::from_utf8(bytes) {
            Ok(text) if written_size(&text) <= encoded.max(64) => {
                let size = written_size(&text);
                (Content::Text(text), size)
            }
            Ok(text) => (Content::Base64(BASE64.encode(text.as_bytes())), encoded),
            Err(error) => (Content::Base64(BASE64.encode(error.as_bytes())), encoded),
        }
    }
}

/// How many bytes a text takes in a line of the results.
fn written_size(text: &str) -> u64 {
    let size = |letter: char| match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        letter if is_unsafe(letter) => escaped_len(letter) as u64,
        letter => letter.len_utf8() as u64,
    };
    text.chars().map(size).sum()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use alhena_sys::files::symlink;
    use serde_json::json;

    use super::*;

    fn place(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, bytes) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        dir
    }

    fn gathered(dir: &Path, patterns: Value) -> (Vec<String>, Vec<String>) {
        let Gathered { files, warnings } = Outputs::of(patterns).unwrap().gather(dir, &[]).unwrap();
        (files.into_iter().map(|file| file.path).collect(), warnings)
    }

    #[test]
    fn files_are_named_by_paths_patterns_and_directories() {
        let dir = place(&[
            ("report.md", b"r"),
            ("dist/a.json", b"{}"),
            ("dist/deep/b.json", b"{}"),
            ("dist/deep/c.txt", b"c"),
            (".gitignore", b"dist\n"),
            (".git/config", b"secret"),
        ]);
        let of = |patterns| gathered(dir.path(), patterns).0;
        assert_eq!(of(json!("./report.md")), ["report.md"]);
        assert_eq!(of(json!(["dist/*.json"])), ["dist/a.json"]);
        assert_eq!(of(json!(["dist/**/*.json"])), ["dist/a.json", "dist/deep/b.json"]);
        assert_eq!(of(json!(["dist/", "report.md"])).len(), 4);
        assert_eq!(of(json!("*")).len(), 5, "all but the repository");
    }

    #[test]
    fn what_is_text_is_text_and_the_rest_is_base64() {
        let dir = place(&[("a.txt", "ü\n".as_bytes()), ("b.bin", &[0xff, 0])]);
        let files = Outputs::of(json!(["*.txt", "*.bin"])).unwrap().gather(dir.path(), &[]).unwrap().files;
        let written = serde_json::to_value(&files).unwrap();
        assert_eq!(written, json!([{"path": "a.txt", "text": "ü\n"}, {"path": "b.bin", "base64": "/wA="}]));
        assert_eq!(serde_json::from_value::<Vec<OutputFile>>(written).unwrap(), files);
    }

    #[test]
    fn what_was_asked_for_and_is_not_given_is_told() {
        let dir = place(&[("large", &vec![b'x'; usize::try_from(LARGEST).unwrap() + 1]), ("small", b"s")]);
        symlink("/etc/passwd", dir.path().join("link")).unwrap();
        symlink("/etc", dir.path().join("folder")).unwrap();
        files::create_pipe(&dir.path().join("pipe")).unwrap();
        let (paths, warnings) =
            gathered(dir.path(), json!(["large", "small", "link", "folder", "folder/passwd", "pipe"]));
        assert_eq!(paths, ["small"]);
        assert_eq!(
            warnings,
            [
                "folder was left out of the outputs: it is a link",
                "large was left out of the outputs: all together have more than 16 MB",
                "link was left out of the outputs: it is a link",
                "pipe was left out of the outputs: it is neither a file nor a directory nor a link",
                "outputs: there is no file \"folder/passwd\"",
            ]
        );
    }

    #[test]
    fn a_name_means_itself_whatever_its_letters_are() {
        let names = ["app/[id]/page.tsx", "app/{x}/q", "back\\slash", "star*", "i/x"];
        let dir = place(&names.map(|name| (name, b"x".as_slice())));
        for name in names.iter().take(4) {
            assert_eq!(gathered(dir.path(), json!([name])), (vec![(*name).to_owned()], Vec::new()));
        }
        assert_eq!(gathered(dir.path(), json!("[ij]/*")).0, ["i/x"]);
        // Deep braces are no deep recursion.
        let braces = "{".repeat(500) + &"}".repeat(500);
        assert_eq!(gathered(dir.path(), json!(braces)).0, [] as [&str; 0]);
    }

    #[test]
    fn the_result_is_bounded_however_small_or_strange_the_files_are() {
        let zeros = vec![0; usize::try_from(LARGEST / 2).unwrap()];
        let dir = place(&[("zeros", &zeros), ("tab", b"\t\0")]);
        let files = Outputs::of(json!(["zeros", "tab"])).unwrap().gather(dir.path(), &[]).unwrap().files;
        assert!(serde_json::to_string(&files).unwrap().len() as u64 <= LARGEST);
        assert!(matches!(files[0].content, Content::Text(_)), "a few escapes are text");
        assert!(matches!(files[1].content, Content::Base64(_)), "more are not");
        let many = tempfile::tempdir().unwrap();
        for number in 0..MOST_FILES + 2 {
            fs::write(many.path().join(number.to_string()), "").unwrap();
        }
        let Gathered { files, warnings } = Outputs::of(json!("*")).unwrap().gather(many.path(), &[]).unwrap();
        assert_eq!((files.len(), warnings.len()), (MOST_FILES, 2), "{warnings:?}");
    }

    #[test]
    fn a_deep_directory_is_gone_through() {
        let dir = tempfile::tempdir().unwrap();
        // So deep that a path to it is nearly as long as one can be.
        let deep: PathBuf = std::iter::repeat_n("d", 1900).collect();
        fs::create_dir_all(dir.path().join(&deep)).unwrap();
        fs::write(dir.path().join(&deep).join("f"), "x").unwrap();
        let found = std::thread::Builder::new().stack_size(256 << 10);
        let path = dir.path().to_owned();
        let found = found.spawn(move || gathered(&path, json!("**/f")).0.len()).unwrap();
        assert_eq!(found.join().unwrap(), 1);
    }

    #[test]
    fn nothing_leads_out_of_the_directory() {
        for wrong in ["", ".", "/etc/passwd", "../x", "a/../../x", "a/..", "[", "a\0"] {
            assert!(Outputs::of(json!([wrong])).is_err(), "{wrong:?}");
        }
        let long = "x".repeat(LONGEST_PATTERN + 1);
        assert!(Outputs::of(json!(long)).is_err());
        for wrong in [json!(true), json!([1]), json!({"a": 1}), json!(vec!["x"; MOST_PATTERNS + 1])] {
            assert!(Outputs::of(wrong).is_err());
        }
        assert!(Outputs::of(json!([])).unwrap().is_empty());
    }
}
