//! `alhena run`.

pub mod asked;
mod confirm;
mod options;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use alhena_agent::env::Environment;
use alhena_agent::{Finder, NotFound, Place};
use alhena_agent::{Gemini, ResolvedRequest, Run, RunError};
use alhena_model::RunOptions;
use alhena_model::{Failure, FailureKind, Outcome, Status};
use alhena_sys::handles;

use self::asked::{Asked, Who};
pub use self::options::Args;

use crate::cassette;
use crate::command_error::{CommandError, Done, complain_of_start};
use crate::config::Config;
use crate::echo::Echo;
use crate::listener;
use crate::offline;
use crate::output::{self, Stream, say};
use crate::signals::{self, Interrupts};
use crate::style::with_flags;
use crate::views::{self, Claims, Name, Target};

pub fn execute(args: Args) -> Done {
    let config = config(&args.given.options);
    let chosen = args.view.or_else(|| config.as_ref().ok()?.view);
    let view = chosen.unwrap_or_else(|| {
        match args.output.as_ref().is_none_or(|path| path.as_os_str() == "-") && Stream::Out.is_terminal() {
            true => Name::Pretty,
            false if args.given.options.schema.is_some() => Name::Data,
            false => Name::Text,
        }
    });
    let (target, file) = target(args.output.as_ref())
        .map_err(|error| CommandError::usage(error, "Give a file that can be written to."))?;
    let (quiet, verbose) = (args.quiet, args.verbose);
    let interrupts = Interrupts::catch();
    // What a run leaves whose keeper and guard are killed together comes to us.
    let _by_mark_only = alhena_agent::supervise::adoption::every_child_is_a_runs();
    let started = config.and_then(|config| begin(args, view, config, &interrupts));
    if started.is_ok() || view.says_failures() {
        // What is no plain file, such as a pipe, has nothing to lose.
        let _not_a_file = file.as_ref().map(|file| file.set_len(0));
    }
    let outcome = match started {
        Ok((run, offline, cassette)) => {
            if offline.is_some() && !quiet {
                // Said whatever the view: nobody may take the scripted model for a real one.
                say(format_args!("{}.", offline::NOTICE));
            }
            match &file {
                Some(file) => listener::stop_when_gone(file, run.stopper()),
                None => listener::stop_when_gone(handles::stdout(), run.stopper()),
            }
            // A run that is over already has nothing more to say.
            let echo = verbose.then(|| Echo::of(&run.about().stderr).ok());
            let outcome = follow(run, &interrupts, view, target, quiet);
            drop(echo);
            drop(offline);
            let ended = outcome.as_deref().ok();
            cassette
                .into_iter()
                .flat_map(|cassette| cassette.take_out(ended))
                .for_each(|complaint| say(with_flags(&complaint)));
            outcome
        }
        Err(error) => {
            let code = error.exit_status();
            if !view.says_failures() || !quiet {
                complain_of_start(&error);
            }
            // Whoever reads the outcome gets one also when nothing could be started.
            let outcome = Outcome::not_begun(error.into_failure());
            views::failed_to_start(view, outcome, target);
            return Ok(ExitCode::from(code));
        }
    };
    Ok(match outcome {
        Ok(outcome) => ExitCode::from(outcome.exit_status()),
        Err(error) => output::written(Err(error)),
    })
}

/// The file as well, which still holds what it held: a request that is refused costs nothing.
fn target(output: Option<&PathBuf>) -> io::Result<(Target, Option<File>)> {
    let Some(path) = output.filter(|path| path.as_os_str() != "-") else {
        return Ok((Target::stdout(), None));
    };
    File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .and_then(|file| Ok((Target::file(BufWriter::new(file.try_clone()?)), Some(file))))
        .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// The defaults in files, for where this runs.
pub fn config(options: &RunOptions) -> Result<Config, RunError> {
    Config::of_run(options.dir.as_deref(), options.trust, options.no_config, &Environment::of_process())
}

/// Everything up to the start.
fn begin(
    args: Args,
    view: Name,
    config: Config,
    interrupts: &Interrupts,
) -> Result<(Run, Option<offline::Offline>, Option<cassette::OfRun>), RunError> {
    let mut environment = Environment::of_process();
    let quiet = args.quiet;
    let Asked { mut request, who, options } = options::asked(args, view, &config, interrupts)?;
    let gemini = match who {
        Who::Other(agent) => return Ok((agent.start(request, &environment)?, None, None)),
        Who::Gemini(gemini) => gemini,
    };
    let offline = offline::prepare(&options, &mut request, &mut environment)?;
    let cassette = cassette::prepare(&options, &mut request, &mut environment)?;
    let gemini = match (gemini, offline.is_some()) {
        (None, true) => super::install::fetched(None, &environment, quiet)?,
        (path, _) => find(path, &mut request, &environment, quiet, interrupts)?,
    };
    let run = gemini.start(request, &environment)?;
    Ok((run, offline, cassette))
}

/// Looks for the CLI, on the run's own time: a command that has to be asked for its version may take long.
pub fn find(
    path: Option<PathBuf>,
    request: &mut ResolvedRequest,
    environment: &Environment,
    quiet: bool,
    interrupts: &Interrupts,
) -> Result<Gemini, RunError> {
    if let Some(version) = path.as_deref().and_then(super::install::as_version) {
        return super::install::fetched(Some(version), environment, quiet);
    }
    let start = Instant::now();
    let deadline = request.timeout.and_then(|timeout| start.checked_add(timeout));
    let mut finder = Finder::new().env(environment.clone()).trust(request.trust);
    finder = finder.deadline(deadline).stop_when(signals::have_come);
    if let Some(dir) = &request.dir {
        finder = finder.dir(dir);
    }
    if let Some(path) = path {
        finder = finder.path(path);
    }
    let (found, tried) = finder.find_first();
    if interrupts.caught().is_some() {
        return Err(cancelled("Stopped before Gemini CLI was found"));
    }
    if let Some(timeout) = request.timeout.filter(|timeout| start.elapsed() >= *timeout) {
        let message = format!("the time limit of {timeout:?} was over before Gemini CLI told its version");
        return Err(RunError::Failed(Box::new(Failure::new(FailureKind::Timeout, message))));
    }
    request.began = Some(start);
    // Whoever has a CLI in the project expects that one.
    let passed_over = tried.iter().filter(|tried| tried.place == Place::Project && tried.is_worth_telling());
    request.notices.extend(passed_over.map(|tried| format!("{tried}; it was passed over")));
    found.ok_or_else(|| super::detect::not_found(&NotFound { tried }))
}

fn cancelled(message: &str) -> RunError {
    RunError::Failed(Box::new(Failure::new(FailureKind::Cancelled, message)))
}

/// Prints the run until it is over. ^C and the like stop it; the outcome then says so.
fn follow(
    mut run: Run,
    interrupts: &Interrupts,
    view: Name,
    target: Target,
    quiet: bool,
) -> io::Result<std::sync::Arc<Outcome>> {
    interrupts.stop(run.stopper());
    let mut view = views::open(view, target, quiet, Claims::Checked);
    view.transport(run.about().transport);
    let mut written = Ok(());
    while let Some(item) = run.next_item_blocking() {
        if written.is_ok() {
            written = views::show(&mut *view, item);
            if run.caught_up() {
                written = written.and_then(|()| view.caught_up());
            }
            if written.is_err() {
                // Nobody reads any more: what the agent does from here on nobody asked for.
                run.stop();
            }
        }
    }
    view.sessions(&run.session_files());
    let outcome = run.outcome_blocking();
    match written {
        Err(error) if !output::is_gone(&error) => return Err(error),
        before => match before.and(view.close(&outcome)) {
            Err(error) if !output::is_gone(&error) => return Err(error),
            Err(_) if outcome.status == Status::Cancelled && interrupts.caught().is_none() => {
                say("the run was cancelled, because nothing reads its output any more");
            }
            _ => {}
        },
    }
    Ok(outcome)
}
