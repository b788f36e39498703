//! `alhena terminal top`: all agents on one screen, live.

mod agents;
mod keys;
mod picture;
mod screen;

use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use alhena_model::Timestamp;
use alhena_terminal::screen::Status;
use alhena_terminal::{TerminalError, TerminalErrorKind, Terminals};
use ratatui::crossterm::event::{self, Event};
use ratatui::widgets::TableState;

use self::agents::{Agent, Round, gather};
use self::keys::{Mode, Wish};
use self::picture::{Picture, clean, draw, head, row};
use self::screen::Screen;
use super::needs_terminal;
use crate::output::Stream;
use crate::signals::Interrupts;
use crate::style::{Colours, one_line};

/// How often signals and news are looked for.
const TICK: Duration = Duration::from_millis(100);
/// How long an agent may take to leave, or to stop what it does.
const GRACE: Duration = Duration::from_secs(10);

/// Show all agents on one screen, live: what they do, since when, what it took, what they wait for.
///
/// Keys attach to the chosen agent, answer its question, interrupt it, read its last answer or end it; ? lists them.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub fn execute(terminals: &Terminals) -> Result<ExitCode, TerminalError> {
    needs_terminal("top", &terminals.command_line(&["list"]))?;
    let interrupts = Interrupts::catch();
    let failed =
        |error: io::Error| TerminalError::new(TerminalErrorKind::Io, format!("the terminal: {error}"));
    end_with_the_terminal();
    let mut screen = Screen::take().map_err(failed)?;
    let mut top = Top::new(terminals.clone());
    let done = top.run(&mut screen, &interrupts);
    drop(screen);
    done.map_err(failed)?;
    Ok(match interrupts.caught() {
        Some(_) => ExitCode::from(130),
        None => ExitCode::SUCCESS,
    })
}

/// Ends the process when its terminal has gone: whoever reads keys from one that has would read nothing for ever, deaf to
/// signals. There is nothing to restore then.
fn end_with_the_terminal() {
    use alhena_sys::handles;
    use alhena_sys::poll::{self, Wanted};
    let _refused = std::thread::Builder::new().name("hang-up".to_owned()).spawn(|| {
        let stdin = handles::stdin();
        // Nothing but the end of the terminal, or a signal, is an answer to a question for nothing.
        while poll::wait(&[Wanted::hung_up(&stdin)], None).is_ok_and(|gone| !gone.contains(&true)) {}
        // As after SIGHUP, which may come as well.
        std::thread::sleep(TICK * 5);
        std::process::exit(130);
    });
}

struct Top {
    terminals: Terminals,
    news: Receiver<Round>,
    agents: Vec<Agent>,
    /// The chosen agent, by its id: others come and go.
    chosen: Option<String>,
    mode: Mode,
    note: String,
    /// What has come of what was asked for.
    done: (Sender<String>, Receiver<String>),
    table: TableState,
    shown: Option<Picture>,
}

impl Top {
    fn new(terminals: Terminals) -> Self {
        Self {
            news: gather(terminals.clone()),
            terminals,
            agents: Vec::new(),
            chosen: None,
            mode: Mode::Table,
            note: String::new(),
            done: channel(),
            table: TableState::new(),
            shown: None,
        }
    }

    fn run(&mut self, screen: &mut Screen, interrupts: &Interrupts) -> io::Result<()> {
        if let Ok(first) = self.news.recv() {
            self.learn(first);
        }
        while interrupts.caught().is_none() {
            while let Ok(round) = self.news.try_recv() {
                self.learn(round);
            }
            while let Ok(note) = self.done.1.try_recv() {
                self.note = note;
            }
            self.show(screen)?;
            if !event::poll(TICK)? {
                continue;
            }
            match event::read()? {
                Event::Key(key) => {
                    let waits = self.agent().is_some_and(|agent| agent.status == Status::Waiting);
                    match keys::pressed(&mut self.mode, key, waits) {
                        Some(Wish::Quit) => return Ok(()),
                        Some(wish) => self.fulfil(wish, screen, interrupts)?,
                        None => {}
                    }
                }
                Event::Resize(..) => self.shown = None,
                _ => {}
            }
        }
        Ok(())
    }

    fn learn(&mut self, round: Round) {
        match round {
            Ok(agents) => self.agents = agents,
            Err(error) => self.note = error.to_string(),
        }
        if self.place().is_none() {
            self.chosen = self.agents.first().map(|agent| agent.id.clone());
        }
    }

    fn place(&self) -> Option<usize> {
        let chosen = self.chosen.as_ref()?;
        self.agents.iter().position(|agent| agent.id == *chosen)
    }

    fn agent(&self) -> Option<&Agent> {
        self.agents.get(self.place()?)
    }

    fn picture(&self, size: (u16, u16)) -> Picture {
        let now = Timestamp::now();
        let name = self.agent().map(|agent| one_line(&agent.name, 64)).unwrap_or_default();
        let detail = self.agent().and_then(|agent| agent.detail.as_deref()).map(clean);
        Picture {
            head: head(&self.agents),
            rows: self.agents.iter().map(|agent| row(agent, now)).collect(),
            chosen: self.place(),
            detail: detail.unwrap_or_default(),
            page: self.mode.page(),
            note: self.mode.ask(&name).unwrap_or_else(|| one_line(&self.note, 400)),
            help: self.mode.help().to_owned(),
            size,
        }
    }

    /// Draws, if anything has changed: where nothing moves, nothing is written.
    fn show(&mut self, screen: &mut Screen) -> io::Result<()> {
        let picture = self.picture(screen.size());
        if self.shown.as_ref() == Some(&picture) {
            return Ok(());
        }
        let (table, colours) = (&mut self.table, Colours::of(Stream::Out));
        screen.draw(|frame| draw(frame, &picture, table, colours))?;
        self.shown = Some(picture);
        Ok(())
    }

    fn fulfil(&mut self, wish: Wish, screen: &mut Screen, interrupts: &Interrupts) -> io::Result<()> {
        self.note.clear();
        if let Wish::Move(by) = wish {
            let last = self.agents.len().saturating_sub(1);
            let place = self.place().unwrap_or(0).saturating_add_signed(by).min(last);
            self.chosen = self.agents.get(place).map(|agent| agent.id.clone());
            return Ok(());
        }
        let Some(agent) = self.agent() else { return Ok(()) };
        let (id, name) = (agent.id.clone(), agent.name.clone());
        match wish {
            Wish::Attach => {
                let terminals = self.terminals.clone();
                let over = || interrupts.caught().is_some();
                let done = screen.lend(|| terminals.find(&id).and_then(|terminal| terminal.attach(over)))?;
                self.shown = None;
                if let Err(error) = done {
                    self.note = told(&error);
                }
            }
            Wish::Read => {
                let answer = self.terminals.find(&id).and_then(|terminal| terminal.last_answer());
                match answer {
                    Ok(answer) => self.mode = Mode::Page { text: clean(&answer.text), moved: 0 },
                    Err(error) => self.note = told(&error),
                }
            }
            Wish::Answer(text) => self.later(id, format!("{name} was answered."), move |terminal| {
                terminal.answer(&text).map(|_| ())
            }),
            Wish::Interrupt => self.later(id, format!("{name} was interrupted."), |terminal| {
                terminal.interrupt(GRACE).map(|_| ())
            }),
            Wish::Exit => {
                self.note = format!("{name} leaves ...");
                self.later(id, format!("{name} has ended."), |terminal| terminal.exit(GRACE).map(|_| ()));
            }
            Wish::Quit | Wish::Move(_) => {}
        }
        Ok(())
    }

    /// Does something beside the screen, and says what came of it.
    fn later(
        &self,
        id: String,
        done: String,
        what: impl FnOnce(&alhena_terminal::Terminal) -> Result<(), TerminalError> + Send + 'static,
    ) {
        let (terminals, sender) = (self.terminals.clone(), self.done.0.clone());
        std::thread::spawn(move || {
            let result = terminals.find(&id).and_then(|terminal| what(&terminal));
            let _quit_meanwhile = sender.send(result.map_or_else(|error| told(&error), |()| done));
        });
    }
}

fn told(error: &TerminalError) -> String {
    format!("{} {}", error.message, error.hint)
}
