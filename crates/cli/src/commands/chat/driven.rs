//! A conversation that a program holds, for packages in other languages: lines of JSON both ways.
//!
//! What the program says is the control protocol of the Claude Agent SDK: prompts, requests, and answers to what it is asked.
//! What it hears are the lines of the view `message-lines`, turn by turn, and requests of the same protocol.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use alhena_agent::{Approval, Permission, RunError, TurnItem};
use alhena_agent::{Canceller, Talk};
use alhena_hosts::claude::control::{Ask, Incoming, User};
use alhena_hosts::claude::lines;
use alhena_hosts::claude::permission::{Update, Verdict};
use alhena_model::Outcome;
use alhena_model::options::Transport;
use serde_json::{Value, json};

use super::interrupt::INTERRUPTED;
use crate::command_error::CommandError;
use crate::commands::claude::ask::question;
use crate::commands::claude::pending::{Pending, Purpose, Waiting};
use crate::commands::claude::{tell_of, withdraw, write};
use crate::commands::happening::{self, Break, Happening};
use crate::commands::talk;
use crate::output;
use crate::signals::Interrupts;
use crate::views::{self, Claims, Name, Target, View};

const NOW_AND_THEN: Duration = Duration::from_secs(1);

struct Driven {
    talk: Talk,
    /// The model that it began with.
    first_model: Option<String>,
    queue: VecDeque<User>,
    turn: Option<Going>,
    pending: Pending,
    input_over: bool,
    /// The signal that has come.
    interrupted: Option<i32>,
    code: u8,
    sender: SyncSender<Happening>,
}

/// The turn that goes on.
struct Going {
    canceller: Canceller,
    view: Box<dyn View>,
}

/// Holds it until the program says nothing any more. The exit code is that of the last turn that failed.
pub fn hold(talk: Talk, before: &Interrupts) -> Result<u8, CommandError> {
    let (sender, happenings) = happening::listen();
    let mut driven = Driven {
        first_model: talk.model(),
        talk,
        queue: VecDeque::new(),
        turn: None,
        pending: Pending::default(),
        input_over: false,
        interrupted: None,
        code: 0,
        sender,
    };
    let done = driven.run(&happenings, before);
    let Driven { talk, pending, turn, code, .. } = driven;
    drop((pending, turn));
    // What the last turn has to say is not heard any more; it must not be held up by that.
    std::thread::spawn(move || while happenings.recv().is_ok() {});
    talk::close(talk);
    match done {
        Ok(()) => Ok(code),
        Err(Break::Signal(_)) => Ok(INTERRUPTED),
        // A reader that went away has what it wants.
        Err(Break::Written(error)) if output::is_gone(&error) => Ok(INTERRUPTED),
        Err(Break::Written(error)) => {
            Err(CommandError::failed(format!("the output could not be written: {error}"), ""))
        }
    }
}

/// A conversation that could not begin: the program gets the reason as a result.
pub fn never_began(error: RunError) -> u8 {
    let code = error.exit_status();
    views::failed_to_start(Name::MessageLines, Outcome::not_begun(error.into_failure()), Target::stdout());
    code
}

impl Driven {
    fn run(&mut self, happenings: &Receiver<Happening>, before: &Interrupts) -> Result<(), Break> {
        while !self.is_over() {
            let happening = match happenings.recv_timeout(NOW_AND_THEN) {
                Ok(happening) => happening,
                // It came while the conversation was being prepared.
                Err(RecvTimeoutError::Timeout) => {
                    before.caught().into_iter().for_each(|signal| self.interrupt(signal));
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            match happening {
                Happening::Line(line) => self.hear(&line)?,
                Happening::TooLong(bytes) => {
                    self.never_prompted(&format!("a line of {bytes} bytes is not read"))
                }
                Happening::InputOver => {
                    self.input_over = true;
                    let (_, waiting) = self.pending.give_up();
                    waiting.into_iter().for_each(|waiting| {
                        waiting.permission.reject("The program has closed its end and cannot answer");
                    });
                }
                Happening::Item(_, item) => self.item(*item)?,
                Happening::Over(_, outcome) => self.over(&outcome)?,
                // The second one does not wait for the turn.
                Happening::Signal(signal) if self.interrupted.is_some() => return Err(Break::Signal(signal)),
                Happening::Signal(signal) => self.interrupt(signal),
                Happening::Gone => return Err(Break::gone()),
            }
            self.go_on();
        }
        self.interrupted.map_or(Ok(()), |signal| Err(Break::Signal(signal)))
    }

    fn is_over(&self) -> bool {
        (self.interrupted.is_some() || self.input_over) && self.turn.is_none() && self.queue.is_empty()
    }

    /// A signal ends it all, in order: the turn that goes on gets its result, and others are not begun.
    fn interrupt(&mut self, signal: i32) {
        self.interrupted = Some(signal);
        self.queue.clear();
        if let Some(turn) = &self.turn {
            turn.canceller.cancel();
        }
    }

    fn hear(&mut self, line: &[u8]) -> Result<(), Break> {
        match Incoming::read(line) {
            Ok(Incoming::Request { id, ask }) => {
                let answer = match self.request(ask) {
                    Ok(()) => lines::answer(&id, &json!({})),
                    Err(error) => lines::refusal(&id, &error),
                };
                Ok(write(&answer)?)
            }
            Ok(Incoming::Answer { id, answer }) => {
                if let Some(Purpose::Permission(tool)) = self.pending.answered(&id) {
                    self.decided(tool, &answer);
                }
                Ok(())
            }
            Ok(Incoming::User(_)) if self.interrupted.is_some() => Ok(()),
            Ok(Incoming::User(user)) => {
                self.queue.push_back(user);
                Ok(())
            }
            Ok(Incoming::Other) => Ok(()),
            Err(fault) => Ok(tell_of(&fault)?),
        }
    }

    fn request(&mut self, ask: Ask) -> Result<(), String> {
        let said = |error: RunError| error.to_string();
        match ask {
            // It has begun; whoever asks knows so from the answer.
            Ask::Initialize(_) => Ok(()),
            Ask::Interrupt => {
                if let Some(turn) = &self.turn {
                    turn.canceller.cancel();
                }
                Ok(())
            }
            Ask::SetPermissionMode(name) => self.talk.set_mode(name.parse::<Approval>()?).map_err(said),
            Ask::SetModel(name) => {
                let model = name.filter(|name| !name.is_empty()).or_else(|| self.first_model.clone());
                self.talk.set_model(model.unwrap_or_else(|| "auto".to_owned())).map_err(said)
            }
            Ask::McpStatus => Err("mcp_status is not known here".to_owned()),
            Ask::Unknown(name) => Err(format!("{name} is not known here")),
        }
    }

    /// Begins the next turn, as soon as there is none.
    fn go_on(&mut self) {
        while self.turn.is_none() {
            let Some(user) = self.queue.pop_front() else { break };
            match user.unsaid.first() {
                Some(kind) => self.never_prompted(&format!(
                    "a message with {kind} cannot be said to Gemini CLI: only text can"
                )),
                None if user.text.trim().is_empty() => self.never_prompted("the prompt is empty"),
                None => self.prompt(&user.text),
            }
        }
    }

    fn never_prompted(&mut self, why: &str) {
        let hint = "A prompt is a text that says something.".to_owned();
        self.code = never_began(RunError::usage(why.to_owned(), hint));
    }

    fn prompt(&mut self, text: &str) {
        match self.talk.prompt(text) {
            Ok(turn) => {
                let mut view = views::open(Name::MessageLines, Target::stdout(), true, Claims::Checked);
                view.transport(Transport::Acp);
                self.turn = Some(Going { canceller: turn.canceller(), view });
                happening::follow(0, turn, self.sender.clone());
            }
            Err(error) => self.code = never_began(error),
        }
    }

    fn item(&mut self, item: TurnItem) -> Result<(), Break> {
        let Some(turn) = &mut self.turn else { return Ok(()) };
        match item {
            TurnItem::Event(event) => {
                turn.view.event(&event)?;
                turn.view.caught_up()?;
            }
            TurnItem::Conversation(said) => turn.view.conversation(*said),
            TurnItem::Asked(permission) => return self.asked(permission),
            TurnItem::Withdrawn { call_id, .. } => withdraw(self.pending.withdraw(&call_id).0)?,
            _ => {}
        }
        Ok(())
    }

    fn over(&mut self, outcome: &Outcome) -> Result<(), Break> {
        let (asked, waiting) = self.pending.give_up();
        drop(waiting);
        withdraw(asked)?;
        if let Some(mut turn) = self.turn.take() {
            let code = outcome.exit_status();
            self.code = if code == 0 { self.code } else { code };
            turn.view.close(outcome)?;
        }
        Ok(())
    }

    /// The agent wants to use a tool.
    fn asked(&mut self, permission: Permission) -> Result<(), Break> {
        if self.input_over {
            permission.reject("The program has closed its end and cannot answer");
            return Ok(());
        }
        let question = question(&permission);
        let request = question.request();
        let tool = self.pending.wait(Waiting { permission, question, said: Vec::new() });
        let id = self.pending.ask(Purpose::Permission(tool));
        Ok(write(&lines::request(&id, &request))?)
    }

    /// The program has decided.
    fn decided(&mut self, tool: u64, answer: &Result<Value, String>) {
        let Some(Waiting { permission, question, .. }) = self.pending.decided(tool) else { return };
        match Verdict::read(answer, &question.input) {
            Verdict::Deny { message, interrupt } => {
                permission.reject(message);
                if let Some(turn) = self.turn.as_ref().filter(|_| interrupt) {
                    turn.canceller.cancel();
                }
            }
            Verdict::Impossible(why) => permission.reject(why),
            Verdict::Allow(updates) => match updates.iter().find_map(impossible) {
                Some(why) => permission.reject(why),
                None if remembers(answer) => permission.allow_for_conversation(),
                None => permission.allow_once(),
            },
        }
    }
}

/// What of an answer cannot be done here; nothing is allowed by half of an answer.
fn impossible(update: &Update) -> Option<String> {
    Some(match update {
        Update::Impossible(why) => why.clone(),
        Update::Mode(_) => "the mode is set by set_permission_mode".to_owned(),
        Update::Allow(_) | Update::Deny(_) => "rules are given at the beginning".to_owned(),
    })
}

/// Whether the same is allowed from now on.
fn remembers(answer: &Result<Value, String>) -> bool {
    answer.as_ref().ok().and_then(|answer| answer.get("remember")).and_then(Value::as_bool) == Some(true)
}
