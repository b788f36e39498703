//! Batches that workers do: submitted, and asked after from anywhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use alhena_batch::meaning::Meaning;
use alhena_batch::queue::{Batch, Label, Layout, Name, Progress, Queue, QueueError};
use alhena_batch::remote::submitter::{self, MissingResult, Submitter, SubmitterEvent, SubmitterOptions};
use alhena_batch::schedule;
use alhena_sys::platform;
use serde_json::json;

use super::jobs::MOST_TOLD;
use super::{By, OfQueue, OptionsOfRun, Work, check_page, finish};
use crate::command_error::{CommandError, Done};
use crate::far::{OptionsThatTravel, pack};
use crate::nats;
use crate::output::{print, print_json, say, write, written};
use crate::signals::Interrupts;
use crate::style::{number, one_line};

/// So many jobs are in the queue at once: enough for whoever goes away and wants them done.
const IN_QUEUE: usize = 10_000;
/// The same where it has to be possible to stop before all are begun.
const CAREFUL: usize = 100;
/// So long workers have to ask for jobs, if there are any.
const LOOKED: Duration = Duration::from_secs(2);

/// Puts the jobs into the queue and gathers what comes of them.
pub fn submit(args: &Work, url: &str) -> Done {
    if args.transport != By::Auto {
        let message = "--transport is for this machine, and workers choose their own";
        return Err(CommandError::usage(message, "Give it to `alhena worker`."));
    }
    check_page(args)?;
    let interrupts = Arc::new(Interrupts::catch());
    let label = args.label.as_deref().map_or(Ok(Label::any()), str::parse).map_err(nats::wrong)?;
    let inner: Arc<dyn Meaning> = Arc::new(OptionsOfRun::new(interrupts.clone(), args.quiet));
    let (control, inbox) = schedule::control();
    let supply = args.supply(Arc::new(OptionsThatTravel::new(inner)), &control)?;
    let given: Option<Name> = args.name.as_deref().map(str::parse).transpose().map_err(nats::wrong)?;
    // Whatever is refused here leaves no file of results behind.
    let (queue, address) = args.server.connect(Some(url), Layout::default())?;
    let results = will_be_at(args.into());
    let name = given.unwrap_or_else(|| name_of(&results));
    let jobs = supply.entries().len() as u64;
    let marks = std::iter::once(name_of(&results).to_string());
    let marks: Vec<String> = marks.chain(supply.mark().map(|mark| mark.to_string())).collect();
    let there = queue.batch(&name).map_err(nats::wrong)?;
    if let Some(other) = there.as_ref().filter(|there| there.is_of_another(&marks)) {
        return Err(of_another(&name, other));
    }
    let journal = args.journal()?;
    let known = submitter::known(&journal);
    let batch = Batch::new(jobs, journal.path().display().to_string()).marks(marks.clone());
    let is_over = there.is_some_and(|there| there.finished);
    announce(&queue, &name, &batch, known.is_empty() && is_over).map_err(nats::wrong)?;
    if !args.quiet {
        say(format_args!("batch {name} at {}", address.shown()));
    }
    let (server, of_jobs) = (address.shown(), label.clone());
    let submitter = Submitter::begin(SubmitterOptions {
        queue: queue.clone(),
        batch: name.clone(),
        label,
        control: control.clone(),
        announced: batch,
        known,
        pack: Box::new(|job, keep| pack(job, keep)),
        watches_workers: !args.quiet,
        tell: Box::new(move |event| tell(event, &server, &of_jobs)),
    })
    .map_err(nats::wrong)?;
    let careful = args.max_cost.is_some() || args.fail_fast;
    let window = args.at_once.map_or(if careful { CAREFUL } else { IN_QUEUE }, usize::from);
    let ended =
        args.run((supply, journal), args.limits(window), submitter.clone(), (control, inbox), &interrupts);
    submitter.close();
    let ended = ended?;
    if submitter.was_cancelled() {
        say(format_args!("batch {name} was cancelled"));
    } else if ended.why.is_none() && ended.left == 0 {
        let about = ended.journal.path().display().to_string();
        let mut batch = Batch::new(ended.supply.entries().len() as u64, about).marks(marks);
        batch.finished = true;
        queue.announce(&name, &batch).map_err(nats::wrong)?;
    }
    finish(args, &ended)
}

/// Says what happens to a batch at this server, whose jobs have this label.
fn tell(event: SubmitterEvent, server: &str, label: &Label) {
    match event {
        SubmitterEvent::Disconnected => {
            say(format_args!("the connection to {server} is lost; it is tried again and again"));
        }
        SubmitterEvent::Reconnected => say(format_args!("the connection to {server} is back")),
        SubmitterEvent::NoWorker => {
            let more = if *label == Label::any() { String::new() } else { format!(" --label {label}") };
            say(format_args!("{}: start one with `alhena worker --nats {server}{more}`", no_worker(label)));
        }
        SubmitterEvent::NotStored(error) => say(format_args!("{error}; once more")),
        SubmitterEvent::NotGathered(error) => say(format_args!("{error}; it is asked again and again")),
        SubmitterEvent::StorageLost => say("NATS lost what it had stored; the queue is set up again"),
        SubmitterEvent::JobsVanished(count) => {
            say(format_args!("{count} jobs had vanished from the queue and are put into it again"));
        }
        SubmitterEvent::NotWithdrawn(error) => say(format_args!("{error}: a job stays in the queue")),
        SubmitterEvent::Refused(refused) => {
            let (subject, reason) = (one_line(&refused.subject, 120), one_line(&refused.reason, 300));
            say(format_args!("passed over {subject}: {reason}"));
        }
    }
}

fn no_worker(label: &Label) -> String {
    match *label == Label::any() {
        true => "no worker takes jobs".to_owned(),
        false => format!("no worker takes jobs with the label {label}"),
    }
}

fn announce(queue: &Queue, name: &Name, batch: &Batch, anew: bool) -> Result<(), QueueError> {
    // Whoever has all results and throws them away wants the jobs done anew.
    if anew {
        queue.forget(name)?;
    }
    queue.announce(name, batch)
}

/// Where the results will be, whether they are there or not.
fn will_be_at(results: &Path) -> PathBuf {
    let there = || results.canonicalize().ok();
    let dir = results.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let not_yet = || Some(dir.canonicalize().ok()?.join(results.file_name()?));
    there().or_else(not_yet).unwrap_or_else(|| results.to_owned())
}

fn of_another(name: &Name, other: &Batch) -> CommandError {
    let message = format!(
        "batch {name} has other jobs, whose results go to {}; its name cannot be used twice",
        other.about
    );
    let hint = format!("Give another --name, or `alhena batch forget {name}` first.");
    CommandError::usage(message, hint)
}

/// The same for the same results file on the same machine, whatever happened meanwhile.
fn name_of(results: &Path) -> Name {
    let stem = results.file_stem().unwrap_or_default().to_string_lossy();
    let machine = platform::machine_name();
    Name::derived(&stem, &[machine.as_encoded_bytes(), results.as_os_str().as_encoded_bytes()])
}

fn named(of: &OfQueue) -> Result<(Queue, Name), CommandError> {
    let name = of.name.as_deref().ok_or_else(|| {
        CommandError::usage("the name of the batch is missing", "`alhena batch status` lists them.")
    })?;
    let name = name.parse::<Name>();
    let name = name.map_err(|error| CommandError::usage(error, "`alhena batch status` lists them."))?;
    let (queue, _) = of.server.connect(of.nats.as_deref(), Layout::default())?;
    Ok((queue, name))
}

fn unknown(name: &Name) -> CommandError {
    CommandError::failed(format!("there is no batch {name}"), "`alhena batch status` lists them.")
}

pub fn status(of: &OfQueue) -> Done {
    let (queue, names) = match &of.name {
        Some(_) => {
            let (queue, name) = named(of)?;
            (queue, vec![name])
        }
        None => {
            let (queue, _) = of.server.connect(of.nats.as_deref(), Layout::default())?;
            let names = queue.batches().map_err(nats::wrong)?;
            (queue, names.iter().filter_map(|name| name.parse().ok()).collect())
        }
    };
    let mut lines = Vec::<String>::new();
    let mut all = Vec::new();
    for name in &names {
        match queue.progress(name).map_err(nats::wrong)? {
            Some(progress) => {
                let unattended = match progress.open > 0 && !progress.cancelled {
                    true => queue.unattended(name, LOOKED).map_err(nats::wrong)?,
                    false => Vec::new(),
                };
                let mut told = json!({"name": name.to_string(), "progress": progress});
                if let Some(told) = told.as_object_mut().filter(|_| !unattended.is_empty()) {
                    let labels = unattended.iter().map(ToString::to_string).collect();
                    told.insert("unattended".to_owned(), labels);
                }
                let words = unattended.iter().map(|label| format!("; {}", no_worker(label)));
                lines.push(std::iter::once(line(name, &progress)).chain(words).collect());
                all.push(told);
            }
            None if of.name.is_some() => return Err(unknown(name)),
            None => {}
        }
    }
    Ok(match of.json {
        true if of.name.is_some() => print_json(&all.pop()),
        true => print_json(&all),
        false if lines.is_empty() => print("there are no batches"),
        false => print(&lines.join("\n")),
    })
}

fn line(name: &Name, now: &Progress) -> String {
    let mut line = format!(
        "{name}: {} jobs, {} results, {} in the queue or at work",
        number(now.jobs),
        number(now.results),
        number(now.open)
    );
    if now.dead > 0 {
        line.push_str(&format!(", {} dead", number(now.dead)));
    }
    match (now.cancelled, now.finished) {
        (true, _) => line.push_str(", cancelled"),
        (false, true) => line.push_str(", finished"),
        (false, false) => {}
    }
    line
}

pub fn cancel(of: &OfQueue) -> Done {
    let (queue, name) = named(of)?;
    if queue.batch(&name).map_err(nats::wrong)?.is_none() {
        return Err(unknown(&name));
    }
    queue.cancel(&name).map_err(nats::wrong)?;
    let progress = queue.progress(&name).map_err(nats::wrong)?;
    Ok(match (of.json, progress) {
        (true, progress) => print_json(&json!({"name": name.to_string(), "progress": progress})),
        (false, Some(progress)) => print(&line(&name, &progress)),
        (false, None) => print(&format!("{name}: cancelled")),
    })
}

pub fn forget(of: &OfQueue) -> Done {
    let (queue, name) = named(of)?;
    if queue.batch(&name).map_err(nats::wrong)?.is_none() {
        return Err(unknown(&name));
    }
    queue.forget(&name).map_err(nats::wrong)?;
    Ok(match of.json {
        true => print_json(&json!({"name": name.to_string(), "forgotten": true})),
        false => print(&format!("{name}: forgotten")),
    })
}

/// The last attempt of each job that has one, in the order in which the jobs were done first. What cannot be had is told at the end.
pub fn results(of: &OfQueue) -> Done {
    let (queue, name) = named(of)?;
    if queue.batch(&name).map_err(nats::wrong)?.is_none() {
        return Err(unknown(&name));
    }
    let (results, missing) = submitter::results(&queue, &name).map_err(nats::wrong)?;
    let printed = write(|out| {
        for result in &results {
            out.write_all(result.line().map_err(std::io::Error::other)?.as_bytes())?;
        }
        Ok(())
    });
    match missing.is_empty() {
        true => Ok(written(printed)),
        false => Err(incomplete(&name, &missing)),
    }
}

/// What is wrong with results of a batch, and with which.
fn incomplete(name: &Name, missing: &[MissingResult]) -> CommandError {
    let told = missing.iter().take(MOST_TOLD);
    let mut lines: Vec<String> =
        told.map(|(what, why)| format!("{}: {}", one_line(what, 120), one_line(why, 300))).collect();
    if missing.len() > MOST_TOLD {
        lines.push(format!("and {} more", missing.len() - MOST_TOLD));
    }
    CommandError::failed(
        format!("not all results of batch {name} can be had:\n  {}", lines.join("\n  ")),
        "The others were printed. Whoever submitted it has them done again with --again failed.",
    )
}
