//! Starts a worker as the command line says, and ends it on signals.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_agent::{PoolOptions, ResolvedRequest};
use alhena_batch::local::{Local, Way};
use alhena_batch::meaning::Meaning;
use alhena_batch::perform::Stop;
use alhena_batch::queue::{Label, Layout};
use alhena_batch::remote::folder::Folders;
use alhena_batch::remote::worker::{Worker, WorkerEnd, WorkerOptions};
use alhena_model::FailureKind;

use super::Args;
use super::print::EventPrinter;
use crate::command_error::{CommandError, Done};
use crate::commands::batch::OptionsOfRun;
use crate::commands::run::find;
use crate::far::{Gate, OptionsOfWorker};
use crate::nats;
use crate::signals::Interrupts;

pub fn start(args: Args) -> Done {
    let interrupts = Arc::new(Interrupts::catch());
    let labels: Vec<Label> =
        args.label.iter().map(|label| label.parse()).collect::<Result<_, _>>().map_err(nats::wrong)?;
    let root = root(&args.root)?;
    let meaning = Arc::new(OptionsOfRun::new(interrupts.clone(), args.quiet || args.json));
    let environment = Environment::of_process();
    let mut request = ResolvedRequest::default();
    let gemini = find(args.gemini.clone(), &mut request, &environment, args.quiet, &interrupts)?;
    // A signal ends whoever looks for it, and must not end jobs that are to finish.
    meaning.knows(gemini.clone());
    let jobs = args.jobs.map_or_else(|| PoolOptions::default().processes, usize::from);
    let (queue, address) = args.server.connect(args.nats.as_deref(), Layout::default().lease(args.lease))?;
    let dirs = Dirs::of(&environment).ok_or_else(|| {
        CommandError::usage("there is no home directory to work with", "Set HOME, or ALHENA_HOME.")
    })?;
    let folders = Folders::new(&dirs.cache.join("workers")).map_err(|error| {
        CommandError::failed(format!("no place for folders: {error}"), "Make room for it.")
    })?;
    // What a run leaves whose keeper and guard are killed together comes to us.
    let _by_mark_only = alhena_agent::supervise::adoption::every_child_is_a_runs();
    let meaning: Arc<dyn Meaning> = Arc::new(OptionsOfWorker::new(meaning));
    let local = Local::new(meaning, Way::from(args.transport), jobs)?;
    let name = args.name.clone().unwrap_or_else(own_name);
    let printer = Arc::new(EventPrinter { json: args.json, quiet: args.quiet });
    let below = root.display().to_string();
    let gate = Gate { root, most: args.max_approval, gemini: gemini.path.clone() };
    let prints = printer.clone();
    let worker = Worker::new(WorkerOptions {
        queue,
        name: name.clone(),
        quota: args.quota.clone(),
        admit: Box::new(move |envelope, unpack| gate.admit(envelope, unpack)),
        folders,
        local,
        tell: Box::new(move |event| prints.event(event)),
    });
    let (interrupted, prints) = (worker.clone(), printer.clone());
    interrupts.tell(move |count| match count {
        1 => {
            interrupted.drain();
            prints.say("no more jobs are taken; those that run finish. Once more gives them back.");
        }
        2 => interrupted.stop(Stop::Gently),
        _ => interrupted.stop(Stop::AtOnce),
    });
    printer.say(&format!(
        "{name} takes {jobs} jobs at once from {}, below {below}, up to approval {}",
        address.shown(),
        args.max_approval,
    ));
    match worker.run(jobs, &labels, args.idle_exit).map_err(nats::wrong)? {
        WorkerEnd::Broken(failure) => {
            let code = failure.kind.exit_status();
            Err(CommandError::failed(failure.message, failure.hint).exit(code))
        }
        WorkerEnd::Stopped => Ok(ExitCode::from(FailureKind::Cancelled.exit_status())),
        WorkerEnd::Drained => Ok(ExitCode::SUCCESS),
    }
}

fn root(given: &Path) -> Result<PathBuf, CommandError> {
    let wrong = |why: String| {
        CommandError::usage(format!("{}: {why}", given.display()), "Give --root a directory that exists.")
    };
    let root = given.canonicalize().map_err(|error| wrong(error.to_string()))?;
    match (root.is_dir(), root.to_str()) {
        (true, Some(_)) => Ok(root),
        (false, _) => Err(wrong("it is no directory".to_owned())),
        (true, None) => Err(wrong("its name is no text".to_owned())),
    }
}

fn own_name() -> String {
    let machine = alhena_sys::platform::machine_name().to_string_lossy().into_owned();
    format!("{machine}-{}", std::process::id())
}
