//! Typing into a terminal: prompts, answers to dialogs, interrupts.
//!
//! Gemini CLI 0.61.0 eats `?` from a burst of keys, takes an Enter within 40 ms of a paste for a newline, loses pastes right
//! after its start, and swallows the Enter after a backslash. So text goes in by bracketed paste, is seen in the box before
//! Enter is pressed, and Enter is pressed until the box is empty.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alhena_model::Timestamp;
use serde::Serialize;

use crate::error::{TerminalError, TerminalErrorKind};
use crate::screen::{Reading, Status, Waiting, WaitingFor};
use crate::store::Phase;
use crate::terminal::{History, Live, Terminal, Until, status_name};
use crate::turn::How;

/// Enter within 40 ms of a paste becomes a newline.
const AFTER_PASTE: Duration = Duration::from_millis(120);
/// How long the box may take to show a paste, without what its size takes. Whoever gives up too soon pastes twice: ten agents
/// on two busy cores take seconds.
const SHOWN: Duration = Duration::from_secs(8);
/// How long the box may take to become empty.
const TAKEN: Duration = Duration::from_millis(1500);
/// How long others may be typing.
const OTHERS: Duration = Duration::from_secs(30);
const ATTEMPTS: usize = 5;
/// How long it may take to start again, if it does.
const RESTART: Duration = Duration::from_secs(5);
/// 0.61.0 takes some 4 s to draw as much, and for one line of 170 KB minutes, in which it does nothing else.
const LONGEST_PASTE: usize = 64 << 10;
const LONGEST_LINE: usize = 8 << 10;

/// Whether to type although the agent is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Type anyway: while it works, the CLI queues what is sent; a draft of somebody else's is thrown away.
    Yes,
    /// Only into an empty prompt of an agent that does nothing.
    No,
}

/// What became of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// What the agent did when it had taken it.
    pub status: Status,
    /// Its turn. A command of the CLI's own has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// How many control characters were left out: a terminal would obey them.
    #[serde(skip_serializing_if = "is_zero")]
    pub removed: usize,
    /// Where the text is, if it was too long to be typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

/// What a text is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// For the model.
    Message,
    /// For the CLI itself.
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

impl Terminal {
    /// Sends a message and waits until the agent has taken it.
    ///
    /// A message is text, never a command: one that begins with `/` gets an invisible character in front, which the CLI takes
    /// away again. A very long one goes into a file of the terminal's own, and the agent is told to process that: the CLI
    /// takes minutes to draw a long line.
    pub fn send(&self, text: &str, force: Force) -> Result<Sent, TerminalError> {
        let (text, removed) = cleaned(text);
        if text.trim().is_empty() {
            return Err(TerminalError::usage("there is nothing to send", "Give a text."));
        }
        if text.len() > LONGEST_PASTE || text.lines().any(|line| line.len() > LONGEST_LINE) {
            let file = self.put_into_a_file(&text)?;
            let words = format!("Process the prompt in {}", file.display());
            return Ok(Sent { file: Some(file), ..self.deliver(&words, Kind::Message, removed, force)? });
        }
        let text = match text.trim_start().starts_with('/') {
            true => format!("\u{200b}{}", text.trim_start()),
            false => text,
        };
        self.deliver(&text, Kind::Message, removed, force)
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
        alhena_agent::dirs::create(&dir)
            .and_then(|_| crate::store::write_private(&file, text.as_bytes()))
            .map_err(|error| TerminalError::io(file.display(), &error))?;
        Ok(file)
    }

    /// Sends a command of the CLI's own, such as `/compress`.
    pub fn command(&self, text: &str, force: Force) -> Result<Sent, TerminalError> {
        let (text, removed) = cleaned(text);
        if !text.starts_with('/') || text.contains('\n') {
            return Err(TerminalError::usage(
                "a command begins with / and has one line",
                "Leave out --command.",
            ));
        }
        self.deliver(&text, Kind::Command, removed, force)
    }

    fn deliver(&self, text: &str, kind: Kind, removed: usize, force: Force) -> Result<Sent, TerminalError> {
        let _lock = self.terminals.inner.store.lock_typing(self.id(), OTHERS)?;
        let before = self.status()?;
        self.check_ready(&before, force)?;
        let live = self.live()?;
        self.empty_the_box(&live, force)?;
        let journal = self.journal();
        let turn = match kind {
            Kind::Message => Some(journal.send(text).map_err(|error| TerminalError::io("the turn", &error))?),
            Kind::Command => None,
        };
        let status = self.type_in(&live, text, turn).inspect_err(|error| {
            if let Some(turn) = turn {
                journal.ended(turn, How::Lost, Some(error.message.clone()));
            }
        })?;
        Ok(Sent { status, turn, removed, file: None })
    }

    fn type_in(&self, live: &Live, text: &str, turn: Option<u64>) -> Result<Status, TerminalError> {
        let queries = live.look(History::All)?.capture().query_count();
        self.put_into_the_box(live, text)?;
        let before = Before { queries, begun: live.control.activity(&live.pane).begun };
        self.submit(live)?;
        let Some(turn) = turn else { return self.wait_until_taken(live, &before, Kind::Command) };
        self.journal().taken(turn);
        let status = self.wait_until_taken(live, &before, Kind::Message)?;
        self.journal().begun(turn);
        Ok(status)
    }

    fn check_ready(&self, reading: &Reading, force: Force) -> Result<(), TerminalError> {
        let ready = Until::Idle.is_met(reading.status);
        match (reading.status, force) {
            _ if ready => Ok(()),
            (Status::Exited, _) => Err(self.exited()),
            (Status::Processing, Force::Yes) => Ok(()),
            (Status::Waiting, _) => Err(self.not_ready(reading, "`alhena terminal answer` answers it.")),
            (_, Force::No) => {
                Err(self.not_ready(reading, "Wait with `alhena terminal wait`, or use --force."))
            }
            (_, Force::Yes) => Err(self.not_ready(reading, "Wait with `alhena terminal wait`.")),
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
        TerminalError::new(TerminalErrorKind::NotReady, message).hint(hint)
    }

    fn empty_the_box(&self, live: &Live, force: Force) -> Result<(), TerminalError> {
        for attempt in 0..ATTEMPTS {
            let look = live.look(History::None)?;
            let Some(draft) = look.capture().draft() else { break };
            if draft.shell {
                // Shell mode is left by Escape.
                live.press("Escape")?;
            } else if draft.text.is_empty() {
                return Ok(());
            } else if force == Force::No && attempt == 0 {
                return Err(TerminalError::new(
                    TerminalErrorKind::NotReady,
                    format!("{} has an unsent text in its prompt: {}", self.name(), draft.text),
                )
                .hint("Somebody is typing there; use --force to throw it away."));
            } else {
                live.press("C-c")?;
            }
            settle(live);
        }
        let look = live.look(History::None)?;
        match look.capture().draft() {
            Some(draft) if draft.text.is_empty() && !draft.shell => Ok(()),
            _ => Err(not_taken("the prompt does not become empty").screen(&look.text)),
        }
    }

    fn put_into_the_box(&self, live: &Live, text: &str) -> Result<(), TerminalError> {
        let buffer = format!("alhena-{}", self.id());
        let tmux = &self.terminals.inner.tmux;
        // The CLI takes some seconds for a megabyte.
        let shown = SHOWN + Duration::from_millis(text.len() as u64 / 20);
        for _ in 0..ATTEMPTS {
            tmux.feed(&["load-buffer", "-b", &buffer, "-"], text.as_bytes())?;
            let [_] = live.control.run([&["paste-buffer", "-p", "-d", "-b", &buffer, "-t", &live.pane]])?;
            if self.wait_for_draft(live, shown, |draft| !draft.is_empty())? {
                live.control.wait_until_quiet(&live.pane, AFTER_PASTE, shown);
                std::thread::sleep(AFTER_PASTE);
                return Ok(());
            }
        }
        Err(not_taken("the text does not appear in the prompt").screen(&live.look(History::None)?.text))
    }

    fn submit(&self, live: &Live) -> Result<(), TerminalError> {
        for _ in 0..ATTEMPTS {
            live.press("Enter")?;
            if self.wait_for_draft(live, TAKEN, str::is_empty)? {
                return Ok(());
            }
        }
        Err(not_taken("the text stays in the prompt").screen(&live.look(History::None)?.text))
    }

    /// Waits for what is in the box. A box that has gone, for a dialog, counts as empty.
    fn wait_for_draft(
        &self,
        live: &Live,
        limit: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<bool, TerminalError> {
        let deadline = Instant::now() + limit;
        loop {
            let seen = live.control.activity(&live.pane);
            let look = live.look(History::None)?;
            let draft = look.capture().draft().map(|draft| draft.text).unwrap_or_default();
            if wanted(&draft) {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            live.control.wait_for_output(&live.pane, &seen, deadline);
        }
    }

    /// The box is empty a moment before anything else tells that a turn has begun. A frame that is half drawn looks like
    /// work, too, so that alone has to last.
    fn wait_until_taken(&self, live: &Live, before: &Before, kind: Kind) -> Result<Status, TerminalError> {
        let command = kind == Kind::Command;
        let limit = if command { Duration::from_millis(500) } else { Duration::from_secs(10) };
        let deadline = Instant::now() + limit;
        let mut busy_since: Option<Instant> = None;
        loop {
            let activity = live.control.activity(&live.pane);
            let reading = self.glimpse()?.reading;
            let queries = live.look(History::All)?.capture().query_count();
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
                    false => {
                        Err(not_taken("nothing came of the text").screen(&live.look(History::None)?.text))
                    }
                };
            }
            let tick = deadline.min(Instant::now() + Duration::from_millis(100));
            live.control.wait_for_output(&live.pane, &activity, tick);
        }
    }

    /// Answers a dialog: by the number of an option, by the beginning of its label, or, where text is asked for, by that.
    pub fn answer(&self, answer: &str) -> Result<Reading, TerminalError> {
        let _lock = self.terminals.inner.store.lock_typing(self.id(), OTHERS)?;
        let reading = self.status()?;
        let Some(waiting) = reading.waiting_for.filter(|_| reading.status == Status::Waiting) else {
            return Err(TerminalError::new(
                TerminalErrorKind::NotReady,
                format!("{} asks nothing: it is {}", self.name(), status_name(reading.status)),
            )
            .hint("`alhena terminal send` sends a message."));
        };
        let live = self.live()?;
        let started = self.record()?.started;
        match chosen(&waiting, answer)? {
            Some(number) => {
                self.choose(&live, &waiting, number)?;
                if waiting.kind == WaitingFor::Trust {
                    self.wait_for_restart(started)?;
                }
            }
            None => {
                let buffer = format!("alhena-{}", self.id());
                let (text, _) = cleaned(answer);
                self.terminals.inner.tmux.feed(&["load-buffer", "-b", &buffer, "-"], text.as_bytes())?;
                let [_] =
                    live.control.run([&["paste-buffer", "-p", "-d", "-b", &buffer, "-t", &live.pane]])?;
                std::thread::sleep(AFTER_PASTE);
                live.press("Enter")?;
                settle(&live);
            }
        }
        self.status()
    }

    /// After a decision about trust 0.61.0 shows its prompt for a moment, and starts again.
    fn wait_for_restart(&self, started: Option<Timestamp>) -> Result<(), TerminalError> {
        let deadline = Instant::now() + RESTART;
        while Instant::now() < deadline {
            let record = self.record()?;
            if record.started != started || record.phase == Phase::Ended {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn choose(&self, live: &Live, waiting: &Waiting, number: u32) -> Result<(), TerminalError> {
        for attempt in 0..ATTEMPTS {
            // A number alone chooses; where it only moves the mark, Enter does.
            let selected = self.dialog()?.filter(|now| now.question == waiting.question);
            let Some(now) = selected else { return Ok(()) };
            let marked = now.options.iter().any(|option| option.number == number && option.selected);
            match attempt > 0 && marked {
                true => live.press("Enter")?,
                false => live.press(&number.to_string())?,
            }
            let deadline = Instant::now() + TAKEN;
            while Instant::now() < deadline {
                settle(live);
                if self.dialog()?.as_ref() != Some(&now) {
                    break;
                }
            }
            let after = self.dialog()?;
            if after.is_none_or(|after| (after.question, after.detail) != (now.question, now.detail)) {
                return Ok(());
            }
        }
        Err(not_taken("the dialog does not take the answer").screen(&live.look(History::None)?.text))
    }

    fn dialog(&self) -> Result<Option<Waiting>, TerminalError> {
        Ok(self.glance()?.waiting_for)
    }

    /// Interrupts what the agent does, by Escape, and waits until it takes a prompt again. An agent that does nothing is
    /// left alone: there Escape means other things.
    pub fn interrupt(&self, timeout: Duration) -> Result<Reading, TerminalError> {
        let _lock = self.terminals.inner.store.lock_typing(self.id(), OTHERS)?;
        self.interrupt_unlocked(timeout)
    }

    pub(crate) fn interrupt_unlocked(&self, timeout: Duration) -> Result<Reading, TerminalError> {
        let deadline = Instant::now() + timeout;
        loop {
            let reading = self.status()?;
            if !matches!(reading.status, Status::Processing | Status::Waiting | Status::Starting) {
                return Ok(reading);
            }
            if Instant::now() >= deadline {
                return Err(TerminalError::new(
                    TerminalErrorKind::Timeout,
                    format!("{} does not stop", self.name()),
                )
                .hint(format!("`alhena terminal kill {}` ends it.", self.name())));
            }
            let live = self.live()?;
            match reading.waiting_for.as_ref().and_then(stop_of) {
                // Escape does nothing there.
                Some(number) => live.press(&number.to_string())?,
                None => live.press("Escape")?,
            }
            let patience = deadline.saturating_duration_since(Instant::now()).min(Duration::from_secs(2));
            match self.wait(Until::Idle, patience) {
                Err(error) if error.kind != TerminalErrorKind::Timeout => return Err(error),
                _ => {}
            }
        }
    }
}

/// The option that an answer means. None where the dialog has none and takes text.
fn chosen(waiting: &Waiting, answer: &str) -> Result<Option<u32>, TerminalError> {
    if waiting.options.is_empty() {
        return Ok(None);
    }
    let wanted = answer.trim().to_lowercase();
    let by_number = wanted.parse::<u32>().ok();
    let mut fitting = waiting.options.iter().filter(|option| match by_number {
        Some(number) => option.number == number,
        None => !wanted.is_empty() && option.label.to_lowercase().starts_with(&wanted),
    });
    match (fitting.next(), fitting.next()) {
        (Some(option), None) => Ok(Some(option.number)),
        _ => {
            let options: Vec<String> =
                waiting.options.iter().map(|option| format!("{}. {}", option.number, option.label)).collect();
            Err(TerminalError::usage(
                format!("{answer:?} is not one of the options of {:?}", waiting.question),
                format!("Choose by number: {}.", options.join("; ")),
            ))
        }
    }
}

/// The option of a dialog about the model or its quota that gives the turn up.
fn stop_of(waiting: &Waiting) -> Option<u32> {
    let asks = matches!(waiting.kind, WaitingFor::Model | WaitingFor::Quota);
    waiting.options.iter().find(|option| asks && option.label == "Stop").map(|option| option.number)
}

fn settle(live: &Live) {
    let seen = live.control.activity(&live.pane);
    live.control.wait_for_output(&live.pane, &seen, Instant::now() + Duration::from_millis(200));
    live.control.wait_until_quiet(&live.pane, Duration::from_millis(40), Duration::from_millis(300));
}

fn not_taken(message: &str) -> TerminalError {
    TerminalError::new(TerminalErrorKind::NotTaken, message)
        .hint("Look at it with `alhena terminal attach`, and try again.")
}

/// A text without what a terminal would obey: escapes, which could end the paste, and other control characters. Line ends
/// become one kind, because the CLI takes CRLF for two.
fn cleaned(text: &str) -> (String, usize) {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let before = text.chars().count();
    let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let removed = before - text.chars().count();
    // Enter after a backslash is a newline; the CLI trims the blank off again.
    let text = text.trim_end_matches('\n');
    (if text.ends_with('\\') { format!("{text} ") } else { text.to_owned() }, removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Choice;

    #[test]
    fn nothing_in_a_text_can_end_the_paste_or_move_the_cursor() {
        assert_eq!(cleaned("a\x1b[201~rm\x07\u{9b}x"), ("a[201~rmx".to_owned(), 3));
        assert_eq!(cleaned("a\r\nb\rc\n\n"), ("a\nb\nc".to_owned(), 0));
        assert_eq!(cleaned("tab\there"), ("tab\there".to_owned(), 0));
        assert_eq!(cleaned("path\\"), ("path\\ ".to_owned(), 0));
    }

    #[test]
    fn an_answer_names_one_option() {
        let option = |number, label: &str| Choice { number, label: label.to_owned(), selected: false };
        let waiting = Waiting {
            kind: WaitingFor::ToolApproval,
            question: "Allow?".to_owned(),
            options: vec![
                option(1, "Allow once"),
                option(2, "Allow for this session"),
                option(3, "No (esc)"),
            ],
            detail: None,
        };
        assert_eq!(chosen(&waiting, " 2 "), Ok(Some(2)));
        assert_eq!(chosen(&waiting, "no"), Ok(Some(3)));
        for wrong in ["4", "allow", "", "yes"] {
            assert_eq!(chosen(&waiting, wrong).unwrap_err().kind, TerminalErrorKind::Usage, "{wrong}");
        }
        assert_eq!(chosen(&Waiting { options: Vec::new(), ..waiting }, "anything"), Ok(None));
    }
}
