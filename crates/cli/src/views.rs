//! What is printed: each view turns events, or the CLI's own lines, into output.

mod json;
mod messages;
mod pretty;
mod text;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use alhena_agent::Item;
use alhena_hosts::native::JsonReport;
use alhena_hosts::openase::Mode;
use alhena_hosts::promptfoo;
use alhena_model::options::Transport;
use alhena_model::{Conversation, Source, Timestamp};
use alhena_model::{Event, EventKind, Outcome};
use clap::ValueEnum;
use serde::Serialize;

use self::json::{Aiwf, Data, Events, JsonView, OpenAse, OutcomeView, Promptfoo, StreamJsonView};
use self::messages::{MessageLines, Messages, Shape};
pub use self::pretty::Pretty;
use crate::command_error::complain_of;
use crate::output::{self, Guard, Stream, say};
use crate::style::{Colours, Harmless, Paint, with_flags};

/// A view of a run.
pub trait View {
    /// How the CLI is talked to; comes before the first event.
    fn transport(&mut self, _transport: Transport) {}

    /// Something happened.
    fn event(&mut self, _event: &Event) -> io::Result<()> {
        Ok(())
    }

    /// The CLI wrote a line; comes before its events.
    fn line(&mut self, _line: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Nothing more is waiting: what was printed has to be seen now. Until then it may be gathered.
    fn caught_up(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// All that was said and done; comes before the end, to views that want it.
    fn conversation(&mut self, _said: Conversation<'static>) {}

    /// The session files of the run; comes before the end.
    fn sessions(&mut self, _paths: &[PathBuf]) {}

    /// The run is over.
    fn close(&mut self, outcome: &Outcome) -> io::Result<()>;
}

macro_rules! names {
    ($($name:ident $text:literal $meaning:literal,)*) => {
        /// The views by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        pub enum Name {
            $(#[doc = $meaning] #[value(name = $text)] $name,)*
        }

        impl Name {
            /// Name and meaning of each.
            pub fn table() -> &'static [(&'static str, &'static str)] {
                &[$(($text, $meaning),)*]
            }
        }
    };
}

names! {
    Pretty "pretty" "For people on a terminal.",
    Text "text" "The model's text.",
    Events "events" "One event per line, as JSON.",
    Outcome "outcome" "The outcome, one JSON object.",
    Data "data" "Only the answer that fits --schema, as JSON.",
    Messages "messages" "The conversation in Claude's shape, a JSON array.",
    MessageLines "message-lines" "Messages in Claude's shape as they grow, and the outcome: JSON lines.",
    StreamJson "stream-json" "The CLI's own lines, verbatim, with a truthful result at the end.",
    Json "json" "The CLI's own report, truthful.",
    AgentCliSdk "agent-cli-sdk" "For the agent SDK agent-cli-sdk: an ExecuteResult.",
    AgentCliSdkLines "agent-cli-sdk-lines" "For agent-cli-sdk: its UnifiedMessages as they grow, and the ExecuteResult.",
    Aiwf "aiwf" "For the workflow engine aiwf: response, files, error.",
    OpenAse "openase" "For the coding platform OpenASE: JSON lines of a chat.",
    OpenAseTicket "openase-ticket" "For OpenASE: only the six kinds of lines of a ticket.",
    Promptfoo "promptfoo" "For the eval harness promptfoo: a ProviderResponse.",
}

impl Name {
    /// Whether the view needs the CLI's own lines.
    pub fn wants_lines(self) -> bool {
        self == Name::StreamJson
    }

    /// Whether the view needs all that was said and done.
    pub fn wants_conversation(self) -> bool {
        matches!(self, Name::Messages | Name::MessageLines | Name::AgentCliSdk | Name::AgentCliSdkLines)
    }

    /// Whether the view itself says why a run failed.
    pub fn says_failures(self) -> bool {
        !matches!(self, Name::Pretty | Name::Text | Name::Data | Name::Messages)
    }
}

/// Where a view prints.
pub struct Target {
    out: Box<dyn Write>,
    terminal: bool,
    colours: Colours,
}

impl Target {
    pub fn stdout() -> Self {
        // Not line-buffered: a view says itself when something has to be seen.
        Self {
            out: Box::new(output::stdout()),
            terminal: Stream::Out.is_terminal(),
            colours: Colours::of(Stream::Out),
        }
    }

    pub fn file(file: BufWriter<File>) -> Self {
        Self { out: Box::new(file), terminal: false, colours: Colours::Off }
    }

    /// The same for JSON.
    fn json(self) -> Self {
        Self { out: Box::new(Guard::new(self.out)), ..self }
    }

    /// Writes a value as one line of JSON.
    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }

    /// Writes a value as JSON for people, too.
    fn pretty(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut self.out, value)?;
        self.out.write_all(b"\n")
    }
}

/// Says a warning of a run on stderr. Only Alhena's own words name settings.
fn warn(source: Source, message: &str) {
    let message = match source {
        Source::Derived => with_flags(message),
        _ => message.to_owned(),
    };
    let warning = Colours::of(Stream::Err).paint(Paint::Yellow, "warning:");
    say(format_args!("{warning} {}", Harmless::default().clean(&message)));
}

/// Shows what came out of a run.
pub fn show(view: &mut dyn View, item: Item) -> io::Result<()> {
    match item {
        Item::Event(event) => view.event(&event),
        Item::Line(line) => view.line(&line),
        Item::Conversation(said) => {
            view.conversation(*said);
            Ok(())
        }
    }
}

/// Whether the disk was looked at: of a bare output file nobody knows what became of the files it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claims {
    Checked,
    Unchecked,
}

pub fn open(name: Name, target: Target, quiet: bool, claims: Claims) -> Box<dyn View> {
    match name {
        Name::Pretty => Box::new(Pretty::new(target, quiet, claims)),
        Name::Text => Box::new(text::Text::new(target, quiet)),
        Name::Events => Box::new(Events(target.json())),
        Name::Outcome => Box::new(OutcomeView(target.json())),
        Name::Data => Box::new(Data { target: target.json(), quiet }),
        Name::StreamJson => Box::new(StreamJsonView::new(target)),
        Name::Json => Box::new(JsonView { target: target.json(), report: JsonReport::default() }),
        Name::Messages => Box::new(Messages::new(target.json(), Shape::Claude)),
        Name::AgentCliSdk => Box::new(Messages::new(target.json(), Shape::AgentCliSdk)),
        Name::MessageLines => Box::new(MessageLines::new(target.json(), Shape::Claude)),
        Name::AgentCliSdkLines => Box::new(MessageLines::new(target.json(), Shape::AgentCliSdk)),
        Name::Aiwf => Box::new(Aiwf(target.json())),
        Name::OpenAse => Box::new(OpenAse { target: target.json(), mode: Mode::Chat }),
        Name::OpenAseTicket => Box::new(OpenAse { target: target.json(), mode: Mode::Ticket }),
        Name::Promptfoo => Box::new(Promptfoo { target: target.json(), view: promptfoo::View::default() }),
    }
}

/// A run that could not be started still has an outcome, for those who read one.
pub fn failed_to_start(name: Name, outcome: Outcome, target: Target) {
    if name.says_failures() {
        let mut view = open(name, target, true, Claims::Checked);
        let outcome = std::sync::Arc::new(outcome);
        let kind = EventKind::Finished { outcome: outcome.clone() };
        let event = Event { seq: 0, at: Timestamp::now(), source: Source::Derived, kind };
        let _said = output::written(view.event(&event).and_then(|()| view.close(&outcome)));
    }
}
