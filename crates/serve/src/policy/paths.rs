//! Paths that a request names: made real, and kept below the root.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::problem::Problem;

/// What is to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A folder.
    Folder,
    /// A file that can be read.
    File,
    /// A file that can be read, or made.
    Written,
}

/// Where paths may lead.
#[derive(Clone, Copy, Debug)]
pub struct Paths<'a> {
    /// What relative ones are relative to.
    pub base: &'a Path,
    /// What they have to be below, without symbolic links.
    pub root: Option<&'a Path>,
}

impl Paths<'_> {
    /// The real path of one, or those of a list.
    pub fn each(self, name: &str, value: &Value, wanted: Wanted) -> Result<Value, Problem> {
        match value {
            Value::Array(list) => list.iter().map(|value| self.each(name, value, wanted)).collect(),
            Value::String(text) => Ok(self.real(name, text, wanted)?.display().to_string().into()),
            _ => Err(Problem::input(format!("{name}: a path is needed"))),
        }
    }

    fn real(self, name: &str, given: &str, wanted: Wanted) -> Result<PathBuf, Problem> {
        let path = self.base.join(given);
        let outside = || {
            Problem::forbidden(format!("{name}: {given:?} is not below the server's root"))
                .hint("Runs may use folders and files below the server's root only.")
        };
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(_) if wanted == Wanted::Written && path.symlink_metadata().is_err() => {
                let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
                let made = parent.zip(path.file_name()).map(|(parent, name)| parent.join(name));
                made.ok_or_else(|| Problem::input(format!("{name}: {given:?} cannot be made")))?
            }
            // Whether something is there that may not be used is nobody's business.
            Err(_) if self.root.is_some() && !self.is_plainly_below(&path) => return Err(outside()),
            Err(error) => return Err(Problem::input(format!("{name}: {given:?}: {error}"))),
        };
        if self.root.is_some_and(|root| !real.starts_with(root)) {
            return Err(outside());
        }
        let is_right = match wanted {
            Wanted::Folder => real.is_dir(),
            Wanted::File => real.is_file(),
            Wanted::Written => !real.exists() || real.is_file(),
        };
        match (is_right, wanted) {
            (true, _) => Ok(real),
            (false, Wanted::Folder) => Err(Problem::input(format!("{name}: {given:?} is not a directory"))),
            (false, _) => Err(Problem::input(format!("{name}: {given:?} is not a file"))),
        }
    }

    fn is_plainly_below(self, path: &Path) -> bool {
        let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
        !climbs && self.root.is_some_and(|root| path.starts_with(root))
    }
}
