//! Runs of batches, workers and servers, prepared as `alhena run` prepares its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alhena_agent::env::Environment;
use alhena_agent::facts::{self, TrustState};
use alhena_agent::{Approval, Gemini, ResolvedRequest, RunError, Trust};
use alhena_agent::{Prompt, Whom};
use alhena_batch::launcher::{Launch, Launcher, setting_error};
use alhena_model::RunOptions;
use parking_lot::Mutex;

use crate::cassette;
use crate::commands::install;
use crate::commands::run::asked::{Asked, Who, asked};
use crate::commands::run::{config, find};
use crate::offline::{self, Offline};
use crate::signals::Interrupts;

/// Prepares runs, with what many of them share.
pub struct BinaryLauncher {
    environment: Environment,
    interrupts: Arc<Interrupts>,
    quiet: bool,
    /// Each CLI is looked for once in each directory.
    found: Mutex<HashMap<(Option<PathBuf>, PathBuf), Gemini>>,
    /// The scripted model, and the address of its tour, which all may take.
    offline: Mutex<Option<(Arc<Offline>, String)>>,
    scenarios: AtomicU64,
}

impl BinaryLauncher {
    pub fn new(interrupts: Arc<Interrupts>, quiet: bool) -> Self {
        Self {
            environment: Environment::of_process(),
            interrupts,
            quiet,
            found: Mutex::default(),
            offline: Mutex::default(),
            scenarios: AtomicU64::new(0),
        }
    }

    /// This one need not be looked for when it is named.
    #[cfg(feature = "nats")]
    pub fn knows(&self, gemini: Gemini) {
        let key = (Some(gemini.path.clone()), PathBuf::new());
        self.found.lock().insert(key, gemini);
    }

    /// The scripted model, started when the first job needs it.
    fn offline(
        &self,
        scenario: Option<&Path>,
        approval: Option<Approval>,
        request: &mut ResolvedRequest,
        environment: &mut Environment,
    ) -> Result<Arc<Offline>, RunError> {
        let mut started = self.offline.lock();
        let (offline, tour) = match &*started {
            Some(started) => started.clone(),
            None => {
                let offline = Arc::new(Offline::start(environment)?);
                let tour = offline.play("offline", offline::chosen(None)?);
                started.insert((offline, tour)).clone()
            }
        };
        let url = match scenario {
            // Its answers follow from what is asked.
            None => tour,
            // Each job begins at its beginning.
            Some(file) => {
                let number = self.scenarios.fetch_add(1, Ordering::Relaxed);
                offline.play(&format!("offline-{number}"), offline::chosen(Some(file))?)
            }
        };
        offline.point(&url, approval, request, environment);
        Ok(offline)
    }

    fn gemini(
        &self,
        named: Option<PathBuf>,
        offline: bool,
        request: &mut ResolvedRequest,
        environment: &Environment,
    ) -> Result<Gemini, RunError> {
        // Where it is named, it is the same for all.
        let dir = if named.is_some() { None } else { request.dir.clone() };
        let key = (named.clone(), dir.unwrap_or_default());
        // The lock is held meanwhile: many who begin at once look for it once.
        let mut found = self.found.lock();
        if let Some(gemini) = found.get(&key) {
            return Ok(gemini.clone());
        }
        let gemini = match (named, offline) {
            (None, true) => install::fetched(None, environment, self.quiet)?,
            (path, _) => {
                let gemini = find(path, request, environment, self.quiet, &self.interrupts)?;
                request.began = None;
                gemini
            }
        };
        found.insert(key, gemini.clone());
        Ok(gemini)
    }
}

impl Launcher for BinaryLauncher {
    fn check(&self, prompt: Option<&Prompt>, options: &RunOptions) -> Result<RunOptions, RunError> {
        asked(prompt.cloned(), options.clone(), &config(options)?.for_jobs()).map(|asked| asked.options)
    }

    fn launch(
        &self,
        prompt: Option<&Prompt>,
        options: &RunOptions,
        copy: Option<&Path>,
    ) -> Result<Launch, RunError> {
        let asked =
            config(options).and_then(|config| asked(prompt.cloned(), options.clone(), &config.for_jobs()));
        let Asked { mut request, who, options } = asked.map_err(|error| setting_error(&error))?;
        let mut environment = self.environment.clone();
        let gemini = match who {
            Who::Other(agent) => {
                request.dir = copy.map(Path::to_owned).or(request.dir);
                return Ok(Launch { request, agent: Whom::Other(agent), environment, after: None });
            }
            Who::Gemini(gemini) => gemini,
        };
        let offline = match &options.offline {
            Some(offline) => {
                Some(self.offline(offline.scenario(), options.approval, &mut request, &mut environment)?)
            }
            None => None,
        };
        let cassette = cassette::prepare(&options, &mut request, &mut environment)?;
        let gemini = self.gemini(gemini, offline.is_some(), &mut request, &environment)?;
        if let Some(copy) = copy {
            trust_as_original(&mut request, &environment);
            request.dir = Some(copy.to_owned());
        }
        let after = move |outcome: &alhena_model::Outcome| {
            drop(offline);
            cassette.map(|cassette| cassette.take_out(Some(outcome))).unwrap_or_default()
        };
        Ok(Launch { request, agent: Whom::Gemini(gemini), environment, after: Some(Box::new(after)) })
    }
}

/// A copy of a folder that the user trusts is trusted as that is.
fn trust_as_original(request: &mut ResolvedRequest, environment: &Environment) {
    let dir = request.dir.as_deref().unwrap_or(Path::new("."));
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let Some(home) = environment.gemini_home() else { return };
    if request.trust != Trust::WithSettings
        && matches!(facts::trust(&home, &dir, environment), TrustState::Trusted(_))
    {
        request.trust = Trust::WithSettings;
    }
}
