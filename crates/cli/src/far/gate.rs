//! The worker's side: a letter becomes a job, or is refused. Whoever wrote it is not trusted with anything that the worker's
//! owner has not allowed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena::agent::env;
use alhena::batch::job::{Checkout, Job, Mark, Place};
use alhena::batch::meaning::{Ask, Checked, Fault, Meaning, Options};
use alhena::batch::outputs::Outputs;
use alhena::model::options::BadValue;
use alhena::{Approval, RunError, Trust};
use serde_json::Value;

use super::letter::{self, Letter};
use super::table::{self, Repository, Travels};

/// What a worker lets in.
pub struct Gate {
    /// Nothing works outside of it; without links.
    pub root: PathBuf,
    /// The most that a model may do without being asked.
    pub most: Approval,
    /// The CLI that does it; the one that is found otherwise.
    pub gemini: PathBuf,
}

pub(super) fn refused(message: impl Into<String>, hint: impl Into<String>) -> Fault {
    Fault::new(format!("the worker refuses it: {}", message.into()), hint)
}

impl Gate {
    /// The job that a letter asks for. `unpack` gives the folder that travelled with it.
    pub fn admit(
        &self,
        letter: &Letter,
        unpack: impl FnOnce(&str) -> Result<PathBuf, Fault>,
    ) -> Result<Job, Fault> {
        if letter.version != letter::VERSION {
            return Err(letter::of_another_release());
        }
        let mark: Mark = letter.mark.parse().map_err(|()| refused("it has no mark", ""))?;
        let mut options = Options::new();
        for (name, value) in &letter.options {
            self.option(name, value)?;
            let value = match table::travels(name) {
                Some(Travels::BelowRoot) if !self.is_in_checkout(name, letter) => self.below(name, value)?,
                _ => value.clone(),
            };
            options.insert(name.clone(), value);
        }
        self.approve(&mut options)?;
        let place = match &letter.place {
            letter::Place::Dir => {
                if !options.contains_key("dir") {
                    options.insert("dir".to_owned(), text(&self.root));
                }
                Place::Dir
            }
            letter::Place::Copy { folder } => {
                if options.contains_key("dir") {
                    return Err(refused("its folder travels with it, and it names another", ""));
                }
                options.insert("dir".to_owned(), text(&unpack(folder)?));
                Place::Copy
            }
            letter::Place::Git { url, reference, dir } => Place::Git(self.checkout(url, reference, dir)?),
        };
        let outputs =
            Outputs::new(letter.outputs.clone()).map_err(|Fault { message, hint }| refused(message, hint))?;
        // Files of the worker itself stay where they are.
        if place == Place::Dir && !outputs.is_empty() {
            return Err(refused("outputs are for jobs with a place of their own", "Add copy or git."));
        }
        options.insert("no_config".to_owned(), Value::Bool(true));
        if !letter.is_offline() {
            options.insert("gemini".to_owned(), text(&self.gemini));
        }
        Ok(Job { id: letter.id.clone(), line: letter.line, options, place, outputs, mark })
    }

    /// In a checkout, `dir` is no option any more.
    fn is_in_checkout(&self, name: &str, letter: &Letter) -> bool {
        name == "dir" && matches!(letter.place, letter::Place::Git { .. })
    }

    fn option(&self, name: &str, value: &Value) -> Result<(), Fault> {
        let Some(travels) = table::travels(name) else {
            return Err(refused(format!("it does not know the option {name:?}"), "Leave it out."));
        };
        if let Some(Fault { message, hint }) = table::fault(name, value) {
            return Err(refused(message, hint));
        }
        match travels {
            Travels::AsContent(_) => Err(refused(format!("{name} names a file of the worker"), "")),
            Travels::AsSchema if !value.is_object() => Err(refused(format!("{name} is no schema"), "")),
            Travels::WhereAllIsAllowed if self.most != Approval::Yolo => Err(refused(
                format!("{name} lets the model do what this worker does not allow"),
                "Leave it out, or start a worker that allows yolo.",
            )),
            _ => Ok(()),
        }
    }

    /// Says the mode in so many words: no default of anything else may count.
    fn approve(&self, options: &mut Options) -> Result<(), Fault> {
        let said = match options.get("approval") {
            None => Approval::Default,
            Some(Value::String(said)) => said
                .parse()
                .map_err(|_: BadValue| refused(format!("there is no approval mode {said:?}"), ""))?,
            Some(_) => return Err(refused("approval is no text", "")),
        };
        let least = match (options.get("approval"), said.rank() <= self.most.rank()) {
            (_, true) => said,
            // Whoever says nothing asks for nothing.
            (None, false) => self.most,
            (Some(_), false) => {
                let most = self.most;
                return Err(refused(
                    format!("approval {said} is more than this worker allows, which is {most}"),
                    format!("Ask for less, or start a worker that allows {said}."),
                ));
            }
        };
        options.insert("approval".to_owned(), Value::String(least.to_string()));
        Ok(())
    }

    /// Paths as they are on this machine, links resolved.
    fn below(&self, name: &str, value: &Value) -> Result<Value, Fault> {
        let resolve = |path: &str| {
            self.resolve(Path::new(path)).map_err(|why| {
                refused(format!("{name} {path:?} {why}"), "Give a directory that is below the worker's root.")
            })
        };
        match value {
            Value::Array(_) => {
                let paths = table::texts(value).unwrap_or_default();
                let paths: Result<Vec<Value>, Fault> =
                    paths.into_iter().map(|path| resolve(path).map(|path| text(&path))).collect();
                Ok(Value::Array(paths?))
            }
            _ => resolve(value.as_str().unwrap_or_default()).map(|path| text(&path)),
        }
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf, String> {
        let full = self.root.join(path);
        let real = full.canonicalize().map_err(|error| format!("is not there: {error}"))?;
        match real.starts_with(&self.root) && table::is_below(path) {
            true => Ok(real),
            false => Err("leads out of the worker's root".to_owned()),
        }
    }

    fn checkout(&self, url: &str, reference: &str, dir: &str) -> Result<Checkout, Fault> {
        let hint = "Give an address with https:// or ssh://, or a path below the worker's root.";
        let wrong = |text: &str| text.starts_with('-') || text.contains('\0') || text.trim().is_empty();
        if wrong(url) || wrong(reference) || !table::is_below(Path::new(dir)) {
            return Err(refused("there is something wrong with its checkout", hint));
        }
        let url = match table::repository(url) {
            Some(Repository::Elsewhere) => url.to_owned(),
            Some(Repository::BelowRoot) => {
                let path = self.resolve(Path::new(url));
                path.map_err(|why| refused(format!("git: {url:?} {why}"), hint))?
                    .to_string_lossy()
                    .into_owned()
            }
            None => return Err(refused(format!("git: {url:?} is no address that it takes"), hint)),
        };
        Ok(Checkout { url, reference: reference.to_owned(), dir: PathBuf::from(dir) })
    }
}

fn text(path: &Path) -> Value {
    Value::String(path.to_string_lossy().into_owned())
}

/// What the options mean on a worker: what they mean anywhere, but nothing that a folder brings along counts.
pub struct OptionsOfWorker {
    inner: Arc<dyn Meaning>,
}

impl OptionsOfWorker {
    pub fn new(inner: Arc<dyn Meaning>) -> Self {
        Self { inner }
    }
}

impl Meaning for OptionsOfWorker {
    fn is_option(&self, name: &str) -> bool {
        self.inner.is_option(name)
    }

    fn value_of_text(&self, name: &str, text: &str) -> Value {
        self.inner.value_of_text(name, text)
    }

    fn check(&self, options: &Options) -> Result<Checked, Vec<Fault>> {
        self.inner.check(options)
    }

    fn ask(&self, options: &Options, place: Option<&Path>) -> Result<Ask, RunError> {
        let mut ask = self.inner.ask(options, place)?;
        // A folder may have come from elsewhere, or a job before may have worked in it: its settings, hooks and servers would be
        // programs that a job has chosen.
        ask.request.trust = Trust::Run;
        ask.environment.set(env::GEMINI_CLI_TRUST_WORKSPACE, "false");
        Ok(ask)
    }
}

#[cfg(test)]
mod tests;
