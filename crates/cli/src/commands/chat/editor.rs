//! The line that one types on: editing, history, completion of commands.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Config, Context, Editor, Helper};

use alhena_sys::handles::{self, Handle};
use alhena_sys::{files, poll, terminals};

use super::input::COMMANDS;

/// Prompts that are remembered.
const MOST: usize = 1000;
/// How soon it is seen that a question is not asked any more.
const NOW_AND_THEN: Duration = Duration::from_millis(50);

/// What came of reading a line.
pub enum Line {
    Text(String),
    /// ^C.
    Interrupted,
    /// ^D, or the terminal is gone.
    End,
}

/// Reads lines from the terminal.
pub struct Keyboard {
    editor: Editor<Commands, FileHistory>,
    history: Option<PathBuf>,
}

impl Keyboard {
    /// With the history of that directory, which nobody else can read.
    pub fn open(dir: Option<&Path>) -> io::Result<Self> {
        let config = Config::builder().auto_add_history(false).bracketed_paste(true);
        let config = config.max_history_size(MOST).map_err(io::Error::other)?.build();
        let mut editor = Editor::with_config(config).map_err(io::Error::other)?;
        editor.set_helper(Some(Commands));
        // Without a place for it there is only no history.
        let history = dir.and_then(|dir| Some(files::create_private_dir(dir).ok()?.join("history")));
        if let Some(path) = &history {
            let _none_yet = editor.load_history(path);
        }
        Ok(Self { editor, history })
    }

    /// Reads a line and remembers it.
    pub fn prompt(&mut self, prompt: &str) -> io::Result<Line> {
        let line = match self.editor.readline(prompt) {
            Ok(text) => Line::Text(text),
            Err(ReadlineError::Interrupted) => Line::Interrupted,
            Err(ReadlineError::Eof) => Line::End,
            Err(ReadlineError::Io(error)) => return Err(error),
            Err(error) => return Err(io::Error::other(error)),
        };
        if let Line::Text(text) = &line
            && !text.trim().is_empty()
            && self.editor.add_history_entry(text.as_str()).is_ok_and(|added| added)
            && let Some(path) = &self.history
        {
            let _not_kept = self.editor.append_history(path);
        }
        Ok(line)
    }

    /// How many lines are remembered.
    #[cfg(test)]
    fn remembered(&self) -> usize {
        use rustyline::history::History;
        self.editor.history().len()
    }
}

/// Asks by `ask`, and reads the answer as long as there is one: none when `over` says that no answer counts any more, or when
/// nobody types any more. The terminal itself edits the line, because whoever waits for the editor cannot be woken.
pub fn answer(ask: impl FnOnce() -> io::Result<()>, over: impl Fn() -> bool) -> io::Result<Option<String>> {
    answer_on(handles::stdin(), ask, over)
}

/// The same on any terminal.
pub fn answer_on(
    terminal: Handle<'_>,
    ask: impl FnOnce() -> io::Result<()>,
    over: impl Fn() -> bool,
) -> io::Result<Option<String>> {
    // What was typed before the question could be seen is no answer to it; what is typed as soon as it is there is one.
    forget_typed(terminal);
    ask()?;
    let mut typed = Vec::new();
    while !typed.contains(&b'\n') {
        if over() {
            // Half an answer is no part of the next prompt either.
            forget_typed(terminal);
            return Ok(None);
        }
        if !poll::is_readable(terminal, NOW_AND_THEN)? {
            continue;
        }
        let mut bytes = [0; 4096];
        match handles::read(terminal, &mut bytes) {
            Ok(0) => return Ok(None),
            Ok(count) => typed.extend_from_slice(bytes.get(..count).unwrap_or_default()),
            Err(error) if terminals::is_gone(&error) => return Ok(None),
            Err(error) if handles::is_for_later(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(String::from_utf8_lossy(&typed).trim().to_owned()))
}

fn forget_typed(terminal: Handle<'_>) {
    let _no_terminal = terminals::forget_typed(terminal);
}

/// What the editor knows of our commands.
struct Commands;

impl Completer for Commands {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let begun = line.get(..at).unwrap_or(line);
        let matching = COMMANDS.iter().filter(|(name, ..)| begun.starts_with('/') && name.starts_with(begun));
        let pair = |(name, value, _): &(&str, &str, &str)| {
            let space = if value.is_empty() { "" } else { " " };
            Pair { display: (*name).to_owned(), replacement: format!("{name}{space}") }
        };
        Ok((0, matching.map(pair).collect()))
    }
}

impl Hinter for Commands {
    type Hint = String;
}

impl Highlighter for Commands {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Validator for Commands {}

impl Helper for Commands {}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_as_soon_as_the_question_is_there_answers_it_and_what_was_before_does_not() {
        let terminal = terminals::Terminal::open().unwrap();
        let slave = terminal.slave.try_clone().unwrap();
        let keyboard = terminal.keyboard();
        keyboard.press(b"early\n").unwrap();
        let answer = answer_on(handles::of(&slave), || keyboard.press(b"yes\n"), || false).unwrap();
        assert_eq!(answer.as_deref(), Some("yes"));
    }

    #[test]
    fn commands_are_completed_and_prompts_are_not() {
        let history = FileHistory::new();
        let complete = |line: &str| {
            let (_, pairs) = Commands.complete(line, line.len(), &Context::new(&history)).unwrap();
            pairs.into_iter().map(|pair| pair.replacement).collect::<Vec<_>>()
        };
        assert_eq!(complete("/m"), ["/model ", "/mode "]);
        assert_eq!(complete("/u"), ["/undo"]);
        assert!(complete("m").is_empty());
        assert!(complete("fix /m").is_empty());
    }

    #[test]
    fn the_history_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("chat");
        let mut keyboard = Keyboard::open(Some(&place)).unwrap();
        keyboard.editor.add_history_entry("secret").unwrap();
        keyboard.editor.append_history(&place.join("history")).unwrap();
        let mode = |path: &Path| files::mode(&path.metadata().unwrap()) & 0o777;
        assert_eq!((mode(&place), mode(&place.join("history"))), (0o700, 0o600));
        assert_eq!(Keyboard::open(Some(&place)).unwrap().remembered(), 1);
    }
}
