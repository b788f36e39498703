//! Being the watcher.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use alhena_agent::env::Environment;
use alhena_sys::locks::{self, Lock};
use alhena_sys::processes::{self, Process, Signal};
use alhena_sys::sockets::{Listener, Stream};
use alhena_sys::{files, handles, poll};
use serde::{Deserialize, Serialize};

use super::board::Board;
use super::wire::{self, Answer, Hello, Question};
use crate::control::{Activity, Connection, Control};
use crate::terminal::FRAME;
use crate::terminals::Terminals;
use crate::tmux::Tmux;
use crate::window;

/// How long a client may outlive its watcher.
const ORPHAN: Duration = Duration::from_secs(1);
/// How long the one before may take to go.
const BEFORE: Duration = Duration::from_secs(10);
/// The longest that one question may wait.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// After so long it is looked again although nothing has moved: while somebody is at work, and while nobody is.
const PAUSE: Duration = Duration::from_millis(40);
const IDLE: Duration = Duration::from_secs(1);
/// More connections at once are somebody's mistake.
const MOST_CLIENTS: usize = 200;

/// The whole life of the watcher of a directory's terminals. In its first step it only starts the second one, and ends, so
/// that the second is nobody's child. That says `ready` on its standard output when it listens, or why it does not.
pub fn serve(server: &str, tmux: &Path, dir: &Path, step: &str) -> io::Result<()> {
    if step == "1" {
        command(&std::env::current_exe()?, server, tmux, dir, "2").spawn()?;
        return Ok(());
    }
    processes::leave_session();
    match Watcher::start(server, tmux, dir) {
        Ok((watcher, listener)) => {
            tell("ready");
            watcher.listen(&listener);
            Ok(())
        }
        Err(why) => {
            tell(&why);
            Err(io::Error::other(why))
        }
    }
}

pub(super) fn command(program: &Path, server: &str, tmux: &Path, dir: &Path, step: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["terminal", "--server", server, "--tmux"]).arg(tmux).arg("watcher").arg(dir).arg(step);
    command.stdin(Stdio::null()).current_dir("/");
    command
}

/// Says one word to whoever started it, and lets go of them.
fn tell(word: &str) {
    let mut out = io::stdout();
    let _nobody = writeln!(out, "{}", word.replace('\n', " ")).and_then(|()| out.flush());
    let _still_open = handles::drop_stdout();
}

struct Watcher {
    control: Arc<Control>,
    terminals: Terminals,
    board: Arc<Board>,
    dir: PathBuf,
    clients: AtomicUsize,
    /// Held by the watcher and by tmux's client, until both have gone.
    _lock: File,
}

impl Watcher {
    fn start(server: &str, tmux: &Path, dir: &Path) -> Result<(Arc<Self>, Listener), String> {
        let lock = lock(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let environment = Environment::of_process();
        let tmux = Tmux::find(Some(tmux), server, &environment).map_err(|error| error.to_string())?;
        let theirs = lock.try_clone().map_err(|error| error.to_string())?;
        tmux.check().map_err(|error| error.to_string())?;
        // Before the connection: where nobody can listen, none must come and go.
        let listener = wire::listen(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let control = Connection::open(&tmux, theirs).map_err(|error| error.to_string())?;
        Holders::note(dir, control.client());
        let control = Arc::new(Control::Own(control));
        let terminals = Terminals::watched(tmux, dir, environment, Arc::clone(&control))
            .map_err(|error| error.to_string())?;
        let clients = AtomicUsize::new(0);
        Ok((
            Arc::new(Self {
                control,
                terminals,
                board: Arc::default(),
                dir: dir.to_owned(),
                clients,
                _lock: lock,
            }),
            listener,
        ))
    }

    /// Answers until tmux ends the connection.
    fn listen(self: Arc<Self>, listener: &Listener) {
        let _blocking = listener.set_nonblocking(true);
        let watcher = Arc::clone(&self);
        let _refused =
            std::thread::Builder::new().name("alhena-board".to_owned()).spawn(move || watcher.look());
        while !self.control.is_gone() && self.owns_socket() {
            let _looked_at_anyway = poll::is_readable(listener, Duration::from_millis(200));
            while let Ok((stream, _)) = listener.accept() {
                self.welcome(stream);
            }
        }
        wire::remove(&self.dir);
    }

    fn look(&self) {
        let (mut seen, mut tidied) = (0, Instant::now());
        while !self.control.is_gone() {
            self.board.refresh(&self.terminals, &self.control);
            if tidied.elapsed() > IDLE {
                tidied = Instant::now();
                window::tidy(&self.control);
            }
            // Where nothing moves, little has to be looked at: overnight, nothing does.
            let longest = if self.board.is_busy() { PAUSE } else { IDLE };
            let changes = self.control.wait_for_changes(seen, Instant::now() + longest);
            if changes != seen {
                seen = changes;
                // The rest of the frame.
                std::thread::sleep(FRAME);
            }
        }
    }

    /// Somebody may have cleaned up the whole directory.
    fn owns_socket(&self) -> bool {
        self.dir.is_dir()
    }

    fn welcome(self: &Arc<Self>, stream: Stream) {
        if wire::check_peer(&stream).is_err() || self.clients.load(Ordering::Relaxed) >= MOST_CLIENTS {
            return;
        }
        let watcher = Arc::clone(self);
        watcher.clients.fetch_add(1, Ordering::Relaxed);
        let thread = std::thread::Builder::new().name("alhena-client".to_owned()).stack_size(512 << 10);
        let _refused = thread.spawn(move || {
            let _gone = watcher.converse(stream);
            watcher.clients.fetch_sub(1, Ordering::Relaxed);
        });
    }

    fn converse(&self, stream: Stream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(LONGEST_WAIT))?;
        let mut stream = BufReader::new(stream);
        while let Some(question) = wire::read::<Question>(&mut stream)? {
            let retire = matches!(question, Question::Retire);
            let answer = self.answer(question);
            if self.control.is_gone() {
                // There may be another server already, and soon another watcher: that one shall answer.
                return Ok(());
            }
            wire::write(stream.get_mut(), &answer)?;
            if retire {
                self.control.leave();
            }
        }
        Ok(())
    }

    fn answer(&self, question: Question) -> Answer {
        match question {
            Question::Hello(_) => Answer::Hello(Hello::ours()),
            Question::Run(commands) => {
                let words: Vec<Vec<&str>> =
                    commands.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
                let words: Vec<&[&str]> = words.iter().map(Vec::as_slice).collect();
                match self.control.run_all(&words) {
                    Ok(answers) => Answer::Ran(answers),
                    Err(error) => Answer::Failed(error.message.trim_start_matches("tmux: ").to_owned()),
                }
            }
            Question::Activity(pane) => Answer::Activity(self.control.activity(&pane).into()),
            Question::Wait { pane, count, windows, ms } => {
                let seen = Activity { count, windows, ..Activity::default() };
                let deadline = Instant::now() + Duration::from_millis(ms).min(LONGEST_WAIT);
                Answer::Activity(self.control.wait_for_output(&pane, &seen, deadline).into())
            }
            Question::News { seen, ms } => {
                let deadline = Instant::now() + Duration::from_millis(ms).min(LONGEST_WAIT);
                Answer::News(self.board.wait_for_news(seen, deadline))
            }
            Question::State(id) => {
                let found = self.terminals.find(&id);
                match found.and_then(|terminal| self.board.reading(&terminal, &self.control)) {
                    Ok(reading) => Answer::State(Box::new(reading)),
                    Err(error) => Answer::Failed(error.message),
                }
            }
            Question::Retire => Answer::Retiring,
        }
    }
}

/// The lock on being the watcher. The one before may be about to go.
fn lock(dir: &Path) -> io::Result<File> {
    let file = locks::open(&dir.join("watcher.lock"))?;
    let began = Instant::now();
    let mut told = None;
    loop {
        match locks::try_lock(&file) {
            Ok(Lock::Ours) => return Ok(file),
            Ok(Lock::Others) if began.elapsed() > BEFORE => return Err(io::ErrorKind::WouldBlock.into()),
            Err(error) if began.elapsed() > BEFORE => return Err(error),
            Ok(Lock::Others) | Err(_) => {}
        }
        let signal = match began.elapsed() {
            time if time > 2 * ORPHAN => Some(Signal::KILL),
            time if time > ORPHAN => Some(Signal::TERM),
            _ => None,
        };
        if signal != told
            && let Some(signal) = signal
        {
            told = Some(signal);
            Holders::end_orphan(dir, signal);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Who holds the lock. tmux 3.3a keeps a client whose watcher was killed, as long as there is output for it, and with that
/// the lock: nobody could watch any more.
#[derive(Serialize, Deserialize)]
struct Holders {
    watcher: Process,
    client: Process,
}

impl Holders {
    fn path(dir: &Path) -> PathBuf {
        dir.join("watcher.holders")
    }

    fn note(dir: &Path, client: u32) {
        let holders =
            Process::own().zip(Process::of(client)).map(|(watcher, client)| Self { watcher, client });
        if let Some(text) = holders.and_then(|holders| serde_json::to_vec(&holders).ok()) {
            let _ = std::fs::remove_file(Self::path(dir));
            let _without_it_nobody_is_ended = files::replace_own(&Self::path(dir), &text);
        }
    }

    /// Ends the client of a watcher that has gone.
    fn end_orphan(dir: &Path, signal: Signal) {
        let text = std::fs::read(Self::path(dir)).unwrap_or_default();
        if let Ok(Self { watcher, client }) = serde_json::from_slice(&text)
            && !watcher.alive()
        {
            client.signal(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_of_a_watcher_that_has_gone_does_not_keep_the_next_from_watching() {
        let dir = tempfile::tempdir().unwrap();
        let of = |child: &std::process::Child| Process::of(child.id()).unwrap();
        let mut watcher = Command::new("sleep").arg("60").spawn().unwrap();
        let held = lock(dir.path()).unwrap();
        let mut client = Command::new("sleep").arg("60").stderr(Stdio::from(held)).spawn().unwrap();
        let holders = Holders { watcher: of(&watcher), client: of(&client) };
        std::fs::write(Holders::path(dir.path()), serde_json::to_vec(&holders).unwrap()).unwrap();
        // As long as the watcher lives, so does its client.
        Holders::end_orphan(dir.path(), Signal::KILL);
        assert!(client.try_wait().unwrap().is_none());
        watcher.kill().unwrap();
        watcher.wait().unwrap();
        lock(dir.path()).unwrap();
        client.wait().unwrap();
    }
}
