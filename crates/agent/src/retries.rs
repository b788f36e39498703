//! Failed requests to the API, while Gemini CLI still tries again.
//!
//! Between a failed request and the next the stream of 0.61.0 says nothing, for up to four minutes. But for every attempt
//! the CLI writes a line to stderr, so that is followed too. What ended the run is not told here: the outcome says it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use alhena_model::judge::delay_in;
use alhena_wire::frame::{Frame, Framer};

use crate::follow::Follower;

/// A line that says more than this is no line of ours.
const LONGEST_LINE: usize = 64 << 10;
/// So many buffers are read before others get their turn.
const AT_ONCE: usize = 16;
/// So much of a reason is told.
const REASON: usize = 200;
/// So many lines a reason has at the most: what the API says, how long to wait, advice.
const MOST_LINES: usize = 8;

/// An attempt that has failed and is followed by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub number: u32,
    pub reason: String,
    /// It was one request too many.
    pub limited: bool,
    /// How long Gemini CLI waits, where it says so.
    pub waits: Option<Duration>,
    /// How long the API asks to wait.
    pub asked: Option<Duration>,
}

impl Attempt {
    /// For people.
    pub(crate) fn warning(&self) -> String {
        let Attempt { number, reason, .. } = self;
        format!("Attempt {number} to reach the API failed ({reason}); Gemini CLI tries again")
    }

    /// Reads what the CLI says, on one line or on several.
    fn read(text: &str) -> Option<Self> {
        let (number, rest) = text.strip_prefix("Attempt ")?.split_once(" failed")?;
        let number: u32 = number.parse().ok()?;
        let (said, retrying) = rest.split_once(". Retrying ")?;
        let reason = match said.strip_prefix(" with ").or_else(|| said.strip_prefix(": ")) {
            Some(reason) => reason.split_whitespace().collect::<Vec<_>>().join(" "),
            None => "no answer".to_owned(),
        };
        let reason = reason.get(..reason.floor_char_boundary(REASON)).unwrap_or_default().to_owned();
        let waits = retrying.strip_prefix("after ").and_then(|time| time.split_once("ms")?.0.parse().ok());
        let waits = waits.map(Duration::from_millis);
        // Only for too many requests it says how long it waits.
        let limited = waits.is_some() || reason == "status 429";
        let asked = delay_in(said).filter(|_| limited).map(Duration::from_millis);
        Some(Self { number, reason, limited, waits, asked })
    }
}

/// The stderr of a run.
pub(crate) struct Retries {
    path: PathBuf,
    follower: Option<Follower>,
    framer: Framer,
    /// An attempt whose reason has more lines.
    begun: Vec<String>,
}

impl Retries {
    pub(crate) fn new(path: &Path) -> Self {
        let framer = Framer::new(LONGEST_LINE);
        Self { path: path.to_owned(), follower: None, framer, begun: Vec::new() }
    }

    /// How much is there by now, read or not.
    pub(crate) fn written(&self) -> u64 {
        self.follower.as_ref().map_or(0, Follower::len)
    }

    /// Each attempt that has failed since the last time and is followed by another.
    pub(crate) fn news(&mut self) -> Vec<Attempt> {
        let mut found = Vec::new();
        if self.follower.is_none() {
            self.follower = Follower::read_only(&self.path).ok();
        }
        let Some(follower) = &mut self.follower else { return found };
        let begun = &mut self.begun;
        for _ in 0..AT_ONCE {
            let bytes = follower.next().unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            self.framer.push(bytes, |frame| {
                if let Frame::Line(line) = frame {
                    found.extend(std::str::from_utf8(line).ok().and_then(|line| next(begun, line)));
                }
            });
        }
        found
    }
}

/// One more line: what the API says may be on several, and the end of the last says that there is another attempt.
fn next(begun: &mut Vec<String>, line: &str) -> Option<Attempt> {
    if line.starts_with("Attempt ") {
        begun.clear();
    } else if begun.is_empty() || begun.len() >= MOST_LINES {
        begun.clear();
        return None;
    }
    begun.push(line.to_owned());
    let read = Attempt::read(&begun.join("\n"));
    if read.is_some() || line.ends_with(". Max attempts reached") {
        begun.clear();
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn every_attempt_that_is_followed_by_another_is_told_once_as_soon_as_its_line_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stderr");
        let mut retries = Retries::new(&path);
        assert_eq!(retries.news(), []);
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"YOLO mode is enabled.\nAttempt 1 failed with status 500. Retrying with back")
            .unwrap();
        assert_eq!(retries.news(), []);
        file.write_all(b"off... _ApiError: {\"error\":{}}\n    at x\n").unwrap();
        let told = ["Attempt 1 to reach the API failed (status 500); Gemini CLI tries again"];
        assert_eq!(retries.news().iter().map(Attempt::warning).collect::<Vec<_>>(), told);
        assert_eq!(retries.news(), []);
    }

    #[test]
    fn lines_of_all_kinds_are_understood_and_the_last_attempt_is_no_retry() {
        let told = |text: &str| {
            let mut begun = Vec::new();
            text.lines().find_map(|line| next(&mut begun, line)).map(|attempt| attempt.warning())
        };
        let says = |attempt: u32, why: &str| {
            Some(format!("Attempt {attempt} to reach the API failed ({why}); Gemini CLI tries again"))
        };
        assert_eq!(
            told(
                "Attempt 2 failed. Retrying with backoff... Error: exception TypeError: fetch failed sending request"
            ),
            says(2, "no answer")
        );
        assert_eq!(
            told("Attempt 1 failed: You have exhausted your capacity.. Retrying after 1234ms..."),
            says(1, "You have exhausted your capacity.")
        );
        assert_eq!(told("Attempt 3 failed with 5xx error. Retrying with backoff... x"), says(3, "5xx error"));
        assert_eq!(told("Attempt 3 failed: Resource has been exhausted. Max attempts reached"), None);
        assert_eq!(told("Attempted path failed. Retrying "), None);
        assert_eq!(told("Attempt x failed. Retrying "), None);
        let long = "é".repeat(1000);
        assert!(told(&format!("Attempt 1 failed: {long}. Retrying after 1ms...")).unwrap().len() < 300);
    }

    #[test]
    fn how_long_is_waited_and_how_long_the_api_asks_for_is_read_from_several_lines() {
        let said = "Attempt 1 failed: You exceeded your quota.\nSuggested retry after 2s.. Retrying after 5048ms...\n";
        let mut begun = Vec::new();
        let mut read =
            |text: &str| text.lines().filter_map(|line| next(&mut begun, line)).collect::<Vec<_>>();
        let millis = |millis| Some(Duration::from_millis(millis));
        let expected = Attempt {
            number: 1,
            reason: "You exceeded your quota. Suggested retry after 2s.".to_owned(),
            limited: true,
            waits: millis(5048),
            asked: millis(2000),
        };
        assert_eq!(read(said), [expected]);
        let backoff = read("Attempt 2 failed with status 429. Retrying with backoff... x");
        assert!(backoff[0].limited && backoff[0].waits.is_none());
        assert!(!read("Attempt 2 failed with status 500. Retrying with backoff... x")[0].limited);
        // What began and was never ended takes nothing else for its own.
        assert_eq!(read("Attempt 1 failed: a\nb\nc\nd\ne\nf\ng\nh\ni\n. Retrying after 1ms...\n"), []);
        assert_eq!(read("Attempt 3 failed: a\nb. Max attempts reached\nc. Retrying after 1ms...\n"), []);
    }
}
