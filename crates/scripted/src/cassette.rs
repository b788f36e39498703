//! Cassettes: what passed between a client and the real API, in one readable file, and the API played back from it.
//!
//! The file holds no header of a request, no key and no token. What differs from run to run without a meaning (times, ids,
//! paths) is written in a common form, by the one table in `normal`, and so is what is compared with it.

mod differs;
mod keys;
mod normal;
#[cfg(feature = "record")]
mod record;
mod replay;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::normal::{Normal, Secrecy, secret};
#[cfg(feature = "record")]
pub use self::record::{Recorder, Upstream, can_be_written};
pub use self::replay::Player;

use alhena_sys::http::Request;

const FORMAT: u32 = 1;
/// So large a cassette may be, in bytes: it is read as a whole, and looked through for every request.
pub const LARGEST: u64 = 64 << 20;

/// The content of a cassette.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cassette {
    /// The form of the file; 1.
    pub cassette: u32,
    /// Where the API was.
    pub upstream: String,
    /// Who asked: a program and its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Why an answer is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
    /// What passed, in the order in which the answers were complete.
    pub interactions: Vec<Interaction>,
}

/// A request and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interaction {
    /// What was asked.
    pub request: Asked,
    /// What was answered.
    pub response: Answered,
}

/// A request in the common form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The HTTP method.
    pub method: String,
    /// The path and query, without a key.
    pub path: String,
    /// The body.
    pub body: Value,
}

impl Asked {
    /// Whether the model is asked to go on, and not something on the side.
    fn is_turn(&self) -> bool {
        self.path.contains(":streamGenerateContent")
    }
}

/// An answer of the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// The HTTP status.
    pub status: u16,
    /// Those of its headers that a client acts on.
    pub headers: BTreeMap<String, String>,
    /// What came.
    #[serde(flatten)]
    pub body: Body,
}

impl Answered {
    /// The error that it is, in words.
    fn error(&self) -> Option<String> {
        let errors: Vec<&Value> = match &self.body {
            Body::Events(events) => events.iter().filter_map(|event| event.get("error")).collect(),
            Body::Json(value) => value.get("error").into_iter().collect(),
            Body::Chunks(_) => Vec::new(),
        };
        let error = errors.first().copied();
        let code = error.and_then(|error| error.get("code")?.as_u64()).unwrap_or(self.status.into());
        let message = error.and_then(|error| error.get("message")?.as_str()).unwrap_or_default();
        let message = message.lines().next().unwrap_or_default();
        let is_error = error.is_some() || self.status >= 400;
        is_error.then(|| format!("{code} {}", differs::shortened(message)).trim_end().to_owned())
    }
}

/// The body of an answer, as readable as it can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Server-sent events that are JSON each.
    Events(Vec<Value>),
    /// One JSON value.
    Json(Value),
    /// Anything else, in the pieces in which it came.
    Chunks(Vec<String>),
}

/// Why there is no cassette.
#[derive(Debug)]
pub enum CassetteError {
    /// The file cannot be read or written.
    Io(PathBuf, io::Error),
    /// It is none.
    NotOne(PathBuf, String),
    /// It would be larger than this.
    TooLarge(PathBuf, u64),
    /// The API cannot be spoken to.
    Upstream(String),
}

impl std::fmt::Display for CassetteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CassetteError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            CassetteError::NotOne(path, why) => write!(f, "{}: not a cassette: {why}", path.display()),
            CassetteError::TooLarge(path, largest) => {
                write!(f, "{}: it would be larger than {} MB", path.display(), largest >> 20)
            }
            CassetteError::Upstream(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for CassetteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CassetteError::Io(_, error) => Some(error),
            _ => None,
        }
    }
}

impl Cassette {
    /// One without anything on it.
    pub fn empty(upstream: &str) -> Self {
        Cassette {
            cassette: FORMAT,
            upstream: upstream.to_owned(),
            client: None,
            incomplete: None,
            interactions: Vec::new(),
        }
    }

    /// Reads one.
    pub fn read(path: &Path) -> Result<Self, CassetteError> {
        let failed = |error: io::Error| CassetteError::Io(path.to_owned(), error);
        let not_one = |why: String| CassetteError::NotOne(path.to_owned(), why);
        let too_large = || not_one(format!("it is larger than {} MB", LARGEST >> 20));
        let file = alhena_sys::files::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > LARGEST {
            return Err(too_large());
        }
        let mut text = Vec::new();
        file.take(LARGEST + 1).read_to_end(&mut text).map_err(failed)?;
        if text.len() as u64 > LARGEST {
            return Err(too_large());
        }
        let read: Cassette = serde_json::from_slice(&text).map_err(|error| not_one(error.to_string()))?;
        match read.cassette {
            FORMAT => Ok(read),
            other => Err(not_one(format!("it has the form {other}, and this release knows {FORMAT}"))),
        }
    }

    /// What went wrong at the API's side before it was over, in words; none where the last turn has its answer.
    pub fn trouble(&self) -> Option<String> {
        let missing = self.incomplete.as_ref().map(|why| format!("an answer is missing: {why}"));
        let last = self.interactions.iter().rfind(|each| each.request.is_turn());
        missing.or_else(|| last?.response.error())
    }

    /// Writes it as a whole or not at all, readable by the user alone.
    pub fn write(&self, path: &Path) -> Result<(), CassetteError> {
        self.write_within(path, LARGEST)
    }

    /// The same with another limit of its size.
    fn write_within(&self, path: &Path, largest: u64) -> Result<(), CassetteError> {
        let failed = |error: io::Error| CassetteError::Io(path.to_owned(), error);
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        if text.len() as u64 >= largest {
            return Err(CassetteError::TooLarge(path.to_owned(), largest));
        }
        alhena_sys::files::replace_private(path, format!("{text}\n").as_bytes()).map_err(failed)
    }
}

/// Something that answers requests in the place of scenarios.
pub(crate) trait Tape: Send + Sync {
    /// Answers a request on its connection.
    fn answer(&self, request: Request, line: &Line<'_>) -> io::Result<()>;
}

/// The way back to the client.
pub(crate) struct Line<'a> {
    pub(crate) stream: &'a std::net::TcpStream,
    pub(crate) shared: &'a crate::server::Shared,
    /// Whether the client knows chunks.
    pub(crate) chunked: bool,
    pub(crate) keep_alive: bool,
}

impl Line<'_> {
    /// Sends the head of an answer in pieces.
    pub(crate) fn open(&self, status: u16, headers: &BTreeMap<String, String>) -> io::Result<()> {
        let kind = headers.get("content-type").map_or("application/octet-stream", String::as_str);
        let others = headers.iter().filter(|(name, _)| *name != "content-type");
        let others: Vec<(String, String)> =
            others.map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut head = alhena_sys::http::response_head(status, kind, &others);
        if self.chunked {
            head.push_str("Transfer-Encoding: chunked\r\n");
        }
        head.push_str(if self.stays() { "\r\n" } else { "Connection: close\r\n\r\n" });
        self.write(head.as_bytes())
    }

    /// Whether the connection takes another request afterwards: without chunks only its end says that it is over.
    pub(crate) fn stays(&self) -> bool {
        self.keep_alive && self.chunked
    }

    pub(crate) fn piece(&self, bytes: &[u8]) -> io::Result<()> {
        match (self.chunked, bytes.is_empty()) {
            (_, true) => Ok(()),
            (false, _) => self.write(bytes),
            (true, _) => {
                let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
                framed.extend_from_slice(bytes);
                framed.extend_from_slice(b"\r\n");
                self.write(&framed)
            }
        }
    }

    pub(crate) fn close(&self) -> io::Result<()> {
        if self.chunked { self.write(b"0\r\n\r\n") } else { Ok(()) }
    }

    /// An error of our own, in the API's form.
    pub(crate) fn refuse(&self, status: u16, reason: &str) -> io::Result<()> {
        self.shared.tell(&crate::Observed::Refused { status, reason });
        let headers =
            BTreeMap::from([("content-type".to_owned(), "application/json; charset=UTF-8".to_owned())]);
        self.open(status, &headers)?;
        self.piece(crate::answer::error(status, reason).to_string().as_bytes())?;
        self.close()
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = self.stream;
        io::Write::write_all(&mut stream, bytes)
    }
}

/// The request in the common form, and how its answer is brought into it.
pub(crate) fn asked(request: &Request, normal: &Normal) -> (Asked, Normal) {
    let text = String::from_utf8_lossy(&request.body);
    let body = alhena_wire::from_slice(text.as_bytes()).unwrap_or_else(|_| Value::String(text.into_owned()));
    let normal = normal.of_request(&body, &keys::of(request));
    let path = normal.text(&keys::without(&request.target));
    let asked = Asked { method: request.method.clone(), path, body: normal.value(&body) };
    (asked, normal)
}

/// The program that asks and its version, `GeminiCLI/0.61.0` of `GeminiCLI/0.61.0/gemini-2.5-flash (linux; x64)`.
fn client_of(request: &Request) -> Option<String> {
    let (_, agent) = request.headers.iter().find(|(name, _)| name == "user-agent")?;
    let parts: Vec<&str> = agent.split_whitespace().next()?.splitn(3, '/').take(2).collect();
    Some(parts.join("/"))
}

/// What was said that people should know of, oldest first.
#[derive(Clone, Debug, Default)]
pub struct Complaints(Arc<Mutex<Vec<String>>>);

impl Complaints {
    pub(crate) fn add(&self, what: String) {
        self.0.lock().push(what);
    }

    /// The same, unless it has been said.
    #[cfg(feature = "record")]
    pub(crate) fn add_once(&self, what: String) {
        let mut all = self.0.lock();
        if !all.contains(&what) {
            all.push(what);
        }
    }

    /// All so far.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}
