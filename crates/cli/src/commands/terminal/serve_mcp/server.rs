//! An MCP server on stdin and stdout, as far as tools need it. Each call has a thread of its own, because several come at once
//! and one may take minutes.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alhena_wire::frame::{Frame, Framer};
use alhena_wire::mcp;
use alhena_wire::rpc::{Fault, Id, Message, answer, refusal};
use parking_lot::{Condvar, Mutex};
use serde_json::{Map, Value, json};

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
            mcp::INITIALIZE => answer(&id, &mcp::about(&params, T::INSTRUCTIONS)),
            mcp::PING => answer(&id, &json!({})),
            mcp::LIST => answer(&id, &json!({"tools": self.tools.list()})),
            mcp::CALL => match mcp::call(&mut params) {
                Ok((name, arguments)) => return self.begin(id, name, arguments),
                Err(message) => refusal(Some(&id), Fault::Params, message),
            },
            _ => refusal(Some(&id), Fault::Method, "There is no such method"),
        };
        self.desk.say(&line);
        method == mcp::INITIALIZE
    }

    fn begin(&self, id: Id, name: String, arguments: Map<String, Value>) -> bool {
        let unwanted = self.desk.enter(&id);
        let (tools, desk, asked) = (Arc::clone(&self.tools), Arc::clone(&self.desk), id.clone());
        let begun = std::thread::Builder::new().spawn(move || {
            // Its place is free again whatever becomes of it.
            let call = Call { desk: &desk, id: &asked };
            let done = tools.call(&name, &arguments, &|| unwanted.load(Ordering::Relaxed));
            if !unwanted.load(Ordering::Relaxed) {
                desk.say(&answer(&asked, &mcp::result(done)));
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
        let mut output = self.output.lock();
        let _gone = output.write_all(line).and_then(|()| output.flush());
    }

    fn enter(&self, id: &Id) -> Arc<AtomicBool> {
        Arc::clone(self.calls.lock().entry(id.clone()).or_default())
    }

    fn leave(&self, id: &Id) {
        self.calls.lock().remove(id);
        self.fewer.notify_all();
    }

    fn cancel(&self, id: Option<&Value>) {
        if let Some(unwanted) = id.and_then(Id::of).and_then(|id| self.calls.lock().get(&id).cloned()) {
            unwanted.store(true, Ordering::Relaxed);
        }
    }

    fn wait_for_calls(&self, longest: Duration) {
        let _in_time = self.fewer.wait_while_for(&mut self.calls.lock(), |calls| !calls.is_empty(), longest);
    }
}

#[cfg(test)]
mod tests;
