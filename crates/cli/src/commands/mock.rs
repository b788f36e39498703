//! `alhena mock`: the scripted API for other programs, which then run the real CLI without a key.

mod background;
mod log;
mod told;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use alhena_agent::ResolvedRequest;
use alhena_agent::env::Environment;
use alhena_scripted::{Scenario, Server, tour};
use alhena_sys::handles::{self, Handle, OwnedHandle};
use alhena_sys::poll::{self, Wanted};
use alhena_sys::processes::{self, Process};
use alhena_sys::signals::{self, ENDING};
use alhena_sys::sockets::Stream;

use self::told::Told;
use crate::cassette::CassetteArgs;
use crate::command_error::{CommandError, Done};
use crate::commands::options::{Given, OfMock};
use crate::mock_home::MockHome;
use crate::offline;
use crate::output::{self, say};

/// Serve the scripted API, so that any program that uses Gemini CLI can be tested with the real CLI and no key.
///
/// The first line on stdout is the address, for GOOGLE_GEMINI_BASE_URL; behind it, in shell, stands everything that Gemini
/// CLI needs: also a home of its own, because 0.61.0 takes an address only where its settings select a key. Requests are
/// shown on stderr as they come. It serves until ^C or SIGTERM, until the reader of its output is gone, or until --pid ends.
///
/// --env leaves the server in the background for the shell that asks. It ends with that shell, by --stop, or when the shell asks
/// for another one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena mock                                serve the tour, as `alhena run --offline` has it
  alhena mock greeting.json                  serve a scenario
  alhena mock good.json bad.json             two: .../s/good and .../s/bad; the bare address is the first
  eval \"$(alhena mock --env)\"                for all that this shell starts
  eval \"$(alhena mock --env other.json)\"     another one in its place
  eval \"$(alhena mock --stop)\"               end that; the shell's variables are as before
  alhena mock --json --pid $PPID             for programs: one line of JSON, and an end with the program
  alhena mock --cassette talk.json           record what passes to the real API; the next time play it back

What a scenario may say is in schemas/scenario.json, and with examples in the chapter `testing` of the documentation.")]
pub struct Args {
    /// Scenario files, or `tour`; NAME=FILE gives one another name than its file's. Without any: the tour.
    #[arg(value_name = "SCENARIO", conflicts_with = "cassette")]
    scenarios: Vec<String>,
    #[command(flatten)]
    cassette: Given<OfMock>,
    /// The port on 127.0.0.1; 0 is a free one.
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Serve in the background for the shell that asks, and print what it has to export.
    #[arg(long)]
    env: bool,
    /// End the server that `--env` left in the background for this shell, and print what gives it its variables back.
    #[arg(long, conflicts_with_all = ["env", "scenarios", "port", "pid", "trust", "log", "cassette"])]
    stop: bool,
    /// End when this process has ended.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Let Gemini CLI trust every folder that it is started in, and load what the folder has of settings.
    #[arg(long)]
    trust: bool,
    /// Write the requests into this file instead of stderr.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Say nothing on stderr but errors.
    #[arg(long, short)]
    quiet: bool,
    /// Print the address and the variables as one line of JSON.
    #[arg(long)]
    json: bool,
    /// Be that server: tell once, and be silent from then on.
    #[arg(long, hide = true, requires = "json")]
    background: bool,
}

pub fn execute(args: Args) -> Done {
    if args.stop {
        return background::stop(args.json);
    }
    let scenarios = scenarios(&args.scenarios)?;
    if args.env {
        return background::start(&args);
    }
    if args.background {
        // ^C is for whoever is in the foreground, and not for what serves it.
        processes::leave_session();
    }
    let watched = args.pid.map(watched).transpose()?;
    let ending = Ending::catch().map_err(|error| CommandError::failed(error, ""))?;
    serve(&args, scenarios, watched.as_ref(), &ending)
}

fn serve(
    args: &Args,
    scenarios: Vec<(String, Scenario)>,
    watched: Option<&Watched>,
    ending: &Ending,
) -> Done {
    let environment = Environment::of_process();
    let home = MockHome::new(&environment).map_err(|error| {
        CommandError::failed(
            format!("a home for Gemini CLI could not be made: {error}"),
            "Set HOME, or ALHENA_HOME, to a directory that can be written to.",
        )
    })?;
    let server = start(args.port)?;
    let cassette = CassetteArgs::of(&args.cassette.options);
    let inserted = cassette.insert(&server, None, &ResolvedRequest::default(), &environment, &home)?;
    let silent = args.background || args.quiet;
    if let Some((path, inserted)) = cassette.cassette.as_deref().zip(inserted.as_ref()).filter(|_| !silent) {
        inserted.notice(path).into_iter().for_each(say);
    }
    if let Some(log) = log::open(args.log.as_deref(), silent)? {
        server.observe(move |seen| log.tell(seen));
    }
    let served = if inserted.is_some() { Vec::new() } else { add(&server, scenarios) };
    // Whoever is recorded has a key of their own.
    let key = inserted.as_ref().is_none_or(|inserted| !inserted.is_recording).then_some(told::KEY);
    let told = Told::new(&server.url(), served, home.path(), key, args, &environment);
    if let Err(error) = told.print(args.json) {
        return Ok(output::written(Err(error)));
    }
    if args.background {
        background::fall_silent().map_err(|error| CommandError::failed(error, ""))?;
    } else if !args.quiet {
        say("Serving until ^C.");
    }
    let output = (!args.background).then(handles::stdout);
    ending.wait(watched, output);
    drop(server);
    drop(home);
    Ok(ExitCode::SUCCESS)
}

fn start(port: u16) -> Result<Server, CommandError> {
    Server::start_on(port).map_err(|error| {
        CommandError::failed(
            format!("127.0.0.1:{port} cannot be listened on: {error}"),
            "Leave out --port to get a free one.",
        )
    })
}

/// Serves the scenarios, the first of them at the bare address too.
fn add(server: &Server, scenarios: Vec<(String, Scenario)>) -> Vec<(String, String)> {
    if let Some((first, _)) = scenarios.first() {
        server.serve_at_root(first);
    }
    let served = scenarios.into_iter().map(|(name, scenario)| {
        let url = server.add(&name, scenario);
        (name, url)
    });
    served.collect()
}

/// What to serve, by name.
fn scenarios(given: &[String]) -> Result<Vec<(String, Scenario)>, CommandError> {
    if given.is_empty() {
        return Ok(vec![(TOUR.to_owned(), tour())]);
    }
    let mut names = BTreeSet::new();
    let mut scenarios = Vec::new();
    for word in given {
        let (name, path) = named(word);
        let scenario = match path {
            None => tour(),
            Some(path) => offline::read_scenario(path)?,
        };
        if !names.insert(name.clone()) {
            return Err(CommandError::usage(
                format!("two scenarios have the name {name:?}"),
                "Give one of them another name: NAME=FILE.",
            ));
        }
        scenarios.push((name, scenario));
    }
    Ok(scenarios)
}

const TOUR: &str = "tour";

/// The name and the file of a scenario; no file for the tour.
fn named(word: &str) -> (String, Option<&Path>) {
    let path = Path::new(word);
    match word.split_once('=') {
        _ if word == TOUR && !path.exists() => (TOUR.to_owned(), None),
        Some((name, file)) if !name.is_empty() && !name.contains('/') && !path.exists() => {
            (name.to_owned(), (file != TOUR).then_some(Path::new(file)))
        }
        _ => (path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), Some(path)),
    }
}

/// A process whose end is waited for.
struct Watched(OwnedHandle);

fn watched(pid: u32) -> Result<Watched, CommandError> {
    let process = Process::of(pid).ok_or(std::io::ErrorKind::NotFound.into());
    process.and_then(|process| processes::end_of(process.pid)).map(Watched).map_err(|error| {
        CommandError::usage(
            format!("the process {pid} cannot be watched: {error}"),
            "Give the number of a process that runs, such as $$.",
        )
    })
}

/// Signals that ask for the end.
struct Ending(Stream);

impl Ending {
    fn catch() -> std::io::Result<Self> {
        signals::as_socket(&ENDING).map(Self)
    }

    /// Waits for one, for the end of the watched process, or for the reader of the output to go.
    fn wait(&self, watched: Option<&Watched>, output: Option<Handle<'_>>) {
        let mut wanted = vec![Wanted::readable(&self.0)];
        wanted.extend(watched.map(|Watched(end)| Wanted::readable(end)));
        if let Some(output) = &output {
            wanted.push(Wanted::hung_up(output));
        }
        while poll::wait(&wanted, None).is_ok_and(|come| !come.contains(&true)) {}
    }
}

/// The process that `--env` serves: the shell that takes what is printed, which may be a subshell, and not the copy of it
/// that is made for `$(...)`. That one has a pipe of its own for its output.
fn asking() -> Option<u32> {
    let mut pid = processes::own_parent()?;
    while let (Some(above), Some(pipe)) = (processes::copied_from(pid), processes::output_pipe(pid)) {
        if processes::output_pipe(above).as_ref() == Some(&pipe) {
            break;
        }
        pid = above;
    }
    Some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_called_after_its_file_or_as_one_says() {
        assert_eq!(named("dir/good.json"), ("good".to_owned(), Some(Path::new("dir/good.json"))));
        assert_eq!(named("x=dir/good.json"), ("x".to_owned(), Some(Path::new("dir/good.json"))));
        assert_eq!(named("tour"), ("tour".to_owned(), None));
        assert_eq!(named("first=tour"), ("first".to_owned(), None));
    }
}
