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

mod answer;
mod connection;
mod http;
mod play;
mod progress;
mod request;
mod route;
mod scenario;
mod server;
mod state;
mod step;
mod tour;
mod turn;
mod utility;
mod when;

pub use request::RecordedRequest;
pub use scenario::{After, Responder, Scenario, ScenarioError};
pub use server::Server;
pub use state::{Ending, RunState, State, StepState, TurnState};
pub use step::{Call, Step};
pub use tour::tour;
pub use turn::{Finish, Tokens, Turn, Usage};
pub use when::When;
