//! One control-mode connection to tmux, which watches all panes.
//!
//! tmux pushes the output of every pane (`%output`), with the title sequences in it, and answers commands over the same
//! connection, so nothing has to be polled and no process is started for a look at a screen.

mod osc;
mod parse;

use std::collections::{HashMap, VecDeque};
use std::io::{BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::TerminalError;
use crate::tmux::{SESSION, Tmux};
use osc::Titles;
use parse::{Line, Reader};

/// How long tmux may take to answer a command. It is single-threaded and quick; only a stopped one takes longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a pane has done since the connection was made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Activity {
    /// How many pieces of output came.
    pub(crate) count: u64,
    /// When the last one came.
    pub(crate) last: Option<Instant>,
    /// The last title in them.
    pub(crate) title: Option<String>,
    /// How many titles said that the agent works: it may have finished before anybody looked.
    pub(crate) begun: u64,
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Control {
    child: Mutex<Child>,
    talk: Mutex<ChildStdin>,
    shared: Arc<Shared>,
    opened: Instant,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    replies: VecDeque<Result<String, String>>,
    panes: HashMap<String, Pane>,
    /// Windows came or went.
    windows: u64,
    gone: bool,
}

#[derive(Debug, Default)]
struct Pane {
    activity: Activity,
    titles: Titles,
}

impl Control {
    /// Connects to the session with our terminals, which has to exist.
    pub(crate) fn open(tmux: &Tmux) -> Result<Self, TerminalError> {
        let mut command = tmux.command();
        command.args(["-C", "attach-session", "-E", "-t", &format!("={SESSION}"), "-f", "ignore-size"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(TerminalError::tmux)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(TerminalError::tmux("no connection"));
        };
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("alhena-tmux".to_owned())
            .spawn(move || listen(BufReader::new(stdout), &theirs))
            .map_err(TerminalError::tmux)?;
        let opened = Instant::now();
        let control = Self { child: Mutex::new(child), talk: Mutex::new(stdin), shared, opened };
        // The answer to the attach itself.
        control.reply(Instant::now() + PATIENCE)?;
        Ok(control)
    }

    /// Whether tmux has ended the connection.
    pub(crate) fn is_gone(&self) -> bool {
        lock(&self.shared.state).gone
    }

    /// Runs one line of commands, separated by ` ; `, and gives the answer of each.
    pub(crate) fn commands<const N: usize>(&self, line: &str) -> Result<[String; N], TerminalError> {
        let mut talk = lock(&self.talk);
        let deadline = Instant::now() + PATIENCE;
        talk.write_all(format!("{line}\n").as_bytes())
            .and_then(|()| talk.flush())
            .map_err(|_| TerminalError::tmux("the server has ended"))?;
        // After an error the commands behind it on the line are not run and give no answers.
        let mut answers = std::array::from_fn(|_| String::new());
        for answer in &mut answers {
            *answer = self.reply(deadline)?;
        }
        Ok(answers)
    }

    fn reply(&self, deadline: Instant) -> Result<String, TerminalError> {
        let mut state = lock(&self.shared.state);
        loop {
            if let Some(reply) = state.replies.pop_front() {
                return reply.map_err(TerminalError::tmux);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.gone || left.is_zero() {
                let why = if state.gone { "the server has ended" } else { "no answer" };
                return Err(TerminalError::tmux(why));
            }
            state = wait(&self.shared.changed, state, left);
        }
    }

    /// What a pane has done so far.
    pub(crate) fn activity(&self, pane: &str) -> Activity {
        lock(&self.shared.state).panes.get(pane).map(|pane| pane.activity.clone()).unwrap_or_default()
    }

    /// How long a pane has been quiet, as far as this connection knows.
    pub(crate) fn quiet(&self, pane: &str) -> Duration {
        self.activity(pane).last.unwrap_or(self.opened).elapsed()
    }

    /// Waits for output of a pane beyond what was counted, for a window to come or go, or for the deadline.
    pub(crate) fn wait_for_output(&self, pane: &str, count: u64, deadline: Instant) {
        let mut state = lock(&self.shared.state);
        let windows = state.windows;
        loop {
            let now = state.panes.get(pane).map_or(0, |pane| pane.activity.count);
            let left = deadline.saturating_duration_since(Instant::now());
            if now > count || state.windows != windows || state.gone || left.is_zero() {
                return;
            }
            state = wait(&self.shared.changed, state, left);
        }
    }

    /// Waits until a pane has been quiet for a while, or has not been for too long.
    pub(crate) fn wait_until_quiet(&self, pane: &str, quiet: Duration, longest: Duration) {
        let deadline = Instant::now() + longest;
        loop {
            let activity = self.activity(pane);
            let Some(last) = activity.last else { return };
            let until = (last + quiet).min(deadline);
            if until <= Instant::now() {
                return;
            }
            self.wait_for_output(pane, activity.count, until);
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // An empty line detaches. The child then ends by itself; it is killed in case it does not.
        let _gone = lock(&self.talk).write_all(b"\n");
        let mut child = lock(&self.child);
        let deadline = Instant::now() + Duration::from_millis(200);
        while Instant::now() < deadline {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _gone = child.kill();
        let _status = child.wait();
    }
}

fn listen(stdout: BufReader<std::process::ChildStdout>, shared: &Shared) {
    let mut reader = Reader::new(stdout);
    while let Ok(Some(line)) = reader.next() {
        let mut state = lock(&shared.state);
        match line {
            Line::Reply(reply) => state.replies.push_back(reply),
            Line::Output { pane, bytes } => {
                let pane = state.panes.entry(pane).or_default();
                pane.activity.count += 1;
                pane.activity.last = Some(Instant::now());
                for title in pane.titles.push(&bytes) {
                    pane.activity.begun += u64::from(title.starts_with('✦'));
                    pane.activity.title = Some(title);
                }
            }
            Line::Windows => state.windows += 1,
            Line::Exit => break,
            Line::Other => continue,
        }
        shared.changed.notify_all();
    }
    lock(&shared.state).gone = true;
    shared.changed.notify_all();
}

fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
