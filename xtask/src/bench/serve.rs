//! `cargo xtask bench serve [READERS]`: what it costs to watch a run over HTTP, and to start one.
//!
//! Many readers follow one run of a stand-in by server-sent events, and then as many ask again and again, as one does with servers
//! that have no events. Each event says when it was made, so that how late it arrives is known without a clock of another. Starts are
//! measured in turns with `alhena run`.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use alhena_model::Timestamp;
use alhena_sys::http::{Framing, Refusal, RequestReader};
use alhena_sys::processes;
use alhena_testbed::{Hostile, PrivateHome, Script, Step, Trust};
use serde_json::{Value, json};

use super::measure::{cpu_of, megabytes, ninety_fifth};
use super::{build, median, number};

const READERS: usize = 200;
/// So many pieces of text in a run, each so long after the one before.
const PIECES: usize = 200;
const PAUSE: u64 = 20;
/// How long somebody waits who asks again and again.
const EACH: Duration = Duration::from_millis(100);
const STARTS: usize = 15;

struct Place {
    home: PrivateHome,
    hostile: Hostile,
    alhena: PathBuf,
}

struct Server {
    child: Child,
    host: String,
    token: String,
}

/// What one reader saw: how late each event was, in milliseconds.
type Seen = Vec<f64>;
type Connection = RequestReader<TcpStream>;

pub fn run(words: &[&str]) -> Result<(), String> {
    let readers = number(words, 0, READERS)?;
    let alhena = build()?;
    let pieces = (0..PIECES).flat_map(|n| [Step::Text(format!("piece {n} ")), Step::Sleep(PAUSE)]);
    let steps = std::iter::once(Step::Init).chain(pieces).chain([Step::Result]);
    let place = Place::new(&alhena, Script::new(steps))?;
    let server = place.serve()?;
    println!("{readers} readers of one run of {PIECES} pieces of text, one each {PAUSE} ms");
    println!("{:22} events each   late p50   late p95   server CPU   memory a reader", "");
    watch(&server, "one, by events", 1, follow)?;
    watch(&server, &format!("{readers}, by events"), readers, follow)?;
    watch(&server, &format!("{readers}, asking each {} ms", EACH.as_millis()), readers, ask)?;
    drop(server);
    starts(&alhena)
}

impl Place {
    fn new(alhena: &std::path::Path, script: Script) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        let home = PrivateHome::with(Trust::Trusted).map_err(text)?;
        Ok(Self { home, hostile: Hostile::new(script).map_err(text)?, alhena: alhena.to_owned() })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.alhena);
        command.env_clear().envs(self.home.env("http://127.0.0.1:9")).envs(self.hostile.env());
        command.env("ALHENA_HOME", self.home.path().join("alhena"));
        command.env("GEMINI_CLI_PATH", self.hostile.path()).current_dir(self.home.workspace());
        command
    }

    fn serve(&self) -> Result<Server, String> {
        let mut command = self.command();
        command.args(["serve", "--port", "0", "--quiet"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        BufReader::new(out).read_line(&mut line).map_err(|error| error.to_string())?;
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.split_once("/?token="));
        let (host, token) = address.ok_or_else(|| format!("the first line is {line:?}"))?;
        Ok(Server { child, host: host.to_owned(), token: token.to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        processes::kill_tree(self.child.id());
        let _reaped = self.child.wait();
    }
}

impl Server {
    fn connect(&self) -> Result<Connection, String> {
        let text = |error: std::io::Error| error.to_string();
        let stream = TcpStream::connect(&self.host).map_err(text)?;
        stream.set_nodelay(true).map_err(text)?;
        stream.set_read_timeout(Some(Duration::from_secs(120))).map_err(text)?;
        Ok(RequestReader::new(stream))
    }

    /// Sends a request, and reads its answer up to the body.
    fn send(&self, connection: &mut Connection, request: &str, body: &str) -> Result<Framing, String> {
        let length = match body.len() {
            0 => String::new(),
            length => format!("Content-Type: application/json\r\nContent-Length: {length}\r\n"),
        };
        let (method, rest) = request.split_once(' ').unwrap_or_default();
        let (path, accept) = rest.split_once(' ').unwrap_or_default();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: {accept}\r\n{length}\r\n{body}",
            self.host, self.token
        );
        connection.stream().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
        let head = connection.response().map_err(lost)?;
        if (200..300).contains(&head.status) {
            Ok(head.framing)
        } else {
            Err(format!("HTTP {}", head.status))
        }
    }

    fn start(&self) -> Result<String, String> {
        let mut connection = self.connect()?;
        let body = json!({"prompt": "go"}).to_string();
        let framing = self.send(&mut connection, "POST /v1/runs application/json", &body)?;
        let run: Value =
            serde_json::from_slice(&body_of(&mut connection, framing)?).map_err(|error| error.to_string())?;
        run.get("id").and_then(Value::as_str).map(str::to_owned).ok_or_else(|| run.to_string())
    }
}

fn lost(refusal: Refusal) -> String {
    match refusal {
        Refusal::Gone => "the connection was lost".to_owned(),
        Refusal::Bad(_, why) => why.to_owned(),
    }
}

fn body_of(connection: &mut Connection, mut framing: Framing) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = connection.piece(&mut framing).map_err(lost)? {
        body.extend(piece);
    }
    Ok(body)
}

/// Takes events out of what has come so far. True after the last of the run.
fn take(body: &mut Vec<u8>, seen: &mut Seen, next: &mut u64) -> Result<bool, String> {
    let now = Timestamp::now().as_millis();
    while let Some(end) = body.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = body.drain(..=end).collect();
        // A line is an event, or one of several of a server-sent event.
        let data = line.strip_prefix(b"data:").unwrap_or(&line).trim_ascii();
        if !data.starts_with(b"{") {
            continue;
        }
        let event: Value = serde_json::from_slice(data).unwrap_or_default();
        if event.get("seq").and_then(Value::as_u64) != Some(*next) {
            return Err(format!("the event {next} is missing: {event}"));
        }
        *next += 1;
        match event.get("type").and_then(Value::as_str) {
            Some("finished") => return Ok(true),
            Some("text") => {
                let at = event.get("at").and_then(Value::as_str).and_then(Timestamp::parse);
                seen.extend(at.map(|at| (now - at.as_millis()) as f64));
            }
            _ => {}
        }
    }
    Ok(false)
}

fn follow(server: &Server, id: &str) -> Result<Seen, String> {
    let mut connection = server.connect()?;
    let request = format!("GET /v1/runs/{id}/events text/event-stream");
    let mut framing = server.send(&mut connection, &request, "")?;
    let (mut body, mut seen, mut next) = (Vec::new(), Seen::new(), 0);
    while let Some(piece) = connection.piece(&mut framing).map_err(lost)? {
        body.extend(piece);
        if take(&mut body, &mut seen, &mut next)? {
            return Ok(seen);
        }
    }
    Err("the events ended before the run".to_owned())
}

fn ask(server: &Server, id: &str) -> Result<Seen, String> {
    let mut connection = server.connect()?;
    let (mut seen, mut next) = (Seen::new(), 0_u64);
    loop {
        let after = next.checked_sub(1).map(|last| format!("&after={last}")).unwrap_or_default();
        let request = format!("GET /v1/runs/{id}/events?follow=false{after} application/jsonl");
        let framing = server.send(&mut connection, &request, "")?;
        if take(&mut body_of(&mut connection, framing)?, &mut seen, &mut next)? {
            return Ok(seen);
        }
        std::thread::sleep(EACH);
    }
}

fn watch(
    server: &Server,
    name: &str,
    readers: usize,
    how: fn(&Server, &str) -> Result<Seen, String>,
) -> Result<(), String> {
    let pid = server.child.id();
    let spent = || cpu_of(&format!("/proc/{pid}/stat")).iter().take(2).sum::<f64>();
    let (cpu, memory) = (spent(), megabytes(std::iter::once(pid)));
    let id = server.start()?;
    let (all, held) = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..readers).map(|_| scope.spawn(|| how(server, &id))).collect();
        std::thread::sleep(Duration::from_millis(PAUSE * PIECES as u64 / 2));
        let held = megabytes(std::iter::once(pid));
        let all: Vec<Result<Seen, String>> = readers
            .into_iter()
            .map(|reader| reader.join().unwrap_or_else(|_| Err("a reader has died".to_owned())))
            .collect();
        (all, held)
    });
    let all = all.into_iter().collect::<Result<Vec<Seen>, String>>()?;
    if let Some(less) = all.iter().find(|seen| seen.len() != PIECES) {
        return Err(format!("{name}: a reader has {} of {PIECES} events", less.len()));
    }
    let late: Vec<f64> = all.into_iter().flatten().collect();
    println!(
        "{name:22} {PIECES:8} all  {:6.1} ms  {:6.1} ms   {:7.2} s   {:8.0} KB",
        median(&late),
        ninety_fifth(&late),
        spent() - cpu,
        (held - memory).max(0.0) * 1024.0 / readers as f64,
    );
    Ok(())
}

/// A run over HTTP and by the command, in turns: from asking to the outcome.
fn starts(alhena: &std::path::Path) -> Result<(), String> {
    let place = Place::new(alhena, Script::normal())?;
    let server = place.serve()?;
    let (mut over_http, mut by_command) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let begun = Instant::now();
        let id = server.start()?;
        follow(&server, &id)?;
        over_http.push(begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        let mut command = place.command();
        let done = command.args(["run", "--as", "outcome", "go"]).stdin(Stdio::null()).output();
        let done = done.map_err(|error| error.to_string())?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
        by_command.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let (http, command) = (median(&over_http), median(&by_command));
    println!("a run of a stand-in that answers at once, the median of {STARTS}, in turns:");
    println!("  alhena run {command:.1} ms, over HTTP {http:.1} ms: {:+.1} ms", http - command);
    Ok(())
}
