//! The submitter's side: a job becomes a letter that refers to nothing on this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_agent::RunError;
use alhena_batch::job::{Job, Place};
use alhena_batch::meaning::{Ask, Checked, Fault, Meaning, Options};
use alhena_model::options::AnswerSchema;
use serde_json::Value;

use super::letter::{self, Letter};
use super::table::{self, Travels};

/// Knows the options of `run`, and which of them may travel.
pub struct OptionsThatTravel {
    inner: Arc<dyn Meaning>,
}

impl OptionsThatTravel {
    pub fn new(inner: Arc<dyn Meaning>) -> Self {
        Self { inner }
    }
}

impl Meaning for OptionsThatTravel {
    fn is_option(&self, name: &str) -> bool {
        self.inner.is_option(name)
    }

    fn value_of_text(&self, name: &str, text: &str) -> Value {
        self.inner.value_of_text(name, text)
    }

    fn check(&self, options: &Options) -> Result<Checked, Vec<Fault>> {
        self.check_in(options, &Place::Dir)
    }

    fn check_in(&self, options: &Options, place: &Place) -> Result<Checked, Vec<Fault>> {
        let mut known = options.clone();
        // The files with defaults that count for `run` are on this machine, or on the worker.
        known.insert("no_config".to_owned(), Value::Bool(true));
        let travelling = |name: &str| !matches!(place, Place::Copy) || name != "dir";
        let mut faults: Vec<Fault> = options
            .iter()
            .filter(|(name, _)| travelling(name))
            .filter_map(|(name, value)| table::fault(name, value))
            .collect();
        if let Place::Git(checkout) = place
            && table::repository(&checkout.url).is_none()
        {
            faults.push(Fault::new(
                format!("git: {:?} is no address that a worker can have", checkout.url),
                "Give one with https:// or ssh://, or a path below the worker's root.",
            ));
        }
        // What was told already is not judged as if it were on this machine.
        known.retain(|name, value| table::fault(name, value).is_none() || !travelling(name));
        for (name, travels) in table::TABLE {
            if *travels == Travels::BelowRoot && travelling(name) {
                known.shift_remove(*name);
            }
        }
        let checked = self.inner.check(&known);
        match checked {
            Ok(checked) if faults.is_empty() => {
                let dir = options.get("dir").and_then(Value::as_str).unwrap_or_default();
                // On every worker the same: those that write there go one after another, wherever they are.
                Ok(Checked { dir: plain(Path::new("/root of workers"), Path::new(dir)), ..checked })
            }
            Ok(_) => Err(faults),
            Err(more) => {
                faults.extend(more);
                Err(faults)
            }
        }
    }

    fn ask(&self, _: &Options, _: Option<&Path>) -> Result<Ask, RunError> {
        Err(RunError::usage("jobs that travel are done elsewhere", ""))
    }
}

/// A path without what means nothing.
fn plain(root: &Path, dir: &Path) -> PathBuf {
    root.join(dir).components().collect()
}

/// A folder in the queue: the name by which it is had from there, and what was left out of it.
pub type Kept = (String, Vec<String>);

/// The letter of a job. `keep` takes a folder into the queue.
pub fn pack(job: &Job, keep: impl FnOnce(&Path) -> Result<Kept, Fault>) -> Result<Letter, Fault> {
    let mut options = job.options.clone();
    let mut left_out = Vec::new();
    let place = match &job.place {
        Place::Dir => letter::Place::Dir,
        Place::Git(checkout) => letter::Place::of_checkout(checkout),
        Place::Copy => {
            let dir = options.shift_remove("dir");
            let dir = dir.as_ref().and_then(Value::as_str).unwrap_or(".");
            let (folder, missing) = keep(Path::new(dir))?;
            left_out = missing;
            letter::Place::Copy { folder }
        }
    };
    for (name, travels) in table::TABLE {
        match (travels, options.get(*name)) {
            (Travels::AsContent(as_text), Some(file)) => {
                let text = content(file)?;
                options.shift_remove(*name);
                options.insert((*as_text).to_owned(), Value::String(text));
            }
            (Travels::AsSchema, Some(Value::String(given))) => {
                let schema = alhena_agent::read_schema(&AnswerSchema::FileOrText(given.into()))
                    .map_err(|error| Fault::new(error.to_string(), ""))?;
                options.insert((*name).to_owned(), schema);
            }
            _ => {}
        }
    }
    let (version, id, mark) = (letter::VERSION, job.id.clone(), job.mark.to_string());
    let outputs = job.outputs.patterns().to_vec();
    Ok(Letter { version, id, line: job.line, mark, options, place, outputs, left_out })
}

fn content(file: &Value) -> Result<String, Fault> {
    let path = PathBuf::from(file.as_str().map_or_else(|| file.to_string(), str::to_owned));
    let mut text = String::new();
    alhena_sys::files::open(&path)
        .and_then(|mut file| std::io::Read::read_to_string(&mut file, &mut text))
        .map_err(|error| Fault::new(format!("{}: {error}", path.display()), "Give a text file."))?;
    Ok(text)
}
