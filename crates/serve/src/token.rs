//! Who may come in: two tokens in private files, one for everything and one for watching.
//!
//! The files are looked at with each request, so that a new token counts at once and an old one does not any more.

use std::io;
use std::path::{Path, PathBuf};

use alhena_sys::files::{self, Stamp};
use alhena_sys::random;
use parking_lot::Mutex;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Everything that the server allows.
    Full,
    /// Look.
    Read,
}

impl Access {
    fn file(self) -> &'static str {
        match self {
            Access::Full => "token",
            Access::Read => "read-token",
        }
    }
}

/// The tokens, in the files of a directory.
#[derive(Debug)]
pub struct Tokens {
    dir: PathBuf,
    known: Mutex<[Option<Known>; 2]>,
}

/// What a file held when it was last looked at.
#[derive(Clone, Debug)]
struct Known {
    file: Stamp,
    digest: [u8; 32],
}

/// Every access there is.
pub const ALL: [Access; 2] = [Access::Full, Access::Read];

impl Tokens {
    /// Those of a directory, which is made if need be.
    pub fn open(dir: &Path) -> io::Result<Self> {
        files::create_private_dir(dir)?;
        let tokens = Self { dir: dir.to_owned(), known: Mutex::default() };
        for access in ALL {
            tokens.get(access)?;
        }
        Ok(tokens)
    }

    /// The token for this access; a new one where there is none.
    pub fn get(&self, access: Access) -> io::Result<String> {
        if let Some(token) = self.read(access)? {
            return Ok(token);
        }
        // Two may find none: the first one's counts, unless what is there is no token.
        match self.make(access, |new, path| files::move_file(new, path, files::Existing::Keep)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match self.read(access)? {
                Some(token) => Ok(token),
                None => self.renew(access),
            },
            made => made,
        }
    }

    /// The token that is there. One that others could read is none.
    fn read(&self, access: Access) -> io::Result<Option<String>> {
        let path = self.dir.join(access.file());
        match files::read_if_there(&path)? {
            Some(bytes) if is_private(&path)? => {
                Ok(Some(String::from_utf8_lossy(&bytes).trim().to_owned()).filter(|text| is_token(text)))
            }
            _ => Ok(None),
        }
    }

    /// A new token in place of the one that was.
    pub fn renew(&self, access: Access) -> io::Result<String> {
        self.make(access, |new, path| std::fs::rename(new, path))
    }

    fn make(&self, access: Access, put: fn(&Path, &Path) -> io::Result<()>) -> io::Result<String> {
        let token = random::hex::<32>()?;
        let path = self.dir.join(access.file());
        // Another file, whose mode is nobody's but ours. It is whole when it has the name: whoever looks meanwhile finds a token.
        let new = self.dir.join(format!(".{}", new_id(access.file())?));
        let made =
            files::write_private(&new, format!("{token}\n").as_bytes()).and_then(|()| put(&new, &path));
        let _or_has_its_name = std::fs::remove_file(&new);
        made.map(|()| token)
    }

    /// What the bearer of this token may do. It takes the same time for every wrong token.
    pub fn access(&self, given: &str) -> Option<Access> {
        self.fitting(Sha256::digest(given.as_bytes()).into(), |digest| *digest)
    }

    /// What a browser gets in exchange for a token: good for nothing but as the cookie of this origin, and no longer than the
    /// token. Browsers show cookies to every port of a machine, and whoever listens on another is not to have the token.
    pub fn cookie(&self, token: &str, origin: &str) -> Option<String> {
        self.access(token)?;
        Some(hex(&cookie(origin, &Sha256::digest(token.as_bytes()).into())))
    }

    /// What the browser may do that sends this cookie to this origin.
    pub fn access_by_cookie(&self, given: &str, origin: &str) -> Option<Access> {
        let given = Sha256::digest(given.as_bytes()).into();
        self.fitting(given, |digest| Sha256::digest(hex(&cookie(origin, digest)).as_bytes()).into())
    }

    fn fitting(&self, given: [u8; 32], of: impl Fn(&[u8; 32]) -> [u8; 32]) -> Option<Access> {
        let mut known = self.known.lock();
        let mut found = None;
        for (access, known) in ALL.into_iter().zip(known.iter_mut()) {
            self.refresh(access, known);
            if known.as_ref().is_some_and(|known| are_same(&of(&known.digest), &given)) {
                found = found.or(Some(access));
            }
        }
        found
    }

    /// By which it is known whether a token is still the same.
    pub fn stamp(&self, access: Access) -> Option<Stamp> {
        let meta = std::fs::metadata(self.dir.join(access.file())).ok()?;
        Some(Stamp::of(&meta))
    }

    fn refresh(&self, access: Access, known: &mut Option<Known>) {
        match (self.stamp(access), &*known) {
            (Some(stamp), Some(known)) if known.file == stamp => {}
            (Some(file), _) => {
                // Who asks to come in makes no token: it would take the place of one that was just told to somebody.
                *known = self
                    .read(access)
                    .ok()
                    .flatten()
                    .map(|token| Known { file, digest: Sha256::digest(token.as_bytes()).into() });
            }
            // Without a file nobody comes in.
            (None, _) => *known = None,
        }
    }
}

/// Nobody gets from it to the digest of the token, nor from that to the token.
fn cookie(origin: &str, digest: &[u8; 32]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"alhena serve cookie 1\n");
    hash.update(origin.as_bytes());
    hash.update(b"\n");
    hash.update(digest);
    hash.finalize().into()
}

fn is_private(path: &Path) -> io::Result<bool> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok(meta.is_file() && files::mode(&meta) & 0o077 == 0)
}

fn is_token(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// Compares digests without telling by the time it takes where they differ.
fn are_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let differs = one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other));
    std::hint::black_box(differs) == 0
}

/// An id that nobody guesses, and that sorts by time; it begins as the name of what it is for.
pub fn new_id(name: &str) -> io::Result<String> {
    let first: String = name.chars().take(1).collect();
    let millis = alhena_model::Timestamp::now().as_millis();
    Ok(format!("{first}{millis:012x}{}", random::hex::<8>()?))
}

/// Whether a text can be such an id: nothing else becomes part of a path.
pub fn is_id(text: &str) -> bool {
    text.len() == 29 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_token_gives_its_own_access_and_nothing_else_gives_any() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(&dir.path().join("serve")).unwrap();
        let (full, read) = (tokens.get(Access::Full).unwrap(), tokens.get(Access::Read).unwrap());
        assert_ne!(full, read);
        assert_eq!(tokens.access(&full), Some(Access::Full));
        assert_eq!(tokens.access(&read), Some(Access::Read));
        for wrong in ["", " ", full.get(..63).unwrap(), &format!("{full}0"), &full.replace('a', "b")] {
            assert_eq!(tokens.access(wrong), if wrong == full { Some(Access::Full) } else { None });
        }
    }

    #[test]
    fn a_cookie_is_no_token_and_counts_for_its_origin_alone() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(dir.path()).unwrap();
        let (here, there) = ("http://127.0.0.1:7428", "http://127.0.0.1:7429");
        for access in ALL {
            let token = tokens.get(access).unwrap();
            let cookie = tokens.cookie(&token, here).unwrap();
            assert_eq!(tokens.access_by_cookie(&cookie, here), Some(access));
            assert_eq!(tokens.access_by_cookie(&cookie, there), None);
            assert_eq!(tokens.access(&cookie), None, "it is no token");
            assert_eq!(tokens.access_by_cookie(&token, here), None, "and the token is no cookie");
            tokens.renew(access).unwrap();
            assert_eq!(tokens.access_by_cookie(&cookie, here), None, "it ends with its token");
        }
        assert_eq!(tokens.cookie("0000", here), None);
    }

    #[test]
    fn a_new_token_counts_at_once_and_the_old_one_does_not_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(dir.path()).unwrap();
        let old = tokens.get(Access::Full).unwrap();
        assert_eq!(tokens.access(&old), Some(Access::Full));
        // By another process.
        let new = Tokens::open(dir.path()).unwrap().renew(Access::Full).unwrap();
        assert_eq!((tokens.access(&old), tokens.access(&new)), (None, Some(Access::Full)));
        std::fs::remove_file(dir.path().join("token")).unwrap();
        assert_eq!(tokens.access(&new), None);
    }

    #[test]
    fn whoever_looks_for_a_token_first_finds_the_same() {
        for _ in 0..50 {
            let dir = tempfile::tempdir().unwrap();
            let get =
                || Tokens { dir: dir.path().to_owned(), known: Mutex::default() }.get(Access::Full).unwrap();
            let all: Vec<String> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(get)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(all.iter().all(|token| *token == get()), "{all:?}");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn who_asks_to_come_in_makes_no_token() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(dir.path()).unwrap();
        let old = tokens.get(Access::Full).unwrap();
        // As somebody else may leave it, or be about to write it.
        std::fs::write(dir.path().join("token"), "").unwrap();
        assert_eq!((tokens.access(&old), tokens.access("")), (None, None));
        assert_eq!(std::fs::read(dir.path().join("token")).unwrap(), b"");
        assert!(is_token(&tokens.get(Access::Full).unwrap()));
        assert_eq!(files::names_in(dir.path()).unwrap(), ["read-token", "token"]);
    }

    #[test]
    fn a_token_that_others_can_read_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(dir.path()).unwrap();
        let old = tokens.get(Access::Full).unwrap();
        let file = dir.path().join("token");
        assert_eq!(files::mode(&file.metadata().unwrap()) & 0o777, 0o600);
        files::set_mode(&file, 0o644).unwrap();
        let new = tokens.get(Access::Full).unwrap();
        assert_ne!(old, new);
        assert_eq!(files::mode(&file.metadata().unwrap()) & 0o777, 0o600);
    }
}
