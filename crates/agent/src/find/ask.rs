//! Asks a program something and takes no for an answer: a child process bounded in time and output, and a memory of
//! answers so that a program is asked once.
//!
//! Gemini CLI 0.61.0 ignores SIGTERM and starts a second process of its own, so whoever is asked runs under a keeper.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant, SystemTime};

use alhena_sys::files;
use serde::{Deserialize, Serialize};

use crate::dirs;
use crate::env::Environment;
use crate::supervise::errand::{Errand, ErrandFiles};
use crate::supervise::protocol::Gentle;

/// An answer needs no more.
const ROOM: usize = 4 << 10;

/// What a program answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// It could not be started.
    NotStarted(io::Error),
    /// It took longer than allowed and was killed.
    TooLate,
    /// Nobody wanted to know any more, and it was killed.
    Stopped,
}

/// How long an answer is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) limit: Duration,
    /// Whether to give up at once; asked all the time.
    pub(crate) stop_when: Option<fn() -> bool>,
}

impl From<Duration> for Patience {
    fn from(limit: Duration) -> Self {
        Self { limit, stop_when: None }
    }
}

impl Patience {
    fn is_over(&self) -> bool {
        self.stop_when.is_some_and(|stop| stop())
    }
}

/// How often it is looked whether to give up.
const GLANCE: Duration = Duration::from_millis(50);

/// Runs a command to its end, as long as there is patience, and keeps at most `most` bytes of each output. Nothing of it is left
/// running: not after an answer, not without one, and not when this process is killed.
///
/// Output goes to files, because a pipe is held open by every grandchild that inherits it.
pub(crate) fn ask(
    command: &mut Command,
    patience: impl Into<Patience>,
    most: u64,
) -> Result<Answer, NoAnswer> {
    ask_in(&scratch().map_err(NoAnswer::NotStarted)?, command, patience, most)
}

/// The same with a directory that goes with the answer, and also when this process is killed before it has come.
pub(crate) fn ask_in(
    files: &tempfile::TempDir,
    command: &mut Command,
    patience: impl Into<Patience>,
    most: u64,
) -> Result<Answer, NoAnswer> {
    let patience = patience.into();
    if patience.is_over() {
        return Err(NoAnswer::Stopped);
    }
    let (stdout, stderr) = (files.path().join("stdout"), files.path().join("stderr"));
    let place = ErrandFiles {
        stdout: &stdout,
        stderr: &stderr,
        stdin: None,
        remove_when_abandoned: files.path(),
        lock: None,
    };
    let mut errand = Errand::start(command, &place).map_err(NoAnswer::NotStarted)?;
    let begun = Instant::now();
    let status = loop {
        let left = patience.limit.saturating_sub(begun.elapsed());
        let time = if patience.stop_when.is_some() { left.min(GLANCE) } else { left };
        if let Some(status) = errand.wait(time).map_err(NoAnswer::NotStarted)? {
            break status;
        }
        let stopped = patience.is_over();
        if stopped || left.is_zero() {
            let mute = errand
                .awaited()
                .map(|keeper| format!("{} is to be the keeper and does not answer", keeper.display()));
            // An answer is all that it had to give.
            errand.stop(Gentle::AtOnce);
            return Err(match mute {
                _ if stopped => NoAnswer::Stopped,
                Some(mute) => NoAnswer::NotStarted(io::Error::new(io::ErrorKind::TimedOut, mute)),
                None => NoAnswer::TooLate,
            });
        }
    };
    Ok(Answer { status, stdout: contents(&stdout, most), stderr: contents(&stderr, most) })
}

/// A directory with room for an answer: Alhena's own, because the system's may be full or not ours to write to; or the other
/// way round.
pub(crate) fn scratch() -> io::Result<tempfile::TempDir> {
    let own = dirs::Dirs::of(&Environment::of_process()).map(|dirs| dirs.cache.join("asking"));
    let in_own =
        own.and_then(|parent| with_room(tempfile::tempdir_in(files::create_private_dir(&parent).ok()?)).ok());
    in_own.map_or_else(|| with_room(tempfile::tempdir()), Ok)
}

/// What a program cannot write would be taken for what it did not say.
fn with_room(made: io::Result<tempfile::TempDir>) -> io::Result<tempfile::TempDir> {
    let made = made?;
    let probe = made.path().join("probe");
    let written = fs::write(&probe, vec![0; ROOM]);
    let _ = fs::remove_file(&probe);
    // A limit of the process is another matter.
    if let Err(error) = written.as_ref()
        && files::is_full(error)
    {
        written?;
    }
    Ok(made)
}

fn contents(path: &Path, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        let _what_there_is = file.take(most).read_to_end(&mut bytes);
    }
    bytes
}

/// An answer that holds as long as the program's file is the same.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    path: PathBuf,
    size: u64,
    modified_ns: u128,
    answer: String,
}

impl Remembered {
    fn about(path: &Path, answer: &str) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        let modified = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        Some(Self {
            path: path.to_path_buf(),
            size: metadata.len(),
            modified_ns: modified.as_nanos(),
            answer: answer.to_owned(),
        })
    }
}

/// Answers kept in files, one per program and question.
#[derive(Clone, Debug)]
pub(crate) struct Answers(Option<PathBuf>);

impl Answers {
    /// Answers in a directory; without one, nothing is remembered.
    pub(crate) fn in_directory(directory: Option<PathBuf>) -> Self {
        Self(directory)
    }

    /// What the program at `path` answered to `question`, unless the file has changed since.
    pub(crate) fn recall(&self, path: &Path, question: &str) -> Option<String> {
        let text = fs::read(self.file(path, question)?).ok()?;
        let kept: Remembered = serde_json::from_slice(&text).ok()?;
        (Remembered::about(path, &kept.answer)? == kept).then_some(kept.answer)
    }

    /// Keeps an answer. Failing to is no failure: the program is asked again next time.
    pub(crate) fn keep(&self, path: &Path, question: &str, answer: &str) {
        let kept = || -> Option<()> {
            let file = self.file(path, question)?;
            files::create_private_dir(file.parent()?).ok()?;
            let text = serde_json::to_vec(&Remembered::about(path, answer)?).ok()?;
            files::replace_own(&file, &text).ok()
        };
        if kept().is_none() {
            tracing::debug!(path = %path.display(), question, "could not remember an answer");
        }
    }

    fn file(&self, path: &Path, question: &str) -> Option<PathBuf> {
        // FNV-1a: stable between versions of Rust, and a collision costs only the question.
        let bytes = path.as_os_str().as_encoded_bytes().iter().chain(b"\0").chain(question.as_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Some(self.0.as_ref()?.join(format!("{hash:016x}.json")))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn answer_has_status_and_both_outputs_cut_to_size() {
        let answer = ask(&mut shell("echo 12345; echo err >&2; exit 3"), Duration::from_secs(20), 4).unwrap();
        assert_eq!(
            (answer.status.code(), answer.stdout, answer.stderr),
            (Some(3), b"1234".to_vec(), b"err\n".to_vec())
        );
    }

    #[test]
    fn who_is_too_late_is_killed_with_its_children() {
        let root = tempfile::tempdir().unwrap();
        let pid = root.path().join("pid");
        let script = format!("trap '' TERM; sleep 600 & echo $! > {}; wait", pid.display());
        let no_answer = ask(&mut shell(&script), Duration::from_secs(5), 100).unwrap_err();
        assert!(matches!(no_answer, NoAnswer::TooLate), "{no_answer:?}");
        let child: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
        assert!(gone(child), "the sleeping grandchild lives on");
    }

    /// Whether a process ends within a few seconds; a zombie that nobody has collected counts as ended.
    fn gone(pid: u32) -> bool {
        (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !alhena_sys::processes::alive(pid)
        })
    }

    #[test]
    fn grandchild_that_holds_the_output_does_not_hold_the_answer() {
        let answer = ask(&mut shell("sleep 600 & echo done"), Duration::from_secs(20), 100).unwrap();
        assert_eq!(answer.stdout, b"done\n");
    }

    #[test]
    fn missing_program_is_not_started() {
        let no_answer =
            ask(&mut Command::new("/nonexistent/program"), Duration::from_secs(1), 1).unwrap_err();
        assert!(matches!(no_answer, NoAnswer::NotStarted(_)), "{no_answer:?}");
    }

    #[test]
    fn answers_are_remembered_until_the_file_changes() {
        let root = tempfile::tempdir().unwrap();
        let program = root.path().join("program");
        fs::write(&program, "one").unwrap();
        let answers = Answers::in_directory(Some(root.path().join("cache/answers")));
        assert_eq!(answers.recall(&program, "version"), None);
        answers.keep(&program, "version", "1.0.0");
        assert_eq!(answers.recall(&program, "version"), Some("1.0.0".to_owned()));
        assert_eq!(answers.recall(&program, "colour"), None);
        fs::write(&program, "longer").unwrap();
        assert_eq!(answers.recall(&program, "version"), None);
        Answers::in_directory(None).keep(&program, "version", "1.0.0");
        assert_eq!(Answers::in_directory(None).recall(&program, "version"), None);
    }
}
