//! What Gemini CLI keeps of a session on disk: records, and the conversation they add up to.
//!
//! Up to 0.38 a session is one JSON object, rewritten in place. From 0.39 on it is a log: one JSON object per line, appended
//! and never changed. A message is written again under its id whenever it grows (a model's message first without, then with
//! its tool calls), so most of a log is superseded: [`Log`] keeps each message as raw text and nothing is decoded until
//! [`Stored::decode`] asks for it.
//!
//! | In a line | Means |
//! |---|---|
//! | `$rewindTo` | that message and all after it are gone; all of them, if there is none with that id |
//! | `id` | a message; in the place of an earlier one with the same id |
//! | `$set` | metadata to merge; its `messages` (0.44 on) replace all messages |
//! | `sessionId` and `projectHash` | metadata to merge; its `messages` (a whole legacy session on one line) are added |
//!
//! ```
//! use alhena_wire::session::Session;
//!
//! let file = b"{\"sessionId\":\"s\",\"projectHash\":\"p\"}\n{\"id\":\"1\",\"type\":\"user\",\"content\":\"Hi\"}\n";
//! let session = Session::read(file);
//! assert_eq!(session.log.metadata().session_id.as_deref(), Some("s"));
//! let message = session.log.messages()[0].decode();
//! assert_eq!(message.content.unwrap().text(), "Hi");
//! ```

mod content;
mod display;
mod file;
mod log;
mod message;
mod payload;
mod record;
mod shell;
mod walk;

pub use content::{Content, FileData, FunctionCall, FunctionResponse, InlineData, Part, Piece, Response};
pub use display::{FileDiff, ResultDisplay};
pub use file::{Format, Session};
pub use log::{Change, Log, Stored};
pub use message::{
    CallStatus, MessageRecord, MessageType, Metadata, SessionKind, Thought, Tokens, ToolCallRecord,
};
pub use payload::Payload;
pub use record::{Record, Update, parse_record};
pub use shell::{ShellEnd, shell_end, shell_output};
