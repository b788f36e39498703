//! Recording: a proxy on loopback that speaks to the real API, TLS too, and writes down what passes.

mod upstream;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

pub use self::upstream::Upstream;
use super::{Answered, Body, Cassette, CassetteError, Complaints, Interaction, Line, Normal, Tape, asked};
use alhena_http::{Refusal, Request, RequestReader};

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
/// What is shorter is no key, but a word that stands everywhere.
const SHORTEST_KEY: usize = 16;

/// A cassette that is being recorded.
pub struct Recorder {
    path: PathBuf,
    upstream: Upstream,
    cassette: Mutex<Cassette>,
    normal: Normal,
    complaints: Complaints,
}

impl Recorder {
    /// Records anew into this file, which is only written when something has passed.
    pub fn open(path: &Path, upstream: Upstream, normal: Normal) -> Result<Self, CassetteError> {
        can_be_written(path)?;
        let cassette = Mutex::new(Cassette::empty(upstream.url()));
        Ok(Recorder { path: path.to_owned(), upstream, cassette, normal, complaints: Complaints::default() })
    }

    /// What could not be recorded.
    pub fn complaints(&self) -> Complaints {
        self.complaints.clone()
    }

    /// Passes a request on and its answer back.
    fn pass(&self, request: &Request, line: &Line<'_>) -> io::Result<Option<Answered>> {
        let cannot = |why: String| format!("{} cannot be reached: {why}", self.upstream.url());
        let (stream, socket) = match self.upstream.connect() {
            Ok(connected) => connected,
            Err(error) => return self.fail(line, cannot(error.to_string())),
        };
        // Whoever ends the server ends this wait too.
        let _held = line.shared.hold(socket);
        let mut reader = RequestReader::new(stream);
        let sent = reader.stream().write_all(&self.head_of(request)).and_then(|()| {
            reader.stream().write_all(&request.body)?;
            reader.stream().flush()
        });
        if let Err(error) = sent {
            return self.fail(line, cannot(error.to_string()));
        }
        let head = match reader.response() {
            Ok(head) => head,
            Err(Refusal::Gone) => return self.fail(line, cannot("the connection was lost".to_owned())),
            Err(Refusal::Bad(_, why)) => return self.fail(line, cannot(why.to_owned())),
        };
        let headers: BTreeMap<String, String> =
            head.headers.into_iter().filter(|(name, _)| HEADERS.contains(&name.as_str())).collect();
        line.open(head.status, &headers)?;
        let (mut framing, mut pieces) = (head.framing, Vec::new());
        loop {
            match reader.piece(&mut framing) {
                Ok(Some(bytes)) => {
                    line.piece(&bytes)?;
                    pieces.push(bytes);
                }
                Ok(None) => break,
                Err(_) => {
                    return Err(io::Error::other(
                        "the connection to the API was lost in the middle of an answer",
                    ));
                }
            }
        }
        line.close()?;
        Ok(Some(Answered { status: head.status, body: self.body(&headers, &pieces), headers }))
    }

    fn fail(&self, line: &Line<'_>, why: String) -> io::Result<Option<Answered>> {
        line.refuse(502, &why)?;
        self.complaints.add(why);
        Ok(None)
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

    fn body(&self, headers: &BTreeMap<String, String>, pieces: &[Vec<u8>]) -> Body {
        let text = String::from_utf8_lossy(&pieces.concat()).into_owned();
        let is_stream = headers.get("content-type").is_some_and(|kind| kind.contains("event-stream"));
        let values = if is_stream { events(&text) } else { None };
        match (values, serde_json::from_str::<Value>(&text)) {
            (Some(events), _) => {
                Body::Events(events.iter().map(|event| self.normal.answer_value(event)).collect())
            }
            (None, Ok(value)) if !is_stream => Body::Json(self.normal.answer_value(&value)),
            _ => {
                let pieces = pieces.iter().map(|piece| String::from_utf8_lossy(piece));
                Body::Chunks(pieces.map(|piece| self.normal.answer(&piece)).collect())
            }
        }
    }

    /// Writes an interaction down, without the keys that came with it.
    fn keep(&self, interaction: &Interaction, keys: &[String]) -> Result<(), CassetteError> {
        let failed = |error: serde_json::Error| CassetteError::Io(self.path.clone(), error.into());
        let text = serde_json::to_string(interaction).map_err(failed)?;
        let text = keys.iter().fold(text, |text, key| text.replace(key.as_str(), "[[key]]"));
        let interaction = serde_json::from_str(&text).map_err(failed)?;
        let mut cassette = self.cassette.lock().unwrap_or_else(PoisonError::into_inner);
        cassette.interactions.push(interaction);
        cassette.write(&self.path)
    }
}

impl Tape for Recorder {
    fn answer(&self, request: Request, line: &Line<'_>) -> io::Result<()> {
        let answered = self.pass(&request, line).inspect_err(|error| {
            self.complaints.add(format!("an answer is not on the cassette: {error}"));
        })?;
        let Some(response) = answered else { return Ok(()) };
        let (path, status) = (super::without_key(&request.target), response.status);
        line.shared.tell(&crate::Observed::Passed { path: &path, status });
        let interaction = Interaction { request: asked(&request, &self.normal), response };
        if let Err(error) = self.keep(&interaction, &keys(&request)) {
            self.complaints.add(format!("the cassette could not be written: {error}"));
        }
        Ok(())
    }
}

/// The keys and tokens that a request carries.
fn keys(request: &Request) -> Vec<String> {
    let header = |wanted: &str| {
        request.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    };
    let token = header("authorization").map(|value| value.rsplit(' ').next().unwrap_or_default());
    let query = request.target.split(['?', '&']).find_map(|pair| pair.strip_prefix("key="));
    let found = [header("x-goog-api-key"), header("x-api-key"), token, query];
    let found = found.into_iter().flatten().map(str::trim).filter(|key| key.len() >= SHORTEST_KEY);
    found.map(str::to_owned).collect()
}

/// Server-sent events that are JSON each; none where anything else is among them.
fn events(text: &str) -> Option<Vec<Value>> {
    let text = text.replace("\r\n", "\n");
    let events = text.split("\n\n").filter(|event| !event.trim().is_empty());
    events.map(|event| serde_json::from_str(event.strip_prefix("data:")?).ok()).collect()
}

/// Says before anything is asked that it could not be written down here.
pub fn can_be_written(path: &Path) -> Result<(), CassetteError> {
    let was_there = path.symlink_metadata().is_ok();
    let tried = File::options().append(true).create(true).open(path);
    let tried = tried.and_then(|_| if was_there { Ok(()) } else { std::fs::remove_file(path) });
    tried.map_err(|error| CassetteError::Io(path.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_read_as_events_or_left_as_it_is() {
        let stream = "data: {\"a\": 1}\r\n\r\ndata: {\"b\": 2}\r\n\r\n";
        assert_eq!(events(stream), Some(vec![serde_json::json!({"a": 1}), serde_json::json!({"b": 2})]));
        assert_eq!(events("data: {\"a\": 1}\n\ndata: {\"b\":"), None);
        assert_eq!(events("event: x\ndata: {}\n\n"), None);
    }

    #[test]
    fn the_keys_of_a_request_are_found_wherever_they_stand() {
        let request = |target: &str, name: &str, value: &str| Request {
            method: "POST".to_owned(),
            target: target.to_owned(),
            headers: vec![(name.to_owned(), value.to_owned())],
            body: Vec::new(),
            keep_alive: true,
            version: 1,
        };
        let key = "AIza-0123456789abcdef";
        assert_eq!(keys(&request("/m", "x-goog-api-key", key)), [key]);
        assert_eq!(keys(&request("/m", "authorization", &format!("Bearer {key}"))), [key]);
        assert_eq!(keys(&request(&format!("/m?alt=sse&key={key}"), "a", "b")), [key]);
        assert_eq!(keys(&request("/m?key=mock", "a", "b")), [""; 0]);
    }
}
