//! The server: one thread that accepts, and one for each connection, which answers its requests one after the other.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use alhena_sys::http::{MAX_BODY, Refusal, Request, RequestReader, response_head};
use alhena_sys::sockets;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::cassette::{Line, Tape};
use crate::play::{Exchange, Fate};
use crate::progress::Served;
use crate::request::{Route, encode, without_keys};
use crate::turn::Turn;
use crate::{RecordedRequest, Scenario, ScenarioState, answer};

const MAX_CONNECTIONS: usize = 256;

/// A scripted Gemini API on loopback, for as long as it lives.
///
/// It listens on 127.0.0.1 only, on a port of its own. Dropping it ends all its connections, hanging ones too, and
/// all its threads.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

/// What all threads of a server know.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) stopping: AtomicBool,
    scenarios: Mutex<HashMap<String, Arc<Served>>>,
    /// The scenario of requests that name none.
    at_root: Mutex<Option<String>>,
    observer: Mutex<Option<Observer>>,
    tape: Mutex<Option<Arc<dyn Tape>>>,
    connections: Mutex<Connections>,
}

type Observer = Arc<dyn Fn(&Observed<'_>) + Send + Sync>;

/// Something that came to a server.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
#[allow(missing_docs)] // Most fields say all.
pub enum Observed<'a> {
    /// A request that a scenario answers.
    Request { scenario: &'a str, request: &'a RecordedRequest },
    /// A request that was passed on to the real API.
    Passed {
        /// The path and query, without a key.
        path: &'a str,
        /// The HTTP status of the answer.
        status: u16,
    },
    /// A request that nobody answers.
    Refused {
        /// The HTTP status that it got.
        status: u16,
        reason: &'a str,
    },
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Connections {
    next: u64,
    streams: HashMap<u64, Arc<TcpStream>>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts a server on a free port of 127.0.0.1.
    pub fn start() -> io::Result<Server> {
        Server::start_on(0)
    }

    /// Starts a server on this port of 127.0.0.1; 0 is a free one.
    pub fn start_on(port: u16) -> io::Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new()
            .name("scripted-accept".to_owned())
            .spawn(move || accept(&accepting, &listener))?;
        Ok(Server { shared, address, acceptor: Some(acceptor) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves a scenario under a name, in place of an earlier one of that name, and returns the base URL for
    /// `GOOGLE_GEMINI_BASE_URL`. With `/<run>` appended to it, each run gets a turn counter of its own.
    pub fn add(&self, name: &str, scenario: Scenario) -> String {
        let served = Arc::new(Served::new(name, scenario));
        self.shared.scenarios.lock().insert(name.to_owned(), served);
        format!("{}/s/{}", self.url(), encode(name))
    }

    /// Serves a scenario, which may be added later, to whoever names none: then the bare [`Server::url`] is its base URL.
    pub fn serve_at_root(&self, name: &str) {
        *self.shared.at_root.lock() = Some(name.to_owned());
    }

    /// Plays a cassette in the place of scenarios; the bare [`Server::url`] is its base URL.
    pub fn replay(&self, player: crate::cassette::Player) {
        *self.shared.tape.lock() = Some(Arc::new(player));
    }

    /// Records a cassette in the place of scenarios.
    #[cfg(feature = "record")]
    pub fn record(&self, recorder: crate::cassette::Recorder) {
        *self.shared.tape.lock() = Some(Arc::new(recorder));
    }

    /// The address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Tells what comes, as it comes, in place of an earlier observer. It is called on the connection's thread and should
    /// not block.
    pub fn observe(&self, observer: impl Fn(&Observed<'_>) + Send + Sync + 'static) {
        *self.shared.observer.lock() = Some(Arc::new(observer));
    }

    /// The requests to a scenario so far, of all its runs, oldest first. It remembers the last 10,000, and of large
    /// ones at most 256 MB.
    pub fn requests(&self, name: &str) -> Vec<Arc<RecordedRequest>> {
        self.shared.find(name).map(|served| served.requests()).unwrap_or_default()
    }

    /// What the API knows about a scenario's runs right now.
    pub fn state(&self, name: &str) -> ScenarioState {
        self.shared.find(name).map(|served| served.state()).unwrap_or_default()
    }

    /// Waits until the state of a scenario is as wanted; false when the time is over first.
    pub fn wait_until(
        &self,
        name: &str,
        limit: Duration,
        reached: impl FnMut(&ScenarioState) -> bool,
    ) -> bool {
        self.shared.find(name).is_some_and(|served| served.wait_until(limit, reached))
    }

    /// Lets every stream of a scenario go on that waits, or will wait, at the gate of this label.
    pub fn release(&self, name: &str, label: &str) {
        if let Some(served) = self.shared.find(name) {
            served.release(label);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // The acceptor waits for a connection; this is one.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(5));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        let threads = {
            let mut connections = self.shared.connections.lock();
            for stream in connections.streams.values() {
                let _ = stream.shutdown(Shutdown::Both);
            }
            std::mem::take(&mut connections.threads)
        };
        for thread in threads {
            let _ = thread.join();
        }
    }
}

impl Shared {
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Served>> {
        self.scenarios.lock().get(name).cloned()
    }

    /// The scenario of a request that names none.
    pub(crate) fn at_root(&self) -> Option<String> {
        self.at_root.lock().clone()
    }

    pub(crate) fn tape(&self) -> Option<Arc<dyn Tape>> {
        self.tape.lock().clone()
    }

    /// A further connection that ends with the server.
    #[cfg(feature = "record")]
    pub(crate) fn hold(&self, stream: TcpStream) -> Leaves<'_> {
        let mut connections = self.connections.lock();
        let id = connections.next;
        connections.next += 1;
        if self.stopping.load(Ordering::SeqCst) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        connections.streams.insert(id, Arc::new(stream));
        Leaves { shared: self, id }
    }

    pub(crate) fn tell(&self, seen: &Observed<'_>) {
        let observer = self.observer.lock().clone();
        if let Some(observer) = observer {
            observer(seen);
        }
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    loop {
        let accepted = listener.accept();
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok((stream, _)) => start(shared, stream),
            // Out of file descriptors, perhaps; trying again at once would only burn the processor.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn start(shared: &Arc<Shared>, stream: TcpStream) {
    let mut connections = shared.connections.lock();
    connections.threads.retain(|thread| !thread.is_finished());
    if connections.streams.len() >= MAX_CONNECTIONS {
        return refuse(&stream, 503, "The scripted API has too many connections.");
    }
    let id = connections.next;
    connections.next += 1;
    let stream = Arc::new(stream);
    connections.streams.insert(id, Arc::clone(&stream));
    let serving = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("scripted-connection".to_owned()).spawn(move || {
        // Also when a responder panics; the socket is closed only when both of its owners are gone.
        let _leaves = Leaves { shared: &serving, id };
        serve(&serving, &stream);
    });
    match thread {
        Ok(thread) => connections.threads.push(thread),
        Err(_) => drop(connections.streams.remove(&id)),
    }
}

/// Takes a connection off the list at the end of its thread.
pub(crate) struct Leaves<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.shared.connections.lock().streams.remove(&self.id);
    }
}

/// How long a connection may be idle; Gemini CLI closes its own after a few seconds.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn serve(shared: &Shared, stream: &Arc<TcpStream>) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(IDLE_LIMIT));
    let mut reader = RequestReader::new(&**stream);
    loop {
        let fate = match reader.next() {
            Ok(request) => answer_one(shared, stream, request),
            Err(Refusal::Gone) => Fate::Closes,
            Err(Refusal::Bad(status, reason)) => {
                refuse(stream, status, reason);
                return drain(stream);
            }
        };
        match fate {
            Fate::Stays => {}
            Fate::Closes => return close(stream),
            Fate::Resets => {
                let _ = sockets::reset_when_closed(stream);
                return;
            }
        }
    }
}

/// Ends the sending side first, so that what was written last is not lost to a reset.
fn close(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
}

/// Reads what a refused client still sends, for a while: closing on unread bytes would reset the connection and take
/// the refusal with it.
fn drain(mut stream: &TcpStream) {
    close(stream);
    let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
    let mut scratch = [0; 16 * 1024];
    let mut left = MAX_BODY;
    while let Ok(read @ 1..) = stream.read(&mut scratch) {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}

/// Tells the client what was wrong; the connection is of no use afterwards.
pub(crate) fn refuse(mut stream: &TcpStream, status: u16, reason: &str) {
    let body = answer::error(status, reason).to_string();
    let head = response_head(status, "application/json; charset=UTF-8", &[]);
    let response = format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    let _ = stream.write_all(response.as_bytes());
}

fn answer_one(shared: &Shared, stream: &TcpStream, request: Request) -> Fate {
    if let Some(tape) = shared.tape() {
        let (keep_alive, chunked) = (request.keep_alive, request.version > 0);
        let line = Line { stream, shared, chunked, keep_alive };
        return match tape.answer(request, &line) {
            Ok(()) if line.stays() => Fate::Stays,
            _ => Fate::Closes,
        };
    }
    let refused = |status: u16, reason: &str| {
        shared.tell(&Observed::Refused { status, reason });
        refuse(stream, status, reason);
        Fate::Closes
    };
    let Some(route) = Route::of(&request.target) else {
        let path = without_keys(&request.target);
        return refused(404, &format!("{path} is not served by the scripted API."));
    };
    let Some(name) = route.scenario.clone().or_else(|| shared.at_root()) else {
        return refused(404, "The address names no scenario.");
    };
    let Some(served) = shared.find(&name) else {
        return refused(404, &format!("There is no scenario `{name}`."));
    };
    if request.method != "POST" {
        return refused(404, &format!("{} is not served by the scripted API, only POST.", request.method));
    }
    let (keep_alive, chunked) = (request.keep_alive, request.version > 0);
    let recorded = match record(route, request) {
        Ok(recorded) => recorded,
        Err(reason) => return refused(400, &reason),
    };
    let (request, playing) = served.begin(recorded);
    shared.tell(&Observed::Request { scenario: &served.name, request: &request });
    let line = Exchange {
        stream,
        stopping: &shared.stopping,
        served: &served,
        playing: &playing,
        model: &request.model,
        number: request.number,
        keep_alive,
        chunked,
    };
    match request.action.as_str() {
        "streamGenerateContent" => line.stream(&served.turn_for(&request)),
        "generateContent" => line.object(&served.generate_for(&request)),
        _ => line.object(&counted(&request)),
    }
}

fn counted(request: &RecordedRequest) -> Turn {
    Turn::response(json!({"totalTokens": answer::count_tokens(request)}))
}

fn record(route: Route, request: Request) -> Result<RecordedRequest, String> {
    let raw_body = String::from_utf8(request.body).map_err(|_| "The body is not UTF-8.".to_owned())?;
    let body: Value = alhena_wire::from_slice(raw_body.as_bytes())
        .map_err(|error| format!("The body is not JSON: {error}"))?;
    let headers: BTreeMap<String, String> = request.headers.into_iter().map(without_secret).collect();
    Ok(RecordedRequest {
        at: SystemTime::now(),
        run: route.run,
        number: 0,
        method: request.method,
        path: route.path,
        action: route.action,
        model: route.model,
        headers,
        body,
        raw_body,
    })
}

fn without_secret((name, value): (String, String)) -> (String, String) {
    const SECRETS: [&str; 5] =
        ["authorization", "x-goog-api-key", "cookie", "proxy-authorization", "x-api-key"];
    if SECRETS.contains(&name.as_str()) { (name, "[secret]".to_owned()) } else { (name, value) }
}
