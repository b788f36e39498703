//! An MCP server on stdin and stdout, as far as tools need it. Each call has a thread of its own, because several come at once
//! and one may take minutes.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alhena::wire::frame::{Frame, Framer};
use alhena::wire::rpc::{Fault, Id, Message, answer, refusal};
use serde_json::{Map, Value, json};

/// The revisions of the protocol in which tools are what they are here, the newest first.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const LONGEST_LINE: usize = 64 << 20;

/// What is served.
pub trait Tools: Send + Sync + 'static {
    /// What the model is told about all of them.
    const INSTRUCTIONS: &'static str;
    /// The tools, each with its name, description and schema.
    fn list(&self) -> Value;
    /// Does what a tool does; `unwanted` says that nobody waits for it any more.
    fn call(&self, name: &str, arguments: &Map<String, Value>, unwanted: &dyn Fn() -> bool) -> Done;
    /// The client has gone: calls are to end.
    fn close(&self);
}

/// The answer of a tool: its text, or what went wrong.
pub type Done = Result<String, String>;

/// Serves until the client has gone, and gives calls under way so long to end. An error when nobody ever began to speak MCP.
pub fn serve<T: Tools>(
    tools: Arc<T>,
    mut input: impl Read,
    output: impl Write + Send + 'static,
    grace: Duration,
) -> io::Result<()> {
    let server = Server {
        tools,
        desk: Arc::new(Desk { output: Mutex::new(output), calls: Mutex::default(), fewer: Condvar::new() }),
    };
    let (mut framer, mut bytes, mut begun) = (Framer::new(LONGEST_LINE), vec![0; 64 << 10], false);
    let read = loop {
        match input.read(&mut bytes) {
            Ok(0) => break Ok(()),
            Ok(count) => {
                framer.push(bytes.get(..count).unwrap_or_default(), |frame| begun |= server.take(frame))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    server.tools.close();
    server.desk.wait_for_calls(grace);
    match begun {
        true => read,
        false => {
            read.and(Err(io::Error::other("nobody spoke MCP: the input ended before an initialize request")))
        }
    }
}

struct Server<T, W> {
    tools: Arc<T>,
    desk: Arc<Desk<W>>,
}

/// What all calls share.
struct Desk<W> {
    output: Mutex<W>,
    /// The calls under way, and whether they are unwanted.
    calls: Mutex<HashMap<Id, Arc<AtomicBool>>>,
    fewer: Condvar,
}

impl<T: Tools, W: Write + Send + 'static> Server<T, W> {
    /// Sees to one line; true when it began the conversation.
    fn take(&self, frame: Frame<'_>) -> bool {
        let message = match frame {
            Frame::Line(line) => Message::read(line),
            Frame::TooLong { .. } => Err((None, Fault::Invalid)),
        };
        match message {
            Ok(Message::Request { id, method, params }) => return self.answer(id, &method, params),
            Ok(Message::Notification { method, params }) if method == "notifications/cancelled" => {
                self.desk.cancel(params.get("requestId"));
            }
            // Nothing was asked of the client.
            Ok(Message::Notification { .. } | Message::Answer { .. }) => {}
            Err((id, fault)) => self.desk.say(&refusal(id.as_ref(), fault, "This is no JSON-RPC message")),
        }
        false
    }

    fn answer(&self, id: Id, method: &str, mut params: Value) -> bool {
        let line = match method {
            "initialize" => answer(&id, &self.about(&params)),
            "ping" => answer(&id, &json!({})),
            "tools/list" => answer(&id, &json!({"tools": self.tools.list()})),
            "tools/call" => {
                let arguments = match params.get_mut("arguments").map(Value::take) {
                    Some(Value::Object(arguments)) => Some(arguments),
                    None | Some(Value::Null) => Some(Map::new()),
                    Some(_) => None,
                };
                match (params.get("name").and_then(Value::as_str), arguments) {
                    (Some(name), Some(arguments)) => return self.begin(id, name.to_owned(), arguments),
                    _ => refusal(Some(&id), Fault::Params, "A call has a name, and arguments by name"),
                }
            }
            _ => refusal(Some(&id), Fault::Method, "There is no such method"),
        };
        self.desk.say(&line);
        method == "initialize"
    }

    fn about(&self, params: &Value) -> Value {
        let wanted = params.get("protocolVersion").and_then(Value::as_str);
        let revision = REVISIONS.into_iter().find(|revision| wanted == Some(revision));
        json!({
            "protocolVersion": revision.or(REVISIONS.first().copied()),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "alhena", "version": env!("CARGO_PKG_VERSION")},
            "instructions": T::INSTRUCTIONS,
        })
    }

    fn begin(&self, id: Id, name: String, arguments: Map<String, Value>) -> bool {
        let unwanted = self.desk.enter(&id);
        let (tools, desk, asked) = (Arc::clone(&self.tools), Arc::clone(&self.desk), id.clone());
        let begun = std::thread::Builder::new().spawn(move || {
            // Its place is free again whatever becomes of it.
            let call = Call { desk: &desk, id: &asked };
            let done = tools.call(&name, &arguments, &|| unwanted.load(Ordering::Relaxed));
            if !unwanted.load(Ordering::Relaxed) {
                desk.say(&answer(&asked, &result(done)));
            }
            drop(call);
        });
        if let Err(error) = begun {
            self.desk.leave(&id);
            self.desk.say(&refusal(Some(&id), Fault::Internal, &error.to_string()));
        }
        false
    }
}

struct Call<'a, W: Write> {
    desk: &'a Desk<W>,
    id: &'a Id,
}

impl<W: Write> Drop for Call<'_, W> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.desk.say(&refusal(Some(self.id), Fault::Internal, "The tool failed"));
        }
        self.desk.leave(self.id);
    }
}

impl<W: Write> Desk<W> {
    /// Writes one line. A client that does not read any more closes our input too.
    fn say(&self, line: &[u8]) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let _gone = output.write_all(line).and_then(|()| output.flush());
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<Id, Arc<AtomicBool>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, id: &Id) -> Arc<AtomicBool> {
        Arc::clone(self.calls().entry(id.clone()).or_default())
    }

    fn leave(&self, id: &Id) {
        self.calls().remove(id);
        self.fewer.notify_all();
    }

    fn cancel(&self, id: Option<&Value>) {
        if let Some(unwanted) = id.and_then(Id::of).and_then(|id| self.calls().get(&id).cloned()) {
            unwanted.store(true, Ordering::Relaxed);
        }
    }

    fn wait_for_calls(&self, longest: Duration) {
        let _in_time = self.fewer.wait_timeout_while(self.calls(), longest, |calls| !calls.is_empty());
    }
}

/// The result of a call, with the structured content of a text that is JSON. Gemini CLI 0.61.0 makes it of the text where there
/// is none, and then refuses whatever is no object: a worker's answer `42`, too.
fn result(done: Done) -> Value {
    let failed = done.is_err();
    let text = done.unwrap_or_else(|text| text);
    let structured = serde_json::from_str::<Value>(&text).ok();
    let content = json!([{"type": "text", "text": &text}]);
    match structured {
        None => json!({"content": content, "isError": failed}),
        Some(value) => {
            let object = if value.is_object() { value } else { json!({"text": text}) };
            json!({"content": content, "structuredContent": object, "isError": failed})
        }
    }
}

#[cfg(test)]
mod tests;
