//! `alhena parse`: the same conversion without a process.

mod recognise;

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use alhena_agent::prices::NoPrices;
use alhena_agent::recording;
use alhena_model::{End, Exit, Input, Interpreter};
use alhena_model::{Event, Outcome};
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::report;
use clap::ValueEnum;

use super::sessions;
use super::sessions::convert::Form;
use crate::command_error::{CommandError, Done};
use crate::commands::options::{Given, OfPrices};
use crate::output;
use crate::views::{self, Claims, Name, Target, View};

/// Convert what Gemini CLI wrote, without running it.
///
/// The format is detected; override it with --from. The exit code is that of the outcome.
///
/// Saved output has no finish reason: an answer that was cut off is a success here, with `finish_reason` null. Only the recording of
/// a run has it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  gemini -o stream-json -p hi | alhena parse --as events
  alhena parse --exit-code 144 --stderr stderr.txt stdout.txt --as outcome
  alhena parse recording/")]
pub struct Args {
    /// A file, a recording's directory, or `-` for stdin.
    #[arg(value_name = "FILE|DIR", default_value = "-")]
    input: PathBuf,
    /// What it is; recognised by default, but plain text is not.
    #[arg(long, value_enum)]
    from: Option<From>,
    /// What to print; the outcome, or of a session and a message the messages, when not given.
    #[arg(long = "as", value_enum, value_name = "VIEW")]
    view: Option<Name>,
    /// The exit code of the process that wrote it. Without it the text alone decides.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    exit_code: Option<i32>,
    /// What the process wrote to stderr.
    #[arg(long, value_name = "FILE")]
    stderr: Option<PathBuf>,
    #[command(flatten)]
    prices: Given<OfPrices>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// Lines of --output-format stream-json.
    StreamJson,
    /// The object of --output-format json.
    Json,
    /// The text of --output-format text.
    Text,
    /// A session file, of any release.
    Session,
    /// A record of a session file, or several.
    Message,
}

pub fn execute(args: Args) -> Done {
    match convert(&args) {
        Ok(outcome) => Ok(ExitCode::from(outcome.exit_status())),
        Err(Trouble::Output(error)) => Ok(output::written(Err(error))),
        Err(Trouble::Prices(error)) => Err(error.into()),
        Err(Trouble::Input(error)) => Err(CommandError::usage(
            error,
            "Give a file that Gemini CLI wrote, or a directory made by `alhena run --record`.",
        )),
    }
}

/// What keeps a conversion from its end.
pub enum Trouble {
    /// It cannot be read, or is something else.
    Input(io::Error),
    /// What came of it cannot be printed.
    Output(io::Error),
    /// The prices cannot be had.
    Prices(NoPrices),
}

impl std::convert::From<NoPrices> for Trouble {
    fn from(error: NoPrices) -> Self {
        Trouble::Prices(error)
    }
}

impl std::convert::From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Input(error)
    }
}

fn convert(args: &Args) -> Result<Arc<Outcome>, Trouble> {
    let name = args.view.unwrap_or(Name::Outcome);
    let open = |claims| views::open(name, Target::stdout(), true, claims);
    if recording::is_recording(&args.input) {
        let mut view = open(Claims::Checked);
        view.transport(recording::transport(&args.input).map_err(|error| named(&args.input, &error))?);
        view.sessions(&recording::session_files(&args.input));
        let outcome = play(args, name, &mut *view)?;
        return view.close(&outcome).map(|()| outcome).map_err(Trouble::Output);
    }
    let mut input = input(&args.input)?;
    let from = match args.from {
        Some(from) => from,
        None => {
            let (head, from) = recognise::look(&mut *input).map_err(|error| named(&args.input, &error))?;
            input = Box::new(Cursor::new(head).chain(input));
            from
        }
    };
    let form = match from {
        From::Session => Form::Session,
        From::Message => Form::Message,
        From::StreamJson | From::Json | From::Text => {
            let mut view = open(Claims::Unchecked);
            let outcome = read(args, input, from, &mut *view)?;
            return view.close(&outcome).map(|()| outcome).map_err(Trouble::Output);
        }
    };
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|error| named(&args.input, &error))?;
    sessions::convert::convert(&bytes, form, args.view.unwrap_or(Name::Messages))?;
    // A session has no outcome, and so nothing that could have failed.
    let mut outcome = Outcome::default();
    outcome.status = alhena_model::Status::Success;
    Ok(Arc::new(outcome))
}

fn input(path: &Path) -> io::Result<Box<dyn Read>> {
    if path.is_dir() {
        return Err(io::Error::other(format!("{} is a directory without a recording", path.display())));
    }
    Ok(match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).map_err(|error| named(path, &error))?),
    })
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Prices of its own a recording has from when it was made; those that are asked for count all the same.
fn play(args: &Args, name: Name, view: &mut dyn View) -> Result<Arc<Outcome>, Trouble> {
    let dir = args.input.as_path();
    let (given, usual) = (args.prices.given()?, args.prices.read()?);
    let mut written = Ok(());
    let each = |item| {
        if written.is_ok() {
            written = views::show(view, item);
        }
    };
    let make = |interpreter: Interpreter| {
        let interpreter = match given {
            Some(prices) => interpreter.only_by_prices(prices),
            None => interpreter.with_prices(usual),
        };
        if name.wants_conversation() { interpreter.keeping_conversation() } else { interpreter }
    };
    let outcome = recording::play_by(dir, make, each).map_err(|error| named(dir, &error))?;
    if outcome.warnings.iter().any(|warning| warning == recording::ENDS_EARLY) {
        output::say(format_args!("{}: {}", dir.display(), recording::ENDS_EARLY));
    }
    written.map(|()| outcome).map_err(Trouble::Output)
}

fn read(args: &Args, input: Box<dyn Read>, from: From, view: &mut dyn View) -> Result<Arc<Outcome>, Trouble> {
    let stderr = match &args.stderr {
        Some(path) => {
            let bytes = std::fs::read(path).map_err(|error| named(path, &error))?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        None => String::new(),
    };
    let exit = args.exit_code.map_or(Exit::Unknown, |code| match code {
        // As Python and others write a death by signal.
        code if code < 0 => Exit::Signal(code.saturating_neg()),
        code => Exit::Code(code),
    });
    let mut interpreter = Interpreter::new().with_prices(args.prices.read()?);
    if args.view.is_some_and(Name::wants_conversation) {
        interpreter = interpreter.keeping_conversation();
    }
    match from {
        From::StreamJson => stream(input, &mut interpreter, view).map_err(|trouble| match trouble {
            Trouble::Input(error) => Trouble::Input(named(&args.input, &error)),
            output => output,
        })?,
        From::Json => json(input, &stderr, &mut interpreter, view)?,
        From::Session | From::Message => {}
        From::Text => {
            let mut bytes = Vec::new();
            BufReader::new(input).read_to_end(&mut bytes)?;
            let text = String::from_utf8_lossy(&bytes);
            let mut out = Vec::new();
            interpreter.feed(Input::Text { text: text.trim_end_matches('\n').into(), exit }, &mut out);
            show(view, out)?;
        }
    }
    let mut out = Vec::new();
    if let Some(said) = interpreter.take_conversation(&mut out) {
        view.conversation(said);
    }
    let outcome = interpreter.conclude(&End { exit, stderr, duration_ms: None }, &mut out);
    show(view, out)?;
    Ok(outcome)
}

fn show(view: &mut dyn View, events: Vec<Event>) -> Result<(), Trouble> {
    events.iter().try_for_each(|event| view.event(event)).map_err(Trouble::Output)
}

fn stream(
    mut input: Box<dyn Read>,
    interpreter: &mut Interpreter,
    view: &mut dyn View,
) -> Result<(), Trouble> {
    let (mut framer, mut buffer, mut out) = (Framer::default(), vec![0; 256 << 10], Vec::new());
    loop {
        let count = input.read(&mut buffer)?;
        let mut written = Ok(());
        let mut take = |frame: Frame<'_>| {
            if written.is_ok() {
                written = one(frame, interpreter, view, &mut out);
            }
        };
        match count {
            0 => framer.finish(&mut take),
            _ => framer.push(buffer.get(..count).unwrap_or_default(), &mut take),
        }
        written.map_err(Trouble::Output)?;
        if count == 0 {
            return Ok(());
        }
    }
}

fn one(
    frame: Frame<'_>,
    interpreter: &mut Interpreter,
    view: &mut dyn View,
    out: &mut Vec<Event>,
) -> io::Result<()> {
    if let Frame::Line(line) = &frame {
        view.line(line)?;
    }
    interpreter.feed(frame.into(), out);
    out.drain(..).try_for_each(|event| view.event(&event))
}

/// The report is on stdout; of a fatal error it is on stderr.
fn json(
    mut input: Box<dyn Read>,
    stderr: &str,
    interpreter: &mut Interpreter,
    view: &mut dyn View,
) -> Result<(), Trouble> {
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    input.read_to_end(&mut bytes)?;
    let found = report::find_report(&bytes).or_else(|| report::find_error_report(stderr.as_bytes()));
    match found {
        Some(found) => {
            if found.skipped_bytes > 0 && report::find_report(&bytes).is_some() {
                let sample = "text beside the report".to_owned();
                interpreter.feed(Input::Noise { sample, bytes: found.skipped_bytes }, &mut out);
            }
            interpreter.feed(Input::Report(Box::new(found.report)), &mut out);
        }
        None if bytes.is_empty() => {}
        None => {
            let sample = alhena_wire::frame::sample(&bytes);
            interpreter.feed(Input::Noise { sample, bytes: bytes.len() as u64 }, &mut out);
        }
    }
    show(view, out)
}
