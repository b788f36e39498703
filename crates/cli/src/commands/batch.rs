//! `alhena batch`.

#[cfg(feature = "nats")]
mod elsewhere;
mod jobs;
pub mod meaning;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use alhena_agent::PoolOptions;
use alhena_agent::env::Environment;
use alhena_batch::journal::{Journal, NoJournal};
use alhena_batch::local::{Local, Way};
use alhena_batch::meaning::Meaning;
use alhena_batch::perform::{Perform, Stop};
use alhena_batch::progress::{Board, News, Observer};
use alhena_batch::registry::Registry;
use alhena_batch::schedule::{self, Batch, Changed, Control, Ended, Inbox, Limits, Why};
use alhena_batch::summary::Summary;
use alhena_batch::summary::page::{self, About};
use alhena_batch::supply::Supply;
use alhena_model::FailureKind;
use alhena_sys::files;
use clap::ValueEnum;

pub use self::meaning::OptionsOfRun;
use self::show::Show;
use crate::command_error::{CommandError, Done};
use crate::nats::NatsArgs;
use crate::output;
use crate::signals::Interrupts;

/// Run many prompts: a file of jobs in, a file of results out.
///
/// A job is a JSON object on a line: `id`, `prompt` or `prompt_file`, and any option of `run` by its name. The results are the
/// journal: the same command again goes on where it stopped. `alhena help batch` explains it.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  alhena batch jobs.jsonl --into results.jsonl --set trust=true
  alhena batch files.csv --into reviews.jsonl --template 'Review {file}'
  alhena batch jobs.jsonl --into results.jsonl --again failed
  alhena batch jobs.jsonl --into results.jsonl --nats nats://queue:4222   (done by `alhena worker`, wherever that runs)
  alhena batch status --nats nats://queue:4222
  git ls-files '*.rs' | jq -cR '{id: ., prompt: \"Review \\(.)\"}' | alhena batch - --into reviews.jsonl")]
pub struct Args {
    #[command(subcommand)]
    question: Option<Question>,
    #[command(flatten)]
    work: Work,
}

/// What can be asked from anywhere of a batch in a queue. A file of that name is ./status.
#[derive(Debug, clap::Subcommand)]
enum Question {
    /// How far a batch is, or all of them.
    Status(OfQueue),
    /// End a batch: what nobody has begun leaves the queue, and workers stop what they have.
    Cancel(OfQueue),
    /// Print the results that are there, one JSON object a line, as in the results file.
    Results(OfQueue),
    /// Forget a batch, with its results and files.
    Forget(OfQueue),
}

#[derive(Debug, clap::Args)]
struct OfQueue {
    /// The batch.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// The NATS server, or several of a cluster with commas between them [default: NATS_URL].
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    #[command(flatten)]
    server: NatsArgs,
    /// Print it as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct Work {
    /// The jobs: a file with a JSON object a line, or a table if it ends in .csv or .tsv; `-` is stdin.
    #[arg(value_name = "JOBS", required = true)]
    jobs: Option<PathBuf>,
    /// Where the results go, and from where a batch goes on.
    #[arg(long, value_name = "RESULTS", required = true)]
    into: Option<PathBuf>,
    /// Have the jobs done by workers: the address of their NATS server, or several of a cluster with commas between them.
    #[arg(long, value_name = "URL")]
    nats: Option<String>,
    /// What the batch is called there; by the results file otherwise.
    #[arg(long, value_name = "NAME", requires = "nats")]
    name: Option<String>,
    /// Only workers with this label take its jobs.
    #[arg(long, value_name = "LABEL", requires = "nats")]
    label: Option<String>,
    #[command(flatten)]
    server: NatsArgs,
    /// An option for all jobs that do not say it themselves; can be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    defaults: Vec<String>,
    /// Make the prompts of other fields, such as 'Review {file}'.
    #[arg(long, value_name = "TEXT")]
    template: Option<String>,
    /// How the jobs are written; by the name of the file otherwise.
    #[arg(long, value_enum)]
    format: Option<Written>,
    /// How many jobs run at once; by cores and free memory otherwise. With --nats, how many are in the queue at once.
    #[arg(long = "jobs", short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    at_once: Option<u16>,
    /// On warm processes, or on a new one for each job.
    #[arg(long, value_enum, default_value = "auto")]
    transport: By,
    /// How often a job is repeated whose failure may pass; rate limits are waited for besides.
    #[arg(long, value_name = "N", default_value_t = 2)]
    retries: u32,
    /// Begin no job any more once all of them have cost so many US dollars.
    #[arg(long, value_name = "USD", value_parser = alhena_model::options::dollars)]
    max_cost: Option<f64>,
    /// Begin no job any more once one has failed.
    #[arg(long)]
    fail_fast: bool,
    /// Have the results in the order of the jobs when it is over.
    #[arg(long)]
    ordered: bool,
    /// Do again what failed, or what is another job than when its result was written; can be repeated.
    #[arg(long, value_enum, value_name = "WHICH", value_delimiter = ',')]
    again: Vec<Again>,
    /// Write what came of it as a page with plots, over one that is there.
    #[arg(long, value_name = "FILE.html")]
    summary: Option<PathBuf>,
    /// Print what came of it as JSON.
    #[arg(long)]
    json: bool,
    /// Say nothing on stderr but errors.
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Written {
    /// A JSON object a line.
    Jsonl,
    /// A table with commas.
    Csv,
    /// A table with tabs.
    Tsv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Warm ones, unless a job says that it is headless, or asks for what several cannot share.
    Auto,
    /// Warm ones; a job that several cannot share one with fails.
    Warm,
    /// A new one for each job.
    Cold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Again {
    /// What failed.
    Failed,
    /// What is another job now.
    Changed,
}

impl From<By> for Way {
    fn from(by: By) -> Self {
        match by {
            By::Auto => Way::Auto,
            By::Warm => Way::Warm,
            By::Cold => Way::Cold,
        }
    }
}

#[cfg(not(feature = "nats"))]
pub fn execute(args: Args) -> Done {
    match (args.question, args.work.nats.is_some()) {
        (None, false) => here(&args.work),
        _ => Err(crate::nats::missing()),
    }
}

#[cfg(feature = "nats")]
pub fn execute(args: Args) -> Done {
    match (&args.question, &args.work.nats) {
        (Some(Question::Status(of)), _) => elsewhere::status(of),
        (Some(Question::Cancel(of)), _) => elsewhere::cancel(of),
        (Some(Question::Results(of)), _) => elsewhere::results(of),
        (Some(Question::Forget(of)), _) => elsewhere::forget(of),
        (None, Some(url)) => elsewhere::submit(&args.work, url),
        (None, None) => here(&args.work),
    }
}

impl Work {
    fn jobs(&self) -> &Path {
        self.jobs.as_deref().unwrap_or(Path::new("-"))
    }

    fn into(&self) -> &Path {
        self.into.as_deref().unwrap_or(Path::new(""))
    }

    fn limits(&self, jobs: usize) -> Limits {
        Limits {
            jobs,
            retries: self.retries,
            max_cost: self.max_cost,
            fail_fast: self.fail_fast,
            ordered: self.ordered,
            again_failed: self.again.contains(&Again::Failed),
            again_changed: self.again.contains(&Again::Changed),
        }
    }

    fn supply(&self, meaning: Arc<dyn Meaning>, control: &Control) -> Result<Supply, CommandError> {
        jobs::supply(self.jobs(), jobs::setting(self, meaning)?, control)
    }

    /// What was done before.
    fn journal(&self) -> Result<Journal, CommandError> {
        let journal = Journal::open(self.into()).map_err(|error| no_journal(self.into(), error))?;
        match journal.is_at(self.jobs()) {
            true => Err(CommandError::usage(
                format!("{} holds the jobs, and cannot hold the results", self.into().display()),
                "Give --into another file.",
            )),
            false => Ok(journal),
        }
    }

    /// Runs it to its end.
    fn run(
        &self,
        (supply, journal): (Supply, Journal),
        limits: Limits,
        perform: Arc<dyn Perform>,
        (control, inbox): (Control, Inbox),
        interrupts: &Interrupts,
    ) -> Result<Ended, CommandError> {
        let batch = Batch::new(supply, journal, limits, perform, (control.clone(), inbox))
            .map_err(|changed| changed_jobs(self.into(), &changed))?;
        interrupts.tell(move |count| match count {
            1 => control.drain(),
            2 => control.stop(Stop::Gently),
            _ => control.stop(Stop::AtOnce),
        });
        let mut show = Show::new(self.quiet);
        let ended = run(batch, self, &mut show);
        show.end();
        Ok(ended)
    }
}

/// On this machine.
fn here(args: &Work) -> Done {
    let interrupts = Arc::new(Interrupts::catch());
    let meaning: Arc<dyn Meaning> = Arc::new(OptionsOfRun::new(interrupts.clone(), args.quiet));
    check_page(args)?;
    let (control, inbox) = schedule::control();
    let supply = args.supply(meaning.clone(), &control)?;
    let jobs = args.at_once.map_or_else(|| PoolOptions::default().processes, usize::from);
    // What a run leaves whose keeper and guard are killed together comes to us.
    let _by_mark_only = alhena_agent::supervise::adoption::every_child_is_a_runs();
    let local = Arc::new(Local::new(meaning, args.transport.into(), jobs)?);
    if let Some(job) = supply.entries().iter().find(|job| job.private)
        && let Some(failure) = local.no_places()
    {
        let message = format!("{}:{}: {}", args.jobs().display(), job.line, failure.message);
        return Err(CommandError::usage(message, failure.hint));
    }
    let journal = args.journal()?;
    let both = (control, inbox);
    let ended = args.run((supply, journal), args.limits(jobs), local.clone(), both, &interrupts)?;
    if let Some(local) = Arc::into_inner(local) {
        local.close();
    }
    finish(args, &ended)
}

/// Runs it, seen by whoever looks at this terminal and by whoever asks this machine.
fn run(batch: Batch, args: &Work, show: &mut Show) -> Ended {
    let registry = Registry::of(&Environment::of_process());
    // One that cannot be noted runs all the same.
    let mut entered =
        registry.and_then(|registry| registry.enter(args.jobs(), batch.results(), batch.board()).ok());
    let ended = batch.run(&mut |news: &News, board: &Board| {
        show.news(news, board);
        entered.iter_mut().for_each(|entered| entered.note(board));
    });
    if let Some(entered) = entered {
        entered.end(&ended.progress, &Summary::of(&ended));
    }
    ended
}

/// Says beforehand why the page could not be written.
fn check_page(args: &Work) -> Result<(), CommandError> {
    let Some(page) = &args.summary else { return Ok(()) };
    let real = |path: &Path| path.canonicalize().ok();
    let why = match page.metadata() {
        _ if real(page).is_some()
            && [args.jobs(), args.into()].iter().any(|other| real(other) == real(page)) =>
        {
            "it holds the jobs or the results"
        }
        Ok(data) if !data.is_file() => "it is not a regular file",
        _ if page.file_name().is_none() => "it has no name",
        _ if page.parent().is_some_and(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()) => {
            "its directory does not exist"
        }
        _ => return Ok(()),
    };
    Err(CommandError::usage(format!("--summary {}: {why}", page.display()), "Give another file."))
}

/// Writes the page, whole or not at all.
fn write_page(args: &Work, ended: &Ended) -> Result<(), CommandError> {
    let Some(path) = &args.summary else { return Ok(()) };
    let about =
        About { jobs: &args.jobs().to_string_lossy(), results: &ended.journal.path().to_string_lossy() };
    files::replace(path, page::html(ended, &about).as_bytes(), 0o666).map_err(|error| {
        CommandError::failed(
            format!("{}: {error}", path.display()),
            "The results are complete; the same command writes the page again.",
        )
    })
}

fn no_journal(path: &Path, error: NoJournal) -> CommandError {
    let hint = match &error {
        NoJournal::Io(_) => "Give --into a file that can be written to.",
        NoJournal::InUse => "Wait for it, or give --into another file.",
        NoJournal::NotOurs { .. } => "Give --into another file; this one was not touched.",
    };
    CommandError::usage(format!("{}: {error}", path.display()), hint)
}

fn changed_jobs(path: &Path, changed: &Changed) -> CommandError {
    let some = |ids: &[String]| {
        let mut some: Vec<String> = ids.iter().take(5).map(|id| format!("{id:?}")).collect();
        if ids.len() > 5 {
            some.push(format!("{} more", ids.len() - 5));
        }
        some.join(", ")
    };
    let mut what = Vec::new();
    if !changed.changed.is_empty() {
        what.push(format!("jobs that are others now: {}", some(&changed.changed)));
    }
    if !changed.gone.is_empty() {
        what.push(format!("jobs that are not there any more: {}", some(&changed.gone)));
    }
    CommandError::usage(
        format!("{} has the results of {}", path.display(), what.join("; of ")),
        "Give --into another file, or go on with --again changed, which does changed jobs again and leaves the results of others.",
    )
}

/// Says what came of it.
fn finish(args: &Work, ended: &Ended) -> Done {
    let summary = Summary::of(ended);
    let code = exit_code(ended);
    let written = write_page(args, ended);
    let printed = match args.json {
        true => output::print_json(&summary),
        false => output::print(&show::summary(&summary, ended)),
    };
    written?;
    Ok(match printed == ExitCode::SUCCESS {
        true => ExitCode::from(code),
        false => printed,
    })
}

fn exit_code(ended: &Ended) -> u8 {
    match &ended.why {
        Some(Why::Interrupted) => FailureKind::Cancelled.exit_status(),
        Some(Why::Budget | Why::Unpriced) => FailureKind::Budget.exit_status(),
        Some(Why::Quota) => FailureKind::RateLimited.exit_status(),
        Some(Why::FailFast | Why::Journal(_) | Why::Jobs(_)) => 1,
        None => u8::from(!ended.is_success()),
    }
}
