//! Starting the CLI once more in the same run: it goes on with the session that an attempt before it has left.

use alhena_model::Setting;
use alhena_wire::release::Feature;
use serde_json::json;

use super::{RunError, arguments, launch, prompt};
use crate::env::Environment;
use crate::find::Gemini;
use crate::home::{self, Home, HomeRequest, Prepared, Resume};
use crate::rate_limit::{GO_ON, OnRateLimit};
use crate::request::{PromptBy, ResolvedRequest};
use crate::run_dir::RunDir;
use crate::supervise::protocol::Launch;

/// All that it takes.
pub(crate) struct Again {
    pub(super) gemini: Gemini,
    /// What is asked for next.
    pub(super) request: ResolvedRequest,
    pub(super) home: HomeRequest,
    pub(super) environment: Environment,
    pub(super) place: launch::Surroundings,
}

/// What an attempt has left of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The prompt, and what was answered to it.
    Begun(String),
    /// All that was there before it, and not the prompt: Gemini CLI takes one that was never answered out again (0.61.0).
    AsBefore(String),
    /// Nothing that is in the user's store.
    Nothing(Option<String>),
}

/// A CLI that is ready to be started.
pub(crate) struct Restart {
    pub launch: Launch,
    pub home: Option<Home>,
    pub warnings: Vec<String>,
}

impl Again {
    /// For whoever may need it. What the release cannot do is refused.
    pub(super) fn of(
        gemini: &Gemini,
        request: &ResolvedRequest,
        home: HomeRequest,
        environment: &Environment,
        place: launch::Surroundings,
    ) -> Result<Option<Self>, RunError> {
        if request.on_rate_limit == OnRateLimit::Fail {
            return Ok(None);
        }
        arguments::needs(&gemini.version, Feature::Resume, Setting::OnRateLimit)?;
        let (gemini, request, environment) = (gemini.clone(), request.clone(), environment.clone());
        Ok(Some(Self { gemini, request, home, environment, place }))
    }

    /// Gets the next start ready. So many turns the model has taken so far.
    pub(crate) fn prepare(
        &mut self,
        left: Left,
        model: Option<String>,
        turns: u64,
        run_dir: &RunDir,
    ) -> Result<Restart, RunError> {
        self.request.model = model.or(self.request.model.take());
        self.go_on_with(left);
        self.leave_turns(turns);
        self.home.resume.clone_from(&self.request.resume);
        self.home.session_id.clone_from(&self.request.session_id);
        let prepared =
            home::prepare(&self.home).map_err(|error| RunError::failed(error.kind(), error.to_string()))?;
        let (home, warnings) = match prepared {
            Prepared::Overlay(home) => {
                let warnings = home.warnings().to_vec();
                (Some(home), warnings)
            }
            // What that costs has been said.
            Prepared::Direct { .. } => (None, Vec::new()),
        };
        let mut environment = self.environment.clone();
        for (name, value) in home.iter().flat_map(Home::env) {
            environment.set(name, value);
        }
        let delivery = prompt::deliver(&self.request)?;
        let launch = self.place.launch(
            &self.gemini,
            &self.request,
            delivery,
            home.as_ref(),
            run_dir,
            &mut environment,
        )?;
        Ok(Restart { launch, home, warnings })
    }

    fn go_on_with(&mut self, left: Left) {
        let request = &mut self.request;
        match left {
            Left::Begun(session) => {
                request.prompt = Some(GO_ON.into());
                request.prompt_by = PromptBy::Auto;
                request.resume = Some(Resume::Id(session));
                request.session_id = None;
            }
            Left::AsBefore(session) => {
                request.resume = Some(Resume::Id(session));
                request.session_id = None;
            }
            // The same once more, and under the same name if that can be.
            Left::Nothing(session) => {
                if request.resume.is_none() && self.gemini.version.has(Feature::SessionIdFlag) {
                    request.session_id = request.session_id.take().or(session);
                }
            }
        }
    }

    /// What is left of the turns that the model may take.
    fn leave_turns(&mut self, taken: u64) {
        let Some(most) = self.request.max_turns else { return };
        let left = u64::from(most).saturating_sub(taken).max(1);
        self.home.settings.insert("model".to_owned(), json!({"maxSessionTurns": left}));
    }
}
