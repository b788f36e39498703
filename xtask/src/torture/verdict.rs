//! Whether a run told the truth: one outcome, of the right kind, and an exit code that agrees.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use alhena_model::{FailureKind, Outcome, Status};
use rustix::process::Signal;
use serde_json::Value;

use super::plan::{Disk, Moment, Plan, Stop, Stream, Target, View};
use super::stop::{Deed, Hit};
use super::trial::EndedRun;

/// A signal and a result that come this close together may be seen in either order on a busy machine.
const SAME_TIME: Duration = Duration::from_secs(2);

const GENTLE: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// Whether the run has to end by itself after what was done to it.
pub fn must_end(plan: &Plan, deed: &Deed) -> bool {
    let fatal = deed.hits.iter().any(|hit| match hit.blow.target {
        Target::Alhena => true,
        Target::Keeper | Target::Cli => hit.blow.signal == Signal::KILL && hit.at_work,
        Target::Guard => false,
    });
    let by_itself = match plan.stop {
        Stop::None | Stop::Timeout(_) => true,
        // Whoever holds the output and writes to it breaks the silence, and a tool that runs may be silent.
        Stop::Stall(_) => !plan.real && plan.daemons.iter().all(|daemon| daemon.writes_every_ms.is_none()),
        Stop::Blows { .. } | Stop::CloseOutput { .. } => false,
    };
    fatal || by_itself || deed.closed.is_some()
}

pub fn judge(plan: &Plan, run: &EndedRun, deed: &Deed) -> Vec<String> {
    let Some(status) = run.status else { return Vec::new() };
    let mut findings = Vec::new();
    if run.stderr.contains("panicked at") || status.code() == Some(101) {
        findings.push(format!("it panicked: {}", last_lines(&run.stderr)));
    }
    let outcomes = match outcomes(plan, run) {
        Ok(outcomes) => outcomes,
        // What could not be written whole cannot be read whole.
        Err(_) if deed.closed.is_some() || stdout_is_short(plan) || was_killed(deed) => Vec::new(),
        Err(error) => {
            findings.push(error);
            Vec::new()
        }
    };
    if outcomes.len() > 1 {
        findings.push(format!("{} outcomes", outcomes.len()));
    }
    if let Some(signal) = status.signal() {
        findings.extend(death(plan, deed, signal));
    }
    let code = status.code();
    match outcomes.first() {
        Some(outcome) => findings.extend(one(plan, run, deed, outcome, code)),
        None => findings.extend(none(plan, run, deed, code)),
    }
    findings
}

fn outcomes(plan: &Plan, run: &EndedRun) -> Result<Vec<Outcome>, String> {
    let read = |value: Value| {
        serde_json::from_value(value).map_err(|error| format!("an outcome that is none: {error}"))
    };
    match plan.view {
        View::Other(_) => Ok(Vec::new()),
        View::Outcome if run.stdout.is_empty() => Ok(Vec::new()),
        View::Outcome => serde_json::from_slice(&run.stdout)
            .map_err(|error| format!("stdout is no outcome: {error}"))
            .and_then(|value| Ok(vec![read(value)?])),
        View::Events => {
            let mut outcomes = Vec::new();
            for line in run.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let event: Value = serde_json::from_slice(line)
                    .map_err(|error| format!("a line that is no event: {error}"))?;
                if !outcomes.is_empty() {
                    return Err("an event after the end".to_owned());
                }
                if event.get("type").and_then(Value::as_str) == Some("finished") {
                    outcomes.push(read(event.get("outcome").cloned().unwrap_or_default())?);
                }
            }
            Ok(outcomes)
        }
    }
}

fn was_killed(deed: &Deed) -> bool {
    deed.hit(Target::Alhena, Signal::KILL).is_some()
}

fn stdout_is_short(plan: &Plan) -> bool {
    plan.limits.file_size.is_some() || matches!(plan.small_disk, Some((Disk::Output, _)))
}

fn death(plan: &Plan, deed: &Deed, signal: i32) -> Option<String> {
    let sent =
        deed.hits.iter().any(|hit| hit.blow.target == Target::Alhena && hit.blow.signal.as_raw() == signal);
    let early = matches!(plan.stop, Stop::Blows { moment: Moment::Spawned, .. });
    // Before it has begun there is nothing to stop, and it dies as any program would. A second signal ends it at once.
    let twice = deed.hits.iter().filter(|hit| hit.blow.target == Target::Alhena).count() > 1;
    let expected = sent && (signal == Signal::KILL.as_raw() || early || twice);
    let pipe = deed.closed.is_some() && signal == Signal::PIPE.as_raw();
    (!expected && !pipe).then(|| format!("alhena died by signal {signal}"))
}

fn one(plan: &Plan, run: &EndedRun, deed: &Deed, outcome: &Outcome, code: Option<i32>) -> Vec<String> {
    let mut findings = Vec::new();
    let told = outcome.status;
    let expected = i32::from(outcome.exit_status());
    let output_lost = deed.closed.is_some() || stdout_is_short(plan);
    // A request that was refused before the start is wrong usage.
    let refused =
        outcome.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Input) && code == Some(2);
    if code.is_some_and(|code| code != expected && !refused && !(output_lost && code != 0)) {
        findings.push(format!("{told:?} with exit code {code:?}"));
    }
    let why = || outcome.failure.as_ref().map(|failure| format!("{:?}: {}", failure.kind, failure.message));
    if told == Status::Success {
        findings.extend(false_success(plan, run, deed));
    } else if must_succeed(plan, deed) {
        findings.push(format!("{told:?} where nothing was wrong: {}", why().unwrap_or_default()));
    }
    if run.result.is_none() && !plan.is_short() && told != Status::Success {
        let wanted = wanted(plan, deed);
        if wanted.is_some_and(|wanted| wanted != told) {
            findings.push(format!("{told:?} instead of {wanted:?}: {}", why().unwrap_or_default()));
        }
    }
    findings
}

/// The only right status of a run whose agent wrote no result. One that ends by itself may have been faster.
fn wanted(plan: &Plan, deed: &Deed) -> Option<Status> {
    let gentle = |hit: &Hit| hit.blow.target == Target::Alhena && GENTLE.contains(&hit.blow.signal);
    match &plan.stop {
        _ if plan.stream != Stream::Endless => None,
        Stop::Blows { .. } if !deed.hits.is_empty() && deed.hits.iter().all(gentle) => {
            Some(Status::Cancelled)
        }
        Stop::Timeout(_) => Some(Status::Timeout),
        _ => None,
    }
}

fn false_success(plan: &Plan, run: &EndedRun, deed: &Deed) -> Option<String> {
    if !plan.stream.may_succeed() && (run.run == 0 || plan.stream != Stream::Endless) {
        return Some(format!("success for a stream that is {:?}", plan.stream));
    }
    let Some(result) = run.result else {
        return (!plan.is_short()).then(|| "success although the agent wrote no result".to_owned());
    };
    let first = deed.hits.iter().map(|hit| hit.at).min()?;
    let meant_for_run = deed.hits.iter().any(|hit| hit.blow.target == Target::Alhena);
    (meant_for_run && result.duration_since(first).is_ok_and(|later| later > SAME_TIME))
        .then(|| "success although it was stopped before its result".to_owned())
}

fn must_succeed(plan: &Plan, deed: &Deed) -> bool {
    plan.stop == Stop::None && deed.is_nothing() && plan.stream.must_succeed() && !plan.is_short()
}

/// A run that said nothing of how it ended, in a view that would.
fn none(plan: &Plan, run: &EndedRun, deed: &Deed, code: Option<i32>) -> Vec<String> {
    let silent_view = matches!(plan.view, View::Other(_));
    let mut findings = Vec::new();
    match code {
        Some(0) if stdout_is_short(plan) && silent_view => {}
        // It came to its end, and then there was nobody to be told.
        Some(0) if deed.closed.is_some() => findings.extend(false_success(plan, run, deed)),
        Some(0) if !silent_view => findings.push("exit code 0 without an outcome".to_owned()),
        Some(0) => findings.extend(false_success(plan, run, deed)),
        Some(_) if must_succeed(plan, deed) => {
            findings.push(format!("exit code {code:?} where nothing was wrong: {}", last_lines(&run.stderr)));
        }
        Some(_) if silent_view || plan.is_short() || deed.closed.is_some() => {
            let could_speak = plan.limits.file_size.is_none() && deed.is_nothing();
            let wordless = could_speak && run.stderr.trim().is_empty() && run.stdout.is_empty();
            findings.extend(wordless.then(|| format!("exit code {code:?} without a word")));
        }
        // Told to stop before the run was under way.
        Some(130) if matches!(plan.stop, Stop::Blows { moment: Moment::Spawned, .. }) => {}
        Some(code) => {
            findings.push(format!("exit code {code} without an outcome: {}", last_lines(&run.stderr)));
        }
        None => {}
    }
    findings
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().rev().take(6).rev().copied().collect::<Vec<_>>().join(" | ")
}
