//! A conversation without a terminal: each line of stdin is a prompt, and what would have to be asked is rejected.

use std::io::{self, BufRead};

use alhena_agent::Talk;
use alhena_agent::TurnItem;
use alhena_model::options::Transport;

use super::input::Input;
use super::interrupt::{INTERRUPTED, Interrupts};
use super::terminal;
use super::undo;
use crate::command_error::CommandError;
use crate::commands::talk;
use crate::output::{self, say};
use crate::style::one_line;
use crate::views::{self, Claims, Name, Target};

/// Holds it to the end of stdin. The exit code is that of the last turn that failed.
pub fn hold(
    mut talk: Talk,
    first: Option<String>,
    json: bool,
    interrupts: &Interrupts,
) -> Result<u8, CommandError> {
    let mut last = undo::Turn::default();
    let mut code = 0;
    let typed = io::stdin().lock().lines().map(|line| line.map_err(unread));
    // What is given as an argument is a prompt, whatever it begins with.
    let lines = first.map(|first| Ok(format!(" {first}"))).into_iter().chain(typed);
    for line in lines {
        let done = match Input::parse(&line?) {
            Err(wrong) => return Err(CommandError::usage(wrong, "")),
            Ok(Input::Prompt(prompt)) => {
                let name = if json { Name::Events } else { Name::Text };
                let (outcome, turn) = turn(&mut talk, &prompt, name, interrupts)?;
                last = turn;
                code = if outcome == 0 { code } else { outcome };
                Ok(())
            }
            Ok(Input::Nothing) => Ok(()),
            Ok(Input::Exit) => break,
            Ok(Input::Help) => {
                say(terminal::help());
                Ok(())
            }
            Ok(Input::Model(model)) => talk.set_model(model),
            Ok(Input::Mode(mode)) => talk.set_mode(mode),
            Ok(Input::Resume(session)) => talk.resume(session),
            Ok(Input::Undo) => {
                for file in std::mem::take(&mut last).undo() {
                    say(match &file.result {
                        Ok(_) => format!("put back: {}", one_line(&file.name, 2000)),
                        Err(why) => format!("left as it is: {}: {why}", one_line(&file.name, 2000)),
                    });
                }
                Ok(())
            }
        };
        done?;
        if interrupts.ending() {
            code = INTERRUPTED;
            break;
        }
    }
    talk::close(talk);
    Ok(code)
}

fn turn(
    talk: &mut Talk,
    prompt: &str,
    name: Name,
    interrupts: &Interrupts,
) -> Result<(u8, undo::Turn), CommandError> {
    let mut turn = talk.prompt(prompt)?;
    interrupts.begin(turn.canceller());
    let mut view = views::open(name, Target::stdout(), false, Claims::Checked);
    view.transport(Transport::Acp);
    let mut written = Ok(());
    while let Some(item) = turn.next_blocking() {
        match item {
            TurnItem::Event(event) if written.is_ok() => {
                written = view.event(&event).and_then(|()| view.caught_up());
                if written.is_err() {
                    // Nobody reads any more.
                    turn.cancel();
                }
            }
            TurnItem::Asked(ask) => ask.reject("Nobody is there to be asked"),
            _ => {}
        }
    }
    let outcome = turn.outcome_blocking();
    interrupts.end();
    match written.and_then(|()| view.close(&outcome)) {
        Err(error) if !output::is_gone(&error) => {
            return Err(CommandError::failed(format!("the output could not be written: {error}"), ""));
        }
        // A reader that went away has what it wants.
        _ => {}
    }
    Ok((outcome.exit_status(), undo::Turn::over(&outcome.files, talk.dir())))
}

fn unread(error: io::Error) -> CommandError {
    CommandError::failed(format!("stdin could not be read: {error}"), "Give a prompt a line, as UTF-8 text.")
}
