//! The MCP server that has the tool: streamable HTTP on loopback, at an address that nobody can guess.
//!
//! Not by stdin and stdout: a Gemini CLI with such servers does not exit at the end of its input (0.61.0).

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use alhena_model::answer::TOOL;
use alhena_sys::http::{Refusal, Request, RequestReader, response_head};
use alhena_sys::random;
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
        let secret = random::hex::<24>()?;
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use alhena_model::Answered;
    use alhena_model::answer::Schema;

    use super::*;

    fn desk(more: u32) -> Arc<Desk> {
        Arc::new(Desk::new(Schema::new(&json!({"type": "integer"})).unwrap(), more))
    }

    /// Status and body of the answer to one request, over the network.
    fn ask(server: &Server, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(server.address).unwrap();
        let length = body.len();
        let head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, body.to_owned())
    }

    fn call(arguments: &Value) -> String {
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": TOOL, "arguments": arguments}})
            .to_string()
    }

    #[test]
    fn only_who_knows_the_secret_can_submit() {
        let desk = desk(0);
        let server = Server::start(Arc::clone(&desk)).unwrap();
        let other = Server::start(Arc::clone(&desk)).unwrap();
        assert_ne!(server.secret, other.secret);
        for path in ["/", "/x", &format!("/{}", other.secret)] {
            assert_eq!(ask(&server, "POST", path, &call(&json!({"result": 1}))).0, 404, "{path}");
        }
        assert!(matches!(desk.close(""), Answered::Invalid { tries: 1, .. }));
    }

    #[test]
    fn the_tool_is_offered_and_takes_an_answer() {
        let desk = desk(0);
        let server = Server::start(Arc::clone(&desk)).unwrap();
        let path = format!("/{}", server.secret);
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let (status, body) = ask(&server, "POST", &path, &list);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, 200);
        assert_eq!(body["result"]["tools"][0]["name"], TOOL);
        assert_eq!(body["result"]["tools"][0]["inputSchema"], *desk.schema().tool_input());
        let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        assert_eq!(ask(&server, "POST", &path, &told), (202, String::new()));
        assert_eq!(ask(&server, "GET", &path, "").0, 405);
        assert!(ask(&server, "POST", &path, &call(&json!({"result": 3}))).1.contains("\"isError\":false"));
        assert_eq!(desk.close(""), Answered::Valid { data: json!(3) });
    }

    #[test]
    fn what_cannot_be_read_is_a_try_that_failed() {
        let desk = desk(1);
        let server = Server::start(Arc::clone(&desk)).unwrap();
        let path = format!("/{}", server.secret);
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        let body = call(&json!({"result": "HERE"})).replace("\"HERE\"", &deep);
        assert_eq!(ask(&server, "POST", &path, &body).0, 400);
        assert_eq!(desk.end(), None);
        assert_eq!(ask(&server, "POST", &path, &body).0, 400);
        assert!(desk.end().is_some());
    }
}
