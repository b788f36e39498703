//! A scripted Gemini API on loopback: scenarios in, server-sent events out.
//!
//! Point Gemini CLI, or a program that uses the Gemini API, at a [`Server`], and it answers what a [`Scenario`] says:
//! text in chunks, thoughts, function calls, delays, hangs, resets, HTTP errors, malformed events. It needs no key
//! and no network, and it remembers what it was asked.
//!
//! ```
//! use std::process::Command;
//! use alhena_scripted::{Scenario, Server, Turn};
//! use serde_json::json;
//!
//! let server = Server::start()?;
//! let base_url = server.add("greeting", Scenario::new()
//!     .turn(Turn::new()
//!         .thought("Greeting", "A file will do.")
//!         .call("write_file", json!({"file_path": "hello.txt", "content": "Hello!\n"})))
//!     .turn(Turn::say("I have written hello.txt.")));
//!
//! let mut gemini = Command::new("gemini");
//! gemini.args(["--prompt", "Greet me in a file", "--yolo"])
//!     .env("GEMINI_API_KEY", "none")
//!     .env("GOOGLE_GEMINI_BASE_URL", &base_url);
//! // gemini.status()?;
//!
//! for request in server.requests("greeting") {
//!     println!("{} asked {}: {:?}", request.model, request.action, request.prompt());
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Gemini CLI 0.61.0 also wants `"security": {"auth": {"selectedType": "gemini-api-key"}}` in its `settings.json`.
//!
//! # Scenarios
//!
//! A scenario is built in Rust, as above, or read from a file by [`Scenario::from_json`]:
//!
//! ```json
//! {
//!   "turns": [
//!     {"status": 429, "retry_after": 1},
//!     {"steps": [{"thought": "**Plan**\nRead it."}, {"call": {"name": "read_file", "args": {"file_path": "a"}}}]},
//!     {"when": {"response_of": "read_file"}, "steps": [{"text": "It says "}, {"sleep": 0.5}, {"text": "hello."}]}
//!   ],
//!   "after": "error"
//! }
//! ```
//!
//! Each `streamGenerateContent` takes the first turn that is not used up and whose `when` matches. All fields:
//!
//! | Of | Field | Meaning |
//! |---|---|---|
//! | scenario | `turns` | the answers |
//! | | `after` | when no turn is left: `stop` (say `done.`), `repeat` the last turn, or `error` (HTTP 400) |
//! | | `generate` | rules (turns) for `generateContent` |
//! | | `$schema` | where the schema is, for editors |
//! | turn | `steps` | what is sent |
//! | | `finish` | the finish reason, `STOP` by default; `null` for none |
//! | | `usage` | token counts under the API's names, made up where not given; `null` for none |
//! | | `raw` | a whole response instead of steps |
//! | | `status`, `error` | an HTTP error and its `error` object |
//! | | `retry_after`, `headers` | response headers |
//! | | `delay`, `hang`, `drop`, `reset` | before the headers: wait (seconds), never answer, close, reset |
//! | | `when` | [`When`]: `model`, `prompt`, `text`, `response_of`, `offers`, `request`, `body` |
//! | | `times`, `always` | how many requests it answers |
//! | step | `text`, `thought` | a chunk; `${TURN}` in a text is the number of the request |
//! | | `chunks` | `{"text", "size", "pause_ms"}`: a text in pieces |
//! | | `call`, `calls` | `{"name", "args", "id"}`, one or several at once |
//! | | `sleep`, `sleep_ms`, `gate`, `hang` | wait: seconds, milliseconds, for [`Server::release`], for ever |
//! | | `drop`, `reset` | the connection breaks |
//! | | `raw`, `hex`, `chunk` | bytes as they are, bytes in hexadecimal, a response as one event |
//!
//! By `generateContent` Gemini CLI asks side questions (which model to take, who speaks next, a summary). Those take no
//! turn; without a rule they get the smallest answer that fits their schema and changes nothing.
//!
//! # Many runs at once
//!
//! The base URL of a scenario may be extended by `/<run>`, and each run then has turns of its own.
//! [`Server::state`] tells which of them is being answered and how far, [`Server::wait_until`] waits for that, and a
//! gate holds an answer in the middle until [`Server::release`], so a test need not guess times.
//!
//! # Cassettes
//!
//! With the feature `record` the server can also stand before the real API and write down what passes
//! (`cassette::Recorder`); [`cassette::Player`] plays that back without a network. The keys of a request are never written.
//!
//! # What is stable
//!
//! The form of scenario files, the builders of [`Scenario`], [`Turn`] and [`When`], and [`Server`]. The words of
//! [`tour`], of the made-up answers and of error messages are not.

mod answer;
pub mod cassette;
mod play;
mod progress;
mod request;
mod scenario;
mod server;
mod step;
mod tour;
mod turn;

pub use progress::{Ending, RunState, ScenarioState, StepState, TurnState};
pub use request::RecordedRequest;
pub use scenario::{After, Responder, Scenario, ScenarioError};
pub use server::{Observed, Server};
pub use step::{Call, Step};
pub use tour::tour;
pub use turn::{Finish, Tokens, Turn, Usage, When};
