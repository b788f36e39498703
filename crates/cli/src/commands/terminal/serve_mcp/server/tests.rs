use std::io::{BufRead, BufReader};
use std::sync::mpsc;

use alhena_sys::sockets::Stream;

use super::*;

/// `echo` says its arguments, `wait` waits until nobody wants it, `fall` falls.
struct Toys {
    closed: AtomicBool,
    waited: Mutex<mpsc::Sender<&'static str>>,
}

impl Tools for Toys {
    const INSTRUCTIONS: &'static str = "Play.";

    fn list(&self) -> Value {
        json!([{"name": "echo"}])
    }

    fn call(&self, name: &str, arguments: &Map<String, Value>, unwanted: &dyn Fn() -> bool) -> Done {
        match name {
            "echo" => Ok(arguments.get("text").and_then(Value::as_str).unwrap_or("nothing").to_owned()),
            "wait" => {
                self.waited.lock().send("begun").unwrap();
                while !unwanted() && !self.closed.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                self.waited.lock().send("ended").unwrap();
                Ok("waited".to_owned())
            }
            "fall" => panic!("fell"),
            _ => Err(format!("There is no {name}")),
        }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

/// A client of a server with toys.
struct Client {
    socket: Stream,
    lines: BufReader<Stream>,
    server: std::thread::JoinHandle<io::Result<()>>,
    waited: mpsc::Receiver<&'static str>,
}

impl Client {
    fn new() -> Self {
        let (ours, theirs) = Stream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (sender, waited) = mpsc::channel();
        let toys = Arc::new(Toys { closed: AtomicBool::new(false), waited: Mutex::new(sender) });
        let output = theirs.try_clone().unwrap();
        let server = std::thread::spawn(move || serve(toys, theirs, output, Duration::from_secs(30)));
        Self { lines: BufReader::new(ours.try_clone().unwrap()), socket: ours, server, waited }
    }

    fn say(&mut self, line: &str) {
        self.socket.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string());
        let answer = self.hear();
        assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(1), &json!("2.0")), "{answer}");
        answer
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Goes away, and tells how the server ended.
    fn leave(self) -> io::Result<()> {
        self.socket.shutdown(std::net::Shutdown::Write).unwrap();
        self.server.join().unwrap()
    }
}

#[test]
fn a_client_gets_the_revision_it_asks_for_or_else_the_newest() {
    let mut client = Client::new();
    for (wanted, given) in
        [("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")]
    {
        let about = client.ask("initialize", json!({"protocolVersion": wanted, "capabilities": {}}));
        assert_eq!(about["result"]["protocolVersion"], given);
        assert_eq!(about["result"]["serverInfo"]["name"], "alhena");
        assert_eq!(about["result"]["capabilities"], json!({"tools": {}}));
    }
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(client.ask("ping", Value::Null)["result"], json!({}));
    assert_eq!(client.ask("tools/list", json!({}))["result"], json!({"tools": [{"name": "echo"}]}));
    client.leave().unwrap();
}

#[test]
fn a_call_answers_with_text_and_an_object_where_the_text_is_json() {
    let mut client = Client::new();
    let mut echo = |text: &str| client.call("echo", json!({"text": text}))["result"].clone();
    let said = |text: &str| json!([{"type": "text", "text": text}]);
    assert_eq!(echo("An answer."), json!({"content": said("An answer."), "isError": false}));
    assert_eq!(echo(r#"{"a": 1}"#)["structuredContent"], json!({"a": 1}));
    for text in ["42", "[1]", "null", "\"a\"", "true"] {
        assert_eq!(echo(text)["structuredContent"], json!({"text": text}));
    }
    let unknown = client.call("nothing", Value::Null);
    assert_eq!(unknown["result"], json!({"content": said("There is no nothing"), "isError": true}));
}

#[test]
fn bad_messages_are_refused_and_the_server_goes_on() {
    let mut client = Client::new();
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"id":{},"method":"ping"}"#, -32600),
        (r#"{"id":1,"method":"resources/list"}"#, -32601),
        (r#"{"id":1,"method":"tools/call","params":{"name":7}}"#, -32602),
        (r#"{"id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}"#, -32602),
        (r#"{"id":1,"method":"tools/call"}"#, -32602),
    ] {
        client.say(line);
        assert_eq!(client.hear()["error"]["code"], code, "{line}");
    }
    assert_eq!(client.call("fall", Value::Null)["error"]["code"], -32603);
    assert_eq!(client.ask("ping", Value::Null)["result"], json!({}));
}

#[test]
fn a_call_that_takes_long_holds_nobody_and_gives_no_answer_once_it_is_cancelled() {
    let mut client = Client::new();
    client.say(r#"{"id":"slow","method":"tools/call","params":{"name":"wait"}}"#);
    assert_eq!(client.waited.recv(), Ok("begun"));
    assert_eq!(client.ask("ping", Value::Null)["result"], json!({}));
    client.say(r#"{"method":"notifications/cancelled","params":{"requestId":"slow"}}"#);
    assert_eq!(client.waited.recv(), Ok("ended"));
    assert_eq!(client.ask("ping", Value::Null)["result"], json!({}));
}

#[test]
fn a_client_that_goes_ends_its_calls_and_the_server() {
    let mut client = Client::new();
    client.ask("initialize", json!({}));
    client.say(r#"{"id":"slow","method":"tools/call","params":{"name":"wait"}}"#);
    assert_eq!(client.waited.recv(), Ok("begun"));
    client.leave().unwrap();
}

#[test]
fn a_client_that_never_began_is_an_error() {
    let mut client = Client::new();
    client.ask("ping", Value::Null);
    assert!(client.leave().is_err());
}
