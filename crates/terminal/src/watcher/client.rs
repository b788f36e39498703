//! Asking the watcher.
//!
//! A question takes one connection for as long as it takes; threads that ask at the same time get one each. When the watcher
//! dies in the middle, another is started, and what changes nothing is asked again.

use std::io::{self, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alhena_sys::sockets::Stream;

use super::socket;
use super::start::{self, Ground};
use super::wire::{self, Answer, Hello, Question};
use crate::control::Activity;
use crate::error::TerminalError;
use crate::screen::Reading;
use parking_lot::Mutex;

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

pub(super) enum Answerer {
    Ours(Client),
    /// One of another release. It can be asked to make room.
    Other(Hello, BufReader<Stream>),
}

impl Client {
    pub(super) fn find(ground: &Ground) -> io::Result<Answerer> {
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
        match start::revive(&self.ground) && question.changes_nothing() {
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
    let stream = socket::connect(dir)?;
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
            socket::end_peer(stream.get_ref());
            Err(error)
        }
        _ => Err(io::Error::other("no watcher")),
    }
}

/// Asks one of another release to make room. Whether it did is seen by its lock.
pub(super) fn retire(mut stream: BufReader<Stream>) {
    let _gone = wire::write(stream.get_mut(), &Question::Retire);
    let _gone = wire::read::<serde_json::Value>(&mut stream);
}
