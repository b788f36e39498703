//! Who decides before a tool of a warm agent runs.
//!
//! Over ACP Gemini CLI runs no hook around a tool (0.61.0). But it can be made to ask about every one, and what it asks about is
//! decided here, before rules and people. A question has only what people are shown; the complete arguments are in the recorded
//! answers of the API (`responses.rs`).

use std::collections::{HashSet, VecDeque};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use alhena_model::hook::UNDECIDED;
use alhena_sys::poll::Wanted;
use alhena_sys::sockets::Stream;
use alhena_wire::responses::FunctionCall;
use serde_json::{Map, Value, json};

use crate::hooks::{Asked, Hooks, Moment, Verdict, within};
use crate::prepare::asking;
use crate::request::ResolvedRequest;

/// What was decided of a question.
#[derive(Debug, PartialEq)]
pub(super) enum Word {
    /// The tool may run, as far as those who decide are concerned.
    GoOn,
    /// It may not, and this is what the model is told.
    No(String),
    /// The turn ends here.
    Stop(String),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    name: String,
    input: Value,
}

/// Asks those who decide, without waiting for them.
pub(super) struct Deciders {
    hooks: Hooks,
    /// Arguments that were given to the model in the place of its own: it was told to come again with them.
    given: VecDeque<Call>,
    /// Calls that began without a question.
    unasked: HashSet<String>,
    send: Sender<(u64, Call, Verdict)>,
    decided: Receiver<(u64, Call, Verdict)>,
    bell: Stream,
    rung: Stream,
}

/// More is not remembered of what the model was told.
const MOST_GIVEN: usize = 100;

impl Deciders {
    /// Those of a request, if it has any for this moment.
    pub(super) fn of(request: &ResolvedRequest) -> io::Result<Option<Self>> {
        let Some(hooks) = request.hooks.clone().filter(|_| asking::about_everything(request)) else {
            return Ok(None);
        };
        let (send, decided) = mpsc::channel();
        let (bell, rung) = Stream::pair()?;
        bell.set_nonblocking(true)?;
        rung.set_nonblocking(true)?;
        let (given, unasked) = (VecDeque::new(), HashSet::new());
        Ok(Some(Self { hooks, given, unasked, send, decided, bell, rung }))
    }

    /// To be waited for.
    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted::readable(&self.rung)
    }

    /// Asks whether a tool may run, with its call as the API's answer has it. The word comes later, or at once when it is clear.
    pub(super) fn ask(
        &mut self,
        number: u64,
        call: Option<FunctionCall>,
        session: &str,
        dir: &Path,
    ) -> Option<Word> {
        let Some(FunctionCall { name, args, .. }) = call else {
            return Some(Word::No(format!("{UNDECIDED}its arguments are not known")));
        };
        let call = Call { name, input: args };
        if let Some(at) = self.given.iter().position(|given| *given == call) {
            drop(self.given.remove(at));
            return Some(Word::GoOn);
        }
        let told = json!({
            "session_id": session,
            "cwd": dir.to_string_lossy(),
            "hook_event_name": Moment::BeforeTool.event(),
            "tool_name": call.name,
            "tool_input": call.input,
        });
        let told: Map<String, Value> = told.as_object().cloned().unwrap_or_default();
        let asked = Asked { moment: Moment::BeforeTool, told };
        let (hooks, send) = (self.hooks.clone(), self.send.clone());
        let bell = self.bell.try_clone();
        let deciding = thread::Builder::new().name("alhena-hooks".to_owned()).spawn(move || {
            let verdict = within(&hooks, asked);
            let _nobody_waits = send.send((number, call, verdict));
            if let Ok(mut bell) = bell {
                // A full bell has been rung.
                let _rung = bell.write(b".");
            }
        });
        deciding.is_err().then(|| Word::No(format!("{UNDECIDED}there was no thread to decide on")))
    }

    /// A call has begun that nobody was asked about.
    pub(super) fn began_unasked(&mut self, id: &str) {
        self.unasked.insert(id.to_owned());
    }

    /// Whether nobody was asked about a call.
    pub(super) fn has_begun_unasked(&self, id: &str) -> bool {
        self.unasked.contains(id)
    }

    /// What has been decided since.
    pub(super) fn words(&mut self) -> Vec<(u64, Word)> {
        let _looked_at_anyway = (&self.rung).read(&mut [0; 64]);
        let decided: Vec<_> = self.decided.try_iter().collect();
        decided.into_iter().map(|(number, call, verdict)| (number, self.word(call, verdict))).collect()
    }

    fn word(&mut self, call: Call, verdict: Verdict) -> Word {
        match verdict {
            Verdict::Deny(why) => Word::No(why),
            Verdict::Stop(why) => Word::Stop(why),
            Verdict::Allow { input: Some(input), .. } if Value::Object(input.clone()) != call.input => {
                let again = Call { name: call.name, input: Value::Object(input) };
                let word = Word::No(format!(
                    "its arguments have to be others. Call {} again with exactly these, which are allowed: {}",
                    again.name, again.input
                ));
                self.given.push_back(again);
                if self.given.len() > MOST_GIVEN {
                    drop(self.given.pop_front());
                }
                word
            }
            Verdict::Allow { .. } => Word::GoOn,
        }
    }
}
