//! A conversation on a terminal.

use std::io;
use std::sync::Arc;

use alhena_agent::dirs::Dirs;
use alhena_agent::env::Environment;
use alhena_agent::{Action, Talk};
use alhena_agent::{Permission, TurnItem};
use alhena_model::judge::finish;
use alhena_model::options::Choice;
use alhena_model::{EventKind, Status};

use super::asked;
use super::editor::{self, Keyboard, Line};
use super::input::{Answer, COMMANDS, Input};
use super::interrupt::{INTERRUPTED, Interrupts};
use super::undo;
use crate::command_error::{CommandError, complain, complain_of_start};
use crate::commands::talk;
use crate::output::{self, Stream};
use crate::style::{Colours, Paint, one_line};
use crate::views::{Pretty, View};

const PROMPT: &str = "> ";
const QUESTION: &str = "  [y]es, [a]lways in this conversation, [n]o, or a reason: ";

/// What the commands do, for people.
pub fn help() -> String {
    let line = |(name, value, meaning): &(&str, &str, &str)| {
        let command = format!("{name} {value}");
        format!("  {command:<20} {meaning}\n")
    };
    let commands: String = COMMANDS.iter().map(line).collect();
    format!("{commands}  Anything else goes to the model. ^C cancels a turn, twice it ends the conversation.")
}

/// Holds it until somebody ends it, and gives the exit code.
pub fn hold(talk: Talk, first: Option<String>, interrupts: &Interrupts) -> Result<u8, CommandError> {
    let dirs = Dirs::of(&Environment::of_process());
    let keyboard = Keyboard::open(dirs.map(|dirs| dirs.state.join("chat")).as_deref()).map_err(typing)?;
    let colours = Colours::of(Stream::Out);
    let mut chat = Chat {
        talk,
        keyboard,
        colours,
        interrupts,
        last: undo::Turn::default(),
        introduced: false,
        warned: false,
    };
    chat.dim(&format!(
        "{} in {}, mode {}. /help lists commands.",
        one_line(&chat.talk.who().to_string(), 200),
        one_line(&chat.talk.dir().display().to_string(), 200),
        chat.talk.approval(),
    ))
    .map_err(unwritten)?;
    let mut flow = match first {
        Some(prompt) => chat.turn(&prompt)?,
        None => Flow::On,
    };
    let mut interrupted = false;
    while let Flow::On | Flow::Interrupted = flow {
        interrupted |= matches!(flow, Flow::Interrupted);
        let line = chat.keyboard.prompt(PROMPT).map_err(typing)?;
        flow = match line {
            Line::End => Flow::Over(0),
            Line::Interrupted if interrupted => Flow::Over(INTERRUPTED),
            Line::Interrupted => {
                chat.dim("^C again, ^D or /exit ends the conversation.").map_err(unwritten)?;
                Flow::Interrupted
            }
            Line::Text(line) => {
                interrupted = false;
                chat.line(&line)?
            }
        };
    }
    let Flow::Over(code) = flow else { return Ok(0) };
    let Chat { talk, colours, .. } = chat;
    if let Some(session) = talk::close(talk) {
        let session = colours.paint(Paint::Dim, format!("session {}", one_line(&session, 200))).to_string();
        output::write(|out| writeln!(out, "{session}")).map_err(unwritten)?;
    }
    Ok(code)
}

/// Whether the conversation goes on.
enum Flow {
    On,
    /// It does, and ^C once more ends it.
    Interrupted,
    Over(u8),
}

struct Chat<'i> {
    talk: Talk,
    keyboard: Keyboard,
    colours: Colours,
    interrupts: &'i Interrupts,
    /// What the last turn did to files.
    last: undo::Turn,
    /// Whether it has been said who answers.
    introduced: bool,
    /// Whether it was shown that finish reasons are not known, which every outcome says.
    warned: bool,
}

impl Chat<'_> {
    fn line(&mut self, line: &str) -> Result<Flow, CommandError> {
        let done = match Input::parse(line) {
            Err(wrong) => {
                complain(&wrong, "");
                return Ok(Flow::On);
            }
            Ok(Input::Nothing) => return Ok(Flow::On),
            Ok(Input::Exit) => return Ok(Flow::Over(0)),
            Ok(Input::Prompt(prompt)) => return self.turn(&prompt),
            Ok(Input::Help) => {
                output::write(|out| writeln!(out, "{}", help())).map_err(unwritten)?;
                return Ok(Flow::On);
            }
            Ok(Input::Undo) => {
                self.undo().map_err(unwritten)?;
                return Ok(Flow::On);
            }
            Ok(Input::Model(model)) => {
                let said = format!("From the next prompt on: model {}.", one_line(&model, 200));
                self.talk.set_model(model).map(|()| said)
            }
            Ok(Input::Mode(mode)) => self.talk.set_mode(mode).map(|()| format!("{}.", mode.help())),
            Ok(Input::Resume(session)) => {
                self.last = undo::Turn::default();
                self.talk.resume(session).map(|()| "The conversation goes on with that session.".to_owned())
            }
        };
        match done {
            Ok(said) => self.dim(&said).map_err(unwritten)?,
            Err(error) => complain_of_start(&error),
        }
        Ok(Flow::On)
    }

    fn turn(&mut self, prompt: &str) -> Result<Flow, CommandError> {
        let mut turn = match self.talk.prompt(prompt) {
            Ok(turn) => turn,
            Err(error) => {
                complain_of_start(&error);
                return Ok(Flow::On);
            }
        };
        self.interrupts.begin(turn.canceller());
        let mut view = Pretty::of_turn();
        let mut written = Ok(());
        while let Some(item) = turn.next_blocking() {
            match item {
                TurnItem::Event(event) => {
                    let known = matches!(event.kind, EventKind::Started { .. }) && self.introduced;
                    self.introduced |= matches!(event.kind, EventKind::Started { .. });
                    if written.is_ok() && !known {
                        written = view.event(&event);
                    }
                }
                TurnItem::Asked(ask) => {
                    written = written.and(view.pause());
                    match self.answer(&ask) {
                        Ok(Some(Answer::Once)) => ask.allow_once(),
                        Ok(Some(Answer::Always)) => ask.allow_for_conversation(),
                        Ok(Some(Answer::No(None))) => ask.reject("The user says no"),
                        Ok(Some(Answer::No(Some(reason)))) => ask.reject(reason),
                        Ok(None) if ask.withdrawn().is_some() => {}
                        Ok(Some(Answer::Show) | None) => {
                            ask.reject("The user has cancelled the turn");
                            turn.cancel();
                        }
                        Err(error) => {
                            ask.reject("Nobody can be asked");
                            turn.cancel();
                            written = Err(error);
                        }
                    }
                }
                _ => {}
            }
            if written.is_err() {
                turn.cancel();
            }
        }
        let mut outcome = turn.outcome_blocking();
        self.interrupts.end();
        let is_known = |warning: &String| warning == finish::UNAVAILABLE;
        if outcome.warnings.iter().any(is_known) && std::mem::replace(&mut self.warned, true) {
            Arc::make_mut(&mut outcome).warnings.retain(|warning| !is_known(warning));
        }
        written.and_then(|()| view.end_turn(&outcome)).map_err(unwritten)?;
        self.last = undo::Turn::over(&outcome.files, self.talk.dir());
        Ok(match self.interrupts.ending() {
            true => Flow::Over(INTERRUPTED),
            false if outcome.status == Status::Cancelled => Flow::Interrupted,
            false => Flow::On,
        })
    }

    /// Asks whether something may be done; none when the question is withdrawn, or the turn is to be cancelled.
    fn answer(&mut self, ask: &Permission) -> io::Result<Option<Answer>> {
        let mut what = ask.action.clone();
        if let Action::Diff { path, .. } = &mut what
            && let Ok(inside) = path.strip_prefix(self.talk.dir())
        {
            *path = inside.to_owned();
        }
        let title = ask.headline();
        let mut most = Some(asked::FIRST_LINES);
        loop {
            let text = asked::shown(&ask.tool, &title, &what, most, self.colours);
            output::write(|out| write!(out, "{text}"))?;
            let question = || output::write(|out| write!(out, "{QUESTION}"));
            let answer = editor::answer(question, || ask.withdrawn().is_some())?;
            match (answer.as_deref().map(Answer::parse), ask.withdrawn()) {
                (None, Some(why)) => {
                    let why = format!("{why}: it is rejected.");
                    output::write(|out| writeln!(out, "\n  {}", self.colours.paint(Paint::Yellow, why)))?;
                    return Ok(None);
                }
                (None, None) => return output::write(|out| writeln!(out)).map(|()| None),
                (Some(Answer::Show), _) => most = None,
                (Some(answer), _) => return Ok(Some(answer)),
            }
        }
    }

    fn undo(&mut self) -> io::Result<()> {
        let last = std::mem::take(&mut self.last);
        if last.is_empty() {
            return self.dim("The last turn changed no files.");
        }
        for file in last.undo() {
            let name = one_line(&file.name, 2000);
            let line = match &file.result {
                Ok(undo::Back::Restored) => {
                    format!("{} {name}", self.colours.paint(Paint::Green, "put back"))
                }
                Ok(undo::Back::Removed) => format!("{} {name}", self.colours.paint(Paint::Green, "removed")),
                Err(why) => format!("{} {name}: {why}", self.colours.paint(Paint::Yellow, "left as it is")),
            };
            output::write(|out| writeln!(out, "{line}"))?;
        }
        Ok(())
    }

    fn dim(&self, text: &str) -> io::Result<()> {
        let text = self.colours.paint(Paint::Dim, text).to_string();
        output::write(|out| writeln!(out, "{text}"))
    }
}

fn unwritten(error: io::Error) -> CommandError {
    CommandError::failed(format!("the output could not be written: {error}"), "")
}

fn typing(error: io::Error) -> CommandError {
    CommandError::failed(
        format!("the terminal could not be read: {error}"),
        "Without one, give a prompt a line on stdin.",
    )
}
