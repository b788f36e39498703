//! `alhena sessions search`.

use std::fmt::Write;
use std::process::ExitCode;

use alhena_model::Timestamp;
use alhena_session::Scope;
use alhena_session::listing::Found;
use alhena_session::search::{Hit, MatchedIn, Query, SearchResults, Snippet};

use super::list::age;
use super::{folder, store};
use crate::command_error::{CommandError, Done};
use crate::output::{Stream, print, print_json, say};
use crate::style::{Colours, Paint, one_line};

/// Find sessions by what was said, thought, called or printed in them.
///
/// Every word has to be in the session. An argument of several words is a phrase: they have to stand in a row. Prompts,
/// answers, thoughts, arguments of tools and their results are searched; upper and lower case are the same. Exits with 1 when
/// nothing was found.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena sessions search flaky test
  alhena sessions search 'no such file' -C ~/app
  alhena sessions search --regex 'E0[0-9]{3}' --json")]
pub struct Args {
    /// Words and phrases.
    #[arg(required = true, value_name = "WORD|PHRASE")]
    words: Vec<String>,
    /// Only the sessions of this folder; all when not given.
    #[arg(long, short = 'C', value_name = "DIR")]
    dir: Option<std::path::PathBuf>,
    /// Take the argument as a regular expression.
    #[arg(long, short = 'e')]
    regex: bool,
    /// So many at most.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn execute(args: &Args) -> Done {
    let store = store()?;
    let scope = args.dir.as_ref().map_or(Ok(Scope::All), |dir| folder(&store, dir))?;
    let found = if args.regex {
        let regex = regex::Regex::new(&args.words.join(" ")).map_err(|error| {
            CommandError::usage(error, "Without --regex the words are taken as they are.")
        })?;
        store.search_regex(&scope, &regex, args.limit)
    } else {
        let query = Query::new(&args.words).ok_or_else(|| {
            CommandError::usage("there is no word in that", "Signs are not searched; --regex finds them.")
        })?;
        store.search(&scope, &query, args.limit)
    };
    Ok(show(&found.map_err(CommandError::of_store)?, args))
}

/// Nothing was found.
const NOTHING: ExitCode = ExitCode::FAILURE;

fn show(found: &SearchResults, args: &Args) -> ExitCode {
    if args.json {
        let printed = print_json(&Found::of(found));
        return if found.hits.is_empty() { NOTHING } else { printed };
    }
    if found.hits.is_empty() {
        say("Nothing found.");
        return NOTHING;
    }
    let colours = Colours::of(Stream::Out);
    let mut text = String::new();
    for hit in &found.hits {
        one(hit, colours, &mut text);
    }
    let printed = print(text.trim_end());
    if found.total > found.hits.len() {
        say(format_args!("{} of {} sessions; -n shows more.", found.hits.len(), found.total));
    }
    printed
}

fn one(hit: &Hit, colours: Colours, out: &mut String) {
    let session = &hit.session;
    let id: String = one_line(&session.id, 64).chars().take(8).collect();
    let project = session.file.project.root.as_deref().and_then(|root| root.file_name());
    let project =
        project.map_or_else(|| session.file.project.name.clone(), |name| name.to_string_lossy().into_owned());
    let when = age(Timestamp::now().as_millis() - session.updated());
    let messages =
        if hit.messages == 1 { "1 message".to_owned() } else { format!("{} messages", hit.messages) };
    let facts = format!("{} · {when} · {messages}", one_line(&project, 30));
    let title = one_line(session.survey.title.as_deref().unwrap_or(""), 70);
    let _infallible =
        writeln!(out, "{}  {title}  {}", colours.paint(Paint::Cyan, id), colours.paint(Paint::Dim, facts));
    for snippet in &hit.snippets {
        let place = match snippet.place {
            MatchedIn::Prompt => "prompt",
            MatchedIn::Answer => "answer",
            MatchedIn::Thought => "thought",
            MatchedIn::Call => "call",
            MatchedIn::Result => "result",
        };
        let _infallible = writeln!(
            out,
            "  {} {}",
            colours.paint(Paint::Dim, format_args!("{place:7}")),
            marked(snippet, colours)
        );
    }
    out.push('\n');
}

/// The snippet with its matches in colour. It holds no control characters.
fn marked(snippet: &Snippet, colours: Colours) -> String {
    let mut out = String::new();
    let mut done = 0;
    for mark in &snippet.marks {
        out.push_str(&one_line_piece(snippet.text.get(done..mark.start).unwrap_or("")));
        let word = one_line_piece(snippet.text.get(mark.clone()).unwrap_or(""));
        let _infallible = write!(out, "{}", colours.paint(Paint::Yellow, word));
        done = mark.end;
    }
    out.push_str(&one_line_piece(snippet.text.get(done..).unwrap_or("")));
    out
}

/// A piece of a line, without what reorders text.
fn one_line_piece(text: &str) -> String {
    crate::style::Harmless::default().clean(text)
}
