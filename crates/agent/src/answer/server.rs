//! The MCP server that has the tool: streamable HTTP on loopback, at an address that nobody can guess.
//!
//! Not by stdin and stdout: a Gemini CLI with such servers does not exit at the end of its input (0.61.0).

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use alhena_http::{Refusal, Request, RequestReader, response_head};
use alhena_model::answer::TOOL;
use alhena_wire::mcp;
use alhena_wire::rpc::{Fault, Id, Message, answer, refusal};
use serde_json::{Value, json};

use super::Desk;
use crate::listener::Listener;

/// How long a connection may be idle.
const IDLE: Duration = Duration::from_secs(120);

/// Takes submissions until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    _listener: Listener,
    address: SocketAddr,
    secret: String,
}

impl Server {
    pub(crate) fn start(desk: Arc<Desk>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let secret = secret()?;
        let path = format!("/{secret}");
        let accept = |listener: &TcpListener| listener.accept().map(|(stream, _)| stream);
        let listener = Listener::start("alhena-answers", listener, accept, move |stream| {
            if let Err(error) = serve(&stream, &path, &desk) {
                tracing::debug!(%error, "a connection to submit answers broke");
            }
        })?;
        Ok(Self { _listener: listener, address, secret })
    }

    /// Where the CLI finds it.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/{}", self.address, self.secret)
    }
}

fn secret() -> io::Result<String> {
    let mut bytes = [0; 24];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _never_fails = write!(text, "{byte:02x}");
        text
    }))
}

fn serve(stream: &TcpStream, path: &str, desk: &Desk) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    // A delayed acknowledgement would cost 40 ms for each answer.
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(IDLE))?;
    stream.set_write_timeout(Some(IDLE))?;
    let mut reader = RequestReader::new(stream);
    loop {
        match reader.next() {
            Ok(request) => {
                let (status, body) = respond(&request, path, desk);
                send(stream, status, &body)?;
                if !request.keep_alive {
                    return Ok(());
                }
            }
            Err(Refusal::Gone) => return Ok(()),
            Err(Refusal::Bad(status, reason)) => return send(stream, status, reason.as_bytes()),
        }
    }
}

fn send(mut stream: &TcpStream, status: u16, body: &[u8]) -> io::Result<()> {
    let length = [("Content-Length".to_owned(), body.len().to_string())];
    let mut response = response_head(status, "application/json", &length).into_bytes();
    response.extend_from_slice(b"\r\n");
    response.extend_from_slice(body);
    stream.write_all(&response)
}

fn respond(request: &Request, path: &str, desk: &Desk) -> (u16, Vec<u8>) {
    if request.target != path {
        return (404, Vec::new());
    }
    // There is no stream of messages that nobody asked for, and no session to end.
    if request.method != "POST" {
        return (405, Vec::new());
    }
    match Message::read(&request.body) {
        Ok(Message::Request { id, method, params }) => (
            200,
            match result(&id, &method, params, desk) {
                Ok(result) => answer(&id, &result),
                Err((fault, message)) => refusal(Some(&id), fault, message),
            },
        ),
        Ok(Message::Notification { .. } | Message::Answer { .. }) => (202, Vec::new()),
        // By its status the CLI knows at once; an error without an id it would not know whom to tell.
        Err(_) => {
            if is_call(&request.body) {
                desk.submit_unreadable("it is no JSON that can be read, or nested too deep");
            }
            (400, b"This is no JSON-RPC message".to_vec())
        }
    }
}

fn is_call(body: &[u8]) -> bool {
    let start = body.get(..body.len().min(4096)).unwrap_or_default();
    String::from_utf8_lossy(start).contains(mcp::CALL)
}

fn result(id: &Id, method: &str, mut params: Value, desk: &Desk) -> Result<Value, (Fault, &'static str)> {
    Ok(match method {
        mcp::INITIALIZE => mcp::about(&params, ""),
        mcp::PING => json!({}),
        mcp::LIST => json!({"tools": [{
            "name": TOOL,
            "description": "Submits your answer. Call it once, when you have the whole answer; nothing else counts as one.",
            "inputSchema": desk.schema().tool_input(),
        }]}),
        mcp::CALL => {
            let (name, arguments) = mcp::call(&mut params).map_err(|message| (Fault::Params, message))?;
            if name != TOOL {
                return Err((Fault::Params, "There is no such tool"));
            }
            mcp::result(desk.submit(id.number().unwrap_or(u64::MAX), arguments))
        }
        _ => return Err((Fault::Method, "There is no such method")),
    })
}
