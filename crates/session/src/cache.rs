//! What was found out about files that have not changed since.
//!
//! Derived, and kept in the user's cache directory: it can be deleted at any time, is made again when it is damaged or of
//! another format, and several processes may use it at once. The last one to write wins, which costs the others only time.
//! Gemini CLI's own directory is left alone: it deletes what it does not know there.

use std::fs::{self};
use std::io::{self};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alhena_sys::files;

use crate::file::{SessionFile, Stamp};
use crate::survey::Survey;

/// Raise this when a survey says something else than before.
const FORMAT: u32 = 4;

/// A file that was written so recently can be written again without a change of its time.
const SETTLED: Duration = Duration::from_secs(2);

/// About as many bytes as one takes.
const USUAL: usize = 256;

/// The format and the sum of what follows stand before it.
const HEADER: usize = 8;

/// Surveys, in the order of their paths.
#[derive(Default)]
pub(crate) struct Surveys {
    /// As they are written.
    bytes: Vec<u8>,
    known: Vec<CachedSurvey>,
}

/// One of them: where its parts are written, and its survey as soon as somebody has decoded it.
struct CachedSurvey {
    path: Range<usize>,
    stamp: Stamp,
    encoded: Range<usize>,
    decoded: Option<Survey>,
}

impl Surveys {
    /// What is there; nothing when there is nothing, or nothing that can be used.
    pub(crate) fn read(path: &Path) -> Self {
        fs::read(path).ok().and_then(Self::parse).unwrap_or_default()
    }

    fn parse(bytes: Vec<u8>) -> Option<Self> {
        let (header, mut body) = bytes.split_at_checked(HEADER)?;
        if header != self::header(body) {
            return None;
        }
        let mut known = Vec::with_capacity(body.len() / USUAL);
        let mut last = "";
        while !body.is_empty() {
            // A broken one means that something else is broken too, and so does one out of order.
            let (path, rest): (&str, _) = postcard::take_from_bytes(body).ok()?;
            if path <= last {
                return None;
            }
            last = path;
            let path_end = bytes.len() - rest.len();
            let ((stamp, survey), rest): ((_, &[u8]), _) = postcard::take_from_bytes(rest).ok()?;
            let ((size, modified, inode), end) = (stamp, bytes.len() - rest.len());
            known.push(CachedSurvey {
                path: path_end - path.len()..path_end,
                stamp: Stamp { size, modified, inode },
                encoded: end - survey.len()..end,
                decoded: None,
            });
            body = rest;
        }
        Some(Self { bytes, known })
    }

    /// Decodes all of them, for somebody who will want nearly all.
    pub(crate) fn decode(mut self) -> Self {
        for cached in &mut self.known {
            cached.decoded = decoded(&self.bytes, &cached.encoded);
        }
        self
    }

    /// What is known about each of these files, which have to be in the order of their paths, if it is still the same.
    pub(crate) fn take(&mut self, files: &[SessionFile]) -> Vec<Option<Survey>> {
        let mut known = self.known.iter_mut().peekable();
        let survey_of = |file: &SessionFile| {
            let path = file.path.as_os_str().as_encoded_bytes();
            let path_of = |cached: &CachedSurvey| self.bytes.get(cached.path.clone()).unwrap_or_default();
            while known.next_if(|cached| path_of(cached) < path).is_some() {}
            let cached = known.next_if(|cached| path_of(cached) == path)?;
            if cached.stamp != file.stamp {
                return None;
            }
            cached.decoded.take().or_else(|| decoded(&self.bytes, &cached.encoded))
        };
        files.iter().map(survey_of).collect()
    }

    /// What is known about other files than these, which have to be in the order of their paths.
    pub(crate) fn beside(&self, files: &[SessionFile]) -> Vec<(PathBuf, Stamp, Survey)> {
        let path_of = |cached: &CachedSurvey| str::from_utf8(self.bytes.get(cached.path.clone())?).ok();
        let is_other = |path: &str| {
            files
                .binary_search_by(|file| file.path.as_os_str().as_encoded_bytes().cmp(path.as_bytes()))
                .is_err()
        };
        let others = self.known.iter().filter_map(|cached| {
            let path = path_of(cached).filter(|path| is_other(path))?;
            Some((PathBuf::from(path), cached.stamp, decoded(&self.bytes, &cached.encoded)?))
        });
        others.collect()
    }

    /// How many files are known.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }
}

/// A survey that is all of a range.
fn decoded(bytes: &[u8], range: &Range<usize>) -> Option<Survey> {
    let (survey, rest) = postcard::take_from_bytes(bytes.get(range.clone())?).ok()?;
    rest.is_empty().then_some(survey)
}

/// Writes surveys in the place of what is there. Paths that are no text are left out.
pub(crate) fn write<'a>(
    path: &Path,
    surveys: impl Iterator<Item = (&'a Path, Stamp, &'a Survey)>,
) -> io::Result<()> {
    let directory = path.parent().unwrap_or(path);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let settled = i64::try_from(now.saturating_sub(SETTLED).as_nanos()).unwrap_or(i64::MAX);
    let settled = surveys.filter(|(_, stamp, _)| stamp.modified < settled);
    let mut surveys: Vec<(&str, Stamp, &Survey)> =
        settled.filter_map(|(path, stamp, survey)| Some((path.to_str()?, stamp, survey))).collect();
    surveys.sort_unstable_by_key(|(path, _, _)| *path);
    surveys.dedup_by_key(|(path, _, _)| *path);
    let (mut text, mut encoded) = (vec![0; HEADER], Vec::new());
    for (path, stamp, survey) in surveys {
        encoded.clear();
        encoded = postcard::to_extend(survey, encoded).map_err(io::Error::other)?;
        // The survey as bytes, so that it need not be decoded to be passed over.
        let written = (path, ((stamp.size, stamp.modified, stamp.inode), &*encoded));
        text = postcard::to_extend(&written, text).map_err(io::Error::other)?;
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
        assert_eq!(Surveys::read(&cache).take(std::slice::from_ref(&found)), [Some(survey("t"))]);
        assert_eq!(Surveys::read(&cache).decode().take(&[found]), [Some(survey("t"))]);
        fs::write(&path, "two!").unwrap();
        old(&path);
        assert_eq!(Surveys::read(&cache).take(&[file(&path)]), [None]);
    }

    /// Files of these names, each as old as the others.
    fn files(dir: &Path, names: &[&str]) -> Vec<SessionFile> {
        let make = |name: &&str| {
            let path = dir.join(format!("session-{name}.jsonl"));
            fs::write(&path, name).unwrap();
            old(&path);
            file(&path)
        };
        names.iter().map(make).collect()
    }

    fn keep(cache: &Path, files: &[SessionFile]) {
        let surveys: Vec<Survey> = files.iter().map(|file| survey(&file.id_start)).collect();
        write(cache, files.iter().zip(&surveys).map(|(file, survey)| (&*file.path, file.stamp, survey)))
            .unwrap();
    }

    #[test]
    fn each_file_gets_its_own_survey_whatever_else_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("surveys");
        let mut all = files(dir.path(), &["b", "d", "a", "e", "c", "f"]);
        keep(&cache, all.get(..4).unwrap());
        all.sort_by(|one, other| one.path.cmp(&other.path));
        let known = |some: &[SessionFile]| -> Vec<Option<String>> {
            let taken = Surveys::read(&cache).take(some);
            assert_eq!(Surveys::read(&cache).decode().take(some), taken);
            taken.into_iter().map(|survey| survey?.title).collect()
        };
        let title = |name: &str| Some(name.to_owned());
        assert_eq!(known(&all), [title("a"), title("b"), None, title("d"), title("e"), None]);
        assert_eq!(known(all.get(2..4).unwrap()), [None, title("d")]);
        assert_eq!(known(&[]), []);
        let beside = Surveys::read(&cache).beside(all.get(1..5).unwrap());
        let beside: Vec<Option<String>> = beside.into_iter().map(|(_, _, survey)| survey.title).collect();
        assert_eq!(beside, [title("a")]);
    }

    #[test]
    fn a_survey_that_is_none_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("surveys");
        let all = files(dir.path(), &["a", "b"]);
        keep(&cache, &all);
        let whole = fs::read(&cache).unwrap();
        // The length of the title of the first, with a sum that is right.
        let at = whole.windows(2).position(|two| two == b"\x01a").unwrap();
        let mut hostile = whole.clone();
        hostile[at] = 0xff;
        let body = hostile.split_off(HEADER);
        let hostile = [header(&body).to_vec(), body].concat();
        fs::write(&cache, hostile).unwrap();
        assert_eq!(Surveys::read(&cache).take(&all), [None, Some(survey("b"))]);
        assert_eq!(Surveys::read(&cache).decode().take(&all), [None, Some(survey("b"))]);
    }

    #[test]
    fn one_that_is_out_of_order_or_there_twice_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("surveys");
        let all = files(dir.path(), &["a", "b"]);
        keep(&cache, &all);
        let whole = fs::read(&cache).unwrap();
        let body = whole.get(HEADER..).unwrap();
        let (first, second) = body.split_at(body.len() / 2);
        for order in [[second, first], [first, first]] {
            let body = order.concat();
            fs::write(&cache, [header(&body).to_vec(), body].concat()).unwrap();
            assert_eq!(Surveys::read(&cache).len(), 0);
        }
        fs::write(&cache, whole).unwrap();
        assert_eq!(Surveys::read(&cache).len(), 2);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(body in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let surveys = Surveys::parse([header(&body).to_vec(), body].concat());
            if let Some(surveys) = surveys {
                surveys.decode().take(&[]);
            }
        }
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

    #[test]
    fn the_cache_belongs_to_the_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("a/b/surveys");
        write(&cache, std::iter::empty()).unwrap();
        let mode = |path: &Path| alhena_sys::files::mode(&fs::metadata(path).unwrap());
        assert_eq!((mode(&dir.path().join("a")), mode(&cache)), (0o700, 0o600));
    }
}
