//! Files that a job gives back beside its patch: those that it names, whatever git thinks of them.
//!
//! They are a part of the result, as the patch is: a place of its own is gone when its job is over, and may be on another machine.

use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use data_encoding::BASE64;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::meaning::Fault;
use crate::place::{LARGEST, LeftOut, NEITHER, is_repository, open_plain};

/// More patterns are a mistake.
const MOST_PATTERNS: usize = 100;
const HINT: &str = "Give paths or patterns below its directory, such as [\"report.md\", \"dist/**/*.json\"].";

/// Which files: paths below the directory of the job, with `*`, `**`, `?` and `[...]`. A directory stands for all that is in it.
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
    pub fn of(said: Value) -> Result<Self, Fault> {
        let wrong = || Fault::new("outputs: a list of paths is needed", HINT);
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
    pub fn new(patterns: Vec<String>) -> Result<Self, Fault> {
        if patterns.len() > MOST_PATTERNS {
            return Err(Fault::new(format!("outputs: there are more than {MOST_PATTERNS}"), HINT));
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

    fn matcher(&self) -> Result<GlobSet, Fault> {
        let mut set = GlobSetBuilder::new();
        for pattern in &self.0 {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            set.add(glob.map_err(|error| Fault::new(format!("outputs: {error}"), HINT))?);
        }
        set.build().map_err(|error| Fault::new(format!("outputs: {error}"), HINT))
    }

    /// Takes them from a directory in which nobody works any more. Links are not followed: they may lead anywhere.
    pub fn gather(&self, dir: &Path) -> io::Result<Gathered> {
        let matcher = self.matcher().map_err(|fault| io::Error::other(fault.message))?;
        let mut gathering = Gathering {
            matcher,
            found: vec![false; self.0.len()],
            files: Vec::new(),
            room: LARGEST,
            left_out: LeftOut::of("the outputs"),
        };
        gathering.below(dir, Path::new(""))?;
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
fn plain(pattern: &str) -> Result<String, Fault> {
    let wrong = || Fault::new(format!("outputs: {pattern:?} is no path below its directory"), HINT);
    let mut plain = PathBuf::new();
    for part in Path::new(pattern).components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::CurDir => {}
            _ => return Err(wrong()),
        }
    }
    let plain = plain.to_str().filter(|plain| !plain.is_empty() && !plain.contains('\0'));
    plain.map(str::to_owned).ok_or_else(wrong)
}

struct Gathering {
    matcher: GlobSet,
    /// Which patterns stand for something that is there.
    found: Vec<bool>,
    files: Vec<OutputFile>,
    /// So many bytes may still come.
    room: u64,
    left_out: LeftOut,
}

impl Gathering {
    fn below(&mut self, dir: &Path, below: &Path) -> io::Result<()> {
        let names = std::fs::read_dir(dir.join(below))?.map(|entry| Ok(entry?.file_name()));
        let mut names: Vec<_> = names.collect::<io::Result<_>>()?;
        names.sort();
        for name in names.into_iter().filter(|name| !is_repository(name)) {
            let (path, full) = (below.join(&name), dir.join(below).join(&name));
            let kind = full.symlink_metadata()?.file_type();
            if kind.is_dir() {
                match self.below(dir, &path) {
                    Err(error) if self.is_wanted(&path) => self.left_out.add(&path, &error.to_string()),
                    // What nobody asked for may be closed.
                    _ => {}
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
            for at in self.matcher.matches(part) {
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
        let mut bytes = Vec::new();
        let read = open_plain(full).and_then(|file| file.take(self.room + 1).read_to_end(&mut bytes));
        match read {
            Err(error) => self.left_out.add(path, &error.to_string()),
            Ok(count) if count as u64 > self.room => {
                let why = format!("all together have more than {} MB", LARGEST >> 20);
                self.left_out.add(path, &why);
            }
            Ok(count) => {
                self.room -= count as u64;
                let content = match String::from_utf8(bytes) {
                    Ok(text) => Content::Text(text),
                    Err(error) => Content::Base64(BASE64.encode(error.as_bytes())),
                };
                self.files.push(OutputFile { path: name.to_owned(), content });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

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
        let Gathered { files, warnings } = Outputs::of(patterns).unwrap().gather(dir).unwrap();
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
        let files = Outputs::of(json!(["*.txt", "*.bin"])).unwrap().gather(dir.path()).unwrap().files;
        let written = serde_json::to_value(&files).unwrap();
        assert_eq!(written, json!([{"path": "a.txt", "text": "ü\n"}, {"path": "b.bin", "base64": "/wA="}]));
        assert_eq!(serde_json::from_value::<Vec<OutputFile>>(written).unwrap(), files);
    }

    #[test]
    fn what_was_asked_for_and_is_not_given_is_told() {
        let dir = place(&[("large", &vec![b'x'; usize::try_from(LARGEST).unwrap() + 1]), ("small", b"s")]);
        symlink("/etc/passwd", dir.path().join("link")).unwrap();
        symlink("/etc", dir.path().join("folder")).unwrap();
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("pipe"), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
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
    fn nothing_leads_out_of_the_directory() {
        for wrong in ["", ".", "/etc/passwd", "../x", "a/../../x", "a/..", "[", "a\0"] {
            assert!(Outputs::of(json!([wrong])).is_err(), "{wrong:?}");
        }
        for wrong in [json!(true), json!([1]), json!({"a": 1}), json!(vec!["x"; MOST_PATTERNS + 1])] {
            assert!(Outputs::of(wrong).is_err());
        }
        assert!(Outputs::of(json!([])).unwrap().is_empty());
    }
}
