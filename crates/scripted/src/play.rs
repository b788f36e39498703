//! Sends a turn over a connection, step by step.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alhena_sys::http::response_head;
use serde_json::Value;

use crate::answer;
use crate::progress::Ending;
use crate::progress::{Playing, Served};
use crate::step::Step;
use crate::turn::Turn;

/// How often a wait for a gate looks whether it is open.
const GATE_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It takes the next request.
    Stays,
    /// It is closed.
    Closes,
    /// It is reset (RST).
    Resets,
}

enum Stop {
    Gone,
    Server,
    Cut(Fate),
}

/// A connection with one request on it.
pub(crate) struct Exchange<'a> {
    pub(crate) stream: &'a TcpStream,
    pub(crate) stopping: &'a AtomicBool,
    pub(crate) served: &'a Served,
    pub(crate) playing: &'a Playing,
    pub(crate) model: &'a str,
    pub(crate) number: usize,
    pub(crate) keep_alive: bool,
    /// HTTP/1.0 clients do not know chunks.
    pub(crate) chunked: bool,
}

impl Exchange<'_> {
    pub(crate) fn stream(&self, turn: &Turn) -> Fate {
        self.ended(self.send(turn, true))
    }

    pub(crate) fn object(&self, turn: &Turn) -> Fate {
        self.ended(self.send(turn, false))
    }

    fn ended(&self, result: Result<(), Stop>) -> Fate {
        let (ending, fate) = match result {
            Ok(()) if self.keep_alive => return Fate::Stays,
            Ok(()) => return Fate::Closes,
            Err(Stop::Cut(fate)) => (Ending::Cut, fate),
            Err(Stop::Gone) => (Ending::ClientGone, Fate::Closes),
            Err(Stop::Server) => (Ending::ServerGone, Fate::Closes),
        };
        self.playing.end(ending);
        fate
    }

    fn send(&self, turn: &Turn, streamed: bool) -> Result<(), Stop> {
        self.pause(turn.delay)?;
        if turn.hang {
            self.playing.step("hang");
            self.hang()?;
        }
        if turn.drop {
            return Err(Stop::Cut(Fate::Closes));
        }
        if turn.reset {
            return Err(Stop::Cut(Fate::Resets));
        }
        match (turn.status.unwrap_or(200), &turn.raw) {
            (200, Some(raw)) if streamed => {
                self.open_stream(turn)?;
                self.event(raw)?;
                self.close_stream()
            }
            (200, Some(raw)) => self.reply(200, raw, turn),
            (200, None) if streamed => self.send_steps(turn),
            (200, None) => {
                self.wait_steps(turn)?;
                self.reply(200, &answer::whole(self.model, turn, self.number), turn)
            }
            (status, _) => self.reply(status, &answer::error_of(turn, status), turn),
        }
    }

    fn send_steps(&self, turn: &Turn) -> Result<(), Stop> {
        self.open_stream(turn)?;
        for step in &turn.steps {
            self.send_step(step)?;
        }
        if let Some(last) = answer::last_chunk(self.model, turn) {
            self.event(&last)?;
        }
        self.close_stream()
    }

    fn send_step(&self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Text(_) | Step::Thought(_) | Step::Calls(_) => {
                self.playing.step(step.kind());
                self.event(&answer::chunk(self.model, answer::parts_of(step, self.number)))
            }
            Step::Chunk(value) => {
                self.playing.step(step.kind());
                self.event(value)
            }
            Step::Raw(bytes) => {
                self.playing.step(step.kind());
                self.piece(bytes)
            }
            Step::Chunks { text, size, pause } => self.send_chunks(text, *size, *pause),
            Step::Sleep(_) | Step::Gate(_) | Step::Hang | Step::Drop | Step::Reset => self.wait_step(step),
        }
    }

    fn send_chunks(&self, text: &str, size: usize, pause: Duration) -> Result<(), Stop> {
        let text = answer::numbered(text, self.number);
        let mut characters = text.chars().peekable();
        while characters.peek().is_some() {
            let piece: String = characters.by_ref().take(size.max(1)).collect();
            self.send_step(&Step::Text(piece))?;
            if characters.peek().is_some() {
                self.pause(pause)?;
            }
        }
        Ok(())
    }

    /// The steps of a turn that is sent as one object: only those that take time or cut the connection.
    fn wait_steps(&self, turn: &Turn) -> Result<(), Stop> {
        for step in &turn.steps {
            self.wait_step(step)?;
        }
        Ok(())
    }

    fn wait_step(&self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Sleep(time) => {
                self.playing.step(step.kind());
                self.pause(*time)
            }
            Step::Gate(label) => {
                self.playing.step(step.kind());
                while !self.served.is_open(label) {
                    self.pause(GATE_INTERVAL)?;
                }
                Ok(())
            }
            Step::Hang => {
                self.playing.step(step.kind());
                self.hang()
            }
            Step::Drop => Err(Stop::Cut(Fate::Closes)),
            Step::Reset => Err(Stop::Cut(Fate::Resets)),
            Step::Text(_)
            | Step::Chunks { .. }
            | Step::Thought(_)
            | Step::Calls(_)
            | Step::Raw(_)
            | Step::Chunk(_) => Ok(()),
        }
    }

    fn open_stream(&self, turn: &Turn) -> Result<(), Stop> {
        let mut head = response_head(200, "text/event-stream", &headers_of(turn));
        if self.chunked {
            head.push_str("Transfer-Encoding: chunked\r\n");
        }
        self.write(self.end_of_head(head).as_bytes())
    }

    fn close_stream(&self) -> Result<(), Stop> {
        self.playing.end(Ending::Complete);
        if self.chunked { self.write(b"0\r\n\r\n") } else { Ok(()) }
    }

    fn event(&self, value: &Value) -> Result<(), Stop> {
        self.piece(format!("data: {value}\r\n\r\n").as_bytes())
    }

    /// Bytes of the stream, in one write, so that the client sees them at once.
    fn piece(&self, bytes: &[u8]) -> Result<(), Stop> {
        if !self.chunked || bytes.is_empty() {
            return self.write(bytes);
        }
        let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
        framed.extend_from_slice(bytes);
        framed.extend_from_slice(b"\r\n");
        self.write(&framed)
    }

    fn reply(&self, status: u16, body: &Value, turn: &Turn) -> Result<(), Stop> {
        let body = body.to_string();
        let mut head = response_head(status, "application/json; charset=UTF-8", &headers_of(turn));
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        let head = self.end_of_head(head);
        self.playing.end(Ending::Complete);
        self.write(format!("{head}{body}").as_bytes())
    }

    fn end_of_head(&self, mut head: String) -> String {
        head.push_str(if self.keep_alive { "\r\n" } else { "Connection: close\r\n\r\n" });
        head
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Stop> {
        let mut stream = self.stream;
        stream.write_all(bytes).map_err(|_| self.gone())
    }

    fn gone(&self) -> Stop {
        if self.stopping.load(Ordering::SeqCst) { Stop::Server } else { Stop::Gone }
    }

    fn hang(&self) -> Result<(), Stop> {
        loop {
            self.pause(Duration::from_secs(60))?;
        }
    }

    /// Waits, and notices at once when the client or the server goes away: the server shuts the socket down.
    fn pause(&self, time: Duration) -> Result<(), Stop> {
        let start = Instant::now();
        loop {
            if self.stopping.load(Ordering::SeqCst) {
                return Err(Stop::Server);
            }
            let left = time.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            let left = left.min(Duration::from_secs(1)).max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left)).map_err(|_| self.gone())?;
            let peeked = self.stream.peek(&mut [0]);
            let _ = self.stream.set_read_timeout(Some(crate::server::IDLE_LIMIT));
            match peeked {
                Ok(0) => return Err(self.gone()),
                // The next request is waiting already; the socket cannot be used to wait on.
                Ok(_) => std::thread::sleep(left.min(GATE_INTERVAL)),
                Err(error) if is_timeout(&error) => {}
                Err(_) => return Err(self.gone()),
            }
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

fn headers_of(turn: &Turn) -> Vec<(String, String)> {
    let given = turn.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    let retry = turn.retry_after.map(|seconds| ("Retry-After".to_owned(), seconds.to_string()));
    retry.into_iter().chain(given).collect()
}
