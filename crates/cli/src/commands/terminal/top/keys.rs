//! What keys mean.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What the keys speak to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The table.
    Table,
    /// A text instead of it.
    Page { text: String, moved: u16 },
    /// The answer to a question, as far as it has been typed.
    Answer(String),
    /// Whether to end the chosen agent.
    Exit,
}

/// What a person wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Quit,
    Move(isize),
    Attach,
    Read,
    Answer(String),
    Interrupt,
    Exit,
}

const HELP: &str = "\
↑ ↓, j k      choose an agent; Home and End the first and the last
Enter         attach to it: watch it and type; ^B D comes back
a             answer its question: the number of an option, or a text
r             read its last answer
i             interrupt what it does
x             ask it to leave, and put its terminal away
q, Esc, ^C    quit; the agents go on

FOR is how long an agent has been in its state, TOKENS what it has taken since it was launched.";

impl Mode {
    /// The text instead of the table, and how far it has been moved.
    pub fn page(&self) -> Option<(String, u16)> {
        match self {
            Mode::Page { text, moved } => Some((text.clone(), *moved)),
            _ => None,
        }
    }

    /// What a person is asked.
    pub fn ask(&self, name: &str) -> Option<String> {
        match self {
            Mode::Answer(typed) => Some(format!("Answer {name}: {typed}▏")),
            Mode::Exit => Some(format!("End {name}? y ends it, any other key does not.")),
            Mode::Table | Mode::Page { .. } => None,
        }
    }

    pub fn help(&self) -> &'static str {
        match self {
            Mode::Table => "↑↓ choose  Enter attach  a answer  r read  i interrupt  x exit  ? help  q quit",
            Mode::Page { .. } => "↑↓ move  q back",
            Mode::Answer(_) => "Enter sends it  Esc leaves it",
            Mode::Exit => "y yes  n no",
        }
    }
}

/// What a key comes to. `waits` says whether the chosen agent has a question.
pub fn pressed(mode: &mut Mode, key: KeyEvent, waits: bool) -> Option<Wish> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return (key.code == KeyCode::Char('c')).then_some(Wish::Quit);
    }
    match mode {
        Mode::Table => on_table(mode, key.code, waits),
        Mode::Page { moved, .. } => {
            match key.code {
                KeyCode::Up | KeyCode::Char('k') => *moved = moved.saturating_sub(1),
                KeyCode::Down | KeyCode::Char('j') => *moved = moved.saturating_add(1),
                KeyCode::PageUp => *moved = moved.saturating_sub(10),
                KeyCode::PageDown | KeyCode::Char(' ') => *moved = moved.saturating_add(10),
                KeyCode::Home => *moved = 0,
                KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => *mode = Mode::Table,
                _ => {}
            }
            None
        }
        Mode::Answer(typed) => {
            match key.code {
                KeyCode::Char(c) => typed.push(c),
                KeyCode::Backspace => drop(typed.pop()),
                KeyCode::Esc => *mode = Mode::Table,
                KeyCode::Enter => {
                    let typed = std::mem::take(typed);
                    *mode = Mode::Table;
                    return (!typed.trim().is_empty()).then_some(Wish::Answer(typed));
                }
                _ => {}
            }
            None
        }
        Mode::Exit => {
            *mode = Mode::Table;
            matches!(key.code, KeyCode::Char('y' | 'Y')).then_some(Wish::Exit)
        }
    }
}

fn on_table(mode: &mut Mode, key: KeyCode, waits: bool) -> Option<Wish> {
    match key {
        KeyCode::Char('q') | KeyCode::Esc => return Some(Wish::Quit),
        KeyCode::Up | KeyCode::Char('k') => return Some(Wish::Move(-1)),
        KeyCode::Down | KeyCode::Char('j') => return Some(Wish::Move(1)),
        KeyCode::Home => return Some(Wish::Move(isize::MIN)),
        KeyCode::End => return Some(Wish::Move(isize::MAX)),
        KeyCode::Enter => return Some(Wish::Attach),
        KeyCode::Char('r') => return Some(Wish::Read),
        KeyCode::Char('i') => return Some(Wish::Interrupt),
        KeyCode::Char('a') if waits => *mode = Mode::Answer(String::new()),
        KeyCode::Char('x') => *mode = Mode::Exit,
        KeyCode::Char('?' | 'h') => *mode = Mode::Page { text: HELP.to_owned(), moved: 0 },
        _ => {}
    }
    None
}
