//! What the options of a job mean: what the same options of `run` mean.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alhena::agent::env::Environment;
use alhena::agent::facts::{self, TrustState};
use alhena::batch::job::FIELDS;
use alhena::batch::meaning::{Agent, Ask, Checked, Fault, Meaning, Options};
use alhena::model::{RunOptions, Setting};
use alhena::{Approval, Gemini, Hint, Request, RunError, Trust};
use parking_lot::Mutex;
use serde_json::Value;

use crate::cassette;
use crate::commands::install;
use crate::commands::run::asked::{Asked, Who, asked};
use crate::commands::run::{config, find};
use crate::offline::{self, Offline};
use crate::signals::Interrupts;

/// Options that name files which say what a job is.
const INPUTS: &[&str] = &["prompt_file", "system_prompt_file", "schema"];

/// Knows the options of `run`, and what many jobs share.
pub struct OptionsOfRun {
    environment: Environment,
    interrupts: Arc<Interrupts>,
    quiet: bool,
    /// Each CLI is looked for once in each directory.
    found: Mutex<HashMap<(Option<PathBuf>, PathBuf), Gemini>>,
    /// The scripted model, and the address of its tour, which all may take.
    offline: Mutex<Option<(Arc<Offline>, String)>>,
    scenarios: AtomicU64,
}

impl OptionsOfRun {
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

    fn asked(&self, given: &Options) -> Result<Asked, Vec<Fault>> {
        let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
        let (prompt, options) = RunOptions::with_prompt_from(given, &names)
            .map_err(|errors| errors.into_iter().map(Fault::from).collect::<Vec<_>>())?;
        let asked = prompt.ok_or_else(no_prompt).and_then(|prompt| {
            prompt.check()?;
            asked(prompt, options.clone(), &config(&options)?)
        });
        asked.map_err(|error| vec![Fault::new(error.to_string(), error.hint().unwrap_or_default())])
    }

    /// The scripted model, started when the first job needs it.
    fn offline(
        &self,
        scenario: Option<&Path>,
        approval: Option<Approval>,
        request: &mut Request,
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
        request: &mut Request,
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

impl Meaning for OptionsOfRun {
    fn is_option(&self, name: &str) -> bool {
        Setting::named(name).is_some()
    }

    fn value_of_text(&self, name: &str, text: &str) -> Value {
        Setting::named(name).map_or_else(|| text.into(), |setting| setting.value_of_text(text))
    }

    fn check(&self, options: &Options) -> Result<Checked, Vec<Fault>> {
        let asked = self.asked(options)?;
        let mut inputs: Vec<PathBuf> = Vec::new();
        for name in INPUTS {
            let named = options.get(*name).and_then(Value::as_str).map(PathBuf::from);
            inputs.extend(named.filter(|path| *name != "schema" || path.is_file()));
        }
        let dir = asked.request.dir.as_deref().unwrap_or(Path::new("."));
        let dir = dir.canonicalize().map_err(|error| {
            vec![Fault::new(format!("{}: {error}", dir.display()), "Give a directory that exists.")]
        })?;
        Ok(Checked { writes: may_write(&asked), dir, inputs })
    }

    fn ask(&self, options: &Options, place: Option<&Path>) -> Result<Ask, RunError> {
        let asked = self.asked(options).map_err(|mut wrong| {
            let Fault { message, hint } = wrong.pop().unwrap_or_else(|| Fault::new("it is no job", ""));
            RunError::Usage { message, hint }
        })?;
        let Asked { mut request, who, options } = asked;
        let transport = options.transport;
        let mut environment = self.environment.clone();
        let gemini = match who {
            Who::Other(agent) => {
                request.dir = place.map(Path::to_owned).or(request.dir);
                return Ok(Ask { request, agent: Agent::Other(agent), environment, transport, after: None });
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
        if let Some(place) = place {
            trust_as_original(&mut request, &environment);
            request.dir = Some(place.to_owned());
        }
        let after = move |outcome: &alhena::Outcome| {
            drop(offline);
            cassette.map(|cassette| cassette.take_out(Some(outcome))).unwrap_or_default()
        };
        let agent = Agent::Gemini(Box::new(gemini));
        Ok(Ask { request, agent, environment, transport, after: Some(Box::new(after)) })
    }
}

fn no_prompt() -> RunError {
    RunError::Usage { message: "there is no prompt".into(), hint: "Give a prompt or a `prompt_file`.".into() }
}

/// Whether an agent may change something without being asked.
fn may_write(asked: &Asked) -> bool {
    let Asked { request, who, options } = asked;
    // The scripted model may do everything, unless something else is said.
    let approval = match options.offline {
        Some(_) => options.approval.unwrap_or(Approval::Yolo),
        None => request.approval,
    };
    let reads_only = matches!(approval, Approval::Default | Approval::Plan)
        && request.allow_tools.is_empty()
        && request.rules.is_empty()
        && request.policies.is_empty()
        && request.mcp_servers.is_empty()
        && request.extra_args.is_empty();
    !reads_only || matches!(who, Who::Other(_))
}

/// A copy of a folder that the user trusts is trusted as that is.
fn trust_as_original(request: &mut Request, environment: &Environment) {
    let dir = request.dir.as_deref().unwrap_or(Path::new("."));
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let Some(home) = environment.gemini_home() else { return };
    if request.trust != Trust::WithSettings
        && matches!(facts::trust(&home, &dir, environment), TrustState::Trusted(_))
    {
        request.trust = Trust::WithSettings;
    }
}
