//! What the agent of a trial does: a script for the stand-in, or what the scripted model says to the real CLI.

use std::path::PathBuf;
use std::time::Duration;

use alhena_scripted::{Scenario, Turn};
use alhena_testbed::script::{Ending, LIFETIME_VARIABLE, SCRIPT_VARIABLE};
use alhena_testbed::{Child, Script, Step};
use rustix::process::Signal;
use serde_json::json;

use super::place::Place;
use super::plan::{Plan, Stream};
use super::secrets;

/// How long anything of the stand-in lives at most, in seconds.
pub const LIFETIME: u32 = 240;

/// A file by which the agent of a run says how far it got.
pub fn mark(place: &Place, run: usize, name: &str) -> PathBuf {
    place.marks.join(format!("{run}.{name}"))
}

/// What each run is asked: nothing else contains it.
pub fn prompt(plan: &Plan, run: usize) -> String {
    format!("prompt-{:x}-{run}", plan.seed)
}

/// What the stand-in of this run does. The runs beside the first end by themselves.
pub fn script(plan: &Plan, place: &Place, run: usize) -> Script {
    let touch = |name: &str| Step::Touch(mark(place, run, name).to_string_lossy().into_owned());
    let mut steps = Vec::new();
    if plan.deaf {
        let deaf = [Signal::INT, Signal::TERM, Signal::HUP];
        steps.push(Step::IgnoreSignals(deaf.map(Signal::as_raw).to_vec()));
    }
    steps.extend([Step::Init, Step::User, Step::Session, touch("session")]);
    steps.extend([Step::Text("one ".into()), touch("text"), Step::Sleep(50)]);
    if plan.secrets {
        steps.extend(secrets::names().map(|name| Step::Reveal(name.to_owned())));
    }
    steps.extend(plan.daemons.iter().cloned().map(Step::Spawn));
    let tool = Step::Tool {
        name: "run_shell_command".into(),
        parameters: json!({"command": "make"}),
        output: "made\n".into(),
    };
    steps.extend([touch("tool"), tool, Step::Sleep(100)]);
    steps.extend((plan.wiped && run == 0).then_some(Step::WipeSession));
    let stream = if run == 0 || plan.stream != Stream::Endless { plan.stream } else { Stream::Good };
    let (before, after) = stream_steps(stream);
    steps.extend(before);
    if stream.may_succeed() || !after.is_empty() {
        steps.extend([Step::Text("done".into()), touch("result"), Step::Result]);
    }
    steps.extend(after);
    Script::new(steps)
}

/// What comes before and after the result; nothing after it for streams that have none.
fn stream_steps(stream: Stream) -> (Vec<Step>, Vec<Step>) {
    let error =
        || Step::Line(r#"{"type":"error","timestamp":"2026-11-15T17:49:10.686Z","message":"broken"}"#.into());
    match stream {
        Stream::Good => (vec![Step::Sleep(150)], vec![]),
        Stream::Endless => (vec![Step::Text("two ".into()), Step::Hang], vec![]),
        Stream::Garbage => (vec![Step::Garbage], vec![]),
        Stream::InvalidUtf8 => (vec![Step::InvalidUtf8, Step::LineSeparators], vec![]),
        Stream::EndlessLine => (vec![Step::EndlessLine(90 << 20), Step::Line(String::new())], vec![]),
        Stream::Flood => (vec![Step::Deltas(50 << 20)], vec![]),
        Stream::LargeOutputs => (vec![Step::Mixed(20 << 20)], vec![]),
        Stream::StderrFlood => (vec![Step::StderrFlood(60 << 20)], vec![]),
        Stream::ErrorAfterSuccess => (vec![], vec![Step::ResultError("then it broke".into())]),
        Stream::UnratedError => (vec![error()], vec![Step::Sleep(1)]),
        Stream::NoResult => (vec![Step::End(Ending::Exit(0))], vec![]),
        Stream::HalfLine => {
            (vec![Step::Bytes(b"{\"type\":\"mess".to_vec()), Step::End(Ending::Exit(0))], vec![])
        }
        Stream::NoExit => (vec![], vec![Step::Hang]),
        Stream::ClosedOutput => {
            (vec![Step::CloseStdout, Step::Sleep(500), Step::End(Ending::Exit(0))], vec![])
        }
        Stream::WrongExit => (vec![], vec![Step::End(Ending::Exit(1))]),
    }
}

/// What the scripted model says to the real CLI in this run.
pub fn scenario(plan: &Plan, place: &Place, run: usize) -> Scenario {
    let touch = |name: &str| format!("touch '{}'", mark(place, run, name).display());
    let mut command = touch("tool");
    if !plan.daemons.is_empty() {
        command += &format!("; {}", daemons(plan, place));
    }
    if plan.secrets {
        let echo = secrets::names().map(|name| format!("printenv {name}"));
        command += &format!("; {}", echo.collect::<Vec<_>>().join("; "));
    }
    let first = Turn::new()
        .thought("Planning", "First the tool, then the rest.")
        .text("Working ")
        .sleep(Duration::from_millis(200))
        .text("on it. ")
        .call("run_shell_command", json!({"command": format!("{command}; sleep 0.3")}));
    let scenario = Scenario::new().turn(first);
    if run == 0 && plan.stream == Stream::Endless {
        let waits =
            Turn::new().text("Now a long one. ").call("run_shell_command", json!({"command": "sleep 61.7"}));
        return scenario.turn(waits).turn(Turn::new().text("Over").hang());
    }
    let last = touch("result");
    scenario
        .turn(
            Turn::new()
                .call("write_file", json!({"file_path": format!("made-{run}.txt"), "content": "made\n"})),
        )
        .turn(Turn::new().call("run_shell_command", json!({"command": last})))
        .turn(Turn::say("All done."))
}

/// A shell command that has the stand-in start the daemons.
fn daemons(plan: &Plan, place: &Place) -> String {
    let script = Script::new(plan.daemons.iter().map(|child: &Child| Step::Spawn(child.clone())));
    let script = Script::new(std::iter::once(Step::IgnoreStdin).chain(script.steps)).to_json();
    let program = place.stand_in.display();
    format!("{LIFETIME_VARIABLE}={LIFETIME} {SCRIPT_VARIABLE}='{script}' '{program}'")
}
