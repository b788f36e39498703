//! `alhena sessions follow`.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use alhena::model::message::{Block, Content, messages};
use alhena::model::{Include, Message};
use alhena::session::events::events;
use alhena::session::export::Page;
use alhena::session::follow::{Follow, News};
use alhena::session::{FindError, Store, Which};

use super::pretty::{Detail, Pretty};
use super::{Where, find, store};
use crate::commands::complain;
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

pub fn execute(args: &Args) -> ExitCode {
    let path = match store().and_then(|store| file(&store, args)) {
        Ok(path) => path,
        Err(code) => return code,
    };
    match follow(&path, args) {
        Ok(done) => done,
        Err(error) => {
            complain(&format_args!("{}: {error}", path.display()), "");
            ExitCode::FAILURE
        }
    }
}

/// The file to follow; waits for the first session of a folder that has none.
fn file(store: &Store, args: &Args) -> Result<PathBuf, ExitCode> {
    let mut said = false;
    loop {
        if args.which != "latest" {
            break;
        }
        match store.find(&args.place.scope(), &Which::Latest) {
            Ok(session) => return Ok(session.file.path),
            Err(FindError::NoneIn(_)) => {}
            Err(_) => break,
        }
        if !said {
            say("Waiting for a session …");
            said = true;
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    find(store, &args.place, &args.which).map(|session| session.file.path)
}

/// Goes on until nothing can be printed any more. An error is about the file.
fn follow(path: &std::path::Path, args: &Args) -> io::Result<ExitCode> {
    let mut session = Follow::start(path)?;
    let mut printer = Printer::new(args);
    let mut printed = printer.news(&messages(session.log(), Include::Said), args.from_start);
    loop {
        if printed.is_err() {
            return Ok(output::written(printed));
        }
        session.wait(LONGEST);
        match session.look()? {
            News::Nothing => {}
            News::Gone => say("Gemini CLI has deleted the file; waiting for it to come back."),
            News::Records(_) | News::Rewritten => {
                printed = printer.news(&messages(session.log(), Include::Said), true);
            }
        }
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
    fn news(&mut self, all: &[Message<'_>], show: bool) -> io::Result<()> {
        let mut out = if self.json { Guard::new(output::stdout()) } else { Guard::open(output::stdout()) };
        for (at, message) in all.iter().enumerate() {
            let Some(fresh) = self.fresh(message, at + 1 == all.len()) else { continue };
            if !show {
                continue;
            }
            match self.json {
                true => {
                    for mut event in events(std::slice::from_ref(&fresh)) {
                        event.seq = self.events;
                        self.events += 1;
                        serde_json::to_writer(&mut out, &event)?;
                        out.write_all(b"\n")?;
                    }
                }
                false => {
                    let page =
                        Page { title: String::new(), facts: Vec::new(), messages: &[], children: Vec::new() };
                    let mut text = String::new();
                    self.pretty.message(&fresh, &page, "", &mut text);
                    out.write_all(text.as_bytes())?;
                }
            }
        }
        out.flush()
    }

    /// The message with only those parts that have not been printed.
    ///
    /// The CLI writes an answer first without its tool calls, but with its tokens, and then again with both (0.61.0). The
    /// tokens wait for the rest as long as the answer is the last thing in the session.
    fn fresh<'a>(&mut self, message: &Message<'a>, last: bool) -> Option<Message<'a>> {
        let mut fresh = message.clone();
        let mut is_new = |part: String| self.done.insert((message.id.to_string(), part));
        let news = match &mut fresh.content {
            Content::Text(text) if text.trim().is_empty() => false,
            Content::Text(_) => is_new(String::new()),
            Content::Blocks(blocks) => {
                let mut number = 0;
                blocks.retain(|block| {
                    number += 1;
                    is_new(key(block, number))
                });
                !blocks.is_empty()
            }
        };
        let tokens = (news || !last) && message.usage.is_some() && is_new("usage".to_owned());
        if !tokens {
            fresh.usage = None;
        }
        if !news {
            fresh.content = Content::Blocks(Vec::new());
        }
        (news || (tokens && self.json)).then_some(fresh)
    }
}

/// What makes a part of a message the same when the message is written again.
fn key(block: &Block<'_>, number: usize) -> String {
    match block {
        Block::Thinking { thinking } => format!("thinking {thinking}"),
        Block::ToolUse { id, .. } => format!("call {id}"),
        Block::ToolResult(result) => format!("result {}", result.tool_use_id),
        Block::Image { .. } => format!("image {number}"),
        Block::Text { text } => format!("text {text}"),
    }
}
