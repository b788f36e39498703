//! `alhena serve` under test, and a client that says exactly what it is told to.
#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use alhena_agent::env::Environment;
use alhena_testbed::Deadline;
use alhena_testbed::processes::{kill_tree, signal};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::lab::ALHENA;

/// Nothing that is asked takes longer.
const LIMIT: Duration = Duration::from_secs(120);

pub struct Served {
    child: Child,
    /// The address without a scheme.
    pub host: String,
    pub token: String,
    /// The first line.
    pub line: String,
}

impl Served {
    /// Starts a server in an environment, on a free port.
    pub fn start(env: &Environment, dir: &std::path::Path, args: &[&str]) -> Self {
        let mut command = Command::new(ALHENA);
        command.env_clear().envs(env.iter()).current_dir(dir);
        command.args(["serve", "--port", "0"]).args(args);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let line = line.trim_end().to_owned();
        let (host, token) = line
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once("/?token="))
            .unwrap_or_else(|| panic!("the first line is {line:?}"));
        Self { child, host: host.to_owned(), token: token.to_owned(), line: line.clone() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, with: Signal) {
        signal(self.child.id(), with);
    }

    /// Waits for its end, and gives its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        let mut ended = None;
        let deadline = Deadline::after(LIMIT);
        assert!(
            deadline.wait_until(|| {
                ended = self.child.try_wait().unwrap();
                ended.is_some()
            }),
            "the server did not end"
        );
        ended.unwrap().code()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream
    }

    /// A request with nothing in it that is not said here.
    pub fn raw(&self, text: &str) -> Reply {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        Reply::read(stream)
    }

    /// A request with these headers, and `Host`.
    pub fn bare(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.raw(&self.head(method, path, headers, body))
    }

    fn head(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("Host: {}\r\n", self.host));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
        }
        format!("{text}\r\n{body}")
    }

    /// A request of somebody who has the token.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        self.bare(method, path, &[("Authorization", &bearer)], body)
    }

    pub fn get(&self, path: &str) -> Value {
        let reply = self.ask("GET", path, "");
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.ask("POST", path, &body.to_string())
    }

    /// Starts a run and gives its id.
    pub fn run(&self, options: &Value) -> String {
        let reply = self.post("/v1/runs", options);
        assert_eq!(reply.status, 201, "{}", reply.body);
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    /// Follows events.
    pub fn follow(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend(headers);
        let mut stream = self.connect();
        stream.write_all(self.head("GET", path, &all, "").as_bytes()).unwrap();
        Events::read(stream)
    }

    /// All events of a run, to its end.
    pub fn events(&self, id: &str) -> Vec<(u64, Value)> {
        self.follow(&format!("/v1/runs/{id}/events"), &[]).collect()
    }

    /// Waits until what a path gives is so.
    pub fn until(&self, path: &str, mut what: impl FnMut(&Value) -> bool) -> Value {
        let (deadline, mut last) = (Deadline::after(LIMIT), Value::Null);
        let is_so = deadline.wait_until(|| {
            last = self.get(path);
            what(&last)
        });
        assert!(is_so, "{path}: {last:#}");
        last
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        kill_tree(self.child.id());
        let _reaped = self.child.wait();
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub bytes: Vec<u8>,
}

impl Reply {
    fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let (status, headers) = head(&mut reader);
        let mut bytes = Vec::new();
        if headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked") {
            Chunks { reader, left: 0, over: false }.read_to_end(&mut bytes).unwrap();
        } else {
            // A connection that is reset has said what it had to.
            let _reset = reader.read_to_end(&mut bytes);
        }
        Self { status, headers, body: String::from_utf8_lossy(&bytes).into_owned(), bytes }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The kind of a problem, which has to be one.
    pub fn kind(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], json!(self.status));
        problem["kind"].as_str().unwrap_or_else(|| panic!("{problem}")).to_owned()
    }
}

fn head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap() <= 2 {
            return (status, headers);
        }
        if let Some((name, value)) = line.trim_end().split_once(':') {
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

/// A body in chunks.
struct Chunks<R> {
    reader: R,
    left: usize,
    over: bool,
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.over {
            return Ok(0);
        }
        if self.left == 0 {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                line.clear();
                self.reader.read_line(&mut line)?;
            }
            self.left = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            if self.left == 0 {
                self.over = true;
                return Ok(0);
            }
        }
        let most = self.left.min(buffer.len());
        let count = self.reader.read(&mut buffer[..most])?;
        self.left -= count;
        Ok(count)
    }
}

/// Server-sent events as they come.
pub struct Events {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    lines: BufReader<Chunks<BufReader<TcpStream>>>,
}

impl Events {
    fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let (status, headers) = head(&mut reader);
        Self { status, headers, lines: BufReader::new(Chunks { reader, left: 0, over: false }) }
    }

    /// The next that is so.
    pub fn until(&mut self, what: impl Fn(&Value) -> bool) -> Value {
        for (_, event) in self.by_ref() {
            if what(&event) {
                return event;
            }
        }
        panic!("the events ended before");
    }

    /// The next of a kind.
    pub fn kind(&mut self, kind: &str) -> Value {
        self.until(|event| event["type"] == kind)
    }
}

impl Iterator for Events {
    type Item = (u64, Value);

    fn next(&mut self) -> Option<(u64, Value)> {
        let mut id = 0;
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(told) = line.strip_prefix("id: ") {
                id = told.trim().parse().unwrap();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((
                    id,
                    serde_json::from_str(data).unwrap_or_else(|error| panic!("{error}: {data}")),
                ));
            }
        }
    }
}
