//! JSON-RPC 2.0, one message per line, as MCP servers and agents speak it on stdin and stdout.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::raw::from_slice;

/// What can be wrong with a message, by the numbers of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Fault {
    /// Not JSON.
    Parse = -32700,
    /// JSON, but no message.
    Invalid = -32600,
    /// Nobody knows the method.
    Method = -32601,
    /// The method does not take these parameters.
    Params = -32602,
    /// It went wrong here.
    Internal = -32603,
}

/// Who asks, and gets the answer: a number or a text, as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct Id(Value);

/// A message, by what has to be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Most fields say all.
pub enum Message {
    /// Wants an answer.
    Request {
        id: Id,
        method: String,
        /// Of what; null when nothing was given.
        params: Value,
    },
    /// Wants none.
    Notification { method: String, params: Value },
    /// The answer to a request of ours.
    Answer {
        id: Id,
        /// The result, or the error object.
        outcome: Result<Value, Value>,
    },
}

impl Id {
    /// The id that a value is, if it can be one.
    pub fn of(value: &Value) -> Option<Self> {
        (value.is_string() || value.is_number()).then(|| Self(value.clone()))
    }

    /// The number that it is, as most clients count.
    pub fn number(&self) -> Option<u64> {
        self.0.as_u64()
    }
}

impl From<u64> for Id {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

impl Message {
    /// Reads a line. An error knows the id to answer, if there was one.
    pub fn read(line: &[u8]) -> Result<Self, (Option<Id>, Fault)> {
        let mut fields: Map<String, Value> = from_slice(line)
            .map_err(|error| (None, if error.is_data() { Fault::Invalid } else { Fault::Parse }))?;
        let given = fields.remove("id");
        let id = given.as_ref().and_then(Id::of);
        let params = fields.remove("params").unwrap_or_default();
        let invalid = Err((id.clone(), Fault::Invalid));
        match (fields.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => Ok(Self::Request { id, method, params }),
            // An id that is none is a request that cannot be answered.
            (Some(Value::String(method)), None) if given.is_none() => {
                Ok(Self::Notification { method, params })
            }
            (None, Some(id)) => match (fields.remove("result"), fields.remove("error")) {
                (Some(result), None) => Ok(Self::Answer { id, outcome: Ok(result) }),
                (None, Some(error)) => Ok(Self::Answer { id, outcome: Err(error) }),
                _ => invalid,
            },
            _ => invalid,
        }
    }
}

/// A line, with its end, that asks for something.
pub fn request(id: &Id, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// A line, with its end, that tells something and wants no answer.
pub fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// A line, with its end, that answers a request.
pub fn answer(id: &Id, result: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// A line, with its end, that refuses a request; without an id when it is not known what was asked.
pub fn refusal(id: Option<&Id>, fault: Fault, message: &str) -> Vec<u8> {
    let error = json!({"code": fault as i32, "message": message});
    line(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// The same with a number of the caller's choice, and more about it.
pub fn failure(id: &Id, code: i64, message: &str, data: &Value) -> Vec<u8> {
    let error = json!({"code": code, "message": message, "data": data});
    line(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

pub(crate) fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Message, (Option<Id>, Fault)> {
        Message::read(line.as_bytes())
    }

    #[test]
    fn a_message_is_known_by_its_id_and_its_method() {
        let seven = Id::from(7);
        let request = Message::Request { id: seven.clone(), method: "a".into(), params: json!({"b": 1}) };
        assert_eq!(read(r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"b":1}}"#), Ok(request));
        let told = Message::Notification { method: "a".into(), params: Value::Null };
        assert_eq!(read(r#"{"jsonrpc":"2.0","method":"a"}"#), Ok(told));
        let answer = |outcome| Ok(Message::Answer { id: seven.clone(), outcome });
        assert_eq!(read(r#"{"id":7,"result":null}"#), answer(Ok(Value::Null)));
        assert_eq!(read(r#"{"id":7,"error":{"code":1}}"#), answer(Err(json!({"code": 1}))));
    }

    #[test]
    fn what_is_no_message_is_refused_and_keeps_its_id() {
        let seven = Some(Id::from(7));
        for (line, id, fault) in [
            ("{", None, Fault::Parse),
            ("\u{0}", None, Fault::Parse),
            ("[]", None, Fault::Invalid),
            (r#"{"id":7}"#, seven.clone(), Fault::Invalid),
            (r#"{"id":7,"method":7}"#, seven.clone(), Fault::Invalid),
            (r#"{"id":7,"result":1,"error":{}}"#, seven, Fault::Invalid),
            (r#"{"id":{},"method":"a"}"#, None, Fault::Invalid),
            (r#"{"id":null,"method":"a"}"#, None, Fault::Invalid),
        ] {
            assert_eq!(read(line), Err((id, fault)), "{line}");
        }
    }

    #[test]
    fn an_answer_is_one_line_with_the_id_as_it_was_given() {
        let id = Id::of(&json!("x\n")).unwrap();
        let said = String::from_utf8(answer(&id, &json!("a\nb"))).unwrap();
        assert_eq!(said, "{\"jsonrpc\":\"2.0\",\"id\":\"x\\n\",\"result\":\"a\\nb\"}\n");
        let said = String::from_utf8(refusal(None, Fault::Parse, "no")).unwrap();
        assert_eq!(
            said,
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}\n"
        );
    }
}
