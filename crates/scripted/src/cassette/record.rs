//! Recording: a proxy on loopback that speaks to the real API, TLS too, and writes down what passes.

mod upstream;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde_json::Value;

pub use self::upstream::Upstream;
use super::{
    Answered, Asked, Body, Cassette, CassetteError, Complaints, Interaction, LARGEST, Line, Normal, Tape,
    asked, client_of, differs,
};
use alhena_sys::http::{Refusal, Request, RequestReader};

/// The headers of an answer that a client acts on; others may say who asked.
const HEADERS: [&str; 2] = ["content-type", "retry-after"];
/// Of a request, what belongs to the connection and not to the API.
const OF_THE_CONNECTION: [&str; 10] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "upgrade",
];
/// A cassette that is being recorded.
pub struct Recorder {
    path: PathBuf,
    upstream: Upstream,
    cassette: Mutex<Cassette>,
    /// What has been asked and not been answered so far, and why.
    missing: Mutex<Vec<(Asked, String)>>,
    normal: Normal,
    complaints: Complaints,
    largest: u64,
}

impl Recorder {
    /// Records anew into this file, which is only written when something has passed.
    pub fn open(path: &Path, upstream: Upstream, normal: Normal) -> Result<Self, CassetteError> {
        can_be_written(path)?;
        let cassette = Mutex::new(Cassette::empty(upstream.url()));
        let (missing, complaints) = (Mutex::default(), Complaints::default());
        let (path, largest) = (path.to_owned(), LARGEST);
        Ok(Recorder { path, upstream, cassette, missing, normal, complaints, largest })
    }

    /// How large the file may get, in bytes, if that is less than [`LARGEST`]. What does not fit any more is missing on it.
    pub fn largest(mut self, bytes: u64) -> Self {
        self.largest = bytes.min(LARGEST);
        self
    }

    /// What could not be recorded.
    pub fn complaints(&self) -> Complaints {
        self.complaints.clone()
    }

    /// Passes a request on and its answer back. A client that does not wait for the end of it makes no difference: the next
    /// may.
    fn pass(&self, request: &Request, normal: &Normal, line: &Line<'_>) -> Result<Passed, Lost> {
        let (stream, socket) = self.upstream.connect().map_err(|error| Lost::Before(error.to_string()))?;
        // Whoever ends the server ends this wait too.
        let _held = line.shared.hold(socket);
        let mut reader = RequestReader::new(stream);
        let sent = reader.stream().write_all(&self.head_of(request)).and_then(|()| {
            reader.stream().write_all(&request.body)?;
            reader.stream().flush()
        });
        sent.map_err(|error| Lost::Before(error.to_string()))?;
        let head = reader.response().map_err(|refusal| match refusal {
            Refusal::Gone => Lost::Before("the connection was lost".to_owned()),
            Refusal::Bad(_, why) => Lost::Before(why.to_owned()),
        })?;
        let headers: BTreeMap<String, String> =
            head.headers.into_iter().filter(|(name, _)| HEADERS.contains(&name.as_str())).collect();
        let mut heard = line.open(head.status, &headers);
        let (mut framing, mut pieces) = (head.framing, Vec::new());
        while let Some(bytes) = reader.piece(&mut framing).map_err(|_| Lost::InTheMiddle)? {
            heard = heard.and_then(|()| line.piece(&bytes));
            pieces.push(bytes);
        }
        let body = body(normal, &headers, &pieces);
        Ok(Passed { answer: Answered { status: head.status, headers, body }, heard })
    }

    fn head_of(&self, request: &Request) -> Vec<u8> {
        let target = format!("{}{}", self.upstream.prefix(), request.target);
        let mut head =
            format!("{} {target} HTTP/1.1\r\nHost: {}\r\n", request.method, self.upstream.authority());
        let own = request.headers.iter().filter(|(name, _)| !OF_THE_CONNECTION.contains(&name.as_str()));
        for (name, value) in own {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("Accept-Encoding: identity\r\nConnection: close\r\n");
        head.push_str(&format!("Content-Length: {}\r\n\r\n", request.body.len()));
        head.into_bytes()
    }

    fn keep(&self, interaction: Interaction, client: Option<String>) {
        let mut missing = self.missing.lock();
        missing.retain(|(asked, _)| !differs::same(asked, &interaction.request));
        let mut cassette = self.cassette.lock();
        cassette.interactions.push(interaction);
        cassette.client = cassette.client.take().or(client);
        let Err(CassetteError::TooLarge(..)) = self.write(&mut cassette, &missing) else { return };
        let too_much = cassette.interactions.pop();
        let why = "it would be too large".to_owned();
        missing.extend(too_much.map(|interaction| (interaction.request, why)));
        let _told = self.write(&mut cassette, &missing);
    }

    /// Writes down that the answer to a turn is missing, where there are others. A side question can do without one.
    fn miss(&self, asked: Asked, why: String) {
        if !asked.is_turn() {
            return;
        }
        let mut missing = self.missing.lock();
        missing.push((asked, why));
        let mut cassette = self.cassette.lock();
        if !cassette.interactions.is_empty() {
            let _told = self.write(&mut cassette, &missing);
        }
    }

    fn write(&self, cassette: &mut Cassette, missing: &[(Asked, String)]) -> Result<(), CassetteError> {
        cassette.incomplete = missing.first().map(|(_, why)| why.clone());
        let written = cassette.write_within(&self.path, self.largest);
        if let Err(error) = &written {
            self.complaints.add_once(format!("the cassette could not be written: {error}"));
        }
        written
    }
}

/// An answer, and whether the client heard all of it.
struct Passed {
    answer: Answered,
    heard: io::Result<()>,
}

enum Lost {
    Before(String),
    InTheMiddle,
}

impl Tape for Recorder {
    fn answer(&self, request: Request, line: &Line<'_>) -> io::Result<()> {
        let (asked, normal) = asked(&request, &self.normal);
        match self.pass(&request, &normal, line) {
            Ok(Passed { answer: response, heard }) => {
                line.shared.tell(&crate::Observed::Passed { path: &asked.path, status: response.status });
                // It is written when the client has it all, and may end us.
                self.keep(Interaction { request: asked, response }, client_of(&request));
                heard.and_then(|()| line.close())
            }
            Err(Lost::Before(why)) => {
                let why = format!("{} cannot be reached: {why}", self.upstream.url());
                self.complaints.add(why.clone());
                self.miss(asked, why.clone());
                line.refuse(502, &why)
            }
            Err(Lost::InTheMiddle) => {
                let why = "the connection to the API was lost in the middle of an answer";
                self.complaints.add(format!("an answer is not on the cassette: {why}"));
                self.miss(asked, why.to_owned());
                Err(io::Error::other(why))
            }
        }
    }
}

/// The body of an answer, as it is written.
fn body(normal: &Normal, headers: &BTreeMap<String, String>, pieces: &[Vec<u8>]) -> Body {
    let text = String::from_utf8_lossy(&pieces.concat()).into_owned();
    let is_stream = headers.get("content-type").is_some_and(|kind| kind.contains("event-stream"));
    let values = if is_stream { events(&text) } else { None };
    match (values, serde_json::from_str::<Value>(&text)) {
        (Some(events), _) => Body::Events(events.iter().map(|event| normal.answer_value(event)).collect()),
        (None, Ok(value)) if !is_stream => Body::Json(normal.answer_value(&value)),
        _ => {
            let whole = normal.answer(&text);
            let pieces = pieces.iter().map(|piece| normal.answer(&String::from_utf8_lossy(piece)));
            let pieces: Vec<String> = pieces.collect();
            // A secret may begin in one piece and end in the next.
            Body::Chunks(if pieces.concat() == whole { pieces } else { vec![whole] })
        }
    }
}

/// Server-sent events that are JSON each; none where anything else is among them.
fn events(text: &str) -> Option<Vec<Value>> {
    let text = text.replace("\r\n", "\n");
    let events = text.split("\n\n").filter(|event| !event.trim().is_empty());
    events.map(|event| serde_json::from_str(event.strip_prefix("data:")?).ok()).collect()
}

/// Says before anything is asked that it could not be written down here: nothing is replaced but a cassette, or an empty file.
pub fn can_be_written(path: &Path) -> Result<(), CassetteError> {
    let failed = |error| CassetteError::Io(path.to_owned(), error);
    match std::fs::metadata(path) {
        Ok(there) if there.is_file() && there.len() > 0 => drop(Cassette::read(path)?),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    alhena_sys::files::can_be_replaced(path).map_err(failed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_recorded_over_but_a_cassette_and_what_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("talk.json");
        assert!(can_be_written(&path).is_ok(), "there is nothing");
        std::fs::write(&path, "").unwrap();
        assert!(can_be_written(&path).is_ok(), "there is nothing in it");
        for text in ["my notes", "{}", "{\"cassette\": 1}", "[1]"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(can_be_written(&path), Err(CassetteError::NotOne(..))), "{text}");
        }
        Cassette::empty("https://api.example").write(&path).unwrap();
        assert!(can_be_written(&path).is_ok());
    }

    #[test]
    fn a_stream_is_read_as_events_or_left_as_it_is() {
        let stream = "data: {\"a\": 1}\r\n\r\ndata: {\"b\": 2}\r\n\r\n";
        assert_eq!(events(stream), Some(vec![serde_json::json!({"a": 1}), serde_json::json!({"b": 2})]));
        assert_eq!(events("data: {\"a\": 1}\n\ndata: {\"b\":"), None);
        assert_eq!(events("event: x\ndata: {}\n\n"), None);
    }
}
