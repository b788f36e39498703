//! What is told: a line every ten seconds, each failure with how to repeat it, and one line at the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::Options;
use super::plan::{Kind, Plan};

const EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Failure {
    pub plan: Plan,
    pub findings: Vec<String>,
}

#[derive(Debug)]
struct Counts {
    by_kind: BTreeMap<Kind, (u64, u64)>,
    failures: Vec<Failure>,
    told: Instant,
}

/// Counts trials and tells about them; used by all threads.
#[derive(Debug)]
pub struct Report {
    seed: u64,
    kind: Option<Kind>,
    json: bool,
    started: Instant,
    counts: Mutex<Counts>,
}

impl Report {
    pub fn new(options: &Options, seed: u64) -> Self {
        eprintln!("torture: seed {seed}, {} s, {} at once", options.time().as_secs(), options.jobs);
        let counts = Counts { by_kind: BTreeMap::new(), failures: Vec::new(), told: Instant::now() };
        Self {
            seed,
            kind: options.kind,
            json: options.json,
            started: Instant::now(),
            counts: Mutex::new(counts),
        }
    }

    pub fn ended(&self, kind: Kind, failure: Option<Failure>) {
        let mut counts = self.counts.lock();
        let of_kind = counts.by_kind.entry(kind).or_default();
        of_kind.0 += u64::from(failure.is_none());
        of_kind.1 += u64::from(failure.is_some());
        if let Some(failure) = failure {
            eprintln!("torture: FAILED ({}), repeat with `{}`", kind.name(), self.repeat(&failure.plan));
            failure.findings.iter().for_each(|finding| eprintln!("    {finding}"));
            eprintln!("    plan: {:?}", failure.plan);
            counts.failures.push(failure);
        }
        if counts.told.elapsed() >= EVERY {
            counts.told = Instant::now();
            let kinds = counts.by_kind.iter().map(|(kind, (passed, failed))| match failed {
                0 => format!("{} {passed}", kind.name()),
                failed => format!("{} {passed}+{failed} failed", kind.name()),
            });
            let kinds = kinds.collect::<Vec<_>>().join(", ");
            let (passed, failed) = counts.total();
            let seconds = self.started.elapsed().as_secs();
            eprintln!("torture: {seconds} s, {} trials, {failed} failed ({kinds})", passed + failed);
        }
    }

    fn repeat(&self, plan: &Plan) -> String {
        let kind = self.kind.map(|kind| format!(" --kind {}", kind.name())).unwrap_or_default();
        format!("cargo xtask torture --trial {}{kind}", plan.seed)
    }

    pub fn failed(&self) -> u64 {
        self.counts.lock().total().1
    }

    pub fn end(&self) {
        let counts = self.counts.lock();
        let (passed, failed) = counts.total();
        for failure in &counts.failures {
            let first = failure.findings.first().map(String::as_str).unwrap_or_default();
            eprintln!("torture: `{}`: {first}", self.repeat(&failure.plan));
        }
        if self.json {
            println!("{}", self.to_json(&counts));
        }
        eprintln!("torture: {passed} passed, {failed} failed");
    }

    fn to_json(&self, counts: &Counts) -> Value {
        let (passed, failed) = counts.total();
        let kinds = counts.by_kind.iter();
        let kinds = kinds.map(|(kind, (passed, failed))| {
            (kind.name().to_owned(), json!({"passed": passed, "failed": failed}))
        });
        let failures = counts.failures.iter().map(|failure| {
            json!({
                "seed": failure.plan.seed,
                "kind": failure.plan.kind.name(),
                "findings": failure.findings,
                "repeat": self.repeat(&failure.plan),
            })
        });
        json!({
            "seed": self.seed,
            "seconds": self.started.elapsed().as_secs(),
            "passed": passed,
            "failed": failed,
            "kinds": kinds.collect::<serde_json::Map<_, _>>(),
            "failures": failures.collect::<Vec<_>>(),
        })
    }
}

impl Counts {
    fn total(&self) -> (u64, u64) {
        self.by_kind.values().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    }
}
