//! What came of a batch, in figures, and as a page.

pub mod page;

use std::collections::BTreeMap;

use alhena_model::{FailureKind, Status};
use serde::{Deserialize, Serialize};

use crate::journal::Entry;
use crate::result::Spent;
use crate::schedule::Ended;
use crate::supply;

/// The figures of a batch: of all jobs that have a result, whichever start gave it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many jobs there are, without lines that were none.
    pub jobs: u64,
    /// How many succeeded.
    pub succeeded: u64,
    /// How many did not.
    pub failed: u64,
    /// How many have no result.
    pub left: u64,
    /// How many lines were no jobs.
    pub refused: u64,
    /// How many results are of this start.
    #[serde(default)]
    pub here: u64,
    /// How many attempts were followed by another, in this start.
    pub repeated: u64,
    /// How many results each status has.
    pub by_status: BTreeMap<String, u64>,
    /// How many failures each kind has.
    pub by_kind: BTreeMap<String, u64>,
    /// What all of it used.
    pub spent: Spent,
    /// Half of the jobs took no longer than this.
    pub p50_ms: Option<u64>,
    /// Of twenty jobs, nineteen took no longer than this.
    pub p95_ms: Option<u64>,
    /// How long this start took.
    pub elapsed_ms: u64,
    /// Why not all jobs were begun, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Summary {
    /// The figures of a batch that is over.
    pub fn of(ended: &Ended) -> Self {
        let mut summary = Summary {
            jobs: jobs(ended).count() as u64,
            left: ended.left,
            refused: ended.progress.refused,
            here: (ended.progress.succeeded + ended.progress.failed).saturating_sub(ended.progress.before),
            repeated: ended.progress.repeated,
            elapsed_ms: ended.progress.elapsed_ms,
            stopped: ended.why.as_ref().map(ToString::to_string),
            ..Summary::default()
        };
        let mut times = Vec::new();
        for entry in results(ended) {
            match entry.status {
                Status::Success => summary.succeeded += 1,
                _ => summary.failed += 1,
            }
            *summary.by_status.entry(status_name(entry.status).to_owned()).or_default() += 1;
            if let Some(kind) = entry.kind {
                *summary.by_kind.entry(kind_name(kind)).or_default() += 1;
            }
            summary.spent.add(entry.spent);
            times.push(entry.duration_ms);
        }
        times.sort_unstable();
        summary.p50_ms = percentile(&times, 50);
        summary.p95_ms = percentile(&times, 95);
        summary
    }
}

/// The results of the jobs that there are, in their order.
pub fn results(ended: &Ended) -> impl Iterator<Item = &Entry> {
    results_by_id(ended).map(|(_, entry)| entry)
}

/// The same with the ids of the jobs.
pub fn results_by_id(ended: &Ended) -> impl Iterator<Item = (&str, &Entry)> {
    jobs(ended).filter_map(|job| Some((&*job.id, ended.journal.get(&job.id)?)))
}

/// Without lines that were none, which are counted by themselves.
fn jobs(ended: &Ended) -> impl Iterator<Item = &supply::Entry> {
    ended.supply.entries().iter().filter(|entry| !entry.refused)
}

/// The value below or at which so many percent of sorted values are.
pub fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

pub(crate) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Success => "success",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
        Status::Timeout => "timeout",
        Status::Stalled => "stalled",
    }
}

/// As it stands in JSON.
pub fn kind_name(kind: FailureKind) -> String {
    serde_json::to_value(kind).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_is_there() {
        let values: Vec<u64> = (1..=20).collect();
        assert_eq!((percentile(&values, 50), percentile(&values, 95)), (Some(10), Some(19)));
        assert_eq!(
            (percentile(&[7], 50), percentile(&[7], 95), percentile(&[], 50)),
            (Some(7), Some(7), None)
        );
    }
}
