//! Everything that the interactive CLI needs to be started in somebody's terminal.
//!
//! The same home, policies and arguments as a run's, without its output format. 0.61.0 updates itself in the background and
//! puts notices over the prompt, and its title is the best sign of what it does, so the settings say no to the first and
//! yes to the second.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::env::Environment;
use crate::find::Gemini;
use crate::home::Home;
use crate::prepare::{self, Common, RunError, arguments};
use crate::request::{Prompt, ResolvedRequest};
use crate::run_dir::RunDir;

/// A start of the interactive CLI.
#[derive(Debug)]
pub struct Interactive {
    /// What to run.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment, the mark included.
    pub env: Vec<(OsString, OsString)>,
    /// Where.
    pub dir: PathBuf,
    /// Stands in the environment of every process of it, as `ALHENA_RUN`.
    pub mark: String,
    /// Its own home, if it can have one.
    pub home: Option<Home>,
    /// What people should know.
    pub warnings: Vec<String>,
    /// Where the CLI writes its debug log.
    pub log: PathBuf,
    /// The MCP servers that its settings name, as far as settings tell: extensions may bring more.
    pub servers: Vec<String>,
    /// Holds what the arguments name, and its temporary files. Gone when dropped.
    pub run_dir: RunDir,
}

impl Gemini {
    /// Prepares an interactive start. Limits of time and the way of the prompt do not apply.
    pub fn interactive(
        &self,
        request: &ResolvedRequest,
        base: &Environment,
    ) -> Result<Interactive, RunError> {
        let Common { mut environment, home, dir, run_dir, user_home, user_settings, warnings, .. } =
            prepare::common(self, request, base, prepare::Own::new(settings))?;
        let mut args =
            arguments::of(request, self, home.as_ref(), run_dir.path(), &user_home, &user_settings)?;
        if let Some(Prompt::Text(text)) = &request.prompt
            && !text.trim().is_empty()
        {
            args.push(format!("--prompt-interactive={text}").into());
        }
        let directories = prepare::Directories { work: &dir, run: run_dir.path(), home: &user_home };
        let (program, args) =
            prepare::command(self, request, directories, &user_settings, &mut environment, args, None)?;
        let servers = prepare::servers::of(request, &user_home, &dir, &user_settings, base);
        let log = prepare::debug_log(&run_dir, &mut environment);
        let mark = run_dir.mark().to_owned();
        environment.set("TMPDIR", run_dir.temporary());
        environment.set(crate::env::ALHENA_RUN, mark.clone());
        let env = environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Interactive { program, args, env, dir, mark, home, warnings, log, servers, run_dir })
    }
}

fn settings(request: &ResolvedRequest, gemini: &Gemini, user: &Value) -> Map<String, Value> {
    let mut settings = prepare::settings_of_run(request, gemini, user);
    if let Some(Value::Object(general)) = settings.get_mut("general") {
        // The names since 0.32, and those before.
        for (name, value) in [
            ("enableAutoUpdate", false),
            ("enableAutoUpdateNotification", false),
            ("disableAutoUpdate", true),
            ("disableUpdateNag", true),
        ] {
            general.insert(name.to_owned(), Value::Bool(value));
        }
    }
    // The banner tells when it has finished its start.
    let ui = json!({
        "hideWindowTitle": false,
        "dynamicWindowTitle": true,
        "hideBanner": false,
        "useAlternateBuffer": false,
    });
    settings.insert("ui".to_owned(), ui);
    settings
}
