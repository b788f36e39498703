//! The control-mode connection to tmux, which watches all panes. The watcher has it, and nobody else.
//!
//! tmux pushes the output of every pane (`%output`), with the title sequences in it, and answers commands over the same
//! connection, so nothing has to be polled and no process is started for a look at a screen. tmux 3.3a crashes when such
//! connections come and go at the same time, so there is one, for as long as there are terminals.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::parse::{Notice, NoticeReader, Titles};
use super::{Activity, line_of};
use crate::error::TerminalError;
use crate::tmux::{SESSION, Tmux};

/// How long tmux may take to answer a command. It is single-threaded and quick; only a stopped one takes longer.
const PATIENCE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Connection {
    child: Mutex<Child>,
    talk: Mutex<ChildStdin>,
    shared: Arc<Shared>,
    opened: Instant,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Heard>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Heard {
    replies: VecDeque<Result<String, String>>,
    panes: HashMap<String, Pane>,
    windows: u64,
    /// How often anything happened by itself.
    changes: u64,
    gone: bool,
}

#[derive(Debug, Default)]
struct Pane {
    activity: Activity,
    titles: Titles,
}

impl Connection {
    /// Connects to the session with our terminals, which has to exist. tmux's client inherits the lock: it is free again
    /// only when that has gone, too.
    pub(crate) fn open(tmux: &Tmux, held: File) -> Result<Self, TerminalError> {
        let mut command = tmux.command();
        command.args(["-N", "-C", "attach-session", "-E", "-t", &format!("={SESSION}"), "-f", "ignore-size"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::from(held));
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
        let target = format!("={SESSION}");
        let titles =
            control.run(&[&["list-panes", "-s", "-t", &target, "-F", "#{pane_id} #{pane_title}"]])?;
        let mut state = control.shared.state.lock();
        for (pane, title) in
            titles.iter().flat_map(|titles| titles.lines()).filter_map(|line| line.split_once(' '))
        {
            let pane = state.panes.entry(pane.to_owned()).or_default();
            pane.activity.title.get_or_insert_with(|| title.to_owned());
        }
        drop(state);
        Ok(control)
    }

    pub(crate) fn client(&self) -> u32 {
        self.child.lock().id()
    }

    /// Ends the connection. tmux 3.3a does not bear it well that a client goes away while there is output for it.
    pub(crate) fn leave(&self) {
        let _refused = self.run(&[&["refresh-client", "-f", "no-output"]]);
        let _gone = self.talk.lock().write_all(b"\n");
    }

    pub(crate) fn wait_for_changes(&self, seen: u64, deadline: Instant) -> u64 {
        let state = self.wait_while(deadline, |state| state.changes == seen);
        state.changes
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.shared.state.lock().gone
    }

    pub(crate) fn run(&self, commands: &[&[&str]]) -> Result<Vec<String>, TerminalError> {
        let mut talk = self.talk.lock();
        let deadline = Instant::now() + PATIENCE;
        talk.write_all(line_of(commands).as_bytes())
            .and_then(|()| talk.flush())
            .map_err(|_| TerminalError::tmux("the server has ended"))?;
        // After an error the commands behind it on the line are not run and give no answers.
        commands.iter().map(|_| self.reply(deadline)).collect()
    }

    fn reply(&self, deadline: Instant) -> Result<String, TerminalError> {
        let mut state = self.wait_while(deadline, |state| state.replies.is_empty());
        if let Some(reply) = state.replies.pop_front() {
            return reply.map_err(TerminalError::tmux);
        }
        if state.gone {
            return Err(TerminalError::tmux("the server has ended"));
        }
        // A late answer would be taken for the answer to the next command.
        state.gone = true;
        self.shared.changed.notify_all();
        Err(TerminalError::tmux("no answer"))
    }

    pub(crate) fn activity(&self, pane: &str) -> Activity {
        self.activity_in(&self.shared.state.lock(), pane)
    }

    fn activity_in(&self, state: &Heard, pane: &str) -> Activity {
        let activity = state.panes.get(pane).map(|pane| pane.activity.clone()).unwrap_or_default();
        Activity { since: activity.last.unwrap_or(self.opened), windows: state.windows, ..activity }
    }

    pub(crate) fn wait(&self, pane: &str, seen: &Activity, deadline: Instant) -> Activity {
        let state = self.wait_while(deadline, |state| {
            let now = self.activity_in(state, pane);
            (now.count, now.windows) == (seen.count, seen.windows)
        });
        self.activity_in(&state, pane)
    }

    /// Waits as long as something holds and the connection is there, or for the deadline.
    fn wait_while(&self, deadline: Instant, holds: impl Fn(&Heard) -> bool) -> MutexGuard<'_, Heard> {
        let mut state = self.shared.state.lock();
        let waits = |state: &mut Heard| !state.gone && holds(state);
        self.shared.changed.wait_while_until(&mut state, waits, deadline);
        state
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // An empty line detaches. The child then ends by itself; it is killed in case it does not.
        let _gone = self.talk.lock().write_all(b"\n");
        let mut child = self.child.lock();
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
    let mut reader = NoticeReader::new(stdout);
    while let Ok(Some(line)) = reader.next() {
        let mut state = shared.state.lock();
        match line {
            Notice::Reply(reply) => state.replies.push_back(reply),
            Notice::Output { pane, bytes } => {
                state.changes += 1;
                let pane = state.panes.entry(pane).or_default();
                pane.activity.count += 1;
                pane.activity.last = Some(Instant::now());
                for title in pane.titles.push(&bytes) {
                    pane.activity.begun += u64::from(title.starts_with('✦'));
                    pane.activity.title = Some(title);
                }
            }
            Notice::Windows => {
                state.changes += 1;
                state.windows += 1;
            }
            Notice::Exit => break,
            Notice::Other => continue,
        }
        shared.changed.notify_all();
    }
    shared.state.lock().gone = true;
    shared.changed.notify_all();
}
