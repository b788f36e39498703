//! A sign of life on a terminal: a spinner with the time that has passed.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::output::{Stream, progress, progress_over};
use crate::style::{Colours, Paint, columns, fitting};

const FRAMES: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Turns in a thread of its own, on stderr, and only if that is a terminal.
pub struct Spinner {
    shared: Option<Arc<Shared>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<Shown>,
    changed: Condvar,
}

struct Shown {
    text: Option<String>,
    over: bool,
}

impl Spinner {
    pub fn start(colours: Colours) -> Self {
        if colours == Colours::Off || !Stream::Err.is_terminal() {
            return Self { shared: None, thread: None };
        }
        let state = Shown { text: Some("starting".to_owned()), over: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let theirs = shared.clone();
        let thread =
            std::thread::Builder::new().name("spinner".to_owned()).spawn(move || turn(&theirs, colours)).ok();
        Self { shared: Some(shared), thread }
    }

    /// Shows what is being waited for.
    pub fn show(&self, text: String) {
        if let Some(shared) = &self.shared {
            shared.state.lock().text = Some(text);
        }
    }

    /// Takes it off the line, so that something else can be printed there.
    pub fn hide(&self) {
        if let Some(shared) = &self.shared {
            let mut state = shared.state.lock();
            state.text = None;
            progress_over();
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.hide();
        if let Some(shared) = &self.shared {
            shared.state.lock().over = true;
            shared.changed.notify_all();
        }
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn turn(shared: &Shared, colours: Colours) {
    let started = Instant::now();
    let mut state = shared.state.lock();
    while !state.over {
        if let Some(text) = &state.text {
            let elapsed = started.elapsed();
            let at = (elapsed.as_millis() / 100) as usize % FRAMES.len();
            let frame = FRAMES.get(at).copied().unwrap_or("");
            // What wraps cannot be taken off the screen again.
            let clock = format!(" ({} s)", elapsed.as_secs());
            let text = fitting(text, columns().saturating_sub(clock.len() + 3).min(60));
            let line = format!("{frame} {text}{clock}");
            progress(colours.paint(Paint::Dim, line));
        }
        shared.changed.wait_for(&mut state, Duration::from_millis(100));
    }
}
