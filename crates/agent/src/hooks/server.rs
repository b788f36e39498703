//! Where the questions arrive.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use alhena_model::hook::UNDECIDED;
use alhena_sys::sockets::{self, Stream};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::behind::add_context;
use super::occasion::Word;
use super::{Asked, Behind, Decisions, Hooks, Moment, Verdict};
use crate::answer::{Desk, in_short};
use crate::budget::{Meter, Permit, ToolPermit, calls_of_tool};
use crate::listener::Listener;

/// A question holds a tool's arguments and its result, or all that the model gets to see.
const LONGEST: u64 = 256 << 20;
/// How long the CLI's side may take to ask.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why somebody ended the run.
type Halted = Arc<Mutex<Option<String>>>;

/// Who answers.
#[derive(Clone, Debug)]
pub(crate) struct Deciders {
    pub hooks: Option<Hooks>,
    /// Where answers of a wanted shape arrive.
    pub desk: Option<Arc<Desk>>,
    /// Who counts what the run spends.
    pub meter: Option<Arc<Meter>>,
    /// Who asks about tools behind them, where the CLI does not.
    pub behind: Option<Arc<Behind>>,
    /// Whether the CLI can tell the model more before it is asked.
    pub can_tell: bool,
}

/// Takes questions until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    path: PathBuf,
    /// The file that is there when a hook before a model call could not ask. The socket's directory goes with the CLI.
    failed: PathBuf,
    halted: Halted,
    meter: Option<Arc<Meter>>,
    behind: Option<Arc<Behind>>,
    decisions: Arc<Decisions>,
    listener: Option<Listener>,
}

impl Server {
    /// Listens in a directory for sockets; files go into another one. The CLI was told to ask about everything at these moments.
    pub(crate) fn start(
        dir: &Path,
        files: &Path,
        deciders: Deciders,
        moments: Vec<Moment>,
    ) -> io::Result<Self> {
        let path = dir.join("hooks");
        let listener = sockets::Listener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let (halted, meter, behind) = (Halted::default(), deciders.meter.clone(), deciders.behind.clone());
        let told = Arc::clone(&halted);
        let decisions = Arc::new(Decisions::expected_at(moments));
        let given = Arc::clone(&decisions);
        let accept = |listener: &sockets::Listener| listener.accept().map(|(line, _)| line);
        let listener = Listener::start("alhena-hooks", listener, accept, move |line| {
            if let Err(error) = answer(line, &deciders, &told, &given) {
                tracing::warn!(%error, "a hook's question was not answered");
            }
        })?;
        let failed = files.join("hook-failed");
        Ok(Self { path, failed, halted, meter, behind, decisions, listener: Some(listener) })
    }

    /// Why somebody ended the run, or the turn, if anybody did. It is told once.
    pub(crate) fn halted(&self) -> Option<String> {
        let failed = std::fs::remove_file(&self.failed).is_ok();
        let failed =
            || failed.then(|| format!("{UNDECIDED}the hook before a model call was ended before it decided"));
        self.halted.lock().take().or_else(failed)
    }

    /// The decisions that were given.
    pub(crate) fn decisions(&self) -> &Arc<Decisions> {
        &self.decisions
    }

    /// Whether somebody ended it, told or not.
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.lock().is_some()
    }

    /// Another turn begins.
    pub(crate) fn begin_turn(&self) {
        if let Some(behind) = &self.behind {
            behind.begin_turn();
        }
    }

    /// Who counts what the run spends.
    pub(crate) fn meter(&self) -> Option<&Arc<Meter>> {
        self.meter.as_ref()
    }

    /// The file that says that a hook before a model call could not ask.
    pub(crate) fn failed(&self) -> &Path {
        &self.failed
    }

    /// Its address.
    pub(crate) fn socket(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.listener.take());
        let _gone = std::fs::remove_file(&self.path);
    }
}

fn answer(line: Stream, deciders: &Deciders, halted: &Halted, given: &Decisions) -> io::Result<()> {
    line.set_nonblocking(false)?;
    line.set_read_timeout(Some(PATIENCE))?;
    line.set_write_timeout(Some(PATIENCE))?;
    let (word, told) = read(&line)?;
    let said = match word {
        Word::Decision(moment) => decided(moment, told, deciders, halted, given),
        Word::Submission => match deciders.desk.as_ref().and_then(|desk| desk.end()) {
            Some(why) => json!({"continue": false, "stopReason": why}),
            None => json!({}),
        },
        Word::Answer => {
            let said = told.as_ref().and_then(|told| told.get("prompt_response")).and_then(Value::as_str);
            match deciders.desk.as_ref().and_then(|desk| desk.hear(said.unwrap_or_default())) {
                // The second is what the CLI tells people.
                Some(wrong) => {
                    let shown = in_short(&wrong);
                    json!({"decision": "deny", "reason": wrong, "systemMessage": shown})
                }
                None => json!({}),
            }
        }
    };
    let mut text = serde_json::to_vec(&said)?;
    text.push(b'\n');
    (&line).write_all(&text)
}

/// First the user's hooks, then the budget: a call that is not made costs nothing.
fn decided(
    moment: Moment,
    told: Option<Map<String, Value>>,
    deciders: &Deciders,
    halted: &Halted,
    given: &Decisions,
) -> Value {
    let unreadable = told.is_none();
    let asked = Asked { moment, told: told.unwrap_or_default() };
    let (verdict, said) = match moment {
        _ if unreadable => {
            let verdict = Verdict::undecided("what Gemini CLI says of it cannot be read");
            let said = verdict.in_words_of_cli(moment);
            (verdict, said)
        }
        Moment::BeforeModel => before_model(&asked, deciders),
        Moment::BeforeTool | Moment::AfterTool => around_tool(&asked, deciders),
    };
    given.note(&asked, matches!(verdict, Verdict::Allow { .. }));
    // A model that may not be asked ends the run, too, and the CLI calls that a success (0.61.0). Budgets and answers tell it
    // themselves.
    if let Verdict::Stop(why) = &verdict {
        halted.lock().get_or_insert_with(|| why.clone());
    }
    said
}

/// A tool is about to run, or ran. One that calls a model needs the budget's consent.
fn around_tool(asked: &Asked, deciders: &Deciders) -> (Verdict, Value) {
    let moment = asked.moment;
    let hooks = deciders.hooks.as_ref().filter(|hooks| hooks.moments.contains(&moment));
    let meter = deciders.meter.as_ref().filter(|_| calls_of_tool(asked.tool()).is_some());
    let verdict = match hooks {
        Some(hooks) => within(hooks, asked.clone()),
        None if meter.is_some() => Verdict::GO_ON,
        None => Verdict::undecided("no hook is registered for this event"),
    };
    let session = asked.told.get("session_id").and_then(Value::as_str);
    let permit = match (meter, moment) {
        (Some(meter), Moment::BeforeTool) if matches!(verdict, Verdict::Allow { .. }) => {
            meter.ask_for_tool(asked.tool(), session)
        }
        (Some(meter), Moment::AfterTool) => {
            meter.tool_ended(asked.tool());
            ToolPermit::Granted
        }
        _ => ToolPermit::Granted,
    };
    match permit {
        ToolPermit::Granted => {
            let said = verdict.in_words_of_cli(moment);
            (verdict, said)
        }
        // The budget tells by itself why the run ends.
        ToolPermit::Refused(why) => {
            let said = Verdict::Stop(why.clone()).in_words_of_cli(moment);
            (Verdict::Deny(why), said)
        }
        ToolPermit::Denied(why) => {
            let verdict = Verdict::Deny(why);
            let said = verdict.in_words_of_cli(moment);
            (verdict, said)
        }
    }
}

/// The model is about to be asked. The verdict is a stop where a hook ends the run.
fn before_model(asked: &Asked, deciders: &Deciders) -> (Verdict, Value) {
    let moment = Moment::BeforeModel;
    let Deciders { hooks, desk, meter, behind, can_tell } = deciders;
    let hooks = hooks.as_ref().filter(|hooks| hooks.moments.contains(&moment));
    // All is said: the run ends well, and nobody else is asked.
    if let Some(why) = desk.as_ref().and_then(|desk| desk.end()) {
        let verdict = Verdict::Deny(why.to_owned());
        let said = verdict.in_words_of_cli(moment);
        return (verdict, said);
    }
    let after_tools = behind.as_ref().zip(deciders.hooks.as_ref());
    let verdict = match (after_tools.map(|(behind, hooks)| behind.ask(hooks, asked)), hooks) {
        (Some(Err(why)), _) => Verdict::Stop(why),
        (_, Some(hooks)) => within(hooks, asked.clone()),
        _ if meter.is_some() || desk.is_some() || behind.is_some() => Verdict::GO_ON,
        (_, None) => Verdict::undecided("no hook is registered for this event"),
    };
    let verdict = match verdict {
        Verdict::Allow { context: Some(_), .. } if !can_tell => Verdict::undecided(
            "a hook gives a context, which this release of Gemini CLI cannot take before a model call; 0.42.0 can",
        ),
        verdict => verdict,
    };
    let mut said = verdict.in_words_of_cli(moment);
    let verdict = match verdict {
        Verdict::Deny(why) => Verdict::Stop(why),
        verdict => verdict,
    };
    if matches!(verdict, Verdict::Allow { .. }) {
        match meter.as_ref().map(|meter| meter.ask(asked)) {
            Some(Permit::Refused(why)) => {
                let refused = Verdict::Deny(why);
                let said = refused.in_words_of_cli(moment);
                return (refused, said);
            }
            Some(granted) => granted.bound(asked, &mut said),
            None => {}
        }
        tell(&verdict, behind.as_ref(), asked, &mut said);
    }
    (verdict, said)
}

/// The model is told what is to be told beside the results of tools, and before this call.
fn tell(verdict: &Verdict, behind: Option<&Arc<Behind>>, asked: &Asked, said: &mut Value) {
    let Verdict::Allow { context, .. } = verdict else { return };
    let own = context.as_ref().filter(|_| asked.moment == Moment::BeforeModel).cloned();
    let contexts: Vec<String> = behind.and_then(|behind| behind.context()).into_iter().chain(own).collect();
    if !contexts.is_empty() {
        add_context(&format!("<hook_context>{}</hook_context>", contexts.join("\n")), asked, said);
    }
}

fn read(line: &Stream) -> io::Result<(Word, Option<Map<String, Value>>)> {
    let mut input = BufReader::new(line).take(LONGEST);
    let mut name = String::new();
    input.read_line(&mut name)?;
    let word = Word::named(name.trim_end())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no such moment"))?;
    let mut told = Vec::new();
    input.read_to_end(&mut told)?;
    Ok((word, alhena_wire::from_slice(&told).ok()))
}

/// The decision, if it comes in time. One that comes late, or never, is left alone.
pub(crate) fn within(hooks: &Hooks, asked: Asked) -> Verdict {
    let (decided, decision) = mpsc::channel();
    let decide = hooks.decide.clone();
    let deciding =
        thread::Builder::new().name("alhena-decide".to_owned()).spawn(move || decided.send(decide(&asked)));
    if deciding.is_err() {
        return Verdict::undecided("there was no thread to decide on");
    }
    match decision.recv_timeout(hooks.limit) {
        Ok(verdict) => verdict,
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Verdict::undecided(format_args!("the hook did not decide within {} s", hooks.limit.as_secs_f64()))
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Verdict::undecided("the hook of this program panicked"),
    }
}
