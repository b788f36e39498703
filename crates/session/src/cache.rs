//! What was found out about files that have not changed since.
//!
//! Derived, and kept in the user's cache directory: it can be deleted at any time, is made again when it is damaged or of
//! another format, and several processes may use it at once. The last one to write wins, which costs the others only time.
//! Gemini CLI's own directory is left alone: it deletes what it does not know there.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self};
use std::io::{self};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alhena_sys::files;

use crate::file::{SessionFile, Stamp};
use crate::survey::Survey;

/// Raise this when a survey says something else than before.
const FORMAT: u32 = 3;

/// A file that was written so recently can be written again without a change of its time.
const SETTLED: Duration = Duration::from_secs(2);

/// About as many bytes as one takes.
const USUAL: usize = 256;

/// The format and the sum of what follows stand before it.
const HEADER: usize = 8;

/// Path, what the file looked like, and what was found out about it.
type CachedSurvey<P, S> = (P, (u64, i64, u64), S);

/// Surveys by path.
#[derive(Default)]
pub(crate) struct Surveys {
    /// By the text of the path: a path is taken apart each time it is hashed.
    known: HashMap<OsString, (Stamp, Survey)>,
}

impl Surveys {
    /// What is there; nothing when there is nothing, or nothing that can be used.
    pub(crate) fn read(path: &Path) -> Self {
        fs::read(path).ok().and_then(|bytes| Self::parse(&bytes)).unwrap_or_default()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (header, mut body) = bytes.split_at_checked(HEADER)?;
        if header != self::header(body) {
            return None;
        }
        let mut known = HashMap::with_capacity(body.len() / USUAL);
        while !body.is_empty() {
            // A broken one means that something else is broken too.
            let ((path, stamp, survey), rest): (CachedSurvey<&str, Survey>, _) =
                postcard::take_from_bytes(body).ok()?;
            let (size, modified, inode) = stamp;
            known.insert(OsString::from(path), (Stamp { size, modified, inode }, survey));
            body = rest;
        }
        Some(Self { known })
    }

    /// What is known about a file, if it is still the same.
    pub(crate) fn get(&self, file: &SessionFile) -> Option<&Survey> {
        let (stamp, survey) = self.known.get(file.path.as_os_str())?;
        (*stamp == file.stamp).then_some(survey)
    }

    /// The same, to keep.
    pub(crate) fn take(&mut self, file: &SessionFile) -> Option<Survey> {
        let (stamp, survey) = self.known.remove(file.path.as_os_str())?;
        (stamp == file.stamp).then_some(survey)
    }

    /// What is known about other files than these.
    pub(crate) fn beside(&self, files: &[SessionFile]) -> Vec<(&Path, Stamp, &Survey)> {
        let these: HashSet<&OsStr> = files.iter().map(|file| file.path.as_os_str()).collect();
        let others = self.known.iter().filter(|(path, _)| !these.contains(path.as_os_str()));
        others.map(|(path, (stamp, survey))| (Path::new(path), *stamp, survey)).collect()
    }

    /// How many files are known.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

/// Writes surveys in the place of what is there. Paths that are no text are left out.
pub(crate) fn write<'a>(
    path: &Path,
    surveys: impl Iterator<Item = (&'a Path, Stamp, &'a Survey)>,
) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let settled = i64::try_from(now.saturating_sub(SETTLED).as_nanos()).unwrap_or(i64::MAX);
    let mut text = vec![0; HEADER];
    for (path, stamp, survey) in surveys.filter(|(_, stamp, _)| stamp.modified < settled) {
        let Some(path) = path.to_str() else { continue };
        let cached: CachedSurvey<_, _> = (path, (stamp.size, stamp.modified, stamp.inode), survey);
        text = postcard::to_extend(&cached, text).map_err(io::Error::other)?;
    }
    if let Some((header, body)) = text.split_first_chunk_mut() {
        *header = self::header(body);
    }
    // Session text is nobody else's business.
    files::create_private_dir(directory)?;
    files::replace_own(path, &text)
}

/// What stands before the surveys.
fn header(body: &[u8]) -> [u8; HEADER] {
    let [a, b, c, d] = FORMAT.to_le_bytes();
    let [e, f, g, h] = sum(body).to_le_bytes();
    [a, b, c, d, e, f, g, h]
}

/// A sum over bytes that changes when they do: against accidents, not against people.
pub(crate) fn sum(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let sum = words.iter().fold(bytes.len() as u64, |sum, word| mix(sum, u64::from_le_bytes(*word)));
    let sum = rest.iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)));
    let sum = mix(sum, 0);
    (sum ^ (sum >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path) -> SessionFile {
        SessionFile::at(path).unwrap()
    }

    fn old(path: &Path) {
        let past = SystemTime::now() - Duration::from_secs(100);
        fs::File::options().write(true).open(path).unwrap().set_modified(past).unwrap();
    }

    fn survey(title: &str) -> Survey {
        Survey { title: Some(title.to_owned()), ..Survey::default() }
    }

    #[test]
    fn what_was_written_is_known_until_the_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cache) = (dir.path().join("session-x.jsonl"), dir.path().join("cache/surveys"));
        fs::write(&path, "one").unwrap();
        old(&path);
        let found = file(&path);
        write(&cache, std::iter::once((&*found.path, found.stamp, &survey("t")))).unwrap();
        assert_eq!(Surveys::read(&cache).get(&found), Some(&survey("t")));
        fs::write(&path, "two!").unwrap();
        old(&path);
        assert_eq!(Surveys::read(&cache).get(&file(&path)), None);
    }

    #[test]
    fn a_file_that_may_still_change_within_its_time_is_not_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cache) = (dir.path().join("session-x.jsonl"), dir.path().join("surveys"));
        fs::write(&path, "one").unwrap();
        let found = file(&path);
        write(&cache, std::iter::once((&*found.path, found.stamp, &survey("t")))).unwrap();
        assert_eq!(Surveys::read(&cache).len(), 0);
    }

    #[test]
    fn damage_and_other_formats_mean_that_nothing_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cache) = (dir.path().join("session-x.jsonl"), dir.path().join("surveys"));
        fs::write(&path, "one").unwrap();
        old(&path);
        let found = file(&path);
        write(&cache, std::iter::once((&*found.path, found.stamp, &survey("t")))).unwrap();
        let whole = fs::read(&cache).unwrap();
        let at = whole.len() - whole.iter().rev().position(|byte| *byte == b't').unwrap() - 1;
        let with = |at: usize, byte: u8| {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            damaged
        };
        let one_less = whole[..whole.len() - 1].to_vec();
        for damaged in [
            whole[..whole.len() / 2].to_vec(),
            one_less,
            with(at, b'u'),
            with(0, 2),
            Vec::new(),
            b"garbage".to_vec(),
            vec![0; HEADER],
        ] {
            fs::write(&cache, damaged).unwrap();
            assert_eq!(Surveys::read(&cache).len(), 0);
        }
        assert_eq!(Surveys::read(&dir.path().join("none")).len(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn the_cache_belongs_to_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("a/b/surveys");
        write(&cache, std::iter::empty()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&dir.path().join("a")), mode(&cache)), (0o700, 0o600));
    }
}
