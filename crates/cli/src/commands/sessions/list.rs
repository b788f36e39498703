//! `alhena sessions list`.

use std::fmt::Write;
use std::process::ExitCode;

use alhena_model::Timestamp;
use alhena_session::listing::Entry;
use alhena_session::{Session, SessionState};

use super::{Where, store};
use crate::command_error::{CommandError, Done};
use crate::output::{Stream, print, print_json, say};
use crate::style::{Colours, Paint, one_line};
pub(super) use crate::style::{age, short};

/// List sessions, the newest first.
///
/// States: answered; open (a prompt has no answer yet); empty; lost (Gemini CLI dropped messages that are still in the file);
/// endangered (Gemini CLI will delete it at its next start); headless (Gemini CLI cannot load it). `alhena sessions repair`
/// helps with the last three.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena sessions list
  alhena sessions list --all --limit 20
  alhena sessions list --json | jq -r '.[0].id'")]
pub struct Args {
    #[command(flatten)]
    place: Where,
    /// So many at most.
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn execute(args: &Args) -> Done {
    let store = store()?;
    let mut sessions = store.list(&args.place.scope(&store)?).map_err(CommandError::of_store)?;
    sessions.truncate(args.limit.unwrap_or(usize::MAX));
    if args.json {
        return Ok(print_json(&sessions.iter().map(Entry::of).collect::<Vec<_>>()));
    }
    if sessions.is_empty() {
        if args.place.all {
            say(format_args!("Gemini CLI has kept no sessions in {}.", store.gemini().display()));
        } else {
            say("No sessions here. `alhena sessions list --all` looks in all folders.");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let done = print(table(&sessions, args.place.all, Colours::of(Stream::Out), Timestamp::now()).trim_end());
    // The process ends here, and the system takes everything back at once.
    std::mem::forget(sessions);
    Ok(done)
}

/// So many characters of a title are shown.
const TITLE: usize = 72;

/// One line each: id, age, size of the talk, state, title.
fn table(sessions: &[Session], with_project: bool, colours: Colours, now: Timestamp) -> String {
    let mut text = String::with_capacity(sessions.len() * 2 * TITLE);
    let models: Vec<String> = sessions.iter().map(models).collect();
    let projects: Vec<String> = sessions.iter().filter(|_| with_project).map(project).collect();
    let width = |column: &[String]| column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    let (model_width, project_width) = (width(&models), width(&projects));
    let mut projects = projects.iter();
    for (session, models) in sessions.iter().zip(&models) {
        let id: String = one_line(&session.id, 64).chars().take(8).collect();
        let (paint, word) = look(session.state());
        let _infallible = write!(text, "{}  ", colours.paint(Paint::Cyan, format_args!("{id:8}")));
        right(&mut text, &age(now.as_millis() - session.updated()), 5);
        text.push_str("  ");
        right(&mut text, &session.survey.messages.to_string(), 4);
        text.push_str(" msg  ");
        right(&mut text, &short(session.survey.spent.iter().map(|spent| spent.tokens.total).sum()), 6);
        text.push_str(" tok  ");
        left(&mut text, models, model_width);
        let _infallible = write!(text, "  {}", colours.paint(paint, format_args!("{word:10}")));
        if let Some(project) = projects.next() {
            text.push_str("  ");
            left(&mut text, project, project_width);
        }
        let title = session.survey.title.as_deref().unwrap_or("");
        // Of a long prompt only the beginning has to be looked at.
        let start = title.get(..title.floor_char_boundary(TITLE * 4)).unwrap_or(title);
        text.push_str("  ");
        text.push_str(&one_line(start, TITLE));
        text.push('\n');
    }
    text
}

/// A cell that begins where its column does. By hand: formatting with widths took a third of the time of a list.
fn left(text: &mut String, cell: &str, width: usize) {
    text.push_str(cell);
    fill(text, cell, width);
}

/// One that ends where its column does.
fn right(text: &mut String, cell: &str, width: usize) {
    fill(text, cell, width);
    text.push_str(cell);
}

fn fill(text: &mut String, cell: &str, width: usize) {
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.chars().count())));
}

fn models(session: &Session) -> String {
    let mut names: Vec<&str> = session.survey.spent.iter().map(|spent| spent.model.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    one_line(&names.join(","), 24)
}

fn project(session: &Session) -> String {
    let root = session.file.project.root.as_deref().and_then(|root| root.file_name());
    let name = root.map_or_else(|| session.file.project.name.as_str().into(), |name| name.to_string_lossy());
    one_line(&name, 20)
}

fn look(state: SessionState) -> (Paint, &'static str) {
    match state {
        SessionState::Answered => (Paint::Green, "answered"),
        SessionState::Open => (Paint::Yellow, "open"),
        SessionState::Empty => (Paint::Dim, "empty"),
        SessionState::Lost => (Paint::Red, "lost"),
        SessionState::Endangered => (Paint::Red, "endangered"),
        SessionState::Headless => (Paint::Red, "headless"),
    }
}
