//! Launching: shell, warm-up, agent, readiness (D-38 to D-41).
//!
//! A prompt on the screen is not enough to be ready: since 0.45 it appears up to a second before the CLI listens, and what is
//! sent in between is queued or lost. What can stand in the way is told apart: no CLI, no login, a folder that nobody
//! trusts, a crash.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_agent::home::McpServer;
use alhena_agent::supervise::custody::keeper_program;
use alhena_agent::{Finder, Gemini, Trust};
use alhena_model::{FailureKind, Hint, RunOptions, Timestamp};
use alhena_sys::random;

use crate::command_line::quoted;
use crate::equip::{Equipped, Orders, prompt_of};
use crate::error::{TerminalError, TerminalErrorKind, kind_of};
use crate::mcp::McpScope;
use crate::profile::{Profile, ProfileBy};
use crate::screen::{Reading, Status, WaitingFor};
use crate::store::{self, Phase, Record};
use crate::terminal::{History, Live, Terminal};
use crate::terminals::Terminals;
use crate::turn::Journal;
use crate::typing::Force;
use crate::window::Layout;

/// A longer prompt does not fit into an argument together with everything else; it is pasted.
const LONGEST_ARGUMENT: usize = 32 << 10;
/// What a shell may take until it answers.
const SHELL: Duration = Duration::from_secs(20);
/// How long a spinner about a login may turn.
const PASSING: Duration = Duration::from_secs(15);

/// How long a history that is drawn has to stand still, and how long it may take.
const DRAWN: Duration = Duration::from_millis(500);
const LONGEST_DRAWING: Duration = Duration::from_secs(5);

/// What to launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// What people call it: letters, digits, `-` and `_`. Made up when not given.
    pub name: Option<String>,
    /// The first prompt; an empty one is none.
    pub prompt: String,
    /// The options of the agent. Those that cannot apply to a terminal are refused.
    pub options: RunOptions,
    /// MCP servers beside those of the options and of the profile.
    pub mcp_servers: Vec<McpServer>,
    /// Who the agent is.
    pub profile: Option<Profile>,
    /// How it learns that.
    pub profile_by: ProfileBy,
    /// Where its MCP servers are written down.
    pub mcp_scope: McpScope,
    /// The terminal, by its id, that this one works for: when that ends, this one does.
    pub supervisor: Option<String>,
    /// Where it lies in tmux: in a window of its own, or beside others.
    pub layout: Layout,
    /// A person's own configuration of tmux, for the whole server.
    pub tmux_conf: Option<PathBuf>,
    /// What to do when the agent waits for somebody: `bell`, or a command for a shell.
    pub notify: Option<String>,
    /// How wide.
    pub columns: u16,
    /// How high.
    pub rows: u16,
    /// How long it may take until it is ready.
    pub timeout: Duration,
    /// What happens to a terminal that asks for a login or for trust instead of becoming ready.
    pub unready: Unready,
}

/// What happens to a terminal that does not become ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unready {
    /// It is ended: nothing is left behind.
    #[default]
    End,
    /// It stays, for somebody to answer its dialog.
    Keep,
}

impl Default for Launch {
    fn default() -> Self {
        Self {
            name: None,
            prompt: String::new(),
            options: RunOptions::default(),
            mcp_servers: Vec::new(),
            profile: None,
            profile_by: ProfileBy::default(),
            mcp_scope: McpScope::default(),
            supervisor: None,
            layout: Layout::default(),
            tmux_conf: None,
            notify: None,
            columns: 150,
            rows: 46,
            timeout: Duration::from_secs(60),
            unready: Unready::End,
        }
    }
}

impl Terminals {
    /// Launches an agent and waits until it is ready; with a prompt, until it works on it.
    pub fn launch(&self, launch: Launch) -> Result<Terminal, TerminalError> {
        let deadline = Instant::now() + launch.timeout;
        self.inner.tmux.check()?;
        // Before anything is looked for: whoever has taken a name has to choose another one first.
        self.free_name(launch.name.as_deref(), launch.options.resume.is_some())?;
        let id = new_id()?;
        let mut equipped = Equipped::of(launch, &id, &self.inner.environment)?;
        equipped.lend(&id, &self.inner.borrowed, &self.inner.environment)?;
        let (terminal, before) = self.begin(&equipped, id.clone()).inspect_err(|_| {
            self.inner.borrowed.give_back(&id);
        })?;
        let _later = self.inner.borrowed.confirm(&id);
        let ready = terminal.become_ready(&equipped, deadline);
        match ready {
            Ok(()) => {
                if let Some(before) = before {
                    self.terminal(&before).kill()?;
                }
                Ok(terminal)
            }
            Err(error) => {
                let stays = equipped.launch.unready == Unready::Keep
                    && matches!(error.kind, TerminalErrorKind::Untrusted | TerminalErrorKind::Auth);
                if stays {
                    return Ok(terminal);
                }
                let _already_gone = terminal.kill();
                Err(error)
            }
        }
    }

    /// Everything up to a pane with a record. The record of one that had gone, and is brought back, comes with it.
    fn begin(&self, equipped: &Equipped, id: String) -> Result<(Terminal, Option<Record>), TerminalError> {
        let Equipped { launch, notices, .. } = equipped;
        let options = &launch.options;
        let dir = options.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let dir = std::fs::canonicalize(&dir).ok().filter(|dir| dir.is_dir()).ok_or_else(|| {
            TerminalError::usage(
                format!("{} is not a directory", dir.display()),
                "Give a directory that exists.",
            )
        })?;
        let gemini = find(equipped, &dir)?;
        let _lock = self.inner.store.lock_all()?;
        let (name, before) = self.free_name(launch.name.as_deref(), options.resume.is_some())?;
        let prompt = if launch.prompt.len() > LONGEST_ARGUMENT { "" } else { launch.prompt.as_str() };
        let mut record = Record::of(launch, &id, &name, &dir, &gemini);
        record.supervisor.clone_from(&launch.supervisor);
        record.notify.clone_from(&launch.notify);
        record.joined = options.args.iter().any(|argument| argument == "--screen-reader");
        record.warnings = [notices.clone(), prompt_of(prompt).notices()].concat();
        Orders::new(equipped, prompt, &dir, &gemini.path).leave_at(&self.inner.store.orders(&id))?;
        self.inner.store.put(&record)?;
        if !prompt.trim().is_empty() {
            let journal = Journal::beside(&self.inner.store.path(&id));
            let turn = journal.send(prompt).map_err(|error| TerminalError::io("the turn", &error))?;
            journal.taken(turn);
        }
        if let Err(error) = self.open_pane(&record, launch) {
            self.inner.store.remove(&id);
            return Err(error);
        }
        Ok((self.terminal(&record), before))
    }

    /// Says why a terminal cannot have a name.
    pub fn check_name(&self, name: &str, resumes: bool) -> Result<(), TerminalError> {
        self.free_name(Some(name), resumes).map(|_| ())
    }

    /// The name of a new terminal, and the one of that name that has gone: it makes room once the new one goes on with its
    /// work.
    fn free_name(
        &self,
        name: Option<&str>,
        resumes: bool,
    ) -> Result<(String, Option<Record>), TerminalError> {
        let taken: Vec<Record> = self.inner.store.all()?;
        let owner = |name: &str| taken.iter().find(|record| record.name == name || record.id == name);
        let Some(name) = name else {
            let number = (1..).find(|number| owner(&format!("agent-{number}")).is_none());
            return Ok((format!("agent-{}", number.unwrap_or(1)), None));
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || name.len() > 64 || !name.chars().all(plain) || name.starts_with('-') {
            return Err(TerminalError::usage(
                format!("{name:?} is no name for a terminal"),
                "Use up to 64 letters, digits, - and _.",
            ));
        }
        let alive =
            taken.iter().find(|record| (record.name == name || record.id == name) && record.is_alive());
        let Some(before) = alive.or_else(|| owner(name)) else { return Ok((name.to_owned(), None)) };
        let gone = alive.is_none() && before.name == name;
        if gone && resumes {
            return Ok((name.to_owned(), Some(before.clone())));
        }
        Err(match gone {
            true => TerminalError::usage(
                format!("there was a terminal {name}, which has gone"),
                format!(
                    "`{}` goes on with it, `{}` forgets it.",
                    self.command_line(&["launch", "--name", name, "--resume"]),
                    self.command_line(&["exit", name])
                ),
            ),
            false => TerminalError::usage(
                format!("there is a terminal {name} already"),
                format!("Choose another name, or end it with `{}`.", self.command_line(&["exit", name])),
            ),
        })
    }
}

pub(crate) fn find(equipped: &Equipped, dir: &Path) -> Result<Gemini, TerminalError> {
    let options = &equipped.launch.options;
    let mut finder =
        Finder::new().env(equipped.environment.clone()).dir(dir).trust(options.trust.unwrap_or_default());
    if let Some(path) = &options.gemini {
        finder = finder.path(path);
    }
    finder.find().map_err(|error| {
        TerminalError::new(TerminalErrorKind::NotInstalled, error.to_string())
            .with_hint(error.hint().unwrap_or_default())
    })
}

pub(crate) fn new_id() -> Result<String, TerminalError> {
    random::hex::<4>().map_err(|error| TerminalError::io("a random id", &error))
}

impl Terminal {
    fn become_ready(&self, equipped: &Equipped, deadline: Instant) -> Result<(), TerminalError> {
        self.warm_up(deadline.min(Instant::now() + SHELL))?;
        self.type_agent()?;
        let prompt = &equipped.launch.prompt;
        let by_paste = prompt.len() > LONGEST_ARGUMENT;
        let expect = if by_paste || prompt.trim().is_empty() { Expect::Idle } else { Expect::Work };
        self.wait_for_ready(expect, equipped, deadline)?;
        if by_paste {
            self.send(prompt, Force::OnlyWhenReady)?;
        }
        Ok(())
    }

    /// Waits for the shell by a command whose answer its own echo cannot be taken for (D-39).
    fn warm_up(&self, deadline: Instant) -> Result<(), TerminalError> {
        let live = self.live()?;
        let first = deadline.min(Instant::now() + Duration::from_secs(2));
        let seen = live.control.activity(&live.pane);
        if seen.last.is_none() {
            live.control.wait_for_output(&live.pane, &seen, first);
        }
        live.control.wait_until_quiet(&live.pane, Duration::from_millis(50), Duration::from_secs(1));
        let marker = format!("alhena-{}", self.id());
        self.type_line(&format!(" printf 'alh%s\\n' 'ena-{}'", self.id()))?;
        live.watch(deadline, Duration::from_secs(1), |late| {
            let look = live.capture_pane(History::None)?;
            let answers = look.text.contains(&marker);
            if answers || !late {
                return Ok(answers.then_some(()));
            }
            let message = "the shell in the pane does not answer";
            Err(TerminalError::new(TerminalErrorKind::Shell, message)
                .with_hint("Start a shell by hand and see what it waits for; SHELL says which one it is.")
                .screen(&look.text))
        })
    }

    /// Types the one command that does the rest (D-40).
    fn type_agent(&self) -> Result<(), TerminalError> {
        let inner = &self.terminals.inner;
        let program = keeper_program(&inner.environment).ok_or_else(|| {
            TerminalError::new(TerminalErrorKind::NotInstalled, "the program alhena cannot be found")
                .with_hint("Put alhena on PATH, or set ALHENA_KEEPER to it.")
        })?;
        let quoted = |path: &Path| quoted(&path.to_string_lossy());
        let record = inner.store.path(self.id());
        self.type_line(&format!(" {} terminal agent {}", quoted(&program), quoted(&record)))
    }

    fn type_line(&self, line: &str) -> Result<(), TerminalError> {
        let live = self.live()?;
        let text = ["send-keys", "-t", &live.pane, "-l", line, ";"];
        let enter = ["send-keys", "-t", &live.pane, "Enter"];
        self.terminals.inner.tmux.run(text.iter().chain(&enter)).map(|_| ())
    }

    fn wait_for_ready(
        &self,
        expect: Expect,
        equipped: &Equipped,
        deadline: Instant,
    ) -> Result<(), TerminalError> {
        let mut passing: Option<Instant> = None;
        loop {
            let live = self.live()?;
            let seen = live.control.activity(&live.pane);
            let record = self.record()?;
            if record.phase == Phase::Ended {
                return Err(self.ended_early(&record));
            }
            let reading = self.status_of_screen()?;
            if self.is_ready(&reading, expect, equipped) && self.stays_so(&live, expect, equipped)? {
                let now = Timestamp::now();
                return store::update(&self.record_path(), |record| record.ready = Some(now)).map(|_| ());
            }
            // 0.30 says for a moment that it waits for authentication, in a box like that of a dialog.
            passing =
                passing.filter(|_| is_passing(&reading)).or_else(|| is_passing(&reading).then(Instant::now));
            let passes = passing.is_some_and(|since| since.elapsed() < PASSING);
            if let Some(error) = self.obstacle(&reading, equipped)?.filter(|_| !passes) {
                return Err(error);
            }
            if Instant::now() >= deadline {
                let screen = live.capture_pane(History::None)?.text;
                let why = reading.warning.map(|why| format!(": {}", why.trim_end_matches('.')));
                let message = format!(
                    "the agent was not ready after {:.0} s{}",
                    equipped.launch.timeout.as_secs_f64(),
                    why.unwrap_or_default()
                );
                return Err(TerminalError::new(TerminalErrorKind::Timeout, message)
                    .with_hint("Give it more time with `timeout`.")
                    .screen(&screen));
            }
            let tick = deadline.min(Instant::now() + Duration::from_millis(500));
            live.control.wait_for_output(&live.pane, &seen, tick);
        }
    }

    /// A session that goes on is drawn more than once, and in between the CLI looks as if it had only begun.
    fn stays_so(&self, live: &Live, expect: Expect, equipped: &Equipped) -> Result<bool, TerminalError> {
        if equipped.launch.options.resume.is_none() || expect == Expect::Work {
            return Ok(true);
        }
        live.control.wait_until_quiet(&live.pane, DRAWN, LONGEST_DRAWING);
        Ok(self.is_ready(&self.status_of_screen()?, expect, equipped))
    }

    fn is_ready(&self, reading: &Reading, expect: Expect, equipped: &Equipped) -> bool {
        match (reading.status, expect) {
            (Status::Processing | Status::Completed | Status::Error, Expect::Work) => true,
            (Status::Waiting, Expect::Work) => matches!(self.obstacle(reading, equipped), Ok(None)),
            (Status::Idle | Status::Completed | Status::Error, Expect::Idle) => true,
            _ => false,
        }
    }

    fn obstacle(
        &self,
        reading: &Reading,
        equipped: &Equipped,
    ) -> Result<Option<TerminalError>, TerminalError> {
        let Some(waiting) = reading.waiting_for.as_ref() else { return Ok(None) };
        let name = self.name();
        let version = self.record()?.gemini_version;
        Ok(match waiting.kind {
            WaitingFor::Trust if equipped.launch.options.trust.unwrap_or_default() != Trust::AsIs => Some(
                TerminalError::new(
                    TerminalErrorKind::Untrusted,
                    format!("Gemini CLI {version} cannot run in a folder that is not trusted"),
                )
                .with_hint(
                    "`trust` needs a newer release. Keep the terminal (`keep`) and answer the dialog.",
                ),
            ),
            WaitingFor::Trust => Some(
                TerminalError::new(TerminalErrorKind::Untrusted, "the folder is not trusted")
                    .with_hint("Launch with `trust`, or keep the terminal (`keep`) and answer the dialog."),
            ),
            WaitingFor::Authentication => Some(
                TerminalError::new(TerminalErrorKind::Auth, "Gemini CLI is not signed in")
                    .with_hint(how_to_sign_in(equipped)),
            ),
            _ if reading.status == Status::Waiting => {
                tracing::debug!(name, question = %waiting.question, "a dialog at the start");
                None
            }
            _ => None,
        })
    }

    fn ended_early(&self, record: &Record) -> TerminalError {
        let ended = record.ended.clone().unwrap_or_default();
        if let Some(failure) = ended.failure {
            return TerminalError::new(kind_of(failure.kind), failure.message).with_hint(failure.hint);
        }
        let how = match (ended.code, ended.signal) {
            (_, Some(signal)) => format!("by signal {signal}"),
            (Some(code), None) => format!("with exit code {code}"),
            (None, None) => "at once".to_owned(),
        };
        let kind = match ended.code {
            Some(41) => TerminalErrorKind::Auth,
            Some(55) => TerminalErrorKind::Untrusted,
            _ => TerminalErrorKind::Crashed,
        };
        let error = TerminalError::new(kind, format!("Gemini CLI ended {how} before it was ready"))
            .with_hint("`alhena doctor` checks what it needs.");
        let screen = self.live().and_then(|live| live.capture_pane(History::All));
        match screen {
            Ok(look) => error.screen(&look.text),
            Err(_) => error,
        }
    }
}

/// Whoever has set a key need not be told to.
fn how_to_sign_in(equipped: &Equipped) -> String {
    const KEY: &str = "GEMINI_API_KEY";
    match equipped.environment.filled(KEY) {
        Some(_) => format!(
            "{KEY} is set, but the settings choose another way to sign in (security.auth.selectedType): \
             choose the key with `/auth` in `gemini`."
        ),
        None => FailureKind::Auth.hint().to_owned(),
    }
}

/// Whether a dialog about a login may go away by itself: it offers nothing to choose.
fn is_passing(reading: &Reading) -> bool {
    reading
        .waiting_for
        .as_ref()
        .is_some_and(|waiting| waiting.kind == WaitingFor::Authentication && waiting.options.is_empty())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Idle,
    Work,
}
