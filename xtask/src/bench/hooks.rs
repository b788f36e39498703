//! `cargo xtask bench hooks [CALLS]`: what a hook adds to a tool call, on the real CLI and the scripted API: without one, with a
//! native hook that does nothing, and with ours, headless and over ACP. Rounds are interleaved, and time counts from the first
//! request at the API to the last, so that no start is in it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use alhena_agent::hooks::{Hooks, Moment, Verdict};
use alhena_agent::{Approval, Finder, Gemini, RunExtras, Transport};
use alhena_model::RunOptions;
use alhena_scripted::{Scenario, Turn};
use alhena_testbed::PrivateHome;
use serde_json::{Value, json};

use super::{Lab, MODEL, build, median, number};

const CALLS: usize = 100;
const ROUNDS: usize = 3;
/// What our part of a hook may add to a call, in milliseconds.
const AIM: f64 = 15.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hooked {
    No,
    /// A command of the CLI's own hooks that does nothing, at these moments.
    Native(&'static [Moment]),
    /// Ours, with a callback that allows everything.
    Ours(&'static [Moment]),
}

const BEFORE: &[Moment] = &[Moment::BeforeTool];
const BOTH: &[Moment] = &[Moment::BeforeTool, Moment::AfterTool];

/// Each way, and the one that it is compared with.
const WAYS: &[(&str, Transport, Hooked, Option<usize>)] = &[
    ("headless, no hook", Transport::Headless, Hooked::No, None),
    ("headless, native before", Transport::Headless, Hooked::Native(BEFORE), Some(0)),
    ("headless, ours before", Transport::Headless, Hooked::Ours(BEFORE), Some(0)),
    ("headless, native both", Transport::Headless, Hooked::Native(BOTH), Some(0)),
    ("headless, ours both", Transport::Headless, Hooked::Ours(BOTH), Some(0)),
    ("ACP, no hook", Transport::Acp, Hooked::No, None),
    ("ACP, ours before", Transport::Acp, Hooked::Ours(BEFORE), Some(5)),
    ("ACP, ours both", Transport::Acp, Hooked::Ours(BOTH), Some(5)),
];

pub fn run(words: &[&str]) -> Result<(), String> {
    let calls = number(words, 0, CALLS)?;
    let alhena = build()?;
    let mut taken = vec![Vec::new(); WAYS.len()];
    for _ in 0..ROUNDS {
        for ((_, transport, hooked, _), figures) in WAYS.iter().zip(&mut taken) {
            figures.push(measure(&alhena, calls, *transport, *hooked)? * 1e3 / calls as f64);
        }
    }
    let middle: Vec<f64> = taken.iter().map(|figures| median(figures)).collect();
    println!("{:26} wall a call   added   of {calls} calls each, the median of {ROUNDS}", "");
    for ((name, _, _, base), each) in WAYS.iter().zip(&middle) {
        let added = base.and_then(|base| middle.get(base)).map(|base| each - base);
        let added = added.map_or_else(String::new, |added| format!("{added:6.1} ms"));
        println!("{name:26} {each:8.1} ms  {added}");
    }
    let of = |index: usize| middle.get(index).copied().unwrap_or(f64::NAN);
    println!(
        "of a hook headless: {:.1} ms are Gemini CLI's, {:.1} ms ours; over ACP {:.1} ms (aim: below {AIM} ms a call)",
        of(1) - of(0),
        of(2) - of(1),
        of(6) - of(5),
    );
    Ok(())
}

fn measure(alhena: &Path, calls: usize, transport: Transport, hooked: Hooked) -> Result<f64, String> {
    let text = |error: std::io::Error| error.to_string();
    // The CLI takes the same call again and again for a loop, and ends it.
    let file = |number: usize| format!("{number}.txt");
    let read = |number: usize| Turn::new().call("read_file", json!({"file_path": file(number)}));
    let scenario = (0..calls).fold(Scenario::new(), |scenario, number| scenario.turn(read(number)));
    let lab = Lab::new(alhena.to_owned(), scenario.turn(Turn::say("Done.")))?;
    for number in 0..calls {
        fs::write(lab.home.workspace().join(file(number)), "alpha\n").map_err(text)?;
    }
    if let Hooked::Native(moments) = hooked {
        native(&lab.home, moments)?;
    }
    let gemini: Gemini = Finder::new()
        .env(lab.environment.clone())
        .path(&lab.cli)
        .find()
        .map_err(|error| error.to_string())?;
    let options = RunOptions::default().dir(lab.home.workspace()).model(MODEL).approval(Approval::Yolo);
    let options = options.transport(transport).timeout(Duration::from_secs(600));
    let hooks = match hooked {
        Hooked::Ours(moments) => Some(Hooks::new(moments.iter().copied(), |_| Verdict::GO_ON)),
        _ => None,
    };
    let extras = RunExtras { hooks, ..RunExtras::of(lab.environment.clone()) };
    let run = gemini.run_with("go", &options, extras).map_err(|error| error.to_string())?;
    let outcome = run.outcome_blocking();
    // Beside the conversation it asks now and then whether it goes round in circles (0.61.0).
    let mut requests = lab.server.requests("bench");
    requests.retain(|request| request.action.starts_with("stream"));
    if !outcome.is_success() || requests.len() != calls + 1 {
        return Err(format!("{hooked:?}: {} requests, {:?}", requests.len(), outcome.failure));
    }
    let ends = requests.first().zip(requests.last());
    let taken = ends.and_then(|(first, last)| last.at.duration_since(first.at).ok());
    Ok(taken.unwrap_or_default().as_secs_f64())
}

fn native(home: &PrivateHome, moments: &[Moment]) -> Result<(), String> {
    let path = home.gemini().join("settings.json");
    let read = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let mut settings: Value = serde_json::from_str(&read).map_err(|error| error.to_string())?;
    for moment in moments {
        let name = if *moment == Moment::BeforeTool { "BeforeTool" } else { "AfterTool" };
        let hook = json!([{"hooks": [{"type": "command", "command": "true"}]}]);
        if let Some(settings) = settings.as_object_mut() {
            let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
            if let Some(hooks) = hooks.as_object_mut() {
                hooks.insert(name.to_owned(), hook);
            }
        }
    }
    fs::write(path, settings.to_string()).map_err(|error| error.to_string())
}
