//! The conversation: one thread, to which everything that happens comes.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use alhena_agent::env::Environment;
use alhena_agent::rules::Rules;
use alhena_agent::{Canceller, prices};
use alhena_agent::{Conversation, TurnItem};
use alhena_hosts::claude::control::{Ask, Incoming, Initialize, User};
use alhena_hosts::claude::hooks::{HookEvent, Hooks};
use alhena_hosts::claude::lines::{self, Head, Interruption, Lines};
use alhena_hosts::claude::options::Options;
use alhena_hosts::claude::{self, Mode};
use alhena_model::Timestamp;
use alhena_model::{Event, EventKind, Failure, FailureKind, Hint, Outcome};
use serde_json::{Value, json};

use super::pending::Pending;
use super::{start, tell_of, write};
use crate::command_error::complain;
use crate::commands::happening::{self, Break, Happening};
use crate::output::say;
use crate::style::with_flags;

/// How long hooks may take to answer at the end of a turn: as long as Claude gives them.
const HOOKS: Duration = Duration::from_secs(60);

/// There is one conversation.
const ONE: u64 = 1;

/// How far a turn has got.
pub enum Stage {
    /// There is none.
    Idle,
    /// Hooks look at the prompt.
    Prompting(User),
    /// The agent is at work.
    Going(Canceller),
    /// The agent has ended, and hooks look at that.
    Ending(Arc<Outcome>),
}

pub struct Serving {
    pub options: Options,
    pub lines: Lines,
    pub hooks: Hooks,
    pub rules: Rules,
    pub pending: Pending,
    pub stage: Stage,
    /// Why the turn is being ended.
    pub ended: Option<Interruption>,
    /// What hooks want the model to be told with the prompt.
    pub context: Vec<String>,
    /// Why hooks do not let the turn end.
    pub goes_on: Vec<String>,
    /// Whether this turn goes on only because of them.
    pub held: bool,
    pub input_over: bool,
    /// What ends it all, once one has come.
    signal: Option<i32>,
    talk: Option<Conversation>,
    /// Since when hooks are waited for.
    waiting_since: Instant,
    /// Whether this turn has said how it begins.
    begun: bool,
    queue: VecDeque<User>,
    /// Why what the program wanted at the beginning cannot be. The JavaScript SDK says its prompt all the same (0.3.325), and must not
    /// get a conversation without its hooks, its servers and its schema.
    refused: Option<String>,
    /// Whether the last result was an error.
    failed: bool,
    sender: SyncSender<Happening>,
}

/// The whole conversation, to its end.
pub fn serve(options: Options) -> ExitCode {
    let prices = match prices::find(None, &Environment::of_process()) {
        Ok(prices) => prices,
        Err(error) => {
            complain(&error, &error.hint().unwrap_or_default());
            return ExitCode::from(2);
        }
    };
    // What a run leaves whose keeper and guard are killed together comes to us.
    let _by_mark_only = alhena_agent::supervise::adoption::every_child_is_a_runs();
    let (sender, happenings) = happening::listen();
    let cwd = std::env::current_dir().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
    let head = Head {
        model: options.model.as_deref().and_then(claude::model).unwrap_or("auto").to_owned(),
        mode: options.mode,
        cwd,
        denied_tools: options.denied_tools(),
        ..Head::default()
    };
    let seed = u64::try_from(Timestamp::now().as_millis()).unwrap_or_default()
        ^ (u64::from(std::process::id()) << 40);
    let mut serving = Serving {
        lines: Lines::new(head, options.partial, seed, Some(prices)),
        options,
        hooks: Hooks::default(),
        rules: Rules::default(),
        pending: Pending::default(),
        stage: Stage::Idle,
        ended: None,
        context: Vec::new(),
        goes_on: Vec::new(),
        held: false,
        input_over: false,
        signal: None,
        talk: None,
        waiting_since: Instant::now(),
        begun: false,
        queue: VecDeque::new(),
        refused: None,
        failed: false,
        sender,
    };
    let done = serving.run(&happenings);
    // Nothing of it may be left when this process ends.
    serving.stage = Stage::Idle;
    let left = serving.pending.give_up();
    drop(left);
    if let Some(talk) = serving.talk.take() {
        // What the last turn has to say is not heard any more; it must not be held up by that.
        std::thread::spawn(move || while happenings.recv().is_ok() {});
        talk.close_blocking()
            .warnings
            .iter()
            .for_each(|warning| say(format_args!("warning: {}", with_flags(warning))));
    }
    match done {
        Ok(()) => ExitCode::from(u8::from(serving.failed)),
        Err(broken) => broken.exit(),
    }
}

impl Serving {
    fn run(&mut self, happenings: &Receiver<Happening>) -> Result<(), Break> {
        while !self.is_over() {
            let happening = match happenings.recv_timeout(Duration::from_secs(1)) {
                Ok(happening) => happening,
                Err(RecvTimeoutError::Timeout) => {
                    self.look_at_the_clock()?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            match happening {
                Happening::Line(line) => self.hear(&line)?,
                Happening::TooLong(bytes) => {
                    say(format_args!("warning: a line of {bytes} bytes on stdin is not read"))
                }
                Happening::InputOver => {
                    self.input_over = true;
                    self.nobody_answers()?;
                }
                Happening::Item(_, item) => match *item {
                    TurnItem::Event(event) => self.event(&event)?,
                    TurnItem::Asked(permission) => self.asked(permission)?,
                    TurnItem::Withdrawn { call_id, .. } => self.withdrawn(&call_id)?,
                    _ => {}
                },
                Happening::Over(_, outcome) => self.over(outcome)?,
                // The second one does not wait for the turn.
                Happening::Signal(signal) if self.signal.is_some() => return Err(Break::Signal(signal)),
                Happening::Signal(signal) => self.end_by(signal)?,
                Happening::Gone => return Err(Break::gone()),
            }
            self.go_on()?;
        }
        self.signal.map_or(Ok(()), |signal| Err(Break::Signal(signal)))
    }

    fn is_over(&self) -> bool {
        let nothing_comes = self.input_over || self.signal.is_some();
        nothing_comes && matches!(self.stage, Stage::Idle) && self.queue.is_empty()
    }

    /// A signal ends it all, in order: the turn that goes on gets its result, and others are not begun.
    fn end_by(&mut self, signal: i32) -> Result<(), Break> {
        self.signal = Some(signal);
        self.queue.clear();
        self.interrupt(Interruption::ByProgram);
        self.give_up()
    }

    fn hear(&mut self, line: &[u8]) -> Result<(), Break> {
        match Incoming::read(line) {
            Ok(Incoming::Request { id, ask }) => {
                let answer = match self.request(ask) {
                    Ok(response) => lines::answer(&id, &response),
                    Err(error) => lines::refusal(&id, &error),
                };
                Ok(write(&answer)?)
            }
            Ok(Incoming::Answer { id, answer }) => self.answered(&id, &answer),
            Ok(Incoming::User(_)) if self.signal.is_some() => Ok(()),
            Ok(Incoming::User(user)) => {
                self.queue.push_back(user);
                Ok(())
            }
            Ok(Incoming::Other) => Ok(()),
            Err(fault) => {
                // It may have been what it begins with.
                if self.talk.is_none() && fault.id.is_some() {
                    self.refused = Some(fault.message.clone());
                }
                Ok(tell_of(&fault)?)
            }
        }
    }

    fn request(&mut self, ask: Ask) -> Result<Value, String> {
        match ask {
            Ask::Initialize(initialize) => {
                if self.talk.is_some() {
                    return Err("the conversation has begun already".to_owned());
                }
                let begun = self.begin(&initialize);
                self.refused = begun.clone().err();
                begun.map(|()| lines::initialized(std::process::id()))
            }
            Ask::Interrupt => {
                self.interrupt(Interruption::ByProgram);
                Ok(
                    json!({"still_queued": self.queue.iter().filter_map(|user| user.uuid.clone()).collect::<Vec<_>>()}),
                )
            }
            Ask::SetPermissionMode(name) => {
                let mode = Mode::named(&name)?;
                self.set_mode(mode)?;
                Ok(json!({}))
            }
            Ask::SetModel(name) => {
                let first = self.options.model.as_deref().and_then(claude::model);
                let named = name.as_deref().and_then(claude::model);
                let model = named.or(first).unwrap_or("auto").to_owned();
                if let (None, Some(name)) = (named, name.as_deref().filter(|name| !name.is_empty())) {
                    say(format_args!("warning: {}", start::not_a_model(name)));
                }
                if let Some(talk) = &mut self.talk {
                    talk.set_model(model.clone()).map_err(|error| error.to_string())?;
                }
                self.lines.head.model = model;
                Ok(json!({}))
            }
            Ask::McpStatus => {
                let servers = self.lines.head.mcp_servers.iter();
                let servers: Vec<Value> =
                    servers.map(|name| json!({"name": name, "status": "pending"})).collect();
                Ok(json!({"mcpServers": servers}))
            }
            Ask::Unknown(name) => Err(format!("{name} cannot be done with Gemini CLI")),
        }
    }

    /// Begins the conversation with the agent.
    fn begin(&mut self, initialize: &Initialize) -> Result<(), String> {
        let hooks = Hooks::read(&initialize.hooks)?;
        let started = start::start(&self.options, initialize, hooks.any(HookEvent::PreToolUse))?;
        self.hooks = hooks;
        self.rules = started.rules;
        self.talk = Some(started.talk);
        self.lines.head.mcp_servers = started.mcp_servers;
        started.notices.iter().for_each(|notice| say(format_args!("warning: {notice}")));
        Ok(())
    }

    pub fn set_mode(&mut self, mode: Mode) -> Result<(), String> {
        if let Some(talk) = &mut self.talk {
            let approval = start::approval(mode, self.hooks.any(HookEvent::PreToolUse));
            talk.set_mode(approval).map_err(|error| error.to_string())?;
        }
        self.options.mode = mode;
        self.lines.head.mode = mode;
        Ok(())
    }

    /// The turn is to end. Whoever ends it first says why.
    pub fn interrupt(&mut self, why: Interruption) {
        match &self.stage {
            Stage::Going(canceller) => canceller.cancel(),
            Stage::Prompting(_) => {}
            Stage::Idle | Stage::Ending(_) => return,
        }
        self.ended.get_or_insert(why);
    }

    /// Begins the next turn, or ends one whose hooks have answered, as long as there is something to do.
    fn go_on(&mut self) -> Result<(), Break> {
        loop {
            match &self.stage {
                Stage::Idle => match self.queue.pop_front() {
                    Some(user) => self.next_turn(user)?,
                    None => return Ok(()),
                },
                Stage::Prompting(_) if self.pending.hooks(HookEvent::UserPromptSubmit) == 0 => {
                    self.prompt()?
                }
                Stage::Ending(_) if self.signal.is_some() || self.hooks_are_done() => self.end()?,
                Stage::Prompting(_) | Stage::Going(_) | Stage::Ending(_) => return Ok(()),
            }
        }
    }

    fn hooks_are_done(&self) -> bool {
        [HookEvent::PostToolUse, HookEvent::PostToolUseFailure, HookEvent::Stop]
            .into_iter()
            .all(|event| self.pending.hooks(event) == 0)
    }

    fn next_turn(&mut self, user: User) -> Result<(), Break> {
        (self.begun, self.held, self.ended) = (false, false, None);
        if self.talk.is_none() {
            let begun = self.refused.clone().map_or_else(|| self.begin(&Initialize::default()), Err);
            if let Err(error) = begun {
                return self.never_began(&error);
            }
        }
        if let Some(kind) = user.unsaid.first() {
            return self
                .never_began(&format!("a message with {kind} cannot be said to Gemini CLI: only text can"));
        }
        self.call_hooks(HookEvent::UserPromptSubmit, None, &json!({"prompt": user.text}))?;
        self.waiting_since = Instant::now();
        self.stage = Stage::Prompting(user);
        Ok(())
    }

    /// The prompt goes to the agent.
    fn prompt(&mut self) -> Result<(), Break> {
        let Stage::Prompting(user) = std::mem::replace(&mut self.stage, Stage::Idle) else { return Ok(()) };
        let context = std::mem::take(&mut self.context);
        if self.ended.is_some() {
            let failure = Failure::new(FailureKind::Cancelled, "The prompt was not sent");
            return self.finish(&Outcome::not_begun(failure));
        }
        let text = std::iter::once(user.text).chain(context).collect::<Vec<_>>().join("\n\n");
        self.say(text)
    }

    fn say(&mut self, text: String) -> Result<(), Break> {
        let turn = match self.talk.as_mut().map(|talk| talk.prompt(text)) {
            Some(Ok(turn)) => turn,
            Some(Err(error)) => return self.never_began(&error.to_string()),
            None => return Ok(()),
        };
        self.stage = Stage::Going(turn.canceller());
        happening::follow(ONE, turn, self.sender.clone());
        Ok(())
    }

    fn never_began(&mut self, error: &str) -> Result<(), Break> {
        self.ended = Some(Interruption::ByHook(error.to_owned()));
        self.finish(&Outcome::not_begun(Failure::new(FailureKind::Input, error)))
    }

    fn event(&mut self, event: &Event) -> Result<(), Break> {
        if let EventKind::Started { session_id, model } = &event.kind {
            self.lines.head.session_id.clone_from(session_id);
            if !model.is_empty() {
                self.lines.head.model.clone_from(model);
            }
        }
        self.write_head()?;
        for line in self.lines.event(event) {
            write(&line)?;
        }
        if let EventKind::ToolResult { id, ok, output, error, .. } = &event.kind {
            let error = error.as_ref().map(|error| error.message.as_str());
            self.after_tool(id, *ok, output.as_deref(), error)?;
        }
        Ok(())
    }

    /// Says how the turn begins, once.
    fn write_head(&mut self) -> Result<(), Break> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        Ok(write(&self.lines.begin())?)
    }

    /// The agent has ended: hooks look at that, unless it was ended.
    fn over(&mut self, outcome: Arc<Outcome>) -> Result<(), Break> {
        self.give_up()?;
        if outcome.is_success() && self.ended.is_none() {
            let input = json!({"stop_hook_active": self.held, "last_assistant_message": outcome.text.last()});
            self.call_hooks(HookEvent::Stop, None, &input)?;
        }
        self.waiting_since = Instant::now();
        self.stage = Stage::Ending(outcome);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Break> {
        let Stage::Ending(outcome) = std::mem::replace(&mut self.stage, Stage::Idle) else { return Ok(()) };
        let reasons = std::mem::take(&mut self.goes_on);
        if !reasons.is_empty() && self.ended.is_none() && outcome.is_success() {
            self.held = true;
            self.lines.goes_on(&outcome);
            return self.say(reasons.join("\n\n"));
        }
        self.finish(&outcome)
    }

    fn finish(&mut self, outcome: &Outcome) -> Result<(), Break> {
        self.stage = Stage::Idle;
        self.write_head()?;
        for line in self.lines.end(outcome, self.ended.as_ref()) {
            self.failed = line.get("is_error").and_then(Value::as_bool).unwrap_or(self.failed);
            write(&line)?;
        }
        Ok(())
    }

    /// Hooks that do not answer hold up nothing for ever.
    fn look_at_the_clock(&mut self) -> Result<(), Break> {
        let waits = matches!(self.stage, Stage::Prompting(_) | Stage::Ending(_));
        if waits && self.waiting_since.elapsed() >= HOOKS {
            let why = format!("a hook did not answer within {} seconds", HOOKS.as_secs());
            self.ended.get_or_insert(Interruption::ByHook(why));
            self.give_up()?;
            self.go_on()?;
        }
        Ok(())
    }
}
