//! Where the questions arrive.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::behind::add_context;
use super::occasion::Word;
use super::{Asked, Behind, Hooks, Moment, Verdict};
use crate::answer::{Desk, in_short};
use crate::budget::{Meter, Permit};
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
    halted: Halted,
    meter: Option<Arc<Meter>>,
    behind: Option<Arc<Behind>>,
    listener: Option<Listener>,
}

impl Server {
    /// Listens in a directory of the run's own.
    pub(crate) fn start(dir: &Path, deciders: Deciders) -> io::Result<Self> {
        let path = dir.join("hooks");
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let (halted, meter, behind) = (Halted::default(), deciders.meter.clone(), deciders.behind.clone());
        let told = Arc::clone(&halted);
        let accept = |listener: &UnixListener| listener.accept().map(|(line, _)| line);
        let listener = Listener::start("alhena-hooks", listener, accept, move |line| {
            if let Err(error) = answer(line, &deciders, &told) {
                tracing::warn!(%error, "a hook's question was not answered");
            }
        })?;
        Ok(Self { path, halted, meter, behind, listener: Some(listener) })
    }

    /// Why somebody ended the run, or the turn, if anybody did. It is told once.
    pub(crate) fn halted(&self) -> Option<String> {
        self.halted.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether somebody ended it, told or not.
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.lock().unwrap_or_else(PoisonError::into_inner).is_some()
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

fn answer(line: UnixStream, deciders: &Deciders, halted: &Halted) -> io::Result<()> {
    line.set_nonblocking(false)?;
    line.set_read_timeout(Some(PATIENCE))?;
    line.set_write_timeout(Some(PATIENCE))?;
    let (word, told) = read(&line)?;
    let said = match word {
        Word::Decision(moment) => decided(moment, told, deciders, halted),
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
fn decided(moment: Moment, told: Option<Map<String, Value>>, deciders: &Deciders, halted: &Halted) -> Value {
    let Some(told) = told else {
        return Verdict::undecided("what Gemini CLI says of it cannot be read").in_words_of_cli(moment);
    };
    let asked = Asked { moment, told };
    let hooks = deciders.hooks.as_ref().filter(|hooks| hooks.moments.contains(&moment));
    let meter = deciders.meter.as_ref().filter(|_| moment == Moment::BeforeModel);
    let desk = deciders.desk.as_ref().filter(|_| moment == Moment::BeforeModel);
    // All is said: the run ends well, and nobody else is asked.
    if let Some(why) = desk.and_then(|desk| desk.end()) {
        return Verdict::Deny(why.to_owned()).in_words_of_cli(moment);
    }
    let behind = deciders.behind.as_ref().filter(|_| moment == Moment::BeforeModel);
    let after_tools = behind.zip(deciders.hooks.as_ref());
    let verdict = match (after_tools.map(|(behind, hooks)| behind.ask(hooks, &asked)), hooks) {
        (Some(Err(why)), _) => Verdict::Stop(why),
        (_, Some(hooks)) => within(hooks, asked.clone()),
        _ if meter.is_some() || desk.is_some() || behind.is_some() => Verdict::GO_ON,
        (_, None) => Verdict::undecided("nobody is there who could"),
    };
    let verdict = match verdict {
        Verdict::Allow { context: Some(_), .. } if moment == Moment::BeforeModel && !deciders.can_tell => {
            Verdict::undecided(
                "a hook gives a context, which this release of Gemini CLI cannot take before a model call; 0.42.0 can",
            )
        }
        verdict => verdict,
    };
    // A model that may not be asked ends the run, too, and the CLI calls that a success (0.61.0).
    let ends = match &verdict {
        Verdict::Stop(why) => Some(why),
        Verdict::Deny(why) if moment == Moment::BeforeModel => Some(why),
        _ => None,
    };
    if let Some(why) = ends {
        halted.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| why.clone());
    }
    let mut said = verdict.in_words_of_cli(moment);
    if let Some(meter) = meter.filter(|_| matches!(verdict, Verdict::Allow { .. })) {
        match meter.ask(&asked) {
            Permit::Refused(why) => said = Verdict::Deny(why).in_words_of_cli(moment),
            granted @ Permit::Granted { .. } => {
                granted.bound(&asked, &mut said);
                tell(&verdict, behind, &asked, &mut said);
            }
        }
    } else {
        tell(&verdict, behind, &asked, &mut said);
    }
    said
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

fn read(line: &UnixStream) -> io::Result<(Word, Option<Map<String, Value>>)> {
    let mut input = BufReader::new(line).take(LONGEST);
    let mut name = String::new();
    input.read_line(&mut name)?;
    let word = Word::named(name.trim_end())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no such moment"))?;
    Ok((word, serde_json::from_reader(input).ok()))
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
