//! Finding the watcher, starting one where there is none, and asking it.
//!
//! A question takes one connection for as long as it takes; threads that ask at the same time get one each. When the watcher
//! dies in the middle, another is started, and what changes nothing is asked again.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alhena_agent::env::Environment;
use alhena_agent::supervise::custody::keeper_program;
use alhena_sys::sockets::Stream;
use parking_lot::Mutex;

use super::serve::command;
use super::wire::{self, Answer, Hello, PROTOCOL, Question};
use crate::control::{Activity, Control, Plain};
use crate::error::TerminalError;
use crate::screen::Reading;
use crate::store::Store;
use crate::tmux::Tmux;

/// How long the watcher may take for what tmux may take 15 s for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long it may take to say who it is, on a busy machine. One that does not is stuck: somebody has stopped it.
const GREETING: Duration = Duration::from_secs(6);
/// The longest wait in one question: the watcher does not notice at once that nobody waits any more.
const SLICE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Client {
    ground: Ground,
    free: Mutex<Vec<BufReader<Stream>>>,
    gone: AtomicBool,
}

enum Answerer {
    Ours(Client),
    /// One of another release. It can be asked to make room.
    Other(Hello, BufReader<Stream>),
}

impl Client {
    fn find(ground: &Ground) -> io::Result<Answerer> {
        let (hello, stream) = greet(ground.store.dir())?;
        if !hello.will_do() {
            return Ok(Answerer::Other(hello, stream));
        }
        let free = Mutex::new(vec![stream]);
        Ok(Answerer::Ours(Self { ground: ground.clone(), free, gone: AtomicBool::new(false) }))
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }

    pub(crate) fn run(&self, commands: &[&[&str]]) -> Result<Vec<String>, TerminalError> {
        let owned = |words: &&[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self.ask(&Question::Run(commands.iter().map(owned).collect()))? {
            Answer::Ran(answers) => Ok(answers),
            Answer::Failed(why) => Err(TerminalError::tmux(why)),
            _ => Err(self.lost()),
        }
    }

    pub(crate) fn activity(&self, pane: &str) -> Activity {
        self.seen(&Question::Activity(pane.to_owned())).unwrap_or_default()
    }

    pub(crate) fn wait(&self, pane: &str, seen: &Activity, deadline: Instant) -> Activity {
        loop {
            let ms = slice(deadline) + 1;
            let (count, windows) = (seen.count, seen.windows);
            let wait = Question::Wait { pane: pane.to_owned(), count, windows, ms };
            // Without a watcher the caller finds out by its next question.
            let Some(now) = self.seen(&wait) else { return seen.clone() };
            if (now.count, now.windows) != (count, windows) || Instant::now() >= deadline {
                return now;
            }
        }
    }

    /// How often agents were seen to do something else, once that is not what somebody knows of any more, or at the deadline.
    /// None where the watcher cannot tell.
    pub(crate) fn wait_for_news(&self, seen: u64, deadline: Instant) -> Option<u64> {
        loop {
            match self.ask(&Question::News { seen, ms: slice(deadline) }) {
                Ok(Answer::News(now)) if now == seen && Instant::now() < deadline => {}
                Ok(Answer::News(now)) => return Some(now),
                _ => return None,
            }
        }
    }

    /// What the agent of a terminal does. None where the watcher cannot tell.
    pub(crate) fn state(&self, id: &str) -> Option<Reading> {
        match self.ask(&Question::State(id.to_owned())) {
            Ok(Answer::State(reading)) => Some(*reading),
            _ => None,
        }
    }

    fn seen(&self, question: &Question) -> Option<Activity> {
        match self.ask(question) {
            Ok(Answer::Activity(seen)) => Some(seen.into()),
            _ => None,
        }
    }

    fn ask(&self, question: &Question) -> Result<Answer, TerminalError> {
        if let Ok(answer) = self.ask_once(question) {
            return Ok(answer);
        }
        self.free.lock().clear();
        match revive(&self.ground) && question.changes_nothing() {
            true => self.ask_once(question).map_err(|_| self.lost()),
            false => Err(self.lost()),
        }
    }

    fn ask_once(&self, question: &Question) -> io::Result<Answer> {
        let free = self.free.lock().pop();
        let mut stream = match free {
            Some(stream) => stream,
            None => greet(self.ground.store.dir())?.1,
        };
        wire::write(stream.get_mut(), question)?;
        let answer = wire::read(&mut stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.free.lock().push(stream);
        Ok(answer)
    }

    fn lost(&self) -> TerminalError {
        self.gone.store(true, Ordering::Relaxed);
        TerminalError::tmux("the watcher has gone")
    }
}

fn slice(deadline: Instant) -> u64 {
    let left = deadline.saturating_duration_since(Instant::now());
    u64::try_from(left.min(SLICE).as_millis()).unwrap_or(0)
}

fn greet(dir: &Path) -> io::Result<(Hello, BufReader<Stream>)> {
    let stream = wire::connect(dir)?;
    stream.set_read_timeout(Some(GREETING))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut stream = BufReader::new(stream);
    wire::write(stream.get_mut(), &Question::Hello(Hello::ours()))?;
    match wire::read(&mut stream) {
        Ok(Some(Answer::Hello(hello))) => {
            stream.get_ref().set_read_timeout(Some(PATIENCE))?;
            Ok((hello, stream))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            // It keeps nothing that is not on disk, so another can take its place.
            wire::end_peer(stream.get_ref());
            Err(error)
        }
        _ => Err(io::Error::other("no watcher")),
    }
}

/// Asks one of another release to make room. Whether it did is seen by its lock.
fn retire(mut stream: BufReader<Stream>) {
    let _gone = wire::write(stream.get_mut(), &Question::Retire);
    let _gone = wire::read::<serde_json::Value>(&mut stream);
}

/// How long others may take to start one.
const OTHERS: Duration = Duration::from_secs(20);

/// What tmux, and what speaks of it, may need from the environment. The rest is not the watcher's business, secrets least.
const VARIABLES: [&str; 15] = [
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TMUX_TMPDIR",
    "ALHENA_HOME",
    // What a person's own command may need to reach their desktop.
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// The location of a watcher, and the means to start one.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) tmux: Tmux,
    pub(crate) store: Store,
    pub(crate) environment: Environment,
}

/// A way to the terminals of a server: its watcher, started if need be; without one, plain commands. Fails where no
/// terminal is.
pub(crate) fn connect(ground: &Ground) -> Result<Control, TerminalError> {
    find_or_start(ground).map_or_else(|why| plain(&ground.tmux, &why), |client| Ok(Control::Watcher(client)))
}

fn revive(ground: &Ground) -> bool {
    find_or_start(ground).is_ok()
}

fn find_or_start(ground: &Ground) -> Result<Client, String> {
    match meet(ground) {
        Met::Ours(client) => return Ok(client),
        Met::Newer => return Err("it is of a newer release".to_owned()),
        Met::Nobody => {}
    }
    if !ground.tmux.has_session() {
        return Err("no terminal is open".to_owned());
    }
    let _lock = ground.store.lock_watcher_start(OTHERS).map_err(|error| error.to_string())?;
    // It may have been somebody else's work meanwhile.
    if let Met::Ours(client) = meet(ground) {
        return Ok(client);
    }
    start(ground)?;
    match meet(ground) {
        Met::Ours(client) => Ok(client),
        _ => Err("it does not answer".to_owned()),
    }
}

fn plain(tmux: &Tmux, why: &str) -> Result<Control, TerminalError> {
    if !tmux.has_session() {
        return Err(TerminalError::tmux("no terminal is open"));
    }
    tracing::warn!("no watcher: {why}");
    Ok(Control::Plain(Plain::new(tmux)))
}

enum Met {
    Ours(Client),
    /// It knows better than we do what it watches.
    Newer,
    /// There is none, or an older one, which has been asked to make room.
    Nobody,
}

fn meet(ground: &Ground) -> Met {
    match Client::find(ground) {
        Ok(Answerer::Ours(client)) => Met::Ours(client),
        Ok(Answerer::Other(Hello { protocol, .. }, _)) if protocol > PROTOCOL => Met::Newer,
        Ok(Answerer::Other(_, stream)) => {
            retire(stream);
            Met::Nobody
        }
        Err(_) => Met::Nobody,
    }
}

/// Starts a watcher and waits until it listens. It is detached, because the command that starts it can end first or never reap it.
fn start(ground: &Ground) -> Result<(), String> {
    let Ground { tmux, store, environment } = ground;
    let program = keeper_program(environment).ok_or("the program alhena cannot be found")?;
    let mut command = command(&program, tmux.server(), tmux.program(), store.dir(), "1");
    command.env_clear();
    for name in VARIABLES {
        command.envs(environment.get(name).map(|value| (name, value)));
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut first = command.spawn().map_err(|error| error.to_string())?;
    let said = first.stdout.take();
    let _ended = first.wait();
    let mut line = String::new();
    if let Some(said) = said {
        let _nothing = BufReader::new(said).read_line(&mut line);
    }
    match line.trim() {
        "ready" => Ok(()),
        "" => Err("it ended at once".to_owned()),
        why => Err(why.to_owned()),
    }
}
