//! The worker's side of an envelope: it becomes a job, or is refused. Whoever wrote it can do only what the owner of the worker allows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alhena_agent::{RunError, Trust, env};
use alhena_model::options::Setting;
use alhena_model::policy::{PathUse, is_below, travel_errors};
use alhena_model::{Approval, Policy, Prompt, Refusal, RunOptions, SettingError};

use super::envelope::{self, JobEnvelope, refused};
use crate::job::{BadMark, Checkout, Job, Mark, Place};
use crate::launcher::{Launch, Launcher};
use crate::outputs::Outputs;
use crate::travel::Repository;

/// Decides which jobs run on a worker, and how.
pub struct Admission {
    /// Everything is below it; without symbolic links.
    root: PathBuf,
    policy: Policy,
    /// The Gemini CLI that runs the jobs.
    gemini: PathBuf,
}

impl Admission {
    /// Admits jobs that work below a directory without symbolic links, up to an approval mode.
    pub fn new(root: PathBuf, max_approval: Approval, gemini: PathBuf) -> Self {
        let policy = Policy {
            root: Some(root.clone()),
            base: root.clone(),
            max_approval,
            allow_env: Vec::new(),
            allow_programs: false,
        };
        Self { root, policy, gemini }
    }

    /// Returns the job of an envelope. `unpack` returns the folder that travelled with it.
    pub fn admit(
        &self,
        envelope: &JobEnvelope,
        unpack: impl FnOnce(&str) -> Result<PathBuf, SettingError>,
    ) -> Result<Job, SettingError> {
        if envelope.version != envelope::VERSION {
            return Err(envelope::of_another_release());
        }
        let mark: Mark = envelope.mark.parse().map_err(|error: BadMark| refused(&error.to_string(), ""))?;
        let mut options = envelope.options.run.clone();
        let place = match &envelope.place {
            envelope::Place::Dir => Place::Dir,
            envelope::Place::Copy { .. } if options.dir.is_some() => {
                return Err(refused("its folder travels with it, and it names another", ""));
            }
            envelope::Place::Copy { .. } => Place::Copy,
            envelope::Place::Git { url, reference, dir } => {
                // The directory is one of the checkout.
                options.dir = None;
                Place::Git(self.checkout(url, reference, dir)?)
            }
        };
        let prompt = Prompt::Text(envelope.options.prompt.clone());
        prompt.check()?;
        if let Some(error) = travel_errors(&options, false).into_iter().next() {
            return Err(refused(&error.to_string(), &error.fix));
        }
        let resolve = |setting, path: &Path, used| self.directory(setting, path, used);
        self.policy.admit(None, &mut options, resolve).map_err(|refusal| self.refusal(refusal))?;
        let outputs = Outputs::new(envelope.outputs.clone())
            .map_err(|error| refused(&error.to_string(), &error.fix))?;
        // Files of the worker itself stay where they are.
        if place == Place::Dir && !outputs.is_empty() {
            return Err(refused("outputs are for jobs with a place of their own", "Add copy or git."));
        }
        match &envelope.place {
            envelope::Place::Dir => {
                options.dir.get_or_insert_with(|| self.root.clone());
            }
            envelope::Place::Copy { folder } => options.dir = Some(unpack(folder)?),
            envelope::Place::Git { .. } => {}
        }
        // No default of anything else counts.
        options.approval.get_or_insert(Approval::Default.min(self.policy.max_approval));
        options.no_config = true;
        if !envelope.is_offline() {
            options.gemini = Some(self.gemini.clone());
        }
        Ok(Job { id: envelope.id.clone(), line: envelope.line, prompt, options, place, outputs, mark })
    }

    fn refusal(&self, refusal: Refusal<SettingError>) -> SettingError {
        match refusal {
            Refusal::Approval(mode) => {
                let most = self.policy.max_approval;
                refused(
                    &format!("`approval` {mode} is more than this worker allows, which is {most}"),
                    &format!("Ask for less, or start a worker that allows {mode}."),
                )
            }
            Refusal::Grant(setting) => refused(
                &format!("{setting} lets the model do what this worker does not allow"),
                "Leave it out, or start a worker that allows yolo.",
            ),
            Refusal::Path(error) => error,
            // None of them travels.
            Refusal::Program(setting, _) | Refusal::Never(setting) | Refusal::NotJson(setting, _) => {
                refused(&format!("{setting} is not for a worker"), "Leave it out.")
            }
            Refusal::Variable(_) => refused("`env` is not for a worker", "Leave it out."),
            Refusal::Recording => refused("`cassette` is not for a worker", "Leave it out."),
        }
    }

    fn directory(&self, setting: Setting, path: &Path, used: PathUse) -> Result<PathBuf, SettingError> {
        match used {
            PathUse::Directory => self.resolve(path).map_err(|why| {
                refused(
                    &format!("{setting} {path:?} {why}"),
                    "Give a directory that is below the worker's root.",
                )
            }),
            PathUse::Read | PathUse::Write => {
                Err(refused(&format!("{setting} names a file of the worker"), ""))
            }
        }
    }

    fn resolve(&self, path: &Path) -> Result<PathBuf, String> {
        let real = self.root.join(path).canonicalize().map_err(|error| format!("is not there: {error}"))?;
        match real.starts_with(&self.root) && is_below(path) {
            true => Ok(real),
            false => Err("leads out of the worker's root".to_owned()),
        }
    }

    fn checkout(&self, url: &str, reference: &str, dir: &str) -> Result<Checkout, SettingError> {
        let hint = "Give an address with https:// or ssh://, or a path below the worker's root.";
        let wrong = |text: &str| text.starts_with('-') || text.contains('\0') || text.trim().is_empty();
        if wrong(url) || wrong(reference) || !is_below(Path::new(dir)) {
            return Err(refused("there is something wrong with its checkout", hint));
        }
        let url = match Repository::of(url) {
            Some(Repository::Elsewhere) => url.to_owned(),
            Some(Repository::BelowRoot) => {
                let path = self.resolve(Path::new(url));
                let path = path.map_err(|why| refused(&format!("git: {url:?} {why}"), hint))?;
                path.to_string_lossy().into_owned()
            }
            None => return Err(refused(&format!("git: {url:?} is no address that it takes"), hint)),
        };
        Ok(Checkout { url, reference: reference.to_owned(), dir: PathBuf::from(dir) })
    }
}

/// Launches jobs of others: nothing that a folder brings along counts.
pub struct WorkerLauncher(pub Arc<dyn Launcher>);

impl Launcher for WorkerLauncher {
    fn check(&self, prompt: Option<&Prompt>, options: &RunOptions) -> Result<RunOptions, RunError> {
        self.0.check(prompt, options)
    }

    fn launch(
        &self,
        prompt: Option<&Prompt>,
        options: &RunOptions,
        copy: Option<&Path>,
    ) -> Result<Launch, RunError> {
        let mut launch = self.0.launch(prompt, options, copy)?;
        // A folder may have come from elsewhere, or a job before may have worked in it: its settings, hooks and servers would be
        // programs that a job has chosen.
        launch.request.trust = Trust::Run;
        launch.environment.set(env::GEMINI_CLI_TRUST_WORKSPACE, "false");
        Ok(launch)
    }
}

#[cfg(test)]
mod tests;
