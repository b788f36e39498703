//! The watcher's socket, for the same user only, and what is said over it: a line of JSON each way.
//!
//! The first question is who is there. A watcher may be of another release than the command that asks it.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use alhena_sys::processes::{self, Signal};
use alhena_sys::sockets::{self, Listener, Stream};
use alhena_wire::release::Version;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::control::Activity;
use crate::screen::Reading;

/// Goes up with every change of what is said here, or of what it means.
pub(super) const PROTOCOL: u32 = 2;
/// A line that is longer is nobody's we know. A screen with all of its history is some megabytes.
const LONGEST_LINE: u64 = 64 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u32,
    pub(super) release: String,
}

impl Hello {
    pub(super) fn ours() -> Self {
        Self { protocol: PROTOCOL, release: env!("CARGO_PKG_VERSION").to_owned() }
    }

    /// Whether we can ask it: it says the same things, and is not older. Two releases that are used at once must not take
    /// turns in replacing each other's, or connections to tmux would come and go.
    pub(super) fn will_do(&self) -> bool {
        let ours = Self::ours();
        let release = |hello: &Self| hello.release.parse::<Version>().ok();
        self.protocol == ours.protocol && (*self == ours || release(self) >= release(&ours))
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Question {
    /// Who is there? Has to come first.
    Hello(Hello),
    Run(Vec<Vec<String>>),
    Activity(String),
    /// What has it done, once it has done more than was seen, or after so many milliseconds?
    Wait {
        pane: String,
        count: u64,
        windows: u64,
        ms: u64,
    },
    /// How often was an agent seen to do something else, once that is not as often as this any more, or after so many
    /// milliseconds?
    News {
        seen: u64,
        ms: u64,
    },
    State(String),
    Retire,
}

impl Question {
    /// Whether it can be asked twice.
    pub(super) fn changes_nothing(&self) -> bool {
        const READ: [&str; 3] = ["display-message", "capture-pane", "list-panes"];
        match self {
            Question::Run(commands) => {
                commands.iter().all(|words| words.first().is_some_and(|word| READ.contains(&word.as_str())))
            }
            Question::Hello(_)
            | Question::Activity(_)
            | Question::Wait { .. }
            | Question::News { .. }
            | Question::State(_) => true,
            Question::Retire => false,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Hello(Hello),
    Ran(Vec<String>),
    Activity(ActivityJson),
    News(u64),
    State(Box<Reading>),
    Retiring,
    Failed(String),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ActivityJson {
    count: u64,
    windows: u64,
    heard: bool,
    quiet_us: u64,
    title: Option<String>,
    begun: u64,
}

impl From<Activity> for ActivityJson {
    fn from(activity: Activity) -> Self {
        Self {
            count: activity.count,
            windows: activity.windows,
            heard: activity.last.is_some(),
            quiet_us: u64::try_from(activity.since.elapsed().as_micros()).unwrap_or(u64::MAX),
            title: activity.title,
            begun: activity.begun,
        }
    }
}

impl From<ActivityJson> for Activity {
    fn from(seen: ActivityJson) -> Self {
        let now = Instant::now();
        let since = now.checked_sub(Duration::from_micros(seen.quiet_us)).unwrap_or(now);
        Self {
            count: seen.count,
            windows: seen.windows,
            last: seen.heard.then_some(since),
            since,
            title: seen.title,
            begun: seen.begun,
        }
    }
}

pub(super) fn write<T: Serialize>(to: &mut impl Write, value: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// The next line. None when the other side has gone.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    io::Read::take(&mut *from, LONGEST_LINE).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

const NAME: &str = "watcher.sock";

/// Listens in this directory. Whatever was there is a leftover: who calls this holds the watcher's lock.
pub(super) fn listen(dir: &Path) -> io::Result<Listener> {
    let _gone = std::fs::remove_file(dir.join(NAME));
    sockets::listen(dir, NAME)
}

/// Connects to the watcher of this directory, if that is this user's.
pub(super) fn connect(dir: &Path) -> io::Result<Stream> {
    let stream = sockets::connect(dir, NAME)?;
    check_peer(&stream)?;
    Ok(stream)
}

pub(super) fn remove(dir: &Path) {
    let _gone = std::fs::remove_file(dir.join(NAME));
}

pub(super) fn check_peer(stream: &Stream) -> io::Result<()> {
    match sockets::own_peer(stream)? {
        Some(_) => Ok(()),
        None => Err(io::Error::new(io::ErrorKind::PermissionDenied, "the other side is another user's")),
    }
}

/// Ends the watcher at the other side: a process of this user, by the system's word.
pub(super) fn end_peer(stream: &Stream) {
    if let Ok(Some(peer)) = sockets::own_peer(stream)
        && is_watcher(peer)
    {
        processes::signal(peer, Signal::KILL);
    }
}

/// Whether a process is a watcher, by its arguments: nothing else is to be ended by mistake.
fn is_watcher(pid: u32) -> bool {
    let words = processes::arguments(pid);
    words.get(1).is_some_and(|word| word == b"terminal") && words.iter().any(|word| word == b"watcher")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_line_and_foreign_bytes_are_errors_and_the_end_is_none() {
        assert!(read::<Question>(&mut &b""[..]).unwrap().is_none());
        assert!(read::<Question>(&mut &b"\"retire\""[..]).is_err());
        assert!(read::<Question>(&mut &b"\xff\xfe\n"[..]).is_err());
        assert!(matches!(read::<Question>(&mut &b"\"retire\"\n"[..]).unwrap(), Some(Question::Retire)));
    }

    #[test]
    fn of_two_releases_the_newer_ones_watcher_does_for_both() {
        let hello = |protocol, release: &str| Hello { protocol, release: release.to_owned() };
        let ours = Hello::ours();
        assert!(ours.will_do());
        assert!(hello(PROTOCOL, "99.0.0").will_do());
        assert!(!hello(PROTOCOL, "0.0.1").will_do());
        assert!(!hello(PROTOCOL, "who knows").will_do());
        assert!(!hello(PROTOCOL + 1, &ours.release).will_do());
        assert!(!hello(PROTOCOL - 1, "99.0.0").will_do());
    }

    #[test]
    fn an_activity_survives_the_way() {
        let last = Instant::now().checked_sub(Duration::from_millis(700)).unwrap();
        let there = Activity {
            count: 3,
            last: Some(last),
            since: last,
            title: Some("✦".into()),
            begun: 2,
            windows: 1,
        };
        let back = Activity::from(ActivityJson::from(there));
        assert_eq!((back.count, back.begun, back.windows, back.says_working()), (3, 2, 1, true));
        assert!(back.last.unwrap().elapsed() >= Duration::from_millis(700));
    }

    #[test]
    fn a_deep_directory_has_a_socket_too() {
        let root = tempfile::tempdir().unwrap();
        for dir in [root.path().to_owned(), root.path().join("d".repeat(90)).join("e".repeat(90))] {
            std::fs::create_dir_all(&dir).unwrap();
            assert!(connect(&dir).is_err());
            let listener = listen(&dir).unwrap();
            connect(&dir).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            check_peer(&accepted).unwrap();
            assert!(dir.join(NAME).exists());
        }
    }
}
