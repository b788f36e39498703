//! Which files a rule means: `src/**`, `*.md`, `/srv/shared/**`.
//!
//! A path in a question was written by a model. It is taken as text (`src/../../etc/passwd`) and as the disk has it (`src` may
//! be a link to `/etc`), always from the session's directory. A rule that allows has to mean all of these; one that denies
//! needs to mean one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alhena_sys::files::exposed::{MOST_LINKS, parts};
use globset::{GlobBuilder, GlobMatcher};

use super::command::Fit;
use crate::facts::resolve;

/// What is in these directories is run or obeyed later, so a rule that allows has to name them.
const OBEYED: &[&str] = &[".git", ".hg", ".gemini", ".alhena", ".agents", ".vscode", ".idea"];

/// Files below the session's directory, or anywhere if it is absolute.
#[derive(Clone, Debug)]
pub(super) struct PathPattern {
    text: String,
    exact: GlobMatcher,
    /// Without regard to case, as some disks have it.
    any_case: GlobMatcher,
}

impl PathPattern {
    /// Reads a pattern; what is wrong with it is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with('~') {
            return Err("~ is not replaced here; write the whole path".to_owned());
        }
        if text.split('/').any(|part| part == "..") {
            return Err("it leads up with ..; write the whole path".to_owned());
        }
        let text = text.strip_prefix("./").unwrap_or(text);
        // A directory is all that is in it; `a/**` is that already.
        let text = text.strip_suffix('/').unwrap_or(text);
        if text.is_empty() {
            return Err("it limits nothing".to_owned());
        }
        // As in .gitignore: a name alone is meant wherever it is.
        let glob = if text.contains('/') { text.to_owned() } else { format!("**/{text}") };
        let build = |any_case: bool| {
            let glob = GlobBuilder::new(&glob).literal_separator(true).case_insensitive(any_case).build();
            glob.map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
        };
        Ok(Self { text: text.to_owned(), exact: build(false)?, any_case: build(true)? })
    }

    /// Whether it certainly means this path.
    pub fn covers(&self, path: &Path, dir: &Path) -> bool {
        let Some(forms) = Forms::of(path, dir) else { return false };
        forms.all().all(|(path, dir)| {
            let below = path.strip_prefix(dir).ok();
            let obeyed = path.components().find_map(|part| obeyed(part.as_os_str().to_str()?));
            obeyed.is_none_or(|name| self.text.split('/').any(|part| part == name))
                && self.means(&self.exact, path, below)
        })
    }

    /// Whether it could mean this path.
    pub fn might_mean(&self, path: &Path, dir: &Path) -> Fit {
        let Some(forms) = Forms::of(path, dir) else { return Fit::Maybe };
        let written =
            forms.all().any(|(path, dir)| self.means(&self.any_case, path, path.strip_prefix(dir).ok()));
        match written || self.leads_to(&forms) {
            true => Fit::Yes,
            false => Fit::No,
        }
    }

    fn means(&self, glob: &GlobMatcher, path: &Path, below: Option<&Path>) -> bool {
        let path = if self.text.starts_with('/') { Some(path) } else { below };
        let parts = path.into_iter().flat_map(Path::ancestors).filter(|part| !part.as_os_str().is_empty());
        let mut parts = parts.filter(|part| *part != Path::new("/"));
        parts.any(|part| glob.is_match(part))
    }

    /// Whether the path is where the pattern leads on disk: what stands before its first star can be behind a link.
    fn leads_to(&self, forms: &Forms) -> bool {
        if !self.text.contains('/') {
            return false;
        }
        let plain: PathBuf = Path::new(&self.text)
            .components()
            .take_while(|part| !part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']))
            .collect();
        let whole = forms.real_dir.join(&plain);
        let Some(on_disk) = follow(&whole).ok().filter(|on_disk| *on_disk != whole) else { return false };
        let Ok(rest) = forms.real.strip_prefix(on_disk) else { return false };
        let path = plain.join(rest);
        self.means(&self.any_case, &path, Some(&path))
    }
}

fn obeyed(part: &str) -> Option<&'static str> {
    OBEYED.iter().find(|name| name.eq_ignore_ascii_case(part)).copied()
}

/// Whether a path leads into this directory, however it is taken.
pub(super) fn is_inside(path: &Path, dir: &Path) -> bool {
    !path.starts_with("~")
        && Forms::of(path, dir).is_some_and(|forms| forms.all().all(|(path, dir)| path.starts_with(dir)))
}

/// The same path in every way that it can be taken.
pub(super) struct Forms {
    written: PathBuf,
    written_dir: PathBuf,
    /// The links followed after `..` was taken as text, as Node does.
    pub real: PathBuf,
    /// The links followed on the way, as the system does, if that leads anywhere.
    walked: Option<PathBuf>,
    real_dir: PathBuf,
}

impl Forms {
    pub fn of(path: &Path, dir: &Path) -> Option<Self> {
        let written = resolve(dir, path);
        Some(Self {
            real: follow(&written).ok()?,
            walked: match follow(&dir.join(path)) {
                Ok(walked) => Some(walked),
                Err(Lost::Nowhere) => None,
                Err(Lost::Unsure) => return None,
            },
            real_dir: follow(dir).ok()?,
            written_dir: resolve(dir, Path::new("")),
            written,
        })
    }

    /// Each with the session's directory in the same form.
    fn all(&self) -> impl Iterator<Item = (&Path, &Path)> {
        // A path may be written with the directory's real name where the directory is written by a link, and vice versa.
        let written = match self.written.starts_with(&self.written_dir) {
            true => (&*self.written, &*self.written_dir),
            false => (&*self.written, &*self.real_dir),
        };
        let walked = self.walked.as_deref().map(|walked| (walked, &*self.real_dir));
        [written, (&*self.real, &*self.real_dir)].into_iter().chain(walked)
    }
}

/// Why it is not known where a path leads.
enum Lost {
    /// The system does not get there either.
    Nowhere,
    Unsure,
}

/// The path with its links followed, also where its end does not exist yet.
fn follow(path: &Path) -> Result<PathBuf, Lost> {
    let mut here = PathBuf::from("/");
    let mut ahead = parts(path);
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part == ".." {
            here.pop();
            continue;
        }
        let next = here.join(&part);
        match next.symlink_metadata() {
            Ok(data) if data.is_symlink() => {
                links += 1;
                let target = fs::read_link(&next).ok().filter(|_| links <= MOST_LINKS).ok_or(Lost::Unsure)?;
                if target.is_absolute() {
                    here = PathBuf::from("/");
                }
                ahead.extend(parts(&target));
            }
            Ok(data) if data.is_dir() || ahead.is_empty() => here = next,
            // Below a file there is nothing.
            Ok(_) => return Err(Lost::Nowhere),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                here = next;
                // What is not there cannot be gone up from.
                while let Some(part) = ahead.pop() {
                    if part == ".." {
                        return Err(Lost::Nowhere);
                    }
                    here.push(part);
                }
            }
            Err(_) => return Err(Lost::Unsure),
        }
    }
    Ok(here)
}
