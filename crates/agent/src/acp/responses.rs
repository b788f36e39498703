//! What the API answered, as the CLI records it: over ACP the one place that says in time why an answer ended, and that its router was
//! asked (0.61.0).
//!
//! The CLI writes an answer there before it goes on, so whoever has heard of the end of a turn finds all of it. Its telemetry, which
//! has the same, is 5 s late, and nothing hurries that part of it; what it traces can be hurried, and names the models.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use alhena_model::{Fact, Tokens};
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::release::Feature;
use alhena_wire::responses::{self, Response};
use serde_json::Value;

use crate::env::{self, Environment};
use crate::facts::{AuthMethod, authentication};
use crate::find::Gemini;
use crate::follow::Follower;
use crate::request::{Request, Sandbox};
use crate::run_dir::RunDir;
use crate::telemetry::{self, Traced};

/// Where the CLI writes what the API answers.
pub(super) fn file(run_dir: &RunDir) -> PathBuf {
    run_dir.path().join("responses")
}

/// The option that makes it do so.
pub(super) fn option(run_dir: &RunDir) -> OsString {
    let mut option = OsString::from("--record-responses=");
    option.push(file(run_dir));
    option
}

/// An answer can be long, and each of its pieces brings as much again along.
const LONGEST_LINE: usize = 64 << 20;
/// So many answers may wait for the names of their models.
const MOST: usize = 1000;

/// Whether the CLI can be asked to record what the API answers without doing anything else in another way.
///
/// With a Google account it would (0.61.0): around the server that it talks to then it does not expect anybody, and goes without
/// what its administrator demands. In a sandbox it cannot reach the file, and no answer would get through.
pub(super) fn can_be_recorded(
    gemini: &Gemini,
    request: &Request,
    settings: &Value,
    (home, dir): (&Path, &Path),
    environment: &Environment,
) -> bool {
    let given = ["--record-responses", "--fake-responses"];
    let own = request
        .extra_args
        .iter()
        .any(|argument| given.iter().any(|option| argument.to_string_lossy().starts_with(option)));
    let sandboxed = match request.sandbox {
        Sandbox::Off => false,
        Sandbox::On | Sandbox::Engine(_) => true,
        Sandbox::Inherit => {
            let set = settings.pointer("/tools/sandbox");
            environment.filled(env::GEMINI_SANDBOX).is_some()
                || set.is_some_and(|set| !matches!(set, Value::Null | Value::Bool(false)))
        }
    };
    let signs_in = || authentication(home, dir, environment).method;
    gemini.version.has(Feature::FakeResponses)
        && !own
        && !sandboxed
        && matches!(signs_in(), Some(AuthMethod::GeminiApiKey | AuthMethod::VertexAi | AuthMethod::Gateway))
}

/// Follows what is recorded.
pub(super) struct Responses {
    file: Follower,
    framer: Framer,
    /// Those of which it is not known which model gave them.
    nameless: Vec<Response>,
    warnings: Vec<String>,
    aside: Vec<Fact>,
}

impl Responses {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let (file, framer) = (Follower::open(path)?, Framer::new(LONGEST_LINE));
        Ok(Self { file, framer, nameless: Vec::new(), warnings: Vec::new(), aside: Vec::new() })
    }

    /// Nobody else reads it: what has been read need not be kept.
    pub(super) fn forget(&mut self) {
        self.file.forget();
    }

    /// Another turn: what was recorded before is none of its own.
    pub(super) fn begin_again(&mut self) {
        self.read();
        self.nameless.clear();
        self.warnings.clear();
        self.aside.clear();
    }

    /// Reads what there is.
    pub(super) fn read(&mut self) {
        let mut fresh = Vec::new();
        while let Some(bytes) = self.file.next().ok().filter(|bytes| !bytes.is_empty()) {
            self.framer.push(bytes, |frame| {
                if let Frame::Line(line) = frame {
                    fresh.extend(responses::parse_line(line));
                }
            });
        }
        for response in fresh {
            self.warnings.extend(response.finish_reason.as_deref().and_then(telemetry::warning));
            if self.nameless.len() < MOST {
                self.nameless.push(response);
            }
        }
    }

    /// Finds out which models gave the answers. Both come in the order in which calls ended, but one that failed is only traced.
    pub(super) fn name_models(&mut self, traced: Vec<Traced>) {
        let mut left = traced;
        self.nameless.retain(|response| {
            let took = (response.usage.prompt_token_count, response.usage.candidates_token_count);
            let took = (took.0.unwrap_or_default(), took.1.unwrap_or_default());
            let Some(at) = left.iter().position(|call| (call.input, call.output) == took) else {
                return true;
            };
            let model = left.remove(at).model;
            if !response.streamed {
                self.aside.push(Fact::UsageAside { model, tokens: tokens(response) });
            }
            false
        });
    }

    /// Nobody will say which models gave the rest: what they took counts all the same, and has no price.
    pub(super) fn leave_unnamed(&mut self) {
        for response in self.nameless.drain(..).filter(|response| !response.streamed) {
            self.aside.push(Fact::UsageAside { model: "unknown".to_owned(), tokens: tokens(&response) });
        }
    }

    /// Whether it is not known yet what was asked beside the conversation.
    pub(super) fn is_incomplete(&self) -> bool {
        self.nameless.iter().any(|response| !response.streamed)
    }

    /// What was not told yet of answers that did not end by themselves.
    pub(super) fn warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// What was asked beside the conversation, and not told yet.
    pub(super) fn aside(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.aside)
    }
}

fn tokens(response: &Response) -> Tokens {
    let usage = &response.usage;
    Tokens {
        prompt: usage.prompt_token_count.unwrap_or_default(),
        cached: usage.cached_content_token_count.unwrap_or_default(),
        output: usage.candidates_token_count.unwrap_or_default(),
        thoughts: usage.thoughts_token_count.unwrap_or_default(),
        tool: usage.tool_use_prompt_token_count.unwrap_or_default(),
        total: usage.total_token_count.unwrap_or_default(),
    }
}
