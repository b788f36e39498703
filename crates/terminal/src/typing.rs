//! Typing into a terminal: messages and commands.
//!
//! Gemini CLI 0.61.0 eats `?` from a burst of keys, takes an Enter within 40 ms of a paste for a newline, and may not read
//! what it is given for seconds. So text goes in by one bracketed paste, is seen in the box before Enter is pressed, and Enter
//! is pressed again only when it is seen to have done something else. Nothing is typed twice on a guess: a CLI that does not
//! show it may be slow, and would get it twice, or obey the second Enter in a dialog.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_model::Timestamp;
use alhena_sys::files;
use alhena_wire::release::Version;
use serde::Serialize;

use crate::error::{TerminalError, TerminalErrorKind};
use crate::screen::{Draft, Reading, Status};
use crate::terminal::{History, Live, TICK, Terminal, Until, status_name};
use crate::turn::How;
use crate::wording::{At, Slash, Wording, cleaned, notices};

/// Enter within 40 ms of a paste becomes a newline.
pub(crate) const AFTER_PASTE: Duration = Duration::from_millis(120);
/// How long the CLI may take to show what a key or a paste has done, without what its size takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to take back what it did not show in time.
const TAKE_BACK: Duration = Duration::from_secs(3);
/// How long a screen may take to be drawn anew. Whoever wants the agent to leave waits longer than that.
const REST: Duration = Duration::from_secs(8);
/// How long others may be typing.
pub(crate) const OTHERS: Duration = Duration::from_secs(30);
const ATTEMPTS: usize = 5;
/// 0.61.0 takes some 4 s to draw as much, and for one line of 170 KB minutes, in which it does nothing else.
const LONGEST_PASTE: usize = 64 << 10;
const LONGEST_LINE: usize = 8 << 10;

/// The oldest release seen to send what is no command of its own to the model, such as a path; 0.30.1 calls it an unknown
/// command.
const PASSES_PATHS: Version = Version::new(0, 38, 0);

/// Whether to type although the agent is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Type anyway: while it works, the CLI queues what is sent; a draft of somebody else's is thrown away.
    Anyway,
    /// Only into an empty prompt of an agent that does nothing.
    OnlyWhenReady,
}

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// What the agent did when it had taken it.
    pub status: Status,
    /// Its turn. A command of the CLI's own has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// How many characters were left out: control characters, which a terminal would obey, and marks that the CLI strips.
    #[serde(skip_serializing_if = "is_zero")]
    pub removed: usize,
    /// Whether it got an invisible mark in front, because the CLI would have taken it for a command.
    #[serde(skip_serializing_if = "is_false")]
    pub marked: bool,
    /// How many `@` got a backslash in front, because the CLI would have added files.
    #[serde(skip_serializing_if = "is_zero")]
    pub escaped: usize,
    /// Where the text is, if it was too long to be typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

impl Sent {
    /// What whoever sent it should know, for people.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        notices(self.removed, self.marked, self.escaped)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Message(At),
    Command,
}

/// What tells that a turn has begun is that these have grown.
struct Before {
    queries: usize,
    begun: u64,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}

impl Terminal {
    /// Sends a message and waits until the agent has taken it.
    ///
    /// A message is text, whatever is in it: what the CLI would take for a command gets an invisible mark in front, what it
    /// would take for the name of a file a backslash, and the answer says so. A very long one goes into a file of the
    /// terminal's own, and the agent is told to process that: the CLI takes minutes to draw a long line.
    pub fn send(&self, text: &str, force: Force) -> Result<Sent, TerminalError> {
        self.send_with(text, force, At::Text)
    }

    /// The same, but `@path` may add files.
    pub fn send_with(&self, text: &str, force: Force, at: At) -> Result<Sent, TerminalError> {
        let (clean, removed) = cleaned(text);
        if clean.trim().is_empty() {
            return Err(TerminalError::usage("there is nothing to send", "Give a text."));
        }
        if clean.len() > LONGEST_PASTE || clean.lines().any(|line| line.len() > LONGEST_LINE) {
            let file = self.put_into_a_file(&clean)?;
            let words = format!("Process the prompt in {}", file.display());
            let sent = self.deliver(&words, TextKind::Message(At::Text), force)?;
            return Ok(Sent { file: Some(file), removed, ..sent });
        }
        self.deliver(text, TextKind::Message(at), force)
    }

    /// A text that the CLI could not bear in its prompt, where the model may read it.
    fn put_into_a_file(&self, text: &str) -> Result<PathBuf, TerminalError> {
        let record = self.record()?;
        let Some(project) = record.chats.as_deref().and_then(Path::parent) else {
            return Err(TerminalError::usage(
                format!("the message is too long to be typed: {} bytes", text.len()),
                "Put it into a file and name that in a message.",
            ));
        };
        let dir = project.join("messages");
        let file = dir.join(format!("{}.txt", Timestamp::now().as_millis()));
        files::create_private_dir(&dir)
            .and_then(|_| files::replace_own(&file, text.as_bytes()))
            .map_err(|error| TerminalError::io(file.display(), &error))?;
        Ok(file)
    }

    /// Sends a command of the CLI's own, such as `/compress`.
    pub fn command(&self, text: &str, force: Force) -> Result<Sent, TerminalError> {
        let (clean, _) = cleaned(text);
        if !clean.starts_with('/') || clean.trim_end().contains('\n') {
            return Err(TerminalError::usage(
                "a command begins with / and has one line",
                "Send it as a text.",
            ));
        }
        self.deliver(text, TextKind::Command, force)
    }

    fn deliver(&self, text: &str, kind: TextKind, force: Force) -> Result<Sent, TerminalError> {
        let _lock = self.terminals.inner.store.lock_typing(self.id(), OTHERS)?;
        let before = self.rested()?;
        self.check_ready(&before, force)?;
        let live = self.live()?;
        self.empty_the_box(&live, force)?;
        self.check_approval()?;
        let knows =
            self.record()?.gemini_version.parse::<Version>().is_ok_and(|version| version >= PASSES_PATHS);
        let slash = if knows && Until::Idle.is_met(before.status) { Slash::Runs } else { Slash::Refuses };
        let wording = match kind {
            TextKind::Message(at) => Wording::of(text, slash, at),
            TextKind::Command => Wording::as_it_is(text),
        };
        // An older one refuses it by itself.
        if kind == TextKind::Command && knows {
            self.check_command(&live, &wording.text)?;
        }
        let journal = self.journal();
        let turn = match kind {
            TextKind::Message(_) => {
                Some(journal.send(text).map_err(|error| TerminalError::io("the turn", &error))?)
            }
            TextKind::Command => None,
        };
        let status = self.type_in(&live, &wording, turn).inspect_err(|error| {
            if let Some(turn) = turn {
                journal.ended(turn, How::Lost, Some(error.message.clone()));
            }
        })?;
        let Wording { removed, marked, escaped, .. } = wording;
        Ok(Sent { status, turn, removed, marked, escaped, file: None })
    }

    fn type_in(&self, live: &Live, wording: &Wording, turn: Option<u64>) -> Result<Status, TerminalError> {
        let queries = live.capture_pane(History::All)?.capture().query_count();
        self.put_into_the_box(live, wording)?;
        if let Err(error) = self.check_shown_approval(live) {
            let taken_back = self.taken_back(live, &error.message);
            return Err(TerminalError { kind: error.kind, ..taken_back });
        }
        let before = Before { queries, begun: live.control.activity(&live.pane).begun };
        self.submit(live)?;
        let Some(turn) = turn else { return self.wait_until_taken(live, &before, None) };
        self.journal().taken(turn);
        let status = self.wait_until_taken(live, &before, Some(turn))?;
        self.journal().begun(turn);
        Ok(status)
    }

    /// What the agent does, once a screen that is only being drawn anew has been: after a resize it looks like work.
    fn rested(&self) -> Result<Reading, TerminalError> {
        let reading = self.status()?;
        let open = self.journal().last().is_some_and(|turn| turn.is_open());
        if reading.status != Status::Processing || open || self.says_working() {
            return Ok(reading);
        }
        let deadline = Instant::now() + REST;
        // In pieces: a person may give it something to do meanwhile.
        loop {
            match self.wait(Until::Settled, TICK) {
                Err(error) if error.kind == TerminalErrorKind::Timeout => {}
                rested => return rested,
            }
            if self.says_working() || Instant::now() >= deadline {
                return Ok(reading);
            }
        }
    }

    fn check_ready(&self, reading: &Reading, force: Force) -> Result<(), TerminalError> {
        let ready = Until::Idle.is_met(reading.status);
        match (reading.status, force) {
            _ if ready => Ok(()),
            (Status::Exited, _) => Err(self.exited()),
            (Status::Processing, Force::Anyway) => Ok(()),
            (Status::Waiting, _) => {
                Err(self
                    .not_ready(reading, &format!("`{}` answers it.", self.command_line("answer", &["..."]))))
            }
            (_, Force::OnlyWhenReady) => Err(self.not_ready(
                reading,
                &format!(
                    "Wait with `{}`, or send it all the same (`force`).",
                    self.command_line("wait", &[])
                ),
            )),
            (_, Force::Anyway) => {
                Err(self.not_ready(reading, &format!("Wait with `{}`.", self.command_line("wait", &[]))))
            }
        }
    }

    fn not_ready(&self, reading: &Reading, hint: &str) -> TerminalError {
        let question = reading.waiting_for.as_ref().map(|waiting| format!(": {}", waiting.question));
        let message = format!(
            "{} is not ready: it is {}{}",
            self.name(),
            status_name(reading.status),
            question.unwrap_or_default()
        );
        TerminalError::new(TerminalErrorKind::NotReady, message).with_hint(hint)
    }

    /// Makes the prompt empty. ^C twice on an empty one would end the CLI, so each key is seen to work before the next.
    fn empty_the_box(&self, live: &Live, force: Force) -> Result<(), TerminalError> {
        for attempt in 0..ATTEMPTS {
            // A slow CLI may take seconds to draw it again after a resize.
            let Some(draft) = self.wait_for_prompt(live, PATIENCE, Option::is_some)? else { break };
            if draft.text.is_empty() && !draft.shell {
                return Ok(());
            }
            if !draft.text.is_empty() && force == Force::OnlyWhenReady && attempt == 0 {
                return Err(TerminalError::new(
                    TerminalErrorKind::NotReady,
                    format!("{} has an unsent text in its prompt: {}", self.name(), draft.text),
                )
                .with_hint("Somebody is typing there; `force` throws it away."));
            }
            // Shell mode is left by Escape.
            if draft.text.is_empty() {
                live.press("Escape")?;
                self.wait_for_prompt(live, PATIENCE, |now| now.as_ref() != Some(&draft))?;
            } else {
                live.press("C-c")?;
                // Half a frame may show something else than before, and is not empty yet.
                self.wait_for_prompt(live, PATIENCE, is_empty)?;
            }
            settle(live);
        }
        Err(self
            .not_taken("the prompt does not become empty")
            .screen(&live.capture_pane(History::None)?.text))
    }

    /// Pastes once, and waits until it is seen.
    fn put_into_the_box(&self, live: &Live, wording: &Wording) -> Result<(), TerminalError> {
        let paste = wording.paste();
        // The CLI takes some seconds for a megabyte.
        let size = Duration::from_millis(paste.len() as u64 / 20);
        self.paste(live, &paste)?;
        let shown = self.wait_for_prompt(live, PATIENCE + size, |draft| !is_empty(draft))?;
        if is_empty(&shown) {
            return Err(self.taken_back(live, "Gemini CLI does not show the text"));
        }
        live.control.wait_until_quiet(&live.pane, AFTER_PASTE, Duration::from_secs(1) + size);
        std::thread::sleep(AFTER_PASTE);
        Ok(())
    }

    /// Presses Enter, and again only when it was taken for a line end.
    fn submit(&self, live: &Live) -> Result<(), TerminalError> {
        for _ in 0..ATTEMPTS {
            let before = self.prompt(live)?;
            live.press("Enter")?;
            let after = self.wait_for_prompt(live, PATIENCE, |draft| is_empty(draft) || *draft != before)?;
            if is_empty(&after) {
                return Ok(());
            }
            if after == before {
                break;
            }
            settle(live);
            if is_empty(&self.prompt(live)?) {
                return Ok(());
            }
        }
        Err(self.taken_back(live, "Gemini CLI does not take the text"))
    }

    pub(crate) fn paste(&self, live: &Live, text: &str) -> Result<(), TerminalError> {
        let buffer = format!("alhena-{}", self.id());
        self.terminals.inner.tmux.feed(&["load-buffer", "-b", &buffer, "-"], text.as_bytes())?;
        live.alone(&["paste-buffer", "-p", "-d", "-b", &buffer, "-t", &live.pane])
    }

    /// Why a text was not sent. It is taken back: a CLI that was only slow reads the paste and then the ^C.
    fn taken_back(&self, live: &Live, why: &str) -> TerminalError {
        let screen = live.capture_pane(History::None).map(|look| look.text).unwrap_or_default();
        let pressed = live.press("C-c");
        let empty = self.wait_for_prompt(live, TAKE_BACK, is_empty).is_ok_and(|draft| is_empty(&draft));
        let message = match pressed.is_ok() && empty {
            true => format!("{why}; the prompt is empty again"),
            false => format!("{why}; it was asked to empty its prompt"),
        };
        self.not_taken(&message).screen(&screen)
    }

    pub(crate) fn not_taken(&self, message: &str) -> TerminalError {
        TerminalError::new(TerminalErrorKind::NotTaken, message)
            .with_hint(format!("Look at it with `{}`, and try again.", self.command_line("attach", &[])))
    }

    fn prompt(&self, live: &Live) -> Result<Option<Draft>, TerminalError> {
        Ok(live.capture_pane(History::None)?.capture().draft())
    }

    /// Waits for what is in the prompt, and gives what was there last. There is none while a dialog is there.
    pub(crate) fn wait_for_prompt(
        &self,
        live: &Live,
        limit: Duration,
        wanted: impl Fn(&Option<Draft>) -> bool,
    ) -> Result<Option<Draft>, TerminalError> {
        live.watch(Instant::now() + limit, Duration::from_millis(500), |late| {
            let draft = self.prompt(live)?;
            if wanted(&draft) || late {
                return Ok(Some(draft));
            }
            if self.is_over()? { Err(self.exited()) } else { Ok(None) }
        })
    }

    /// The box is empty a moment before anything else tells that a turn has begun. A frame that is half drawn looks like
    /// work, too, so that alone has to last.
    fn wait_until_taken(
        &self,
        live: &Live,
        before: &Before,
        turn: Option<u64>,
    ) -> Result<Status, TerminalError> {
        let command = turn.is_none();
        let limit = if command { Duration::from_millis(500) } else { PATIENCE };
        let deadline = Instant::now() + limit;
        let mut busy_since: Option<Instant> = None;
        loop {
            let activity = live.control.activity(&live.pane);
            let reading = self.glimpse()?.reading;
            let queries = live.capture_pane(History::All)?.capture().query_count();
            let busy = matches!(reading.status, Status::Processing | Status::Waiting);
            busy_since = busy_since.filter(|_| busy).or_else(|| busy.then(Instant::now));
            let lasts = busy_since.is_some_and(|since| since.elapsed() > Duration::from_millis(500));
            if activity.begun > before.begun || queries > before.queries || lasts {
                return Ok(reading.status);
            }
            if self.is_over()? {
                return Err(self.exited());
            }
            if Instant::now() >= deadline {
                return match command {
                    true => Ok(self.status()?.status),
                    false => Err(self
                        .not_taken("nothing came of the text")
                        .screen(&live.capture_pane(History::None)?.text)),
                };
            }
            let tick = deadline.min(Instant::now() + Duration::from_millis(100));
            live.control.wait_for_output(&live.pane, &activity, tick);
        }
    }
}

/// A prompt that has gone, for a dialog, holds nothing any more.
pub(crate) fn is_empty(draft: &Option<Draft>) -> bool {
    draft.as_ref().is_none_or(|draft| draft.text.is_empty())
}

pub(crate) fn settle(live: &Live) {
    let seen = live.control.activity(&live.pane);
    live.control.wait_for_output(&live.pane, &seen, Instant::now() + Duration::from_millis(200));
    live.control.wait_until_quiet(&live.pane, Duration::from_millis(40), Duration::from_millis(300));
}
