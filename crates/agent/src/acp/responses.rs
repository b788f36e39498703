//! What the API answered, as the CLI records it: the one place that says in the API's own word why an answer ended and, over ACP,
//! in time that its router was asked and which arguments a tool call has (0.61.0).
//!
//! The CLI writes an answer there when its stream has ended and before any of its tools runs, so whoever has heard of the end of a turn
//! finds all of it. Its telemetry, which
//! has the same, is 5 s late, and nothing hurries that part of it; what it traces can be hurried, and names the models.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use alhena_model::{Fact, Tokens};
use alhena_wire::frame::{Frame, Framer};
use alhena_wire::release::Feature;
use alhena_wire::responses::{self, FunctionCall, Response};
use serde_json::Value;

use crate::env::{self, Environment};
use crate::facts::{AuthMethod, authentication};
use crate::find::Gemini;
use crate::finish::Finishes;
use crate::follow::Follower;
use crate::request::{ResolvedRequest, Sandbox};
use crate::run_dir::RunDir;
use crate::telemetry::Traced;

/// Where the CLI writes what the API answers.
pub(crate) fn file(run_dir: &RunDir) -> PathBuf {
    run_dir.path().join("responses")
}

/// The option that makes it do so.
pub(crate) fn option(run_dir: &RunDir) -> OsString {
    let mut option = OsString::from("--record-responses=");
    option.push(file(run_dir));
    option
}

/// An answer can be long, and each of its pieces brings as much again along.
const LONGEST_LINE: usize = 64 << 20;
/// So many answers may wait for the names of their models.
const MOST: usize = 1000;
/// Calls that the CLI never reports are forgotten when there are this many.
const MOST_CALLS: usize = 10_000;

/// Whether the CLI can be asked to record what the API answers without doing anything else in another way.
///
/// With a Google account it would (0.61.0): around the server that it talks to then it does not expect anybody, and goes without
/// what its administrator demands. In a sandbox it cannot reach the file, and no answer would get through.
pub(crate) fn can_be_recorded(
    gemini: &Gemini,
    request: &ResolvedRequest,
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
pub(crate) struct Responses {
    file: Follower,
    framer: Framer,
    /// Those of which it is not known which model gave them.
    nameless: Vec<Response>,
    finishes: Finishes,
    aside: Vec<Fact>,
    /// Calls that have not begun, by their ids. Calls that share an id cannot be told apart, so none of them is kept.
    calls: HashMap<String, Option<FunctionCall>>,
}

impl Responses {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::follow(Follower::open(path)?))
    }

    /// Reads the answers of a CLI that has ended; none if it recorded nothing.
    pub(crate) fn of_ended(run_dir: &RunDir) -> Option<Self> {
        let mut responses = Self::follow(Follower::read_only(&file(run_dir)).ok()?);
        responses.read();
        Some(responses)
    }

    fn follow(file: Follower) -> Self {
        Self {
            file,
            framer: Framer::new(LONGEST_LINE),
            nameless: Vec::new(),
            finishes: Finishes::default(),
            aside: Vec::new(),
            calls: HashMap::new(),
        }
    }

    /// Nobody else reads it: what has been read need not be kept.
    pub(super) fn forget(&mut self) {
        self.file.forget();
    }

    /// Another turn: what was recorded before is none of its own.
    pub(super) fn begin_again(&mut self) {
        self.read();
        self.nameless.clear();
        self.finishes = Finishes::default();
        self.aside.clear();
        self.calls.clear();
    }

    /// Returns the call with this id, once. None if it is not recorded, or if several calls have this id.
    pub(super) fn take_call(&mut self, id: &str) -> Option<FunctionCall> {
        self.read();
        let call = self.calls.get_mut(id)?.take()?;
        self.calls.remove(id);
        Some(call)
    }

    /// Reads what there is.
    pub(crate) fn read(&mut self) {
        let mut fresh = Vec::new();
        while let Some(bytes) = self.file.next().ok().filter(|bytes| !bytes.is_empty()) {
            self.framer.push(bytes, |frame| match frame {
                Frame::Line(line) => fresh.extend(responses::parse_line(line).map(Some)),
                Frame::TooLong { .. } => fresh.push(None),
            });
        }
        for response in fresh {
            let Some(mut response) = response else {
                self.finishes.unknown();
                continue;
            };
            if self.calls.len() > MOST_CALLS {
                self.calls.clear();
            }
            for call in response.calls.drain(..) {
                let id = call.id.clone();
                self.calls.entry(id).and_modify(|known| *known = None).or_insert(Some(call));
            }
            match response.streamed {
                true => self.finishes.answer(response.finish_reason.clone()),
                false => self.finishes.aside(response.finish_reason.as_deref()),
            }
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

    /// How the answers ended that were read.
    pub(crate) fn finishes(&mut self) -> &mut Finishes {
        &mut self.finishes
    }

    /// What was asked beside the conversation, and not told yet.
    pub(super) fn aside(&mut self) -> Vec<Fact> {
        std::mem::take(&mut self.aside)
    }
}

pub(crate) fn tokens(response: &Response) -> Tokens {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Write;

    fn answer(id: &str, name: &str, args: &Value) -> String {
        let part = json!({"functionCall": {"id": id, "name": name, "args": args}});
        let chunk = json!({"candidates": [{"content": {"parts": [{"text": "x"}, part]}}]});
        json!({"method": "generateContentStream", "response": [{}, chunk]}).to_string()
    }

    #[test]
    fn a_call_is_known_by_its_id_as_soon_as_its_answer_is_written_and_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("responses");
        let mut responses = Responses::open(&path).unwrap();
        assert_eq!(responses.take_call("a"), None);
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        let args = json!({"file_path": "x"});
        writeln!(file, "not json\n[]\n{}", answer("a", "read_file", &args)).unwrap();
        write!(file, "{}", answer("b", "glob", &json!({}))).unwrap();
        let call = FunctionCall { id: "a".to_owned(), name: "read_file".to_owned(), args };
        assert_eq!(responses.take_call("a"), Some(call));
        assert_eq!((responses.take_call("a"), responses.take_call("b")), (None, None));
        writeln!(file).unwrap();
        assert_eq!(responses.take_call("b").unwrap().name, "glob");
    }

    #[test]
    fn calls_that_share_an_id_are_not_told_apart_by_guessing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("responses");
        let mut responses = Responses::open(&path).unwrap();
        let mut file = std::fs::File::options().append(true).open(&path).unwrap();
        for command in ["rm x", "echo ok", "echo third"] {
            writeln!(file, "{}", answer("same", "run_shell_command", &json!({"command": command}))).unwrap();
        }
        assert_eq!((responses.take_call("same"), responses.take_call("same")), (None, None));
        responses.begin_again();
        writeln!(file, "{}", answer("same", "glob", &json!({}))).unwrap();
        assert_eq!(responses.take_call("same").unwrap().name, "glob");
    }
}
