//! `alhena sessions show`.

use std::io;

use alhena_model::message::{Block, Content, in_claude_order};
use alhena_model::{Conversation, Message};
use alhena_session::export::{self, Page};
use alhena_session::read::{Files, What};
use clap::ValueEnum;

use super::pager::Output;
use super::pretty::{Detail, Pretty};
use super::{Where, find, store};
use crate::command_error::{CommandError, Done};
use crate::output::{Stream, say, write, write_json, written};
use crate::style::{Colours, Harmless};

/// Show a session: the latest of this folder, or the one with this id.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  alhena sessions show
  alhena sessions show 9c9a14e1 --full
  alhena sessions show latest --as messages | jq '.[].content'
  alhena sessions show ./session-2026-11-15T20-30-d875c84b.jsonl")]
pub struct Args {
    /// An id or its beginning, `latest`, or a session file.
    #[arg(value_name = "ID|FILE", default_value = "latest")]
    which: String,
    #[command(flatten)]
    place: Where,
    /// What to print.
    #[arg(long = "as", value_enum, value_name = "VIEW", default_value = "pretty")]
    view: View,
    /// Also what nobody said: context, tool responses, notices of the CLI.
    #[arg(long, conflicts_with = "dropped")]
    everything: bool,
    /// Also what Gemini CLI dropped from the conversation and left in the file.
    #[arg(long)]
    dropped: bool,
    /// All of every output and diff.
    #[arg(long)]
    full: bool,
    /// No pager on a terminal.
    #[arg(long)]
    no_pager: bool,
}

/// How a session is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// For people on a terminal.
    Pretty,
    /// Claude-shaped messages, a JSON array.
    Messages,
    /// For agent-cli-sdk: its UnifiedMessages, a JSON array.
    AgentCliSdk,
    /// One event per line, as JSON.
    Events,
    /// What was said, as text.
    Text,
    /// Markdown.
    Markdown,
    /// One HTML page.
    Html,
}

pub fn execute(args: &Args) -> Done {
    let session = find(&store()?, &args.place, &args.which)?;
    let files = Files::read(&session)
        .map_err(|error| CommandError::failed(format!("{}: {error}", session.file.path.display()), ""))?;
    let what = match (args.dropped, args.everything) {
        (true, _) => What::History,
        (_, true) => What::Everything,
        _ => What::Said,
    };
    if session.survey.lost > 0 && !args.dropped {
        let hint = "--dropped shows them; `alhena sessions repair` gives them back to Gemini CLI.";
        say(format_args!(
            "Gemini CLI has lost {} messages of this session that are still in its file. {hint}",
            session.survey.lost
        ));
    }
    Ok(written(match args.view {
        View::Events => print_events(&files.conversation(what)),
        view => files.with_page(&session, what, |page| print(page, view, args)),
    }))
}

/// One event a line.
pub fn print_events(conversation: &Conversation<'_>) -> io::Result<()> {
    write_json(|to| {
        for event in conversation.events() {
            serde_json::to_writer(&mut *to, &event)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// As agent-cli-sdk's types have them.
pub fn print_unified(messages: &[Message<'_>]) -> io::Result<()> {
    let unified: Vec<serde_json::Value> =
        messages.iter().map(alhena_hosts::agent_cli_sdk::unified).collect::<Result<_, _>>()?;
    write_json(|to| {
        serde_json::to_writer_pretty(&mut *to, &unified)?;
        to.write_all(b"\n")
    })
}

fn print(page: &Page<'_>, view: View, args: &Args) -> io::Result<()> {
    match view {
        View::Pretty => {
            let detail = if args.full { Detail::Full } else { Detail::Usual };
            let text = Pretty::new(Colours::of(Stream::Out), detail).page(page);
            paged(&text, args)
        }
        View::Text => paged(&text(page.messages), args),
        View::Markdown => paged(&export::markdown(page), args),
        View::Html => write(|to| to.write_all(export::html(page).as_bytes())),
        View::Messages => write_json(|to| {
            serde_json::to_writer_pretty(&mut *to, &in_claude_order(page.messages.to_vec()))?;
            to.write_all(b"\n")
        }),
        View::AgentCliSdk => print_unified(page.messages),
        View::Events => Ok(()),
    }
}

fn paged(text: &str, args: &Args) -> io::Result<()> {
    let mut output = Output::open(!args.no_pager);
    let written = output.write(text);
    output.close();
    written
}

/// What was said, and nothing else.
pub fn text(said: &[Message<'_>]) -> String {
    let mut text = String::new();
    for message in said {
        let said: Vec<&str> = match &message.content {
            Content::Text(said) => vec![said],
            Content::Blocks(blocks) => blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Text { text } => Some(&**text),
                    _ => None,
                })
                .collect(),
        };
        let said = said.concat();
        if !said.trim().is_empty() {
            let who = if message.role == alhena_model::message::Role::User { "> " } else { "" };
            text.push_str(who);
            text.push_str(Harmless::default().clean(said.trim_end()).as_str());
            text.push_str("\n\n");
        }
    }
    text
}
