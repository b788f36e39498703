//! What was in a place before a job, and what became of it, in a store that only Alhena writes to. The difference is the patch.
//!
//! It is a repository of its own, outside of the place: whatever the folder's configuration, attributes or hooks say does not count
//! here. Bytes are taken as they are. As everywhere in git, what `.gitignore` names is no change, unless git knew it before.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use alhena_model::FailureKind;
use alhena_sys::files;

use super::copy::is_repository;
use super::git::{Git, Question};
use super::{Made, failed};
use crate::perform::Watch;

/// No patch is larger, in bytes: it is a part of the result, which is one line.
pub const LARGEST: u64 = 16 << 20;
/// Of so many pipes and the like it is known that they were there.
const MOST_TAKEN_OUT: usize = 10_000;
/// Over all that a folder says of its files: no conversion, no filter, no driver.
const ATTRIBUTES: &str = "* -text !eol !crlf !filter !ident !working-tree-encoding !diff !merge\n";

/// The store of one place.
pub struct Ledger<'a> {
    git: &'a Git,
    dir: PathBuf,
    place: PathBuf,
    /// Of the slot that it belongs to: no git may outlive it.
    lock: Option<&'a File>,
}

/// What a job did to its place.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// To be applied with `git apply`; none where it cannot be told.
    pub patch: Option<String>,
    /// What people should know of it.
    pub warnings: Vec<String>,
    /// What it left that is neither a file nor a directory nor a link, and was taken out.
    pub(super) taken_out: Vec<PathBuf>,
}

impl<'a> Ledger<'a> {
    /// Begins one for a place. `objects` are those of a repository whose commits it can name.
    pub fn begin(git: &'a Git, dir: PathBuf, place: PathBuf, objects: Option<&Path>) -> io::Result<Self> {
        repository(&dir, false, objects)?;
        files::create_private_dir(&dir.join("info"))?;
        fs::write(dir.join("info/attributes"), ATTRIBUTES)?;
        Ok(Self { git, dir, place, lock: None })
    }

    /// One that was begun.
    pub fn open(git: &'a Git, dir: PathBuf, place: PathBuf) -> Self {
        Self { git, dir, place, lock: None }
    }

    /// Held until nothing of a git is left that was asked.
    pub fn holding(mut self, lock: Option<&'a File>) -> Self {
        self.lock = lock;
        self
    }

    fn ask(&self) -> Question<'_> {
        let question = self.git.ask(&self.place).variable("GIT_DIR", &self.dir).holding(self.lock);
        question.variable("GIT_WORK_TREE", &self.place).variable("GIT_INDEX_FILE", self.index())
    }

    /// Where it notes what is in the place.
    pub fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    fn scratch(&self) -> PathBuf {
        self.dir.join("scratch")
    }

    /// Fills an empty place with a commit.
    pub fn check_out(&self, commit: &str, watch: &Watch) -> Made<()> {
        let ask = self.ask().args(["read-tree", "--reset", "-u", "--no-recurse-submodules", commit]);
        ask.get(watch, &self.scratch()).map(drop)
    }

    /// Notes all that is in the place now, and what else a repository knows, by its index. Gives the tree.
    pub fn note(&self, known: Option<&Path>, watch: &Watch) -> Made<(String, Vec<String>)> {
        let scratch = self.scratch();
        let add = ["add", "--all", "--ignore-errors", "--", "."];
        let added = self.ask().args(add).try_get(watch, &scratch)?;
        let mut warnings = Vec::new();
        if !added.success {
            warnings.push(format!("not all of the place could be looked at: {}", added.said));
        }
        if let Some(known) = known.filter(|known| known.is_file()) {
            self.note_known(known, watch)?;
        }
        let tree = self.ask().arg("write-tree").get(watch, &scratch)?;
        Ok((String::from_utf8_lossy(&tree).trim().to_owned(), warnings))
    }

    /// Files that git knows though they are to be ignored.
    fn note_known(&self, index: &Path, watch: &Watch) -> Made<()> {
        let scratch = self.scratch();
        let list = ["ls-files", "-z", "--cached", "--ignored", "--exclude-per-directory=.gitignore"];
        let listed = self.ask().variable("GIT_INDEX_FILE", index).args(list).try_get(watch, &scratch)?;
        // An index that our git cannot read tells nothing.
        let paths = listed.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty() && listed.success);
        let is_there = |path: &&[u8]| {
            let data = fs::symlink_metadata(self.place.join(files::path_from_bytes(path)));
            data.is_ok_and(|data| data.is_file() || data.is_symlink())
        };
        let mut input = Vec::new();
        for path in paths.filter(is_there) {
            input.extend_from_slice(path);
            input.push(0);
        }
        if input.is_empty() {
            return Ok(());
        }
        self.ask()
            .args(["update-index", "--add", "-z", "--stdin"])
            .input(input)
            .get(watch, &scratch)
            .map(drop)
    }

    /// What has changed since a tree or commit was noted. The place is good for nothing else afterwards.
    pub fn changes(&self, since: &str, watch: &Watch) -> Made<Changes> {
        let mut changes = Changes::default();
        if let Err(error) = lay_open(&self.place, &mut changes.taken_out) {
            changes.warnings.push(format!("not all of the place could be looked at: {error}"));
        }
        let (tree, warnings) = self.note(None, watch)?;
        changes.warnings.extend(warnings);
        let mut answer = self.diff(since, &tree).most(LARGEST).try_get(watch, &self.scratch())?;
        if answer.success && std::str::from_utf8(&answer.stdout).is_err() {
            // Text in another encoding can only be told as bytes.
            let foreign = self.foreign(since, &tree, watch)?;
            fs::write(self.dir.join("info/attributes"), format!("{ATTRIBUTES}{foreign}"))
                .map_err(|error| failed(FailureKind::Crashed, format!("the patch failed: {error}")))?;
            answer = self.diff(since, &tree).most(LARGEST).try_get(watch, &self.scratch())?;
        }
        if answer.too_much {
            changes.warnings.push(format!(
                "what it changed is more than {} MB, so that there is no patch",
                LARGEST >> 20
            ));
            return Ok(changes);
        }
        if !answer.success {
            let message = format!("what it changed cannot be told: git diff-tree failed: {}", answer.said);
            return Err(failed(FailureKind::Crashed, message));
        }
        match String::from_utf8(answer.stdout) {
            Ok(patch) => changes.patch = Some(patch),
            Err(_) => {
                changes.warnings.push("what it changed is no text, so that there is no patch".to_owned())
            }
        }
        Ok(changes)
    }

    fn diff(&self, since: &str, tree: &str) -> Question<'_> {
        let ask = self.ask().args(["diff-tree", "-r", "-p", "--binary", "--full-index", "--find-renames"]);
        let ask = ask.args(["--no-ext-diff", "--no-textconv", "--no-color"]);
        ask.args(["--src-prefix=a/", "--dst-prefix=b/", since, tree])
    }

    /// Attributes by which files that are no UTF-8 text are told as bytes.
    fn foreign(&self, since: &str, tree: &str, watch: &Watch) -> Made<String> {
        let list = ["diff-tree", "-r", "--raw", "-z", "--no-renames", "--no-abbrev", since, tree];
        let raw = self.ask().args(list).get(watch, &self.scratch())?;
        let mut fields = raw.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        let mut attributes = String::new();
        while let (Some(about), Some(path)) = (fields.next(), fields.next()) {
            let about = String::from_utf8_lossy(about).into_owned();
            let objects =
                about.split(' ').skip(2).take(2).filter(|object| object.bytes().any(|byte| byte != b'0'));
            for object in objects {
                let ask = self.ask().args(["cat-file", "blob", object]).most(LARGEST);
                let blob = ask.try_get(watch, &self.scratch())?;
                if std::str::from_utf8(&blob.stdout).is_err() {
                    attributes.push_str(&format!("{} -diff\n", pattern(path)));
                    break;
                }
            }
        }
        Ok(attributes)
    }
}

/// A pattern of `.gitattributes` that means this path and no other.
fn pattern(path: &[u8]) -> String {
    let mut pattern = String::from("\"/");
    for &byte in path {
        match byte {
            b'*' | b'?' | b'[' | b'\\' => pattern.push_str(&format!("\\\\\\{byte:03o}")),
            b' '..=b'~' if byte != b'"' => pattern.push(char::from(byte)),
            _ => pattern.push_str(&format!("\\{byte:03o}")),
        }
    }
    pattern.push('"');
    pattern
}

/// Writes an empty repository.
pub fn repository(dir: &Path, bare: bool, objects: Option<&Path>) -> io::Result<()> {
    for part in ["objects/info", "refs/heads", "refs/tags"] {
        files::create_private_dir(&dir.join(part))?;
    }
    if let Some(objects) = objects {
        let mut line = objects.as_os_str().as_encoded_bytes().to_vec();
        line.push(b'\n');
        fs::write(dir.join("objects/info/alternates"), line)?;
    }
    fs::write(dir.join("config"), format!("[core]\n\trepositoryformatversion = 0\n\tbare = {bare}\n"))?;
    fs::write(dir.join("HEAD"), "ref: refs/heads/main\n")
}

/// Makes everything in a place readable, and takes out what git does not take for content: repositories, and what is no file.
fn lay_open(place: &Path, taken_out: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut result = Ok(());
    let mut waiting = vec![place.to_owned()];
    while let Some(dir) = waiting.pop() {
        let opened = open_up(&dir, 0o700).and_then(|()| fs::read_dir(&dir)?.collect::<io::Result<Vec<_>>>());
        let entries = match opened {
            Ok(entries) => entries,
            Err(error) => {
                result = Err(error);
                continue;
            }
        };
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type()?);
            let done = if is_repository(&entry.file_name()) {
                super::slot::remove(&path)
            } else if kind.is_dir() {
                waiting.push(path);
                Ok(())
            } else if kind.is_file() {
                open_up(&path, 0o400)
            } else if kind.is_symlink() {
                Ok(())
            } else {
                let removed = fs::remove_file(&path);
                if removed.is_ok() && taken_out.len() < MOST_TAKEN_OUT {
                    taken_out.push(path);
                }
                removed
            };
            result = result.and(done);
        }
    }
    result
}

fn open_up(path: &Path, needed: u32) -> io::Result<()> {
    let mode = files::mode(&fs::symlink_metadata(path)?);
    match mode & needed == needed {
        true => Ok(()),
        false => files::set_mode(path, mode & 0o777 | needed),
    }
}
