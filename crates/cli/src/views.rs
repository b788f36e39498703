//! What is printed: each view turns events, or the CLI's own lines, into output.

mod cli;
mod data;
mod hosts;
mod message_lines;
mod messages;
mod pretty;
mod text;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use alhena::agent::Item;
use alhena::hosts::openase::Mode;
use alhena::model::{Conversation, Source, Timestamp};
use alhena::{Event, EventKind, Outcome};
use clap::ValueEnum;

use crate::output::{self, Guard, Stream};
use crate::style::{Colours, with_flags};

pub use self::pretty::Pretty;

/// A view of a run.
pub trait View {
    /// Something happened.
    fn event(&mut self, event: &Event) -> io::Result<()>;

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
        match self {
            Name::Pretty | Name::Text | Name::Data => false,
            Name::Messages => false,
            Name::MessageLines | Name::AgentCliSdkLines => true,
            Name::Events | Name::Outcome | Name::StreamJson | Name::Json => true,
            Name::AgentCliSdk | Name::Aiwf | Name::OpenAse | Name::OpenAseTicket | Name::Promptfoo => true,
        }
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
        Name::Pretty => Box::new(pretty::Pretty::new(target, quiet, claims)),
        Name::Text => Box::new(text::Text::new(target, quiet)),
        Name::Events => Box::new(data::Events::new(target.json())),
        Name::Outcome => Box::new(data::OutcomeView::new(target.json())),
        Name::Data => Box::new(data::Data::new(target.json(), quiet)),
        Name::StreamJson => Box::new(cli::StreamJsonView::new(target)),
        Name::Json => Box::new(cli::JsonView::new(target.json())),
        Name::Messages => Box::new(messages::Messages::new(target.json(), messages::Shape::Array)),
        Name::AgentCliSdk => Box::new(messages::Messages::new(target.json(), messages::Shape::ExecuteResult)),
        Name::MessageLines => {
            Box::new(message_lines::MessageLines::new(target.json(), message_lines::Shape::Own))
        }
        Name::AgentCliSdkLines => {
            Box::new(message_lines::MessageLines::new(target.json(), message_lines::Shape::AgentCliSdk))
        }
        Name::Aiwf => Box::new(hosts::Aiwf::new(target.json())),
        Name::OpenAse => Box::new(hosts::OpenAse::new(target.json(), Mode::Chat)),
        Name::OpenAseTicket => Box::new(hosts::OpenAse::new(target.json(), Mode::Ticket)),
        Name::Promptfoo => Box::new(hosts::Promptfoo::new(target.json())),
    }
}

/// A warning for people; only Alhena's own words name settings.
pub fn words_of_warning(source: Source, message: &str) -> String {
    match source {
        Source::Derived => with_flags(message),
        _ => message.to_owned(),
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
