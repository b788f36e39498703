//! The terminal that `top` draws on: taken over, and given back however it ends.

use std::io::{self, BufWriter, Write};
use std::panic::PanicHookInfo;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::output::Stream;

/// A whole picture goes out in one write.
const PICTURE: usize = 256 << 10;

/// Past the guard of other output: the sequences are ours, and foreign text is cleaned before it becomes a cell.
type Out = BufWriter<Stream>;

pub struct Screen(Terminal<CrosstermBackend<Out>>);

impl Screen {
    /// Takes the terminal over. What was on it comes back in the end, also when Alhena panics.
    pub fn take() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            give_back();
            before(info);
        }));
        enter()?;
        let out = BufWriter::with_capacity(PICTURE, Stream::Out);
        Terminal::new(CrosstermBackend::new(out)).map(Self).inspect_err(|_| give_back())
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        self.0.draw(draw).map(|_| ())
    }

    /// How wide and how high it is.
    pub fn size(&self) -> (u16, u16) {
        self.0.size().map_or((0, 0), |size| (size.width, size.height))
    }

    /// Lends the terminal to another program.
    pub fn lend<T>(&mut self, to: impl FnOnce() -> T) -> io::Result<T> {
        give_back();
        let done = to();
        enter()?;
        self.0.clear()?;
        Ok(done)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    let entered = execute!(Stream::Out, EnterAlternateScreen, Hide);
    entered.inspect_err(|_| give_back())
}

/// What cannot be written any more has gone with the terminal.
fn give_back() {
    let mut out = Stream::Out;
    let _gone = execute!(out, LeaveAlternateScreen, Show);
    let _gone = out.flush();
    let _gone = disable_raw_mode();
}
