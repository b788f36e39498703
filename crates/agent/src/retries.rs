//! Failed requests to the API, while Gemini CLI still tries again.
//!
//! Between a failed request and the next the stream of 0.61.0 says nothing, for up to four minutes. But for every attempt
//! the CLI writes a line to stderr, so that is followed too. What ended the run is not told here: the outcome says it.

use std::path::{Path, PathBuf};

use alhena_wire::frame::{Frame, Framer};

use crate::follow::Follower;

/// A line that says more than this is no line of ours.
const LONGEST_LINE: usize = 64 << 10;
/// So many buffers are read before others get their turn.
const AT_ONCE: usize = 16;
/// So much of a reason is told.
const REASON: usize = 200;

/// The stderr of a run.
pub(crate) struct Retries {
    path: PathBuf,
    follower: Option<Follower>,
    framer: Framer,
}

impl Retries {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), follower: None, framer: Framer::new(LONGEST_LINE) }
    }

    /// How much is there by now, read or not.
    pub(crate) fn written(&self) -> u64 {
        self.follower.as_ref().map_or(0, Follower::len)
    }

    /// A warning for each attempt that has failed since the last time and is followed by another.
    pub(crate) fn news(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        if self.follower.is_none() {
            self.follower = Follower::read_only(&self.path).ok();
        }
        let Some(follower) = &mut self.follower else { return found };
        for _ in 0..AT_ONCE {
            let bytes = follower.next().unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            self.framer.push(bytes, |frame| {
                if let Frame::Line(line) = frame {
                    found.extend(std::str::from_utf8(line).ok().and_then(warning));
                }
            });
        }
        found
    }
}

fn warning(line: &str) -> Option<String> {
    let (number, rest) = line.strip_prefix("Attempt ")?.split_once(" failed")?;
    let number: u32 = number.parse().ok()?;
    let (reason, _) = rest.split_once(". Retrying ")?;
    let reason = match reason.strip_prefix(" with ").or_else(|| reason.strip_prefix(": ")) {
        Some(reason) => reason.split_whitespace().collect::<Vec<_>>().join(" "),
        None => "no answer".to_owned(),
    };
    let reason = reason.get(..reason.floor_char_boundary(REASON)).unwrap_or_default();
    Some(format!("Attempt {number} to reach the API failed ({reason}); Gemini CLI tries again"))
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
        assert_eq!(retries.news(), [""; 0]);
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(b"YOLO mode is enabled.\nAttempt 1 failed with status 500. Retrying with back")
            .unwrap();
        assert_eq!(retries.news(), [""; 0]);
        file.write_all(b"off... _ApiError: {\"error\":{}}\n    at x\n").unwrap();
        let told = ["Attempt 1 to reach the API failed (status 500); Gemini CLI tries again"];
        assert_eq!(retries.news(), told);
        assert_eq!(retries.news(), [""; 0]);
    }

    #[test]
    fn lines_of_all_kinds_are_understood_and_the_last_attempt_is_no_retry() {
        let told = |line: &str| warning(line);
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
}
