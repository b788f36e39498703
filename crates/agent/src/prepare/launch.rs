//! The launch of a headless CLI: its command line, its standard input, and where its output goes.

use std::path::PathBuf;

use serde_json::Value;

use super::prompt::Delivery;
use super::{Directories, RunError, arguments, command};
use crate::acp::responses;
use crate::env::Environment;
use crate::find::Gemini;
use crate::home::Home;
use crate::rate_limit::OnRateLimit;
use crate::request::ResolvedRequest;
use crate::run_dir::RunDir;
use crate::supervise::protocol::{self, Launch};
use crate::telemetry;

/// Where a run is.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub dir: PathBuf,
    pub user_home: PathBuf,
    pub user_settings: Value,
}

impl Surroundings {
    pub(super) fn launch(
        &self,
        gemini: &Gemini,
        request: &ResolvedRequest,
        prompt: Delivery,
        home: Option<&Home>,
        run_dir: &RunDir,
        environment: &mut Environment,
    ) -> Result<Launch, RunError> {
        let Surroundings { dir, user_home, user_settings } = self;
        let prompt = prompt.place(run_dir.path(), dir, gemini, request)?;
        let mut args = prompt.first;
        args.extend(["--output-format".into(), "stream-json".into()]);
        args.extend(arguments::of(request, gemini, home, run_dir.path(), user_home, user_settings)?);
        if responses::can_be_recorded(gemini, request, user_settings, (user_home, dir), environment) {
            args.push(responses::option(run_dir));
            if let Some(meter) = run_dir.meter() {
                let traces = telemetry::traces(run_dir.path(), environment);
                meter.record(&responses::file(run_dir), traces.as_deref());
            }
        }
        args.extend(prompt.last);
        let directories = Directories { work: dir, run: run_dir.path(), home: user_home };
        let (program, args) = command(gemini, request, directories, user_settings, environment, args, None)?;
        environment.set("TMPDIR", run_dir.temporary());
        let temporary = vec![run_dir.temporary().as_os_str().to_owned()];
        let own = vec![run_dir.path().as_os_str().to_owned()];
        // What is needed for another start goes with the run, not with the CLI.
        let (remove, remove_when_abandoned) = match request.on_rate_limit {
            OnRateLimit::Fail => (temporary, own),
            OnRateLimit::Wait(_) | OnRateLimit::Model(_) => (Vec::new(), [temporary, own].concat()),
        };
        Ok(Launch {
            version: protocol::VERSION,
            mark: run_dir.mark().to_owned(),
            program,
            args,
            env: environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            dir: dir.clone().into_os_string(),
            stdin: prompt.stdin,
            stdout: run_dir.path().join("stdout").into_os_string(),
            stderr: run_dir.path().join("stderr").into_os_string(),
            finish: home.map(Home::plan),
            remove_when_abandoned,
            remove,
            require_keeper: request.require_keeper,
        })
    }
}
