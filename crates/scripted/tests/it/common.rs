//! A client that sees every byte: requests over a plain socket, responses with how they ended.

#![allow(dead_code)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use alhena_scripted::{Scenario, Server};
use serde_json::{Value, json};

/// Longer than anything here takes; only a failing test waits so long.
pub const LIMIT: Duration = Duration::from_secs(20);

pub const STREAM: &str = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
pub const GENERATE: &str = "/v1beta/models/gemini-2.5-flash:generateContent";
pub const COUNT: &str = "/v1beta/models/gemini-2.5-flash:countTokens";

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By its length, or by the last chunk.
    Complete,
    /// By the end of the connection, too early.
    Closed,
    /// By a reset of the connection.
    Reset,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub end: End,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The JSON of each event of a stream.
    pub fn events(&self) -> Vec<Value> {
        let text = self.text();
        let events = text.split("\r\n\r\n").filter(|event| !event.is_empty());
        events.map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap()).collect()
    }

    /// The parts of all events, in order.
    pub fn parts(&self) -> Vec<Value> {
        let parts =
            |event: Value| event["candidates"][0]["content"]["parts"].as_array().cloned().unwrap_or_default();
        self.events().into_iter().flat_map(parts).collect()
    }

    /// The text of all events that is not a thought.
    pub fn said(&self) -> String {
        let parts = self.parts();
        let said = parts.iter().filter(|part| part.get("thought").is_none());
        said.filter_map(|part| part["text"].as_str()).collect()
    }

    /// The function calls of all events: name and arguments.
    pub fn calls(&self) -> Vec<(String, Value)> {
        let calls = self.parts().into_iter().filter_map(|part| part.get("functionCall").cloned());
        calls.map(|call| (call["name"].as_str().unwrap().to_owned(), call["args"].clone())).collect()
    }
}

pub struct Client {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub fn new(server: &Server) -> Client {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Client { stream, buffer: Vec::new() }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    pub fn send_post(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        self.send(format!(
            "POST {path} HTTP/1.1\r\nHost: x\r\nx-goog-api-key: very-secret\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    }

    pub fn post(&mut self, path: &str, body: &Value) -> Response {
        self.send_post(path, body);
        self.response()
    }

    pub fn close(&self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
    }

    /// Reads until the buffer holds this; false when the connection ends first.
    pub fn read_until(&mut self, wanted: &str) -> bool {
        while find(&self.buffer, wanted.as_bytes()).is_none() {
            if self.more().is_err() {
                return false;
            }
        }
        true
    }

    fn more(&mut self) -> Result<(), End> {
        let mut chunk = [0; 8192];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(End::Closed),
            Ok(read) => {
                self.buffer.extend_from_slice(&chunk[..read]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(End::Reset),
            Err(error) => panic!("reading failed: {error}"),
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, End> {
        while self.buffer.len() < length {
            self.more()?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    fn line(&mut self) -> Result<String, End> {
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                let line = self.take(end + 2)?;
                return Ok(String::from_utf8(line[..end].to_vec()).unwrap());
            }
            self.more()?;
        }
    }

    /// The next response; panics when there is none at all.
    pub fn response(&mut self) -> Response {
        self.try_response().unwrap()
    }

    pub fn try_response(&mut self) -> Result<Response, End> {
        let status = self.line()?.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
                None => break,
            }
        }
        let mut response = Response { status, headers, body: Vec::new(), end: End::Complete };
        if let Err(end) = self.body(&mut response) {
            response.end = end;
        }
        Ok(response)
    }

    fn body(&mut self, response: &mut Response) -> Result<(), End> {
        if response.status == 100 {
            return Ok(());
        }
        if let Some(length) = response.header("content-length") {
            let length = length.parse().unwrap();
            response.body = self.take(length)?;
            return Ok(());
        }
        if response.header("transfer-encoding") != Some("chunked") {
            while self.more().is_ok() {}
            response.body = std::mem::take(&mut self.buffer);
            return Ok(());
        }
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).unwrap();
            let chunk = self.take(size)?;
            response.body.extend_from_slice(&chunk);
            self.line()?;
            if size == 0 {
                return Ok(());
            }
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// A server with one scenario, under `/s/x`.
pub fn serve(scenario: Scenario) -> Server {
    let server = Server::start().unwrap();
    server.add("x", scenario);
    server
}

/// Asks the scenario `x` for a streamed answer, on a connection of its own.
pub fn ask(server: &Server, body: &Value) -> Response {
    Client::new(server).post(&format!("/s/x{STREAM}"), body)
}

pub fn prompt(text: &str) -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": text}]}]})
}

pub fn scenario(text: &str) -> Scenario {
    Scenario::from_json(text).unwrap()
}

/// A scenario with the given steps as its only turn.
pub fn steps(text: &str) -> Scenario {
    scenario(&format!("{{\"turns\": [{{\"steps\": {text}}}]}}"))
}
