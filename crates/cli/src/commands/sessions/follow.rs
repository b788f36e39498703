//! `alhena sessions follow`.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_model::conversation::events;
use alhena_model::message::{Block, Content};
use alhena_model::{Conversation, Entry, Event, EventKind, Include, Message};
use alhena_session::export::Page;
use alhena_session::follow::{Follow, News};
use alhena_session::{FindError, Scope, Session, Store, Which};

use super::pretty::{Detail, Pretty};
use super::{Where, find, store};
use crate::command_error::{CommandError, Done};
use crate::output::{self, Guard, Stream, say};
use crate::style::Colours;

/// Watch a session while a Gemini CLI elsewhere works in it, until ^C.
///
/// Without an id it is the latest of this folder; when there is none yet, the first that appears.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena sessions follow
  alhena sessions follow 9c9a14e1 --from-start
  alhena sessions follow --json | jq -c 'select(.type == \"tool_call\")'")]
pub struct Args {
    /// An id or its beginning, `latest`, or a session file.
    #[arg(value_name = "ID|FILE", default_value = "latest")]
    which: String,
    #[command(flatten)]
    place: Where,
    /// Also what was said before.
    #[arg(long)]
    from_start: bool,
    /// All of every output and diff.
    #[arg(long)]
    full: bool,
    /// Print one event per line, as JSON.
    #[arg(long)]
    json: bool,
}

/// How long nothing may happen before the file is looked at all the same.
const LONGEST: Duration = Duration::from_secs(1);

pub fn execute(args: &Args) -> Done {
    let places = Places::here()?;
    let (session, noticed) = places.wait_for(args)?;
    follow(&places, &session, noticed, args)
        .map_err(|error| CommandError::failed(format!("{}: {error}", session.file.path.display()), ""))
}

/// When a session was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noticed {
    /// It was there.
    AtOnce,
    /// It appeared later, so that all of it is news.
    WhileWaiting,
}

/// Where sessions are: the user's store, and the homes of Alhena's own runs, whose sessions go there when they end.
struct Places {
    store: Store,
    homes: Option<(PathBuf, PathBuf)>,
}

impl Places {
    fn here() -> Result<Self, CommandError> {
        let environment = Environment::of_process();
        let homes = Dirs::of(&environment).zip(environment.gemini_home());
        let homes = homes.map(|(dirs, user_home)| (dirs.state.join("homes"), user_home));
        Ok(Self { store: store()?, homes })
    }

    /// The session in the home of a run that is going on. A run that has just ended may take its home away meanwhile.
    fn unpublished(&self, scope: &Scope, which: &Which) -> Option<Session> {
        let (homes, user_home) = self.homes.as_ref()?;
        let overlays = alhena_agent::home::unpublished(homes, user_home).unwrap_or_default();
        let found = overlays.into_iter().filter_map(|gemini| Store::at(gemini).find(scope, which).ok());
        found.max_by_key(Session::updated)
    }

    /// The session to follow; waits for the first of a folder that has none.
    fn wait_for(&self, args: &Args) -> Result<(Session, Noticed), CommandError> {
        let (scope, which) = (args.place.scope(&self.store)?, Which::of(&args.which));
        let mut noticed = Noticed::AtOnce;
        loop {
            // What is being said now is the latest.
            if let Some(session) = self.unpublished(&scope, &which) {
                return Ok((session, noticed));
            }
            match self.store.find(&scope, &which) {
                Err(FindError::NoneIn(_)) => {}
                _ => return find(&self.store, &args.place, &args.which).map(|session| (session, noticed)),
            }
            if noticed == Noticed::AtOnce {
                say("Waiting for a session …");
                noticed = Noticed::WhileWaiting;
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Where the session has gone: a run that goes on with it works on a copy, and takes that to the store in the end.
    fn moved(&self, session: &Session, path: &Path, news: &News) -> Option<PathBuf> {
        // A file that is no part of the store stays where it is.
        session.file.project.root.as_ref()?;
        let which = Which::Id(session.id.clone());
        let found = self.unpublished(&Scope::All, &which);
        let found = match news {
            News::Gone => found.or_else(|| self.store.find(&Scope::All, &which).ok()),
            _ => found,
        };
        found.filter(|found| found.id == session.id && found.file.path != path).map(|found| found.file.path)
    }
}

/// Goes on until nothing can be printed any more. An error is about the file.
fn follow(places: &Places, session: &Session, noticed: Noticed, args: &Args) -> io::Result<ExitCode> {
    let mut path = session.file.path.clone();
    let mut file = Follow::start(&path)?;
    let mut printer = Printer::new(args);
    let show = args.from_start || noticed == Noticed::WhileWaiting;
    let mut printed = printer.news(Conversation::of_log(file.log(), Include::Said), show);
    loop {
        if printed.is_err() {
            return Ok(output::written(printed));
        }
        file.wait(LONGEST);
        let news = file.look()?;
        match (&news, places.moved(session, &path, &news)) {
            (_, Some(now)) => {
                file = Follow::start(&now)?;
                path = now;
            }
            (News::Nothing, None) => continue,
            (News::Gone, None) => {
                say("Gemini CLI has deleted the file; waiting for it to come back.");
                continue;
            }
            (News::Records(_) | News::Rewritten, None) => {}
        }
        printed = printer.news(Conversation::of_log(file.log(), Include::Said), true);
    }
}

/// Prints what was not printed before.
struct Printer {
    pretty: Pretty,
    json: bool,
    /// What has been printed: a message and a part of it.
    done: HashSet<(String, String)>,
    events: u64,
}

impl Printer {
    fn new(args: &Args) -> Self {
        let detail = if args.full { Detail::Full } else { Detail::Usual };
        let pretty = Pretty::new(Colours::of(Stream::Out), detail);
        Self { pretty, json: args.json, done: HashSet::new(), events: 0 }
    }

    /// Takes the whole conversation; `show` is false for what was there before.
    fn news(&mut self, all: Conversation<'_>, show: bool) -> io::Result<()> {
        let mut out = if self.json { Guard::new(output::stdout()) } else { Guard::open(output::stdout()) };
        if self.json {
            for mut event in self.fresh_events(all.entries()).into_iter().filter(|_| show) {
                event.seq = self.events;
                self.events += 1;
                serde_json::to_writer(&mut out, &event)?;
                out.write_all(b"\n")?;
            }
            return out.flush();
        }
        for message in all.into_messages() {
            let Some(fresh) = self.fresh(message).filter(|_| show) else { continue };
            let page = Page { title: String::new(), facts: Vec::new(), messages: &[], children: Vec::new() };
            let mut text = String::new();
            self.pretty.message(&fresh, &page, "", &mut text);
            out.write_all(text.as_bytes())?;
        }
        out.flush()
    }

    /// The events that have not been printed.
    ///
    /// The CLI writes an answer first without its tool calls, but with its tokens, and then again with both (0.61.0). The
    /// tokens wait for the rest as long as the answer is the last thing in the session.
    fn fresh_events(&mut self, all: &[Entry<'_>]) -> Vec<Event> {
        let (mut fresh, mut calls) = (Vec::new(), 0);
        for (at, entry) in all.iter().enumerate() {
            let (mut counts, mut new) = ([0; 2], HashSet::new());
            for mut event in events(std::slice::from_ref(entry)) {
                if let EventKind::Usage(usage) = &mut event.kind {
                    calls += 1;
                    usage.call = Some(calls);
                }
                let key = event_key(&event.kind, &mut counts);
                let waits = key == "usage" && new.is_empty() && at + 1 == all.len();
                // What follows from a result is as new as the result.
                if waits || !(new.contains(&key) || self.done.insert((entry.id.to_string(), key.clone()))) {
                    continue;
                }
                new.insert(key);
                fresh.push(event);
            }
        }
        fresh
    }

    /// The message with only those parts that have not been printed.
    fn fresh<'a>(&mut self, mut message: Message<'a>) -> Option<Message<'a>> {
        let id = message.id.to_string();
        let mut is_new = |part: String| self.done.insert((id.clone(), part));
        let news = match &mut message.content {
            Content::Text(text) if text.trim().is_empty() => false,
            Content::Text(_) => is_new(key(&Block::Text { text: Default::default() }, &mut [0; 3])),
            Content::Blocks(blocks) => {
                let mut counts = [0; 3];
                blocks.retain(|block| is_new(key(block, &mut counts)));
                !blocks.is_empty()
            }
        };
        if !(news && is_new("usage".to_owned())) {
            message.usage = None;
        }
        news.then_some(message)
    }
}

/// What makes a part of a message the same when the message is written again: its id, or how many of its kind were before it.
/// What it says does not: a resume writes thoughts and texts in another form (0.61.0).
fn key(block: &Block<'_>, counts: &mut [u32; 3]) -> String {
    let [thoughts, images, texts] = counts;
    match block {
        Block::Thinking { .. } => numbered("thinking", thoughts),
        Block::ToolUse { id, .. } => format!("call {id}"),
        Block::ToolResult(result) => format!("result {}", result.tool_use_id),
        Block::Image { .. } => numbered("image", images),
        Block::Text { .. } => numbered("text", texts),
    }
}

/// The same for the events of an entry.
fn event_key(kind: &EventKind, counts: &mut [u32; 2]) -> String {
    let [thoughts, texts] = counts;
    match kind {
        EventKind::Thinking { .. } => numbered("thinking", thoughts),
        EventKind::ToolCall { id, .. } => format!("call {id}"),
        EventKind::ToolResult { id, .. } | EventKind::Command { call_id: id, .. } => format!("result {id}"),
        EventKind::FileChange(change) => format!("result {}", change.call_id.as_deref().unwrap_or("")),
        EventKind::Usage(_) => "usage".to_owned(),
        _ => numbered("text", texts),
    }
}

fn numbered(kind: &str, count: &mut u32) -> String {
    *count += 1;
    format!("{kind} {count}")
}
